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

#: A rule by inner products reads its messages twice and multiplies them; one by coordinates
#: compares them with each other some dozen times, in the cache.
LIMITS = {"weighted_mean": 2.5, "lfighter": 4.0, "trimmed_mean": 20.0}
OTHERS = 6.0


def long() -> Result:
    """Every rule on 10 messages of 11.2 million numbers over moving as many bytes."""
    network = create("two_castle")
    messages = torch.randn(1, 10, LENGTH)
    out = torch.empty_like(messages)
    rows = []
    with Workers() as workers:
        move = mover(messages.numel() * messages.element_size(), workers)
        for name in RULES:
            options: dict[str, Any] = {"head": (100, 512)} if name == "lfighter" else {}
            if name in ("centered_clipping", "clipped_gossip"):
                options = {"threshold": 1000.0}  # about a fifth of the distances
            exchange = Exchange([aggregators.create(name, **options)], [network], map=workers.map)

            def aggregate(exchange: Exchange = exchange) -> None:
                with workers.alone():
                    exchange(messages, out=out)

            sides: dict[str, Callable[[], Any]] = {"rule": aggregate, "move": move}
            seconds = interleaved(sides, rounds=9, warm=1)
            rows.append(
                Row(
                    f"{name} ÷ moving its bytes",
                    ratio(seconds, "rule", "move"),
                    LIMITS.get(name, OTHERS),
                    "",
                    f"{milliseconds(seconds['rule']):.0f} against "
                    f"{milliseconds(seconds['move']):.0f} ms",
                )
            )
    about = "messages 10 × 11,200,000 on two castles ÷ reading and writing as many bytes once"
    return Result("long", about, rows)
