"""Options that several commands read; light, so that commands without training start fast."""

import os
from pathlib import Path
from typing import Annotated, Optional

import typer

from bezoar._errors import BezoarError

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Poisoned = Annotated[
    Optional[str],  # noqa: UP045 - typer reads this form
    typer.Option(help="How many agents, or which (3,5 or 3,), or none.", show_default=False),
]

PICTURES = (".png", ".pdf", ".svg")


def read_poisoned(text: str) -> int | tuple[int, ...]:
    """``"2"`` as a number of agents; ``"3,"``, ``"3,5"`` and ``"none"`` as agents."""
    try:
        if text == "none":
            return ()
        if "," in text:
            return tuple(int(part) for part in text.split(",") if part.strip())
        return int(text)
    except ValueError:
        raise BezoarError(
            f"poisoned: expected a number of agents such as 2, agents such as 3,5 or 3, (with a "
            f"comma), or none; found {text!r}"
        ) from None


def check_picture(path: Path | None) -> None:
    """Refuse, before anything is computed, a picture that could not be saved."""
    if path is None:
        return
    if path.suffix.lower() not in PICTURES:
        raise BezoarError(
            f"plot: expected a name that ends in {', '.join(PICTURES)}, found {str(path)!r}"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BezoarError(f"plot: cannot make the folder {path.parent}: {error.strerror}") from None
    if not os.access(path.parent, os.W_OK):
        raise BezoarError(f"plot: cannot write into the folder {path.parent}")
