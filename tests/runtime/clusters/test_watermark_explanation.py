"""Why event time is no further: the explanation, from what tasks say."""

from __future__ import annotations

from typing import Any

import pytest

from understudy.messages import (
    END_OF_TIME,
    NO_WATERMARK,
    ExecutionAttemptId,
    HoldingChannel,
    HoldingSplit,
    JobEdge,
    JobId,
    JobStatus,
    JobVertex,
    JobWatermarks,
    OperatorDescription,
    OperatorId,
    Partitioning,
    SubtaskIndex,
    TaskEventTime,
    TaskMetrics,
    VertexId,
)
from understudy.runtime.clusters.job_errors import UnknownOperator
from understudy.runtime.clusters.watermark_explanation import (
    HeldBy,
    WatermarkExplanation,
    explain,
    explain_all,
)

SECOND = 1_000


def vertex(name: str, *operators: str, parallelism: int = 2) -> JobVertex:
    described = tuple(OperatorDescription(OperatorId(f"id-{each}"), each, "operator") for each in operators)
    return JobVertex(VertexId(name), " -> ".join(operators), parallelism, 128, described)


VERTICES = (vertex("source", "bids", "times"), vertex("window", "window", "sink", parallelism=1))


def task(name: str, index: int, **said: Any) -> TaskMetrics:
    time = {
        "input_watermark_ms": NO_WATERMARK,
        "output_watermark_ms": NO_WATERMARK,
        "standing_ms": 12 * SECOND,
        "lag_ms": None,
        "is_idle": False,
        "is_held_back": False,
        "late_records": 0,
    }
    attempt, subtask = ExecutionAttemptId(f"{name}-{index}"), SubtaskIndex(index)
    return TaskMetrics(attempt, VertexId(name), name, subtask, 10, 0, 1, 0, 0, "running", TaskEventTime(**time | said))


def source(index: int, *splits: HoldingSplit, **said: Any) -> TaskMetrics:
    """A task that assigns event times, and the split that holds it back, if one does."""
    watermark_ms = said.pop("at", splits[0].watermark_ms if splits else NO_WATERMARK)
    defaults = {"assigner": OperatorId("id-times"), "split": splits[0] if splits else None, "splits": 1}
    return task("source", index, output_watermark_ms=watermark_ms, **defaults | said)


def window(holder: int, at: int, **said: Any) -> TaskMetrics:
    channel = HoldingChannel(0, SubtaskIndex(holder), at, 30 * SECOND)
    return task("window", 0, **{"input_watermark_ms": at, "output_watermark_ms": at, "channel": channel} | said)


def explained(
    *tasks: TaskMetrics, operator: str = "window", status: JobStatus = JobStatus.RUNNING
) -> WatermarkExplanation:
    edges = (JobEdge(VertexId("source"), VertexId("window"), Partitioning.HASH),)
    return explain(JobWatermarks(JobId("job"), "job", status, VERTICES, edges, tasks), operator)


def split(name: str, at: int, is_paused: bool = False, records: int = 10) -> HoldingSplit:
    return HoldingSplit(name, at, 31 * SECOND, is_paused, records)


ABLE = source(0, split("a", 9_000))


def test_a_split_that_stands_is_found_and_named() -> None:
    found = explained(ABLE, source(1, split("b", 1_500), splits=3, idle_splits=1), window(1, 1_500))
    assert found.held_by is HeldBy.RECORDS
    assert str(found).splitlines() == [
        "event time at 'window':",
        "  subtask 0: 1500, for 12.0 s",
        "why:",
        "  'window -> sink', subtask 0 waits for 'bids -> times', subtask 1: 1500, for 30.0 s",
        "  'bids -> times', subtask 1: split 'b' of 3: 1500, for 31.0 s",
        "  1 of 3 splits is idle, and not waited for",
        found.advice,
    ]
    assert "idle_after_ms" in found.advice


@pytest.mark.parametrize("said", [{}, {"is_held_back": True}])
def test_where_nothing_stands_still_there_is_no_advice(said: dict[str, Any]) -> None:
    found = explained(ABLE, source(1, split("b", 1_500), **said), window(1, 1_500, standing_ms=800))
    assert (found.advice, found.goes_on) == ("", True)
    assert str(found).endswith("\nIt goes on: nothing stands still.")
    standing = explained(ABLE, source(1, split("b", 1_500), **said), window(1, 1_500))
    assert standing.advice
    assert not standing.goes_on


def test_the_bound_of_the_watermarks_is_said() -> None:
    found = explained(ABLE, source(1, split("b", 1_500), bound_ms=5_000), window(1, 1_500))
    assert found.path[-1].endswith("split 'b' of 1: 1500, for 31.0 s, 5.0 s behind the newest record")


def test_one_that_has_a_watermark_from_before_a_restart_is_not_without_records() -> None:
    assert explained(source(0, split("", 5, records=0)), window(0, 5)).held_by is HeldBy.RECORDS


NEWEST = 1_700_000_000_000
LARGE = 3_600_000


def of_a_large_bound(**changes: Any) -> WatermarkExplanation:
    """Of a source that goes on, an hour behind its newest record."""
    at = NEWEST - LARGE - 1
    usual = {"split": "", "watermark_ms": at, "standing_ms": 500, "is_paused": False, "records": 200}
    holding = HoldingSplit(**{**usual, "most_behind_ms": 2_000, **changes})
    return explained(source(0, holding, bound_ms=LARGE), window(0, at, standing_ms=500))


def test_a_bound_that_records_hardly_need_holds_event_time_back() -> None:
    found = of_a_large_bound()
    assert (found.held_by, found.goes_on) == (HeldBy.BOUND, False)
    assert found.path[-1] == (
        "the bound of 3,600,000 ms holds it back: newest record 2023-11-14 22:13:20.000, watermark "
        "2023-11-14 21:13:19.999; no record was more than 2.0 s behind the newest before it"
    )
    assert "give its assign_timestamps a smaller bound" in str(found).splitlines()[-1]


@pytest.mark.parametrize(
    ("changes", "held_by"),
    [
        ({"most_behind_ms": LARGE // 10}, HeldBy.BOUND),
        ({"most_behind_ms": LARGE // 10 + 1}, HeldBy.RECORDS),
        ({"records": 100}, HeldBy.BOUND),
        ({"records": 99}, HeldBy.RECORDS),
    ],
)
def test_a_bound_is_large_from_ten_times_what_a_hundred_records_needed(
    changes: dict[str, int], held_by: HeldBy
) -> None:
    assert of_a_large_bound(**changes).held_by is held_by


@pytest.mark.parametrize(
    "changes",
    [{"most_behind_ms": None}, {"most_behind_ms": 400_000}, {"records": 20}, {"standing_ms": 60_000}],
    ids=["not known", "needed", "few records", "no records come"],
)
def test_a_bound_that_may_be_needed_does_not(changes: dict[str, Any]) -> None:
    assert of_a_large_bound(**changes).held_by is HeldBy.RECORDS


def test_so_is_the_end_of_the_job() -> None:
    failed, finished = (explained(ABLE, status=status) for status in (JobStatus.FAILED, JobStatus.FINISHED))
    assert (failed.held_by, finished.held_by) == (HeldBy.NOT_RUNNING, HeldBy.NOTHING)
    assert failed.path[-1].endswith("does not run: the job is failed"), failed.path
    assert "end of its data: the job is finished" in finished.path[-1]
    assert str(finished.subtasks[0]) == "subtask 0: the end of the data"
    assert str(failed.subtasks[0]) == "subtask 0: does not run"


def test_at_the_source_itself_an_assigner_is_missing_behind_it() -> None:
    found = explained(task("source", 0), task("source", 1), operator="bids")
    assert found.path[-1].endswith("no assign_timestamps behind it")


def test_a_job_without_event_time_is_known() -> None:
    tasks = (task("source", 0), task("source", 1), window(0, NO_WATERMARK))
    found = (explained(*tasks, operator="bids"), explained(*tasks))
    assert [each.held_by for each in found] == [HeldBy.NO_ASSIGNER] * 2
    assert all(each.has_no_event_time for each in found)
    assert not explained(ABLE, window(1, 5, channel=None, is_idle=True)).has_no_event_time


@pytest.mark.parametrize(
    ("slow", "held_by", "last"),
    [
        (source(1, split("", NO_WATERMARK, records=0)), HeldBy.NO_RECORDS, "it has brought no record yet"),
        (source(1, split("b", 5, is_paused=True)), HeldBy.ALIGNMENT, "paused"),
        (source(1, split("b", 5), is_held_back=True), HeldBy.BACK_PRESSURE, "back-pressure"),
        (source(1, splits=0), HeldBy.IDLE, "it has no splits"),
        (source(1, splits=2, idle_splits=2), HeldBy.IDLE, "no record for longer than its idle_after_ms"),
        (task("source", 1), HeldBy.NO_ASSIGNER, "no assign_timestamps between 'bids' and 'window'"),
        (source(1, at=END_OF_TIME), HeldBy.NOTHING, "end of its data"),
    ],
)
def test_so_is_what_else_holds_it(slow: TaskMetrics, held_by: HeldBy, last: str) -> None:
    at = min(slow.event_time.output_watermark_ms, 5) if slow.event_time else 5
    at = END_OF_TIME if held_by is HeldBy.NOTHING else at
    found = explained(ABLE, slow, window(1, at) if at != END_OF_TIME else window(1, at, channel=None))
    assert found.held_by is held_by
    assert last in found.path[-1]
    assert bool(found.advice) == (held_by is not HeldBy.NOTHING)


def test_a_watermark_that_is_on_its_way_is_not_the_sources_fault() -> None:
    found = explained(ABLE, source(1, split("b", 8_000)), window(1, 1_500))
    assert found.held_by is HeldBy.BACK_PRESSURE
    assert "is at 8000: that waits behind records on the way" in found.path[-1]


def test_all_inputs_may_be_idle() -> None:
    found = explained(ABLE, window(1, 5, channel=None, is_idle=True))
    assert found.held_by is HeldBy.IDLE
    assert str(found.subtasks[0]).endswith("idle")


def test_a_task_that_does_not_run_is_the_first_to_look_at() -> None:
    found = explained(ABLE, operator="times")
    assert (found.behind, found.held_by) == (1, HeldBy.NOT_RUNNING)
    assert str(found.subtasks[1]) == "subtask 1: has not reported"


def test_at_the_source_itself_its_own_watermark_counts() -> None:
    tasks = ABLE, source(1, split("b", 1_500), late_records=1_234)
    found = explained(*tasks, operator="times")
    assert [each.watermark_ms for each in found.subtasks] == [9_000, 1_500]
    assert str(found.subtasks[1]).endswith("1,234 late records")
    assert explained(*tasks, operator="id-times") == found


def test_an_unknown_operator_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownOperator, match="no operator 'windows'; it has bids, times, window, sink"):
        explained(operator="windows")
    with pytest.raises(UnknownOperator, match="did you mean 'window'"):
        explained(operator="windwo")


def test_all_are_explained_chain_by_chain() -> None:
    report = JobWatermarks(JobId("job"), "job", JobStatus.RUNNING, VERTICES, (), ())
    assert [each.operator for each in explain_all(report)] == ["times", "sink"]
