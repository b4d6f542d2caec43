"""The text in a file's bytes."""

import codecs

from bezoar._errors import BezoarError

#: The marks at the beginning of a file that tell its encoding.
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def decode(content: bytes) -> str:
    """A text in UTF-8, or in UTF-16 with a mark at its beginning, as spreadsheets write it."""
    encoding = next((name for mark, name in _MARKS.items() if content.startswith(mark)), "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        place = content[: error.start].count(b"\n") + 1
        raise BezoarError(f"line {place}: it is not UTF-8 text; save it as UTF-8") from None
