"""The report: one HTML file with everything in it, which works without a network."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from bezoar import __version__
from bezoar._errors import BezoarError
from bezoar._files import write_whole
from bezoar._numbers import count
from bezoar.experiments import Store, StoredRun, StoreError, UnknownFormatError
from bezoar.report._html_charts import Rules, chart_data
from bezoar.report._html_facts import opening, provenance_rows
from bezoar.report._html_groups import field_order
from bezoar.report._html_holdings import holdings
from bezoar.report._html_networks import network_pages
from bezoar.report._html_results import (
    Result,
    read_runs,
    reproduced,
    stored,
    tally,
    with_final_table,
)
from bezoar.report._html_specs import sweep_document
from bezoar.report._html_theory import (
    error_rows,
    order_rows,
    readable,
    theorem_rows,
    worst_rows,
)
from bezoar.report._style import POISONED, REGULAR
from bezoar.report._summary import summary_folders

#: The report's name in a folder of results.
REPORT = "report.html"

#: Characters that could end a script element, as JSON may write them instead.
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}

#: A cell of a table that is set flush right: a number, perhaps with a unit and extremes, or a word
#: in the place of one.
_NUMBER = re.compile(
    r"[-−+]?[\d.,]+(e[-+]?\d+)?([ …/()]+[\d.,]+(e[-+]?\d+)?)*\)?( ξ²| %)?"
    r"|[–∞]|inf|diverged|exact|none"
)

#: The paper's indices, and exponents and signs as Python writes them.
_INDEX = re.compile(r"(?<=\w)_(max|w|k)(?![A-Za-z])")
_POWER = re.compile(r"(?<=\d)e([-+]\d+)\b")
_MINUS = re.compile(r"(?<![\w.-])-(?=\d)")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def write_report(results: str | Path, out: str | Path | None = None) -> Path:
    """Write what is in a folder of results as one HTML file.

    Args:
        results: what ``bezoar reproduce`` or ``bezoar sweep`` made: a folder with summaries and
            a store, or a store alone.
        out: where to; by default ``report.html`` in the folder.

    Returns:
        The file. It is the same, byte for byte, for the same results.
    """
    results = Path(results)
    if not results.is_dir():
        raise BezoarError(f"report: there is no folder {results}")
    out = results / REPORT if out is None else Path(out)
    if out.is_dir():
        raise BezoarError(f"report: expected a file to write, found the folder {out}")
    return write_whole(out, render(results).encode())


def render(results: Path) -> str:
    """The report as a text."""
    folders = summary_folders(results)
    store = _store(results)
    if folders:
        sections, unread = reproduced(folders, store), 0
    else:
        runs, problems = read_runs(store, store.finished_keys()) if store else ([], [])
        if problems and not runs:
            raise problems[0]
        if not runs:
            raise BezoarError(
                f"report: no results in {results}; 'bezoar reproduce --out {results}' or "
                f"'bezoar sweep' makes some"
            )
        sections, unread = [stored(runs)], len(problems)
    return _page(sections, store, unread)


def _store(results: Path) -> Store | None:
    try:
        return Store.find(results)
    except (StoreError, UnknownFormatError):
        raise
    except BezoarError:
        return None  # tables need no runs


def _page(sections: Sequence[Result], store: Store | None, unread: int) -> str:
    rules = Rules(chart for section in sections for chart in section.charts)
    sections = [with_final_table(section, rules) for section in sections]
    found = {run.key: run for section in sections for run in section.runs}
    runs = sorted(found.values(), key=lambda run: field_order(run.spec))
    specs = [run.spec for run in runs]
    drawn = [(f"{s.id}-curves", s.metric, s.charts) for s in sections if s.metric]
    script = _asset("report.js")
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(
            heading=_heading(sections, runs),
            tally=tally(claim for section in sections for claim in section.claims),
            opening=opening(sections, runs, rules),
            sections=sections,
            networks=network_pages(specs),
            holdings=holdings(specs),
            sweep=sweep_document(specs) if specs else "",
            provenance=provenance_rows(runs) if runs else [],
            looks=rules.looks,
            colours={"regular": REGULAR, "poisoned": POISONED},
            data=_embedded(chart_data(drawn, rules)),
            style=_asset("report.css"),
            script=script,
            script_hash=_hash(script),
            unread=unread,
            others=len(store.finished_keys()) - len(runs) - unread if store else 0,
            version=__version__,
        )
    )


def _heading(sections: Sequence[Result], runs: Sequence[StoredRun]) -> str:
    if not sections[0].command:
        networks = list(dict.fromkeys(str(run.spec.network) for run in runs))
        where = networks[0] if len(networks) == 1 else count(len(networks), "network")
        return f"{count(len(runs), 'run')} on {where}"
    return sections[0].title if len(sections) == 1 else "Figures and tables, reproduced"


def _embedded(document: dict[str, Any]) -> Markup:
    """A document as JSON inside a script element, whatever the texts in it are."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPES))


@cache
def _asset(name: str) -> Markup:
    """A file of ours that goes into the page as it is."""
    path = resources.files("bezoar.report") / "assets" / name
    return Markup(path.read_text(encoding="utf-8"))


def _hash(script: str) -> str:
    """What the page's security policy knows our script by: no other one may run in it."""
    digest = hashlib.sha256(f"\n{script}".encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("bezoar.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": readable, "numeric": _is_numeric, "maths": _maths}
    functions = (count, theorem_rows, order_rows, error_rows, worst_rows)
    environment.globals |= {function.__name__: function for function in functions}
    return environment


def _maths(text: str) -> Markup:
    """A text with the paper's indices and powers of ten set as such."""
    powers = _POWER.sub(lambda found: f"×10{str(int(found[1])).translate(_RAISED)}", text)
    signed = _MINUS.sub("−", powers)
    return Markup(_INDEX.sub(r"<sub>\1</sub>", str(escape(signed))))


def _is_numeric(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Whether a column of a table has numbers, which are set flush right."""
    return all(_NUMBER.fullmatch(cell.strip()) for row in rows for cell in row[column : column + 1])
