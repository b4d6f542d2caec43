"""Every rule on one network, side by side over several seeds."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from bezoar._errors import BezoarError
from bezoar._options import choose, plain_number
from bezoar._parts import parts_of
from bezoar.advice._comparison import Comparison, Standing
from bezoar.aggregators import Aggregator
from bezoar.experiments import (
    Choice,
    Failure,
    RunSpec,
    Store,
    StoredRun,
    prepare,
    read_choice,
    run_all,
    sweep,
)
from bezoar.report import BASELINE, Curve
from bezoar.training import METRICS, History

#: What is measured beside the metric to rank by.
MEASURED = ("accuracy_mean", "accuracy_worst", "accuracy", "poison_share")

#: How long rules are trained by default, and how often they are measured meanwhile.
ITERATIONS, MEASUREMENTS = 300, 10

#: What a comparison decides about the fields of a spec, and what is given instead.
INSTEAD = {"aggregator": "rules", "seed": "seeds", "metrics": "metric"}

#: Trains specs: a run for each, in their order, or why there is none.
Train = Callable[[Sequence[RunSpec]], "Sequence[History | StoredRun | Failure]"]


class Entry(NamedTuple):
    """What is trained of a rule: its name if not its own, the rule as given, a spec a seed."""

    name: str
    rule: Choice
    specs: list[RunSpec]


def compare(
    network: Any = None,
    *,
    rules: Any = "all",
    seeds: int | Iterable[int] = 3,
    metric: str = "accuracy_mean",
    estimate: str | int | None = None,
    store: Store | str | Path | None = None,
    workers: int | None = None,
    train: Train | None = None,
    **fields: Any,
) -> Comparison:
    """Train every rule that is possible on a network, and rank the rules.

    Beside them are the baseline, which is the weighted mean with nobody poisoned, and ``local``,
    which is no communication. Of one seed, all have the same data.

    Args:
        network: as in a spec: a name, a file, or a :class:`~bezoar.networks.Network`.
        rules: ``"all"`` that have a name, the ``"paper"``'s, or one or several of your choice:
            names with or without options, or rules themselves.
        seeds: how many, or which.
        metric: what to rank by.
        estimate: how many of its inputs an agent takes for poisoned: a number, lowered at agents
            whose rule cannot bear so many; ``"exact"``, the true number at each agent, which no
            real agent knows; or ``"max"``. By default it is the number of poisoned agents. Rules
            that are given with options keep theirs.
        store: where finished runs are kept and looked for; by default nowhere.
        workers: how many threads; by default one a core.
        train: who trains; by default this process.
        **fields: other fields of a spec, such as ``poisoned=2`` or ``partition="by_class"``.

    Raises:
        BezoarError: with the field, what was found and what is allowed.
    """
    if choose("metric", metric, METRICS).more_is_better is None:
        able = ", ".join(name for name, one in METRICS.items() if one.more_is_better is not None)
        raise BezoarError(f"metric: neither more nor less of {metric} is better; allowed: {able}")
    common = _common(network, metric, fields)
    given = plain_number(seeds)
    if not isinstance(given, int | Iterable):
        raise BezoarError(f"seeds: expected how many, or a list of them; found {seeds!r}")
    numbers = tuple(range(given) if isinstance(given, int) else dict.fromkeys(given))
    if not numbers:
        raise BezoarError(f"seeds: expected at least one, found {seeds!r}")

    def specs_of(rule: Any, **more: Any) -> list[RunSpec]:
        given = {**common, "aggregator": rule, **more}
        return [RunSpec.read({**given, "seed": seed}) for seed in numbers]

    baseline = specs_of("weighted_mean", poisoned=())
    prepare(baseline[0])  # what is wrong with the baseline is wrong with every rule
    poisoned, *others = (prepare(spec) for spec in specs_of("weighted_mean"))
    told = str(len(poisoned.network.poisoned) if estimate is None else estimate)
    assumed = f"up_to_{told}" if told.isdecimal() else told
    entries = [Entry(BASELINE, baseline[0].aggregator, baseline)]
    impossible = []
    for rule in _rules(rules):
        specs = specs_of(_assuming(rule, assumed))
        try:
            for spec in specs:  # where poisoned agents sit may depend on the seed
                prepare(spec)
            entries.append(Entry("", rule, specs))
        except BezoarError as error:
            impossible.append(Failure(specs[0], str(error)))
    standings, failed = _standings(entries, train or partial(_train, store, workers))
    return Comparison(
        spec=poisoned.spec,
        network=poisoned.network,
        metric=METRICS[metric],
        seeds=numbers,
        estimate=assumed,
        baseline=standings[0],
        others=tuple(standings[1:]),
        impossible=(*impossible, *failed),
        tests=len(poisoned.dataset.test),
        data_note=poisoned.dataset.note,
        moves=any(other.network != poisoned.network for other in others),
    )


def _standings(entries: Sequence[Entry], train: Train) -> tuple[list[Standing], list[Failure]]:
    """What became of the baseline and of every rule; or why a rule could not be trained."""
    found = iter(train([spec for entry in entries for spec in entry.specs]))
    standings: list[Standing] = []
    failures: list[Failure] = []
    for entry in entries:
        runs = [next(found) for _ in entry.specs]
        failed = [run for run in runs if isinstance(run, Failure)]
        if failed and entry.name == BASELINE:
            raise BezoarError(failed[0].reason)
        failures += failed[:1]
        finished = [run for run in runs if not isinstance(run, Failure)]
        if not failed:
            curve = Curve.of(entry.rule, finished, entry.name)
            standings.append(Standing(entry.specs[0].aggregator, curve))
    return standings, failures


def _common(network: Any, metric: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that all runs share."""
    for field, instead in INSTEAD.items():
        if field in fields:
            raise BezoarError(f"{field}: a comparison takes {instead!r} in its place")
    given = {**fields} if network is None else {"network": network, **fields}
    iterations = RunSpec.read({"iterations": ITERATIONS} | given).iterations
    every = max(1, iterations // MEASUREMENTS)
    metrics = tuple(dict.fromkeys([*MEASURED, metric]))
    of_agents = {"agent_metrics": True, "listening": (iterations,) if iterations else ()}
    return {"iterations": iterations, "every": every, **of_agents, **given, "metrics": metrics}


def _rules(found: Any) -> list[Choice]:
    """The rules to compare, each once; no communication is always among them."""
    names: list[Any] = []
    several = isinstance(found, Iterable) and not isinstance(found, str | Mapping)
    for item in found if several else [found]:
        # Options have commas of their own.
        alone = not isinstance(item, str) or ":" in item
        for name in [item] if alone else map(str.strip, item.split(",")):
            if name == "all":
                names += parts_of("aggregator")
            elif name == "paper":
                from bezoar.paper import RULES

                names += RULES
            else:
                names.append(name)
    read = [read_choice("aggregator", name) for name in [*names, "local"]]
    return list(dict.fromkeys(read))


def _assuming(rule: Choice, estimate: str) -> Any:
    """A rule with an estimate, if it takes one and was given without options."""
    if rule.part is not None or str(rule) != rule.name:
        return rule
    made: Aggregator = rule.make()
    return {"name": rule.name, "estimate": estimate} if made.uses_estimate() else rule


def _train(
    store: Store | str | Path | None, workers: int | None, specs: Sequence[RunSpec]
) -> Sequence[History | StoredRun | Failure]:
    if store is None:
        return run_all(specs, workers)
    return sweep(specs, store, workers=workers).runs
