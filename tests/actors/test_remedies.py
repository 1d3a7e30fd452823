"""What an error's own text leaves open, the failure says: what to do about it."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import re
import sys
from bdb import BdbQuit
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from understudy import Collector, KeyedOperator, Operator, OperatorContext, ValueState
from understudy.actors.errors import UserCodeError
from understudy.actors.failure import describe
from understudy.actors.names_of_others import _OWNERS
from understudy.actors.operators.timers import Timers
from understudy.actors.remedies import remedy
from understudy.actors.windows.trigger_state import TriggerState
from understudy.messages import row_type
from understudy.runtime.system.clock import SystemClock
from understudy.testing import OperatorHarness


class Unkeyed(Operator): ...


class Keyed(KeyedOperator):
    def process(self, record: Any, out: Collector) -> None: ...


def _imports() -> None:
    import a_library_that_is_nowhere  # type: ignore[import-not-found]  # noqa: F401


def _reads_a_dict_by_attribute() -> Any:
    record: Any = {"delay": 1}
    return record.delay


def _makes_a_dict_as_in_spark() -> Any:
    row: Any = row_type(("delay",))._make([1])
    return row.asDict()


def _calls_a_function_of_spark() -> Any:
    text = "[SESSION_OR_CONTEXT_NOT_EXISTS] SparkContext or SparkSession should be created first."
    raise RuntimeError(text)


def _reads_what_was_a_state() -> Any:
    total: Any = 3
    return total.value()


def _adds_to_a_state() -> Any:
    text = "unsupported operand type(s) for +=: 'HeapValue' and 'int'"
    raise TypeError(text)


def _has_a_breakpoint() -> Any:
    raise BdbQuit


def _asks_at_the_terminal() -> str:
    return input("which one?")


def _collects_two() -> None:
    out: Any = Collector()
    out.collect("key", 1)


def _calls_the_collector() -> None:
    out: Any = Collector()
    out(1)


def _registers_a_timer_as_in_flink() -> Any:
    operator: Any = Unkeyed()
    return operator.register_event_time_timer(5)


def _registers_a_timer_in_a_trigger() -> Any:
    context: Any = TriggerState.__new__(TriggerState)
    return context.register_event_time_timer(5)


def _reads_a_pair_by_name() -> Any:
    pair: Any = ({"price": 1}, {"price": 2})
    return pair["price"]


def _reads_a_pair_by_attribute() -> Any:
    pair: Any = ({"price": 1}, {"price": 2})
    return pair.price


def _gets_state_of_the_context() -> Any:
    context: Any = OperatorContext.__new__(OperatorContext)
    return context.get_state("total")


async def _awaits_collect() -> None:
    out: Any = Collector()
    await out.collect(1)


@pytest.mark.parametrize(
    ("fail", "text"),
    [
        (_collects_two, "write out.collect((key, record))"),
        (_registers_a_timer_as_in_flink, "self.timers.at_event_time(ms)"),
        (_registers_a_timer_in_a_trigger, "a trigger's timer is set by context.at_event_time(ms)"),
        (_reads_a_pair_by_name, "what a join of records gives is the pair (left, right)"),
        (_reads_a_pair_by_name, 'left, right = pair; left["price"]'),
        (_reads_a_pair_by_attribute, "what a join of records gives is the pair (left, right)"),
        (_gets_state_of_the_context, "total = ValueState(int, default=0)"),
        (_calls_the_collector, "write out.collect(record) in place of out(record)"),
        (lambda: asyncio.run(_awaits_collect()), "are called without await"),
        (_reads_what_was_a_state, "self.x.update(value)"),
        (_adds_to_a_state, "n.update(n.value() + 1)"),
        (_has_a_breakpoint, "LocalCluster(debug=True)"),
        (_asks_at_the_terminal, "TaskManagers have no terminal: LocalCluster(debug=True) runs the job in your program"),
        (lambda: sys.exit("a bad record"), "a bad record; sys.exit() fails the task, as any error does"),
        (_imports, "install it where TaskManagers run"),
        (_imports, sys.executable),
        (_reads_a_dict_by_attribute, "write record['delay']"),
        (_makes_a_dict_as_in_spark, "write row.asdict() in place of row.asDict()"),
        (_calls_a_function_of_spark, "a stream takes functions of Python"),
    ],
)
def test_the_failure_says_what_to_do(fail: Callable[[], Any], text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())  # as TaskManagers have it
    with pytest.raises((ImportError, AttributeError, TypeError, RuntimeError, BdbQuit, EOFError, SystemExit)) as raised:
        fail()
    assert text in describe(raised.value).error_message


def test_too_few_open_files_are_a_limit_that_can_be_raised() -> None:
    said = describe(OSError(errno.EMFILE, os.strerror(errno.EMFILE), "/folder/file")).error_message
    assert said.startswith("[Errno 24] Too many open files: '/folder/file'; raise the limit of open files (ulimit -n)")


def test_too_few_threads_are_a_limit_that_can_be_raised() -> None:
    said = describe(RuntimeError("can't start new thread")).error_message
    assert said.startswith("can't start new thread; this user may have no more threads")
    assert "ulimit -u" in said


def test_an_error_that_says_all_itself_is_left_alone() -> None:
    assert describe(ValueError("as it is")).error_message == "as it is"


def test_a_method_of_a_state_that_is_not_called() -> None:
    error = TypeError("unsupported operand type(s) for +: 'method' and 'int'")
    assert "brackets are missing behind a method, as in self.total.value()" in remedy(error)


def test_the_key_under_the_name_that_flink_gives_it() -> None:
    with pytest.raises(AttributeError) as raised:
        Keyed().current_key  # type: ignore[attr-defined]  # noqa: B018
    assert remedy(raised.value) == "the key of a record is self.key, in a KeyedOperator"


class FrozenClock:
    """A clock by its name."""


@pytest.mark.parametrize(
    ("owner", "name", "text"),
    [
        (Collector(), "send", "out.collect(record)"),
        (Collector(), "write", "out.collect(record)"),
        (Collector(), "output", "out.collect_to(tag, record)"),
        (FrozenClock(), "now", "clock.wall_ms()"),
        (Keyed(), "now", "clock.wall_ms()"),
        (Keyed(), "ctx", "self.context"),
        (Keyed(), "collect", "out.collect(record)"),
        (Keyed(), "get_state", "ValueState(int, default=0)"),
        (Keyed(), "delete_event_time_timer", "self.timers.delete_event_time(ms)"),
        (Unkeyed(), "current_watermark", "self.watermark"),
        (object.__new__(OperatorContext), "timestamp", "self.timestamp"),
        (object.__new__(OperatorContext), "get_index_of_this_subtask", "self.context.subtask_index"),
        (object.__new__(OperatorContext), "output", "out.collect_to(tag, record)"),
        (object.__new__(Timers), "set", "self.timers.at_event_time(ms)"),
        (object.__new__(Timers), "registerEventTimeTimer", "self.timers.at_event_time(ms)"),
    ],
)
def test_names_that_other_libraries_have_for_it(owner: object, name: str, text: str) -> None:
    """The name is not there, and what is there is said."""
    with pytest.raises(AttributeError) as raised:
        getattr(owner, name)
    assert text in remedy(raised.value)


def test_what_the_table_says_is_there() -> None:
    """Each attribute that a text names, of what it names."""
    texts = " ".join(text for names in _OWNERS.values() for text in names.values())
    places = {
        "out": Collector,
        "self.timers": Timers,
        "self.context.clock": SystemClock,
        "self.context": OperatorContext,
    }
    for place, kind in places.items():
        named = set(re.findall(rf"(?<![\w.]){re.escape(place)}\.(\w+)", texts)) - {"clock"}
        assert named, place
        fields = {*dir(kind), *vars(kind).get("__dataclass_fields__", ())}
        assert named <= fields, (place, named - fields)


def test_put_of_a_collector_is_ours_and_hints_all_the_same() -> None:
    with pytest.raises(TypeError) as raised:
        Collector().put(1)  # type: ignore[call-arg, arg-type]
    assert "write out.collect(record) in place of out.put(record)" in describe(raised.value).error_message


class AssignsToValue(KeyedOperator):
    total = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        total: Any = self.total
        total.value = record["n"]


class CallsOut(KeyedOperator):
    def process(self, record: Any, out: Any) -> None:
        out(record)


@pytest.mark.parametrize(
    ("operator", "text"),
    [
        (AssignsToValue, "write self.x.update(value) in place of self.x.value = value"),
        (CallsOut, "write out.collect(record) in place of out(record)"),
    ],
)
def test_a_mistake_with_what_a_task_gives_is_hinted_at(operator: type[KeyedOperator], text: str) -> None:
    with OperatorHarness(operator, key_by="k") as harness, pytest.raises(UserCodeError) as raised:
        harness.process([{"k": "a", "n": 1}])
    assert raised.value.__cause__ is not None
    assert text in remedy(raised.value.__cause__)


class _CallsTheKey(KeyedOperator):
    def process(self, record: Any, out: Collector) -> None:
        out.collect((self.key(), record))  # type: ignore[operator]


@pytest.mark.parametrize("error", [MemoryError(), pa.ArrowMemoryError("malloc of size 8 failed")], ids=repr)
def test_where_memory_ran_out_the_text_says_what_can_be_done(error: MemoryError) -> None:
    """Python's own MemoryError says nothing at all."""
    said = describe(error).error_message
    assert "ulimit -v" in said
    assert 'state_backend="rocksdb"' in said


class _CallsTheTimestamp(KeyedOperator):
    def process(self, record: Any, out: Collector) -> None:
        out.collect(self.timestamp() + 1)  # type: ignore[operator]


class _CallsAText(KeyedOperator):
    def process(self, record: Any, out: Collector) -> None:
        out.collect(record[self.key]())


@pytest.mark.parametrize(
    ("operator", "text"),
    [
        (_CallsTheKey, "write self.key in place of self.key()"),
        (_CallsTheTimestamp, "write self.timestamp in place of self.timestamp()"),
        (_CallsAText, ""),
    ],
    ids=["key", "timestamp", "another"],
)
def test_a_value_that_is_called_as_a_method(operator: type[KeyedOperator], text: str) -> None:
    with OperatorHarness(operator, key_by=lambda record: "a") as harness, pytest.raises(UserCodeError) as info:
        harness.process([{"a": "b"}], timestamps=[5])
    failure = describe(info.value)
    assert failure.cause is not None
    assert failure.cause.error_type == "TypeError"
    assert failure.cause.error_message.endswith(text or "object is not callable")
