"""A subclass that takes a private name of its base is refused where the stream is built."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pytest

from understudy import KeyedOperator, Operator, Source, StreamEnvironment, TwoPhaseCommitSink
from understudy.runtime.api.errors import InvalidOperator
from understudy.runtime.api.private_names import check_private_names
from understudy.testing import OperatorHarness


class Sink(TwoPhaseCommitSink[list[Any]]):
    def begin_transaction(self) -> list[Any]:
        return []

    def write(self, transaction: list[Any], batch: Any) -> None: ...

    def pre_commit(self, transaction: list[Any]) -> None: ...

    def commit(self, transaction: list[Any]) -> None: ...

    def abort(self, transaction: list[Any]) -> None: ...


class Assigned(Sink):
    def __init__(self) -> None:
        self._pending: Any = {}


class InAnotherHook(Sink):
    def abort(self, transaction: list[Any]) -> None:
        self._current = None


class Method(Sink):
    def _begin(self) -> Any: ...


class Declared(KeyedOperator):
    _backend: Any

    def process(self, record: Any, out: Any) -> None: ...


class InAProperty(KeyedOperator):
    @cached_property
    def rate(self) -> int:
        self._loop = 1
        return 1

    def process(self, record: Any, out: Any) -> None: ...


class OfAParent(Assigned): ...


class Mixin:
    _loop = None


class ByAMixin(Mixin, KeyedOperator):
    def process(self, record: Any, out: Any) -> None: ...


@pytest.mark.parametrize(
    ("kind", "culprit", "name", "base"),
    [
        (Assigned, "Assigned", "_pending", "TwoPhaseCommitSink"),
        (OfAParent, "Assigned", "_pending", "TwoPhaseCommitSink"),
        (InAnotherHook, "InAnotherHook", "_current", "TwoPhaseCommitSink"),
        (Method, "Method", "_begin", "TwoPhaseCommitSink"),
        (Declared, "Declared", "_backend", "KeyedOperator"),
        (InAProperty, "InAProperty", "_loop", "KeyedOperator"),
        (ByAMixin, "Mixin", "_loop", "KeyedOperator"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else None,
)
def test_it_is_named_with_its_base_and_another_name(kind: type[Operator], culprit: str, name: str, base: str) -> None:
    with pytest.raises(InvalidOperator) as caught:
        check_private_names(kind)
    assert str(caught.value) == (
        f"{culprit} uses the name {name!r}, which its base {base} keeps something of its own in: name it differently, "
        f"for example `_{culprit.lower()}{name}`"
    )


def test_streams_and_the_harness_refuse_it() -> None:
    stream = StreamEnvironment().from_collection([1, 2])
    with pytest.raises(InvalidOperator, match="'_pending'"):
        stream.sink_to(Assigned())
    with pytest.raises(InvalidOperator, match="'_loop'"):
        stream.key_by(lambda record: record).process(InAProperty())
    with pytest.raises(InvalidOperator, match="'_pending'"):
        OperatorHarness(Assigned())


class Free(Sink):
    """Names of its own, mangled ones, those of other objects, and what it only reads."""

    _own = 1

    def __init__(self, other: Any) -> None:
        self.__pending = {}
        self._mine = other
        other._pending = 1

    def abort(self, transaction: list[Any]) -> None:
        assert self._pending is not None


class Counter(Source):
    _next = 0

    def poll(self) -> Any: ...

    def offset(self) -> Any: ...

    def seek(self, offset: Any) -> None: ...


@pytest.mark.parametrize("kind", [Free, Counter, Sink, KeyedOperator, TwoPhaseCommitSink])
def test_other_names_are_free(kind: type[Operator]) -> None:
    check_private_names(kind)
