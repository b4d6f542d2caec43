"""A sweep by several workers on the terminal: a table of them above the bars."""

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text
from torch import Tensor

from bezoar._numbers import count, duration
from bezoar.cli._progress import Bars, plan_text
from bezoar.cli._screen import TrainingBars, errors
from bezoar.experiments import Plan, RunSpec

#: Workers shown at the most: those that were heard of last.
SHOWN = 12

#: What is told when no worker is there.
NOBODY = "no worker can be reached; the sweep waits, and goes on when one is there"

#: After this many seconds without news a worker is no longer counted.
FORGOTTEN = 600.0


class Heard(NamedTuple):
    """The last slice of a worker: of which group, how fast, and when it was done."""

    title: str
    speed: float
    when: float


class WorkersTable(Bars):
    """Shows a sweep by several workers: who does what how fast, and the time left."""

    def __init__(self, bars: TrainingBars) -> None:
        super().__init__(bars, None)
        self._heard: dict[str, Heard] = {}
        self._operations: dict[frozenset[str], float] = {}  # of each group that was planned
        self._share: dict[frozenset[str], float] = {}  # how much of a group is done
        self._before = 0.0  # operations that earlier sweeps had done
        self._start = time.monotonic()
        self._done, self._alone = 0, False
        bars.above = self.table

    def _plan_text(self, plan: Plan) -> str:
        return plan_text(plan, None, here=False)

    def planned(self, plan: Plan) -> None:
        """Add a bar for every group, and remember how much work it is."""
        super().planned(plan)
        self._start = time.monotonic()
        for group in plan.groups:
            self._operations[frozenset(group)] = sum(run.operations for run in group.values())

    def began(self, keys: Sequence[str], specs: Sequence[RunSpec], iteration: int) -> None:
        """Start the bar of the group."""
        super().began(keys, specs, iteration)
        name, share = frozenset(keys), iteration / max(1, specs[0].iterations)
        self._before += self._operations.get(name, 0.0) * (share - self._share.get(name, 0.0))
        self._share[name] = share

    def advanced(self, keys: Sequence[str], iteration: int, metrics: Mapping[str, Tensor]) -> None:
        """Move the bar of the group."""
        super().advanced(keys, iteration, metrics)
        name = frozenset(keys)
        total = self._bars.tasks[self._bars.task_ids.index(self._tasks[name])].total
        self._share[name] = iteration / (total or 1)

    def worked(self, worker: str, keys: Sequence[str], iterations: int, seconds: float) -> None:
        """Note what the worker did."""
        title = self._titles[frozenset(keys)]
        self._heard[worker] = Heard(title, iterations / max(seconds, 1e-9), time.monotonic())

    def workers(self, count: int) -> None:
        """Show that no worker is there, or that one has come; without a terminal, print it."""
        self._alone = not count
        if not errors.is_terminal:
            self.said(NOBODY if self._alone else "a worker is there; the sweep goes on")

    def ended(self, keys: Sequence[str], failed: bool) -> None:
        """Fill the bar of the group, or mark it as failed."""
        super().ended(keys, failed)
        self._done += frozenset(keys) in self._operations
        self._share[frozenset(keys)] = 1.0

    def seconds_left(self) -> float | None:
        """About how long the rest takes at the speed so far; ``None`` where nothing is done yet."""
        done = sum(size * self._share.get(name, 0.0) for name, size in self._operations.items())
        new = done - self._before
        if new <= 0:
            return None
        return (time.monotonic() - self._start) * (sum(self._operations.values()) - done) / new

    def table(self) -> Group:
        """The workers that were heard of last, and how far all of them are."""
        grid = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for head in ("worker", "iterations/s", "heard", "last trained"):
            grid.add_column(head, justify="right" if head == "iterations/s" else "left")
        now = time.monotonic()
        here = {name: h for name, h in self._heard.items() if now - h.when < FORGOTTEN}
        latest = sorted(here.items(), key=lambda item: -item[1].when)[:SHOWN]
        for worker, heard in sorted(latest):
            ago = f"{now - heard.when:.0f} s ago"
            grid.add_row(*map(Text, (worker, f"{heard.speed:.1f}", ago, heard.title)))
        left = self.seconds_left()
        parts = [
            count(len(here), "worker"),
            f"{self._done:,} of {count(len(self._operations), 'group')} done",
            f"{sum(heard.speed for heard in here.values()):.1f} iterations/s",
            "" if left is None else f"about {duration(left)} left",
        ]
        told = [Text(NOBODY, style="bold red")] if self._alone else []
        return Group(*told, Text(", ".join(filter(None, parts))), grid)
