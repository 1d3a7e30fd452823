"""A user's file: thirty operators, sources and sinks, and what is done with their jobs. Checked, not run.

mypy --strict and pyright take it as it stands, without an `ignore`: tests/test_types_for_users.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from understudy import (
    END,
    Actor,
    ActorSystem,
    Answer,
    AskFailed,
    Avg,
    Batch,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointHistory,
    CheckpointId,
    Cluster,
    Collector,
    CommittableWriter,
    Committer,
    Count,
    CurveKeys,
    DataStream,
    FileSink,
    FoldingState,
    IdempotentSink,
    IndexShare,
    JobDetails,
    JobFailed,
    JobFuture,
    JobHandle,
    JobMetrics,
    JobStatus,
    JobStatusChanged,
    KeyedOperator,
    KeyedStream,
    LedgerSink,
    ListState,
    LocalCluster,
    MapState,
    Marker,
    MarkerMoved,
    Max,
    Min,
    NotRunning,
    Operator,
    OperatorListState,
    ReducingState,
    RemoteCluster,
    SavepointFailed,
    Source,
    SourceState,
    StreamEnvironment,
    Sum,
    TaskManagerChanged,
    TaskMetrics,
    Terminated,
    Ttl,
    TwoPhaseCommitSink,
    ValueState,
    fixed_delay,
    message,
)
from understudy.testing import (
    FailingStorage,
    Fault,
    KillProcess,
    OperatorHarness,
    SimulatedCluster,
    Survived,
    TransactionalLog,
    assert_at_least_once,
    assert_exactly_once,
    assert_survives_restore,
)

Offset = dict[str, Any]


class Order(TypedDict):
    customer: str
    amount: int


@dataclass(frozen=True)
class Click:
    user: str
    page: str


@message
class TotalOf:
    customer: str


# -- sources


class Numbers(Source):
    """1: bounded, with an offset, and dealt out anew when the parallelism changes."""

    def __init__(self, count: int = 1_000) -> None:
        self.count = count

    def open(self) -> None:
        self._share = IndexShare.fresh(self.context.subtask_index, self.context.parallelism)

    def poll(self) -> list[int] | Literal[SourceState.END] | None:
        taken = self._share.take(100, self.count)
        return END if taken is None else list(taken)

    def offset(self) -> Offset:
        return self._share.to_plain()

    def seek(self, offset: Offset) -> None:
        self._share = IndexShare.from_plain(offset, self.context.parallelism)

    def rescale(self, offsets: Sequence[Offset]) -> None:
        self._share = IndexShare.dealt_out(offsets, self.context.subtask_index, self.context.parallelism)


class Clicks(Source):
    """2: never ends, and is asked again after a while."""

    bounded = False

    def __init__(self) -> None:
        self._next = 0

    def poll(self) -> Batch | Literal[SourceState.END] | None:
        self._next += 1
        return [Click("ann", f"/{self._next}")] if self._next % 2 else None

    def poll_delay_ms(self) -> float | None:
        return 100.0

    def offset(self) -> int:
        return self._next

    def seek(self, offset: int) -> None:
        self._next = offset


class Readings(Source):
    """3: columnar."""

    def poll(self) -> pa.RecordBatch | Literal[SourceState.END] | None:
        return END

    def offset(self) -> None:
        return None

    def seek(self, offset: None) -> None: ...

    def source_schema(self) -> pa.Schema | None:
        return pa.schema([("sensor", pa.string()), ("celsius", pa.float64())])


# -- operators without a key


class Double(Operator):
    """4: a record at a time."""

    def process_batch(self, batch: list[int], out: Collector) -> None:
        for record in batch:
            out.collect(2 * record)


class Columns(Operator):
    """5: whole batches of columns."""

    takes = "columns"

    def process_batch(self, batch: pa.RecordBatch, out: Collector) -> None:
        out.emit(batch.slice(0, 1))

    def output_schema(self, *inputs: pa.Schema | None) -> pa.Schema | None:
        return inputs[0]


class Buffered(Operator):
    """6: an operator list, and all hooks."""

    waiting = OperatorListState(int)

    def open(self) -> None:
        self._waiting: list[int] = list(self.waiting.get())

    def process_batch(self, batch: list[int], out: Collector) -> None:
        self._waiting.extend(batch)

    def on_idle(self, out: Collector) -> float | None:
        return self._flush(out)

    def before_barrier(self, checkpoint_id: CheckpointId, out: Collector) -> None:
        self._flush(out)

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        self.waiting.update(self._waiting)

    def on_checkpoint_complete(self, checkpoint_id: CheckpointId) -> None: ...

    def on_checkpoint_aborted(self, checkpoint_id: CheckpointId) -> None: ...

    def on_end(self, out: Collector) -> None:
        self._flush(out)

    def close(self) -> None:
        self._waiting.clear()

    def _flush(self, out: Collector) -> float | None:
        out.emit(list(self._waiting))
        self._waiting.clear()
        return None


class Pairs(Operator):
    """7: two inputs without a key."""

    inputs = 2

    def process_batch(self, batch: list[int], out: Collector) -> None:
        out.emit(batch)

    def process_batch_2(self, batch: list[str], out: Collector) -> None:
        out.emit([len(each) for each in batch])


# -- operators with a key, of every kind of state


class Total(KeyedOperator):
    """8: a value; answers questions."""

    total = ValueState(int, default=0)

    def process(self, record: Order, out: Collector) -> None:
        total: int = self.total.value() + record["amount"]
        self.total.update(total)
        out.collect((str(self.key), total))

    def on_receive(self, message: object) -> int:
        match message:
            case TotalOf(customer) if customer == self.key:
                return self.total.value()
            case _:
                raise ValueError(f"wanted TotalOf, found {message!r}")


class Latest(KeyedOperator):
    """9: a value that may be missing."""

    page = ValueState(str, ttl=Ttl(timedelta(minutes=30)))

    def process(self, record: Click, out: Collector) -> None:
        before: str | None = self.page.value()
        if before != record.page:
            out.collect((record.user, before, record.page))
        self.page.update(record.page)
        if record.page == "/out":
            self.page.clear()


class History(KeyedOperator):
    """10: a list."""

    pages = ListState(str)

    def process(self, record: Click, out: Collector) -> None:
        self.pages.add(record.page)
        pages: list[str] = list(self.pages.get())
        out.collect((record.user, len(pages)))
        self.pages.update(pages[-10:])


class Visits(KeyedOperator):
    """11: a map."""

    visits = MapState(str, int, ttl=Ttl(days=30, clock="event", on="read"))

    def process(self, record: Click, out: Collector) -> None:
        count: int = (self.visits.get(record.page) or 0) + 1
        self.visits.put(record.page, count)
        if self.visits.contains(record.page):
            out.collect(sorted(self.visits.items()))
        if count > 1_000:
            self.visits.remove(record.page)


class Most(KeyedOperator):
    """12: a reducing state."""

    most = ReducingState(int, max)

    def process(self, record: Order, out: Collector) -> None:
        self.most.add(record["amount"])
        out.collect((self.key, self.most.get()))


def add_length(folded: int, text: str) -> int:
    return folded + len(text)


class Lengths(KeyedOperator):
    """13: a folding state."""

    length = FoldingState(int, 0, add_length)

    def process(self, record: Click, out: Collector) -> None:
        self.length.add(record.page)
        out.collect(self.length.get())


class AtTheEnd(KeyedOperator):
    """14: goes through its keys when the input has ended."""

    total = ValueState(int, default=0)

    def process(self, record: Order, out: Collector) -> None:
        self.total.update(self.total.value() + record["amount"])

    def on_end(self, out: Collector) -> None:
        for key in self.keys():
            out.collect((key, self.total.value()))


class Joined(KeyedOperator):
    """15: two inputs with a key."""

    inputs = 2
    order = ValueState(dict[str, Any])

    def process(self, record: Order, out: Collector) -> None:
        self.order.update(dict(record))

    def process_2(self, record: Click, out: Collector) -> None:
        order = self.order.value()
        if order is not None:
            out.collect((record.page, order["amount"]))


class Running(KeyedOperator):
    """16: compiled."""

    compiled = True
    so_far = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None:
        self.so_far.update(self.so_far.value() + record.amount)
        out.collect((record.customer, self.so_far.value()))


# -- sinks


class Ledger(TwoPhaseCommitSink[str]):
    """17: two-phase commit, whose transactions are file names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines: list[str] = []

    def begin_transaction(self) -> str:
        return f"part-{self.context.subtask_index}-{self.context.attempt_number}"

    def write(self, transaction: str, batch: list[object]) -> None:
        self._lines.extend(map(str, batch))

    def pre_commit(self, transaction: str) -> str | None:
        (self._folder / f".{transaction}").write_text("\n".join(self._lines))
        return None

    def commit(self, transaction: str) -> None:
        hidden = self._folder / f".{transaction}"
        if hidden.exists():
            hidden.rename(self._folder / transaction)

    def abort(self, transaction: str) -> None:
        (self._folder / f".{transaction}").unlink(missing_ok=True)


class LogSink(TwoPhaseCommitSink[str]):
    """18: to the log that comes with the tests."""

    def __init__(self) -> None:
        self._log = TransactionalLog("out")

    def begin_transaction(self) -> str:
        return self._log.begin()

    def write(self, transaction: str, batch: list[object]) -> None:
        self._log.append(transaction, batch)

    def pre_commit(self, transaction: str) -> None:
        self._log.prepare(transaction)

    def commit(self, transaction: str) -> None:
        self._log.commit(transaction)

    def abort(self, transaction: str) -> None:
        self._log.abort(transaction)


class Booked(LedgerSink):
    """Into a database, with a marker in the same transaction."""

    takes = "records"

    def __init__(self) -> None:
        self._rows: list[object] = []
        self._markers: dict[str, int] = {}

    def apply(self, batches: list[list[object]], marker: Marker) -> None:
        if self._markers.get(marker.writer, 0) != marker.after:
            raise MarkerMoved(marker.writer, marker.after)
        self._rows += [row for batch in batches for row in batch]
        self._markers[marker.writer] = marker.sequence

    def last_marker(self, writer: str) -> int | None:
        return self._markers.get(writer)


class Prices(IdempotentSink):
    """The last price of each article."""

    key = "article"
    most_rows = 500

    def upsert(self, batch: Batch) -> None:
        print(len(batch))


class Names(CommittableWriter):
    """Files, whose names go to one subtask."""

    def write(self, batch: Batch) -> None:
        assert len(batch)

    def finish(self) -> list[str]:
        return [f"{self.context.attempt_id}.parquet"]


class Table(Committer):
    """The subtask that puts them into a table."""

    def commit(self, committables: list[str], marker: Marker) -> None:
        print(marker.sink, sorted(committables))

    def last_marker(self, writer: str) -> int | None:
        return None


class Swallow(Operator):
    """19: takes whatever comes."""

    takes = "any"

    def check_at_submit(self, on_this_machine: bool) -> None:
        if not on_this_machine:
            raise OSError("wanted a TaskManager on this machine")

    def process_batch(self, batch: Batch, out: Collector) -> None:
        assert len(batch)


# -- functions


def amount_of(order: Order) -> int:
    return order["amount"]


def pages_of(click: Click) -> Iterator[str]:
    yield from click.page.split("/")


def larger(left: Order, right: Order) -> Order:
    return left if left["amount"] >= right["amount"] else right


def halved(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.slice(0, len(batch) // 2)


ORDERS: list[Order] = [{"customer": "ann", "amount": 3}, {"customer": "bob", "amount": 4}]


def build(folder: Path) -> StreamEnvironment:
    """A job of all of them; the built-in operators are 20 to 32."""
    env = StreamEnvironment(
        parallelism=2,
        checkpoint_interval_ms=1_000,
        checkpoint_dir=str(folder / "checkpoints"),
        restart_strategy=fixed_delay(attempts=3, delay_ms=100),
    )
    numbers: DataStream = env.from_source(Numbers(), name="numbers")
    clicks: DataStream = env.from_source(Clicks(), name="clicks")
    readings = env.from_source(Readings(), name="readings")
    orders = env.from_collection(ORDERS, records_per_second=100)
    generated = env.generate(lambda index: index, 100)
    files = env.from_parquet(str(folder / "*.parquet"))

    doubled = numbers.process(Double()).process(Buffered, parallelism=1)
    small = doubled.filter(lambda number: number < 10).map(lambda number: str(number), name="texts")
    doubled.connect(small).process(Pairs).union(generated).rebalance().process(Swallow)
    readings.process(Columns).map_batches(halved).filter(pc.field("celsius") > 0).sink_to(Swallow())

    by_customer: KeyedStream = orders.key_by("customer")
    by_customer.process(Total, name="total").uid("total-1").collect(name="totals")
    by_customer.process(Most).union(by_customer.process(AtTheEnd), by_customer.process(Running)).sink_to(LogSink)
    by_customer.reduce(larger).map(amount_of).print("largest: ")
    by_user = clicks.key_by(lambda click: click.user)
    for operator in (Latest, History, Visits, Lengths):
        by_user.process(operator, name=operator.__name__).sink_to(Ledger(folder))
    by_customer.connect(by_user).process(Joined).broadcast().sink_to(Swallow)
    clicks.flat_map(pages_of).key_by(lambda page: page).process(Swallow)
    files.key_by("carrier").aggregate(
        flights=Count(), worst=Max("delay"), best=Min("delay"), mean=Avg("delay"), miles=Sum("distance")
    ).sink_to(FileSink(str(folder / "out"), format="parquet"))
    return env


# -- jobs


def heard(event: object) -> str:
    match event:
        case CheckpointCompleted():
            return f"checkpoint {event.checkpoint_id}"
        case CheckpointAborted():
            return f"no checkpoint: {event.reason}"
        case JobStatusChanged(status=JobStatus.RESTARTING):
            return "restarts"
        case TaskManagerChanged():
            return event.task_manager_id
        case _:
            return type(event).__name__


def run(cluster: Cluster, env: StreamEnvironment) -> int:
    job: JobHandle = cluster.submit(env, name="orders")
    job.on_event(lambda event: print(heard(event)))
    job.ready().result(timeout=60)
    savepoint: JobFuture[str] = job.trigger_savepoint()
    savepoint.add_done_callback(lambda done: print(done.result()))
    try:
        total: Any = job.ask("total", key="ann", message=TotalOf("ann"), wait_ms=5_000).result(timeout=10)
        path: str = savepoint.result(timeout=60)
        error: BaseException | None = savepoint.exception()
        assert error is None
        assert savepoint.done()
    except (NotRunning, AskFailed) as refused:
        raise SystemExit(str(refused)) from refused
    except SavepointFailed as refused:
        raise SystemExit(f"no savepoint: {refused}") from refused
    except TimeoutError as late:
        raise SystemExit(str(late)) from late
    try:
        details: JobDetails = job.wait(timeout=60)
    except JobFailed as failed:
        print(failed.details.failures[-1].error_type)
        raise
    tasks: tuple[TaskMetrics, ...] = job.details().tasks
    print(len(tasks))
    metrics: JobMetrics = job.metrics()
    history: CheckpointHistory = job.checkpoint_history(timeout=5)
    cluster.dispose_savepoint(path).result()
    rows: list[Any] = job.results("totals")
    return int(total) + details.restarts + len(metrics.vertices) + len(history.checkpoints) + len(rows)


async def run_async(env: StreamEnvironment, key_file: Path) -> str:
    async with LocalCluster(task_managers=2, heartbeat_interval_ms=500) as cluster:
        job = await cluster.submit_async(env, "orders", from_savepoint=Path("/savepoints/1"))
        await job.ready()
        total: int = await job.ask("total", key="ann", message=TotalOf("ann"))
        async with RemoteCluster(cluster.address, CurveKeys.load(key_file), answer_timeout_ms=5_000) as client:
            found = await client.find_async("orders")
            taken: str = await client.trigger_savepoint(found.job_id)
        path: str = await job.stop_with_savepoint(drain=True)
        finished: JobDetails = await job
        details: JobDetails = await job.details_async(timeout=5.0)
        return f"{path} {taken} {total} {finished.status} {details.status}"


# -- tests


def test_totals_survive(tmp_path: Path) -> None:
    faults: list[Fault] = [KillProcess(1_000, 0), FailingStorage(at_ms=2_000, for_ms=500)]
    survived: Survived = assert_exactly_once(lambda: build(tmp_path), sink="totals", histories=10)
    assert_at_least_once(build(tmp_path), faults=faults, task_managers=3, heartbeat_timeout_ms=5_000)
    print(survived.histories, survived.faults)


def test_one_history(tmp_path: Path) -> None:
    with SimulatedCluster(task_managers=2, seed=7, faults=[KillProcess(500, 1)]) as cluster:
        job = cluster.submit(build(tmp_path))
        cluster.run_for(2_000)
        assert cluster.run_until(lambda: job.status.is_terminal, timeout=60)


def test_total_alone() -> None:
    order: Order = {"customer": "ann", "amount": 3}
    harness = OperatorHarness(Total(), key_by="customer")
    harness.process([order])
    harness.advance(1_000)
    snapshot = harness.snapshot()
    assert harness.take_output() == [("ann", 3)]
    print(snapshot)
    assert_survives_restore(Total, [[order]], key_by="customer")


# -- actors


class Greeter(Actor):
    def on_receive(self, message: object) -> str:
        match message:
            case TotalOf(customer):
                return f"Hello, {customer}"
            case Terminated():
                return message.reason
            case _:
                return "?"


async def greet() -> str:
    with ActorSystem("theatre") as system:
        greeter = system.spawn(Greeter(), name="greeter")
        answer: Answer[Any] = system.actor_of(greeter.address).ask(TotalOf("Ada"), timeout_ms=1_000)
        first: str = answer.result(timeout=1)
        second: str = await system.actor_of("greeter").ask(TotalOf("Ada"))
        return first + second
