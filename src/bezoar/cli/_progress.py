"""A sweep on the terminal: what is planned, and a bar for every group of runs."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.progress import Progress, TaskID
from torch import Tensor

from bezoar.cli._screen import accuracies, count, duration, errors, training_bars
from bezoar.experiments import RunSpec, SweepPlan, Watch
from bezoar.experiments._groups import Group

#: Groups shown at most before and after the one that is trained.
AROUND = 6


def plan_text(plan: SweepPlan, workers: int | None) -> str:
    """The plan of a sweep, in one line."""
    total = plan.new + len(plan.finished) + len(plan.refused)
    if not plan.groups:
        text = f"{count(total, 'run')}, nothing new to compute"
    else:
        text = (
            f"{count(total, 'run')}: {len(plan.finished):,} already there, {plan.new:,} new in "
            f"{count(len(plan.groups), 'group')}, about {duration(plan.seconds(workers))}"
        )
    return text + (f"; {len(plan.refused):,} impossible" if plan.refused else "")


def group_title(specs: Sequence[RunSpec]) -> str:
    """A short title for a group of runs: what they have in common."""
    first = specs[0]
    names = list(dict.fromkeys(spec.network.name for spec in specs))
    where = ", ".join(names) if len(names) <= 3 else f"{len(names)} networks"
    return f"{first.partition} on {where}, seed {first.seed}: {count(len(specs), 'run')}"


@contextmanager
def sweep_progress(workers: int | None = None) -> Iterator["Bars"]:
    """Show the plan of a sweep and a bar for each of its groups on the error stream."""
    with training_bars() as bars:
        yield Bars(bars, workers)


class Bars(Watch):
    """Shows a sweep as bars; without a terminal, prints one line for each finished group."""

    def __init__(self, bars: Progress, workers: int | None) -> None:
        self._bars = bars
        self._workers = workers
        self._tasks: dict[frozenset[str], TaskID] = {}
        self._began = 0.0

    def planned(self, plan: SweepPlan) -> None:
        """Print the plan and add a bar for every group."""
        self.said(plan_text(plan, self._workers))
        for group in plan.groups:
            self._task(list(group), list(group.values()), start=False)
        self._look_at(0)

    def began(self, group: Group, iteration: int) -> None:
        """Start the bar of the group."""
        task = self._task(group.keys, group.specs)
        self._began = time.monotonic()
        self._bars.start_task(task)
        self._bars.update(task, completed=iteration)
        self._look_at(list(self._tasks.values()).index(task))

    def advanced(self, group: Group, iteration: int, metrics: Mapping[str, Tensor]) -> None:
        """Move the bar of the group."""
        values = metrics["accuracy"].tolist() if "accuracy" in metrics else []
        task = self._task(group.keys, group.specs)
        self._bars.update(task, completed=iteration, accuracy=accuracies(values))

    def ended(self, group: Group, failed: bool) -> None:
        """Fill the bar of the group, or mark it as failed."""
        task = self._task(group.keys, group.specs)
        title, seconds = group_title(group.specs), time.monotonic() - self._began
        if failed:
            self._bars.update(task, description=f"{title}, failed")
            self._bars.stop_task(task)
        else:
            iterations = group.specs[0].iterations
            self._bars.update(task, description=f"{title}, done", completed=iterations)
        if not errors.is_terminal:
            outcome = "failed" if failed else f"done in {duration(seconds)}"
            self.said(f"{title}, {outcome}")

    def said(self, message: str) -> None:
        """Print a line above the bars."""
        errors.print(message, markup=False, soft_wrap=True)

    def _task(self, keys: Sequence[str], specs: Sequence[RunSpec], start: bool = True) -> TaskID:
        """The bar of a group; groups that were not in the plan get a new one."""
        name = frozenset(keys)
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(
                group_title(specs), start=start, total=specs[0].iterations, accuracy=""
            )
        return self._tasks[name]

    def _look_at(self, place: int) -> None:
        """Show only the bars near one of them, where there are many."""
        for other, task in enumerate(self._tasks.values()):
            self._bars.update(task, visible=abs(other - place) <= AROUND)
