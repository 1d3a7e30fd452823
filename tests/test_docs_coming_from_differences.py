"""What docs/coming-from.md says comes out otherwise than elsewhere does so here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy import (
    Count,
    DataStream,
    JobFailed,
    KafkaSource,
    KeyedStream,
    StreamEnvironment,
    any_of,
    bounded_out_of_orderness,
    count,
    event_time,
    fixed_delay,
    global_window,
    monotonous,
    no_restart,
    session,
    tumbling,
)
from understudy.testing import SimulatedCluster

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "coming-from.md").read_text()
GAP = 60_000


def results(build: Callable[[StreamEnvironment], DataStream]) -> list[Any]:
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=500, restart_strategy=no_restart())
    build(env).collect(name="out")
    with SimulatedCluster(1, seed=1) as cluster:
        job = cluster.submit(env)
        job.wait()
        return list(job.results("out"))


def timed(env: StreamEnvironment, *times: int) -> KeyedStream[Any]:
    records = [{"user": "ann", "at": at} for at in times]
    return env.from_collection(records).assign_timestamps("at", monotonous()).key_by("user")


def fields(*names: str) -> Callable[[Any], tuple[Any, ...]]:
    return lambda row: tuple(row[name] for name in names)


def test_an_aggregate_gives_a_row_for_each_batch_and_reduce_one_for_each_record() -> None:
    assert results(lambda env: timed(env, 1, 2, 3).aggregate(n=Count()).map(fields("n"))) == [(3,)]
    assert len(results(lambda env: timed(env, 1, 2, 3).reduce(lambda one, other: other))) == 3


def test_a_window_emits_when_it_ends_and_with_each_record_if_a_trigger_says_so() -> None:
    def counted(env: StreamEnvironment) -> DataStream:
        return timed(env, 1, 2, 1_500).window(tumbling(seconds=1)).aggregate(n=Count()).map(fields("n"))

    def each(env: StreamEnvironment) -> DataStream:
        windows = timed(env, 1, 2, 1_500).window(tumbling(seconds=1)).trigger(count(1))
        return windows.aggregate(n=Count()).map(fields("n"))

    assert results(counted) == [(2,), (1,)]
    assert results(each) == [(1,), (2,), (1,)]


@pytest.mark.parametrize(("discards", "wanted"), [(False, [(1,), (2,), (3,), (3,)]), (True, [(1,), (1,), (1,)])])
def test_early_results_hold_all_again_unless_they_discard(discards: bool, wanted: list[Any]) -> None:
    def early(env: StreamEnvironment) -> DataStream:
        windows = timed(env, 1, 2, 3).window(tumbling(seconds=1)).trigger(any_of(event_time(), count(1)))
        return (windows.discarding() if discards else windows).aggregate(n=Count()).map(fields("n"))

    assert results(early) == wanted


def test_a_session_ends_a_gap_behind_its_last_record_and_records_one_gap_apart_share_it() -> None:
    def sessions(env: StreamEnvironment) -> DataStream:
        windows = timed(env, 0, GAP, 2 * GAP + 1).window(session(minutes=1))
        return windows.aggregate(n=Count()).map(fields("window_start", "window_end", "n"))

    assert results(sessions) == [(0, 2 * GAP, 2), (2 * GAP + 1, 3 * GAP + 1, 1)]


def test_a_record_of_the_newest_time_is_in_time() -> None:
    def windows(env: StreamEnvironment) -> DataStream:
        return timed(env, 999, 999, 1_000).window(tumbling(seconds=1)).aggregate(n=Count()).map(fields("n"))

    assert results(windows) == [(2,), (1,)]


def test_a_key_of_none_fails_the_job() -> None:
    records = [{"user": "ann"}, {"user": None}]
    with pytest.raises(JobFailed, match="key column 'user' is None at record 1"):
        results(lambda env: env.from_collection(records).key_by("user").aggregate(n=Count()))


def test_a_join_keeps_all_rows() -> None:
    def joined(env: StreamEnvironment) -> DataStream:
        names = env.from_collection([{"id": 1, "name": "Ann"}, {"id": 1, "name": "Ann B."}])
        return env.from_collection([{"id": 1}]).key_by("id").join(names.key_by("id"))

    assert [right["name"] for _, right in results(joined)] == ["Ann", "Ann B."]


def test_a_left_join_takes_its_null_back() -> None:
    def joined(env: StreamEnvironment) -> DataStream:
        a_second_later = env.generate(lambda number: {"id": number}, 2, records_per_second=1)
        return env.from_collection([{"id": 1}]).key_by("id").join(a_second_later.key_by("id"), "left")

    one = {"id": 1}
    assert results(joined) == [("+I", one, None), ("-D", one, None), ("+I", one, one)]


def test_a_left_interval_join_gives_the_null_once() -> None:
    def joined(env: StreamEnvironment) -> DataStream:
        return timed(env, 1, 5_000).interval_join(timed(env, 5_001), 0, 1_000, how="left")

    assert sorted((left["at"], right and right["at"]) for left, right in results(joined)) == [(1, None), (5_000, 5_001)]


def test_a_global_window_gives_its_result_at_the_end_by_the_trigger_that_is_named() -> None:
    def everything(env: StreamEnvironment) -> DataStream:
        return timed(env, 1, 2).window(global_window()).trigger(event_time()).aggregate(n=Count()).map(fields("n"))

    assert results(everything) == [(2,)]
    assert "`.trigger(event_time())`" in PAGE


def test_stop_ends_the_data_so_that_open_windows_give_what_they_have() -> None:
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=100)
    ticks = env.generate(lambda tick: {"user": "ann", "at": tick}, records_per_second=100)
    windows = ticks.assign_timestamps("at", bounded_out_of_orderness(0)).key_by("user").window(tumbling(hours=1))
    windows.aggregate(n=Count()).collect(name="out")
    with SimulatedCluster(1, seed=1) as cluster:
        job = cluster.submit(env)
        job.ready().result()
        cluster.run_for(1_000)
        job.stop().result()
        job.wait()
        (row,) = job.results("out")
    assert 0 < row["n"] < 3_600_000


def test_topics_are_read_from_the_oldest_record_and_there_are_no_checkpoints_unless_asked_for() -> None:
    assert inspect.signature(KafkaSource).parameters["start"].default == "earliest"
    assert StreamEnvironment().checkpoints.interval_ms is None


def test_a_record_that_raises_is_tried_again_and_the_fifth_time_the_job_fails() -> None:
    def refuse(record: Any) -> Any:
        raise ValueError(record)

    env = StreamEnvironment(parallelism=1, restart_strategy=fixed_delay(100, 10))
    env.from_collection([1]).map(refuse).print()
    with SimulatedCluster(1, seed=1) as cluster, pytest.raises(JobFailed, match="failed after 4 restarts"):
        cluster.submit(env).wait()
    assert "tries the record again; the fifth time it fails" in PAGE
