"""Training neural networks against torch's own best."""

import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from benchmarks._measure import Result, Row, interleaved, milliseconds, ratio, tell
from bezoar import aggregators, attacks, data, models
from bezoar import networks as topologies
from bezoar.aggregators import AGGREGATORS
from bezoar.exchange import Exchange, Sent, UpdateSums, layer_of
from bezoar.training import Engine, HeavyBall, NetworkTask, Run, State, Workers, available_cores

AGENTS, BATCH, CLASSES = 10, 32, 100

IMAGE = (3, 32, 32)

NETWORK = topologies.create("two_castle")

SETTING = f"{AGENTS} agents × batch {BATCH}, heavy ball with weight decay"

#: An iteration over ten plain passes, by width. Agents side by side gain what the rest costs.
LIMITS = {16: 1.0, 64: 1.1}

#: The memory of a training over that of two plain passes at once: models, messages and momentum,
#: and half as much again.
COPIES = 1.5 * 3


def networks() -> Result:
    """A narrow ResNet18: an iteration over ten plain passes, and aggregation's part of it."""
    with Workers() as workers:
        rows = _rows(16, 25, workers)
    return Result("networks", f"ResNet18 of width 16, {SETTING}", rows)


def wide_networks() -> Result:
    """The same for a ResNet18 as wide as the paper's, and its memory."""
    tell("two minutes")
    with Workers() as workers:
        rows = _rows(64, 3, workers)
    return Result("wide_networks", f"ResNet18 of width 64, {SETTING}", [*rows, _memory()])


def _rows(width: int, rounds: int, workers: Workers) -> list[Row]:
    engine = _engine(width, workers)
    assert isinstance(engine.task, NetworkTask)
    state = engine.start()

    def iteration() -> None:
        nonlocal state
        state = engine.step(state)

    seconds = interleaved({"iteration": iteration, "plain": _best_plain(width)}, rounds, warm=1)
    shares = _aggregation(engine, state)
    slowest = max(shares, key=lambda rule: shares[rule])
    whole = milliseconds(seconds["iteration"])
    # The iteration that was timed had a rule of its own, which the slowest takes the place of.
    with_slowest = 1 + (shares[slowest] - shares["ios"]) / whole
    return [
        Row(
            f"iteration with {slowest}, the slowest rule ÷ plain passes",
            ratio(seconds, "iteration", "plain") * with_slowest,
            LIMITS[width],
            "",
            f"with ios {whole:.0f} against {milliseconds(seconds['plain']):.0f} ms, agents "
            f"{'side by side' if engine.task.threads == 1 else 'one after the other'}",
        ),
        *(
            Row(f"{rule}: share of the iteration", 100 * found / whole, 5, "%", f"{found:.1f} ms")
            for rule, found in shares.items()
        ),
    ]


def _engine(width: int, workers: Workers) -> Engine:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, size=(AGENTS * 64, *IMAGE), dtype=np.uint8)
    labels = np.arange(len(images)) % CLASSES
    dataset = data.Dataset("noise", images, labels, images, labels, CLASSES)
    partition = data.partition("iid")(labels, CLASSES, AGENTS, rng)
    run = Run(
        NETWORK,
        aggregators.create("ios"),
        attacks.create("label_flip"),
        optimizer=HeavyBall(0.9),
        weight_decay=5e-4,
    )
    model = partial(models.resnet18, IMAGE, CLASSES, width=width)
    task = NetworkTask(dataset, partition, [run], workers, model=model, batch=BATCH)
    return Engine(task, iterations=10**9, every=10**9)


def _best_plain(width: int) -> Callable[[], None]:
    """Ten passes of one model, one after the other, in the fastest layout, on the best threads."""
    sides = {
        (layout, threads): partial(_passes, _laid_out(width, layout), layout, threads)
        for layout in (torch.contiguous_format, torch.channels_last)
        for threads in {1, available_cores()}
    }
    few = {str(way): partial(passes, count=2) for way, passes in sides.items()}
    seconds = interleaved(few, rounds=3, warm=1)
    return sides[min(sides, key=lambda way: min(seconds[str(way)]))]


def _laid_out(width: int, layout: torch.memory_format) -> nn.Module:
    module = models.create("resnet18", IMAGE, CLASSES, width=width)
    module.to(memory_format=layout)  # type: ignore[call-overload]
    return module


def _passes(
    module: nn.Module, layout: torch.memory_format, threads: int, count: int = AGENTS
) -> None:
    images = torch.rand(BATCH, *IMAGE).contiguous(memory_format=layout)
    labels = torch.arange(BATCH)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    for _ in range(count):
        module.zero_grad(set_to_none=True)
        cross_entropy(module(images), labels).backward()
    torch.set_num_threads(before)


def _aggregation(engine: Engine, state: State) -> dict[str, float]:
    """Milliseconds of one exchange by every rule, on the models of a training."""
    task = engine.task
    messages = state.models + 0.01 * state.models.std() * torch.randn_like(state.models)
    out = torch.empty_like(messages)
    found = {}
    for name, rule in AGGREGATORS.items():
        if rule().samples_judged():  # that takes passes through the model
            continue
        exchange = Exchange(
            [aggregators.create(name)],
            [NETWORK],
            layer=task.output_layer,
            map=task.workers.map,
        )

        sent = Sent(messages)
        if rule().sums_updates():
            layer = layer_of(rule(), task.output_layer)
            shape = (1, exchange.links.length, layer.classes * layer.features)
            sums = UpdateSums([0], messages.new_zeros(shape), messages.new_zeros(shape))
            sent = Sent(messages, remembered={"model_before_step": state.models}, sums=sums)

        def aggregate(exchange: Exchange = exchange, sent: Sent = sent) -> None:
            with task.workers.alone():
                exchange(sent, out=out)

        found[name] = milliseconds(interleaved({name: aggregate}, rounds=9, warm=2)[name])
    return found


def _memory(width: int = 64) -> Row:
    """The peak of a training's memory over that of two plain passes at once."""
    peaks = {kind: _elsewhere(kind, width) for kind in PEAKS}
    module = _laid_out(width, torch.channels_last)
    size = sum(parameter.numel() for parameter in module.parameters())
    copy = 4 * AGENTS * size / 1e9
    more = peaks["training"] - peaks["plain"]
    return Row(
        "peak memory beyond two plain passes ÷ a copy of all models",
        more / copy,
        COPIES,
        "",
        f"{peaks['training']:.2f} GB, two plain passes {peaks['plain']:.2f} GB, a copy {copy:.2f}",
    )


def _elsewhere(kind: str, width: int) -> float:
    """The peak in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.networks", kind, str(width)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(result.stdout)


def _train(width: int) -> None:
    with Workers() as workers:
        engine = _engine(width, workers)
        state = engine.start()
        for _ in range(2):
            state = engine.step(state)


def _two_plain(width: int) -> None:
    with Workers(2) as workers:
        modules = [_laid_out(width, torch.channels_last) for _ in range(2)]
        workers.map(lambda module: _passes(module, torch.channels_last, 1, count=2), modules)


PEAKS: dict[str, Callable[[int], None]] = {"training": _train, "plain": _two_plain}


if __name__ == "__main__":
    PEAKS[sys.argv[1]](int(sys.argv[2]))
    # The peak that getrusage tells may be that of the process which started this one.
    [peak] = re.findall(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    print(int(peak) / 1e6)
