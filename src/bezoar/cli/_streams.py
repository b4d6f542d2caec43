"""Output streams: characters they cannot show, streams that were closed, and error messages."""

import codecs
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from unicodedata import name, normalize

from bezoar._errors import BezoarError

#: What stands for a character where its encoding does not have it.
SYMBOLS = {
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


@contextmanager
def mistakes_in_one_line() -> Iterator[None]:
    """Tell users' mistakes and a lack of memory or files in one line, and end the process."""
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BezoarError as error:
        print(f"bezoar: {error}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:  # as after "| head"
        give_up_output()
        sys.exit(1)
    except OSError as error:
        if error.filename is None:
            give_up_output()
        where = error.filename or "the output cannot be written"
        print(f"bezoar: {where}: {error.strerror or error}", file=sys.stderr)
        sys.exit(1)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "memory" not in str(error):  # torch's own words
            raise
        print(
            "bezoar: this takes more memory than there is; take a smaller batch, network or model, "
            "or fewer aggregators at a time",
            file=sys.stderr,
        )
        sys.exit(1)


def _replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(character: str) -> str:
    """ASCII for a character: a symbol in signs, a Greek letter by its name, no accents."""
    if character in SYMBOLS:
        return SYMBOLS[character]
    parts = normalize("NFKD", character)  # accents and other forms of a letter are apart
    words = name(parts[0], "").split()
    if words[:1] == ["GREEK"] and words[2:3] == ["LETTER"]:
        return words[3].capitalize() if words[1] == "CAPITAL" else words[3].lower()
    return parts.encode("ascii", "ignore").decode() or "?"


codecs.register_error("plain", _replace)
