"""What a newcomer gets wrong is found where the program is built, with the way out."""

from __future__ import annotations

import logging
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy import (
    Collector,
    Count,
    DuplicateName,
    FileSink,
    InvalidOperator,
    InvalidProgram,
    InvalidSetting,
    InvalidState,
    KeyedOperator,
    ListState,
    LocalCluster,
    Retry,
    ValueState,
    monotonous,
    tumbling,
)
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.api.translation import translate


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
    with pytest.raises(TypeError, match=r"no argument 'taskmanagers'; did you mean 'task_managers'\?.*heartbeat"):
        LocalCluster(taskmanagers=2)  # type: ignore[call-arg]


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


def keyed(env: StreamEnvironment | None = None) -> Any:
    return (env or StreamEnvironment()).from_collection([{"k": 1, "t": 1}], name="rows").key_by("k")


@pytest.mark.parametrize(
    ("build", "error", "says"),
    [
        (
            lambda: keyed().assign_timestamps("t", monotonous()).window(tumbling(5)),
            AttributeError,
            "the stream of 'assign-timestamps-1' is keyed no more: call key_by(...) behind it, right before window",
        ),
        (
            lambda: StreamEnvironment().from_collection([1]).window(tumbling(5)),  # type: ignore[attr-defined]
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
            "'m' is taken by another operator, the map of 'rows': names and uids are unique; give one of the two "
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
    for read in (lambda: env.from_cvs, lambda: env.from_collection([1]).mapp, lambda: env.from_collection([1]).reduce):  # type: ignore[attr-defined]
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


def test_the_schema_of_a_file_sink_is_one_of_arrow() -> None:
    with pytest.raises(ValueError, match=r"FileSink: schema: wanted a pyarrow\.Schema, .* found \['a'\]"):
        FileSink("out", schema=["a"])  # type: ignore[arg-type]


@pytest.mark.parametrize("path", [5, None, b"a.csv"])
def test_what_is_no_path_is_refused_as_such(env: StreamEnvironment, path: Any) -> None:
    with pytest.raises(InvalidSetting, match=r"^path: wanted"):
        env.from_csv(path)
