"""A sweep whose groups are trained in slices by workers, beside the same sweep in this process."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks._measure import Result, Row, tell
from bezoar.experiments import THREADS, RunSpec, Store, executor_on, expand, sweep
from bezoar.training import available_cores

#: Seconds that a group should take in this process.
MINUTE = 60.0

#: Two numbers of iterations by which it is found out how many a group needs for that.
TRIED, MORE = 10, 60

#: One group: nine runs on whole MNIST.
DOCUMENT = {
    "network": ["two_castle", "fan", "line"],
    "aggregator": ["weighted_mean", "ios", "rfa"],
    "partition": "by_class",
    "every": 50,
}


def cluster() -> Result:
    """A group of a minute by a worker of Dask with all cores ÷ the same in this process."""
    from distributed import LocalCluster

    os.environ[THREADS] = str(available_cores())
    with TemporaryDirectory() as folder:
        path = Path(folder)
        _sweep(TRIED, path / "warm")  # reads the data, and what else is done once in a process
        few, more = _sweep(TRIED, path / "few", seed=1), _sweep(MORE, path / "more", seed=1)
        each = (more - few) / (MORE - TRIED)
        iterations = max(TRIED, round((MINUTE - few) / each))
        tell(f"{iterations} iterations here")
        here = _sweep(iterations, path / "here")
        workers = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
        with (
            LocalCluster(**workers) as running,
            executor_on(f"dask:{running.scheduler_address}") as (executor, at_once),
        ):
            _sweep(TRIED, path / "warm worker", executor, at_once)
            tell("the same by a worker")
            there = _sweep(iterations, path / "there", executor, at_once)
        same = _metrics(path / "here") == _metrics(path / "there")
    return Result(
        "cluster",
        "a group of a minute in slices of 30 s by a worker of Dask ÷ in this process, same cores",
        [
            Row(
                "in slices ÷ in this process",
                there / here,
                1.1,
                "",
                f"{there:.1f} against {here:.1f} s for {iterations} iterations of nine runs; "
                f"{'the same bits' if same else 'OTHER BITS'}",
            )
        ],
    )


def _sweep(
    iterations: int,
    store: Path,
    executor: Any = None,
    at_once: Callable[[], int] | None = None,
    seed: int = 0,
) -> float:
    """Seconds of a sweep into a new store."""
    specs: list[RunSpec] = expand(DOCUMENT | {"iterations": iterations, "seed": seed})
    before = time.perf_counter()
    swept = sweep(specs, store, executor, at_once=at_once)
    assert not swept.failures
    return time.perf_counter() - before


def _metrics(store: Path) -> dict[str, dict[str, str]]:
    return {run.key: run.files for run in Store(store).runs()}
