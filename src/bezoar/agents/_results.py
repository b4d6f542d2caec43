"""The results of single agents, brought together as one run."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import TypeAdapter
from safetensors import SafetensorError
from safetensors.torch import load
from torch import Tensor

from bezoar._errors import BezoarError
from bezoar._files import digest
from bezoar._numbers import count
from bezoar.agents._keys import one_line
from bezoar.agents._records import FORMAT, MEASURED, MODELS, Line, Status, read_status
from bezoar.experiments import RunSpec, Store, StoredRun, agreement, network_of, provenance
from bezoar.networks import Network
from bezoar.store import DIGITS, Finished
from bezoar.training import History


@dataclass(frozen=True)
class Result:
    """What one agent measured.

    Attributes:
        name: the agent.
        versions: what computed it.
        agreement: the hash of what is trained, in hex digits.
        status: where it stood.
        iterations: ``[n]`` after how many iterations.
        measured: ``[n]`` its accuracy and test loss.
        model: ``[D]`` its final model, if it has finished.
        buffers: what belongs to that and is not exchanged, by name.
    """

    name: str
    versions: dict[str, str]
    agreement: str
    status: Status
    iterations: NDArray[np.int64]
    measured: dict[str, NDArray[np.float64]]
    model: Tensor | None
    buffers: dict[str, Tensor]


def read_result(content: bytes, source: str, name: str | None = None) -> Result:
    """The result in some bytes, which may come from anybody; arguments as for :func:`read_status`.

    Raises:
        BezoarError: where there is none.
    """
    try:
        tensors = load(content)
        size = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + size])["__metadata__"]
        if metadata["format"] != str(FORMAT):
            raise ValueError(f"format {metadata['format']}, this version reads {FORMAT}")
        iterations = tensors.pop("iterations").numpy().astype(np.int64)
        measured = {name: tensors.pop(name).numpy().astype(np.float64) for name in MEASURED}
        if any(values.shape != (iterations.size,) for values in (iterations, *measured.values())):
            raise ValueError("measurements of different lengths")
        model = tensors.pop(MODELS)[0] if MODELS in tensors else None
        if model is not None and (
            model.ndim != 1 or model.dtype not in (torch.float32, torch.float64)
        ):
            raise ValueError("a model that is no vector of numbers")
        status = read_status(metadata["status"], source, name)
        return Result(
            name=status["name"],
            versions=_VERSIONS.validate_json(metadata["versions"]),
            agreement=metadata["agreement"],
            status=status,
            iterations=iterations,
            measured=measured,
            model=model,
            buffers={name: values[0] for name, values in tensors.items()},
        )
    except (SafetensorError, ValueError, LookupError, TypeError, AttributeError) as error:
        problem = one_line(str(error))
        raise BezoarError(
            f"results: {source}: expected those of an agent, found: {problem}"
        ) from None


_VERSIONS = TypeAdapter(dict[Line, Line])


def together(spec: RunSpec, results: Sequence[Result]) -> tuple[Network, History]:
    """The results of some agents as the history of one run.

    The spec is given by whoever asks: one that came with results could name code to be run.

    Its metrics are those that follow from what single agents measure: the mean and the lowest
    accuracy of the regular agents. Where an agent skipped an iteration, or told nothing, its
    values are NaN, and means are over the others.
    """
    if not results:
        raise BezoarError("results: expected those of one agent at least, found none")
    network = network_of(spec)
    expected = agreement(spec, network).hex()
    for each in results:
        if each.agreement != expected:
            raise BezoarError(f"results: those of {each.name} are of another spec than this one")
        if ((each.iterations < 0) | (each.iterations > spec.iterations)).any():
            raise BezoarError(
                f"results: {each.name} measured after iterations that the run does not have; it "
                f"has {spec.iterations}"
            )
    [(name, times)] = Counter(each.name for each in results).most_common(1)
    if times > 1:
        raise BezoarError(f"results: there are {times} of {name!r}; give one of each agent")
    place = {name: agent for agent, name in enumerate(network.names)}
    if unknown := [each.name for each in results if each.name not in place]:
        raise BezoarError(f"results: {unknown[0]!r} is not an agent of the {network.name} network")
    iterations = np.unique(np.concatenate([each.iterations for each in results]))
    values = {name: np.full((len(iterations), network.agents), np.nan) for name in MEASURED}
    for each in results:
        rows = np.searchsorted(iterations, each.iterations)
        for name in MEASURED:
            values[name][rows, place[each.name]] = each.measured[name]
    regular = values["accuracy"][:, list(network.regular)]
    there = ~np.isnan(regular)
    told = there.any(1)
    if not told.any():
        raise BezoarError("results: no regular agent has measured anything yet")
    iterations, regular, there = iterations[told], regular[told], there[told]
    metrics = {
        "accuracy_mean": np.where(there, regular, 0).sum(1) / there.sum(1),
        "accuracy_worst": np.where(there, regular, np.inf).min(1),
    }
    ordered = sorted(results, key=lambda each: place[each.name])
    finals = [{**each.buffers, MODELS: each.model} for each in ordered if each.model is not None]
    # Agents with data of their own may have models of different lengths; then none are kept.
    alike = len({_shapes(final) for final in finals}) == 1
    names = finals[0] if alike else ()
    kept = {name: torch.stack([final[name] for final in finals]) for name in names}
    models = kept.pop(MODELS, torch.zeros(0, 1))
    buffers = kept if len(models) == network.agents else {}
    agents = {name: found[told] for name, found in values.items()}
    return network, History(iterations, metrics, models, buffers, {}, agents)


def _shapes(final: Mapping[str, Tensor]) -> frozenset[tuple[Any, ...]]:
    """What final models must have in common to be kept together."""
    return frozenset((name, each.shape, each.dtype) for name, each in final.items())


def collect(spec: RunSpec, results: Sequence[Result], store: Store) -> StoredRun:
    """Keep the results of some agents in a store, as one run.

    Its key follows from the results: the same ones are kept once. It is never the key of a
    simulated run: what happens between real agents does not follow from a spec.
    """
    network, history = together(spec, results)
    everybody = len(history.models) == network.agents
    hashed = hashlib.sha256(f"agents {results[0].agreement}".encode())
    for part in (history.iterations, *history.agents.values(), history.models.numpy()):
        hashed.update(np.ascontiguousarray(part).data)
    finished = Finished(spec.document(), spec.texts(), results[0].versions, network, history)
    statuses = {each.name: each.status for each in results}
    seconds = max(float(status["seconds"]) for status in statuses.values())
    now = datetime.now(UTC)
    origin = provenance(now, now) | {
        "seconds": seconds,
        "agents_note": note(statuses, network),
        "agents": {name: _short(status) for name, status in statuses.items()},
    }
    key = digest(hashed.digest())[:DIGITS]
    return store.save(key, finished, origin, spec.keep_models and everybody)


def note(statuses: Mapping[str, Status], network: Network) -> str:
    """What happened between the agents, in sentences."""
    sentences = ["Agents in processes of their own"]
    if any(status["own_data"] for status in statuses.values()):
        sentences.append("some with data of their own instead of the spec's partition")
    silent = [name for name in network.names if name not in statuses]
    if silent:
        sentences.append(f"no results of {', '.join(silent)}")
    for name, status in statuses.items():
        told = []
        if status["state"] != "finished":
            told.append(f"is at round {status['round']}")
        if status["resumed_after"]:
            told.append(f"was started again after round {status['resumed_after']}")
        if status["jumps"]:
            told.append(f"jumped forward {count(status['jumps'], 'time')}")
        for peer, link in status["peers"].items():
            reasons = ", ".join(f"{number} {what}" for what, number in link["misses"].items())
            if reasons:
                told.append(f"missed {peer} ({reasons})")
        if told:
            sentences.append(f"{name} {', '.join(told)}")
    if len(sentences) == 1:
        sentences.append("nobody missed a message")
    return "; ".join(sentences) + "."


def _short(status: Status) -> dict[str, Any]:
    """A status without its events, which an agent keeps in a file."""
    return {name: value for name, value in status.items() if name not in ("events", "spec")}
