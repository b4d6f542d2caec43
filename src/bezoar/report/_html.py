"""The report: one HTML file with everything in it, which needs no network."""

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from bezoar import __version__
from bezoar._checks import folder
from bezoar._errors import BezoarError
from bezoar._files import write_whole
from bezoar._numbers import count
from bezoar.experiments import Store, StoredRun, spec_of
from bezoar.report._best import JUDGED, LEAD, best_rules, ranked_tables
from bezoar.report._html_parts import (
    chart_data,
    isolated,
    metrics_of,
    opening,
    provenance_rows,
)
from bezoar.report._network_pages import describe, network_pages, partition_tables
from bezoar.report._networks import drawing
from bezoar.report._page import THRESHOLDS, VERDICTS, Page, page_folders
from bezoar.report._specs import (
    common_fields,
    field_order,
    newest,
    panels_of,
    renamed,
    short_names,
    sweep_document,
)
from bezoar.report._style import POISONED, REGULAR, legend, on_dark
from bezoar.report._tables import data_notes

#: Characters that could end a script element, and how JSON can write them instead.
_ESCAPES = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}

#: The paper's indices; exponents and signs as Python writes them; where no line may break.
_INDEX = re.compile(r"(?<=\w)_(max|w|k)(?![A-Za-z])")
_POWER = re.compile(r"(?<=\d)e([-+]\d+)\b")
_MINUS = re.compile(r"(?<![\w.-])-(?=\d)")
_TIED = re.compile(r" (?=[<≥=] |L²)|(?<= [<≥=]) ")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

#: What the symbols on the page stand for; see docs/theory.md.
SYMBOLS = {
    "δ": "The share of poisoned agents.",
    "δ_max": "The largest share of poisoned inputs of a regular agent, its own model included.",
    "ξ": "Heterogeneity: the largest distance of a regular agent's gradient to the mean of all "
    "regular ones. It is large where agents hold very different data.",
    "A": "Disturbance: the largest distance of a poisoned agent's gradient to that mean.",
    "ρ": "Contraction constant of a rule: how far its result may be from a weighted mean of the "
    "regular inputs, in units of how far those are apart. Smaller is better.",
    "λ": "How slowly regular agents come to agree: 0 is at once; from 1 on, Theorem 1 is silent.",
    "λ'": "The same of all agents, for the weighted mean.",
    "β": "How unevenly the regular agents' data count in the end; 0 if all count alike.",
    "P_w": "How many of the inputs of agent w are poisoned.",
}


def write_report(
    results: str | Path,
    out: str | Path | None = None,
    problem: Callable[[str], Any] | None = None,
) -> Path:
    """Write one HTML file about a folder of results: pages and a store, or only a store.

    The same results give the same bytes.

    Args:
        results: the folder.
        out: the file; by default ``report.html`` in that folder.
        problem: is told of every run that is missing or damaged, which the report says, too.
    """
    results = folder("results", results)
    if not results.is_dir():
        raise BezoarError(f"report: there is no folder {results}")
    out = results / "report.html" if out is None else Path(out)
    if out.is_dir():
        raise BezoarError(f"report: expected a file to write, found the folder {out}")
    return write_whole(out, render(results, problem or (lambda _: None)).encode())


def render(results: Path, problem: Callable[[str], Any]) -> str:
    """The report as a text."""
    store = Store(results / "store" if (results / "store").is_dir() else results)
    keys = store.finished_keys()
    runs: dict[str, StoredRun] = {}
    problems: dict[str, BezoarError] = {}

    def find(key: str) -> StoredRun | None:
        """The run with a key; ``None`` if it cannot be read."""
        if key in store and key not in runs and key not in problems:
            try:
                run = store.load(key)
                _ = run.metrics, run.provenance  # read now, so that damage is found here
                runs[key] = run
            except BezoarError as error:
                problems[key] = error
        return runs.get(key)

    pages = {where: Page.load(where, find) for where in page_folders(results)}
    older = 0
    if not pages:
        found = list(filter(None, map(find, keys)))
        if not found:
            hint = f"'bezoar reproduce --out {results}' or 'bezoar sweep' makes some"
            nothing = BezoarError(f"report: no results in {results}; {hint}")
            raise next(iter(problems.values()), nothing)
        shown = newest(found)
        caption, older = common_fields(shown), len(found) - len(shown)
        if older:
            caption += f" Not shown: {count(older, 'older run')} with the same specs as newer ones."
            runs = {run.key: run for run in shown}
        panels = tuple(panels_of(shown))
        pages[results] = Page(name="runs", title="Runs", caption=caption, panels=panels)
    for error in problems.values():
        problem(str(error))
    gone = {key: page.name for page in pages.values() for key in page.missing}
    for key, name in gone.items():
        if key not in store:
            problem(f"{name}: the run {key} is no longer in {store.path}")
    ordered = sorted(runs.values(), key=lambda run: field_order(spec_of(run)))
    names = short_names(map(spec_of, ordered))
    sections = [
        _section(place, where, renamed(page, names) if page.name == "runs" else page)
        for place, (where, page) in enumerate(pages.items(), start=1)
    ]
    unread = len(problems)
    others = len(keys) - len(runs) - unread - older
    return _html(sections, ordered, unread, others)


def _section(place: int, folder: Path, page: Page) -> dict[str, Any]:
    """A page as the template needs it: with the metric to show first, and pictures to embed."""
    there = metrics_of(page.panels)
    preferred = (*page.metrics, *JUDGED, "accuracy", "training_loss", "gradient_norm", *there)
    metric = next((name for name in preferred if name in there), "")
    # The metric that is shown first has the first table; the script shows the others instead.
    shown = sorted(there, key=lambda name: name != metric)
    ranked = {} if page.tables else ranked_tables(page.panels, shown)
    pictures = ((_picture(folder, image.file), image.alt) for image in page.images)
    return {
        "id": f"result-{place}",
        "page": page,
        "metric": metric,
        "ranked": ranked,
        "pictures": [(uri, alt) for uri, alt in pictures if uri],
    }


def _picture(folder: Path, file: str) -> str | None:
    """A PNG image beside a page's file as a data URI; ``None`` if it was removed."""
    path = folder / file
    if Path(file).name != file:
        raise BezoarError(f"{folder}: images lie beside the summary, found {file!r}")
    if path.suffix.lower() != ".png" or not path.exists():
        return None
    content = path.read_bytes()
    if not content.startswith(b"\x89PNG\r\n\x1a\n"):
        raise BezoarError(f"{path}: expected a PNG image, found something else")
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def _html(
    sections: Sequence[dict[str, Any]], runs: Sequence[StoredRun], unread: int, others: int
) -> str:
    pages: list[Page] = [section["page"] for section in sections]
    own = [page for page in pages if not page.command]  # of a store, no figure of the paper
    names = short_names(map(spec_of, runs))
    looks = legend(panel for page in pages for panel in page.panels)
    drawn = [(f"{s['id']}-curves", s["metric"], s["page"].panels) for s in sections if s["metric"]]
    charts = chart_data(drawn, looks)
    data = json.dumps(charts, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    tally = {v: sum(page.verdicts().get(v, 0) for page in pages) for v in VERDICTS}
    assets = resources.files("bezoar.report") / "assets"
    style, script = ((assets / name).read_text("utf-8") for name in ("report.css", "report.js"))
    # The page's security policy has the hash of our script, so that no other script can run.
    digest = hashlib.sha256(f"\n{script}".encode()).digest()
    template = templates().get_template("report.html.jinja")
    return template.render(
        heading=_heading(pages, runs, names),
        tally={verdict: number for verdict, number in tally.items() if number},
        opening=opening(len(pages), runs, looks.values(), names),
        best=best_rules([panel for page in own for panel in page.panels]),
        lead=LEAD,
        symbols=SYMBOLS,
        notes=data_notes(runs),
        sections=sections,
        networks=[renamed(page, names) for page in network_pages(runs)],
        partitions=[renamed(table, names) for table in partition_tables(runs)],
        sweep=sweep_document(map(spec_of, runs)) if runs else "",
        provenance=provenance_rows(runs) if runs else [],
        looks=[(look.colour, on_dark(look.colour)) for look in looks.values()],
        colours={"regular": REGULAR, "poisoned": POISONED},
        data=Markup(data.translate(_ESCAPES)),
        style=Markup(style),
        script=Markup(script),
        script_hash=f"sha256-{base64.b64encode(digest).decode()}",
        thresholds=THRESHOLDS,
        unread=unread,
        others=others,
        version=__version__,
    )


def templates() -> Environment:
    """The templates that the report is made of, with what they call."""
    loader = PackageLoader("bezoar.report", "assets")
    found = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    found.trim_blocks = found.lstrip_blocks = True
    found.filters |= {"maths": _maths, "drawing": drawing, "describe": describe}
    found.filters |= {"isolated": isolated}
    found.globals |= {"count": count}
    return found


def _heading(pages: Sequence[Page], runs: Sequence[StoredRun], names: Mapping[str, str]) -> str:
    if not pages[0].command:
        networks = {spec_of(run).network for run in runs}
        where = count(len(networks), "network")
        if len(networks) == 1:
            [network] = map(str, networks)
            where = names.get(network, network)
        return f"{count(len(runs), 'run')} on {where}"
    return pages[0].title if len(pages) == 1 else "Figures and tables, reproduced"


def _maths(text: str) -> Markup:
    """A text with indices as subscripts, powers of ten as superscripts, and unbroken relations."""
    powers = _POWER.sub(lambda found: f"×10{str(int(found[1])).translate(_RAISED)}", text)
    signed = _TIED.sub("\u00a0", _MINUS.sub("−", powers))
    return Markup(_INDEX.sub(r"<sub>\1</sub>", str(escape(signed))))
