"""Data in attributes of an operator is logged at the first checkpoint by which it has changed."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Collection, Iterator
from typing import Any, ClassVar

import numpy as np
import pytest

from understudy import Collector, KeyedOperator, Operator, OperatorListState, ValueState
from understudy.actors.operators import beside_state
from understudy.testing import OperatorHarness


@pytest.fixture(autouse=True)
def nothing_said_yet() -> Iterator[None]:
    beside_state._said.clear()
    yield
    beside_state._said.clear()


def said_of(operator: Operator, caplog: pytest.LogCaptureFixture, *, checkpoints: int = 1) -> list[str]:
    key_by = (lambda record: record) if isinstance(operator, KeyedOperator) else None
    with OperatorHarness(operator, key_by=key_by) as harness:
        for number in range(checkpoints):
            harness.process([number])
            harness.process([number + 1])
            harness.snapshot()
    return [record.getMessage() for record in caplog.records if record.name == beside_state.__name__]


class Totals(KeyedOperator):
    seen = ValueState(int, default=0)

    def __init__(self) -> None:
        self.total = 0
        self.counts: dict[int, int] = {}
        self.name = "totals"

    def process(self, record: int, out: Collector) -> None:
        self.seen.update(self.seen.value() + 1)
        self.total += 10
        self.counts[record] = self.counts.get(record, 0) + 1


def test_what_has_changed_is_named_once_with_what_it_was_and_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    assert said_of(Totals(), caplog, checkpoints=3) == [
        "operator 'totals-1': no checkpoint holds what Totals keeps in attributes: since it was opened, self.counts "
        "went from 0 to 2 entries, self.total went from 0 to 20. After a restart, results that depend on it are wrong; "
        "and all keys of a subtask share it. Declare a MapState and a ValueState in its place. If no result depends on "
        'it, as on a cache, say so in the class: transient = ("counts", "total")'
    ]
    assert len(said_of(Totals(), caplog)) == 1, "another attempt, or subtask, in this process"


class Keeps(Operator):
    """Given what it begins with, and what it makes of that with each record."""

    def __init__(self, first: Any, change: Any) -> None:
        self.kept = first
        self.change = change

    def process_batch(self, batch: Any, out: Collector) -> None:
        for _ in batch:
            self.kept = self.change(self.kept)


def grown(kept: Any) -> Any:
    kept.append(1)
    return kept


def one_more(kept: Any) -> Any:
    kept[0] += 1
    return kept


@pytest.mark.parametrize(
    ("first", "change", "said"),
    [
        (None, lambda _: 7, "became 7. "),
        (None, lambda _: "a token", "was set. "),
        pytest.param(2**20_000, lambda kept: kept + 1, "changed. ", id="too long to be shown"),
        (np.float64(1), lambda kept: kept + 1, "went from np.float64(1.0) to np.float64(3.0). "),
        ("", lambda kept: kept + "x", "changed. "),
        ("a token", lambda kept: kept[1:] + "t", "changed. "),
        ("long " * 50, lambda kept: kept[1:] + "t", "changed. "),
        ((), lambda kept: (*kept, 1), "changed. "),
        (set[int](), lambda kept: {*kept, 1}, "went from 0 to 1 entries. "),
        (deque[int](), grown, "went from 0 to 2 entries. "),
        ([5], one_more, "changed. "),
        (np.zeros(1), one_more, "changed. "),
        (np.array(0.0), lambda kept: kept + 1, "changed. "),
        (list(range(100)), grown, "went from 100 to 102 entries. "),
    ],
)
def test_data_of_any_kind_is_compared(first: Any, change: Any, said: str, caplog: pytest.LogCaptureFixture) -> None:
    (found,) = said_of(Keeps(first, change), caplog)
    assert f"Keeps keeps in attributes: since it was opened, self.kept {said}" in found
    assert "share it" not in found, "it has no keys"
    assert "Declare an OperatorListState in its place" in found


class Stubborn(dict[str, int]):
    """As a proxy of something that is gone by now, or that costs a round trip."""

    def _fail(self, *_: Any) -> Any:
        raise RuntimeError("the session is closed")

    __len__ = __eq__ = __repr__ = copy = _fail  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("first", "change"),
    [
        (None, lambda _: {"made": "when it was wanted"}),
        (None, lambda _: object()),
        (0, lambda kept: kept),
        (float("nan"), lambda _: float("nan")),
        (np.full(3, np.nan), lambda kept: kept),
        (np.array(0.0), lambda kept: kept),
        (Stubborn(), lambda kept: kept),
        ([Stubborn()], lambda _: [Stubborn()]),
        ((np.zeros(2),), lambda _: (np.zeros(2),)),
        ([], lambda kept: []),
        (list(range(100)), one_more),
        ([np.zeros(2)], lambda _: [np.zeros(2)]),
    ],
    ids=[
        "made late",
        "no data",
        "as it was",
        "nan",
        "nan in an array",
        "an array of no dimension",
        "whose methods fail",
        "of objects whose methods fail",
        "array in a tuple",
        "equal",
        "large",
        "of objects that are not compared",
    ],
)
def test_what_has_not_changed_or_is_no_data_is_not_named(
    first: Any, change: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert said_of(Keeps(first, change), caplog, checkpoints=2) == []


class Cached(Keeps):
    transient: ClassVar[Collection[str]] = ("kept",)


class CachedByText(Keeps):
    transient: ClassVar[Collection[str]] = "kept"


@pytest.mark.parametrize("kind", [Cached, CachedByText])
def test_what_is_transient_may_be_lost(kind: type[Keeps], caplog: pytest.LogCaptureFixture) -> None:
    assert said_of(kind(0, lambda kept: kept + 1), caplog) == []


class MeansAnother(Keeps):
    """Whose author had the name before."""

    transient = True  # type: ignore[assignment]


class SaysOne(Keeps):
    transient: ClassVar[Collection[str]] = ("other",)


def test_a_class_that_means_something_else_by_transient_is_watched_as_others(caplog: pytest.LogCaptureFixture) -> None:
    (said,) = said_of(MeansAnother(0, lambda kept: kept + 1), caplog)
    assert said.endswith('transient = ("kept",)')


def test_what_is_to_be_written_has_what_was_written_before(caplog: pytest.LogCaptureFixture) -> None:
    (said,) = said_of(SaysOne(0, lambda kept: kept + 1), caplog)
    assert said.endswith('transient = ("other", "kept")')


class Slotted(Operator):
    __slots__ = ("total",)

    def __init__(self) -> None:
        self.total = 0

    def process_batch(self, batch: Any, out: Collector) -> None:
        self.total += len(batch)


def test_slots_are_attributes(caplog: pytest.LogCaptureFixture) -> None:
    (said,) = said_of(Slotted(), caplog)
    assert "self.total went from 0 to 2" in said


def test_nothing_large_is_kept() -> None:
    for large in (np.zeros((3, 1000)), b"x" * 1000, "x" * 1000, tuple(range(1000)), [0] * 1000):
        _, copy = beside_state._copied(large)
        assert copy is None or len(copy) == 2, "its size and its hash"


class Flushes(Operator):
    def open(self) -> None:
        self.buffer: list[Any] = []

    def process_batch(self, batch: Any, out: Collector) -> None:
        self.buffer.extend(batch)

    def before_barrier(self, checkpoint_id: Any, out: Collector) -> None:
        out.emit(self.buffer)
        self.buffer = []


class Stores(Operator):
    stored = OperatorListState(int)

    def open(self) -> None:
        self.total = sum(self.stored.get())

    def process_batch(self, batch: Any, out: Collector) -> None:
        self.total += len(batch)

    def on_checkpoint(self, checkpoint_id: Any) -> None:
        self.stored.update([self.total])


class Opened(KeyedOperator):
    """Its base sets a good many attributes of its own."""

    def open(self) -> None:
        self.began = time.monotonic()

    def process(self, record: int, out: Collector) -> None:
        assert self.key == record
        assert self.watermark < 0
        assert self.late_records == 0


@pytest.mark.parametrize("operator", [Flushes(), Stores(), Opened()], ids=lambda each: type(each).__name__)
def test_what_a_checkpoint_flushes_or_holds_and_what_is_ours_is_not_named(
    operator: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    assert said_of(operator, caplog, checkpoints=2) == []


class OpensLater(KeyedOperator):
    async def open(self) -> None:
        self.limit = 5

    async def process(self, record: int, out: Collector) -> None:
        assert self.limit == 5


class CountsLater(OpensLater):
    async def process(self, record: int, out: Collector) -> None:
        self.limit += 1


def test_of_one_that_opens_in_a_coroutine_it_begins_with_the_first_checkpoint(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert said_of(OpensLater(), caplog, checkpoints=3) == []
    (said,) = said_of(CountsLater(), caplog, checkpoints=2)
    assert re.search(r"self\.limit went from \d+ to \d+\.", said)
