"""Choices as people write them: a name, perhaps with options."""

from typing import Any

from bezoar._errors import BezoarError


def read_choice(text: str) -> tuple[str, dict[str, Any]]:
    """``"dirichlet:alpha=0.5,draws=3"`` as a name and options."""
    name, _, rest = text.partition(":")
    options: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in rest.split(","))):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise BezoarError(f"options are written name=value, found {part!r}")
        options[key.strip()] = _read_value(value.strip())
    return name.strip(), options


def _read_value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
