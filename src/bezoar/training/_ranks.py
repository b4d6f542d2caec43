"""Several processes, the ranks, that train the agents of one network together."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Self

import torch
from torch import Tensor, distributed
from torch.distributed.rendezvous import rendezvous

from bezoar._arrays import Ints
from bezoar._errors import LostRankError
from bezoar.networks import Shard

#: Bytes of messages that are on their way to one rank at a time.
PIECE_BYTES = 16 << 20

#: How long a rank waits for the others before it takes them for lost.
PATIENCE = timedelta(hours=1)


class Everyone:
    """What is known of all agents that are measured, if all of them are trained here.

    Attributes:
        agents: their numbers.
        here: where those that are trained here are among them.
    """

    here: slice | Ints = slice(None)

    def __init__(self, agents: Sequence[int]) -> None:
        self.agents = agents

    def total(self, values: Tensor) -> Tensor:
        """The sum over all agents, from the sum over those here."""
        return values

    def each(self, values: Tensor) -> Tensor:
        """``[runs, W]`` a number of every agent, from ``[runs, agents]`` of those here."""
        return values


class Ranks:
    """The processes that ``torchrun`` started; messages travel by ``torch.distributed``.

    Attributes:
        number: which of them this one is; 0 leads.
        count: how many there are.
    """

    def __init__(self) -> None:
        self.number, self.count = distributed.get_rank(), distributed.get_world_size()

    @classmethod
    @contextmanager
    def joined(cls) -> Iterator[Self]:
        """Meet the other processes, as the environment says that ``torchrun`` sets."""
        backend = "gloo"
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
            backend = "cpu:gloo,cuda:nccl"
        with _lost():
            store, rank, size = next(rendezvous("env://", timeout=PATIENCE))
            # The store outlives ranks that are started again, and has the addresses of dead ones.
            attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
            # A documented name that torch does not export to type checkers.
            store = distributed.PrefixStore(f"bezoar/{attempt}", store)  # type: ignore[attr-defined]
            distributed.init_process_group(
                backend, store=store, rank=rank, world_size=size, timeout=PATIENCE
            )
        try:
            yield cls()
        finally:
            distributed.destroy_process_group()

    def sum(self, values: Tensor) -> Tensor:
        """The sum over all ranks, the same bits on each of them; ``values`` are written over."""
        with _lost():
            distributed.all_reduce(values)
        return values

    def tell(self, content: bytes) -> None:
        """Send something from the first rank to all others, which receive it with :meth:`told`."""
        with _lost():
            distributed.broadcast(torch.tensor([len(content)]), 0)
            if content:
                distributed.broadcast(torch.frombuffer(bytearray(content), dtype=torch.uint8), 0)

    def told(self) -> bytes:
        """What the first rank sends with :meth:`tell`."""
        length = torch.zeros(1, dtype=torch.int64)
        with _lost():
            distributed.broadcast(length, 0)
            content = torch.empty(int(length), dtype=torch.uint8)
            if len(content):
                distributed.broadcast(content, 0)
        return content.numpy().tobytes()

    def decide(self, choose: Callable[[], bool]) -> bool:
        """What the first rank chooses, known to all."""
        flag = torch.tensor([self.number == 0 and choose()])
        return bool(self.sum(flag.to(torch.int64)))

    def numbers(self, own: Sequence[int]) -> list[list[int]]:
        """The numbers that every rank has, as many on each."""
        table = torch.zeros(self.count, len(own), dtype=torch.int64)
        table[self.number] = torch.tensor(own)
        found: list[list[int]] = self.sum(table).tolist()
        return found

    def fill_halo(self, shard: Shard, table: Tensor) -> None:
        """Exchange messages with the other ranks, piece by piece.

        Args:
            shard: who is here, and who hears whom elsewhere.
            table: ``[n + h, D]`` the messages of the members, followed by room for the halo's.
        """
        some = max(1, PIECE_BYTES // table[0].nbytes)
        halo = table[len(shard.members) :].split(shard.received.tolist())
        incoming = {other: part.split(some) for other, part in enumerate(halo) if len(part)}
        outgoing = {
            other: torch.from_numpy(places).to(table.device).split(some)
            for other, places in enumerate(shard.sent)
            if len(places)
        }
        most = max(map(len, [*incoming.values(), *outgoing.values()]), default=0)
        for piece in range(most):
            moves = [
                distributed.P2POp(distributed.irecv, parts[piece], other)
                for other, parts in incoming.items()
                if piece < len(parts)
            ]
            moves += [
                distributed.P2POp(distributed.isend, table.index_select(0, parts[piece]), other)
                for other, parts in outgoing.items()
                if piece < len(parts)
            ]
            with _lost():
                for move in distributed.batch_isend_irecv(moves):
                    move.wait()


class AllRanks(Everyone):
    """What is known of all agents, each of which is trained at one of the ranks."""

    def __init__(self, ranks: Ranks, shard: Shard, agents: int) -> None:
        super().__init__(range(agents))
        self._ranks, self.here = ranks, shard.members

    def total(self, values: Tensor) -> Tensor:
        """The sum of what each rank found."""
        return self._ranks.sum(values.contiguous())

    def each(self, values: Tensor) -> Tensor:
        """Every rank adds its agents to zeros."""
        found = values.new_zeros(len(values), len(self.agents))
        found[:, self.here] = values
        return self._ranks.sum(found)


@contextmanager
def _lost() -> Iterator[None]:
    """Tell errors of the transport from others: some rank is gone."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0]
        raise LostRankError(
            f"ranks: the others cannot be reached any more ({reason}); started again with the "
            "same --store, training goes on from the last checkpoint"
        ) from None
