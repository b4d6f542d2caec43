"""Documents that make the runs of a report again."""

import tomllib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezoar.experiments import RunSpec, expand
from bezoar.report._page import thinned
from bezoar.report._specs import sweep_document

AGGREGATORS = (
    "weighted_mean",
    "ios",
    "ios:estimate=2",
    "clipped_gossip:threshold=0.1",
    "clipped_gossip:threshold=1e-05",
)
PATHS = ("office.edges", 'a "quoted"\\\n\x7f name.json', "</script>.edges")
NETWORKS = (
    "two_castle",
    "fan",
    {"name": "fan", "agents": 20, "poisoned": [18, 19]},
    *({"name": "from_file", "path": path} for path in PATHS),
    {
        "over_time": [
            "fan",
            {"name": "fan", "poisoned": [3, 4]},
            {"name": "from_edges", "edges": [[0, 1]]},
        ]
    },
)

specs = st.fixed_dictionaries(
    {
        "network": st.sampled_from(NETWORKS),
        "aggregator": st.sampled_from(AGGREGATORS),
        "seed": st.integers(0, 2),
        "poisoned": st.sampled_from([None, 0, 2, (), (3,), (1, 2)]),
        "metrics": st.sampled_from([None, ("accuracy",), ("accuracy", "consensus_error")]),
        "keep_models": st.booleans(),
        "weight_decay": st.sampled_from([0.0, 0.5, 1e-7]),
        "model": st.sampled_from(["softmax", "mlp", "mlp:width=8"]),
        "start": st.sampled_from(["zero", "random"]),
        "batch": st.sampled_from([None, 8]),
    }
).map(RunSpec.read)


@given(st.lists(specs, min_size=1, max_size=12))
def test_any_runs_come_back(wanted):
    assert set(expand(tomllib.loads(sweep_document(wanted)))) == set(wanted)


@given(
    st.sets(st.sampled_from(AGGREGATORS), min_size=1),
    st.sets(st.integers(0, 9), min_size=1),
    st.sets(st.sampled_from(["iid", "by_class", "dirichlet:alpha=0.5"]), min_size=1),
)
def test_a_product_needs_no_groups(aggregators, seeds, partitions):
    wanted = expand(
        {
            "aggregator": list(aggregators),
            "seed": list(seeds),
            "partition": list(partitions),
            "network": "fan",
        }
    )
    text = sweep_document(reversed(wanted))
    assert "group" not in text
    assert set(expand(tomllib.loads(text))) == set(wanted)


def test_it_reads_as_people_write():
    wanted = expand({"network": ["fan", "line"], "aggregator": "ios:estimate=2", "seed": [1, 0]})
    assert sweep_document(wanted) == (
        'network = ["line", "fan"]\naggregator = { name = "ios", estimate = 2 }\nseed = [0, 1]\n'
    )
    assert tomllib.loads(sweep_document([RunSpec()])) == {}


@given(st.integers(1, 5000), st.integers(2, 300))
def test_thinned_curves_keep_their_ends_and_are_even(count, most):
    kept = thinned(count, most).tolist()
    assert kept[0] == 0
    assert kept[-1] == count - 1
    assert len(kept) == min(count, most)
    gaps = {after - before for before, after in pairwise(kept)}
    assert max(gaps, default=1) - min(gaps, default=1) <= 1


@pytest.mark.parametrize("count", [1, 2, 299, 300])
def test_short_curves_are_kept_whole(count):
    assert thinned(count, 300).tolist() == list(range(count))
