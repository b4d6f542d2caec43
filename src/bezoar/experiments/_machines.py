"""What a run takes on several machines: memory, traffic and time, without training it.

Where the network is large, smaller ones of its kind are made. They are cut into as many shards, and
how many neighbours a shard has elsewhere follows from two sizes by a power of the size. Time
follows from a few iterations of a small one on this machine.
"""

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bezoar._checks import whole
from bezoar._errors import BezoarError
from bezoar.experiments._choice import Choice
from bezoar.experiments._made import dataset_of, network_of, partition_of
from bezoar.experiments._prepare import make_engine, prepare
from bezoar.experiments._spec import RunSpec
from bezoar.networks import Network, shard_of, shard_owners
from bezoar.training import Workers

if TYPE_CHECKING:
    from bezoar.training import Engine

#: Larger networks are planned from networks of these sizes; the time is measured at the first.
SIZES = (4_096, 16_384)

#: The partition that gives agents as many samples in any network.
DRAWN = "drawn"

#: Agents in the network on which the time is measured hold at most this many bytes of models.
MEASURED_BYTES = 256 << 20

#: Bytes that a process takes before it trains: Python, torch and what else is imported.
PROCESS_BYTES = 400e6

#: Bytes for a link of the network while it is read, and for an input of an agent in training.
LINK_BYTES, INPUT_BYTES = 700, 50

#: Bytes of labels and places for a sample that an agent holds.
SAMPLE_BYTES = 20


@dataclass(frozen=True)
class MachinePlan:
    """What one iteration of a run takes on several machines, one rank on each.

    Attributes:
        agents: how many the network has.
        machines: how many there are.
        members: how many agents the machine has that has most.
        halo: neighbours elsewhere whose messages the machine that hears most receives.
        message: bytes of a message.
        memory: bytes on the machine that takes most.
        sent: bytes that the machine sends that sends most, in an iteration.
        local: seconds of local updates in an iteration.
        rule: seconds of the rule in an iteration.
        moving: seconds in which messages are packed and sent in an iteration.
        bandwidth: bits a second between machines, as assumed.
        workers: threads on a machine.
        measured: agents in the network on which the time was measured.
        cut: agents in the largest network that was cut.
    """

    agents: int
    machines: int
    members: int
    halo: int
    message: int
    memory: float
    sent: float
    local: float
    rule: float
    moving: float
    bandwidth: float
    workers: int
    measured: int
    cut: int

    @property
    def seconds(self) -> float:
        """Seconds of an iteration, without measurements."""
        return self.local + self.rule + self.moving


def plan_machines(
    spec: RunSpec, machines: int, bandwidth: float = 10e9, workers: int | None = None
) -> MachinePlan:
    """Plan a run on several machines like this one.

    Args:
        spec: the run.
        machines: how many, with one rank on each.
        bandwidth: bits a second that a machine can send and, at the same time, receive.
        workers: threads on a machine; by default one a core of this one.
    """
    if not bandwidth > 0:
        raise BezoarError(f"bandwidth: expected a number above 0, found {bandwidth / 1e9:g} Gbit/s")
    whole("iterations", spec.iterations, 1)
    agents = _agents(spec.network)
    if agents is None or agents <= SIZES[-1]:
        network = network_of(spec)
        agents, made = network.agents, [network]
    else:
        made = [network_of(_resized(spec, agents, size)) for size in SIZES]
        if spec.partition.name != DRAWN:
            partition_of(spec, agents)  # which is refused where there are too few samples
    whole("machines", machines, 1, agents)
    members, halo, sent = _shard_sizes(made, agents, machines)
    with Workers(workers) as pool:
        measured = _Measured(spec, agents, made[0], pool)
    message, inputs = measured.message, made[-1].adjacency.nnz / made[-1].agents + 1
    memory = PROCESS_BYTES + measured.data_bytes(members) + measured.state_bytes * members
    memory += message * halo + INPUT_BYTES * inputs * members + LINK_BYTES * inputs * agents / 2
    packing, flight = message * sent / measured.copying, 8 * message * max(sent, halo) / bandwidth
    return MachinePlan(
        agents=agents,
        machines=machines,
        members=members,
        halo=halo,
        message=message,
        memory=memory,
        sent=float(message * sent),
        local=measured.local * members,
        rule=measured.rule * members,
        moving=packing + flight,
        bandwidth=bandwidth,
        workers=pool.count,
        measured=measured.agents,
        cut=made[-1].agents,
    )


def _agents(choice: Choice) -> int | None:
    """How many agents a network has, as far as that is known without making it."""
    options = choice.options
    if "agents" in options:
        return int(options["agents"])
    if {"rows", "columns"} <= options.keys():
        return int(options["rows"]) * int(options["columns"])
    return None


def _resized(spec: RunSpec, agents: int, size: int) -> RunSpec:
    """The same run on a smaller network of the same kind, with as many samples an agent."""
    share, options = size / agents, dict(spec.network.options)
    if "agents" in options:
        options["agents"] = size
    else:
        options["rows"] = options["columns"] = math.isqrt(size)
    if "probability" in options:  # as many neighbours
        options["probability"] = min(1.0, options["probability"] / share)
    if "poisoned" in options:
        options["poisoned"] = _fewer(options["poisoned"], share)
    fields: dict[str, Any] = {"network": {"name": spec.network.name, **options}, "listening": ()}
    if spec.poisoned is not None:
        fields["poisoned"] = _fewer(spec.poisoned, share)
    return _with_samples(spec, fields, share, size)


def _fewer(poisoned: Any, share: float) -> int:
    """How many agents are the same share of poisoned ones, named or counted."""
    count = poisoned if isinstance(poisoned, int) else len(poisoned)
    return math.ceil(count * share)


def _with_samples(spec: RunSpec, fields: dict[str, Any], share: float, size: int) -> RunSpec:
    if spec.partition.name != DRAWN:
        fields["samples"] = max(size, round(len(dataset_of(spec).train) * share))
    own = {name: getattr(spec, name) for name in spec.model_fields_set}
    return RunSpec.read({**own, **fields})


def _shard_sizes(made: list[Network], agents: int, machines: int) -> tuple[int, int, int]:
    """The most members, halo and messages sent of a shard; see the module."""
    found = []
    for network in made:
        is_whole = network.agents == agents
        shards = machines if is_whole else min(machines, max(1, network.agents // 2))
        owner = shard_owners(network, shards)
        several = [shard_of(network, owner, number) for number in range(shards)]
        found.append(
            [
                max(len(shard.members) for shard in several),
                max(len(shard.halo) for shard in several),
                max(sum(map(len, shard.sent)) for shard in several),
            ]
        )
    if len(found) == 1:
        return found[0][0], found[0][1], found[0][2]
    (_, *small), (most, *large) = found
    members = math.ceil(agents * most / made[-1].agents)
    growth = made[-1].agents / made[0].agents
    halo, sent = (
        b * (agents / made[-1].agents) ** (math.log(b / a) / math.log(growth)) if a and b else 0
        for a, b in zip(small, large, strict=True)
    )
    return members, min(math.ceil(halo), agents - members), math.ceil(sent)


class _Measured:
    """What agents take on this machine, measured on a network of a modest size.

    Attributes:
        agents: in that network.
        message: bytes of a message.
        state_bytes: bytes of state and messages for an agent.
        local, rule: seconds of an agent's local updates, and of its rule.
        copying: bytes a second from memory to memory.
    """

    def __init__(self, spec: RunSpec, agents: int, network: Network, workers: Workers) -> None:
        run = prepare(spec if network.agents == agents else _resized(spec, agents, network.agents))
        if run.needs is not None:
            raise BezoarError(
                "start: expected one that needs no training before, because several ranks cannot "
                f"do it, found {run.spec.start}"
            )
        row = run.cost.bytes / run.network.agents / 4
        size = int(min(network.agents, SIZES[0], max(64, MEASURED_BYTES // row)))
        if size < network.agents:
            run = prepare(_substitute(run.spec, network, size))
        self.agents, self._dataset = run.network.agents, dataset_of(spec)
        engine = make_engine([run], workers)
        state = engine.start()
        self.message = state.models[0, 0].nbytes
        remembered = sum(tensor.nbytes for tensor in state.tensors.values()) / self.agents
        more = 1 + bool(run.run.aggregator.remembers()) + (run.spec.local_steps > 1)
        self._parts = run.partition().sizes
        self._few = self._parts.max() < 200 and run.spec.batch is None
        more += 0 if self._few else 1  # the labels' part of gradients
        self.state_bytes = remembered + more * self.message
        self.local, self.rule = (each / self.agents for each in _seconds(engine))
        self.copying = _copying_speed()

    def data_bytes(self, members: int) -> float:
        """Bytes of the dataset, and of the samples that this many members train on."""
        held = float(self._parts.mean()) * members
        kept = min(held, len(self._dataset.train)) if self._few else held
        sample = 4 * math.prod(self._dataset.sample_shape)
        files = self._dataset.train.nbytes + self._dataset.test.nbytes
        return files + sample * (kept + len(self._dataset.test)) + SAMPLE_BYTES * held


def _substitute(spec: RunSpec, network: Network, size: int) -> RunSpec:
    """The same run on a smaller random network with as many neighbours an agent."""
    share, degree = size / network.agents, round(float(np.mean(network.degrees)))
    poisoned = math.ceil(len(network.poisoned) * share)
    options = {"agents": size - size % 2, "degree": min(degree, size // 2), "poisoned": poisoned}
    fields = {"network": {"name": "random_regular", **options}, "poisoned": None, "placement": None}
    return _with_samples(spec, {**fields, "listening": ()}, share, size)


def _seconds(engine: "Engine") -> tuple[float, float]:
    """Seconds of local updates, and of the rule, in an iteration: the least of a few tries."""
    state, found = engine.start(), []
    models, out = state.models, torch.empty_like(state.models)
    for _ in range(3):
        with engine.task.workers.alone():
            before = time.perf_counter()
            messages = engine.local_steps(state, 1)
            sent = engine.send(state, messages, models, models, 1)
            between = time.perf_counter()
            engine.exchange(state, sent, 1, out)
            found.append((between - before, time.perf_counter() - between))
    local, rule = zip(*found, strict=True)
    return min(local), min(rule)


def _copying_speed() -> float:
    """Bytes a second from memory to memory."""
    size = 64 << 20
    source, target = torch.ones(size // 4), torch.empty(size // 4)
    times = []
    for _ in range(3):
        before = time.perf_counter()
        target.copy_(source)
        times.append(time.perf_counter() - before)
    return size / min(times)
