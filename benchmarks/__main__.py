"""``python -m benchmarks [NAME …] [--json]``: measure, and print each figure with its limit."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import date

from benchmarks import (
    agents,
    cluster,
    field,
    long,
    loop,
    networks,
    plan,
    ring,
    shards,
    start,
    steps,
)
from benchmarks._measure import Result, tell
from bezoar.experiments import machine

BENCHMARKS: dict[str, Callable[[], Result]] = {
    "start": start.start,
    "plan": plan.plan,
    "single": steps.single,
    "loop": loop.loop,
    "fused": steps.fused,
    "share": steps.share,
    "demo": steps.demo,
    "metrics": steps.metrics,
    "long": long.long,
    "field": field.field,
    "networks": networks.networks,
    "wide_networks": networks.wide_networks,
    "gathered": agents.gathered,
    "agents": agents.agents,
    "ring": ring.ring,
    "cluster": cluster.cluster,
    "shards": shards.shards,
}


def main() -> None:
    """Run the benchmarks named on the command line, or all of them."""
    names = [argument for argument in sys.argv[1:] if argument != "--json"]
    wanted = list(BENCHMARKS) if names in ([], ["all"]) else names
    unknown = [name for name in wanted if name not in BENCHMARKS]
    if unknown:
        sys.exit(f"benchmark: {unknown[0]!r} is not known; allowed: all, {', '.join(BENCHMARKS)}")
    results = []
    for name in wanted:
        tell(name)
        result = BENCHMARKS[name]()
        results.append(result)
        if "--json" not in sys.argv:
            _print(result)
    if "--json" in sys.argv:
        document = {
            "date": date.today().isoformat(),
            "processor": machine()["processor"],
            "results": [asdict(result) for result in results],
        }
        print(json.dumps(document, indent=2))


def _print(result: Result) -> None:
    print(f"{result.name}: {result.about}")
    for row in result.rows:
        limit = "" if row.limit is None else f" (limit {row.limit:g}{row.unit})"
        verdict = "" if row.limit is None else ("  ok" if row.holds else "  OVER")
        print(f"  {row.what}: {row.found:.3g}{row.unit}{limit}{verdict}")
        if row.detail:
            print(f"      {row.detail}")
    print(f"  command: make bench BENCHMARK={result.name}", flush=True)


if __name__ == "__main__":
    main()
