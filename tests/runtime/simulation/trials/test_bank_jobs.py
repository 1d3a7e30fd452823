"""Jobs of a bank with mistakes that colleagues make: what finds them, and what the report says."""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Iterable
from typing import Any

import fsspec
import pyarrow as pa
import pytest

from understudy import (
    END,
    AsyncSettings,
    FromSplit,
    IdempotentSink,
    KeyedOperator,
    Operator,
    OperatorListState,
    Retry,
    Source,
    StreamEnvironment,
    ValueState,
)
from understudy import Sum as Total
from understudy.testing import FakeService, KillProcess, TransactionalLog, Unfit, assert_exactly_once

AMOUNTS = [(37 * number) % 991 / 7 for number in range(60)]


class Sum(KeyedOperator):
    total = ValueState(float, default=0.0)

    def process(self, amount: float, out: Any) -> None:
        self.total.update(self.total.value() + amount)

    def on_end(self, out: Any) -> None:
        for key in self.keys():
            out.collect((key, self.total.value()))


def _float_sum() -> StreamEnvironment:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
    branches = env.from_collection(AMOUNTS).union(env.from_collection(AMOUNTS[::-1]))
    branches.key_by(lambda _: "all").process(Sum).collect(name="sums")
    return env


def test_sums_of_floats_in_another_order_are_called_so_and_no_fault_is_blamed() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(_float_sum)
    told = str(caught.value)
    assert "Likely cause: found and wanted are the same but for the last digits of floats" in told
    assert "No fault is needed for it" in told
    assert "so they matter" not in told


BANK = FakeService(lambda payment: "done", name="bank", error_rate=0.1, lost_rate=0.1)


class Transfer(Operator):
    async_settings = AsyncSettings(retry=Retry(attempts=20, first_delay_ms=10))

    async def process(self, payment: int, out: Any) -> None:
        out.collect((payment, await BANK.call(payment, key=f"payment-{payment}")))


class TransferUnderAnyKey(Transfer):
    async def process(self, payment: int, out: Any) -> None:
        out.collect((payment, await BANK.call(payment, key=str(uuid.uuid4()))))


class TransferWithoutKey(Transfer):
    async def process(self, payment: int, out: Any) -> None:
        out.collect((payment, await BANK.call(payment)))


def _transferred() -> Iterable[Any]:
    return [payment for payments in BANK.effects().values() for payment in payments]


def _transfers(operator: type[Operator]) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
    env.from_collection(range(30)).process(operator).collect(name="done")
    return env


@pytest.mark.parametrize(
    ("operator", "told"),
    [
        (TransferUnderAnyKey, r"(?s)unrepeatable: .* sink 'transferred' .*Likely cause: process calls uuid.uuid4 \("),
        (TransferWithoutKey, r"exactly-once: sink 'transferred' has committed .* too many"),
    ],
)
def test_a_payment_that_is_made_twice_is_found_where_effects_are_compared(operator: type[Operator], told: str) -> None:
    def build() -> StreamEnvironment:
        return _transfers(operator)

    outside = {"transferred": _transferred}
    with pytest.raises(AssertionError, match=told) as caught:
        assert_exactly_once(build, outside=outside)
    assert "assert_exactly_once(build, outside=outside, first_seed=0, histories=1)" in str(caught.value)


def test_payments_with_keys_of_their_own_are_made_once() -> None:
    assert_exactly_once(lambda: _transfers(Transfer), outside={"transferred": _transferred}, histories=20)


class Audited(KeyedOperator):
    """Writes a file of its own, which has each record once more after each restart."""

    def process(self, number: int, out: Any) -> None:
        with fsspec.open("sim://audit", "a") as file:
            file.write(f"{number}\n")
        out.collect(number)


def _audit() -> list[str]:
    with fsspec.open("sim://audit", "r") as file:
        return list(file.read().splitlines())


def test_a_file_that_an_operator_writes_itself_is_compared_when_it_is_named() -> None:
    def build() -> StreamEnvironment:
        env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
        env.from_collection(range(30)).key_by(lambda number: number % 3).process(Audited).collect(name="numbers")
        return env

    kill = [KillProcess(at_ms=2_500, who=0), KillProcess(at_ms=2_500, who=1)]
    assert_exactly_once(build, faults=kill, histories=3)
    assert_exactly_once(build, faults=kill, outside={"audit": lambda: set(_audit())}, histories=3)
    with pytest.raises(AssertionError, match=r"exactly-once: sink 'audit' has committed .* too many"):
        assert_exactly_once(build, faults=kill, outside={"audit": _audit})


@pytest.mark.parametrize(
    ("outside", "problem"),
    [
        (_audit, "outside: wanted functions by name"),
        ({"audit": ["a", "b"]}, "outside: 'audit': wanted a function that reads it at the end of each history"),
        ({"done": _audit}, "outside: 'done' is the name of a sink"),
    ],
)
def test_what_is_no_reader_of_the_outside_is_refused(outside: Any, problem: str) -> None:
    with pytest.raises(Unfit, match=problem):
        assert_exactly_once(lambda: _transfers(Transfer), outside=outside)


class PaidOrder(KeyedOperator):
    """Takes it that an order comes before its payment."""

    inputs = 2
    order = ValueState(int)

    def process(self, order: int, out: Any) -> None:
        self.order.update(order)

    def process_2(self, payment: int, out: Any) -> None:
        if self.order.value() is not None:
            out.collect((self.order.value(), "paid"))


class PaidOrderEitherWay(PaidOrder):
    paid = ValueState(bool, default=False)

    def process(self, order: int, out: Any) -> None:
        if self.paid.value():
            out.collect((order, "paid"))
        else:
            super().process(order, out)

    def process_2(self, payment: int, out: Any) -> None:
        self.paid.update(True)
        super().process_2(payment, out)


def _paid_orders(operator: type[PaidOrder]) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
    orders = env.from_collection(range(40), name="orders").key_by(lambda order: order)
    payments = env.from_collection(range(-10, 30), name="payments").key_by(lambda payment: payment)  # ten orders behind
    orders.connect(payments).process(operator).collect(name="paid")
    return env


def test_two_streams_have_no_order_between_them() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(lambda: _paid_orders(PaidOrder))
    told = str(caught.value)
    assert re.search("records? lost", told)
    assert "In this history source 'payments' runs ahead of the others: its records come first." in told
    assert "0 recoveries: order" in told
    assert "No fault is needed for it" in told
    assert_exactly_once(lambda: _paid_orders(PaidOrderEitherWay), histories=20)


def test_an_order_that_faults_brought_about_is_shown_without_them() -> None:
    """In the history of seed 8 no source runs ahead; what its kills replay comes in another order."""
    with pytest.raises(AssertionError, match=r"No fault is needed for it:\n    .*faults=\(\)\)") as caught:
        assert_exactly_once(lambda: _paid_orders(PaidOrder), first_seed=8, histories=1)
    assert "0 recoveries: order" in str(caught.value)


def _fee_of_each_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    cents = batch.column("cents").to_pylist()
    return batch.set_column(1, "cents", pa.array([cents[0] + 1, *cents[1:]], pa.int64()))


def test_what_depends_on_where_batches_end_is_noted() -> None:
    schema = pa.schema([("account", pa.string()), ("cents", pa.int64())])

    def build(function: Any) -> StreamEnvironment:
        env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
        payments = env.from_collection([{"account": f"a{n % 3}", "cents": n} for n in range(60)])
        rows = payments.map_batches(function, schema=schema)
        rows.key_by("account").aggregate("end", cents=Total("cents")).map(tuple).collect(name="totals")
        return env

    survived = assert_exactly_once(lambda: build(_fee_of_each_batch), histories=1)
    assert survived.in_batches.startswith("exactly-once: sink 'totals' has committed 3 records lost: ('a0', ")
    assert "; its output depends on where batches end (.in_batches): exactly-once: " in str(survived)
    assert not assert_exactly_once(lambda: build(lambda batch: batch), histories=1).in_batches


class Numbered(Operator):
    """How many it has seen, in a list."""

    counts = OperatorListState(int, mode="union")

    def open(self) -> None:
        self.count = sum(self.counts.get())

    def process_batch(self, batch: Any, out: Any) -> None:
        self.count += len(batch)

    def on_checkpoint(self, checkpoint_id: Any) -> None:
        self.counts.update([self.count])

    def on_end(self, out: Any) -> None:
        out.collect(self.count)


class NumberedOnceMore(Numbered):
    counts = OperatorListState(int)

    def on_checkpoint(self, checkpoint_id: Any) -> None:
        self.counts.add(self.count)


@pytest.mark.parametrize(("operator", "mode"), [(Numbered, "union"), (NumberedOnceMore, "split")])
def test_an_attribute_that_comes_back_from_a_list_as_something_else_is_not_called_undeclared(
    operator: type[Operator], mode: str
) -> None:
    def build() -> StreamEnvironment:
        env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
        numbers = env.from_collection(range(40)).rebalance().process(operator)
        numbers.key_by(lambda _: 0).process(AllTogether).collect(name="count")
        return env

    kills = [KillProcess(at_ms=4_500, who=0), KillProcess(at_ms=4_500, who=1)]
    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(build, faults=kills)
    told = str(caught.value)
    assert f"Likely cause: attribute 'count' of {operator.__name__} comes back as something else: 0 when it was" in told
    assert f"Is it made of 'counts' ('{mode}')? At a barrier, update(...) replaces what the list holds" in told
    assert "is not declared as state" not in told


class AllTogether(KeyedOperator):
    total = ValueState(int, default=0)

    def process(self, count: int, out: Any) -> None:
        self.total.update(self.total.value() + count)

    def on_end(self, out: Any) -> None:
        for _ in self.keys():
            out.collect(self.total.value())


class Accounts(IdempotentSink):
    key = 0

    def upsert(self, batch: Any) -> None:
        TransactionalLog("accounts").write(batch)


class Added(KeyedOperator):
    total = ValueState(int, default=0)

    def process(self, payment: dict[str, Any], out: Any) -> None:
        self.total.update(self.total.value() + payment["cents"])
        out.collect((self.key, self.total.value()))


class AddedInMemory(KeyedOperator):
    def open(self) -> None:
        self.totals: dict[str, int] = {}

    def process(self, payment: dict[str, Any], out: Any) -> None:
        self.totals[self.key] = self.totals.get(self.key, 0) + payment["cents"]
        out.collect((self.key, self.totals[self.key]))


def _accounts(operator: type[KeyedOperator]) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
    payments = env.from_collection([{"account": f"a{n % 4}", "cents": n} for n in range(40)])
    payments.key_by("account").process(operator).sink_to(Accounts)
    return env


def _rows() -> Iterable[Any]:
    return dict(TransactionalLog("accounts").committed()).items()


def test_of_upserts_the_rows_that_are_left_are_compared() -> None:
    outside = {"accounts": _rows}
    assert_exactly_once(lambda: _accounts(Added), outside=outside, histories=30)
    with pytest.raises(AssertionError, match=r"attribute 'totals' of AddedInMemory is not declared as state"):
        assert_exactly_once(lambda: _accounts(AddedInMemory), outside=outside)


def test_who_compares_each_upsert_is_told_how_to_compare_the_rows() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(lambda: _accounts(Added))
    told = str(caught.value)
    assert "sets rows, and sets them again after a restore: the log 'accounts' has each time" in told
    assert "outside={'accounts': lambda: dict(TransactionalLog('accounts').committed()).items()}" in told


class Branches(Source):
    """Eight splits of eight records, in turn."""

    def open(self) -> None:
        now, of = self.context.subtask_index, self.context.parallelism
        self.left = [(split, 0) for split in range(8) if split % of == now]

    def current_splits(self) -> list[str]:
        return [f"branch-{split}" for split, _ in self.left]

    def poll(self) -> Any:
        if not self.left:
            return END
        (split, row), *others = self.left
        self.left = [*others, (split, row + 1)] if row < 7 else others
        return FromSplit(f"branch-{split}", [(split, row)])

    def offset(self) -> Any:
        return self.left

    def seek(self, offset: Any) -> None:
        self.left = [(split, row) for split, row in offset]

    def rescale(self, offsets: Any) -> None:
        left = sorted((split, row) for offset in offsets for split, row in offset)
        self.left = left[self.context.subtask_index :: self.context.parallelism]


class BranchesThatBeginAgain(Branches):
    """Those that had ended begin again after a rescale."""

    def rescale(self, offsets: Any) -> None:
        rows = {split: row for offset in offsets for split, row in offset}
        now, of = self.context.subtask_index, self.context.parallelism
        self.left = [(split, rows.get(split, 0)) for split in range(8) if split % of == now]


class BranchesReadAhead(Branches):
    """The record that `poll` gives next was taken, and the offset says that it was given."""

    def open(self) -> None:
        super().open()
        self.ahead: Any = None

    def current_splits(self) -> list[str]:
        return list({*super().current_splits(), *([self.ahead.split] if isinstance(self.ahead, FromSplit) else [])})

    def poll(self) -> Any:
        given = super().poll() if self.ahead is None else self.ahead
        self.ahead = given if given is END else super().poll()
        return given


def _branches(source: type[Source]) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
    env.from_source(source, name="branches").collect(name="rows")
    return env


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (BranchesThatBeginAgain, "records? too many"),
        (
            BranchesReadAhead,
            r"source 'branches' gave \(\d, \d\) next when .*: offset\(\) has to say which record poll\(\)",
        ),
    ],
)
def test_a_source_of_splits_that_gives_others_after_a_restart_is_found(source: type[Source], said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        assert_exactly_once(lambda: _branches(source))


def test_a_source_of_splits_that_goes_on_survives() -> None:
    assert assert_exactly_once(lambda: _branches(Branches), histories=40).rescales > 5


def test_output_that_depends_on_the_time_zone_of_the_machine_is_found() -> None:
    def build(zone: datetime.tzinfo | None) -> StreamEnvironment:
        env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=1_000)
        seconds = env.from_collection(range(0, 40_000_000, 2_000_000))
        seconds.map(lambda at: datetime.datetime.fromtimestamp(at, zone).date().isoformat()).collect(name="days")
        return env

    with pytest.raises(AssertionError) as caught:
        assert_exactly_once(lambda: build(None), histories=1)
    told = str(caught.value)
    assert told.startswith("time-zone: the output depends on the time zone of the machine: sink 'days' has committed ")
    assert "datetime.fromtimestamp(seconds, ZoneInfo('Europe/Berlin'))" in told
    assert_exactly_once(lambda: build(datetime.UTC), histories=1)
