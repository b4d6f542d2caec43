"""Everything that is sent on a dense network, as rows of one table."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from bezoar._arrays import Ints
from bezoar._questions import some
from bezoar.exchange._gathered import GatheredInputs
from bezoar.exchange._inner_products import (
    Part,
    inner_products,
    network_products,
    product_type,
    too_close,
)
from bezoar.exchange._neighbourhoods import Neighbourhoods
from bezoar.exchange._sent import FalseMessages, Sent
from bezoar.exchange._tuning import Map, Tuning


class Table:
    """Everything that may be behind a slot, as rows of one table a run.

    First come the agents' messages, then the models that rules remember, then false messages. The
    origin, which all agents have in common, is one row.

    Attributes:
        parts: the rows of all runs, part by part: messages and what is remembered stay where they
            are.
        length: the number of rows.
    """

    def __init__(self, sent: Sent, runs: Sequence[int], remembered: Sequence[str]) -> None:
        self._sent, self._runs = sent, runs
        self.parts = [Part(sent.messages, runs)]
        for name in remembered:
            rows = sent.remembered[name]
            self.parts.append(Part(rows[:, :1] if name == "origin" else rows, runs))
        sizes = [part.rows.shape[1] for part in self.parts]
        *first, self._first_false = accumulate(sizes)
        # The first row of each remembered model, and how many rows on that of the next agent is.
        self._remembered = [
            (row, int(size > 1)) for row, size in zip(first, sizes[1:], strict=True)
        ]
        self.length = self._first_false
        if sent.false is not None:
            self._add_false(sent.false)

    def _add_false(self, false: FalseMessages) -> None:
        """Add the false messages of every run, and zeros where others have more."""
        used: dict[int, Ints] = {}
        # The number of each link's message among those of its run.
        self._number = np.zeros_like(false.rows)
        for run in self._runs:
            here = false.runs == run
            used[run], self._number[here] = np.unique(false.rows[here], return_inverse=True)
        if most := max(map(len, used.values())):
            rows = false.values.new_zeros(len(self._runs), most, false.values.shape[-1])
            for into, run in zip(rows, self._runs, strict=True):
                chosen = torch.from_numpy(used[run]).to(rows.device)
                into[: len(chosen)] = false.values[chosen]
            self.parts.append(Part(rows, range(len(self._runs))))
            self.length += most

    def of_runs(self) -> list[Tensor]:
        """``[length, D]`` all rows of each run; a copy if there are several parts."""
        alone = len(self.parts) == 1
        return [rows[0] if alone else torch.cat(rows) for rows in self.by_run()]

    def by_run(self) -> Iterator[tuple[Tensor, ...]]:
        """``[rows, D]`` the parts of each run's rows, where they are."""
        each = ([part.rows[place] for place in part.where] for part in self.parts)
        return zip(*each, strict=True)

    def slots(self, here: Neighbourhoods) -> Tensor:
        """``[runs or 1, agents, m]`` the row behind each slot of some agents."""
        slots = here.index
        if self._sent.false is not None:
            links = self._sent.false.behind(self._runs, here.on_host)
            rows = np.where(links >= 0, self._first_false + self._number[links], here.on_host)
            slots = torch.from_numpy(rows).to(slots.device)
        own = here.index[..., :1].expand(len(slots), -1, 1)
        more = [first + step * own for first, step in self._remembered]
        return torch.cat([slots, *more], dim=-1) if more else slots

    def inputs(self, slots: Tensor, where: Tensor) -> GatheredInputs:
        """The inputs behind the slots of some neighbourhoods ``[runs, agents]``."""
        if len(self.parts) == 1:
            rows, places = self.parts[0].rows, self._runs
        else:
            rows, places = torch.stack(self.of_runs()), range(len(self._runs))
        first = self.length * torch.tensor(places, device=slots.device)
        return GatheredInputs(Sent(rows), (slots + first[:, None, None])[where])


class TableProducts:
    """Inner products of the rows of a table, and from them those of every neighbourhood.

    Attributes:
        finite: ``[runs, length]`` whether a row is finite.
    """

    def __init__(self, table: Table, map: Map, tuning: Tuning) -> None:
        self._table, self._map, self._tuning = table, map, tuning
        self._all = network_products(table.parts, map, tuning)
        self.finite = torch.isfinite(self._all.diagonal(dim1=-2, dim2=-1))
        messages = table.parts[0].rows
        self._type = product_type(messages, tuning)
        # Products in a wider type than the messages' are as exact as the messages are.
        narrow = self._type == messages.dtype
        self._blurred = narrow and some(too_close(self._all, self._type))

    def at(self, slots: Tensor, present: Tensor) -> Tensor:
        """``[runs, agents, m, m]`` the products of some neighbourhoods.

        Args:
            slots: ``[runs or 1, agents, m]`` the row behind each slot.
            present: ``[runs, agents, m]`` whether something finite is there.
        """
        runs, length, _ = self._all.shape
        pairs = slots.unsqueeze(-1) * length + slots.unsqueeze(-2)
        shape = (runs, *pairs.shape[1:])
        gram = self._all.flatten(1).gather(1, pairs.flatten(1).expand(runs, -1)).view(shape)
        if self._blurred and some(again := too_close(gram, self._type, present).any(-1)):
            gram[again] = self._closer(self._table.inputs(slots, again))
        return gram

    def _closer(self, inputs: GatheredInputs) -> Tensor:
        """``[n, m, m]`` inner products of neighbourhoods, each about a reference of its own."""

        def recompute(rows: Tensor) -> Tensor:
            return inner_products(replace(inputs, rows=rows), self._tuning)

        size = inputs.rows.shape[-1] * inputs.sent.messages[0, 0].nbytes
        most = max(1, self._tuning.piece_bytes // size)
        return torch.cat(list(self._map(recompute, inputs.rows.split(most))))


def at_slots(values: Tensor, slots: Tensor) -> Tensor:
    """``[runs, agents, m]`` of ``[runs, length]``."""
    shape = (len(values), *slots.shape[1:])
    return values.unsqueeze(1).expand(-1, shape[1], -1).gather(-1, slots.expand(shape))
