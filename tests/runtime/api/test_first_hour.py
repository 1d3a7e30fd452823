"""What a newcomer gets wrong is found where the program is built, with the way out."""

from __future__ import annotations

import asyncio
import logging
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy import (
    AggregateFunction,
    Collector,
    Count,
    DuplicateName,
    FileSink,
    InvalidOperator,
    InvalidProgram,
    InvalidSetting,
    InvalidState,
    JobFailed,
    KeyedOperator,
    KeyedTimer,
    ListState,
    LocalCluster,
    RecordMismatch,
    ResultsUnavailable,
    Retry,
    UnsupportedValue,
    ValueState,
    monotonous,
    tumbling,
)
from understudy.messages.plain import pack_plain
from understudy.messages.row import make_rows
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.api.translation import translate
from understudy.runtime.clusters.record_packer import RecordPacker


class StateInInit(KeyedOperator):
    def __init__(self) -> None:
        self.total = ValueState(int, default=0)

    def process(self, record: Any, out: Collector) -> None: ...


class OneArgument(KeyedOperator):
    def process(self, record: Any) -> None: ...  # type: ignore[override]


@pytest.mark.parametrize(
    ("operator", "text"),
    [
        (StateInInit, "declare it in the class, as `total = ValueState"),
        (OneArgument, r"OneArgument.process cannot be called with \(record, out\).*def process\(self, record, out\)"),
    ],
)
def test_an_operator_that_cannot_work_is_refused(operator: type[KeyedOperator], text: str) -> None:
    stream = StreamEnvironment().from_collection([1, 2]).key_by(lambda n: n)
    with pytest.raises(InvalidOperator, match=text):
        stream.process(operator)


def test_an_operator_of_two_inputs_may_name_both_schemas() -> None:
    class Joining(KeyedOperator):
        inputs = 2

        def process(self, record: Any, out: Collector) -> None: ...

        def process_2(self, record: Any, out: Collector) -> None: ...

        def output_schema(self, first: Any, second: Any) -> None: ...  # type: ignore[override]

    env = StreamEnvironment()
    first, second = (env.from_collection([1]).key_by(lambda n: n) for _ in range(2))
    first.connect(second).process(Joining)


@pytest.mark.parametrize("make", [lambda: ValueState(0), lambda: ListState([int])])  # type: ignore[call-overload, arg-type]
def test_a_value_in_the_place_of_a_states_type_is_refused(make: Any) -> None:
    with pytest.raises(InvalidState, match=r"wanted a type such as int, found .*default=0"):
        make()


@pytest.mark.parametrize(("items", "text"), [({"a": 1}, "d.items"), ({1, 2}, "sorted")])
def test_a_collection_without_an_order_of_records_is_refused(items: Any, text: str) -> None:
    with pytest.raises(InvalidSetting, match=text):
        StreamEnvironment().from_collection(items)


def test_an_unknown_setting_of_a_cluster_names_those_that_there_are() -> None:
    with pytest.raises(TypeError, match=r"no setting 'taskmanagers'; did you mean 'task_managers'\?.*heartbeat"):
        LocalCluster(taskmanagers=2)


def test_a_file_format_that_is_ours_alone_is_not_offered() -> None:
    with pytest.raises(ValueError, match="wanted one of parquet, csv, jsonl, found 'json'"):
        FileSink("out", format="json")


@pytest.mark.parametrize(("interval_ms", "count", "warns"), [(None, None, True), (100, None, False), (None, 5, False)])
def test_a_sink_that_would_never_publish_is_warned_of(
    caplog: pytest.LogCaptureFixture, interval_ms: int | None, count: int | None, warns: bool
) -> None:
    env = StreamEnvironment(checkpoint_interval_ms=interval_ms)
    env.generate(lambda n: n, count).sink_to(FileSink("out", format="jsonl"), name="files")
    with caplog.at_level(logging.WARNING):
        translate(env, default_parallelism=1, task_managers=1, work_dir="work")
    assert ("sink 'files' publishes with each checkpoint" in caplog.text) is warns


def test_a_debug_job_that_is_awaited_lets_time_outs_and_other_coroutines_through() -> None:
    async def run() -> int:
        env = StreamEnvironment()
        env.generate(lambda n: n, records_per_second=1000).collect(name="out")
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0.01)

        beating = asyncio.create_task(beat())
        async with LocalCluster(debug=True) as cluster:
            job = cluster.submit(env)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(job.wait_async(), 0.3)
            with pytest.raises(TimeoutError, match=r"is running after 0\.2 seconds"):
                await job.wait_async(0.2)
        beating.cancel()
        return beats

    assert asyncio.run(run()) > 2


def test_to_block_an_event_loop_is_warned_of() -> None:
    async def run() -> None:
        env = StreamEnvironment()
        env.from_collection([1]).collect(name="out")
        async with LocalCluster(debug=True) as cluster:
            cluster.submit(env).wait()

    with pytest.warns(RuntimeWarning, match="write `await job`") as warned:
        asyncio.run(run())
    assert [each.filename for each in warned if each.category is RuntimeWarning] == [__file__], "once, at this line"


def test_a_cluster_that_closes_on_a_running_job_says_so(
    caplog: pytest.LogCaptureFixture, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("checkpoints")
    env = StreamEnvironment(checkpoint_interval_ms=50, checkpoint_dir=str(folder))
    env.generate(lambda n: n, records_per_second=100).collect(name="out")
    with LocalCluster(debug=True) as cluster:
        cluster.submit(env, name="endless").ready().result(timeout=5)
    assert "job 'endless' was running when its cluster closed" in caplog.text
    assert "retain_checkpoints='on_cancellation' keeps them" in caplog.text
    assert "wait for its end with job.wait(), or end it by job.stop_with_savepoint()" in caplog.text


def test_a_cluster_that_an_interrupt_closes_does_not_advise_to_wait(caplog: pytest.LogCaptureFixture) -> None:
    env = StreamEnvironment()
    env.generate(lambda n: n, records_per_second=100).collect(name="out")

    def run() -> None:
        with LocalCluster(debug=True) as cluster:
            cluster.submit(env, name="endless").ready().result(timeout=5)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    said = (
        "job 'endless' was running when KeyboardInterrupt closed its cluster, and is canceled: to go on with it later"
    )
    assert said in caplog.text
    assert "wait for its end" not in caplog.text


def test_a_job_that_begins_beside_the_files_of_another_is_warned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def warned(**options: Any) -> tuple[list[str], str]:
        caplog.clear()
        env = StreamEnvironment(checkpoint_dir=str(tmp_path / "checkpoints"), checkpoint_interval_ms=50)
        numbers = env.generate(lambda n: {"n": n}, records_per_second=100)
        numbers.sink_to(FileSink(str(tmp_path / "out"), format="jsonl"), name="sink")
        with LocalCluster(debug=True) as cluster:
            job = cluster.submit(env, **options)
            job.ready().result(timeout=5)
            savepoint = job.stop_with_savepoint().result(timeout=5)
            job.wait()
        return [text for each in caplog.records if "earlier jobs" in (text := each.getMessage())], savepoint

    texts, savepoint = warned()
    assert texts == []
    (text,), _ = warned()
    assert text.startswith(
        f"sink 'sink': {tmp_path / 'out'} holds 1 file of earlier jobs, and this job starts from the"
    )
    assert warned(from_savepoint=savepoint)[0] == []


def test_a_job_that_repeats_what_its_folder_holds_already_is_warned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The second job to go on from one savepoint; its folder holds what the first made of the same records."""

    def warned(**options: Any) -> tuple[list[str], str]:
        caplog.clear()
        env = StreamEnvironment(checkpoint_dir=str(tmp_path / "checkpoints"), checkpoint_interval_ms=50)
        numbers = env.generate(lambda n: {"n": n}, records_per_second=100)
        numbers.sink_to(FileSink(str(tmp_path / "out"), format="jsonl"), name="sink")
        with LocalCluster(debug=True) as cluster:
            job = cluster.submit(env, **options)
            job.ready().result(timeout=5)
            savepoint = job.stop_with_savepoint().result(timeout=5)
            job.wait()
        return [text for each in caplog.records if "goes on from" in (text := each.getMessage())], savepoint

    _, savepoint = warned()
    assert warned(from_savepoint=savepoint)[0] == []
    (text,), _ = warned(from_savepoint=savepoint)
    assert text.startswith(f"sink 'sink': {tmp_path / 'out'} holds 1 file of other jobs, or of job job-")


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


def keyed(env: StreamEnvironment | None = None) -> Any:
    return (env or StreamEnvironment()).from_collection([{"k": 1, "t": 1}], name="rows").key_by("k")


@pytest.mark.parametrize(
    ("build", "error", "says"),
    [
        (
            lambda: keyed().assign_timestamps("t", monotonous()).window(tumbling(5)),
            AttributeError,
            "what 'assign-timestamps-1' gives is keyed no more: call key_by(...) behind it, right before window",
        ),
        (
            lambda: StreamEnvironment().from_collection([1]).window(tumbling(5)),
            AttributeError,
            "window needs a keyed stream: call key_by(...) before it; or window_all(...)",
        ),
        (
            lambda: keyed().map(lambda left, right: left),
            InvalidOperator,
            "takes (left, right): missing a required argument: 'right'; a pair, as a join of records gives it, is one",
        ),
        (
            lambda: keyed().map(str, name="m").map(str, name="m"),
            DuplicateName,
            "'m' is taken by another operator, the Map of 'rows': names and uids are unique; give one of the two "
            "another, such as 'm-2'",
        ),
        (
            lambda: Retry(delay_ms=5),  # type: ignore[call-arg]
            TypeError,
            "did you mean 'first_delay_ms' or 'max_delay_ms'?",
        ),
    ],
)
def test_what_is_written_otherwise_here_says_how(build: Callable[[], Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error) as caught:
        build()
    assert says in str(caught.value)


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
    assert text.startswith("at [1][1]: a builtins.")
    assert text.count("cannot be sent or stored") == 1
    assert remedy in text
    assert raised.value.__suppress_context__, "below it are our own frames"
    getattr(value, "close", lambda: None)()


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        ("out", r"sink_to: wanted a sink, found 'out': write FileSink\('out'\)"),
        (Path("out"), r"write FileSink\('out'\)"),
        (print, r"found the function print: write stream\.print\(\)"),
        (lambda record: None, "wanted a sink such as FileSink"),
    ],
)
def test_what_is_no_sink_gets_the_one_that_is_meant(env: StreamEnvironment, sink: Any, said: str) -> None:
    with pytest.raises(InvalidOperator, match=said):
        env.from_collection([1]).sink_to(sink)


def test_a_row_that_is_to_be_changed_says_how_a_new_record_is_made() -> None:
    (row,) = make_rows(("id",), [(1,)])
    with pytest.raises(TypeError, match=r"a Row cannot be changed: .*\{\*\*row, 'id': \.\.\.\}"):
        row["id"] = 2
    assert {**row, "id": 2} == {"id": 2}


@pytest.mark.parametrize("name", ["count", "Sum", "min", "mean"])
def test_an_aggregate_by_its_name_is_written_as_one(env: StreamEnvironment, name: str) -> None:
    meant = {"count": "Count()", "Sum": "Sum('column')", "min": "Min('column')", "mean": "Avg('column')"}[name]
    keyed = env.from_collection([{"k": 1}]).key_by("k")
    with pytest.raises(InvalidProgram, match=re.escape(f"write n={meant}")):
        keyed.aggregate(n=name)  # type: ignore[arg-type]


def test_an_aggregate_behind_a_function_says_how_a_key_column_is_made(env: StreamEnvironment) -> None:
    with pytest.raises(InvalidProgram, match=r"write key_by\('column'\) behind records that have it"):
        env.from_collection(["a"]).key_by(lambda word: word).aggregate(n=Count())


def test_python_adds_no_guess_of_its_own_to_a_name_that_is_missing(env: StreamEnvironment) -> None:
    for read in (lambda: env.from_cvs, lambda: env.from_collection([1]).mapp, lambda: env.from_collection([1]).reduce):
        with pytest.raises(AttributeError) as raised:
            read()
        shown = "".join(traceback.format_exception_only(raised.value))
        assert shown.lower().count("did you mean") <= 1


def test_a_warning_about_a_program_points_at_its_line(env: StreamEnvironment) -> None:
    numbers = env.from_collection([1])
    numbers.map(str)
    numbers.collect(name="all")
    with pytest.warns(UserWarning, match="reach no sink and will not run: map-1") as warned:
        translate(env, default_parallelism=1, task_managers=1, work_dir="/nowhere")
    assert [each.filename for each in warned if each.category is UserWarning] == [__file__]


@pytest.mark.parametrize("result", [None, {}])
def test_a_reduce_that_returns_nothing_fails_the_job_with_its_line(result: Any) -> None:
    env = StreamEnvironment()
    records = env.from_collection([{"k": 1, "n": n} for n in range(3)])
    records.key_by("k").reduce(lambda held, record: result).collect(name="out")
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        if result is None:
            with pytest.raises(JobFailed, match=rf"the function of reduce \({__file__}:\d+\) returned None"):
                job.wait()
        else:
            job.wait()


def test_a_reduce_of_records_that_may_be_none_may_give_none(env: StreamEnvironment) -> None:
    env.from_collection([1, None, 2]).key_by(lambda record: 0).reduce(lambda held, record: record).collect(name="out")
    with LocalCluster(debug=True) as cluster:
        job = cluster.submit(env)
        job.wait()
        assert job.results("out") == [1, None, 2]


class AddsNothing(AggregateFunction):
    def create_accumulator(self) -> list[int]:
        return [0]

    def add(self, accumulator: list[int], record: Any) -> Any:
        accumulator[0] += record["n"]

    def get_result(self, accumulator: list[int]) -> int:
        return accumulator[0]


def test_an_aggregate_function_that_returns_nothing_is_named_with_its_line(env: StreamEnvironment) -> None:
    timed = env.from_collection([{"k": 1, "n": 1}]).assign_timestamps("n", monotonous())
    timed.key_by("k").window(tumbling(seconds=1)).aggregate(AddsNothing()).collect(name="out")
    with LocalCluster(debug=True) as cluster, pytest.raises(JobFailed, match=r"AddsNothing\.add \(.*\) returned None"):
        cluster.submit(env).wait()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda keyed: keyed.join(keyed, ttl=1), "join has no argument 'ttl'; did you mean 'ttl_ms'"),
        (
            lambda keyed: keyed.aggregate(n=Count(), emitt="end"),
            "aggregate has no argument 'emitt'; did you mean 'emit'",
        ),
        (
            lambda keyed: keyed.window(tumbling(minutes=1)).aggregate(n=Count(), paralelism=2),
            "aggregate has no argument 'paralelism'; did you mean 'parallelism'",
        ),
        (lambda keyed: keyed.map(str, max_in_flight=3), r"write \.async_settings\(max_in_flight=\.\.\.\) behind it"),
        (lambda keyed: keyed.to_redis_list("redis://x", "k", nmae="y"), "did you mean 'name'"),
    ],
)
def test_a_misspelt_option_gets_those_of_its_own_method(
    env: StreamEnvironment, call: Callable[[Any], object], said: str
) -> None:
    keyed = env.from_collection([{"k": 1, "at": 1}]).assign_timestamps("at", monotonous()).key_by("k")
    with pytest.raises(TypeError, match=said):
        call(keyed)


def test_a_value_that_is_none_says_where_it_may_come_from(env: StreamEnvironment) -> None:
    class Counts(KeyedOperator):
        n = ValueState(int)

        def process(self, record: Any, out: Collector) -> None:
            self.n.update(self.n.value() + 1)

    env.from_collection([1]).key_by(lambda record: 0).process(Counts).collect(name="out")
    with LocalCluster(debug=True) as cluster, pytest.raises(JobFailed, match=r"ValueState without default= for a new"):
        cluster.submit(env).wait()


def test_the_schema_of_a_file_sink_is_one_of_arrow() -> None:
    with pytest.raises(ValueError, match=r"FileSink: schema: wanted a pyarrow\.Schema, .* found \['a'\]"):
        FileSink("out", schema=["a"])  # type: ignore[arg-type]


@pytest.mark.parametrize("path", [5, None, Path("a.csv")])
def test_a_path_that_is_no_text_is_refused_as_such(env: StreamEnvironment, path: Any) -> None:
    with pytest.raises(InvalidSetting, match=r"^path: wanted"):
        env.from_csv(path)
