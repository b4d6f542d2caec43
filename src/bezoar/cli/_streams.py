"""Output streams that cannot show every character, or take nothing more."""

import codecs
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from unicodedata import name, normalize

#: What stands for a character where its encoding does not have it.
SYMBOLS = {
    "…": "...",
    "–": "-",
    "—": "-",
    "−": "-",
    "→": "->",
    "·": ".",
    "■": "#",
    "×": "x",
    "≥": ">=",
    "≤": "<=",
    "∞": "inf",
    "√": "sqrt",
    "²": "^2",
    "‖": "|",
    "λ": "lambda",  # which Unicode calls lamda
}


def accept_every_character() -> None:
    """Let the standard streams write something readable for what their encodings do not have."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="plain")


def encodable(text: str, encoding: str) -> str:
    """The text as a stream of this encoding will show it, so that columns can be aligned."""
    return text.encode(encoding, "plain").decode(encoding)


def give_up_output() -> None:
    """Write nothing more: Python would try again at its end, and fail again."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(character: str) -> str:
    """ASCII for a character: a symbol in signs, a Greek letter by its name, no accents."""
    if character in SYMBOLS:
        return SYMBOLS[character]
    words = name(character, "").split()
    if words[:1] == ["GREEK"]:
        return words[3].capitalize() if words[1] == "CAPITAL" else words[3].lower()
    return normalize("NFKD", character).encode("ascii", "ignore").decode() or "?"


codecs.register_error("plain", _replace)
