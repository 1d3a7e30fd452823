"""Flink's REST: each endpoint that its command line and dashboard call, and what is wrong about a request."""

from __future__ import annotations

import asyncio
import gc
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from understudy.messages import (
    JobStatus,
)
from understudy.runtime.web.absent import ABSENT
from understudy.runtime.web.app import App

from .clients import Clients, J, V, ask, send
from .views import HEX, HOSTILE, JOB, START_MS, TRACEBACK, AnsweringJobs, job_view


def test_the_list_of_jobs_has_what_the_command_line_reads(jobs: AnsweringJobs, client_of: Clients) -> None:
    (found,) = ask(client_of, App(jobs), "/v1/jobs/overview")
    (job,) = found["jobs"]
    assert (job["jid"], job["name"], job["state"]) == (HEX, "orders", "RUNNING")
    assert (job["start-time"], job["end-time"]) == (START_MS, -1)
    assert job["tasks"]["total"] == job["tasks"]["running"] == 6


def test_a_clock_that_is_set_back_makes_nothing_shorter_than_nothing(client_of: Clients) -> None:
    view = replace(job_view(), at_ms=START_MS - 3_600_000)
    (found,) = ask(client_of, App(AnsweringJobs(view)), f"/v1/jobs/{HEX}")
    assert found["duration"] == 0
    assert {each["duration"] for each in found["vertices"]} == {0}


def test_each_endpoint_is_there_with_and_without_its_version(jobs: AnsweringJobs, client_of: Clients) -> None:
    app = App(jobs)
    paths = [
        route.path.replace(":jobid", HEX)
        .replace(":vertexid", "v1")
        .replace(":subtaskindex", "0")
        .replace(":attempt", "1")
        .replace(":checkpointid", "2")
        .replace(":taskmanagerid", "tm-0")
        .replace(":filename", "taskmanager.log")
        for route in app._routes.all
        if route.method == "GET" and route.path != "/live" and not route.path.endswith(("/log", ":filename"))
    ]
    paths = [path for path in paths if ":triggerid" not in path]
    assert len(paths) > 35
    assert ask(client_of, app, *paths)
    assert ask(client_of, app, *(f"/v1{path}" for path in paths))


def test_a_flame_graph_is_flinks(jobs: AnsweringJobs, client_of: Clients) -> None:
    (found,) = ask(client_of, App(jobs), f"{J}/vertices/v1/flamegraph")
    works, waits = found["data"]["children"]
    assert (found["data"]["value"], works["value"], waits["name"]) == (100, 75, "(waits for input)")
    assert [each["name"] for each in works["children"]] == [f"{HOSTILE} (job.py:3)", "Output.flush (output.py:9)"]


def test_thread_dumps_are_flinks(jobs: AnsweringJobs, client_of: Clients) -> None:
    worker, leader = ask(client_of, App(jobs), "/v1/taskmanagers/tm-1/thread-dump", "/v1/jobmanager/thread-dump")
    (one,) = worker["threadInfos"]
    assert one["threadName"] == f"slot of tm-1 {HOSTILE}"
    assert one["stringifiedThreadInfo"] == f'"{one["threadName"]}"\n{TRACEBACK}'
    assert leader["threadInfos"][0]["threadName"].startswith("slot of None")


def test_metrics_over_task_managers(jobs: AnsweringJobs, client_of: Clients) -> None:
    over, one = ask(
        client_of,
        App(jobs),
        "/taskmanagers/metrics?get=load&agg=min,max",
        "/taskmanagers/metrics?get=load&agg=max&taskmanagers=tm-0",
    )
    assert (over, one) == ([{"id": "load", "min": 1.0, "max": 2.0}], [{"id": "load", "max": 1.0}])


def test_how_a_job_ended(client_of: Clients) -> None:
    def result(status: JobStatus) -> Any:
        (found,) = ask(client_of, App(AnsweringJobs(job_view(status=status))), f"{J}/execution-result")
        return found

    assert result(JobStatus.RUNNING) == {"status": {"id": "IN_PROGRESS"}}
    assert result(JobStatus.FINISHED)["job-execution-result"]["application-status"] == "SUCCEEDED"
    failed = result(JobStatus.FAILED)["job-execution-result"]
    assert failed["net-runtime"] == 60_000
    assert "Caused by: ValueError" in failed["failure-cause"]["stack-trace"]


def test_what_flink_has_and_this_has_not_is_refused_with_the_reason(jobs: AnsweringJobs, client_of: Clients) -> None:
    assert not {(each.method, each.path) for each in App(jobs)._routes.all} & set(ABSENT)
    requests: list[tuple[str, str, Any]] = [(method, path.replace(":jobid", HEX), None) for method, path in ABSENT]
    for answer, why in zip(send(client_of, App(jobs), *requests), ABSENT.values(), strict=True):
        assert (answer.status_code, why in answer.json()["errors"][0]) == (404, True)
    other_way, served = send(client_of, App(jobs), ("GET", "/cluster", None), ("PUT", "/jobs", None))
    assert other_way.status_code == 404
    assert (served.status_code, served.json()["errors"]) == (405, ["PUT is not allowed for this path: wanted GET"])


def test_the_documentation_lists_each_endpoint_and_each_that_is_absent(jobs: AnsweringJobs) -> None:
    said = (Path(__file__).parents[3] / "docs" / "rest.md").read_text().splitlines()
    served = {each for each in App(jobs)._routes.all if not each.path.startswith(("/page", "/live", "/openapi"))}
    rows = {f"| {each.method} | `{each.path}` | {each.summary} |" for each in served}
    assert {line for line in said if line.startswith(("| GET | ", "| POST | ", "| PATCH | "))} == rows
    for (method, path), why in ABSENT.items():
        assert any(f"{method} `{path}`" in line and line.endswith(f"| {why} |") for line in said), (method, path)


def test_one_job_by_flinks_id_and_by_our_own(jobs: AnsweringJobs, client_of: Clients) -> None:
    flinks, ours = ask(client_of, App(jobs), J, f"/jobs/{JOB}")
    assert flinks == ours
    assert [each["name"] for each in flinks["vertices"]] == ["step-0", "step-1", "step-2"]
    assert flinks["vertices"][1]["tasks"]["RUNNING"] == 2
    assert flinks["status-counts"]["RUNNING"] == 6
    assert flinks["plan"]["nodes"][1]["inputs"][0] == {
        "num": 0,
        "id": "v0",
        "ship_strategy": "HASH",
        "exchange": "pipelined",
    }
    assert flinks["timestamps"]["RESTARTING"] == START_MS + 30_000


def test_checkpoints_with_counts_latest_and_quantiles(jobs: AnsweringJobs, client_of: Clients) -> None:
    found, details, subtasks, config = ask(
        client_of,
        App(jobs),
        f"{J}/checkpoints",
        f"{J}/checkpoints/details/2",
        f"{J}/checkpoints/details/2/subtasks/v0",
        f"{J}/checkpoints/config",
    )
    assert found["counts"] == {"restored": 1, "total": 3, "in_progress": 1, "completed": 1, "failed": 1}
    assert found["latest"]["savepoint"]["id"] == 2
    assert found["latest"]["savepoint"]["external_path"] == f"/savepoints/{HOSTILE}"
    assert found["latest"]["failed"]["failure_message"] == "task_failed: step-1"
    assert found["summary"]["end_to_end_duration"]["p99"] == 400.0
    assert details["tasks"]["v1"]["num_acknowledged_subtasks"] == 2
    assert [each["end_to_end_duration"] for each in subtasks["subtasks"]] == [400, 21]
    assert subtasks["subtasks"][0]["checkpoint"] == {"sync": 0, "async": 6}
    assert (config["mode"], config["interval"]) == ("exactly_once", 1000)


def test_a_checkpoint_whose_files_are_gone_is_discarded(jobs: AnsweringJobs, client_of: Clients) -> None:
    (found,) = ask(client_of, App(jobs), f"{J}/checkpoints/details/2")
    assert (found["discarded"], found["external_path"]) == (False, f"/savepoints/{HOSTILE}")
    jobs.views[JOB] = replace(jobs.views[JOB], savepoints=())
    (found,) = ask(client_of, App(jobs), f"{J}/checkpoints/details/2")
    assert found["discarded"] is True, "its user has disposed of it"
    history = jobs.histories[JOB]
    rows = [replace(each, kind="checkpoint", discarded=each.status == "completed") for each in history.checkpoints]
    jobs.histories[JOB] = replace(history, checkpoints=tuple(rows))
    (found,) = ask(client_of, App(jobs), f"{J}/checkpoints/details/2")
    assert found["discarded"] is True


def test_exceptions_are_a_chain_newest_first(jobs: AnsweringJobs, client_of: Clients) -> None:
    (found,) = ask(client_of, App(jobs), f"{J}/exceptions?maxExceptions=5")
    (entry,) = found["exceptionHistory"]["entries"]
    assert entry["taskName"] == "step-1 (2/2)"
    assert "\nCaused by: ValueError: " in entry["stacktrace"]
    assert found["timestamp"] == START_MS + 30_000


def test_metrics_by_subtask_and_over_subtasks(jobs: AnsweringJobs, client_of: Clients) -> None:
    listed, values, over, watermarks, pressure = ask(
        client_of,
        App(jobs),
        f"{V}/metrics",
        f"{V}/metrics?get=0.numRecordsIn,1.busyTimeMsPerSecond,nosuch",
        f"{V}/subtasks/metrics?get=numRecordsInPerSecond&agg=min,max",
        f"{V}/watermarks",
        f"{V}/backpressure",
    )
    assert {"id": "1.numRecordsOutPerSecond"} in listed
    assert values == [{"id": "0.numRecordsIn", "value": "60000"}, {"id": "1.busyTimeMsPerSecond", "value": "970"}]
    assert over == [{"id": "numRecordsInPerSecond", "min": 1000.0, "max": 1010.0}]
    assert watermarks[0] == {"id": "0.currentInputWatermark", "value": str(START_MS + 58_500)}
    assert pressure["backpressureLevel"] == "ok"


def test_upstream_of_a_slow_operator_waits(jobs: AnsweringJobs, client_of: Clients) -> None:
    (found,) = ask(client_of, App(jobs), f"{J}/vertices/v0/backpressure")
    assert found["backpressure-level"] == "high"
    assert found["subtasks"][0]["ratio"] == 0.8


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "says"),
    [
        ("GET", "/v1/jobs/nosuch", None, 404, "'nosuch' not found"),
        ("GET", f"{J}/vertices/nosuch", None, 404, "there are v0, v1, v2"),
        ("GET", f"{V}/subtasks/7", None, 404, "it has 2 subtasks"),
        ("GET", f"{J}/checkpoints/details/77", None, 404, "kept of 3, 2, 1"),
        ("GET", f"{J}/savepoints/{'0' * 32}", None, 404, "not found"),
        ("GET", "/v1/nosuch", None, 404, "openapi.json"),
        ("DELETE", J, None, 405, "GET, PATCH"),
        ("PATCH", f"{J}?mode=stop", None, 400, "wanted cancel"),
        ("POST", f"{J}/savepoints", {"target-directory": 7}, 400, "wanted a path"),
        ("POST", f"{J}/savepoints", {"triggerId": "x"}, 400, "32 hexadecimal digits"),
        (
            "POST",
            f"{J}/savepoints",
            {"target_directory": "x"},
            400,
            "savepoints has no field 'target_directory'; it has target-directory, ",
        ),
        ("POST", f"{J}/stop", {"Drain": True}, 400, "did you mean 'drain'?"),
        ("POST", f"{J}/checkpoints", {"checkpoint": "FULL"}, 400, "did you mean 'checkpointType'?"),
        ("POST", f"{J}/restart", {"savepointpath": "x"}, 400, "did you mean 'savepointPath'?"),
        ("POST", "/v1/savepoint-disposal", {"savepointPath": "x"}, 400, "did you mean 'savepoint-path'?"),
        ("POST", f"/page/{HEX}/ask", {"operators": "x"}, 400, "did you mean 'operator'?"),
        ("POST", f"{J}/checkpoints", {"checkpointType": "INCREMENTAL"}, 400, "wanted CONFIGURED or FULL"),
        ("GET", f"{J}/checkpoints/{'0' * 32}", None, 404, "not found"),
        ("POST", f"{J}/stop", {"drain": "yes"}, 400, "true or false"),
        ("POST", f"{J}/stop", {"drain": 1}, 400, "drain: wanted true or false, found 1"),
        ("POST", f"{J}/savepoints", {"cancel-job": 0}, 400, "cancel-job: wanted true or false, found 0"),
        ("POST", "/v1/savepoint-disposal", {}, 400, "savepoint-path"),
        ("GET", f"{V}/subtasks/metrics?get=x&agg=mean", None, 400, "min, max, sum, avg, skew"),
        ("GET", f"{V}/subtasks/metrics?get=x&subtasks=a", None, 400, "0,2-4"),
        ("GET", f"{J}/exceptions?maxExceptions=-1", None, 400, "wanted a number"),
        ("GET", "/v1/taskmanagers/tm-9", None, 404, "tm-9"),
    ],
)
def test_what_is_wrong_is_said_in_flinks_shape(
    jobs: AnsweringJobs, client_of: Clients, method: str, path: str, body: Any, status: int, says: str
) -> None:
    (answer,) = send(client_of, App(jobs), (method, path, body))
    assert answer.status_code == status
    (text,) = answer.json()["errors"]
    assert says in text
    assert jobs.orders == []


BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.mark.parametrize("token", [None, "secret"])
def test_who_types_an_address_into_a_browser_lands_on_the_page(
    jobs: AnsweringJobs, client_of: Clients, token: str | None
) -> None:
    async def all_of_them() -> list[httpx.Response]:
        async with client_of(App(jobs, token=token)) as client:
            return [
                await client.get(path, headers=BROWSER)
                for path in ("http://localhost//jobs", "/jobs/", f"/jobs/{HEX}", "/<b>x")
            ]

    *jobs_lists, job, nowhere = asyncio.run(all_of_them())
    assert [(each.status_code, each.headers["location"]) for each in jobs_lists] == [(307, "/#/")] * 2
    assert (job.status_code, job.headers["location"]) == (307, f"/#/{HEX}")
    assert (nowhere.status_code, nowhere.headers["content-type"]) == (404, "text/html; charset=UTF-8")
    assert "there is nothing at /&lt;b&gt;x" in nowhere.text
    for address in ("/", "/v1/jobs/overview", "/openapi.json"):
        assert f'href="{address}"' in nowhere.text
    assert "/jobs/:jobid" not in nowhere.text


def test_a_program_gets_json_of_the_same_addresses(jobs: AnsweringJobs, client_of: Clients) -> None:
    listed, one, slashes = ask(client_of, App(jobs), "/jobs", f"/jobs/{HEX}", "http://localhost//v1//jobs/overview/")
    assert [each["id"] for each in listed["jobs"]] == [one["jid"]] == [slashes["jobs"][0]["jid"]] == [HEX]
    (nowhere,) = send(client_of, App(jobs), ("GET", "/nosuch", None))
    assert nowhere.json() == {"errors": ["Not found: /nosuch. The page is at /, and openapi.json describes the API"]}


def test_the_log_of_a_task_manager_is_text_and_no_other_file_is(jobs: AnsweringJobs, client_of: Clients) -> None:
    log, named, other = send(
        client_of,
        App(jobs),
        ("GET", "/taskmanagers/tm-0/log", None),
        ("GET", "/taskmanagers/tm-0/logs/taskmanager.log", None),
        ("GET", "/taskmanagers/tm-0/logs/..%2f..%2fetc%2fpasswd", None),
    )
    assert log.text == named.text
    assert "WARNING prices [step-1 0]: <img src=x" in log.text
    assert log.headers["content-type"].startswith("text/plain")
    assert other.status_code == 404


def test_without_a_job_manager_it_is_503_and_after_its_return_200(jobs: AnsweringJobs, client_of: Clients) -> None:
    app = App(jobs)
    jobs.away = True
    (answer,) = send(client_of, app, ("GET", J, None))
    assert answer.status_code == 503
    assert "does it still run?" in answer.json()["errors"][0]
    jobs.away = False
    assert ask(client_of, app, J)


def test_a_page_that_only_shows_takes_no_order(jobs: AnsweringJobs, client_of: Clients) -> None:
    orders = [("POST", f"{J}/{what}", {}) for what in ("stop", "savepoints", "checkpoints")] + [("PATCH", J, None)]
    answers = send(client_of, App(jobs, read_only=True), *orders)
    assert [each.status_code for each in answers] == [403] * 4
    assert jobs.orders == []


def test_an_ended_job_counts_its_tasks_as_ended(client_of: Clients) -> None:
    (found,) = ask(client_of, App(AnsweringJobs(job_view(status=JobStatus.CANCELED))), "/jobs/overview")
    assert found["jobs"][0]["tasks"]["canceled"] == 6
    assert found["jobs"][0]["end-time"] == START_MS + 60_000


def test_many_who_ask_at_once_are_one_question(jobs: AnsweringJobs, client_of: Clients) -> None:
    app = App(jobs)

    async def crowd() -> None:
        async with client_of(app) as client:
            await client.get("/jobs/overview")
            before = jobs.questions
            await asyncio.gather(*(client.get(J) for _ in range(50)))
            assert jobs.questions == before + 1

    asyncio.run(crowd())


def test_a_question_that_nobody_waits_for_any_more_fails_without_a_word(
    jobs: AnsweringJobs, client_of: Clients
) -> None:
    """Its page was closed, and the JobManager is away: asyncio is not to complain of an error that nobody took."""
    app, complaints = App(jobs), list[dict[str, Any]]()
    jobs.away, jobs.answers = True, asyncio.Event()

    async def hurried() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, complaint: complaints.append(complaint))
        async with client_of(app) as client:
            asked = asyncio.ensure_future(client.get("/jobs/overview"))
            for _ in range(50):
                await asyncio.sleep(0)
            assert jobs.questions == 1
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)
            jobs.answers.set()
            for _ in range(5):
                await asyncio.sleep(0)

    asyncio.run(hurried())
    app = None
    gc.collect()
    assert complaints == []


def test_the_description_names_each_endpoint(jobs: AnsweringJobs, client_of: Clients) -> None:
    app = App(jobs)
    (described,) = ask(client_of, app, "/openapi.json")
    assert described["openapi"] == "3.1.0"
    assert "/jobs/{jobid}/checkpoints/details/{checkpointid}/subtasks/{vertexid}" in described["paths"]
    operations = [each["operationId"] for path in described["paths"].values() for each in path.values()]
    assert len(operations) == len(set(operations))
    json.dumps(described)
