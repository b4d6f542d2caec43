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
from bezoar.experiments import Store, StoredRun, StoreError, UnknownFormatError, spec_of
from bezoar.report._ends import ends_table, legend
from bezoar.report._figures import axis_of
from bezoar.report._html_charts import chart_data, metrics_of
from bezoar.report._html_networks import drawing, network_pages
from bezoar.report._html_provenance import opening, provenance_rows
from bezoar.report._page import VERDICTS, Page, page_folders
from bezoar.report._panels import common_fields, field_order, panels_of
from bezoar.report._partition import partition_tables
from bezoar.report._style import POISONED, REGULAR, on_dark
from bezoar.report._sweep_document import sweep_document
from bezoar.report._theory import describe

#: The report's name in a folder of results.
REPORT = "report.html"

#: Characters that could end a script element, as JSON may write them instead.
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}

#: Metrics that a section begins with, the first that its curves have.
FIRST = ("accuracy", "training_loss", "gradient_norm")

PNG = b"\x89PNG\r\n\x1a\n"

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
    store = _store(results)
    runs: dict[str, StoredRun] = {}
    problems: list[BezoarError] = []

    def find(key: str) -> StoredRun | None:
        """A run with all that a report needs of it; ``None`` if it cannot be read."""
        if store and key in store and key not in runs:
            try:
                run = store.load(key)
                _ = run.metrics, run.provenance  # read now, so that damage is found here
                runs[key] = run
            except BezoarError as error:
                problems.append(error)
        return runs.get(key)

    folders = page_folders(results)
    sections = [(folder, Page.load(folder, find)) for folder in folders]
    if not folders:
        for key in store.finished_keys() if store else ():
            find(key)
        if problems and not runs:
            raise problems[0]
        if not runs:
            raise BezoarError(
                f"report: no results in {results}; 'bezoar reproduce --out {results}' or "
                f"'bezoar sweep' makes some"
            )
        sections = [(results, _stored(list(runs.values())))]
    unread = 0 if folders else len(problems)
    others = len(store.finished_keys()) - len(runs) - unread if store else 0
    ordered = sorted(runs.values(), key=lambda run: field_order(spec_of(run)))
    shown = [_section(place, *section) for place, section in enumerate(sections, start=1)]
    return _html(shown, ordered, unread, others)


def _store(results: Path) -> Store | None:
    try:
        return Store.find(results)
    except (StoreError, UnknownFormatError):
        raise
    except BezoarError:
        return None  # tables need no runs


def _stored(runs: Sequence[StoredRun]) -> Page:
    """The runs of a store, those on the same network, data and attack in a panel."""
    panels, caption = tuple(panels_of(runs)), common_fields(runs)
    return Page(name="runs", title="Runs", caption=caption, panels=panels)


def _section(place: int, folder: Path, page: Page) -> dict[str, Any]:
    """A page as the template needs it: with the metric to begin with, and pictures to embed."""
    there = metrics_of(page.panels)
    metric = next((name for name in (*page.metrics, *FIRST, *there) if name in there), "")
    tables = page.tables
    if metric and not tables:
        tables = (ends_table(f"At the end: {axis_of(metric)}", page.panels, (metric,)),)
    pictures = [(_picture(folder, image.file), image.alt) for image in page.images]
    return {
        "id": f"result-{place}",
        "page": page,
        "metric": metric,
        "tables": tables,
        "pictures": [(uri, alt) for uri, alt in pictures if uri],
    }


def _picture(folder: Path, file: str) -> str | None:
    """An image beside a page's file as a data URI; one that was removed is left out."""
    path = folder / file
    if Path(file).name != file:
        raise BezoarError(f"{folder}: images lie beside the summary, found {file!r}")
    if path.suffix.lower() != ".png" or not path.exists():
        return None
    content = path.read_bytes()
    if not content.startswith(PNG):
        raise BezoarError(f"{path}: expected a PNG image, found something else")
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def _html(
    sections: Sequence[dict[str, Any]], runs: Sequence[StoredRun], unread: int, others: int
) -> str:
    pages: list[Page] = [section["page"] for section in sections]
    panels = [panel for page in pages for panel in page.panels]
    looks = legend(panels)
    drawn = [(f"{s['id']}-curves", s["metric"], s["page"].panels) for s in sections if s["metric"]]
    tally = {v: sum(page.verdicts().get(v, 0) for page in pages) for v in VERDICTS}
    script = _asset("report.js")
    template = _environment().get_template("report.html.jinja")
    return template.render(
        heading=_heading(pages, runs),
        tally={verdict: number for verdict, number in tally.items() if number},
        opening=opening(len(pages), runs, looks.values()),
        sections=sections,
        networks=network_pages(runs),
        partitions=partition_tables(runs),
        sweep=sweep_document(map(spec_of, runs)) if runs else "",
        provenance=provenance_rows(runs) if runs else [],
        looks=[(look.colour, on_dark(look.colour)) for look in looks.values()],
        colours={"regular": REGULAR, "poisoned": POISONED},
        data=_embedded(chart_data(drawn, looks)),
        style=_asset("report.css"),
        script=script,
        script_hash=_hash(script),
        unread=unread,
        others=others,
        version=__version__,
    )


def _heading(pages: Sequence[Page], runs: Sequence[StoredRun]) -> str:
    if not pages[0].command:
        networks = list(dict.fromkeys(str(spec_of(run).network) for run in runs))
        where = networks[0] if len(networks) == 1 else count(len(networks), "network")
        return f"{count(len(runs), 'run')} on {where}"
    return pages[0].title if len(pages) == 1 else "Figures and tables, reproduced"


def _embedded(document: dict[str, Any]) -> Markup:
    """A document as JSON inside a script element, whatever the texts in it are."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_ESCAPES))


@cache
def _asset(name: str) -> Markup:
    """A file of this package that is copied into the page unchanged."""
    path = resources.files("bezoar.report") / "assets" / name
    return Markup(path.read_text(encoding="utf-8"))


def _hash(script: str) -> str:
    """The hash of our script for the page's security policy, so that no other script can run."""
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
    environment.filters |= {"maths": _maths, "drawing": drawing, "describe": describe}
    environment.globals |= {"count": count}
    return environment


def _maths(text: str) -> Markup:
    """A text with indices as subscripts and powers of ten as superscripts."""
    powers = _POWER.sub(lambda found: f"×10{str(int(found[1])).translate(_RAISED)}", text)
    signed = _MINUS.sub("−", powers)
    return Markup(_INDEX.sub(r"<sub>\1</sub>", str(escape(signed))))
