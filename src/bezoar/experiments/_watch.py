"""How to follow a sweep while it goes on, and who trains its groups."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from bezoar.experiments._plan import Plan
from bezoar.experiments._spec import RunSpec

if TYPE_CHECKING:
    from torch import Tensor

    from bezoar.training import History

#: Trains runs together; arguments as for :func:`bezoar.experiments.train`, but the threads.
Trainer = Callable[..., "list[History]"]


class Watch:
    """Its methods are called while a sweep goes on; here they do nothing."""

    def planning(self, done: int, total: int) -> None:
        """``done`` of ``total`` specs have been looked at."""

    def planned(self, plan: Plan) -> None:
        """The plan is made; the work begins."""

    def began(self, keys: Sequence[str], specs: Sequence[RunSpec], iteration: int) -> None:
        """A group's training begins, or goes on after an ``iteration``."""

    def advanced(
        self, keys: Sequence[str], iteration: int, metrics: "Mapping[str, Tensor]"
    ) -> None:
        """A group has finished an ``iteration``; the latest metrics are ``[runs]`` each."""

    def worked(self, worker: str, keys: Sequence[str], iterations: int, seconds: float) -> None:
        """A worker of an executor has trained a group for some iterations and seconds."""

    def workers(self, count: int) -> None:
        """An executor has had no worker for some seconds (0); or it has so many again."""

    def ended(self, keys: Sequence[str], failed: bool) -> None:
        """A group's runs are in the store; or their training failed."""

    def said(self, message: str) -> None:
        """Something happened that a person may want to know."""
