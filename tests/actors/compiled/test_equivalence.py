"""A compiled operator does what the interpreted one does: outputs, state, and the record at which it raises."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy import KeyedOperator, ValueState
from understudy.actors.errors import UserCodeError
from understudy.actors.flow.records import rows_of
from understudy.messages import DictRow
from understudy.state.errors import NoCurrentKey

from ...examples import examples
from ..extension_types import Code
from .operators import EVERY, Repeats, Running
from .stage import Stage, interpreted

pytest.importorskip("numba")

NUMBERS = (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32(), pa.float32())
SCHEMA = pa.schema({"key": pa.string(), "n": pa.int64(), "f": pa.float64(), "b": pa.bool_(), "name": pa.string()})


@st.composite
def batches(draw: st.DrawFn) -> list[pa.RecordBatch]:
    """Several batches, some of them slices, so that offsets count."""
    number = st.floats() if draw(st.booleans()) else st.sampled_from([0.5, -2.0, 3.25])
    row = st.tuples(
        st.sampled_from("abc"), st.integers(-100, 100), number, st.booleans(), st.none() | st.text(max_size=3)
    )
    made = []
    for rows in draw(st.lists(st.lists(row, min_size=1, max_size=12), min_size=1, max_size=3)):
        columns = zip(SCHEMA.types, zip(*rows, strict=True), strict=True)
        batch = pa.RecordBatch.from_arrays([pa.array(column, kind) for kind, column in columns], schema=SCHEMA)
        made.append(batch.slice(draw(st.integers(0, len(batch) - 1))))
    return made


@pytest.mark.parametrize("cls", EVERY)
@examples(60)
@given(given=batches())
def test_outputs_state_and_failures_are_those_of_the_interpreted_operator(
    cls: type[KeyedOperator], given: list[pa.RecordBatch]
) -> None:
    compiled, wanted = Stage(cls()), Stage(interpreted(cls)())
    for batch in given:
        found = _told(compiled, batch)
        assert found == _told(wanted, batch)
        if isinstance(found, str):
            return
    assert _exact(compiled.held()) == _exact(wanted.held())


def _told(stage: Stage, batch: pa.RecordBatch) -> Any:
    """The records that come out of a batch, or at which record it raised what."""
    try:
        return [_exact(record) for record in stage.records(batch)]
    except UserCodeError as error:
        return f"{type(error.__cause__).__name__} at {error.record_position}"


def _exact(value: Any) -> Any:
    """Floats by their bits, so that nan equals nan and 0.0 is not -0.0."""
    if isinstance(value, float):
        return struct.pack("d", value) if value == value else "nan"
    if isinstance(value, dict):
        return {key: _exact(item) for key, item in value.items()}
    return tuple(map(_exact, value)) if isinstance(value, tuple) else value


def rows(numbers: Sequence[int], key: str = "a") -> pa.RecordBatch:
    """Records of one key that differ in `n` only."""
    every = {"key": key, "f": None, "b": True, "name": None}
    columns = {name: pa.array([every.get(name)] * len(numbers), SCHEMA.field(name).type) for name in SCHEMA.names}
    return pa.record_batch(columns | {"n": pa.array(numbers, pa.int64())})


def test_narrow_numbers_and_keys_of_several_types_are_pythons_numbers() -> None:
    class Sum(KeyedOperator):
        compiled = True

        def process(self, record: Any, out: Any) -> None:
            out.collect((self.key, record.a + record.b + record.c + record.d, record.e * record.f, record.g))

    columns = {name: pa.array([100, 7, 127], kind) for name, kind in zip("abcdefg", NUMBERS, strict=True)}
    for keys in (pa.array([3, 1, 3], pa.int16()), pa.array([0.5, -1.0, 2.0]), pa.array([1, 2, 3], pa.date32())):
        given = pa.record_batch({"key": keys, **columns}).slice(1)
        assert Stage(Sum()).records(given) == Stage(interpreted(Sum)()).records(given)


def test_one_record_may_give_more_rows_than_there_is_room_for() -> None:
    class Many(KeyedOperator):
        compiled = True

        def process(self, record: Any, out: Any) -> None:
            for step in range(record.n):
                out.collect((step, step * 0.5, step % 2 == 0, record.key))

    given = rows([1, 0, 5000, 3])
    found = Stage(Many()).records(given, given)
    assert found == Stage(interpreted(Many)()).records(given, given)
    assert len(found) == 2 * 5004


def test_what_is_collected_from_a_batch_outlives_the_next_batch() -> None:
    stage = Stage(Running())
    (first,) = stage.process(rows([5, 7]))
    before = first.to_pylist()
    stage.process(rows([1, 2]))
    assert first.to_pylist() == before


def test_lists_of_records_are_taken_as_the_interpreted_operator_takes_them() -> None:
    class ByName(KeyedOperator):
        compiled = True

        def process(self, record: Any, out: Any) -> None:
            out.collect((self.key, record["n"] * 2))

    class ByNameAndAttribute(KeyedOperator):
        compiled = True

        def process(self, record: Any, out: Any) -> None:
            out.collect((record["key"], record.n, record["items"], record["dep delay"]))

    class Whole(KeyedOperator):
        compiled = True

        def process(self, record: Any, out: Any) -> None:
            out.collect(record + 1)

    class Unpacked(KeyedOperator):
        compiled = True

        def process(self, record: Any, out: Any) -> None:
            key, number = record
            out.collect((key, record[0], number, record[-1]))

    named = [{"key": key, "n": 3, "items": 4, "dep delay": 0.5} for key in "ab"]
    for cls, key, records in (
        (ByName, "key", [{"key": "a", "n": 3}, {"key": "b", "n": 4}]),
        (ByNameAndAttribute, "key", list(map(DictRow, named))),
        (ByNameAndAttribute, "key", pa.RecordBatch.from_pylist(named)),
        (ByNameAndAttribute, "key", rows_of(pa.RecordBatch.from_pylist(named))),
        (Whole, lambda number: number % 2, [1, 2, 3]),
        (Unpacked, 0, [("a", 1.5), ("b", 2.5)]),
        (Unpacked, lambda record: record[0], [("a", 1.5), ("b", 2.5)]),
        (Unpacked, lambda record: (record[0], 7), [("a", 1.5), ("b", 2.5)]),
    ):
        assert Stage(cls(), key).records(records) == Stage(interpreted(cls)(), key).records(records)  # type: ignore[operator]


def test_a_key_of_several_columns_is_a_tuple() -> None:
    class Parts(KeyedOperator):
        compiled = True
        count = ValueState(int, default=0)

        def process(self, record: Any, out: Any) -> None:
            name, number = self.key
            self.count.update(self.count.value() + number)
            out.collect((number, name, self.count.value()))

    given = pa.record_batch({"name": ["a", "b", "a"], "n": [1, 2, 1]})
    compiled, wanted = Stage(Parts(), "name", "n"), Stage(interpreted(Parts)(), "name", "n")
    assert compiled.records(given) == wanted.records(given)
    assert compiled.held() == wanted.held() == {"count": {("a", 1): 2, ("b", 2): 2}}


class NamedCounts(KeyedOperator):
    compiled = True
    seen = ValueState(int, default=0)

    def process(self, record: Any, out: Any) -> None:
        self.seen.update(self.seen.value() + 1)
        out.collect((record.name, self.key, self.seen.value()))


@pytest.mark.parametrize("key", ["key", "name"])
def test_columns_of_a_users_own_extension_type_are_passed_on_and_are_keys(key: str) -> None:
    codes = pa.ExtensionArray.from_storage(Code(), pa.array(["x", "y", "x"]))
    batch = pa.record_batch({"key": ["a", "a", "b"], "name": codes})
    compiled, wanted = Stage(NamedCounts(), key, schema=batch.schema), Stage(interpreted(NamedCounts)(), key)
    assert compiled.records(batch) == wanted.records(batch)
    assert compiled.schema.types[0] == Code()


def test_numbers_of_the_instance_may_change_between_batches() -> None:
    class Scaled(KeyedOperator):
        compiled = True
        factor: float = 2

        def process(self, record: Any, out: Any) -> None:
            out.collect((record.n * self.factor,))

    for factor in (3, 0.5, True):
        stage = Stage(Scaled())
        assert stage.records(rows([4])) == [(8,)]
        stage.operator.factor = factor  # type: ignore[attr-defined]
        assert stage.records(rows([4])) == [(4 * factor,)]


def test_hooks_in_python_see_the_state_that_the_kernel_wrote() -> None:
    stage = Stage(Repeats())
    stage.process(rows([3], key="a"), rows([5], key="b"))
    operator = stage.operator
    assert not hasattr(operator, "key")
    with pytest.raises(NoCurrentKey, match="keyed state 'left'"):
        operator.left.value()  # type: ignore[attr-defined]
    left, keys = operator.left, operator.keys()  # type: ignore[attr-defined]
    assert [(key, operator.key, left.value()) for key in keys] == [("a", "a", 2), ("b", "b", 4)]
    stage.backend.current_key = "a"
    operator.left.update(1)  # type: ignore[attr-defined]
    stage.process(rows([9], key="a"))
    stage.backend.current_key = "a"
    assert operator.left.value() == 0  # type: ignore[attr-defined]
