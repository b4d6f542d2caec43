"""Messages as long as a ResNet18."""

from collections.abc import Callable
from typing import Any

import torch

from benchmarks._measure import Result, Row, interleaved, milliseconds, ratio
from bezoar import aggregators
from bezoar.aggregators import Exchange
from bezoar.experiments._paper import RULES
from bezoar.networks import create
from bezoar.training import Workers

LENGTH = 11_200_000
LIMITS = {"trimmed_mean": 12.0}


def long() -> Result:
    """Every rule on 10 messages of 11.2 million numbers over the plain product E @ Y."""
    network = create("two_castle")
    messages = torch.randn(10, LENGTH)
    mixing = torch.from_numpy(network.mixing().toarray()).float()
    out, plain = torch.empty_like(messages), torch.empty_like(messages)
    rows = []
    with Workers() as workers:
        for name in RULES:
            options: dict[str, Any] = {"head": (100, 512)} if name == "lfighter" else {}
            if name in ("centered_clipping", "clipped_gossip"):
                options = {"threshold": 1000.0}  # about a fifth of the distances
            exchange = Exchange(aggregators.create(name, **options), [network], map=workers.map)

            def aggregate(exchange: Exchange = exchange) -> None:
                with workers.alone():
                    exchange.step(messages, out=out)

            sides: dict[str, Callable[[], Any]] = {
                "rule": aggregate,
                "plain": lambda: torch.mm(mixing, messages, out=plain),
            }
            seconds = interleaved(sides, rounds=11, warm=1)
            rows.append(
                Row(
                    f"{name} ÷ E @ Y",
                    ratio(seconds, "rule", "plain"),
                    LIMITS.get(name, 3.0),
                    "",
                    f"{milliseconds(seconds['rule']):.0f} against "
                    f"{milliseconds(seconds['plain']):.0f} ms",
                )
            )
    return Result("long", "messages 10 × 11,200,000 on two castles ÷ the plain product", rows)
