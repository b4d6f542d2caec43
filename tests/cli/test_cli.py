import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from bezoar import BezoarError, aggregators
from bezoar.cli._main import app

QUICK = ["--network", "fan", "--partition", "by_class", "--iterations", "2", "--every", "1"]


def bezoar(*arguments):
    """The command in a process of its own, as a user starts it."""
    command = [sys.executable, "-c", "from bezoar.cli import main; main()", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def inside(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_json_is_the_same_twice_and_with_any_number_of_workers():
    texts = [
        bezoar("run", *QUICK, "--aggregator", "ios", "--json", "--workers", workers).stdout
        for workers in (1, 2)
    ]
    documents = [json.loads(text) for text in texts]
    for document in documents:
        assert document.pop("seconds") > 0
    assert documents[0] == documents[1]
    [run] = documents[0]["runs"]
    assert run["iterations"] == [0, 1, 2]
    assert run["spec"]["network"] == {"name": "fan", "agents": 10, "poisoned": 1}
    assert run["metrics"]["poison_share"][0] is None  # not a number before the first exchange
    first, second = (text.partition('"seconds"')[0] for text in texts)
    assert first == second


def test_run_shows_a_table_and_saves_a_picture(tmp_path):
    picture = tmp_path / "new" / "run.png"
    result = inside(
        "run",
        *QUICK,
        "--aggregator",
        "ios",
        "--aggregator",
        "mean",
        "--baseline",
        "--plot",
        picture,
    )
    assert result.exit_code == 0, result.output
    for word in ("ios", "mean", "baseline", "After 2 iterations", "poisoned: 9"):
        assert word in result.output
    [head] = [line.split() for line in result.output.splitlines() if line[:9].strip() == "rule"]
    assert head[:4] == ["rule", "agents", "worst", "average"]  # what nobody holds comes last
    assert picture.read_bytes()[:4] == b"\x89PNG"


def test_run_reads_a_spec_and_options_replace_its_fields(tmp_path):
    spec = tmp_path / "spec.toml"
    spec.write_text('network = "line"\naggregator = "median"\niterations = 1\nseed = 3\n')
    result = inside("run", spec, "--seed", "5", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["runs"][0]["spec"]
    assert found["network"] == {"name": "line", "agents": 10, "poisoned": 1}
    assert (found["aggregator"], found["seed"]) == ("median", 5)


def test_single_agents_and_who_listened_to_whom(tmp_path):
    spec = tmp_path / "spec.toml"
    spec.write_text(
        'network = "fan"\naggregator = "ios"\nsamples = 200\niterations = 2\nevery = 2\n'
        "agent_metrics = true\nlistening = [2]\n"
    )
    shown = inside("run", spec)
    assert "Every agent with ios, and whom they listened to in iteration 2" in shown.output
    [run] = json.loads(inside("run", spec, "--json").stdout)["runs"]
    assert len(run["agents"]["accuracy"][-1]) == 10
    heard = {}
    for agent, _, weight in run["listening"]["2"]:
        heard[agent] = heard.get(agent, 0) + weight
    assert list(heard.values()) == pytest.approx([1] * 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--network", "fann"], "network: 'fann' is not known; allowed: fan, "),
        (["--aggregator", "iso"], "aggregator: 'iso' is not known; allowed: ios, "),
        (["--partition", "bycls"], "partition: 'bycls' is not known; allowed: by_class, "),
        (["--attack", "flip"], "attack: 'flip' is not known; allowed: "),
        (["--schedule", "const"], "schedule: 'const' is not known; allowed: constant, "),
        (["--network", "fan:agnts=3"], "network fan: no option 'agnts'; allowed: agents"),
        (["--network", "from_file"], "the option 'path' must be given"),
        (["--network", "two_castle:agents=7"], "agents: two castles need an even number"),
        (["--poisoned", "many"], "poisoned: agent many is not in the network; allowed: 0 … 9"),
        (["--poisoned", "12,"], "poisoned: agent 12 is not in the network; allowed: 0 … 9"),
        (["--dtype", "float16"], "dtype: expected 'float32' or 'float64', found 'float16'"),
        (["--aggregator", "trimmed_mean:estimate=2", "--network", "line"], "agent 0 of the line"),
        (["--plot", "/proc/none/picture.png"], "plot: cannot make the folder /proc/none"),
        (["--plot", "picture.jpeg2"], "plot: expected a name that ends in .png, .pdf, .svg"),
    ],
)
def test_a_wrong_value_gets_one_line_that_says_what_is_allowed(arguments, message):
    result = inside("run", "--iterations", "1", *arguments)
    assert isinstance(result.exception, BezoarError)
    assert message in str(result.exception)
    assert result.output == ""


def test_a_mistake_ends_in_one_line_and_not_in_a_traceback():
    result = bezoar("run", "--network", "fann")
    assert result.returncode == 2
    assert result.stderr.startswith("bezoar: network: 'fann' is not known; allowed: fan, ")
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_everything_has_a_page_that_explains_its_options():
    everything = json.loads(inside("list", "--json").stdout)
    composed = ["nnm+krum", "arc+mean", "bucketing+trimmed_mean"]
    for kind, entries in everything.items():
        for name in [*(entry["name"] for entry in entries), *(composed * (kind == "aggregators"))]:
            page = json.loads(inside("list", kind, name, "--json").stdout)
            assert page["name"] == name
            assert all(page.get("text", [page["summary"]])), name
            if kind in ("aggregators", "attacks", "optimizers", "schedules"):
                assert all(page["meaning"].values()), (kind, page["meaning"])
    shown = " ".join(inside("list", "aggregators", "nnm+krum").stdout.split())
    assert "mean of the N̄_w − Q_w inputs nearest to it" in shown
    assert "how many of its inputs are poisoned" in shown
    shown = " ".join(inside("list", "attacks", "targeted").stdout.split())
    assert (
        "Poisoned agents know their own samples, models and messages. They poison labels." in shown
    )
    shown = " ".join(inside("list", "attacks").stdout.split())
    assert "knows everything: the samples, models and messages of all agents" in shown


def test_the_table_of_threats_is_what_the_rules_declare():
    told = json.loads(inside("list", "aggregators", "--threats", "--json").stdout)
    assert set(told["aggregators"]) == set(aggregators.AGGREGATORS)
    for name, said in told["aggregators"].items():
        rule = aggregators.AGGREGATORS[name]
        assert [threat for threat in told["threats"] if said[threat]] == list(rule.withstands)
        assert said["breakdown"] == rule.breakdown
    assert told["aggregators"]["ios"]["contraction"] == "O(δ/(1−3δ))"
    shown = inside("list", "--threats").stdout
    assert re.search(r"bulyan +yes +below 1/4 +yes +yes +unknown", shown)
    shown = " ".join(inside("list", "aggregators", "trimmed_mean").stdout.split())
    assert "send any numbers: below 1/2 of the inputs. " in shown
    assert "Majority-dominant: yes. Order of ρ in δ_max: O(δ/(1−2δ))." in shown
    assert "not said" in inside("list", "aggregators", "nnm+krum", "--threats").stdout
    assert "threats: only aggregators declare them, found 'attacks'" in str(
        inside("list", "attacks", "--threats").exception
    )


def test_list_knows_everything():
    everything = json.loads(inside("list", "--json").stdout)
    assert set(everything) == {
        "aggregators", "networks", "partitions", "attacks", "optimizers", "schedules", "datasets",
        "models", "starts", "metrics", "before", "algorithms",
    }  # fmt: skip
    assert [entry["name"] for entry in everything["aggregators"]][:2] == [
        "weighted_mean",
        "trimmed_mean",
    ]
    assert all(entry["summary"] for entries in everything.values() for entry in entries)
    assert "estimate=exact" in inside("list", "aggregators").stdout
    message = "kind: 'aggregator' is not known; allowed: aggregators, "
    assert message in str(inside("list", "aggregator").exception)


def test_doctor_measures_this_machine():
    report = json.loads(inside("doctor", "--json").stdout)
    assert float(report["matrix products"].split()[0]) > 0.1
    assert report["mnist"].startswith("60,000 and 10,000 images, checked")
    assert report["cores"] >= 1


def test_show_draws_the_network_and_the_partition(tmp_path):
    result = inside(
        "show", "--network", "line", "--partition", "by_class", "--plot", tmp_path / "n.png"
    )
    assert result.exit_code == 0, result.output
    assert "not connected" in result.output
    assert "5923" in result.output  # the zeros, all at agent 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["n-partition.png", "n.png"]
    found = json.loads(inside("show", "--network", "ring", "--poisoned", "2,7", "--json").stdout)
    assert found["poisoned"] == [2, 7]
    assert sum(map(sum, found["samples"])) == 60_000


@pytest.mark.parametrize("group", [(), ("runs",), ("agents",)])
def test_summaries_of_commands_fit_on_their_lines(group):
    commands = inside(*group, "--help").stdout.partition("Commands:")[2]
    assert commands
    assert "..." not in commands


def test_help_imports_nothing_heavy():
    script = (
        "import sys, bezoar.cli._main as m\n"
        "from typer.testing import CliRunner\n"
        "assert CliRunner().invoke(m.app, ['--help']).exit_code == 0\n"
        "names = {'torch', 'numpy', 'networkx', 'scipy', 'matplotlib', 'pydantic'}\n"
        "heavy = names & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_the_version():
    from bezoar import __version__

    assert inside("--version").stdout.strip() == __version__
