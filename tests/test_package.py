import os
import subprocess
import sys

import pytest

import bezoar


def python(script):
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )


def test_importing_has_no_side_effects():
    result = python(
        "import sys, random, bezoar\n"
        "assert 'torch' not in sys.modules and 'numpy' not in sys.modules\n"
        "import torch, numpy\n"
        "before = torch.get_rng_state(), numpy.random.get_state()[1].tolist(), random.getstate()\n"
        "threads = torch.get_num_threads()\n"
        "from bezoar import Network, networks, aggregators, attacks, data, training, report\n"
        "assert torch.equal(before[0], torch.get_rng_state())\n"
        "assert before[1:] == (numpy.random.get_state()[1].tolist(), random.getstate())\n"
        "assert torch.get_num_threads() == threads\n"
    )
    assert result.returncode == 0, result.stderr


def test_training_leaves_global_randomness_and_threads_alone():
    result = python(
        "import torch, numpy, random\n"
        "before = torch.get_rng_state(), numpy.random.get_state()[1].tolist(), random.getstate()\n"
        "threads = torch.get_num_threads()\n"
        "import bezoar\n"
        "bezoar.run(network='fan', aggregator='rfa', attack='random_labels', iterations=1)\n"
        "assert torch.equal(before[0], torch.get_rng_state())\n"
        "assert before[1:] == (numpy.random.get_state()[1].tolist(), random.getstate())\n"
        "assert torch.get_num_threads() == threads\n"
    )
    assert result.returncode == 0, result.stderr


def test_everything_public_can_be_had():
    for name in bezoar.__all__:
        assert getattr(bezoar, name) is not None
    assert set(bezoar.__all__) <= set(dir(bezoar))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        bezoar.nothing  # noqa: B018


@pytest.mark.parametrize("arguments", [["--version"], ["-h"], ["runs", "-h"], ["runs", "gc", "-h"]])
def test_as_a_module_and_with_a_short_help(arguments):
    done = subprocess.run(
        [sys.executable, "-m", "bezoar", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == bezoar.__version__ or "Usage: python -m bezoar" in done.stdout


def test_the_shell_completes_commands():
    words = {"COMP_WORDS": "bezoar comp", "COMP_CWORD": "1", "_BEZOAR_COMPLETE": "complete_bash"}
    script = "from bezoar.cli import main; import sys; sys.argv = ['bezoar']; main()"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | words,
    )
    assert done.stdout.split() == ["compare"], done.stderr
