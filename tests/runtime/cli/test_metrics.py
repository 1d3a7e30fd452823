"""`understudy metrics`, `top`, `back-pressure`, `flame-graph` and `logs`, of a job that runs elsewhere."""

from __future__ import annotations

import pytest

from understudy.messages import JobId, JobMetrics, JobStatus, SampledFrame, VertexId, VertexMetrics
from understudy.runtime.cli.figures import COLUMNS, short, table_of
from understudy.runtime.cli.metrics import folded
from understudy.runtime.cli.top import in_words

from .conftest import Running, Shell


def measured(running: Running) -> None:
    running.until(
        lambda client: client.metrics(running.job_id).jobs[0].vertex("counting").values.get("numRecordsInPerSecond"),
        "a rate",
    )


@pytest.mark.every_run
def test_metrics_shows_where_the_time_goes(shared: Shell, running: Running) -> None:
    measured(running)
    done = shared("metrics", "job")
    assert done.code == 0, done.err
    head, *lines = done.out.splitlines()
    assert head.split("  ")[0] == "vertex"
    assert [line.split()[0] for line in lines] == ["numbers", "counting"]
    assert "the job is running" in done.err

    every = shared("metrics", "job", "--all").out.splitlines()
    assert any(line.startswith("numberOfCompletedCheckpoints ") for line in every)
    assert any(line.startswith("numbers[0] numRecordsOutPerSecond ") for line in every)

    found = shared("metrics", running.job_id, "--json").json
    assert found["vertices"][0]["subtasks"][0]["values"]["numRecordsOut"] > 0


def test_each_figure_of_a_vertex_stands_under_its_name() -> None:
    values = {
        "busyTimeMsPerSecond": 700.0,
        "backPressuredTimeMsPerSecond": 200.0,
        "idleTimeMsPerSecond": 100.0,
        "numRecordsInPerSecond": 12_345.0,
        "numRecordsOutPerSecond": 30.0,
        "numBytesInPerSecond": 4_600_000.0,
        "watermarkLag": 1_500.0,
        "numLateRecordsDropped": 3.0,
    }
    vertex = VertexMetrics(VertexId("v"), "counting", 2, (), values, (), {})
    table = table_of(JobMetrics(JobId("j"), "job", JobStatus.RUNNING, 0, {}, (vertex,)), with_subtasks=False)
    found = {name: str(next(iter(column.cells))) for name, column in zip(COLUMNS, table.columns, strict=True)}
    assert found == {
        "vertex": "counting",
        "subtask": "2",
        "busy": "70 %",
        "held back": "20 %",
        "idle": "10 %",
        "records in/s": "12.3k",
        "out/s": "30",
        "bytes in/s": "4.6M",
        "lag": "1.5 s",
        "late": "3",
    }


@pytest.mark.every_run
def test_top_prints_once_where_there_is_no_terminal(shared: Shell, running: Running) -> None:
    measured(running)
    done = shared("top")
    assert done.code == 0, done.err
    assert done.out.startswith("1 job runs; 1 TaskManager with 1 slot, all in use\n")
    assert "running" in done.out
    assert "TaskManager" in done.out
    assert shared("top", "--json").json["jobs"][0]["name"] == "job"
    assert "counting" in shared("top", "job").out
    wrong = shared("top", "jbo")
    assert wrong.code == 1
    assert "or the name 'jbo'; did you mean 'job'? There are: " in wrong.err


@pytest.mark.every_run
def test_back_pressure_and_flame_graph_by_the_same_samples(shared: Shell, running: Running) -> None:
    done = shared("back-pressure", "job", "numbers", "counting")
    assert done.code == 0, done.err
    head, *lines = done.out.splitlines()
    assert head.split() == ["vertex", "subtask", "level", "held", "back", "busy", "idle"]
    assert all(" OK " in line for line in lines)
    assert len(lines) == 2
    stacks = shared("flame-graph", "job", "counting").out.splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in stacks) == 100
    wrong = shared("back-pressure", "job", "sauce")
    assert wrong.code == 1
    assert "'sauce': job 'job' has no such vertex or operator; it has 'numbers'" in wrong.err
    assert "not running" not in wrong.err


@pytest.mark.every_run
def test_logs_are_there_for_those_who_ask_later(shared: Shell, running: Running) -> None:
    assert running.until_it_runs() is None
    done = shared("logs", "job", "--json")
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith("job job has logged nothing lately: its TaskManagers send what is logged at WARNING")
    assert len(done.err.splitlines()) == 1


def test_the_head_of_top_counts_in_words() -> None:
    def head(jobs: int, managers: int, free: int, slots: int) -> str:
        values = {
            "numRunningJobs": jobs,
            "numRegisteredTaskManagers": managers,
            "taskSlotsAvailable": free,
            "taskSlotsTotal": slots,
        }
        return in_words({name: float(value) for name, value in values.items()})

    assert head(0, 0, 0, 0) == "no job runs; no TaskManager"
    assert head(1, 2, 0, 4) == "1 job runs; 2 TaskManagers with 4 slots, all in use"
    assert head(2, 1, 3, 4) == "2 jobs run; 1 TaskManager with 4 slots, 3 of them free"


def test_stacks_are_folded_with_their_own_samples() -> None:
    def frame(parent: int, name: str, samples: int) -> SampledFrame:
        return SampledFrame(parent, name, "", 0, "user", samples)

    frames = [frame(-1, "(works)", 10), frame(0, "a;b", 8), frame(1, "c", 8), frame(-1, "(waits for input)", 5)]
    assert folded(frames) == ["(works) 2", "(works);a,b;c 8", "(waits for input) 5"]


def test_numbers_are_short() -> None:
    assert [short(each) for each in (0, 0.25, 7, 12.3, 9_999, 12_300, 4_600_000, 2e9)] == [
        "0", "0.2", "7", "12", "9999", "12.3k", "4.6M", "2.0G",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (9_999.4, "9999"),
        (9_999.6, "10.0k"),
        (999_949, "999.9k"),
        (999_960, "1.0M"),
        (-999_960, "-1.0M"),
        (999_949_999, "999.9M"),
        (999_960_000, "1.0G"),
    ],
)
def test_a_number_that_is_rounded_up_to_the_next_unit_has_that_one(number: float, shown: str) -> None:
    assert short(number) == shown
