"""What an operator reaches is the user's: Python's own wrappers of it are not, though they carry its module's name."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from understudy import Collector, KeyedOperator
from understudy.runtime.api.captured_changes import changes
from understudy.runtime.simulation.trials.reached_functions import functions_reached_by

seen: set[int] = set()


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
