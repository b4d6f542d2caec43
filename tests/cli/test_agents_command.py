"""The commands of agents: names of any characters, and keys that last too long."""

from types import SimpleNamespace

import numpy as np
from typer.testing import CliRunner

from bezoar.cli import _agents
from bezoar.cli._main import app


def call(*arguments):
    return CliRunner().invoke(app, ["agents", *map(str, arguments)])


def test_the_name_of_an_agent_is_printed_as_it_is(tmp_path, monkeypatch):
    spec = tmp_path / "run.toml"
    spec.write_text("iterations = 4")
    history = SimpleNamespace(agents={"accuracy": np.array([[0.5]])})
    monkeypatch.setattr(_agents, "run_agent", lambda *_: history)
    call("key", "--name", "ward [red]", "--out", tmp_path)
    [key] = tmp_path.glob("*.key")
    (tmp_path / "peers").mkdir()
    result = call(
        *("start", spec, "--name", "ward [red]", "--key", key, "--peers", tmp_path / "peers"),
        *("--listen", "127.0.0.1:1", "--folder", tmp_path),
    )
    assert "ward [red]: 4 rounds, accuracy 0.5000" in result.stdout


def test_a_file_of_an_agent_that_cannot_be_read_is_told_of(tmp_path):
    (tmp_path / "status.json").mkdir()
    result = call("status", tmp_path)
    assert f"bezoar: {tmp_path}/status.json: cannot be read: " in result.stderr
    assert "no status found" in str(result.exception)
