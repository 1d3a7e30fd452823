"""Settings are checked when they are given, and say what was found and what was wanted."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from understudy.messages import CheckpointConfig, CheckpointRetention, JobGraph, LocalState, RestartStrategyKind
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.api.errors import InvalidOperator, InvalidSetting
from understudy.runtime.api.restart import exponential_delay, failure_rate, fixed_delay, no_restart


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"parallelism": 0}, "parallelism: wanted an integer of at least 1, found 0"),
        ({"max_parallelism": 0}, "max_parallelism: wanted an integer of at least 1, found 0"),
        ({"checkpoint_interval_ms": 0.5}, "checkpoint_interval_ms: wanted an integer of at least 1, found 0.5"),
        ({"checkpoint_dir": " "}, "checkpoint_dir: wanted a path or URL, found ' '"),
        ({"checkpoint_dir": "a\0b"}, r"checkpoint_dir: wanted a path or URL, found 'a\\x00b'"),
        ({"checkpoint_timeout_ms": 0}, "checkpoint_timeout_ms: wanted"),
        ({"min_pause_ms": -1}, "min_pause_ms: wanted an integer of at least 0, found -1"),
        ({"max_concurrent_checkpoints": 0}, "max_concurrent_checkpoints: wanted"),
        ({"retained_checkpoints": 0}, "retained_checkpoints: wanted"),
        ({"tolerable_checkpoint_failures": -1}, "tolerable_checkpoint_failures: wanted"),
        ({"batch_rows": 0}, "batch_rows: wanted"),
        ({"alignment_timeout_ms": -1}, "alignment_timeout_ms: wanted an integer of at least 0, found -1"),
        ({"buffer_timeout_ms": -1}, "buffer_timeout_ms: wanted an integer of at least 0, found -1"),
        ({"buffer_timeout_ms": None}, "buffer_timeout_ms: wanted an integer of at least 0, found None"),
        (
            {"alignment_timeout_ms": 10, "mode": "at-least-once"},
            "alignment_timeout_ms: wanted None with mode 'at-least-once'",
        ),
        ({"mode": "at_least_once"}, "mode: wanted one of exactly-once, at-least-once, found 'at_least_once'"),
        ({"mode": False}, "mode: wanted one of exactly-once, at-least-once, found False"),
        ({"state_backend": "heap"}, "state_backend: wanted one of memory, filesystem, rocksdb, found 'heap'"),
        ({"restart_strategy": "fixed"}, r"restart_strategy: wanted no_restart\(\), .*found 'fixed'"),
    ],
)
def test_a_setting_out_of_range(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        StreamEnvironment(**settings)


def test_a_tilde_is_the_users_home_in_every_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with FileSink, sources and the settings of clusters; no folder called `~` below the working directory."""
    monkeypatch.setenv("HOME", "/home/ada")
    env = StreamEnvironment(checkpoint_dir="~/checkpoints", state_dir="~/state")
    assert (env.checkpoints.directory, env.local_state.directory) == ("/home/ada/checkpoints", "/home/ada/state")
    assert StreamEnvironment(checkpoint_dir="s3://bucket/~/x").checkpoints.directory == "s3://bucket/~/x"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fixed_delay(-1), "attempts: wanted an integer of at least 0, found -1"),
        (lambda: failure_rate(0), "max_failures: wanted"),
        (lambda: exponential_delay(initial_ms=10, max_ms=5), r"max_ms: wanted at least initial_ms \(10\), found 5"),
        (lambda: exponential_delay(multiplier=1), "multiplier: wanted a number above 1, found 1"),
        (lambda: exponential_delay(jitter=2), "jitter: wanted a number from 0 to 1, found 2"),
        (lambda: exponential_delay(jitter="5"), "jitter: wanted a number from 0 to 1, found '5'"),  # type: ignore[arg-type]
    ],
)
def test_a_restart_strategy_out_of_range(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidSetting, match=message):
        make()


def test_how_often_the_same_failure_may_come_is_a_setting() -> None:
    assert StreamEnvironment().max_same_failures == 5
    assert StreamEnvironment(max_same_failures=None).max_same_failures is None
    with pytest.raises(InvalidSetting, match="max_same_failures: wanted an integer of at least 1"):
        StreamEnvironment(max_same_failures=0)


def test_the_default_restart_strategy_begins_sooner_than_flinks() -> None:
    assert StreamEnvironment(checkpoint_interval_ms=100).restart == exponential_delay(initial_ms=200)


def test_the_default_restart_strategy_is_of_flinks_kind() -> None:
    assert StreamEnvironment().restart == no_restart()
    assert StreamEnvironment(checkpoint_interval_ms=100).restart.kind is RestartStrategyKind.EXPONENTIAL_DELAY
    chosen = fixed_delay(3, delay_ms=10)
    assert StreamEnvironment(checkpoint_interval_ms=100, restart_strategy=chosen).restart == chosen


def test_settings_reach_the_checkpoint_config() -> None:
    checkpoints = StreamEnvironment(checkpoint_interval_ms=9, mode="at-least-once", retained_checkpoints=3).checkpoints
    assert (checkpoints.interval_ms, checkpoints.exactly_once, checkpoints.retained) == (9, False, 3)
    assert StreamEnvironment().checkpoints.exactly_once
    assert StreamEnvironment().checkpoints.retention is CheckpointRetention.ON_FAILURE
    assert StreamEnvironment(retain_checkpoints="never").checkpoints.retention is CheckpointRetention.NEVER
    assert StreamEnvironment().checkpoints.alignment_timeout_ms is None
    assert StreamEnvironment(alignment_timeout_ms=0).checkpoints.alignment_timeout_ms == 0


def test_what_holds_without_a_setting_is_the_same_in_messages() -> None:
    env = StreamEnvironment()
    assert env.checkpoints == CheckpointConfig("")
    assert env.local_state == LocalState()
    for each in fields(JobGraph):
        if each.name in ("buffer_timeout_ms", "max_same_failures", "slow_step_ms", "watermark_warn_ms"):
            assert getattr(env, each.name) == each.default, each.name


def test_a_collection_is_not_a_string(env: StreamEnvironment) -> None:
    with pytest.raises(InvalidSetting, match=r"^from_collection: wanted a list or .*, found 'abc'"):
        env.from_collection("abc")
    with pytest.raises(InvalidSetting, match="found 3"):
        env.from_collection(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("items", "meant"),
    [
        (pd.DataFrame({"a": [1]}), "from_pandas(frame)"),
        (pl.DataFrame({"a": [1]}), "from_polars(frame)"),
        (pa.table({"a": [1]}), "from_arrow(table)"),
        ("flights.csv", "from_parquet(path), from_csv(path), from_jsonl(path) or from_text(path)"),
    ],
)
def test_a_frame_or_a_path_is_no_collection(items: Any, meant: str, env: StreamEnvironment) -> None:
    """A DataFrame would give the names of its columns."""
    with pytest.raises(InvalidSetting, match=f"{re.escape(f'; env.{meant} reads this')}$"):
        env.from_collection(items)


@pytest.mark.parametrize("items", [pd.Series([1, 2]), pl.Series([1, 2]), np.array([1, 2])])
def test_a_column_is_a_collection_of_its_values(items: Any, env: StreamEnvironment) -> None:
    env.from_collection(items)


@pytest.mark.parametrize("method", ["from_dataframe", "from_spark_stream"])
@pytest.mark.parametrize(
    ("frame", "meant"),
    [
        (pd.DataFrame({"a": [1]}), "from_pandas(frame)"),
        (pl.DataFrame({"a": [1]}), "from_polars(frame)"),
        (pl.LazyFrame({"a": [1]}), "from_polars(frame.collect())"),
        (pa.table({"a": [1]}), "from_arrow(table)"),
        ([{"a": 1}], "from_collection(records)"),
    ],
)
def test_what_is_no_dataframe_of_spark_is_refused_with_the_method_that_reads_it(
    method: str, frame: Any, meant: str, env: StreamEnvironment
) -> None:
    with pytest.raises(InvalidSetting, match=f"^{method}: .*{re.escape(f'; env.{meant} reads this')}$"):
        getattr(env, method)(frame)


def test_a_rate_is_above_zero(env: StreamEnvironment) -> None:
    with pytest.raises(InvalidSetting, match="records_per_second: wanted a number above 0, found 0"):
        env.generate(lambda i: i, records_per_second=0)
    with pytest.raises(InvalidSetting, match="count: wanted an integer of at least 0, found -1"):
        env.generate(lambda i: i, count=-1)


def test_a_generator_without_count_is_unbounded(env: StreamEnvironment) -> None:
    assert env.generate(lambda i: i, count=3).bounded
    assert not env.generate(lambda i: i).bounded


def test_a_source_defines_its_methods(env: StreamEnvironment, program: Any) -> None:
    from understudy.actors.operators.source import Source

    class Half(Source):
        def poll(self) -> Any: ...

    with pytest.raises(InvalidOperator, match="source Half does not define offset"):
        env.from_source(Half)
    with pytest.raises(InvalidOperator, match="wanted a subclass of Source, found the class Worst"):
        env.from_source(program.Worst)


class Plain:
    """No record."""


def deep() -> list[Any]:
    made: list[Any] = []
    for _ in range(100_000):
        made = [made]
    return made


def loop() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["again"] = made
    return made


@pytest.mark.parametrize(
    ("items", "text"),
    [
        (
            [1, 2, Plain()],
            "from_collection: item 2 is no record: a .*Plain cannot be sent or stored.*register_serializer",
        ),
        ([1] * 5000 + [Plain()] * 5000, "item 5000 is no record"),
        ([{"a": [1, {2: (Plain(),)}]}], r"item 0 is no record: at \['a'\]\[1\]\[2\]\[0\]: a .*Plain"),
        ((item for item in [1, len]), "item 1 is no record"),
        ([deep()], "item 0 is no record: .*nested deeper"),
        ([loop()], "item 0 is no record: .*contains itself"),
    ],
    ids=range(6),
)
def test_a_collection_of_what_is_no_record_is_refused_when_it_is_given(
    env: StreamEnvironment, items: Any, text: str
) -> None:
    with pytest.raises(InvalidSetting, match=text):
        env.from_collection(items)


def test_records_of_all_kinds_and_none_at_all_are_taken(env: StreamEnvironment) -> None:
    env.from_collection([])
    env.from_collection([1, "a", None, (1, 2), {"a": [1]}] * 100)


def test_each_source_with_a_rate_says_whose_rate_it_is() -> None:
    sources = {name: method for name, method in vars_of(StreamEnvironment).items() if name.startswith(("from_", "gen"))}
    paced = [name for name, method in sources.items() if "records_per_second" in options_of(method)]
    assert len(paced) > 10
    for name in paced:
        told = " ".join((sources[name].__doc__ or "").split())
        assert re.search("`records_per_second` is (the rate of all subtasks|its rate)|^As `from_files`", told), name


def vars_of(kind: type) -> dict[str, Any]:
    return {name: getattr(kind, name) for name in dir(kind) if callable(getattr(kind, name))}


def options_of(method: Any) -> set[str]:
    parameters = inspect.signature(method).parameters
    packed = str(parameters["options"].annotation) if "options" in parameters else ""
    named = re.search(r"Unpack\[(\w+)\]", packed)
    module = sys.modules[method.__module__]
    return {*parameters, *(vars(module)[named[1]].__annotations__ if named else ())}


@pytest.mark.parametrize(("given", "wanted"), [(None, 1), (3, 3)])
def test_a_source_of_one_subtask_has_more_where_that_is_said(given: int | None, wanted: int) -> None:
    env = StreamEnvironment(parallelism=2)
    env.from_collection([1], parallelism=given)
    assert [node.parallelism for node in env.graph.nodes] == [wanted]
