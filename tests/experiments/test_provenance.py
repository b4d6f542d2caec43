import json
import os
import platform
import subprocess
from datetime import datetime, timedelta, timezone

import pytest
from store_runs import START

from bezoar import __version__
from bezoar.experiments import _provenance, provenance


@pytest.fixture(autouse=True)
def asked_anew():
    yield
    _provenance.checkout.cache_clear()


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A checkout with one commit, and the working folder in it."""
    who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org"}
    who |= {key.replace("AUTHOR", "COMMITTER"): value for key, value in who.items()}
    (tmp_path / "notes.txt").write_text("one\n")
    for command in ("init -q", "add notes.txt", "commit -q -m one --no-gpg-sign"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, env=os.environ | who, check=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_told():
    east = START.astimezone(timezone(timedelta(hours=8)))
    found = provenance(east, east + timedelta(seconds=90.5))
    assert json.loads(json.dumps(found)) == found
    assert found["started"] == "2026-01-02T03:04:05.000+00:00"
    assert datetime.fromisoformat(found["ended"]) - START == timedelta(seconds=90.5)
    assert found["seconds"] == 90.5
    assert found["versions"]["bezoar"] == __version__
    assert found["versions"]["python"] == platform.python_version()
    assert set(found["versions"]) == {"bezoar", "source", "python", "numpy", "torch"}
    assert found["machine"]["cores"] >= 1
    assert found["machine"]["processor"]


def test_the_commit_and_whether_something_changed_since(project):
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=project, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert provenance(START, START)["checkout"] == {"commit": head, "changed": False}
    _provenance.checkout.cache_clear()
    (project / "notes.txt").write_text("two\n")
    assert provenance(START, START)["checkout"] == {"commit": head, "changed": True}


def test_no_checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert provenance(START, START)["checkout"] is None


def test_no_git(project, monkeypatch):
    monkeypatch.setenv("PATH", str(project))
    assert provenance(START, START)["checkout"] is None
