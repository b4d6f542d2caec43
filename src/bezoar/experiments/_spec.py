"""A run as a typed document."""

import csv
import tomllib
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from bezoar import __version__
from bezoar._checks import instance
from bezoar._errors import BezoarError
from bezoar._options import AtLeastOne, Count, NonNegative, Share, choose, explain, plain_number
from bezoar._parts import KINDS
from bezoar.experiments._choice import Choice, read_choice, recall_choice
from bezoar.store import StoredRun, UnknownFormatError

#: The version of the documents that this code writes and reads.
FORMAT: Literal[1] = 1

#: Fields that are a name with options.
CHOICES = tuple(KINDS)

#: Fields and options whose value is a list by nature, and how many lists that is inside each
#: other. In a sweep, a list with one list more inside is swept.
LISTS = {
    **{"poisoned": 1, "metrics": 1, "listening": 1, "head": 1, "edges": 2},
    **{"networks": 1, "over_time": 1, "milestones": 1},
}

#: The name of the model that is not a network.
SOFTMAX = "softmax"

#: How deep tables and lists in a file may lie inside each other. No field needs more than four.
DEPTH = 20

#: Fields that say nothing about a run's numbers.
FORMAL = ("format", "metrics", "agent_metrics", "listening", "keep_models")


def _chosen(default: str, description: str) -> Any:
    """A field that is a name with options; its default is read like what is given."""
    return Field(default=default, validate_default=True, description=description)


def _plain(default: Any, description: str) -> Any:
    return Field(default=default, description=description)


class RunSpec(BaseModel):
    """One run of Algorithm 1, as a document: the same from Python, TOML and the command line."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        allow_inf_nan=False,
        strict=True,
        ser_json_inf_nan="constants",  # some options may be infinite
    )

    format: Literal[1] = _plain(FORMAT, "The version of this document.")
    dataset: Choice = _chosen("mnist", "What is learned from: a name, or an .npz file.")
    samples: AtLeastOne | None = _plain(
        None, "On how many training samples, drawn by the seed; by default on all."
    )
    partition: Choice = _chosen("iid", "How the samples are divided among all agents.")
    network: Choice = _chosen("two_castle", "Who is linked to whom, and who is poisoned.")
    poisoned: Count | tuple[Count | str, ...] | None = _plain(
        None,
        "How many agents are poisoned, or the names of those that are ([] for nobody); "
        "by default as the network says.",
    )
    placement: str | None = _plain(
        None,
        "Where a number of poisoned agents sit; by default where the network says, in "
        "files the last.",
    )
    silent_links: Share = _plain(
        0.0, "The probability that a link is silent in an iteration: its agents miss each other."
    )
    silent_agents: Share = _plain(
        0.0, "The probability that an agent is silent in an iteration: it neither sends nor hears."
    )
    attack: Choice = _chosen("label_flip", "What poisoned agents do to their labels or messages.")
    model: Choice = _chosen("softmax", "What is trained.")
    start: Choice = _plain(
        None, "Where everyone starts; by default at zero for softmax, else at random."
    )
    aggregator: Choice = _chosen(
        "weighted_mean", "How an agent turns its own and its neighbours' models into its next one."
    )
    algorithm: Choice = _chosen(
        "adapt_then_combine",
        "What an iteration makes of the models: Algorithm 1, or a relative of it.",
    )
    rounds: AtLeastOne = _plain(1, "How often agents exchange and aggregate in an iteration.")
    optimizer: Choice = _chosen(
        "plain", "What a local update makes of gradients: a plain step, or momentum."
    )
    schedule: Choice = _chosen("inverse_sqrt", "The step size of every iteration.")
    weight_decay: NonNegative = _plain(0.0, "How much of the model is added to its gradient.")
    batch: AtLeastOne | None = _plain(
        None,
        "How many of its samples an agent takes for a gradient; by default all for softmax, else "
        "32.",
    )
    order: Literal["random", "consecutive"] = _plain(
        "random", "How an agent goes through its samples in batches."
    )
    augment: bool = _plain(False, "Whether images are cropped and mirrored at random.")
    local_steps: AtLeastOne = _plain(1, "Local updates before every exchange.")
    accumulate: AtLeastOne = _plain(1, "In how many parts a batch is computed, to save memory.")
    autocast: Literal["bfloat16", "float16"] | None = _plain(
        None, "A type in which products are computed, where the device can."
    )
    gradient_samples: AtLeastOne | None = _plain(
        None,
        "On how many of its samples an agent's gradient is measured for metrics; by default all "
        "for softmax, else 256.",
    )
    iterations: Count = _plain(1000, "How many iterations to train.")
    every: AtLeastOne = _plain(10, "Iterations between two measurements.")
    metrics: tuple[str, ...] | None = _plain(None, "What is measured; by default everything.")
    agent_metrics: bool = _plain(
        False, "Whether accuracy and test loss of every single agent are measured, too."
    )
    listening: tuple[AtLeastOne, ...] = _plain(
        (),
        "After which iterations it is kept who listened to whom: the weight that every "
        "agent gave to each of its inputs.",
    )
    dtype: Literal["float32", "float64"] = _plain(
        "float32", "The type of the numbers that are computed with."
    )
    device: Annotated[str, Field(min_length=1)] = _plain(
        "cpu", "The torch device that computes, such as cpu."
    )
    seed: Count = _plain(0, "Every random choice of the run follows from it.")
    keep_models: bool = _plain(False, "Whether the final models are kept with the results.")

    @field_validator(*CHOICES, mode="before")
    @classmethod
    def _choose(cls, found: Any, info: ValidationInfo) -> Choice:
        kind, context = info.field_name or "", info.context or {}
        if context.get("recalled"):
            return recall_choice(kind, found, context["texts"].get(kind, ""))
        return read_choice(kind, found, context.get("folder"))

    @field_validator("poisoned", "metrics", "listening", mode="before")
    @classmethod
    def _as_tuple(cls, found: Any, info: ValidationInfo) -> Any:
        if isinstance(found, str) and info.field_name == "poisoned":
            found = read_poisoned(found)
        if getattr(found, "shape", None):  # an array
            found = found.tolist()
        if isinstance(found, list | tuple | set | frozenset):
            return tuple(plain_number(item) for item in found)
        return found

    @field_validator("poisoned", "listening")
    @classmethod
    def _in_order(cls, found: Any) -> Any:
        """The same in another order is the same run; an agent's number is the name it reads as."""
        if not isinstance(found, tuple):
            return found
        return tuple(
            sorted(set(map(_agent, found)), key=lambda agent: (isinstance(agent, str), agent))
        )

    @field_validator("placement")
    @classmethod
    def _known_placement(cls, found: Any, info: ValidationInfo) -> Any:
        if found is not None and not (info.context or {}).get("recalled"):
            from bezoar.networks import PLACEMENTS

            choose("placement", found, PLACEMENTS)
        return found

    @field_validator("metrics")
    @classmethod
    def _known_metrics(cls, found: Any, info: ValidationInfo) -> Any:
        """Each once, in the order in which they are always told."""
        if found is None or (info.context or {}).get("recalled"):
            return found
        from bezoar.training import METRICS

        for name in found:
            choose("metrics", name, METRICS)
        return tuple(name for name in METRICS if name in found)

    @model_validator(mode="after")
    def _defaults_of_the_model(self) -> "RunSpec":
        """What is not given depends on the model, and is written out like any other default."""
        network = self.model.name != SOFTMAX
        defaults = {
            "start": Choice("start", "random" if network else "zero"),
            "batch": 32 if network else None,
            "gradient_samples": 256 if network else None,
        }
        for field, default in defaults.items():
            if getattr(self, field) is None:
                object.__setattr__(self, field, default)
        return self

    @classmethod
    def read(cls, fields: Mapping[str, Any], folder: Path | None = None) -> "RunSpec":
        """The spec with the given fields.

        Args:
            fields: values of some fields; a choice may be a text, a table, or the part itself.
            folder: what relative paths are relative to.

        Raises:
            BezoarError: with the field, what was found and what is allowed.
        """
        instance("fields", fields, Mapping, "the fields of a run by name")
        if "group" in fields:
            raise BezoarError("group: blocks are for sweeps; a single run has none")
        plain = {field: plain_number(value) for field, value in fields.items()}
        try:
            return cls.model_validate(plain, context={"folder": folder})
        except ValidationError as error:
            told = explain(error, plain, cls.model_fields, "field")
            wrong = {str(item["loc"][0]) for item in error.errors()} - set(LISTS)
            several = any(isinstance(plain.get(field), list) for field in wrong)
            hint = "; several values are for sweeps" if several else ""
            raise BezoarError(told + hint) from None

    @classmethod
    def recall(cls, document: Any, texts: Mapping[str, str] | None = None) -> "RunSpec":
        """A spec that was once read, from its JSON document.

        Names are not looked up again: a finished run can be shown where its rule is not known.
        The arguments are what :meth:`document` and :meth:`texts` gave.
        """
        try:
            return cls.model_validate(document, context={"recalled": True, "texts": texts or {}})
        except ValidationError as error:
            given = document if isinstance(document, Mapping) else {}
            raise BezoarError(explain(error, given, cls.model_fields, "field")) from None

    def document(self) -> dict[str, Any]:
        """The spec as JSON holds it, every option written out.

        Raises:
            BezoarError: if a part is an object that no name leads to.
        """
        for field in CHOICES:
            choice: Choice = getattr(self, field)
            if choice.part is not None:
                raise BezoarError(
                    f"{field}: the object {choice.name!r} has no name, so this run cannot be "
                    f"stored; use bezoar.register, or choose it as path/to/file.py:Name"
                )
        return self.model_dump(mode="json")

    def texts(self) -> dict[str, str]:
        """Each choice as it is typed."""
        return {field: str(getattr(self, field)) for field in CHOICES}


def read_poisoned(text: str) -> int | tuple[int | str, ...]:
    """``"2"`` as a number of agents; ``"3,"``, ``"3,5"``, ``"ward-7"`` and ``"none"`` as agents.

    A name with a comma in it is written in double quotes.
    """
    plain = text.strip()
    if plain == "none":
        return ()
    if _is_count(plain):
        return int(plain)
    try:
        [names] = csv.reader([plain], skipinitialspace=True) if plain else [[]]
    except csv.Error:  # as of a name with a line break and without quotes
        names = []
    found = [name.strip() for name in names]
    if len(found) > 1 and not found[-1]:
        found.pop()  # the comma of "3,"
    if not found or not all(found) or _is_number(plain):
        raise BezoarError(
            f"poisoned: expected a number of agents such as 2, names of agents such as 3,5 or 3, "
            f"(with a comma), or none; found {text!r}"
        )
    return tuple(map(_agent, found))


def poisoned_text(agents: Sequence[int | str]) -> str:
    """Agents as :func:`read_poisoned` reads them."""
    line = StringIO()
    csv.writer(line).writerow(agents)
    return line.getvalue().removesuffix("\r\n") + ("," if len(agents) == 1 else "") or "none"


def _agent(name: int | str) -> int | str:
    """The name of an agent; one that reads as a number is that number."""
    text = str(name)
    return int(text) if _is_count(text) and str(int(text)) == text else name


def _is_count(text: str) -> bool:
    return text.isdecimal() and len(text) < 20  # Python refuses to read thousands of digits


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_toml(path: str | Path) -> dict[str, Any]:
    """The fields in a TOML file."""
    try:
        with open(path, "rb") as file:
            fields = tomllib.load(file)
        _check_depth(fields)
        return fields
    except OSError as error:
        raise BezoarError(f"spec: cannot read {path}: {error.strerror}") from error
    except RecursionError:
        raise BezoarError(
            f"spec: {path}: expected tables and lists at most {DEPTH} deep inside each other, "
            "found more"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BezoarError(f"spec: {path} is not valid TOML: {error}") from error


def read_spec(path: str | Path) -> RunSpec:
    """The spec in a TOML file; a relative path in it is relative to the file."""
    return RunSpec.read(read_toml(path), Path(path).parent)


def _check_depth(value: Any, allowed: int = DEPTH) -> None:
    if isinstance(value, dict | list):
        if not allowed:
            raise RecursionError
        for item in value.values() if isinstance(value, dict) else value:
            _check_depth(item, allowed - 1)


def spec_of(run: StoredRun) -> RunSpec:
    """The spec of a finished run.

    Raises:
        UnknownFormatError: if another version wrote it and this one cannot read it.
    """
    try:
        return RunSpec.recall(run.spec, run.texts)
    except BezoarError as error:
        raise UnknownFormatError(
            f"run: the spec in {run.path} was written by bezoar "
            f"{run.versions.get('bezoar', 'unknown')} and cannot be read by {__version__}: {error}"
        ) from None
