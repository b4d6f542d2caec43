"""``bezoar list``."""

import inspect
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from bezoar import theory, training
from bezoar._errors import BezoarError
from bezoar._options import choose, default_options, options_model, summary_of
from bezoar._parts import KINDS, maker, parts_of
from bezoar.aggregators import BEFORE, THREATS, Aggregator
from bezoar.attacks import Attack
from bezoar.cli._screen import console, print_json, print_table
from bezoar.report import Table


def list_(kind: str | None, name: str | None, json: bool) -> None:
    """Print what can be chosen; or the page of one thing."""
    tables: dict[str, Mapping[str, Any]] = {f"{kind}s": parts_of(kind) for kind in KINDS}
    tables["before"] = {name: summary_of(step) for name, step in BEFORE.items()}
    tables["metrics"] = {name: metric.title for name, metric in training.METRICS.items()}
    kinds = tables if kind is None else {kind: choose("kind", kind, tables)}
    if kind is not None and name is not None:
        found = _page(kind, name, kinds[kind])
        print_json(found) if json else _print_page(found)
        return
    entries = {kind: [_entry(*item) for item in table.items()] for kind, table in kinds.items()}
    if json:
        print_json(entries)
        return
    for kind, told in entries.items():
        more = ("poisons", "knows") if kind == "attacks" else ()
        shared = _shared_options(told)
        rows = []
        for entry in told:
            own = {key: value for key, value in entry["options"].items() if key not in shared}
            columns = (entry.get(column, "") for column in more)
            rows.append((entry["name"], _written(own), *columns, entry["summary"]))
        print_table(Table.of(kind, ("name", "options", *more, "what it is"), rows))
        if shared:
            console.print(f"options of all {kind}: {_written(shared)}", markup=False)
        for knows, meaning in KNOWN.items() if more else ():
            console.print(f"knows {knows}: {meaning}", markup=False)


def _written(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{option}={value}" for option, value in options.items())


def _shared_options(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The options that all entries of a table have, with the same defaults."""
    first, *others = (entry["options"] for entry in entries)
    return {
        option: default
        for option, default in first.items()
        if others and all((option, default) in other.items() for other in others)
    }


def list_threats(kind: str | None, name: str | None, json: bool) -> None:
    """Print which aggregator withstands what, as their classes declare it."""
    if kind not in (None, "aggregators"):
        raise BezoarError(f"threats: only aggregators declare them, found {kind!r}")
    rules = parts_of("aggregator") if name is None else {name: maker("aggregator", name)}
    told = {rule: _withstands(entry) for rule, entry in rules.items()}
    if json:
        print_json({"threats": THREATS, "aggregators": told})
        return
    rows = [
        (rule, _answer(said["labels"]), share, _answer(said["non_finite"]), majority, order)
        for rule, said in told.items()
        for share, majority, order in [_more(said)]
    ]
    for threat, what in THREATS.items():
        console.print(f"{threat}: poisoned agents {what}.", markup=False)
    console.print("The column messages has the share of an agent's inputs that may do so.")
    console.print("majority: whether the rule is majority-dominant. The order of ρ is in δ_max.")
    columns = ("rule", *THREATS, "majority", "order of ρ")
    print_table(Table.of("threats", columns, rows))


def _withstands(rule: Any) -> dict[str, Any]:
    """What a rule declares that it withstands, and the order of ρ where the theory knows it."""
    orders = {row.aggregator: row.order for row in theory.contraction_orders(0.0)}
    # A function of the user's own that makes rules declares nothing.
    told: type[Aggregator] = rule if isinstance(rule, type) else Aggregator
    return {
        **{threat: threat in told.withstands if told.withstands else None for threat in THREATS},
        "breakdown": told.breakdown,
        "majority_dominant": told.majority_dominant,
        "contraction": orders.get(told.name),
    }


def _answer(found: bool | None) -> str:
    return {True: "yes", False: "no", None: "not said"}[found]


def _more(said: Mapping[str, Any]) -> tuple[str, str, str]:
    """The share of inputs that may send anything, majority dominance, and the order of ρ."""
    share = said["breakdown"]
    told = "not said" if share is None else f"below {Fraction(share)}" if share else "no"
    return told, _answer(said["majority_dominant"]), said["contraction"] or "unknown"


def _entry(name: str, entry: Any) -> dict[str, Any]:
    """What is told of an entry; an option that must be given has the default ``None``."""
    if isinstance(entry, str):
        return {"name": name, "options": {}, "summary": entry}
    options = dict.fromkeys(options_model(entry).model_fields) | default_options(entry)
    told = {"name": name, "options": options, "summary": summary_of(entry)}
    if isinstance(made := _made(entry), Attack):
        told |= {"poisons": _poisons(made), "knows": made.knowledge}
    return told


def _page(kind: str, name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Everything that is known of one thing, as JSON holds it."""
    field = kind.removesuffix("s")
    entry = maker(field, name) if field in KINDS else choose(kind, name, table)
    page = _entry(name, entry)
    if isinstance(entry, str):
        return page
    paragraphs, options = _documentation(entry)
    page["text"] = paragraphs
    page["meaning"] = {option: options.get(option, "") for option in page["options"]}
    page["required"] = _required(entry)
    made = _made(entry)
    if isinstance(made, Aggregator):
        page["needs"] = _needs(made)
        page["withstands"] = _withstands(type(made))
    return page


#: What poisoned agents are assumed to know.
KNOWN = {
    "own": "their own samples, models and messages",
    "neighbours": "the messages of their neighbours too",
    "everything": "the samples, models and messages of all agents",
}


def _poisons(attack: Attack) -> str:
    """What poisoned agents do not do as the protocol asks."""
    labels = type(attack).on_labels is not Attack.on_labels
    said = {"labels": labels, "samples": attack.triggers, "messages": attack.lies}
    return ", ".join(what for what, wrong in said.items() if wrong)


def _made(entry: Any) -> Any:
    """The thing with its defaults; ``None`` where some option must be given."""
    return entry() if isinstance(entry, type) and not _required(entry) else None


def _required(entry: Any) -> list[str]:
    """The options that must be given."""
    known_options = options_model(entry).model_fields.items()
    return [name for name, option in known_options if option.is_required()]


def _needs(rule: Aggregator) -> list[str]:
    """What an agent must know to apply a rule, beside the messages."""
    needs = []
    if rule.uses_estimate():
        needs.append("how many of its inputs are poisoned, at least as an estimate")
    if hasattr(rule, "mixing"):
        needs.append("its row of the mixing matrix: its neighbours' numbers of neighbours")
    if getattr(rule, "reads", "") == "output_layer":
        needs.append("where the output layer lies in a message")
    if rule.sums_updates():
        needs.append("where the output layer lies in a message, and its changes so far")
    if rule.samples_judged():
        needs.append("the losses of its inputs on samples of its own")
    if "model_before_step" in rule.remembers():
        needs.append("its own model before the local update")
    if "previous_output" in rule.remembers():
        needs.append("its own last output")
    return needs or ["nothing"]


def _documentation(entry: Any) -> tuple[list[str], dict[str, str]]:
    """The paragraphs of a docstring, and what it says of each option; bases are asked, too."""
    text = inspect.getdoc(entry) or ""
    options: dict[str, str] = {}
    for each in reversed(entry.__mro__ if isinstance(entry, type) else [entry]):
        said = (inspect.cleandoc(each.__doc__ or "")).partition("Args:\n")[2].partition("\n\n")[0]
        for option, meaning in re.findall(r"^    (\w+): (.*(?:\n     +.*)*)", said, re.MULTILINE):
            options[option] = _plain(meaning)
    before = re.split(r"\n\n(?:Args|Raises|Returns|Attributes):", text)[0]
    return [_plain(paragraph) for paragraph in before.split("\n\n")], options


def _plain(text: str) -> str:
    """A text without the marks of its markup: a link's address follows in brackets."""
    text = re.sub(r"`([^`<]+) <([^>]+)>`_", r"\1 [\2]", " ".join(text.split()))
    text = re.sub(r":\w+:`~?([^`]+)`", r"\1", text)
    return text.replace("``", "")


def _print_page(page: dict[str, Any]) -> None:
    for paragraph in [page["name"], *page.get("text", [page["summary"]])]:
        console.print(paragraph, markup=False)
        console.print()
    if "needs" in page:
        console.print(f"An agent needs to know: {'; '.join(page['needs'])}.\n")
    if "knows" in page:
        console.print(f"Poisoned agents know {KNOWN[page['knows']]}.")
        console.print(f"They poison {page['poisons']}.\n")
    if "withstands" in page:
        said = page["withstands"]
        share, majority, order = _more(said)
        for threat, what in THREATS.items():
            answer = f"{share} of the inputs" if said[threat] and threat == "messages" else ""
            console.print(f"Withstands agents that {what}: {answer or _answer(said[threat])}.")
        console.print(f"Majority-dominant: {majority}. Order of ρ in δ_max: {order}.")
        console.print()
    if page["options"]:
        rows = [
            (option, _default(page, option), page["meaning"][option]) for option in page["options"]
        ]
        print_table(Table.of("options", ("option", "default", "meaning"), rows))


def _default(page: dict[str, Any], option: str) -> str:
    """What an option is if it is not given."""
    if option in page["required"]:
        return "must be given"
    default = page["options"][option]
    return "none" if default is None else str(default)
