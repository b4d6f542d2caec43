"""What is planned for several machines follows from the network and from this machine."""

import pytest

from bezoar import BezoarError
from bezoar.experiments import RunSpec, _machines, network_of, plan_machines
from bezoar.networks import shard_of, shard_owners


def spec(network, **fields):
    common = {"aggregator": "mean", "partition": "drawn:samples=2", "poisoned": 0}
    return RunSpec.read({"network": network, **common, **fields})


@pytest.fixture
def small_sizes(monkeypatch):
    monkeypatch.setattr(_machines, "SIZES", (100, 400))


@pytest.mark.parametrize(
    ("network", "machines"), [("torus:rows=8,columns=8", 2), ("ring:agents=5", 4), ("fan", 10)]
)
def test_a_small_network_is_cut_as_it_is(network, machines):
    wanted = spec(network)
    plan, network = plan_machines(wanted, machines, workers=1), network_of(wanted)
    owners = shard_owners(network, machines)
    shards = [shard_of(network, owners, number) for number in range(machines)]
    assert plan.members == max(len(shard.members) for shard in shards)
    assert plan.halo == max(len(shard.halo) for shard in shards)
    assert plan.sent == plan.message * max(sum(map(len, shard.sent)) for shard in shards)
    assert plan.seconds > 0
    assert plan.workers == 1


@pytest.mark.parametrize(
    ("network", "growth"),
    [
        ("ring:agents={}", 1),
        ("torus:rows={0},columns={0}", 10),
        ("random_regular:agents={},degree=6", 100),
    ],
)
def test_halos_grow_with_the_network_as_its_links_are_near_or_far(small_sizes, network, growth):
    """A hundred times as many agents, none of them made."""
    sizes = (1_000, 10_000) if "rows" in network else (1_000_000, 100_000_000)
    few, many = (plan_machines(spec(network.format(size)), 4, workers=1) for size in sizes)
    assert many.agents == 100 * few.agents
    assert many.members == pytest.approx(100 * few.members, rel=0.01)
    assert many.halo == pytest.approx(growth * few.halo, rel=0.5)
    assert many.memory > few.memory
    assert many.cut <= 400


def test_more_machines_take_less_each(small_sizes):
    one, two = (plan_machines(spec("ring:agents=100000"), n, workers=1) for n in (1, 2))
    assert (one.halo, one.sent) == (0, 0)
    assert two.members == one.members / 2
    assert two.memory < one.memory


def test_a_slower_network_takes_longer():
    wanted = spec("ring:agents=20")
    fast, slow = (plan_machines(wanted, 2, bits, workers=1) for bits in (1e12, 1e3))
    assert slow.moving > 1_000 * fast.moving


def test_what_cannot_be_is_refused(small_sizes):
    with pytest.raises(BezoarError, match="bandwidth: expected a number above 0"):
        plan_machines(spec("ring"), 2, 0)
    with pytest.raises(BezoarError, match="iterations: expected an integer of at least 1, found 0"):
        plan_machines(spec("ring", iterations=0), 2)
    with pytest.raises(BezoarError, match="machines: expected an integer from 1 to 10, found 11"):
        plan_machines(spec("ring:agents=10"), 11)
    with pytest.raises(BezoarError, match="start: expected one that needs no training before"):
        plan_machines(spec("ring", model="mlp:width=4", start="pretrained"), 2)
    with pytest.raises(BezoarError, match="60000 samples are too few"):
        plan_machines(spec("ring:agents=1000000", partition="iid"), 2)
