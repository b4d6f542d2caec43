"""Runs trained by several ranks, the processes of ``torchrun``: the first leads, others follow.

The first rank plans, prints and writes results. It tells the others the specs to train, as JSON.
Every rank prepares a run from its spec and trains one shard of its network.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bezoar._arrays import Ints
from bezoar._errors import BezoarError, LostRankError
from bezoar.experiments._spec import RunSpec
from bezoar.store import Store

if TYPE_CHECKING:
    from bezoar.experiments._prepare import Prepared, Report
    from bezoar.experiments._rank_checkpoints import RankCheckpoints
    from bezoar.experiments._watch import Trainer
    from bezoar.training import History, Ranks, Workers


def launched() -> bool:
    """Whether this process is one of several ranks, as ``torchrun`` starts them."""
    return {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= os.environ.keys()


def is_follower() -> bool:
    """Whether this process is a rank that follows another one."""
    return launched() and int(os.environ["RANK"]) > 0


@contextmanager
def leading(
    workers: int | None = None, store: Store | None = None, checkpoint_seconds: float = 30.0
) -> "Iterator[Trainer]":
    """A trainer that works at all ranks; the other ranks :func:`follow`.

    Args:
        workers: how many threads each rank has; by default its share of the machine's cores.
        store: where ranks keep checkpoints in the groups' folders; by default nowhere.
        checkpoint_seconds: training that may be lost when a process dies.
    """
    with _trainer(workers, store, checkpoint_seconds) as trainer:
        yield trainer.lead
        trainer.ranks.tell(b"")


def follow(
    workers: int | None = None, store: Store | None = None, checkpoint_seconds: float = 30.0
) -> None:
    """Train what the first rank asks for, until it is done; arguments as for :func:`leading`."""
    with _trainer(workers, store, checkpoint_seconds) as trainer:
        while told := trainer.ranks.told():
            trainer.clear()
            trainer.join(json.loads(told))
        trainer.clear()


@contextmanager
def _trainer(workers: int | None, store: Store | None, seconds: float) -> "Iterator[_ShardTrainer]":
    from bezoar.training import Ranks, Workers, available_cores

    share = available_cores() // int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    with Ranks.joined() as ranks, Workers(workers or max(1, share)) as pool:
        yield _ShardTrainer(ranks, pool, store, seconds)


class _ShardTrainer:
    """Trains this rank's shard of each run, one run after the other."""

    def __init__(
        self, ranks: "Ranks", workers: "Workers", store: Store | None, seconds: float
    ) -> None:
        self.ranks, self._workers, self._store, self._seconds = ranks, workers, store, seconds
        self._kept: list[RankCheckpoints] = []

    def lead(
        self,
        runs: "Sequence[Prepared]",
        progress: "Report | None" = None,
        *_: Any,  # ranks keep checkpoints of their own, and refuse trained starts
        **__: Any,
    ) -> "list[History]":
        """Train runs together with the other ranks, which keep checkpoints of their own."""
        # Whatever is wrong with a run is found before the others are told of it.
        owners = [self._checked(run) for run in runs]
        job = {
            "specs": [run.spec.document() for run in runs],
            "keys": [run.key for run in runs],
            "base": str(Path.cwd()),
        }
        self.ranks.tell(json.dumps(job).encode())
        try:
            return self._train(runs, owners, progress)
        except (LostRankError, OSError):
            raise
        except Exception as error:  # the others are in the middle of this run
            raise LostRankError(f"ranks: the first one failed: {error}") from error

    def join(self, job: Mapping[str, Any]) -> None:
        """Train the runs that the first rank tells of."""
        from bezoar.experiments._prepare import prepare

        runs = [prepare(RunSpec.read(spec, Path(job["base"]))) for spec in job["specs"]]
        for run, key in zip(runs, job["keys"], strict=True):
            if run.key != key:
                raise BezoarError(
                    f"ranks: the first rank trains the run {key}, rank {self.ranks.number} would "
                    f"train {run.key}: versions or files differ; they must be the same everywhere"
                )
        self._train(runs, [np.zeros(run.network.agents, np.int64) for run in runs], None)

    def clear(self) -> None:
        """Remove the checkpoints of what is in the store by now, as the first rank does."""
        for kept in self._kept:
            kept.clear()
        self._kept = []

    def _checked(self, run: "Prepared") -> Ints:
        """``[W]`` which rank trains each agent; refuses what several ranks cannot do."""
        from bezoar.networks import shard_owners
        from bezoar.training import AdaptThenCombine, check_sharded

        check_sharded(run.run, any(True for _ in run.module().buffers()))
        refused = {
            "listening": (run.spec.listening, "no rank knows what all agents listened to"),
            "keep_models": (run.spec.keep_models, "no rank holds the models of all agents"),
            "start": (run.needs and str(run.spec.start), "it takes a training of its own before"),
            "rounds": (run.spec.rounds > 1 and run.spec.rounds, "ranks exchange once an iteration"),
            "algorithm": (
                not isinstance(run.algorithm, AdaptThenCombine) and run.algorithm.name,
                "it is adapt_then_combine",
            ),
        }
        for field, (found, reason) in refused.items():
            if found:
                raise BezoarError(f"{field}: not with several ranks ({reason}), found {found}")
        return shard_owners(run.network, self.ranks.count)

    def _train(
        self, runs: "Sequence[Prepared]", owners: Sequence[Ints], progress: "Report | None"
    ) -> "list[History]":
        return [
            self._train_one(run, owner, self._folder(runs), _part_of(progress, place, runs))
            for place, (run, owner) in enumerate(zip(runs, owners, strict=True))
        ]

    def _folder(self, runs: "Sequence[Prepared]") -> Path | None:
        """Where checkpoints of the runs are kept: with whatever the store has of their group."""
        if self._store is None:
            return None
        return self._store.group([run.key for run in runs], []).folder

    def _train_one(
        self, run: "Prepared", owner: Ints, folder: Path | None, progress: "Report | None"
    ) -> "History":
        import torch

        from bezoar.experiments._prepare import one_shard
        from bezoar.experiments._rank_checkpoints import RankCheckpoints
        from bezoar.networks import shard_of

        owner = self.ranks.sum(torch.from_numpy(owner)).numpy()
        shard = shard_of(run.network, owner, self.ranks.number)
        engine = one_shard(run, shard, self._workers, self.ranks)
        start = keep = None
        if folder is not None:
            assert self._store is not None
            kept = RankCheckpoints(self._store, folder / run.key, self.ranks, self._seconds)
            start, keep = kept.last(engine), kept.keeper(engine.iterations)
            self._kept.append(kept)
        [history] = engine.train(progress, start=start, keep=keep)
        links = run.network.adjacency.tocoo()
        told = {
            "ranks": self.ranks.count,
            "links_cut": int((owner[links.row] != owner[links.col]).sum()) // 2,
            "resumed_after": start.iteration if start else 0,
        }
        return replace(history, details={**history.details, **told})


def _part_of(progress: "Report | None", place: int, runs: "Sequence[Prepared]") -> "Report | None":
    """Progress in one of several runs as progress in all of them, in a run's iterations."""
    if progress is None:
        return None

    def report(iteration: int, metrics: Any) -> None:
        progress((place * runs[0].spec.iterations + iteration) // len(runs), metrics)

    return report
