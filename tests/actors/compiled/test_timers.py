"""Timers and event time of a compiled operator are those of the interpreted one, over failures and rescaling, and where
one goes on from the other's savepoint.

Flink: KeyedProcessOperatorTest, InternalTimerServiceImplTest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import KeyedOperator, ValueState
from understudy.actors.compiled import CannotCompile
from understudy.actors.errors import EndlessTimers, NoEventTime, UserCodeError
from understudy.actors.flow.elements import END_OF_TIME, NO_WATERMARK
from understudy.messages import KeyedStateHandle
from understudy.state.columnar import slot_backend, slot_timers
from understudy.state.errors import InvalidState, StateIncompatible
from understudy.state.keys.key_groups import key_group

from ...examples import examples
from .stage import MAX_PARALLELISM, Stage, interpreted
from .timed_operators import EVERY, Chains, Sessions, Ticks

pytest.importorskip("numba")

Row = tuple[Any, int, int]
"""Key, `n`, event time."""
Step = tuple[list[Row], int, int | None, list[bool]]
"""Records; how far the watermark goes then; after how many parts of that the job fails, if it does, and the subtasks
that it goes on with: whether each is compiled.
"""
KEYS: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "text": (pa.string(), "abcd"),
    "int16": (pa.int16(), (-1, 0, 7, 300)),
    "texts of a dictionary": (pa.dictionary(pa.int8(), pa.string()), "abcd"),
    "date": (pa.date32(), (0, 1, 2)),
}


@st.composite
def steps(draw: st.DrawFn, keys: Sequence[Any]) -> list[Step]:
    now, made = 0, []
    for _ in range(draw(st.integers(1, 4))):
        row = st.tuples(st.sampled_from(keys), st.integers(-9, 9), st.integers(now - 4, now + 25))
        now += draw(st.integers(0, 30))
        failure = draw(st.none() | st.integers(0, 3))
        made.append(
            (draw(st.lists(row, max_size=14)), now, failure, draw(st.lists(st.booleans(), min_size=1, max_size=3)))
        )
    return made


class Job:
    """All subtasks of an operator."""

    def __init__(self, cls: type[KeyedOperator], are_compiled: Sequence[bool], kind: pa.DataType) -> None:
        self._cls, self._kind = cls, kind
        self._stages = self._restored(are_compiled, [])

    def process(self, rows: Sequence[Row]) -> Iterator[tuple[Any, int | None]]:
        keys = pa.array([key for key, _, _ in rows], self._kind)
        groups = [key_group(key, MAX_PARALLELISM) for key in keys.to_pylist()]
        for stage in self._stages:
            own = [at for at, group in enumerate(groups) if group in stage.groups]
            if own:
                numbers = pa.array([rows[at][1] for at in own], pa.int64())
                batch = pa.record_batch({"key": keys.take(pa.array(own)), "n": numbers})
                yield from stage.timed(batch, [rows[at][2] for at in own])

    def advance(self, watermark_ms: int, parts: int | None = None) -> Iterator[tuple[Any, int | None]]:
        for stage in self._stages:
            yield from stage.advance(watermark_ms, parts)

    def fail(self, are_compiled: Sequence[bool]) -> None:
        self._stages = self._restored(are_compiled, [handle for stage in self._stages for handle in stage.snapshot()])

    def pending(self) -> list[Any]:
        return sorted((timer for stage in self._stages for timer in stage.backend.timers().event), key=repr)

    def held(self) -> dict[str, dict[Any, Any]]:
        found: dict[str, dict[Any, Any]] = {}
        for stage in self._stages:
            for name, values in stage.held().items():
                found.setdefault(name, {}).update(values)
        return found

    def _restored(self, are_compiled: Sequence[bool], handles: list[KeyedStateHandle]) -> list[Stage]:
        classes = [self._cls if is_compiled else interpreted(self._cls) for is_compiled in are_compiled]
        count = len(classes)
        return [Stage(cls(), subtask=(at, count), restored=handles) for at, cls in enumerate(classes)]


def by_key(results: Sequence[tuple[Any, int | None]]) -> dict[Any, Any]:
    """In order for each key, of those that name it. Floats and ints, as they come interpreted, are one."""
    found: dict[Any, Any] = {}
    for record, time_ms in results:
        key = record[0] if isinstance(record, tuple) else "any"
        found.setdefault(key, []).append((record, time_ms))
    return found | {"any": sorted(found.get("any", []))}


@pytest.mark.parametrize("cls", EVERY)
@examples(40)
@given(data=st.data())
def test_results_state_and_timers_are_those_of_the_interpreted_operator(
    cls: type[KeyedOperator], data: st.DataObject
) -> None:
    kind, keys = KEYS[data.draw(st.sampled_from(sorted(KEYS)))]
    compiled, wanted = Job(cls, [True], kind), Job(cls, [False], kind)
    found, expected = [], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slot_timers, "AT_ONCE", data.draw(st.sampled_from([1, 2, 5, 1000])))
        patch.setattr(slot_backend, "_FEWEST_KEYS", 2)
        for rows, watermark_ms, failure, are_compiled in data.draw(steps(keys)):
            found += compiled.process(rows)
            expected += wanted.process(rows)
            if failure is not None:
                found += compiled.advance(watermark_ms, failure)
                compiled.fail(are_compiled)
            found += compiled.advance(watermark_ms)
            expected += wanted.advance(watermark_ms)
            assert by_key(found) == by_key(expected)
            assert compiled.pending() == wanted.pending()
        found += compiled.advance(END_OF_TIME)
        expected += wanted.advance(END_OF_TIME)
    assert by_key(found) == by_key(expected)
    assert compiled.held() == wanted.held()
    assert not compiled.pending()


def rows(numbers: Sequence[int], key: Any = "a") -> pa.RecordBatch:
    return pa.record_batch({"key": pa.array([key] * len(numbers)), "n": pa.array(numbers, pa.int64())})


def test_of_different_keys_they_fire_in_the_order_of_their_times() -> None:
    stage = Stage(Sessions())
    times = np.random.default_rng(7).permutation(5000).tolist()
    stage.timed(pa.record_batch({"key": pa.array(range(5000)), "n": pa.array([1] * 5000, pa.int64())}), times)
    assert [time_ms for _, time_ms in stage.advance(END_OF_TIME)] == sorted(time_ms + 5 for time_ms in times)


def test_no_more_than_a_slice_fires_before_a_barrier_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_timers, "AT_ONCE", 100)
    stage = Stage(Sessions())
    stage.timed(pa.record_batch({"key": pa.array(range(250)), "n": pa.array([1] * 250, pa.int64())}), [3] * 250)
    counts = [len(stage.advance(20, 0)) for _ in range(4)]
    assert counts == [100, 100, 50, 0]


def test_timers_fire_before_the_first_batch_after_a_restore() -> None:
    for parts in (("a",), (3,), ("a", 3)):
        named = {f"key{at}": pa.array([part]) for at, part in enumerate(parts)}
        for cls in (Ticks, interpreted(Ticks)):
            before = Stage(cls(), *named)
            before.timed(pa.record_batch(named), [13])
            after = Stage(Ticks(), *named, restored=before.snapshot())
            assert after.advance(19) == [(1, 19)]
            assert list(after.backend.timers().event) == [(29, parts if len(parts) > 1 else parts[0], ())]


def test_a_number_that_is_a_float_in_process_is_one_in_on_timer_too() -> None:
    stage = Stage(Chains())
    assert stage.timed(rows([6]), [4]) == [(("a", 6, 0.5), 4)]
    records = [record for record, _ in stage.advance(50)]
    assert records
    assert all(type(record[2]) is float for record in records)


def test_the_schema_at_submit_is_that_of_what_is_emitted() -> None:
    schema = rows([1]).schema
    assert Stage(Chains(), schema=schema).schema == pa.schema({"_1": pa.string(), "_2": pa.int64(), "_3": pa.float64()})
    assert Stage(Sessions(), schema=schema).schema.names == [f"_{at}" for at in range(1, 7)]
    assert Stage(Ticks(), schema=schema).schema is None


def test_records_without_event_times_may_set_timers_and_have_no_timestamp() -> None:
    class Untimed(KeyedOperator):
        compiled = True

        def process(self, record: Any, out: Any) -> None:
            self.timers.at_event_time(record.n)
            out.collect((self.key, self.watermark))

        def on_timer(self, timer: Any, out: Any) -> None:
            out.collect((self.key, self.timestamp))

    for cls in (Untimed, interpreted(Untimed)):
        stage = Stage(cls())
        assert stage.timed(rows([5, 3]), None) == [(("a", NO_WATERMARK), None)] * 2
        assert stage.advance(9) == [(("a", 3), 3), (("a", 5), 5)]
        assert stage.timed(rows([5]), None) == [(("a", 9), None)]
    for cls in (Sessions, interpreted(Sessions)):
        stage = Stage(cls())
        stage.operator.context.name = "sessions"
        with pytest.raises(UserCodeError) as raised:
            stage.timed(rows([1]), None)
        assert isinstance(raised.value.__cause__, NoEventTime)
        assert "operator 'sessions': self.timestamp" in str(raised.value.__cause__)


def test_the_watermark_is_that_of_the_records_split() -> None:
    class Marked(KeyedOperator):
        compiled = True

        def process(self, record: Any, out: Any) -> None:
            out.collect((self.key, self.watermark, self.timestamp))

    for cls in (Marked, interpreted(Marked)):
        stage = Stage(cls())
        stage.advance(4)
        stage.operator.split_watermarks = np.array([NO_WATERMARK, 3, 9])
        assert [record for record, _ in stage.timed(rows([1, 1, 1]), [7, 8, 9])] == [
            ("a", 4, 7),
            ("a", 4, 8),
            ("a", 9, 9),
        ]


@pytest.mark.parametrize("time_ms", [-(2**63), -1, 0, 2**63 - 1])
def test_the_first_and_the_last_time_there_are_can_be_timers(time_ms: int) -> None:
    class At(KeyedOperator):
        compiled = True

        def process(self, record: Any, out: Any) -> None:
            self.timers.at_event_time(record.n)
            self.timers.at_event_time(record.n)

        def on_timer(self, timer: Any, out: Any) -> None:
            out.collect((self.key, timer.time_ms))

    stage = Stage(At())
    stage.timed(rows([time_ms]), [0])
    restored = Stage(At(), restored=stage.snapshot())
    for each in (stage, restored):
        assert list(each.backend.timers().event) == [(time_ms, "a", ())]
        assert each.advance(END_OF_TIME) == [(("a", time_ms), time_ms)]


def test_a_key_in_the_place_of_a_forgotten_one_has_timers_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_backend, "_FEWEST_KEYS", 4)
    stage = Stage(Timed())

    def process(keys: str, numbers: list[int]) -> None:
        stage.timed(pa.record_batch({"key": list(keys), "n": pa.array(numbers, pa.int64())}), [0] * len(keys))

    process("abcde", [5, 5, 50, 5, 5])
    assert len(stage.advance(9)) == 4
    process("fg", [50, 50])
    assert sorted(record for record, _ in stage.advance(60)) == [("c", 1), ("f", 1), ("g", 1)]


def test_hooks_in_python_have_the_same_timers() -> None:
    stage = Stage(Ticks())
    stage.timed(rows([1]), [3])
    operator = stage.operator
    keys = operator.keys()
    for _ in keys:
        assert operator.timers.delete_event_time(9)
        assert not operator.timers.delete_event_time(9)
        operator.timers.at_event_time(4)
        with pytest.raises(InvalidState, match=r"a timer with the namespace \(1, 2\).*leave `compiled` out"):
            operator.timers.at_event_time(4, (1, 2))
        with pytest.raises(InvalidState, match=r"a processing-time timer.*leave `compiled` out"):
            operator.timers.at_processing_time(4)
    stage.timed(rows([1]), [3])
    assert sorted(stage.backend.timers().event) == [(4, "a", ()), (9, "a", ())]
    assert stage.advance(5) == [(2, 4)]


def test_timers_that_a_compiled_operator_does_not_have_are_refused_when_they_are_restored() -> None:
    for register, found in (
        (lambda timers: timers.at_processing_time(5), "processing-time timers"),
        (lambda timers: timers.at_event_time(5, "w"), "one with the namespace 'w'"),
    ):
        before = Stage(interpreted(Ticks)())
        before.timed(rows([1]), [3])
        keys = before.operator.keys()
        for _ in keys:
            register(before.operator.timers)
        with pytest.raises(StateIncompatible, match=f"the snapshot holds {found}: leave `compiled` out"):
            Stage(Ticks(), restored=before.snapshot())


def test_an_exception_in_on_timer_is_the_users_own() -> None:
    class Fails(Ticks):
        def on_timer(self, timer: Any, out: Any) -> None:
            if timer.time_ms > 10:
                raise ValueError("late")

    stage = Stage(Fails())
    stage.timed(rows([1, 1]), [3, 13])
    assert stage.advance(10) == []
    with pytest.raises(ValueError, match="late"):
        stage.advance(20)


class Timed(KeyedOperator):
    compiled = True
    count = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        self.timers.at_event_time(record.n)

    def on_timer(self, timer: Any, out: Any) -> None:
        out.collect((self.key, 1))


def waits_by_the_clock(self: Any, record: Any, out: Any) -> None:
    self.timers.at_processing_time(record.n)


def asks_the_clock(self: Any, record: Any, out: Any) -> None:
    self.timers.at_event_time(self.processing_time())


def has_a_namespace(self: Any, record: Any, out: Any) -> None:
    self.timers.at_event_time(record.n, (0, 10))


def gives_a_float(self: Any, record: Any, out: Any) -> None:
    self.timers.at_event_time(record.n / 2)


def gives_a_text(self: Any, record: Any, out: Any) -> None:
    self.timers.at_event_time(record.key)


def deletes_a_number(self: Any, record: Any, out: Any) -> None:
    self.timers.delete(record.n)


def asks_whether_it_was_there(self: Any, record: Any, out: Any) -> None:
    if self.timers.delete_event_time(record.n):
        out.collect((self.key, 1))


def asks_for_the_domain(self: Any, timer: Any, out: Any) -> None:
    out.collect((self.key, timer.domain))


def collects_something_else(self: Any, timer: Any, out: Any) -> None:
    out.collect((self.key, 1, 2))


def process_collects(self: Any, record: Any, out: Any) -> None:
    out.collect((self.key, 0.5))


REFUSED = (
    (
        {"process": waits_by_the_clock},
        "line .*self.timers.at_processing_time: a compiled function has event-time timers",
    ),
    ({"process": asks_the_clock}, "line .*self.processing_time: a compiled function can call methods of your own"),
    ({"process": has_a_namespace}, "line .*self.timers.at_event_time with a namespace: .*leave `compiled` out"),
    ({"process": gives_a_float}, r"line .*takes a whole number of ms, found float: use int\(\.\.\.\) of it"),
    ({"process": gives_a_text}, "line .*takes a whole number of ms, found column 'key' of type string"),
    ({"process": deletes_a_number}, "line .*self.timers.delete takes a timer, found int: .*use delete_event_time"),
    ({"process": asks_whether_it_was_there}, "line .*does not know whether a timer was there"),
    ({"on_timer": asks_for_the_domain}, "line .*timer.domain: .*only timer.time_ms"),
    (
        {"process": process_collects, "on_timer": collects_something_else},
        r"on_timer cannot be compiled: .*process collects \(column 'key', float\), on_timer \(column 'key', int, int\)",
    ),
    ({"on_timer": 5}, "on_timer is no plain method: found int"),
)


@pytest.mark.parametrize(("methods", "text"), REFUSED)
def test_what_cannot_be_compiled_is_refused_with_a_hint(methods: dict[str, Callable[..., None]], text: str) -> None:
    with pytest.raises(CannotCompile, match=text):
        Stage(type("Refused", (Timed,), methods)(), schema=rows([1]).schema)


def test_columns_passed_on_may_come_from_the_record_in_process_and_from_the_key_in_on_timer() -> None:
    class Passes(Timed):
        def process(self, record: Any, out: Any) -> None:
            self.timers.at_event_time(record.n)
            out.collect((record.key, record.n))

    stage = Stage(Passes(), schema=rows([1]).schema)
    assert stage.timed(rows([4]), [2]) == [(("a", 4), 2)]
    assert stage.advance(4) == [(("a", 1), 4)]


def test_timers_that_always_set_the_next_one_are_an_error_at_the_end_of_the_data() -> None:
    class Always(KeyedOperator):
        compiled = True

        def process(self, record: Any, out: Any) -> None:
            self.timers.at_event_time(self.timestamp + 1)

        def on_timer(self, timer: Any, out: Any) -> None:
            self.timers.at_event_time(timer.time_ms + 1)

    stage = Stage(Always())
    stage.timed(rows([1]), [3])
    with pytest.raises(EndlessTimers):
        stage.advance(END_OF_TIME)
