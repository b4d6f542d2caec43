import tomllib
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from test_grid import documents, written

from bezoar._options import default_options
from bezoar._parts import parts_of
from bezoar.experiments import CHOICES, RunSpec, option_text
from bezoar.experiments._schema import sweep_schema

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def validator():
    schema = sweep_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def test_every_field_and_every_choice_is_described():
    schema = sweep_schema()
    for properties in (schema["properties"], schema["definitions"]["group"]["properties"]):
        assert set(properties) - {"group"} == set(RunSpec.model_fields)
        assert all(len(field["description"]) > 10 for field in properties.values())
    for field in CHOICES:
        forms = schema["definitions"][field]["anyOf"]
        assert forms[0]["enum"] == list(parts_of(field))
        assert {form["title"] for form in forms if "title" in form} == set(parts_of(field))
        assert all(form["description"] for form in forms)


def test_every_example_can_be_read():
    for field in CHOICES:
        _, text, *_ = sweep_schema()["definitions"][field]["anyOf"]
        defaults = [default_options(make).values() for make in parts_of(field).values()]
        has_options = any(isinstance(d, bool | int | float | str) for ds in defaults for d in ds)
        assert bool(text["examples"]) == has_options
        for example in text["examples"]:
            name, _, rest = example.partition(":")
            option, _, value = rest.partition("=")
            choice = getattr(RunSpec.read({field: example}), field)
            assert choice.name == name
            assert option_text(choice.options[option]) == value
            assert str(choice) == name  # the examples are the defaults


@given(documents(), documents())
def test_what_can_be_expanded_fits(validator, common, block):
    validator.validate(written(common))
    validator.validate({**written(common), "group": [written(block), {}]})


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_the_examples_fit(validator, path):
    validator.validate(tomllib.loads(path.read_text()))


@pytest.mark.parametrize(
    "document",
    [
        {"network": "fan"},
        {"network": {"name": "erdos_renyi", "probability": [0.1, 0.5]}},
        {"network": {"name": ["fan", "ring"], "agents": [10, 20]}},
        {"network": {"name": "from_file", "path": "office.graphml"}},
        {"network": [{"over_time": ["fan", {"name": "line"}]}, {"edges": [["a", "b"]]}]},
        {"schedule": {"name": "milestones", "milestones": [[3, 5], [4]]}, "rounds": [1, 2]},
        {"aggregator": ["ios:keep_own=true", {"name": "ios", "estimate": ["max", 2]}]},
        {"aggregator": "rules.py:Own"},
        {"dataset": "samples.npz"},
        {"poisoned": [3, 4]},
        {"poisoned": [[], [3, 4], 2]},
        {"metrics": ["accuracy"]},
    ],
)
def test_documents_that_fit(validator, document):
    validator.validate(document)


@pytest.mark.parametrize(
    "document",
    [
        {"networks": "fan"},
        {"network": "fann"},
        {"network": {"agents": 10}},
        {"network": {"name": "fan", "agnts": 10}},
        {"network": {"name": "from_file"}},
        {"aggregator": ["ios", "iso"]},
        {"partition": {"name": "dirichlet", "alpha": "much"}},
        {"seed": -1},
        {"seed": []},
        {"seed": [0, "one"]},
        {"iterations": 1.5},
        {"dtype": "float16"},
        {"metrics": ["acuracy"]},
        {"metrics": "accuracy"},
        {"format": 2},
        {"group": {"seed": 1}},
        {"group": [{"sede": 1}]},
        {"group": [{"group": []}]},
    ],
)
def test_documents_that_do_not(validator, document):
    assert not validator.is_valid(document)
