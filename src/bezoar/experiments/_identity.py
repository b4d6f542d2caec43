"""What a run is known by: a hash of everything that its numbers depend on."""

import json
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bezoar
from bezoar import _parts
from bezoar._errors import BezoarError
from bezoar._files import FileVersion, digest, file_version
from bezoar.experiments._choice import Choice
from bezoar.experiments._spec import FORMAL, FORMAT, RunSpec
from bezoar.store import DIGITS

if TYPE_CHECKING:
    from bezoar.data import Dataset
    from bezoar.networks import Network

#: The parts of the package that decide numbers; the others tell, keep or draw them.
COMPUTING = (
    "*.py",
    *(f"{room}/**/*.py" for room in ("networks", "data", "models", "attacks", "aggregators")),
    *(f"{room}/**/*.py" for room in ("exchange", "training")),
    *(f"experiments/_{module}.py" for module in ("made", "prepare")),
)


def identity(spec: RunSpec, network: "Network", dataset: "Dataset") -> str:
    """The name of a run: the same however it is spelled and wherever its files lie.

    It covers the spec with every option written out, the network and who is poisoned, the data,
    the content of files and users' own code that the spec names, and what computes. The network and
    the data are those that the spec leads to.

    Raises:
        BezoarError: if a part has no name, or a file that is named cannot be read.
    """
    document = spec.document()
    document |= {field: _choice_identity(getattr(spec, field)) for field in _parts.KINDS}
    for told_otherwise in ("poisoned", "networks"):
        document["network"]["options"].pop(told_otherwise, None)
    document["network"]["fingerprint"] = network.fingerprint  # which covers who is poisoned
    document["dataset"]["options"].pop("data_dir", None)  # where it lies; this is what it is:
    document["dataset"]["fingerprint"] = dataset.fingerprint
    del document["poisoned"], document["placement"]
    if document["metrics"] is None:
        from bezoar.training import METRICS

        document["metrics"] = list(METRICS)
    told = {"format": FORMAT, "spec": document, "versions": versions()}
    return digest(json.dumps(told, sort_keys=True, separators=(",", ":")).encode())[:DIGITS]


def agreement(spec: RunSpec, network: "Network") -> bytes:
    """What agents must have in common that train together: a hash of 32 bytes.

    It covers the spec, and the network with its agents' names. It does not cover what each agent
    has of its own: its data, its device, the versions of what computes, what it measures.
    """
    document = spec.document()
    document |= {field: _choice_identity(getattr(spec, field)) for field in _parts.KINDS}
    own = ("dataset", "samples", "partition", "device", "poisoned", "placement", "every", *FORMAL)
    for field in own:
        del document[field]
    document["network"] = [network.fingerprint, *network.names]  # which covers who is poisoned
    told = {"format": FORMAT, "spec": document}
    return bytes.fromhex(digest(json.dumps(told, sort_keys=True, separators=(",", ":")).encode()))


@cache
def versions() -> dict[str, str]:
    """The versions of what computes.

    Between two releases the source changes and the version does not, so the source counts, too.
    """
    libraries = {name: metadata.version(name) for name in ("numpy", "torch")}
    return {"bezoar": bezoar.__version__, "source": _source()} | libraries


def _source() -> str:
    """A checksum of the package's modules that decide numbers."""
    package = Path(bezoar.__file__).parent
    files = sorted({path for pattern in COMPUTING for path in package.glob(pattern)})
    names = [path.relative_to(package).as_posix().encode() for path in files]
    contents = [digest(path.read_bytes()).encode() for path in files]
    return digest(b"\n".join([*names, *contents]))[:DIGITS]


def _choice_identity(choice: Choice) -> dict[str, Any]:
    """A choice without where its files lie, but with what is in them."""
    name, source = choice.name, _parts.source_of(choice.kind, choice.name)
    options = dict(choice.options)
    for option in choice.paths():
        path = Path(options[option])
        try:
            options[option] = _content(path, file_version(path)) + path.suffix.lower()
        except OSError as error:
            raise BezoarError(f"path: cannot read {path}: {error.strerror}") from error
    if source is None:
        return {"name": name, "options": options}
    before = _parts.names_before(choice.kind, name)
    return {
        "name": "+".join([*before, name.rpartition(":")[2]]),
        "options": options,
        "source": source,
    }


@lru_cache(maxsize=256)
def _content(path: Path, version: FileVersion) -> str:
    """A checksum of a file; it is read again when it was changed."""
    return digest(path.read_bytes())
