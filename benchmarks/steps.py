"""Steps of training: against their work, one by one, with metrics."""

import time
from collections.abc import Callable

import torch

from benchmarks._measure import Result, Row, interleaved, milliseconds, mover, ratio, sum_ratio
from benchmarks._settings import best_products, mnist_engine, paper_runs, stepper
from bezoar import aggregators, attacks
from bezoar.experiments import network_of
from bezoar.paper import FIGURES
from bezoar.training import METRICS, Engine, Run, State, Workers

SAMPLES = 60_000


def fused() -> Result:
    """27 runs (8 rules and the baseline × 3 networks) over the work of their step."""
    with Workers() as workers:
        step = stepper(mnist_engine(paper_runs(), workers))
        row = _over_work("27 runs", step, 27, workers, limit=1.2, rounds=9)
    return Result("fused", "one step of 27 runs, 10 agents, whole MNIST ÷ its work", [row])


def single() -> Result:
    """One run over the work of its step."""
    with Workers() as workers:
        [run] = paper_runs(("ios",), ("two_castle",))[:1]
        step = stepper(mnist_engine([run], workers))
        row = _over_work("one run", step, 1, workers, limit=1.6, rounds=25)
    return Result("single", "one step of one run ÷ its work", [row])


def share() -> Result:
    """Aggregation over moving its bytes, and its part of a fused step."""
    with Workers() as workers:
        engine = mnist_engine(paper_runs(), workers)
        models = engine.start().models
        move = mover(models.numel() * models.element_size(), workers)
        seconds = halves(engine, move)
    return Result(
        "share",
        "aggregation of 27 runs ÷ moving all messages once, timed within real steps",
        [
            Row(
                "aggregation ÷ moving the messages",
                ratio(seconds, "aggregation", "move"),
                30,
                "",
                f"{milliseconds(seconds['aggregation']):.1f} against "
                f"{milliseconds(seconds['move']):.1f} ms",
            ),
            Row(
                "aggregation ÷ step",
                100 * ratio(seconds, "aggregation", "step"),
                None,
                "%",
                f"{milliseconds(seconds['aggregation']):.1f} of "
                f"{milliseconds(seconds['step']):.0f} ms",
            ),
        ],
    )


def demo() -> Result:
    """The demo's 14 runs: aggregation against gradients, together against one by one."""
    with Workers() as workers:
        runs = [
            Run(
                network_of(spec),
                aggregators.create(spec.aggregator.name, **spec.aggregator.options),
                attacks.create(spec.attack.name),
            )
            for _, spec in FIGURES["fig1"].comparisons()[0].runs()
        ]
        engine = mnist_engine(runs, workers)
        parts = halves(engine)
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


def halves(
    engine: Engine, move: Callable[[], None] | None = None, rounds: int = 25, warm: int = 3
) -> dict[str, list[float]]:
    """Seconds of the two halves of each of some steps, of the whole, and of moving bytes."""
    state = engine.start()
    seconds: dict[str, list[float]] = {
        "gradients": [],
        "aggregation": [],
        "step": [],
        "move": [],
    }
    gradients = torch.empty_like(state.models)
    for iteration in range(1, warm + rounds + 1):
        with engine.task.workers.alone():
            start = time.perf_counter()
            engine.task.gradients(state, iteration, gradients)
            messages = engine.local_updates(state, gradients, iteration)
            middle = time.perf_counter()
            models = engine.aggregate(state, messages, state.models, iteration)
            end = time.perf_counter()
        state = State(iteration, {**state.tensors, "models": models})
        moved = time.perf_counter()
        if move is not None:
            move()
        if iteration > warm:
            seconds["gradients"].append(middle - start)
            seconds["aggregation"].append(end - middle)
            seconds["step"].append(end - start)
            seconds["move"].append(time.perf_counter() - moved)
    return seconds


def _over_work(
    what: str,
    step: Callable[[], None],
    runs: int,
    workers: Workers,
    limit: float,
    rounds: int,
) -> Row:
    """A step over its work: its products at the product's speed, its bytes at the memory's.

    The products read the samples. Beside them a step writes and reads scores and probabilities.
    """
    scores = 4 * 10 * runs * SAMPLES
    sides = {
        "step": step,
        "products": best_products(runs, SAMPLES, workers),
        "move": mover(2 * scores, workers),
    }
    seconds = interleaved(sides, rounds=rounds, warm=3)
    products, move = milliseconds(seconds["products"]), milliseconds(seconds["move"])
    speed = 4 * SAMPLES * 800 * 10 * runs / products / 1e6
    return Row(
        f"{what}: step ÷ work",
        sum_ratio(seconds, "step", ("products", "move")),
        limit,
        "",
        f"{milliseconds(seconds['step']):.1f} against {products:.1f} ms of products at "
        f"{speed:.0f} GF/s and {move:.1f} ms of bytes; step ÷ products alone "
        f"{ratio(seconds, 'step', 'products'):.2f}",
    )
