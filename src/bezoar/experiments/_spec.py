"""A run as a typed document."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from bezoar._choices import read_choice
from bezoar._errors import BezoarError
from bezoar._registry import nearest_first
from bezoar.experiments._known import CHOICES, check_choice, check_name

#: The version of the documents that this code writes and reads.
FORMAT: Literal[1] = 1


class Choice(BaseModel):
    """Something chosen by name, with options.

    Written as ``"dirichlet"``, as ``"dirichlet:alpha=0.5"``, or as a table
    ``{name = "dirichlet", alpha = 0.5}``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, found: Any) -> Any:
        if isinstance(found, str):
            name, options = read_choice(found)
            return {"name": name, "options": options}
        if not isinstance(found, Mapping):
            raise BezoarError(f"expected a name, or a table with a name; found {found!r}")
        if not isinstance(found.get("name"), str):
            raise BezoarError(f"expected a table with a name, as in {{name = …}}; found {found!r}")
        given = {key: value for key, value in found.items() if key != "name"}
        if set(given) == {"options"} and isinstance(given["options"], Mapping):
            given = dict(given["options"])
        options = {key: _plain(key, value) for key, value in given.items()}
        return {"name": found["name"], "options": options}

    @model_serializer
    def _write(self) -> str | dict[str, Any]:
        return {"name": self.name, **self.options} if self.options else self.name

    def __hash__(self) -> int:
        options = ((key, _hashable(value)) for key, value in self.options.items())
        return hash((self.name, frozenset(options)))

    def __str__(self) -> str:
        options = ",".join(f"{key}={option_text(value)}" for key, value in self.options.items())
        return f"{self.name}:{options}" if options else self.name


def _plain(option: str, value: Any) -> Any:
    """An option's value as a document can hold it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(option, item) for item in value]
    raise BezoarError(
        f"{option}: expected a number, a text, true or false, or a list of them; found {value!r}"
    )


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def option_text(value: Any) -> str:
    """An option's value as it is written after a name."""
    return str(value).lower() if isinstance(value, bool) else str(value)


Count = Annotated[int, Field(strict=True, ge=0)]


class RunSpec(BaseModel):
    """One run of Algorithm 1, as a document: the same from Python, TOML and the command line."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    format: Literal[1] = Field(default=FORMAT, description="The version of this document.")
    dataset: str = Field(default="mnist", description="What is learned from.")
    partition: Choice = Field(
        default=Choice(name="iid"), description="How the samples are handed out to all agents."
    )
    network: Choice = Field(
        default=Choice(name="two_castle"), description="Who is linked to whom, and who is poisoned."
    )
    poisoned: Count | tuple[Count, ...] | None = Field(
        default=None,
        description="How many agents are poisoned, or which ([] for nobody); by default as the "
        "network says.",
    )
    attack: Choice = Field(
        default=Choice(name="label_flip"),
        description="What poisoned agents do to their labels or messages.",
    )
    model: Literal["softmax"] = Field(default="softmax", description="What is trained.")
    aggregator: Choice = Field(
        default=Choice(name="weighted_mean"),
        description="How an agent turns the models it has after an exchange into its next one.",
    )
    optimizer: Choice = Field(
        default=Choice(name="plain"),
        description="What a local update makes of gradients: a plain step, or momentum.",
    )
    schedule: Choice = Field(
        default=Choice(name="inverse_sqrt"), description="The step size of every iteration."
    )
    weight_decay: float = Field(
        default=0.0,
        ge=0,
        strict=True,
        description="How much of the model is added to its gradient.",
    )
    iterations: Count = Field(default=1000, description="How many iterations to train.")
    every: int = Field(
        default=10, ge=1, strict=True, description="Iterations between two measurements."
    )
    metrics: tuple[str, ...] | None = Field(
        default=None, description="What is measured; by default everything."
    )
    dtype: Literal["float32", "float64"] = Field(
        default="float32", description="The type of the numbers that are computed with."
    )
    device: str = Field(
        default="cpu", min_length=1, description="The torch device that computes, such as cpu."
    )
    seed: Count = Field(default=0, description="Every random choice of the run grows from it.")
    keep_models: bool = Field(
        default=False,
        strict=True,
        description="Whether the final models are kept with the results.",
    )

    @field_validator("poisoned")
    @classmethod
    def _in_order(cls, found: Any) -> Any:
        """The same agents in another order are the same run."""
        return tuple(sorted(set(found))) if isinstance(found, tuple) else found

    @field_validator("dataset", "metrics", *CHOICES)
    @classmethod
    def _known(cls, found: Any, info: ValidationInfo) -> Any:
        field = info.field_name or ""
        if info.context == _RECALLED or found is None:
            return found
        if isinstance(found, Choice):
            options = check_choice(field, found.name, found.options)
            return Choice(name=found.name, options=options)
        names = (found,) if isinstance(found, str) else tuple(dict.fromkeys(found))
        for name in names:
            check_name(field, name)
        return found if isinstance(found, str) else names

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> "RunSpec":
        """The spec with the given fields; errors name the field, what was found, what may be."""
        try:
            return cls.model_validate(dict(fields))
        except ValidationError as error:
            raise BezoarError(_explain(error)) from None

    @classmethod
    def recall(cls, document: Any) -> "RunSpec":
        """A spec that was once read, from its JSON document.

        Names are not looked up again: a finished run can be shown where its rule is not known.
        """
        try:
            return cls.model_validate(document, context=_RECALLED)
        except ValidationError as error:
            raise BezoarError(_explain(error)) from None

    @classmethod
    def read_file(cls, path: str | Path) -> dict[str, Any]:
        """The fields in a TOML file."""
        try:
            with open(path, "rb") as file:
                return tomllib.load(file)
        except OSError as error:
            raise BezoarError(f"spec: cannot read {path}: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise BezoarError(f"spec: {path} is not valid TOML: {error}") from error


#: The context of validating a spec that was once read.
_RECALLED = "recalled"


def _explain(error: ValidationError) -> str:
    """One sentence a field."""
    sentences: dict[str, str] = {}
    for item in error.errors():
        field = str(item["loc"][0]) if item["loc"] else "spec"
        sentences.setdefault(field, _sentence(field, item))
    return "; ".join(sentences.values())


def _sentence(field: str, item: Any) -> str:
    """What is wrong with a field: its name, what was found, what is allowed."""
    found = item["input"]
    if item["type"] == "extra_forbidden":
        if field == "group":
            return "group: blocks are for sweeps; a single run has none"
        allowed = ", ".join(nearest_first(field, RunSpec.model_fields))
        return f"{field}: no such field; allowed: {allowed}"
    if field == "format":
        return f"format: this version of bezoar reads {FORMAT}, found {found!r}"
    if item["type"] == "value_error":
        message = str(item["ctx"]["error"])
        return message if message.startswith((f"{field}:", f"{field} ")) else f"{field}: {message}"
    if item["type"] == "literal_error":
        names = [str(name) for name in get_args(RunSpec.model_fields[field].annotation)]
        allowed = ", ".join(nearest_first(str(found), names))
        return f"{field}: {found!r} is not known; allowed: {allowed}"
    if field == "poisoned":
        return f"poisoned: expected how many agents or a list of agents, found {found!r}"
    expected = item["msg"].replace("Input should be", "expected")
    hint = "; several values are for sweeps" if isinstance(found, list) else ""
    return f"{field}: {expected}, found {found!r}{hint}"
