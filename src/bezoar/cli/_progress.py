"""A sweep on the terminal: what is planned, and a bar for every group of runs."""

import time
from collections.abc import Mapping, Sequence

from rich.progress import TaskID
from torch import Tensor

from bezoar._numbers import count, duration
from bezoar.cli._screen import TrainingBars, accuracies, errors
from bezoar.experiments import Plan, RunSpec, Watch, first_accuracies

#: Groups shown at most before and after the one that is trained.
AROUND = 6


def plan_text(plan: Plan, workers: int | None, here: bool = True) -> str:
    """The plan of a sweep, in one line, with about how long it takes if it is computed here."""
    total = plan.new + len(plan.finished) + len(plan.refused)
    if not plan.groups:
        text = f"{count(total, 'run')}, nothing new to compute"
    else:
        text = (
            f"{count(total, 'run')}: {len(plan.finished):,} already there, {plan.new:,} new in "
            f"{count(len(plan.groups), 'group')}"
        )
        text += f", about {duration(plan.seconds(workers))}" if here else ""
    return text + (f"; {len(plan.refused):,} impossible" if plan.refused else "")


def group_title(specs: Sequence[RunSpec]) -> str:
    """A short title for a group of runs: what they have in common."""
    first = specs[0]
    names = list(dict.fromkeys(str(spec.network).partition(":")[0] for spec in specs))
    where = ", ".join(names) if len(names) <= 3 else f"{len(names)} networks"
    return f"{first.partition} on {where}, seed {first.seed}: {count(len(specs), 'run')}"


class Bars(Watch):
    """Shows a sweep as bars; without a terminal, prints one line for each finished group."""

    def __init__(self, bars: TrainingBars, workers: int | None) -> None:
        self._bars, self._workers = bars, workers
        self._tasks: dict[frozenset[str], TaskID] = {}
        self._titles: dict[frozenset[str], str] = {}
        self._planning: TaskID | None = None
        self._planning_began = 0.0
        self._began: dict[frozenset[str], float] = {}  # the groups that are under way

    def planning(self, done: int, total: int) -> None:
        """Move the bar of planning, which is shown after a second."""
        if self._planning is None:
            self._planning_began = time.monotonic()
            self._planning = self._bars.add_task(
                "planning", total=total, accuracy="", visible=False
            )
        visible = time.monotonic() - self._planning_began > 1
        self._bars.update(self._planning, completed=done, visible=visible)

    def planned(self, plan: Plan) -> None:
        """Print the plan and add a bar for every group."""
        if self._planning is not None:
            self._bars.remove_task(self._planning)
        self.said(self._plan_text(plan))
        for group in plan.groups:
            self._add(list(group), [run.spec for run in group.values()], start=False)
        self._look()

    def _plan_text(self, plan: Plan) -> str:
        return plan_text(plan, self._workers)

    def began(self, keys: Sequence[str], specs: Sequence[RunSpec], iteration: int) -> None:
        """Start the bar of the group."""
        task = self._add(keys, specs)
        self._began[frozenset(keys)] = time.monotonic()
        self._bars.start_task(task)
        self._bars.update(task, completed=iteration)
        self._look()

    def advanced(self, keys: Sequence[str], iteration: int, metrics: Mapping[str, Tensor]) -> None:
        """Move the bar of the group."""
        shown = accuracies(first_accuracies(metrics))
        self._bars.update(self._tasks[frozenset(keys)], completed=iteration, accuracy=shown)

    def ended(self, keys: Sequence[str], failed: bool) -> None:
        """Fill the bar of the group, or mark it as failed."""
        name = frozenset(keys)
        if name not in self._began:
            return  # it failed before it began
        seconds = duration(time.monotonic() - self._began.pop(name))
        task, title = self._tasks[name], self._titles[name]
        outcome = "failed" if failed else "done"
        self._bars.update(task, description=f"{title}, {outcome}")
        self._bars.stop_task(task)
        if not errors.is_terminal:
            self.said(f"{title}, failed" if failed else f"{title}, done in {seconds}")

    def said(self, message: str) -> None:
        """Print a line above the bars."""
        errors.print(message, markup=False, soft_wrap=True)

    def _add(self, keys: Sequence[str], specs: Sequence[RunSpec], start: bool = True) -> TaskID:
        """The bar of a group; groups that were not in the plan get a new one."""
        name = frozenset(keys)
        if name not in self._tasks:
            self._titles[name] = group_title(specs)
            self._tasks[name] = self._bars.add_task(
                self._titles[name], start=start, total=specs[0].iterations, accuracy=""
            )
        return self._tasks[name]

    def _look(self) -> None:
        """Show only the bars near those of the groups under way, if there are many."""
        names = list(self._tasks)
        places = [names.index(name) for name in self._began] or [0]
        for place, task in enumerate(self._tasks.values()):
            near = any(abs(place - other) <= AROUND for other in places)
            self._bars.update(task, visible=near)
