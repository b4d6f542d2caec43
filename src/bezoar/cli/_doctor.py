"""``bezoar doctor``."""

import platform
from importlib import metadata, resources

import torch

from bezoar import __version__, data
from bezoar.cli._screen import print_json, print_table
from bezoar.report import Table
from bezoar.training import available_cores, product_speed

PACKAGES = (
    *("torch", "numpy", "scipy", "llvmlite", "networkx", "matplotlib", "pydantic", "typer", "rich"),
)


def doctor(json: bool) -> None:
    """Print versions, threads, speed and data of this machine and installation."""
    devices = ["cpu", *(f"cuda:{place}" for place in range(torch.cuda.device_count()))]
    devices += ["mps"] if torch.backends.mps.is_available() else []
    mnist, where = data.mnist(), resources.files("bezoar.data") / "mnist"
    images = f"{len(mnist.train):,} and {len(mnist.test):,} images, checked, in {where}"
    report = {
        "bezoar": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": available_cores(),
        "workers": f"{available_cores()} threads, torch at one thread in each",
        "devices": ", ".join(devices),
        "matrix products": f"{product_speed() / 1e9:.0f} GF/s in float32, all workers together",
        "mnist": images,
        **{name: metadata.version(name) for name in PACKAGES},
    }
    if json:
        print_json(report)
    else:
        rows = ((key, str(value)) for key, value in report.items())
        print_table(Table.of("bezoar doctor", ("what", "found"), rows))
