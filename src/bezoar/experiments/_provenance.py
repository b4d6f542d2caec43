"""Where, when and how something was computed."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from bezoar.experiments._identity import versions


def provenance(started: datetime, ended: datetime) -> dict[str, Any]:
    """When, on which machine and with which versions a run was computed."""
    return {
        "started": _utc(started),
        "ended": _utc(ended),
        "seconds": round((ended - started).total_seconds(), 3),
        "machine": machine(),
        "versions": versions() | {"python": platform.python_version()},
        "checkout": checkout(os.getcwd()),
    }


@cache
def machine() -> dict[str, Any]:
    """This machine: system, processor, cores."""
    return {"system": platform.platform(), "processor": _processor(), "cores": os.cpu_count()}


@cache
def checkout(folder: str) -> dict[str, Any] | None:
    """The git commit of the checkout that a folder is in, and whether it was changed since.

    ``None`` where there is no checkout, or no git. Asked once a process: what was loaded then is
    what computes, and asking takes a while in large checkouts.
    """
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    if commit is None:
        return None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "changed": None if changes is None else bool(changes)}


def _git(folder: str, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", folder, *arguments],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
            env=os.environ | {"GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return done.stdout.strip()


def _processor() -> str:
    """The processor's name as the system tells it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except (OSError, UnicodeDecodeError):
        pass
    return platform.processor() or platform.machine()


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")
