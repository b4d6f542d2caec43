"""A finished run on disk: a folder of plain files, none of which can run code when read.

- ``run.json``: format, key, spec, versions, whether it diverged, and checksums of the next five
- ``metrics.parquet``: a column ``iteration``, and one a metric
- ``agents.parquet``: the metrics of every single agent, if the spec asks for them
- ``listening.parquet``: who listened to whom, if the spec asks for it
- ``network.json``: who was linked to whom, and who was poisoned
- ``models.safetensors``: the final models, if the spec asks for them
- ``provenance.json``: where, when and how it was computed

All but the last are the same, byte for byte, whenever and wherever the same versions compute them.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ConfigDict, TypeAdapter, ValidationError

from bezoar import __version__
from bezoar._errors import BezoarError
from bezoar._files import digest, sync_folder, write_synced
from bezoar._options import choose, first_problem

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy.sparse import csr_array
    from torch import Tensor

    from bezoar.networks import Network
    from bezoar.training import History

#: The version of run folders that this code writes and the newest that it reads.
FORMAT = 1

#: Hex digits of a run's key.
DIGITS = 32

RUN, METRICS = "run.json", "metrics.parquet"
NETWORK, MODELS = "network.json", "models.safetensors"
AGENTS, LISTENING = "agents.parquet", "listening.parquet"
PROVENANCE = "provenance.json"

ITERATION, AGENT, HEARD, WEIGHT = "iteration", "agent", "heard", "weight"


class BrokenRunError(BezoarError):
    """A run's folder lacks something or was changed."""

    def __init__(self, folder: Path, problem: str) -> None:
        super().__init__(
            f"run: {folder} is broken: {problem}; the next sweep that needs it computes it again, "
            "'bezoar runs gc' removes it"
        )


class UnknownFormatError(BezoarError):
    """Something was written by a version that this one cannot read."""


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
        path: its folder.
        format: the version of the folder's format.
        key: its name in the store.
        spec: what was run, as a document.
        versions: what computed it.
        diverged: whether some agent's final model is not finite.
        files: the checksum of each file that can be reproduced.
        texts: the choices in its spec as they are typed; empty for runs of early versions.
    """

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    path: Path
    format: int
    key: str
    spec: dict[str, Any]
    versions: dict[str, str]
    diverged: bool
    files: dict[str, str]
    texts: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, metric: str) -> NDArray[np.float64]:
        return choose("metric", metric, self.metrics)

    @property
    def iterations(self) -> NDArray[np.int64]:
        """``[n]`` the iterations after which something was measured."""
        return self._measured[0]

    @property
    def metrics(self) -> dict[str, NDArray[np.float64]]:
        """The values of each metric, ``[n]``."""
        return self._measured[1]

    @cached_property
    def agents(self) -> dict[str, NDArray[np.float64]]:
        """``[n, agents]`` the metrics of every single agent; empty if they were not asked for."""
        table = self.table(AGENTS)
        if table is None:
            return {}
        shape = (len(self.iterations), -1)
        names = [name for name in table.column_names if name not in (ITERATION, AGENT)]
        return {name: np.asarray(table[name], dtype=np.float64).reshape(shape) for name in names}

    @cached_property
    def listening(self) -> "dict[int, csr_array]":
        """``[agents, agents]`` the weight that each agent, a row, gave to each, by iteration."""
        from scipy.sparse import csr_array

        table = self.table(LISTENING)
        if table is None:
            return {}
        when, *where, weight = (np.asarray(table[name]) for name in table.column_names)
        agents = int(where[0].max()) + 1
        found = {}
        for iteration in np.unique(when).tolist():
            here = when == iteration
            places = (weight[here], tuple(place[here] for place in where))
            found[iteration] = csr_array(places, shape=(agents, agents))
        return found

    @cached_property
    def provenance(self) -> dict[str, Any]:
        """Where, when and how it was computed."""
        return _read_json(self.path, PROVENANCE)

    @property
    def trained(self) -> tuple[datetime, datetime] | None:
        """When its training began and ended, in UTC; ``None`` where nothing says it.

        Runs that were trained together have the same times.
        """
        try:
            told = (self.provenance[name] for name in ("started", "ended"))
            began, ended = (datetime.fromisoformat(text).astimezone(UTC) for text in told)
            return began, ended
        except (KeyError, TypeError, ValueError):
            return None  # somebody else's provenance

    @cached_property
    def network(self) -> "Network | None":
        """The network it was trained on; ``None`` for runs of early versions."""
        import networkx as nx

        from bezoar.networks import Network

        if NETWORK not in self.files:
            return None
        with self._reading(NETWORK) as content:
            document = json.loads(content)
            names = document.get("names") or list(range(document["agents"]))
            graph = nx.Graph()
            graph.add_nodes_from(names)
            graph.add_edges_from((names[one], names[other]) for one, other in document["edges"])
            for agent, place in zip(names, document.get("positions", ()), strict=False):
                graph.nodes[agent]["pos"] = place
            poisoned = [names[agent] for agent in document["poisoned"]]
            return Network(graph, poisoned, name=document["name"], note=document.get("note", ""))

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
        from safetensors.torch import load

        if MODELS not in self.files:
            raise BezoarError(
                f"run {self.key}: its models were not kept; run it with keep_models = true"
            )
        with self._reading(MODELS) as content:
            found = load(content)
            return {"models": found["models"], **found}

    def verify(self) -> None:
        """Read all its files.

        Raises:
            BrokenRunError: if something is missing or is not as it was written.
        """
        for name in self.files:
            with self._reading(name):
                pass
        _ = self._measured, self.provenance

    def table(self, name: str) -> "pa.Table | None":
        """One of its Parquet files; ``None`` if it has no such file."""
        if name not in self.files:
            return None
        with self._reading(name) as content:
            return _parquet_table(content)

    @cached_property
    def _measured(self) -> tuple[NDArray[np.int64], dict[str, NDArray[np.float64]]]:
        with self._reading(METRICS) as content:
            table = _parquet_table(content)
            iterations = np.asarray(table[ITERATION], dtype=np.int64)
            names = [name for name in table.column_names if name != ITERATION]
            return iterations, {name: np.asarray(table[name], dtype=np.float64) for name in names}

    @contextmanager
    def _reading(self, name: str) -> Iterator[bytes]:
        """The content of a file. If it makes no sense, the run is broken."""
        content = _read(self.path, name)
        if digest(content) != self.files.get(name):
            raise BrokenRunError(self.path, f"{name} is not as it was written")
        try:
            yield content
        except Exception as error:  # each format fails in ways of its own
            raise BrokenRunError(self.path, f"{name} cannot be read ({error})") from None


_RUN = TypeAdapter(StoredRun)


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
        run = _RUN.validate_python(document | {"path": folder})
    except ValidationError as error:
        raise BrokenRunError(folder, f"{RUN}: {first_problem(error)}") from None
    if run.key != folder.name or METRICS not in run.files:
        raise BrokenRunError(folder, f"{RUN} belongs to another run")
    return run


def write_run(
    folder: Path, key: str, run: Finished, provenance: Mapping[str, Any], keep_models: bool
) -> None:
    """Write a run into an empty folder, and wait until it is on the disk."""
    contents = {NETWORK: _network_file(run.network), **_history_files(run.history)}
    if keep_models:
        from safetensors.torch import save

        tensors = {"models": run.history.models, **run.history.buffers}
        contents[MODELS] = save({name: tensor.contiguous() for name, tensor in tensors.items()})
    document = {
        "format": FORMAT,
        "key": key,
        "spec": dict(run.spec),
        "versions": dict(run.versions),
        "diverged": bool(run.history.diverged),
        "files": {name: digest(content) for name, content in contents.items()},
        "texts": dict(run.texts),
    }
    for name, told in ((PROVENANCE, dict(provenance)), (RUN, document)):
        text = json.dumps(told, indent=2, sort_keys=True, ensure_ascii=False)
        contents[name] = f"{text}\n".encode()
    for name, content in contents.items():
        write_synced(folder / name, content)
    sync_folder(folder)


def _network_file(network: "Network") -> bytes:
    told = {field: getattr(network, field) for field in ("name", "agents", "edges", "poisoned")}
    if network.names != tuple(map(str, range(network.agents))):
        told["names"] = network.names
    if network.positions is not None:
        told["positions"] = network.positions.tolist()
    if network.note:
        told["note"] = network.note
    return (json.dumps(told, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def _history_files(history: "History") -> dict[str, bytes]:
    """The metrics, and what was asked for of single agents, as Parquet files."""
    import pyarrow as pa

    columns = {METRICS: {ITERATION: history.iterations, **history.metrics}}
    if history.agents:
        count, agents = next(iter(history.agents.values())).shape
        columns[AGENTS] = {
            ITERATION: np.repeat(history.iterations, agents),
            AGENT: np.tile(np.arange(agents), count),
            **{name: values.ravel() for name, values in history.agents.items()},
        }
    if history.listening:
        parts = [(k, matrix.tocoo()) for k, matrix in sorted(history.listening.items())]
        columns[LISTENING] = {
            ITERATION: np.concatenate([np.full(part.nnz, k) for k, part in parts]),
            AGENT: np.concatenate([part.coords[0] for _, part in parts]).astype(np.int64),
            HEARD: np.concatenate([part.coords[1] for _, part in parts]).astype(np.int64),
            WEIGHT: np.concatenate([part.data for _, part in parts]),
        }
    return {file: parquet_bytes(pa.table(told)) for file, told in columns.items()}


def parquet_bytes(table: "pa.Table") -> bytes:
    """A Parquet file; the same bytes for the same table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    # Plain and uncompressed: curves are small, and no compressor's version changes the bytes.
    pq.write_table(table, sink, compression="none", use_dictionary=False)
    return bytes(sink.getvalue())


def _parquet_table(content: bytes) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)


def _read(folder: Path, name: str) -> bytes:
    try:
        return (folder / name).read_bytes()
    except FileNotFoundError:
        raise BrokenRunError(folder, f"{name} is missing") from None
    except OSError as error:
        raise BezoarError(f"run: cannot read {folder / name}: {error.strerror}") from error


def _read_json(folder: Path, name: str) -> dict[str, Any]:
    content = _read(folder, name)
    try:
        document = json.loads(content)
    except ValueError as error:
        raise BrokenRunError(folder, f"{name} is not valid JSON ({error})") from None
    if not isinstance(document, dict):
        raise BrokenRunError(folder, f"{name} is no JSON object")
    return document
