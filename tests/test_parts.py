"""A user's own parts: what cannot be loaded or named is refused in one sentence."""

from importlib import metadata

import pytest

import bezoar
from bezoar import BezoarError, _parts, aggregators


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("def (", "SyntaxError"),
        ("raise RuntimeError('not today')", "RuntimeError: not today"),
        ("import a_module_that_is_not_there", "ModuleNotFoundError"),
    ],
)
def test_a_module_that_cannot_be_imported(tmp_path, monkeypatch, source, error):
    (tmp_path / "broken_rules.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    message = f"aggregator: the module 'broken_rules' cannot be imported: {error}"
    with pytest.raises(BezoarError, match=message):
        _parts.maker("aggregator", "broken_rules:Rule")


@pytest.mark.parametrize("name", [":Rule", ".rules:Rule", "..:Rule", "no such:Rule"])
def test_what_is_no_name_of_a_module(name):
    with pytest.raises(BezoarError, match=r"aggregator: the module '.*' cannot be imported"):
        _parts.maker("aggregator", name)


@pytest.mark.parametrize("name", [["ios"], {"name": "ios"}, None, 3])
def test_names_are_texts(name):
    with pytest.raises(BezoarError, match=r"aggregator: .* is not known; allowed: "):
        _parts.maker("aggregator", name)


def test_a_file_whose_running_was_interrupted_is_run_again(tmp_path):
    flag = tmp_path / "flag"
    path = tmp_path / "rule.py"
    path.write_text(
        f"import pathlib\nif not pathlib.Path({str(flag)!r}).exists():\n"
        "    raise KeyboardInterrupt\ndef rule():\n    return None\n"
    )
    with pytest.raises(KeyboardInterrupt):
        _parts.maker("network", f"{path}:rule")
    flag.touch()
    assert _parts.maker("network", f"{path}:rule")() is None


def test_an_entry_point_that_cannot_be_loaded_is_named(monkeypatch):
    point = metadata.EntryPoint("theirs", "no_such_package:Rule", "bezoar.aggregator")
    monkeypatch.setattr(_parts, "_entry_points", lambda kind: (point,))
    message = "aggregator theirs: the entry point 'no_such_package:Rule' cannot be loaded: "
    with pytest.raises(BezoarError, match=message):
        _parts.parts_of("aggregator")


@pytest.mark.parametrize("name", ["mine:too", "mine+krum"])
def test_names_by_which_a_part_could_not_be_chosen_are_refused(name):
    before = dict(aggregators.AGGREGATORS)
    with pytest.raises(BezoarError, match="name: expected a text without a colon or a plus, found"):
        bezoar.register(aggregators.IOS, name=name)
    assert before == aggregators.AGGREGATORS


def test_only_what_makes_parts_can_be_registered():
    with pytest.raises(BezoarError, match="make: expected a class or a function, found 5"):
        bezoar.register(5, "aggregator", "five")
