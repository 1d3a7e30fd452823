"""What a newcomer gets wrong about records and their keys, with the way out: records that are sent into an inlet, and
those that cannot travel, or be changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from understudy import (
    Collector,
    Count,
    InvalidSetting,
    KeyedOperator,
    KeyedTimer,
    LocalCluster,
    RecordMismatch,
    ResultsUnavailable,
    UnsupportedValue,
    monotonous,
)
from understudy.messages.plain import pack_plain
from understudy.messages.row import make_rows
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.api.translation import translate
from understudy.runtime.clusters.record_packer import RecordPacker

ORDERS = pa.schema(
    [
        ("customer", pa.string()),
        pa.field("city", pa.string(), nullable=False),
        pa.field("t", pa.int64(), nullable=False),
    ]
)


@pytest.mark.parametrize(
    ("build", "is_warned_of"),
    [
        (lambda orders: orders.key_by("customer").aggregate(n=Count(), name="counts"), True),
        (lambda orders: orders.key_by("customer").join(orders.key_by("customer")), True),
        (lambda orders: orders.key_by("city", 0).aggregate(n=Count(), name="counts"), True),
        (lambda orders: orders.assign_timestamps("t", monotonous()).key_by("customer").process(Plain), True),
        (lambda orders: orders.key_by("city").aggregate(n=Count(), name="counts"), False),
        (lambda orders: orders.key_by(lambda order: order["customer"]).process(Plain), False),
        (lambda orders: orders.filter(has_customer).key_by("customer").process(Plain), False),
    ],
)
def test_a_key_that_may_be_null_in_an_inlet_is_warned_of(
    build: Any, is_warned_of: bool, caplog: pytest.LogCaptureFixture
) -> None:
    env = StreamEnvironment()
    build(env.from_inlet("orders", schema=ORDERS)).collect(name="out")
    translate(env, default_parallelism=1, task_managers=1, work_dir="")
    said = [each.getMessage() for each in caplog.records if "nullable=False" in each.getMessage()]
    assert len(said) == is_warned_of
    assert not said or ("'customer' of inlet 'orders'" in said[0] and ".filter(" in said[0])


def has_customer(order: Any) -> bool:
    return order["customer"] is not None


class Plain(KeyedOperator):
    def process(self, record: Any, out: Collector) -> None: ...


def test_a_record_that_lacks_a_nullable_column_is_not_advised_to_have_no_key() -> None:
    with pytest.raises(RecordMismatch, match="or send None where it may be null: a key may not"):
        RecordPacker(ORDERS).pack({"city": "Ulm", "t": 1})
    with pytest.raises(RecordMismatch, match=r"'customer', 'city', 't'; .*: add customer, city, t$"):
        RecordPacker(ORDERS).pack({})


def test_a_timer_is_no_record() -> None:
    with pytest.raises(UnsupportedValue, match=r"a KeyedTimer of this library is no record: .*time_ms, domain"):
        pack_plain([KeyedTimer(5)])


def test_a_list_is_not_sent_as_one_record_of_columns() -> None:
    with pytest.raises(RecordMismatch, match="wanted one record, found a list of 2: send_many takes several"):
        RecordPacker(ORDERS).pack([{"city": "Ulm"}, {}])


@pytest.mark.parametrize(
    ("given", "way"), [({"a": 1}, "send, for one"), ("abc", "send, for one"), (pa.table({}), "send_batch")]
)
def test_many_records_are_a_list(given: Any, way: str) -> None:
    env = StreamEnvironment()
    env.from_inlet("orders").collect(name="out")
    env.from_inlet("others").to_outlet("receipts")
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        with pytest.raises(InvalidSetting, match=f"send_many: wanted a list of records, found .*: call {way}"):
            job.inlet("orders").send_many(given)
        with pytest.raises(ResultsUnavailable, match=r"'receipts' is an outlet: read it with job.outlet\('receipts'\)"):
            job.results("receipts")
        job.cancel()


def made_here() -> Any:
    async def later() -> None:
        """Never run."""

    return later()


def thing(self: Any) -> None:
    """A function."""


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (made_here, "write `await` before the call that made it"),
        (lambda: (each for each in [1]), "make a list of it, with list(...)"),
        (lambda: thing, "is a call meant? Write brackets behind it"),
        (lambda: [].append, "is a call meant? Write brackets behind it"),
        (object, "make a class of your own a dataclass"),
    ],
)
def test_a_record_that_cannot_be_sent_says_its_remedy_once(make: Callable[[], Any], remedy: str) -> None:
    value = make()
    with pytest.raises(UnsupportedValue) as raised:
        pack_plain([1, (2, value)])
    text = str(raised.value)
    assert text.startswith("at [1][1]: a")
    assert text.count("cannot be sent or stored") == 1
    assert remedy in text
    assert raised.value.__suppress_context__, "below it are our own frames"
    getattr(value, "close", lambda: None)()


def test_a_row_that_is_to_be_changed_says_how_a_new_record_is_made() -> None:
    (row,) = make_rows(("id",), [(1,)])
    with pytest.raises(TypeError, match=r"a Row cannot be changed: .*\{\*\*row, 'id': \.\.\.\}"):
        row["id"] = 2
    assert {**row, "id": 2} == {"id": 2}
