"""A finished run on disk: a folder of plain files, none of which can run code when read.

- ``run.json``: format, key, spec, versions, whether it diverged, and checksums of the next three
- ``metrics.parquet``: a column ``iteration``, and one a metric
- ``network.json``: who was linked to whom, and who was poisoned
- ``models.safetensors``: the final models, if the spec asks for them
- ``provenance.json``: where, when and how it was computed

All but the last are the same, byte for byte, whenever and wherever the same versions compute them.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from bezoar import __version__
from bezoar._errors import BezoarError
from bezoar._files import sync_folder, write_synced
from bezoar._options import choose

if TYPE_CHECKING:
    import pyarrow as pa
    from torch import Tensor

    from bezoar.networks import Network
    from bezoar.training import History

#: The version of run folders that this code writes and the newest that it reads.
FORMAT = 1

RUN, METRICS = "run.json", "metrics.parquet"
NETWORK, MODELS = "network.json", "models.safetensors"
PROVENANCE = "provenance.json"

ITERATION = "iteration"


class BrokenRunError(BezoarError):
    """A run's folder lacks something or was changed; ``folder`` says which."""

    def __init__(self, folder: Path, problem: str) -> None:
        super().__init__(
            f"run: {folder} is broken: {problem}; the next sweep that needs it computes it again, "
            "'bezoar runs gc' removes it"
        )
        self.folder = folder


class UnknownFormatError(BezoarError):
    """Something was written by a version that this one cannot read."""


class _RunFile(BaseModel):
    """What is in ``run.json``."""

    model_config = ConfigDict(extra="forbid")

    format: int
    key: str
    spec: dict[str, Any]
    versions: dict[str, str]
    diverged: bool
    files: dict[str, str]
    texts: dict[str, str] = {}


@dataclass(frozen=True)
class Finished:
    """What is to be kept of a run.

    Attributes:
        spec: its spec as a document.
        texts: the choices in it as they are typed.
        versions: what computed it.
        network: who was linked to whom, and who was poisoned.
        history: what was measured.
    """

    spec: Mapping[str, Any]
    texts: Mapping[str, str]
    versions: Mapping[str, str]
    network: "Network"
    history: "History"


@dataclass(frozen=True, eq=False)
class StoredRun:
    """A finished run in a store. What was measured is read when first asked for.

    Attributes:
        key: its name in the store.
        path: its folder.
        spec: what was run, as a document.
        versions: what computed it.
        diverged: whether some agent's final model is not finite.
        files: the checksum of each file that can be reproduced.
        texts: the choices in its spec as they are typed; none of runs stored long ago.
    """

    key: str
    path: Path
    spec: Mapping[str, Any]
    versions: Mapping[str, str]
    diverged: bool
    files: Mapping[str, str]
    texts: Mapping[str, str]

    def __getitem__(self, metric: str) -> NDArray[np.float64]:
        return choose("metric", metric, self.metrics)

    @property
    def iterations(self) -> NDArray[np.int64]:
        """``[n]`` after how many iterations was measured."""
        return self._measured[0]

    @property
    def metrics(self) -> dict[str, NDArray[np.float64]]:
        """``[n]`` values of each metric."""
        return self._measured[1]

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Where, when and how it was computed."""
        return _read_json(self.path, PROVENANCE)

    @cached_property
    def network(self) -> "Network | None":
        """The network it was trained on; ``None`` for runs stored before that was kept."""
        import networkx as nx

        from bezoar.networks import Network

        if NETWORK not in self.files:
            return None
        try:
            document = json.loads(self._content(NETWORK))
            graph = nx.Graph(document["edges"])
            graph.add_nodes_from(range(document["agents"]))
            return Network(graph, document["poisoned"], name=document["name"])
        except BrokenRunError:
            raise
        except (KeyError, TypeError, ValueError, nx.NetworkXException) as error:
            raise BrokenRunError(self.path, f"{NETWORK} cannot be read ({error})") from None

    @property
    def models(self) -> "Tensor":
        """``[agents, D]`` the final models: the output layer's weights first."""
        return self._tensors["models"]

    @property
    def buffers(self) -> "dict[str, Tensor]":
        """``[agents, …]`` what belongs to the final models and was not exchanged, by name."""
        return {name: found for name, found in self._tensors.items() if name != "models"}

    @cached_property
    def _tensors(self) -> "dict[str, Tensor]":
        from safetensors import SafetensorError
        from safetensors.torch import load

        if MODELS not in self.files:
            raise BezoarError(
                f"run {self.key}: its models were not kept; run it with keep_models = true"
            )
        try:
            found = load(self._content(MODELS))
            return {"models": found["models"], **found}
        except (SafetensorError, KeyError) as error:
            raise BrokenRunError(self.path, f"{MODELS} cannot be read ({error})") from None

    def verify(self) -> None:
        """Read everything.

        Raises:
            BrokenRunError: if something is missing or is not as it was written.
        """
        for name in self.files:
            self._content(name)
        _ = self._measured, self.provenance

    def _content(self, name: str) -> bytes:
        content = _read(self.path, name)
        if digest(content) != self.files.get(name):
            raise BrokenRunError(self.path, f"{name} is not as it was written")
        return content

    @cached_property
    def _measured(self) -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        content = self._content(METRICS)
        try:
            table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
            iterations = np.asarray(table[ITERATION], dtype=np.int64)
            names = [name for name in table.column_names if name != ITERATION]
            return iterations, {name: np.asarray(table[name], dtype=np.float64) for name in names}
        except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as error:
            raise BrokenRunError(self.path, f"{METRICS} cannot be read ({error})") from None


def read_run(folder: Path) -> StoredRun:
    """The run in a folder.

    Raises:
        BrokenRunError: if it is not as it was written, as far as ``run.json`` tells.
        UnknownFormatError: if a newer version wrote it.
    """
    document = _read_json(folder, RUN)
    found = document.get("format")
    if isinstance(found, int) and found > FORMAT:
        raise UnknownFormatError(
            f"run: {folder / RUN} has format {found}, this version of bezoar ({__version__}) "
            f"knows formats up to {FORMAT}; a newer bezoar reads it"
        )
    try:
        file = _RunFile.model_validate(document)
    except ValidationError as error:
        problem = error.errors()[0]
        field = ".".join(map(str, problem["loc"]))
        raise BrokenRunError(folder, f"{RUN}: {field}: {problem['msg']}") from None
    if file.key != folder.name or METRICS not in file.files:
        raise BrokenRunError(folder, f"{RUN} belongs to another run")
    found = (file.spec, file.versions, file.diverged, file.files, file.texts)
    return StoredRun(file.key, folder, *found)


def write_run(
    folder: Path, key: str, run: Finished, provenance: Mapping[str, Any], keep_models: bool
) -> None:
    """Write a run into an empty folder, and wait until it is on the disk."""
    contents = {METRICS: _metrics_file(run.history), NETWORK: _network_file(run.network)}
    if keep_models:
        contents[MODELS] = _models_file({"models": run.history.models, **run.history.buffers})
    file = _RunFile(
        format=FORMAT,
        key=key,
        spec=dict(run.spec),
        versions=dict(run.versions),
        diverged=run.history.diverged,
        files={name: digest(content) for name, content in contents.items()},
        texts=dict(run.texts),
    )
    contents[PROVENANCE] = _json_file(dict(provenance))
    contents[RUN] = _json_file(file.model_dump())
    for name, content in contents.items():
        write_synced(folder / name, content)
    sync_folder(folder)


def digest(content: bytes) -> str:
    """A checksum of some bytes."""
    return hashlib.sha256(content).hexdigest()


def _network_file(network: "Network") -> bytes:
    document = {
        "name": network.name,
        "agents": network.agents,
        "edges": network.edges,
        "poisoned": network.poisoned,
    }
    return (json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def _metrics_file(history: "History") -> bytes:
    import pyarrow as pa

    columns = {ITERATION: pa.array(history.iterations, pa.int64())}
    columns |= {name: pa.array(v, pa.float64()) for name, v in history.metrics.items()}
    return parquet_bytes(pa.table(columns))


def parquet_bytes(table: "pa.Table") -> bytes:
    """A Parquet file; the same bytes for the same table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    # Plain and uncompressed: curves are small, and no compressor's version changes the bytes.
    pq.write_table(table, sink, compression="none", use_dictionary=False)
    return bytes(sink.getvalue())


def _models_file(tensors: "Mapping[str, Tensor]") -> bytes:
    from safetensors.torch import save

    return save({name: tensor.contiguous() for name, tensor in tensors.items()})


def _json_file(document: dict[str, Any]) -> bytes:
    return (json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError:
        raise BrokenRunError(folder, f"{name} is missing") from None
    except OSError as error:
        raise BezoarError(f"run: cannot read {folder / name}: {error.strerror}") from error


def _read_json(folder: Path, name: str) -> dict[str, Any]:
    try:
        document = json.loads(_read(folder, name))
    except ValueError as error:
        # A BrokenRunError is one too, and says more.
        if isinstance(error, BezoarError):
            raise
        raise BrokenRunError(folder, f"{name} is not valid JSON ({error})") from None
    if not isinstance(document, dict):
        raise BrokenRunError(folder, f"{name} is no JSON object")
    return document
