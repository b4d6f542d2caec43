"""``bezoar doctor``."""

import platform
import statistics
import time
from importlib import metadata, resources
from typing import Any

import torch

from bezoar import __version__, data
from bezoar.cli._screen import print_json, print_table
from bezoar.training import Workers, available_cores

PACKAGES = ("torch", "numpy", "scipy", "networkx", "matplotlib", "pydantic", "typer", "rich")

#: The shape of a step's matrix products: rows (classes of all runs), width, samples.
PRODUCT = (320, 800, 1024)


def doctor(json: bool) -> None:
    """Print what can be known of this machine and installation."""
    report = {
        "bezoar": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "cores": available_cores(),
        "workers": f"{available_cores()} threads, torch at one thread in each",
        "devices": _devices(),
        "matrix products": f"{_speed():.0f} GF/s in float32, all workers together",
        "mnist": _mnist(),
        **{name: metadata.version(name) for name in PACKAGES},
    }
    if json:
        print_json(report)
    else:
        rows = [[key, str(value)] for key, value in report.items()]
        print_table("bezoar doctor", ["what", "found"], rows, numbers=False)


def _devices() -> str:
    devices = ["cpu"]
    if torch.cuda.is_available():
        devices += [f"cuda:{place}" for place in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        devices.append("mps")
    return ", ".join(devices)


def _mnist() -> str:
    where = resources.files("bezoar.data") / "mnist"
    dataset = data.mnist()
    return f"{len(dataset.train):,} and {len(dataset.test):,} images, checked, in {where}"


def _speed() -> float:
    """Billions of floating-point operations a second, in products like those of a step."""
    rows, width, samples = PRODUCT
    left, right = torch.rand(rows, width), torch.rand(width, samples)

    def multiply(_: Any) -> None:
        for _ in range(20):
            left @ right

    with Workers() as workers:
        items = range(workers.count)
        times = []
        for _ in range(7):
            before = time.perf_counter()
            workers.map(multiply, items)
            times.append(time.perf_counter() - before)
        operations = 20 * 2 * rows * width * samples * workers.count
    return operations / statistics.median(times[1:]) / 1e9
