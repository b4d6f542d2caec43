"""What is sent in one exchange."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class FalseMessages:
    """Messages that differ from what their senders hold themselves, perhaps by receiver.

    Attributes:
        values: ``[rows, D]`` the messages.
        runs: ``[links]`` in which run,
        senders: ``[links]`` who sends,
        receivers: ``[links]`` to which neighbour,
        rows: ``[links]`` which of the messages.
    """

    values: Tensor
    runs: Tensor
    senders: Tensor
    receivers: Tensor
    rows: Tensor

    def __post_init__(self) -> None:
        if len({len(part) for part in (self.runs, self.senders, self.receivers, self.rows)}) != 1:
            raise ValueError("runs, senders, receivers and rows must have one entry a link")

    @classmethod
    def together(cls, several: "list[FalseMessages]") -> "FalseMessages | None":
        """Those of several groups of runs as one; ``None`` for an empty list."""
        if not several:
            return None
        offsets = [0]
        for each in several:
            offsets.append(offsets[-1] + len(each.values))
        return cls(
            torch.cat([each.values for each in several]),
            torch.cat([each.runs for each in several]),
            torch.cat([each.senders for each in several]),
            torch.cat([each.receivers for each in several]),
            torch.cat([e.rows + offset for e, offset in zip(several, offsets, strict=False)]),
        )


@dataclass(frozen=True)
class Sent:
    """What is sent in one exchange.

    Attributes:
        messages: ``[runs, W, D]`` what every agent holds after its local update. Its neighbours
            receive the same, but for the false messages.
        false: what some receive instead, if anyone lies.
        remembered: ``[runs, W, D]`` for every name that some rule remembers.
    """

    messages: Tensor
    false: FalseMessages | None = None
    remembered: Mapping[str, Tensor] = field(default_factory=dict)
