"""One record that `poll` returns in place of a batch: its fields, or its letters, would be the records."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from understudy import END, FromSplit, Source
from understudy.actors.errors import UnwantedResult
from understudy.actors.operators.source import poll


class Fare(NamedTuple):
    zone: int
    cents: int


class Giving(Source):
    def __init__(self, polled: Any) -> None:
        self.polled = polled

    def poll(self) -> Any:
        return self.polled


@pytest.mark.parametrize("one", [{"zone": 1}, "zone", b"zone", Fare(1, 250), 7, FromSplit("fares-0", {"zone": 1})])
def test_one_record_is_refused(one: Any) -> None:
    with pytest.raises(UnwantedResult, match=r"Giving\.poll returned .* for one record return \[record\]"):
        poll(Giving(one))


@pytest.mark.parametrize(
    "batch", [[{"zone": 1}], [], ({"zone": 1},), FromSplit("fares-0", [1]), pa.RecordBatch.from_pylist([{"zone": 1}])]
)
def test_a_batch_goes_on(batch: Any) -> None:
    assert poll(Giving(batch)) is batch


def test_nothing_and_the_end_are_no_batch() -> None:
    assert poll(Giving(None)) is None
    assert poll(Giving(END)) is END


class Running(Giving):
    def poll(self) -> Any:
        return [next(self.polled)]


def test_an_iterator_that_is_over_is_pointed_to_the_end() -> None:
    with pytest.raises(UnwantedResult, match=r"Running\.poll raised StopIteration: it returns END"):
        poll(Running(iter(())))
