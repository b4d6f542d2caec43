"""A run as a typed document."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_serializer,
    model_validator,
)

from bezoar._choices import read_choice
from bezoar._errors import BezoarError
from bezoar._registry import nearest_first


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
        if isinstance(found, Mapping) and "options" not in found:
            options = {key: value for key, value in found.items() if key != "name"}
            return {**({"name": found["name"]} if "name" in found else {}), "options": options}
        return found

    @model_serializer
    def _write(self) -> str | dict[str, Any]:
        return {"name": self.name, **self.options} if self.options else self.name

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        options = ",".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.name}:{options}" if options else self.name


class RunSpec(BaseModel):
    """One run of Algorithm 1, as a document: the same from Python, TOML and the command line."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    dataset: str = "mnist"
    partition: Choice = Choice(name="iid")
    network: Choice = Choice(name="two_castle")
    poisoned: int | tuple[int, ...] | None = Field(
        default=None, description="how many or which agents; by default as the network says"
    )
    attack: Choice = Choice(name="label_flip")
    model: Literal["softmax"] = "softmax"
    aggregator: Choice = Choice(name="weighted_mean")
    schedule: Choice = Choice(name="inverse_sqrt")
    weight_decay: float = Field(default=0.0, ge=0)
    iterations: int = Field(default=1000, ge=0)
    every: int = Field(default=10, ge=1, description="iterations between measurements")
    metrics: tuple[str, ...] | None = Field(default=None, description="by default all")
    dtype: Literal["float32", "float64"] = "float32"
    device: str = "cpu"
    seed: int = Field(default=0, ge=0)

    @classmethod
    def read(cls, fields: Mapping[str, Any]) -> "RunSpec":
        """The spec with the given fields; errors name the field, what was found, what may be."""
        try:
            return cls.model_validate(dict(fields))
        except ValidationError as error:
            raise BezoarError("; ".join(_explain(item) for item in error.errors())) from None

    @classmethod
    def read_file(cls, path: str | Path) -> dict[str, Any]:
        """The fields in a TOML file."""
        try:
            with open(path, "rb") as file:
                return tomllib.load(file)
        except OSError as error:
            raise BezoarError(f"spec: cannot read {path}: {error.strerror}") from error
        except tomllib.TOMLDecodeError as error:
            raise BezoarError(f"spec: {path} is not valid TOML: {error}") from error


def _explain(item: Any) -> str:
    field = ".".join(str(part) for part in item["loc"] if part not in ("int", "tuple[int, ...]"))
    if item["type"] == "extra_forbidden":
        allowed = ", ".join(nearest_first(field, RunSpec.model_fields))
        return f"{field}: no such field; allowed: {allowed}"
    return f"{field}: {item['msg']}, found {item['input']!r}"
