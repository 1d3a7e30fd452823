"""`understudy state`: savepoints and checkpoints as data, without a cluster: what runtime/savepoints reads, printed."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...messages import printable
from ...messages.counted import counted
from ...state.keyring import VARIABLE as KEYS
from ...state.keyring import add_key
from ..hosts.settings_sources import load_settings, use_encryption_keys
from ..savepoints.difference import SavepointDiff, StateChange
from ..savepoints.export import FORMATS, export_table
from ..savepoints.opened import Savepoint
from ..savepoints.reading import SavepointOperator
from ..savepoints.state_table import StateTable
from ..savepoints.verification import Verification
from .groups import CommandGroup
from .output import note, plain, print_json, told

WIDE = 1_000
"""Characters in a line; a narrower terminal goes on in the next one."""
_LONGEST = 80
"""Of a value in a table; JSON has it whole."""

JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
LIMIT = click.option(
    "--limit", type=click.IntRange(min=1), help="No more rows than this.  [default: 20; with --json all]"
)
SHOWN_ROWS = 20
ROWS = (
    "rows: as `understudy state cat` prints them, one for each key (of a map or list too), timer, or item of an "
    "operator's list"
)


@click.group(cls=CommandGroup)
@told
def state() -> None:
    """Look into a savepoint or a checkpoint: its states, rows, differences, damage.

    PATH is a savepoint's path, a checkpoint's folder (.../chk-7), or the _metadata in it; a file or any URL that fsspec
    knows. Nothing is changed, and no cluster is needed. Keys are those of UNDERSTUDY_ENCRYPTION_KEYS, or of the
    understudy.yaml here.
    """
    if KEYS not in os.environ:
        use_encryption_keys(load_settings().settings)


@state.command()
@click.argument("path")
@click.option("--rows", is_flag=True, help="Count the rows of each state, as `cat` prints them: reads all.")
@JSON
@told
def ls(path: str, rows: bool, as_json: bool) -> None:
    """The operators and states of a savepoint: declared states, timers, offsets of sources, transactions of sinks."""
    savepoint = Savepoint.open(path)
    states = [_listed(operator, table, rows) for operator in savepoint.operators() for table in operator.states()]
    whole = {
        "path": savepoint.path,
        "job_id": savepoint.job_id,
        "checkpoint_id": savepoint.checkpoint_id,
        "taken_at": savepoint.taken_at.isoformat(timespec="seconds"),
        "size_bytes": savepoint.size_bytes,
    }
    if as_json:
        print_json(whole | {"states": states})
        return
    note(
        f"checkpoint {savepoint.checkpoint_id} of {savepoint.job_id}, taken {whole['taken_at']}, "
        f"{savepoint.size_bytes:,} bytes of state"
    )
    if rows:
        note(ROWS)
    columns = ("operator", "parallelism", "max", "state", "kind", "type", *(("rows",) if rows else ()))
    _print(columns, [[each[name] for name in columns] for each in states])


@state.command()
@click.argument("path")
@click.argument("operator")
@click.argument("name", metavar="STATE")
@click.option("--key", help="Only the rows of this key: a number, a text, or a tuple as Python writes it.")
@LIMIT
@JSON
@told
def cat(path: str, operator: str, name: str, key: str | None, limit: int | None, as_json: bool) -> None:
    """The rows of one STATE of an OPERATOR (its uid or name); STATE `timers` are all its timers.

    With --json, one JSON object a line.
    """
    table = _found(path, operator, name)
    if key is not None:
        table = table.key(_key(key))
    _print_rows(table.rows(), limit, as_json)


@state.command()
@click.argument("before")
@click.argument("after")
@click.option("--changes", is_flag=True, help="The entries that changed, in place of the numbers of them.")
@click.option("--operator", help="Only this operator.")
@click.option("--state", "name", help="Only this state.")
@LIMIT
@JSON
@told
def diff(
    before: str, after: str, changes: bool, operator: str | None, name: str | None, limit: int | None, as_json: bool
) -> None:
    """What differs between the savepoints BEFORE and AFTER: keys added, removed and changed, by state."""
    found = Savepoint.open(before).diff(after)
    uid = None if operator is None else _uid(found, operator)
    if name is not None:
        _check_state(found, uid, name)
    if changes:
        _print_rows((_changed(each) for each in found.changes(uid, name)), limit, as_json)
        return
    states = [each for each in found.states() if uid in (None, each.operator) and name in (None, each.state)]
    if as_json:
        print_json(states)
        return
    if all(each.is_same for each in states):
        note("no state has changed")
        return
    columns = ("operator", "state", "added", "removed", "changed", "same")
    _print(columns, [[getattr(each, column) for column in columns] for each in states if not each.is_same])


@state.command()
@click.argument("path")
@JSON
@told
def verify(path: str, as_json: bool) -> None:
    """Read every byte, and say which files are missing or corrupt. The exit code is 1 when one is."""
    found: Verification = Savepoint.verify(path)
    if as_json:
        print_json({"is_whole": found.is_whole, "verification": found})
    else:
        for problem in found.problems:
            click.echo(str(problem))
        if found.is_whole:
            files, entries = counted(found.files, "file"), counted(found.entries, "entry")
            click.echo(f"whole: {files}, {counted(found.size_bytes, 'byte')} of state, {entries}")
    if not found.is_whole:
        raise SystemExit(1)


@state.command()
@click.argument("path")
@click.argument("operator")
@click.argument("name", metavar="STATE")
@click.argument("file")
@told
def export(path: str, operator: str, name: str, file: str) -> None:
    """Write one STATE of an OPERATOR to FILE, which is there whole or not at all: .parquet, .arrow, .csv or .jsonl."""
    if file.rpartition(".")[2] not in FORMATS:
        raise click.UsageError(
            f"wanted a file that ends in {', '.join(f'.{each}' for each in FORMATS)}, found {file!r}"
        )
    table = _found(path, operator, name)
    try:
        rows = export_table(table, file)
    except OSError as error:
        raise click.ClickException(
            f"{file} cannot be written: {os.strerror(error.errno) if error.errno else error}"
        ) from error
    note(f"{counted(rows, 'row')} in {file}")


@state.command()
@click.argument("path")
@click.argument("sql")
@LIMIT
@JSON
@told
def query(path: str, sql: str, limit: int | None, as_json: bool) -> None:
    """The rows of a SELECT, by DuckDB; the tables are "operator"."state"."""
    _print_rows(Savepoint.open(path).query(sql).to_pylist(), limit, as_json)


def _found(path: str, operator: str, name: str) -> StateTable:
    found = Savepoint.open(path).operator(operator)
    return found.timers() if name == "timers" else found.state(name)


def _uid(found: SavepointDiff, operator: str) -> str:
    return found.after.operator(operator).uid


def _check_state(found: SavepointDiff, uid: str | None, name: str) -> None:
    known = [each for each in found.states() if uid in (None, each.operator)]
    if name not in {each.state for each in known}:
        there = ", ".join(f"{each.operator}.{each.state}" for each in known)
        raise click.ClickException(f"there is no state {name!r}; there are: {there}")


def _listed(operator: SavepointOperator, table: StateTable, rows: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operator": operator.uid,
        "parallelism": operator.parallelism,
        "max": operator.max_parallelism,
        "state": table.name,
        "kind": table.kind,
        "type": table.type,
    }
    return found | {"rows": table.count()} if rows else found


def _changed(change: StateChange) -> dict[str, Any]:
    return {
        "operator": change.operator,
        "state": change.state,
        "what": change.what,
        "key": change.key,
        "before": change.before,
        "after": change.after,
    }


def _key(text: str) -> Any:
    """3 is a number and JFK a text, and so is '3' in quotes."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


@state.command("new-key")
@click.argument("file")
@told
def new_key(file: str) -> None:
    """Make a key with which state is encrypted, in FILE, in front of those that it has already.

    The first key of a file encrypts; the others read what was written before.
    """
    current, *others = add_key(file)
    click.echo(current)
    note(f"key {current} is the first of {file}; for every process that reads or writes state: export {KEYS}={file}")
    if others:
        note(f"files of earlier keys stay readable as long as these stand in it: {', '.join(others)}")


def _print_rows(rows: Iterable[Mapping[str, Any]], limit: int | None, as_json: bool) -> None:
    if as_json:
        for row in islice(rows, limit):
            click.echo(json.dumps(plain(row)))
        return
    left = iter(rows)
    shown = list(islice(left, limit or SHOWN_ROWS))
    if not shown:
        note("no rows")
        return
    columns = tuple(dict.fromkeys(name for row in shown for name in row))
    _print(columns, [[row.get(name) for name in columns] for row in shown])
    if next(left, None) is not None:
        note(f"the first {len(shown)} rows; more with --limit, all with --json")


def _print(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    table = Table(box=None, pad_edge=False)
    for at, name in enumerate(columns):
        is_number = all(isinstance(row[at], int | float) for row in rows)
        table.add_column(name, justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(Text(_shown(value)) for value in row))
    Console(width=WIDE, highlight=False).print(table, soft_wrap=True)


def _shown(value: Any) -> str:
    text = "" if value is None else f"{value:,}" if type(value) is int else value if type(value) is str else repr(value)
    text = printable(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
