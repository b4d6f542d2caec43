"""What the package offers, and what it takes to import it."""

import inspect
import subprocess
import sys

import pytest
from sweep_runs import specs, sweep

from bezoar import experiments


def test_public_names_exist_and_say_what_they_are():
    for name in experiments.__all__:
        found = getattr(experiments, name)
        if inspect.isfunction(found) or inspect.isclass(found):
            assert found.__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = experiments.nothing


def needs_torch(code, *arguments):
    """Whether torch is imported by some code in a new process."""
    code += "\nimport sys\nsys.exit(10 + ('torch' in sys.modules))"
    process = subprocess.run([sys.executable, "-c", code, *arguments], check=False)
    assert process.returncode in (10, 11)
    return process.returncode == 11


@pytest.mark.parametrize(
    "code",
    [
        "import bezoar.experiments, bezoar.store",
        "from bezoar.experiments import versions\nversions()",
        "from bezoar.experiments import RunSpec\n"
        "RunSpec.recall({'aggregator': {'name': 'ios', 'estimate': 'max'}, 'attack': 'targeted'})",
        "from bezoar.experiments import read_choice\n"
        "assert read_choice('network', 'fan:agents=20').make().agents == 20\n"
        "assert read_choice('partition', 'dirichlet:alpha=2').make().alpha == 2",
    ],
)
def test_neither_the_package_nor_what_is_no_training_needs_torch(code):
    assert not needs_torch(code)


@pytest.mark.usefixtures("quick")
def test_looking_at_finished_runs_needs_no_torch(store):
    sweep(specs(), store)
    code = """
import sys
from bezoar.experiments import Store, long_table, matches, network_of_run, read_conditions, spec_of
store = Store(sys.argv[1])
runs = [run for run in store.runs() if store.is_finished(run.key)]
assert len(runs) == 3
wanted = read_conditions(["aggregator=ios:estimate=exact", "dataset=some_digits"])
[run] = [run for run in runs if matches(spec_of(run), wanted)]
assert str(spec_of(run).aggregator) == "ios"
assert network_of_run(run).agents == 10
assert len(run["accuracy"]) == 4
assert len(long_table(runs)) == 12
store.gc(dry_run=True)
"""
    assert not needs_torch(code, str(store.path))


def test_training_does():
    assert needs_torch("from bezoar.experiments import train")
