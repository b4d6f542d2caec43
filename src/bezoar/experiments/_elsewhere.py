"""Training in slices, by workers that may die, fall silent or be cut off.

The driver plans, keeps checkpoints and writes to the store. A worker is asked for a slice of a
group's training (:func:`bezoar.experiments._advance.advance`) and answers with where training
stands then. So workers share nothing with the driver or with each other, and a worker that is lost
costs a slice.
"""

import secrets
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any

from bezoar._checks import whole
from bezoar._errors import BezoarError
from bezoar.experiments._identity import versions
from bezoar.experiments._plan import reason_for

if TYPE_CHECKING:
    from bezoar.experiments._prepare import Prepared, Report, Tensors
    from bezoar.experiments._watch import Watch
    from bezoar.training import Checkpoint, History

#: Training in a slice takes at least this many times as long as what is done around it.
WORTH = 20

#: A slice is asked for again when there was no answer for so many times its length, ...
SILENCE = 3

#: ... which counts as so many seconds at least: the first slice of a worker begins with imports.
LEAST = 20.0

#: Seconds between two looks at how many workers there are.
LOOK = 0.5

#: That there is no worker is told after so many seconds: one may just be replaced by another.
NOBODY = 5.0

#: A group whose workers died so often, with nothing achieved in between, has failed.
DEATHS = 3

#: Is told that a worker did so many iterations of a group in so many seconds.
Worked = Callable[[str, int, float], Any]


class ExecutorError(BezoarError):
    """Workers cannot go on, through no fault of a run."""


class Elsewhere:
    """Trains groups of runs on an executor.

    Args:
        executor: what runs the slices.
        at_once: how many groups may be under way at the same time, or a function that tells; by
            default as many as the executor has workers, where it tells. 0 if there is no worker.
        seconds: how long a slice takes.
        watch: is told of what a person may want to know.
    """

    def __init__(
        self,
        executor: Executor,
        at_once: int | Callable[[], int] | None,
        seconds: float,
        watch: "Watch",
    ) -> None:
        if not isinstance(executor, Executor):
            raise BezoarError(
                f"executor: expected a concurrent.futures.Executor, found {executor!r}"
            )
        if at_once is None:
            at_once = getattr(executor, "_max_workers", None)  # where pools of Python have it
            if at_once is None:
                raise BezoarError(
                    f"at_once: {type(executor).__name__} does not tell how many workers it has; "
                    "give their number"
                )
        self._executor, self._seconds, self._watch = executor, seconds, watch
        self._at_once = at_once if callable(at_once) else whole("at_once", at_once, 1)
        self._workers, self._looked, self._seen = 1, -LOOK, time.monotonic()
        self._alone = False  # whether it was told that there is no worker

    def at_once(self) -> int:
        """How many groups may be under way now: one without workers, too.

        Some clusters start workers when there is work for them.
        """
        return max(1, self._count())

    def _count(self) -> int:
        """How many workers there are; the watch is told when there is none, and when one comes."""
        if not callable(self._at_once):
            return self._at_once
        now = time.monotonic()
        if now - self._looked >= LOOK:
            self._workers, self._looked = self._at_once(), now
            if self._workers:
                self._seen = now
            alone = now - self._seen >= NOBODY
            if alone != self._alone:
                self._alone = alone
                self._watch.workers(self._workers)
        return self._workers

    def train(
        self,
        runs: "Sequence[Prepared]",
        progress: "Report",
        worked: Worked,
        start: "Checkpoint | None",
        keep: "Callable[[Checkpoint], Any]",
        trained: "Tensors | None",
    ) -> "Generator[Sequence[Future[Any]], None, list[History]]":
        """Train runs together, slice by slice; see :func:`bezoar.experiments.train`.

        ``progress`` and ``keep`` are called after every slice.
        """
        from bezoar.experiments._advance import unpack
        from bezoar.training import Checkpoint

        specs = {run.key: run.spec.document() for run in runs}
        model = None if trained is None else {name: t.numpy() for name, t in trained.items()}
        iteration, seconds = (start.iteration if start else 0), self._seconds
        stands = None if start is None else start.to_bytes()
        while True:
            answer = yield from self._slice(seconds, specs, stands, seconds, model, versions())
            worked(answer["worker"], answer["iteration"] - iteration, answer["trained"])
            iteration = answer["iteration"]
            if "histories" in answer:
                histories = [unpack(told) for told in answer["histories"]]
                progress(iteration, _latest(histories))
                return histories
            stands = answer["checkpoint"]
            checkpoint = Checkpoint.from_bytes(stands)
            keep(checkpoint)
            progress(iteration, dict(checkpoint.measured[-1][1]))
            seconds = max(self._seconds, WORTH * (answer["seconds"] - answer["trained"]))

    def _slice(self, seconds: float, *work: Any) -> "Generator[Any, None, dict[str, Any]]":
        """The first answer to a request, which is made again while nobody answers."""
        attempts = [self._submit(*work)]
        asked, deaths = time.monotonic(), 0
        patience = SILENCE * max(seconds, LEAST)
        try:
            while True:
                yield attempts
                if not self._count():
                    asked = time.monotonic()  # without workers, silence says nothing
                for attempt in [each for each in attempts if each.done()]:
                    attempts.remove(attempt)
                    if (problem := _problem(attempt)) is None:
                        return _checked(attempt.result())
                    deaths += 1
                    if deaths == DEATHS:
                        raise BezoarError(f"executor: {DEATHS} workers died of it: {problem}")
                    self._watch.said(f"a worker was lost ({problem}); its slice is computed again")
                silent = bool(attempts) and time.monotonic() - asked > patience
                if silent:
                    self._watch.said(f"no answer for {patience:.0f} s; the slice is sent once more")
                    patience *= 2  # it may only be slow
                if silent or not attempts:
                    attempts.append(self._submit(*work))
                    asked = time.monotonic()
        finally:
            for attempt in attempts:
                attempt.cancel()

    def _submit(self, *work: Any) -> "Future[Any]":
        from bezoar.experiments._advance import advance

        submit: Any = self._executor.submit
        try:
            attempt: Future[Any] = submit(advance, *work, secrets.token_hex(8))
            return attempt
        except Exception as error:
            raise ExecutorError(f"executor: it takes no more work: {reason_for(error)}") from error


def _problem(attempt: "Future[Any]") -> str | None:
    """Why there is no answer; a worker tells its own errors as answers."""
    if attempt.cancelled():
        raise ExecutorError("executor: it cancelled what was under way")
    error = attempt.exception()
    return None if error is None else reason_for(error)


def _checked(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer with some training in it; what else a worker may say is raised."""
    from bezoar.training import CheckpointError

    if "unusable" in answer:
        raise CheckpointError(answer["unusable"])
    if "refused" in answer:
        raise ExecutorError(
            f"worker {answer['worker']}: it cannot compute what can be computed here: "
            f"{answer['refused']}"
        )
    if "failed" in answer:
        raise BezoarError(answer["failed"])
    return answer


def _latest(histories: "Sequence[History]") -> Any:
    import torch

    names = histories[0].metrics
    return {n: torch.tensor([history.metrics[n][-1] for history in histories]) for n in names}
