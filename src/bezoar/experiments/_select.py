"""Finished runs by their fields: as text, picking some, and one long table of everything."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

from bezoar._errors import BezoarError
from bezoar._files import write_whole
from bezoar._options import choose
from bezoar.experiments._choice import option_text, split_choice
from bezoar.experiments._spec import CHOICES, FORMAL, RunSpec, poisoned_text, spec_of
from bezoar.store import AGENT, AGENTS, HEARD, ITERATION, LISTENING, StoredRun, parquet_bytes

if TYPE_CHECKING:
    import pyarrow as pa

#: How files end that runs can be exported to.
EXPORTS = (".csv", ".parquet")

#: Fields that are a number or not given.
OPTIONAL = {field for field, kind in get_type_hints(RunSpec).items() if kind == int | None}


def field_text(spec: RunSpec, field: str) -> str:
    """A field as it is written on the command line; agents as ``3,5``, ``3,`` or ``none``."""
    value = getattr(spec, field)
    if value is None:
        return "all" if field == "metrics" else "default"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return poisoned_text(value) if field == "poisoned" else ",".join(map(str, value)) or "none"
    return str(value)


def read_conditions(conditions: Sequence[str]) -> dict[str, list[str]]:
    """``["network=fan", "aggregator=ios"]`` as the values wanted of each field."""
    wanted: dict[str, list[str]] = {}
    for condition in conditions:
        field, equals, value = (part.strip() for part in condition.partition("="))
        if not equals or not field or not value:
            raise BezoarError(f"where: expected field=value, found {condition!r}")
        choose("where", field, RunSpec.model_fields)
        wanted.setdefault(field, []).append(value)
    return wanted


def matches(spec: RunSpec, wanted: Mapping[str, Sequence[str]]) -> bool:
    """Whether each field has one of the values wanted of it.

    A choice has the value if it has that name, and those of its options that are given.
    """
    return all(any(_has(spec, field, v) for v in values) for field, values in wanted.items())


def _has(spec: RunSpec, field: str, value: str) -> bool:
    if field not in CHOICES:
        return _same(field_text(spec, field), value)
    choice = getattr(spec, field)
    name, options = split_choice(field, value)
    return name == choice.name and all(
        option in choice.options and _same(option_text(choice.options[option]), wanted)
        for option, wanted in options.items()
    )


def _same(found: str, wanted: str) -> bool:
    """Equal as texts, or as numbers."""
    try:
        return found == wanted or float(found) == float(wanted)
    except ValueError:
        return False


def long_table(runs: Iterable[StoredRun]) -> "pa.Table":
    """One row a run and iteration: key, spec, iteration, metrics.

    Numbers that were not given, and metrics that were not measured, are null.
    """
    import pyarrow as pa

    tables = []
    for run in runs:
        count = len(run.iterations)
        fixed: dict[str, Any] = {"key": run.key}
        spec = spec_of(run)
        for field in (field for field in RunSpec.model_fields if field not in FORMAL):
            value = getattr(spec, field)
            # Numbers stay numbers, the rest is text.
            if field in OPTIONAL or (type(value) is int and field != "poisoned"):
                fixed[field] = _whole_number(value)
            elif isinstance(value, bool | float):
                fixed[field] = value
            else:
                fixed[field] = field_text(spec, field)
        fixed["diverged"] = run.diverged
        columns = {name: pa.repeat(value, count) for name, value in fixed.items()}
        columns[ITERATION] = pa.array(run.iterations, pa.int64())
        columns |= {name: pa.array(v, pa.float64()) for name, v in run.metrics.items()}
        tables.append(pa.table(columns))
    if not tables:
        return pa.table({"key": pa.array([], pa.string()), ITERATION: pa.array([], pa.int64())})
    return pa.concat_tables(tables, promote_options="permissive").combine_chunks()


def _whole_number(value: int | None) -> Any:
    """An integer or null; one of more than 64 bits, as a seed may have, is a decimal number."""
    import pyarrow as pa

    if value is not None and value.bit_length() > 63:
        return pa.scalar(Decimal(value))
    return pa.scalar(value, pa.int64())


def check_export(path: Path) -> None:
    """Refuse a file that runs cannot be exported to."""
    if path.suffix.lower() not in EXPORTS:
        raise BezoarError(
            f"export: expected a name that ends in {' or '.join(EXPORTS)}, found {str(path)!r}"
        )


def export_runs(runs: Iterable[StoredRun], path: str | Path) -> list[Path]:
    """Write the long table of some runs to a CSV or Parquet file.

    What runs have of single agents, and who listened to whom, go into files beside it.
    """
    import pyarrow as pa

    runs, path = list(runs), Path(path)
    check_export(path)
    tables = {path: long_table(runs)}
    for file in (AGENTS, LISTENING):
        if found := [_told(run, table) for run in runs if (table := run.table(file))]:
            beside = path.with_stem(f"{path.stem}-{Path(file).stem}")
            tables[beside] = pa.concat_tables(found, promote_options="default").combine_chunks()
    for where, table in tables.items():
        is_parquet = path.suffix.lower() == ".parquet"
        write_whole(where, parquet_bytes(table) if is_parquet else _csv_bytes(table))
    return list(tables)


def _told(run: StoredRun, table: "pa.Table") -> "pa.Table":
    """A table of a run with the run's key, and with its agents' names for their numbers."""
    import pyarrow as pa

    if run.network is not None:
        names = pa.array(run.network.names, pa.string())
        for place, column in enumerate(table.column_names):
            if column in (AGENT, HEARD):
                table = table.set_column(place, column, names.take(table[column].combine_chunks()))
    return table.add_column(0, "key", pa.repeat(run.key, len(table)))


def _csv_bytes(table: "pa.Table") -> bytes:
    import pyarrow as pa
    from pyarrow import csv

    sink = pa.BufferOutputStream()
    csv.write_csv(table, sink, csv.WriteOptions(quoting_style="needed"))
    return bytes(sink.getvalue())
