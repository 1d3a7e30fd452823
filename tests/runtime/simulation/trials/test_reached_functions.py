"""What an operator reaches is the user's: Python's own wrappers of it are not, though they carry its module's name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from understudy import Collector, KeyedOperator
from understudy.runtime.api.captured_changes import changes
from understudy.runtime.simulation.trials.reached_functions import functions_reached_by, methods_reached_by

seen: set[int] = set()


class Table:
    def __init__(self) -> None:
        self.rows: set[int] = set()

    def add(self, row: int) -> None:
        self.rows.add(row)


def _forget() -> None:
    seen.clear()


class Tables:
    def __init__(self) -> None:
        self.first = Table()
        self.forget = _forget


TABLE = Table()
TABLES = Tables()


def update(row: int) -> None:
    seen.add(row)


class AddsToItsOwn(KeyedOperator):
    def process(self, record: int, out: Collector) -> None:
        own: set[int] = set()
        own.add(record)
        own.update(TABLE.rows)
        out.collect(len(own))


class AddsToTables(KeyedOperator):
    def process(self, record: int, out: Collector) -> None:
        TABLE.add(record)
        TABLES.first.add(record)


class Forgets(KeyedOperator):
    def process(self, record: int, out: Collector) -> None:
        TABLES.forget()


@dataclass
class Reading:
    value: int


class Shows(KeyedOperator):
    def process(self, record: int, out: Collector) -> None:
        out.collect(repr(Reading(record)))


@contextlib.contextmanager
def _noted(record: int) -> Iterator[None]:
    seen.add(record)
    yield


class Notes(KeyedOperator):
    def process(self, record: int, out: Collector) -> None:
        with _noted(record):
            out.collect(record)


def _changed_by(operator: KeyedOperator) -> list[tuple[str, str]]:
    found = (change for function in functions_reached_by(operator) for change in changes(function))
    return [(each.function, each.what) for each in found]


def test_the_text_of_a_dataclass_changes_nothing_of_the_program() -> None:
    assert _changed_by(Shows()) == []


def test_what_a_wrapper_of_pythons_calls_is_looked_at() -> None:
    assert _changed_by(Notes()) == [("_noted", "the set 'seen'")]


def test_a_name_is_looked_up_only_on_what_stands_before_it() -> None:
    """`own.add` and `own.update` are neither TABLE's method nor this module's function."""
    assert list(methods_reached_by(AddsToItsOwn())) == []
    assert _changed_by(AddsToItsOwn()) == []


def test_methods_of_objects_are_told_by_the_name_of_their_object() -> None:
    reached = list(methods_reached_by(AddsToTables()))
    assert reached == [(Table.add, TABLE, "TABLE"), (Table.add, TABLES.first, "TABLES.first")]
    told = [each.what for method in reached for each in changes(*method)]
    assert told == ["the set 'TABLE.rows'", "the set 'TABLES.first.rows'"]


def test_a_function_that_an_object_holds_has_no_object_of_its_own() -> None:
    told = [each.what for method in methods_reached_by(Forgets()) for each in changes(*method)]
    assert told == ["the set 'seen'"]
