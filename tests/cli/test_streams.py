"""Output streams that cannot show every character, or take nothing more; commands that stop."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bezoar._files import write_whole
from bezoar.cli import _run, _show, main
from bezoar.cli._main import app
from bezoar.cli._streams import encodable

#: Several commands in one process, each as a user starts it.
COMMANDS = """
import sys
from bezoar.cli import main
for command in sys.argv[1:]:
    sys.argv = ["bezoar", *command.split()]
    try:
        main()
    except SystemExit as stopped:
        assert stopped.code == 0, (command, stopped.code)
"""


def test_every_command_writes_to_a_stream_that_is_not_utf_8(tmp_path):
    spec = tmp_path / "höhle.toml"
    spec.write_text('iterations = 1\nbatch = 1\nmetrics = ["accuracy"]')
    store = tmp_path / "störe"
    commands = [
        "theory --network fan",
        "list",
        "show --network fan",
        f"sweep {spec} --store {store}",
        f"runs {store}",
        f"report {store}",
        "doctor",
        "--help",
        "run --help",
    ]
    result = subprocess.run(
        [sys.executable, "-c", COMMANDS, *commands],
        env=os.environ | {"PYTHONIOENCODING": "ascii", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.isascii()
    assert result.stderr.isascii()
    for text in ("delta_max = 0.3333", "delta^2xi^2", "O(delta/(1-3delta))", "# 9", "store"):
        assert text in result.stdout
    lines = result.stdout.splitlines()
    [start] = [place for place, line in enumerate(lines) if "at most" in line]
    end = lines[start].index("at most") + len("at most")
    for row, name in zip(lines[start + 2 :], ("delta_max", "lambda uniform"), strict=False):
        assert row.strip("| ").startswith(name)
        assert row[:end].endswith("exact")  # columns are aligned after the change, too


def test_what_stands_for_a_character_that_an_encoding_does_not_have():
    assert encodable("δ_max ≥ 2 · Θ(ξ²) – ∞ … ö 漢 \udcff", "ascii") == (
        "delta_max >= 2 . Theta(xi^2) - inf ... o ? ?"
    )
    assert encodable("naïve ξ", "latin-1") == "naïve xi"
    assert encodable("ϕ ϑ ϖ ϵ µ Ϛ ἀ", "ascii") == "phi theta pi epsilon mu ? alpha"
    assert encodable("δ ≥ 2", "utf-8") == "δ ≥ 2"


# Reason: only Linux has a device whose every write fails as on a full disk. CI runs there.
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full here")
def test_a_full_disk_behind_the_output_is_told_in_a_sentence():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-c", COMMANDS, "--help"]
        result = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    told = "bezoar: the output cannot be written: No space left on device\n"
    assert told in result.stderr
    assert "Exception ignored" not in result.stderr


def interrupt(*_arguments, **_options):
    raise KeyboardInterrupt


def test_an_interrupted_run_says_what_was_kept_and_how_to_go_on(monkeypatch):
    monkeypatch.setattr(_run, "run_all", interrupt)
    result = CliRunner().invoke(app, ["run", "--iterations", "1"])
    assert result.exit_code == 130
    assert result.stderr == (
        "bezoar: interrupted; nothing was kept; with --store DIR a run is kept, and the same "
        "command goes on from its last checkpoint\n"
    )


def test_any_interrupted_command_says_so(monkeypatch):
    monkeypatch.setattr(_show, "show", interrupt)
    result = CliRunner().invoke(app, ["show"])
    assert (result.exit_code, result.stderr) == (130, "bezoar: interrupted\n")


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: …")]
)
def test_too_little_memory_is_told_in_a_sentence(monkeypatch, capsys, error):
    def fail(*_arguments, **_options):
        raise error

    monkeypatch.setattr(_show, "show", fail)
    monkeypatch.setattr(sys, "argv", ["bezoar", "show"])
    with pytest.raises(SystemExit, match="1"):
        main()
    assert "bezoar: this takes more memory than there is; take a smaller batch" in (
        capsys.readouterr().err
    )


# Reason: root may write into any folder but those of /proc, which only Linux has. CI runs there.
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no folder that takes no files here")
def test_a_file_that_cannot_be_written_is_called_by_its_own_name():
    with pytest.raises(OSError, match="No such file") as failed:
        write_whole(Path("/proc/mine.html"), b"")
    assert failed.value.filename == "/proc/mine.html"
