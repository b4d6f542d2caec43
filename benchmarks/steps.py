"""Steps of training: against the bare matrix products, one by one, with metrics."""

import time

from benchmarks._measure import Result, Row, interleaved, milliseconds, ratio
from benchmarks._settings import best_products, mnist_engine, paper_runs, stepper
from bezoar import aggregators, attacks
from bezoar.experiments import SETTINGS, network_of
from bezoar.training import METRICS, Engine, Run, Workers

SAMPLES = 60_000


def fused() -> Result:
    """27 runs (8 rules and the baseline × 3 networks) over the step's matrix products alone."""
    with Workers() as workers:
        runs = paper_runs()
        step = stepper(mnist_engine(runs, workers))
        seconds = interleaved({"step": step, "products": best_products(27, SAMPLES, workers)})
    return Result(
        "fused",
        "one step of 27 runs, 10 agents, whole MNIST ÷ its matrix products alone",
        [_over_products("27 runs", seconds, 1.2, 27)],
    )


def single() -> Result:
    """One run over the step's matrix products alone."""
    with Workers() as workers:
        [run] = paper_runs(("ios",), ("two_castle",))[:1]
        step = stepper(mnist_engine([run], workers))
        sides = {"step": step, "products": best_products(1, SAMPLES, workers)}
        seconds = interleaved(sides, rounds=25, warm=4)
    return Result(
        "single",
        "one step of one run ÷ its matrix products alone",
        [_over_products("one run", seconds, 1.6, 1)],
    )


def share() -> Result:
    """Aggregation's part of a fused step."""
    with Workers() as workers:
        seconds = _halves(mnist_engine(paper_runs(), workers))
    return Result(
        "share",
        "aggregation of 27 runs ÷ the steps that it is part of",
        [
            Row(
                "aggregation ÷ step",
                100 * ratio(seconds, "aggregation", "step"),
                5,
                "%",
                f"{milliseconds(seconds['aggregation']):.1f} of "
                f"{milliseconds(seconds['step']):.0f} ms",
            )
        ],
    )


def demo() -> Result:
    """The demo's 14 runs: aggregation against gradients, together against one by one."""
    with Workers() as workers:
        runs = [
            Run(
                network_of(cell.spec),
                aggregators.create(cell.spec.aggregator.name, **cell.spec.aggregator.options),
                attacks.create(cell.spec.attack.name),
            )
            for cell in SETTINGS["fig1"].cells()
        ]
        engine = mnist_engine(runs, workers)
        parts = _halves(engine)
        together = stepper(engine)
        alone = [stepper(mnist_engine([run], workers)) for run in runs]
        sides = {"together": together, "alone": lambda: [step() for step in alone]}
        seconds = interleaved(sides, rounds=7, warm=1)
    return Result(
        "demo",
        "the 14 runs of Figure 1",
        [
            Row(
                "aggregation ÷ gradients",
                100 * ratio(parts, "aggregation", "gradients"),
                10,
                "%",
                f"{milliseconds(parts['aggregation']):.1f} of "
                f"{milliseconds(parts['gradients']):.0f} ms",
            ),
            Row(
                "all together ÷ one by one",
                100 * ratio(seconds, "together", "alone"),
                60,
                "%",
                f"{milliseconds(seconds['together']):.0f} against "
                f"{milliseconds(seconds['alone']):.0f} ms",
            ),
        ],
    )


def metrics() -> Result:
    """27 runs with every metric each 10 iterations over the same without.

    Of ten steps nine are the same with and without metrics, so that one step of either kind tells.
    """
    with Workers() as workers:
        bare = stepper(mnist_engine(paper_runs(), workers))
        engine = mnist_engine(paper_runs(), workers, tuple(METRICS), every=1)
        state = engine.start()

        def measured() -> None:
            nonlocal state
            state = engine.step(state)
            engine.measure(state)

        seconds = interleaved({"measured": measured, "bare": bare}, rounds=15)
    return Result(
        "metrics",
        "ten steps of 27 runs and every metric once ÷ ten steps",
        [
            Row(
                "with metrics ÷ without",
                0.9 + ratio(seconds, "measured", "bare") / 10,
                1.25,
                "",
                f"one step {milliseconds(seconds['bare']):.0f} ms, with metrics "
                f"{milliseconds(seconds['measured']):.0f} ms",
            )
        ],
    )


def _halves(engine: Engine, rounds: int = 25, warm: int = 3) -> dict[str, list[float]]:
    """Seconds of the two halves of each of some steps, and of the whole."""
    models = engine.start().models
    seconds: dict[str, list[float]] = {"gradients": [], "aggregation": [], "step": []}
    for iteration in range(1, warm + rounds + 1):
        start = time.perf_counter()
        engine.local_updates(models, iteration)
        middle = time.perf_counter()
        models, _ = engine.aggregate(models)
        end = time.perf_counter()
        if iteration > warm:
            seconds["gradients"].append(middle - start)
            seconds["aggregation"].append(end - middle)
            seconds["step"].append(end - start)
    return seconds


def _over_products(what: str, seconds: dict[str, list[float]], limit: float, runs: int) -> Row:
    step, products = milliseconds(seconds["step"]), milliseconds(seconds["products"])
    speed = 4 * SAMPLES * 800 * 10 * runs / products / 1e6
    return Row(
        f"{what}: step ÷ products",
        ratio(seconds, "step", "products"),
        limit,
        "",
        f"{step:.1f} against {products:.1f} ms, at {speed:.0f} GF/s",
    )
