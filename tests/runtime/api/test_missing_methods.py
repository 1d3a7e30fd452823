"""A source or a sink without a method that it must have is refused where the stream is built, with what to write."""

from __future__ import annotations

from types import FunctionType
from typing import Any

import pytest

from understudy import CommittableWriter, Committer, IdempotentSink, LedgerSink, Source, StreamEnvironment
from understudy.actors.operators.operator import Operator
from understudy.actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from understudy.runtime.api.errors import InvalidOperator
from understudy.runtime.api.missing_methods import _WANTED


class OfBytewax(Source):
    def next_batch(self) -> list[int]:
        return []

    def snapshot(self) -> int:
        return 0


class WithPoll(OfBytewax):
    def poll(self) -> Any:
        return self.next_batch()


class Upserts(IdempotentSink):
    def write_batch(self, items: list[Any]) -> None: ...


class Invoked(TwoPhaseCommitSink[str]):
    def begin_transaction(self) -> str:
        return "one"

    def invoke(self, transaction: str, value: Any) -> None: ...


class Prepared(Invoked):
    def write(self, transaction: str, batch: Any) -> None: ...

    def preCommit(self, transaction: str) -> None: ...


class Applied(LedgerSink):
    def apply(self, batches: list[Any], marker: Any) -> None: ...


class Misspelt(LedgerSink):
    def last_marker(self, writer: str) -> None: ...

    def aply(self, batches: list[Any], marker: Any) -> None: ...


class Writes(CommittableWriter):
    def write(self, batch: Any) -> None: ...


class Commits(Committer):
    def last_marker(self, writer: str) -> None: ...


class WithoutCommit(TwoPhaseCommitSink[str]):
    def begin_transaction(self) -> str:
        return "one"

    def write(self, transaction: str, batch: Any) -> None: ...

    def pre_commit(self, transaction: str) -> None: ...

    def abort(self, transaction: str) -> None: ...


class WithItsOwnWrite(LedgerSink):
    def write(self, batch: Any) -> None:
        super().write(batch)

    def last_marker(self, writer: str) -> None: ...


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (OfBytewax, "source OfBytewax does not define poll; it defines next_batch: write poll(self), which returns a"),
        (WithPoll, "source WithPoll does not define offset; it defines snapshot: write offset(self), which returns as"),
        (Source, "source Source does not define poll: write poll(self)"),
    ],
)
def test_of_a_source(source: type[Source], said: str) -> None:
    with pytest.raises(InvalidOperator) as raised:
        StreamEnvironment().from_source(source)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        (
            Upserts,
            "sink Upserts does not define upsert; it defines write_batch: write upsert(self, batch), with",
        ),
        (Invoked, "sink Invoked does not define write; it defines invoke: write write(self, transaction, batch)"),
        (Prepared, "does not define pre_commit; it defines preCommit: write pre_commit(self, transaction), in its pl"),
        (Applied, "sink Applied does not define last_marker: write last_marker(self, writer), which returns where"),
        (Misspelt, "sink Misspelt does not define apply; it defines aply: write apply(self, batches, marker)"),
        (Writes, "sink Writes does not define finish: write finish(self), which returns what is to be committed"),
        (WithoutCommit, "sink WithoutCommit does not define commit: write commit(self, transaction)"),
        (WithItsOwnWrite, "sink WithItsOwnWrite does not define apply: write apply(self, batches, marker)"),
        (Commits, "sink Commits does not define commit: write commit(self, committables, marker)"),
    ],
)
def test_of_a_sink(sink: Any, said: str) -> None:
    stream = StreamEnvironment().from_collection([1])
    with pytest.raises(InvalidOperator) as raised:
        stream.sink_to(sink())
    assert said in str(raised.value)


def test_one_that_an_instance_has_is_there() -> None:
    class Given(IdempotentSink):
        def __init__(self) -> None:
            self.upsert = print  # type: ignore[method-assign,assignment]

    StreamEnvironment().from_collection([1]).sink_to(Given())


def test_a_sink_that_takes_batches_itself_needs_no_upsert() -> None:
    class Own(IdempotentSink):
        def process_batch(self, batch: Any, out: Any) -> None: ...

    StreamEnvironment().from_collection([1]).sink_to(Own())


def test_a_function_behind_a_key_is_pointed_to_an_operator_with_state() -> None:
    with pytest.raises(InvalidOperator, match="filter; state by key is kept by a KeyedOperator, with process"):
        StreamEnvironment().from_collection([1]).key_by(str).process(lambda state, value: state)  # type: ignore[arg-type]


@pytest.mark.parametrize("base", _WANTED, ids=lambda base: base.__name__)
def test_those_that_are_wanted_are_the_abstract_ones(base: type[Operator]) -> None:
    """A base's method is abstract where it raises that it is not defined."""
    methods = {name: value for name in dir(base) if isinstance(value := getattr(base, name), FunctionType)}
    abstract = {name for name, value in methods.items() if f".{name} is not defined" in value.__code__.co_consts}
    assert set(_WANTED[base]) == abstract - set(dir(Operator))
