"""What the documentation shows is run, so that it cannot rot."""

import doctest
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
NETWORKS = (ROOT / "docs/networks.md").read_text(encoding="utf-8")


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


@pytest.mark.parametrize("code", [*blocks(README, "python"), *blocks(NETWORKS, "python")])
def test_python_examples_of_the_readme(code, capsys):
    exec(compile(code, "README.md", "exec"), {})


THEORY = sorted((ROOT / "src/bezoar/theory").glob("_[a-z]*.py"))


@pytest.mark.parametrize("module", ["", *(f".{path.stem}" for path in THEORY)])
def test_every_module_of_the_theory_opens_with_an_example_that_runs(module):
    found = import_module(f"bezoar.theory{module}")
    assert len(doctest.DocTestParser().get_examples(found.__doc__)) >= 2
    assert doctest.testmod(found).failed == 0


def commands():
    return [line for block in blocks(README, "sh") for line in block.splitlines() if line]


@pytest.mark.parametrize("command", commands())
def test_commands_of_the_readme(command):
    program, *arguments = shlex.split(command)
    assert program == "bezoar"
    script = [sys.executable, "-c", "from bezoar.cli import main; main()", *arguments]
    result = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert len(result.stdout) > 200


def test_there_are_examples():
    assert len(blocks(README, "python")) >= 2
    assert len(commands()) >= 3


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_the_documentation_links_to_exist(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_modules_and_names_on_the_page_about_the_theory_exist():
    page = (ROOT / "docs/theory.md").read_text(encoding="utf-8")
    headed = re.findall(r"^## .*\(`(.*)`\)", page, flags=re.MULTILINE)
    assert {path.name for path in THEORY} - set(headed) <= {"_overview.py", "_theorems.py"}
    theory = import_module("bezoar.theory")
    for name in headed:
        assert (ROOT / "src/bezoar/theory" / name).exists() or hasattr(theory, name), name


def test_the_example_spec():
    from bezoar.experiments import RunSpec, read_toml

    spec = RunSpec.read(read_toml(ROOT / "examples" / "run.toml"))
    assert str(spec.aggregator) == "ios:mixing=equal"


def test_the_aggregator_of_the_contributing_guide_works():
    import torch

    from bezoar import networks

    [code] = blocks(CONTRIBUTING, "python")
    names = {}
    exec(compile(code, "CONTRIBUTING.md", "exec"), names)
    network = networks.complete(4)
    messages = torch.tensor([[0.0], [1.0], [5.0], [6.0]], dtype=torch.float64)
    models = names["NearestHalf"]()(messages, network)
    assert models.flatten().tolist() == [0.5, 0.5, 5.5, 5.5]


def test_the_contributing_guide_shows_the_shortest_rule_as_it_is():
    rules = (ROOT / "src/bezoar/aggregators").glob("_*.py")
    sources = {rule.name: rule.read_text(encoding="utf-8") for rule in rules}
    sources = {name: text for name, text in sources.items() if "    label: Cl" in text}
    shortest = min(sources, key=lambda name: len(sources[name].splitlines()))
    [diff] = blocks(CONTRIBUTING, "diff")
    assert f"+++ b/src/bezoar/aggregators/{shortest}\n" in diff
    added = diff.split("+++ ")[1].split("--- ")[0].splitlines()[1:]
    assert [line.removeprefix("+") for line in added] == sources[shortest].splitlines()


def test_the_architecture_page_quotes_the_engine():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    modules = [ROOT / f"src/bezoar/training/_{name}.py" for name in ("algorithms", "engine")]
    quoted = blocks(page, "python")
    assert len(quoted) == 3
    for code, module in zip(quoted, (modules[0], *modules[1:] * 2), strict=True):
        assert code in module.read_text(encoding="utf-8")


def test_the_architecture_page_stays_a_map():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert len(page.split()) <= 1000  # two pages; details are on the pages of their topics
    for link in ("rules.md", "training.md", "variants.md", "networks.md", "machines.md"):
        assert link in page
