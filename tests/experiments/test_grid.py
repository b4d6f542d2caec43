from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezoar import BezoarError
from bezoar.experiments import Choice, RunSpec, expand, read_sweep
from bezoar.experiments._grid import as_specs

#: Values that each field may have, all different.
VALUES = {
    "network": ["fan", "line:agents=5", {"name": "ring", "agents": 6}],
    "aggregator": ["ios", "faba", {"name": "centered_clipping", "threshold": 0.1, "steps": 2}],
    "partition": ["iid", "dirichlet:alpha=0.5", "by_class"],
    "seed": [0, 1, 2],
    "iterations": [5, 50, 500],
    "weight_decay": [0.0, 0.25],
    "dtype": ["float32", "float64"],
    "poisoned": [0, 1, [], [2], [1, 2]],
    "metrics": [["accuracy"], ["accuracy", "test_loss"], []],
}


@st.composite
def documents(draw, least=1, most=3):
    """A document with some fields in some order, and for each field its values."""
    fields = draw(st.lists(st.sampled_from(sorted(VALUES)), unique=True, max_size=4))
    axes = {}
    for field in fields:
        places = st.integers(0, len(VALUES[field]) - 1)
        chosen = draw(st.lists(places, unique=True, min_size=least, max_size=most))
        axes[field] = [VALUES[field][place] for place in chosen]
    return axes


def written(axes):
    """The document: one value is written plainly now and then, several as a list."""
    document = {}
    for field, values in axes.items():
        is_list_inside = any(isinstance(value, list) for value in values)
        if field in ("poisoned", "metrics") and not is_list_inside:
            values = [*values, []]  # numbers alone would be the poisoned agents
        document[field] = values
    return document


@given(documents())
def test_every_combination_in_the_order_of_the_fields_the_last_fastest(axes):
    document = written(axes)
    expected = [
        RunSpec.read(dict(zip(document, values, strict=True)))
        for values in product(*document.values())
    ]
    found = expand(document)
    assert found == expected
    count = 1
    for values in document.values():
        count *= len(values)
    assert len(found) == len(set(found)) == count


@given(documents(most=1))
def test_a_document_without_lists_is_one_run(axes):
    document = {field: value for field, [value] in axes.items()}
    assert expand(document) == [RunSpec.read(document)]


@given(documents(), st.lists(documents(), min_size=1, max_size=3))
def test_blocks_are_put_in_one_after_the_other(common, blocks):
    common, blocks = written(common), [written(block) for block in blocks]
    found = expand({**common, "group": blocks})
    apart = [spec for block in blocks for spec in expand({**common, **block})]
    assert found == list(dict.fromkeys(apart))
    assert len(set(found)) == len(found)


@given(documents(least=2))
def test_what_comes_up_twice_is_kept_once(axes):
    document = written(axes)
    twice = {field: [*values, values[0]] for field, values in document.items()}
    assert expand(twice) == expand(document)


def test_equal_values_written_differently_are_one_run():
    specs = expand(
        {
            "partition": [
                "dirichlet:alpha=1",
                {"name": "dirichlet", "alpha": 1.0},
                Choice("partition", "dirichlet", {"alpha": 1.0}),
            ],
            "poisoned": [[2, 1], [1, 2], [1, 1, 2]],
        }
    )
    assert len(specs) == 1


def test_options_in_a_table_are_swept_within_their_choice():
    specs = expand(
        {
            "aggregator": ["mean", {"name": ["ios", "faba"], "estimate": [1, 2]}],
            "seed": [0, 1],
        }
    )
    assert [(str(spec.aggregator), spec.seed) for spec in specs] == [
        (rule, seed)
        for rule in (
            "mean",
            "ios:estimate=1",
            "ios:estimate=2",
            "faba:estimate=1",
            "faba:estimate=2",
        )
        for seed in (0, 1)
    ]


def test_lists_by_nature_are_swept_when_they_hold_a_list():
    def poisoned(value):
        return [spec.poisoned for spec in expand({"poisoned": value})]

    assert poisoned([]) == [()]
    assert poisoned([3, 4]) == [(3, 4)]
    assert poisoned([[], [3, 4], 2]) == [(), (3, 4), 2]
    assert poisoned([None, []]) == [None, ()]
    assert [s.metrics for s in expand({"metrics": ["accuracy", "test_loss"]})] == [
        ("accuracy", "test_loss")
    ]
    named = expand({"network": {"name": "fan", "poisoned": [3, 4]}})
    assert [spec.network.options["poisoned"] for spec in named] == [[3, 4]]


def test_python_may_give_ranges_and_tuples():
    assert [spec.seed for spec in expand({"seed": range(3)})] == [0, 1, 2]
    assert [spec.seed for spec in expand({"seed": (2, 1)})] == [2, 1]


def test_a_block_replaces_a_field_and_its_values():
    specs = expand({"seed": [0, 1], "group": [{"seed": 7}, {"dtype": "float64"}]})
    assert [(spec.seed, spec.dtype) for spec in specs] == [
        (7, "float32"),
        (0, "float64"),
        (1, "float64"),
    ]


def test_a_sweep_from_a_file(tmp_path):
    path = tmp_path / "sweep.toml"
    path.write_text(
        """
        network = ["two_castle", "fan"]
        seed = [0, 1]

        [[group]]
        aggregator = ["ios", { name = "clipped_gossip", threshold = [0.1, 0.2] }]

        [[group]]  # the baseline
        poisoned = []
        """
    )
    specs = read_sweep(path)
    assert len(specs) == 2 * 2 * 3 + 2 * 2
    assert [str(spec.aggregator) for spec in specs[:3]] == [
        "ios",
        "clipped_gossip:threshold=0.1",
        "clipped_gossip:threshold=0.2",
    ]
    assert {spec.poisoned for spec in specs[-4:]} == {()}
    path.write_text('[[group]]\nseed = 1\n[[group]]\naggregator = ["ios", "iso"]\n')
    with pytest.raises(BezoarError, match=r"sweep.toml: group 2: aggregator: 'iso' is not known"):
        read_sweep(path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"seeds": [1, 2]}, "^no field 'seeds'; allowed: seed, "),
        ({"groups": [{}]}, "^no field 'groups'; allowed: group, "),
        ({"seed": []}, "^seed: expected at least one value, found an empty list$"),
        ({"seed": [[1, 2]]}, r"^seed: expected an integer, found \[1, 2\]"),
        ({"seed": [0, -1]}, "^seed: expected a number of at least 0, found -1$"),
        ({"aggregator": ["ios", "iso"]}, "^aggregator: 'iso' is not known; allowed: ios, "),
        (
            {"aggregator": {"name": "ios", "mixng": [1, 2]}},
            "^aggregator ios: no option 'mixng'; allowed: mixing, ",
        ),
        (
            {"partition": {"name": "dirichlet", "alpha": [1, -1]}},
            "^partition dirichlet: alpha: expected a number of more than 0.*, found -1$",
        ),
        (
            {"partition": {"name": "dirichlet", "alpha": []}},
            "^partition: alpha: expected at least one value",
        ),
        ({"group": []}, r"^group: expected blocks of fields, as in \[\[group\]\]; found \[\]$"),
        ({"group": {"seed": 1}}, "^group: expected blocks of fields"),
        ({"group": [1]}, "^group: expected blocks of fields"),
        ({"group": [{"seed": 1}, {"sede": 2}]}, "^group 2: no field 'sede'; allowed: seed, "),
        ({"group": [{"group": [{}]}]}, "^group 1: no field 'group'; allowed: (?!.*group)"),
        ({1: 2}, "^no field 1; allowed: "),
        (
            {"seed": range(1000), "iterations": range(1000)},
            "^sweep: 1,000,000 combinations found; allowed: at most 100,000$",
        ),
    ],
)
def test_refusals_name_the_block_the_field_and_what_is_allowed(fields, message):
    with pytest.raises(BezoarError, match=message):
        expand(fields)


def test_a_sweep_takes_specs_fields_or_a_file(tmp_path):
    fields = {"network": ["fan", "line"]}
    specs = expand(fields)
    path = tmp_path / "sweep.toml"
    path.write_text('network = ["fan", "line"]')
    for same in (specs, tuple(specs), iter(specs), fields, path, str(path)):
        assert as_specs(same) == specs
    assert as_specs(specs[0]) == specs[:1]
    for other in (7, None, ["fan"], [fields]):
        with pytest.raises(BezoarError, match=r"specs: expected a list of RunSpec, .* found"):
            as_specs(other)


def test_a_document_has_fields_by_name():
    with pytest.raises(BezoarError, match="fields: expected the fields of a sweep by name, found"):
        expand("sweep.toml")
