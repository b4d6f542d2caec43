"""Results that nobody trained, for tests of the report."""

from datetime import UTC, datetime

import numpy as np
import torch

from bezoar.experiments import RunSpec, Store, network_of, provenance, run_key, versions
from bezoar.report import Curve, Page, Panel
from bezoar.store import Finished
from bezoar.training import METRICS, History

#: A name that tries to break out of every place of a page.
HOSTILE = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>&amp;'\"\u2028"


def hostile_results(folder):
    """Results whose every name tries to break out of the page."""
    path = folder / "net" / f"a{HOSTILE.replace(chr(0x2028), '')}.edges"
    path.parent.mkdir(parents=True)
    path.write_text("0 1\n1 2\n2 0\n")
    store = Store(folder / "store")
    spec = RunSpec.read({"network": {"name": "from_file", "path": str(path)}, "poisoned": [2]})
    run = save(store, spec, made_up(spec, 3))
    Page(
        name="fig1",
        title=f"T{HOSTILE}",
        caption=f"C{HOSTILE}",
        command=f"echo {HOSTILE}",
        panels=(Panel(f"P{HOSTILE}", (Curve(f"R{HOSTILE}", (run,)),)),),
    ).save(folder / "fig1")
    return folder


#: When runs were trained, if nothing else is said.
MOMENT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


def save(store, spec, history, moment=MOMENT):
    """Keep a run as a sweep does."""
    finished = Finished(spec.document(), spec.texts(), versions(), network_of(spec), history)
    return store.save(run_key(spec), finished, provenance(moment, moment))


def made_up(spec, points, metrics=tuple(METRICS)):
    """A long history without training."""
    rng = np.random.default_rng(spec.seed)
    values = {name: rng.random(points) for name in metrics}
    return History(np.arange(points), values, torch.zeros(2, 2))
