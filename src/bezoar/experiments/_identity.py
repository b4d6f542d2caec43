"""What a run is known by: the hash of its spec and of everything else its numbers depend on."""

import hashlib
import json
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from bezoar import __version__
from bezoar._errors import BezoarError
from bezoar.experiments._spec import FORMAT, RunSpec

#: Hex digits of a key.
DIGITS = 32


def run_key(spec: RunSpec) -> str:
    """The name of a run: equal for equal specs, versions and network files.

    Raises:
        BezoarError: if the spec names a network file that cannot be read.
    """
    document = spec_document(spec)
    if document["optimizer"] == "plain":
        del document["optimizer"]  # runs were named before there were others
    if spec.network.name == "from_file":
        # What is in the file matters, not where it lies.
        document["network"] |= {"path": _content(Path(spec.network.options["path"]))}
    identity = {"format": FORMAT, "spec": document, "versions": versions()}
    return digest(json.dumps(identity, sort_keys=True, separators=(",", ":")).encode())[:DIGITS]


@cache
def versions() -> dict[str, str]:
    """The versions of what computes."""
    return {"bezoar": __version__} | {name: metadata.version(name) for name in ("numpy", "torch")}


def spec_document(spec: RunSpec) -> dict[str, Any]:
    """A spec as JSON holds it, the same for equal specs."""
    document = _plain_numbers(spec.model_dump(mode="json"))
    assert isinstance(document, dict)
    return document


def digest(content: bytes) -> str:
    """A checksum of some bytes."""
    return hashlib.sha256(content).hexdigest()


def _plain_numbers(value: Any) -> Any:
    """1.0 as 1, as they are equal: one run must not have two names."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {key: _plain_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_numbers(item) for item in value]
    return value


def _content(path: Path) -> str:
    """A checksum of a network file, with the ending that says how it is read."""
    try:
        return digest(path.read_bytes()) + path.suffix.lower()
    except OSError as error:
        raise BezoarError(f"network file: cannot read {path}: {error.strerror}") from error
