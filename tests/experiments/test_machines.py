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


def test_a_small_network_is_cut_as_it_is():
    wanted = spec("torus:rows=8,columns=8")
    plan, network = plan_machines(wanted, 2, workers=1), network_of(wanted)
    shards = [shard_of(network, shard_owners(network, 2), number) for number in range(2)]
    assert plan.members == max(len(shard.members) for shard in shards)
    assert plan.halo == max(len(shard.halo) for shard in shards)
    assert plan.sent == plan.message * max(
        len(shard.sent[0]) + len(shard.sent[1]) for shard in shards
    )
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
    with pytest.raises(BezoarError, match="60000 samples are too few"):
        plan_machines(spec("ring:agents=1000000", partition="iid"), 2)
