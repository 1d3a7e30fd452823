"""Orders by Flink's REST: savepoints, checkpoints, restarts, and questions to operators; each is given once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from understudy.messages import (
    CancelJob,
    CancelWithSavepoint,
    DisposeSavepoint,
    JobStatus,
    RestartJob,
    StopWithSavepoint,
    TriggerSavepoint,
)
from understudy.runtime.web.app import App

from .clients import Clients, J, completed, send
from .views import HEX, HOSTILE, JOB, AnsweringJobs, job_view


def test_orders_reach_the_job_manager_and_their_outcome_can_be_asked_for(
    jobs: AnsweringJobs, client_of: Clients
) -> None:
    app = App(jobs)
    trigger = {"triggerId": "ab" * 16}

    async def all_of_them() -> list[Any]:
        async with client_of(app) as client:
            found = []
            for path, body in (
                (
                    f"{J}/savepoints",
                    {"target-directory": "nightly", "cancel-job": False, "formatType": "CANONICAL"} | trigger,
                ),
                (f"{J}/savepoints", {"cancel-job": True}),
                (f"{J}/stop", {"targetDirectory": None, "drain": True, "formatType": None, "triggerId": None}),
            ):
                ordered = await client.post(path, json=body)
                assert ordered.status_code == 202
                found.append(await completed(client, f"{J}/savepoints/{ordered.json()['request-id']}"))
            disposal = await client.post("/v1/savepoint-disposal", json={"savepoint-path": "/savepoints/x"})
            found.append(await completed(client, f"/v1/savepoint-disposal/{disposal.json()['request-id']}"))
            assert (await client.patch(f"{J}?mode=cancel")).status_code == 202
            return found

    *savepoints, disposal = asyncio.run(all_of_them())
    for each in savepoints:
        assert each == {"status": {"id": "COMPLETED"}, "operation": {"location": "/savepoints/savepoint-1"}}
    assert disposal == {"status": {"id": "COMPLETED"}, "operation": {}}
    assert jobs.orders == [
        TriggerSavepoint(JOB, "nightly"),
        CancelWithSavepoint(JOB, None),
        StopWithSavepoint(JOB, None, True),
        DisposeSavepoint("/savepoints/x"),
        CancelJob(JOB),
    ]


@pytest.mark.parametrize("refusal", ["", "tasks are restarted"])
def test_a_checkpoint_is_taken_now_and_its_number_said_or_why_there_is_none(
    refusal: str, jobs: AnsweringJobs, client_of: Clients
) -> None:
    jobs.refusal = refusal

    async def outcomes() -> list[Any]:
        async with client_of(App(jobs)) as client:
            found = []
            for body in ({}, {"checkpointType": "CONFIGURED", "triggerId": "ef" * 16}, {"checkpointType": "FULL"}):
                ordered = await client.post(f"{J}/checkpoints", json=body)
                assert ordered.status_code == 202
                found.append(await completed(client, f"{J}/checkpoints/{ordered.json()['request-id']}"))
            return found

    for each in asyncio.run(outcomes()):
        failure = each["operation"].pop("failureCause")
        assert each == {"status": {"id": "COMPLETED"}, "operation": {"checkpointId": None if refusal else 7}}
        assert (failure and failure["stack-trace"]) == (refusal or None)
    assert [each.full for each in jobs.orders] == [False, False, True]


def test_a_job_that_has_ended_just_now_can_be_restarted(client_of: Clients) -> None:
    """Though it was seen to run a moment before."""
    jobs = AnsweringJobs(job_view())

    async def order() -> int:
        async with client_of(App(jobs)) as client:
            assert (await client.get(f"{J}/status")).json() == {"status": "RUNNING"}
            jobs.views[JOB] = replace(job_view(status=JobStatus.CANCELED), restart_refusal="")
            answer = await client.post(f"{J}/restart", json={"savepointPath": "/savepoints/1"})
            return int(answer.status_code)

    assert asyncio.run(order()) == 202


def test_a_restart_is_ordered_once_and_refused_where_it_cannot_be(client_of: Clients) -> None:
    """The job that goes on can be asked about at once; the order twice is one, also when the job has changed by it."""
    running, ended = job_view(), job_view(status=JobStatus.CANCELED, job_id="job-" + "e" * 32)
    jobs = AnsweringJobs(replace(running, restart_refusal=""), replace(ended, restart_refusal="it was <b>long</b> ago"))
    wanted = {"savepointPath": "/savepoints/1", "triggerId": "a" * 32}

    async def orders() -> list[Any]:
        async with client_of(App(jobs)) as client:
            kept = await client.post(f"/jobs/{'e' * 32}/restart", json=wanted)
            runs = await client.post(f"{J}/restart", json=wanted)
            said = [(each.status_code, each.json()["errors"][0]) for each in (kept, runs)]
            for _ in range(2):
                taken = await client.post(f"{J}/restart", json=wanted | {"cancelJob": True})
                assert (taken.status_code, taken.json()) == (202, {"request-id": "a" * 32})
                found = await completed(client, f"{J}/restart/{'a' * 32}")
            assert (await client.get(f"/jobs/{found['operation']['jobid']}")).status_code == 200
            other = await client.post(f"{J}/restart", json={"savepointPath": "/etc/passwd", "cancelJob": True})
            failed = await completed(client, f"{J}/restart/{other.json()['request-id']}")
            assert "none of the savepoint directories" in failed["operation"]["failure-cause"]["stack-trace"]
            return said

    assert asyncio.run(orders()) == [
        (409, "job 'orders' cannot be restarted here: it was <b>long</b> ago"),
        (409, "job 'orders' cannot be restarted here: it is running: stop it first, or say \"cancelJob\": true"),
    ]
    assert jobs.orders == [
        RestartJob(JOB, "/savepoints/1", cancel=True),
        RestartJob(JOB, "/etc/passwd", cancel=True),
    ]


@pytest.mark.parametrize("body", ['{"savepointPath": ', '{"savepointPath": "\\ud800"}', "[" * 9_000])
def test_a_body_that_is_no_json_is_refused_at_once(jobs: AnsweringJobs, client_of: Clients, body: str) -> None:
    async def order() -> Any:
        async with client_of(App(jobs)) as client:
            return await client.post(f"{J}/restart", content=body, headers={"Content-Type": "application/json"})

    answer = asyncio.run(order())
    assert answer.status_code == 400
    assert answer.json()["errors"][0].startswith("the body is no JSON: ")


def test_the_same_order_sent_again_is_one_order(jobs: AnsweringJobs, client_of: Clients) -> None:
    order = ("POST", f"{J}/savepoints", {"triggerId": "cd" * 16})
    assert [each.json() for each in send(client_of, App(jobs), order, order)] == [{"request-id": "cd" * 16}] * 2
    assert len(jobs.orders) == 1


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("stop", {}),
        ("savepoints", {"cancel-job": True}),
        ("savepoints", {"target-directory": "b"}),
        ("checkpoints", {}),
    ],
)
def test_another_order_of_the_same_id_is_refused(
    jobs: AnsweringJobs, client_of: Clients, path: str, body: dict[str, Any]
) -> None:
    """Else it would be told as done, and would not be."""
    trigger = {"triggerId": "cd" * 16}
    first, other = ("POST", f"{J}/savepoints", trigger), ("POST", f"{J}/{path}", body | trigger)
    given, refused = send(client_of, App(jobs), first, other)
    assert (given.status_code, refused.status_code) == (202, 409)
    assert refused.json()["errors"][0].startswith(f"triggerId: another order has the id {'cd' * 16}")
    assert len(jobs.orders) <= 1


def test_a_savepoint_that_fails_says_why(jobs: AnsweringJobs, client_of: Clients) -> None:
    app = App(jobs)

    async def outcome() -> Any:
        async with client_of(app) as client:
            ordered = await client.post(f"{J}/savepoints", json={"target-directory": "../../etc"})
            return await completed(client, f"{J}/savepoints/{ordered.json()['request-id']}")

    failure = asyncio.run(outcome())["operation"]["failure-cause"]
    assert failure["stack-trace"] == "../../etc is not below the root"


def test_questions_to_operators_are_orders_and_wrong_ones_are_refused_in_words(
    jobs: AnsweringJobs, client_of: Clients
) -> None:
    path = f"/page/{HEX}/ask"

    def of(body: dict[str, Any], **settings: Any) -> tuple[int, Any]:
        (answer,) = send(client_of, App(jobs, **settings), ("POST", path, body))
        said = answer.json()
        return answer.status_code, said["answer"] if answer.status_code == 200 else said["errors"][0]

    assert of({"operator": "step-1", "question": {"a": 1}}) == (200, {"name": HOSTILE, "3": [1, 2]})
    (order,) = jobs.orders
    assert (order.has_key, order.plain_question) == (False, {"a": 1})
    assert of({"operator": "step-9"})[0] == 400
    assert "wanted one of 'step-0'" in of({"operator": "step-9"})[1]
    assert of({"operator": "step-1", "key": {"a": 1}})[1].startswith("key: ")
    assert of({"operator": "step-1"}, read_only=True)[0] == 403
    assert len(jobs.orders) == 1
