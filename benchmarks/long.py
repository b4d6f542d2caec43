"""Messages as long as a ResNet18."""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks._measure import Result, Row, interleaved, milliseconds, mover, ratio
from bezoar import aggregators
from bezoar.exchange import Exchange
from bezoar.networks import create
from bezoar.paper import RULES
from bezoar.training import Workers

LENGTH = 11_200_000

#: Coordinates in a piece of the bare products, and in a block that stays in the cache.
PIECE, BLOCK = 1 << 18, 1 << 13

#: What rules are measured by: a rule by inner products by its two products, all with all and the
#: weights with all; others by moving as many bytes. One by coordinates compares messages with each
#: other some dozen times, in the cache.
LIMITS = {"weighted_mean": 2.5, "lfighter": 4.0, "trimmed_mean": 20.0}
OF_PRODUCTS = 1.5


def long() -> Result:
    """Every rule on 10 messages of 11.2 million numbers over moving as many bytes."""
    network = create("two_castle")
    messages = torch.randn(1, 10, LENGTH)
    out = torch.empty_like(messages)
    rows = []
    with Workers() as workers:
        move = mover(messages.numel() * messages.element_size(), workers)
        products = _products(messages[0], out[0], workers)
        for name in RULES:
            options: dict[str, Any] = {"head": (100, 512)} if name == "lfighter" else {}
            if name in ("centered_clipping", "clipped_gossip"):
                options = {"threshold": 1000.0}  # about a fifth of the distances
            exchange = Exchange([aggregators.create(name, **options)], [network], map=workers.map)

            def aggregate(exchange: Exchange = exchange) -> None:
                with workers.alone():
                    exchange(messages, out=out)

            by_bytes = name in LIMITS
            what, work = ("moving its bytes", move) if by_bytes else ("its products", products)
            sides: dict[str, Callable[[], Any]] = {"rule": aggregate, "work": work}
            seconds = interleaved(sides, rounds=9, warm=1)
            rows.append(
                Row(
                    f"{name} ÷ {what}",
                    ratio(seconds, "rule", "work"),
                    LIMITS[name] if by_bytes else OF_PRODUCTS,
                    "",
                    f"{milliseconds(seconds['rule']):.0f} against "
                    f"{milliseconds(seconds['work']):.0f} ms",
                )
            )
    about = "messages 10 × 11,200,000 on two castles ÷ their bytes or their two products, alone"
    return Result("long", about, rows)


def _products(rows: torch.Tensor, out: torch.Tensor, workers: Workers) -> Callable[[], None]:
    """The two products of a rule by inner products, alone: ``Y Yᵀ``, and then weights times ``Y``.

    The first goes through the messages in blocks that stay in the cache. The second waits for it,
    as weights do.
    """
    weights = torch.rand(len(rows), len(rows))

    def multiply_all(start: int) -> torch.Tensor:
        total = torch.zeros(len(rows), len(rows))
        for first in range(start, min(start + PIECE, LENGTH), BLOCK):
            block = rows[:, first : first + BLOCK]
            total.addmm_(block, block.T)
        return total

    def combine(start: int) -> None:
        span = slice(start, start + PIECE)
        torch.mm(weights, rows[:, span], out=out[:, span])

    def work() -> None:
        for step in (multiply_all, combine):
            workers.map(step, range(0, LENGTH, PIECE))

    return work
