"""JobHandle: questions to operators, which are refused at once where they make no sense."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from understudy.messages import (
    AskOperator,
)
from understudy.runtime.api.errors import InvalidSetting
from understudy.runtime.clusters.job_errors import (
    UnknownOperator,
)
from understudy.runtime.clusters.job_handle import JobHandle
from understudy.state import InvalidKey

from .clients import Client, WorstSoFar


def test_ask_sends_the_question_and_unwraps_the_answer(job: JobHandle, client: Client) -> None:
    assert job.ask("worst delay", key="JFK", message=WorstSoFar("JFK")).result(timeout=1) == 1301.0
    assert client.asked == [AskOperator("job-7", "worst delay", True, "JFK", WorstSoFar("JFK"), None)]


def test_ask_takes_plain_data_an_operator_id_and_no_key(job: JobHandle, client: Client) -> None:
    operator_id = job._graph.vertices[1].operators[0].operator_id
    job.ask(operator_id, message={"how": "many"}, key=0)
    job.ask(operator_id, message="all")
    assert [(one.has_key, one.question, one.plain_question) for one in client.asked] == [
        (True, None, {"how": "many"}),
        (False, None, "all"),
    ]


def test_ask_waits_for_the_operator_if_it_is_told_to(job: JobHandle, client: Client) -> None:
    job.ask("worst delay", message="all")
    job.ask("worst delay", message="all", wait_ms=2_500)
    assert client.waits_ms == [0, 2500]


@pytest.mark.parametrize("wait_ms", [-1, float("nan")])
def test_ask_refuses_a_time_that_is_none(job: JobHandle, client: Client, wait_ms: float) -> None:
    with pytest.raises(InvalidSetting, match=f"at least 0, found {wait_ms}"):
        job.ask("worst delay", message="all", wait_ms=wait_ms)
    assert not client.asked


@pytest.mark.parametrize("key", [None, [], threading.Lock()], ids=["none", "list", "lock"])
def test_ask_refuses_what_cannot_be_a_key_at_once(job: JobHandle, client: Client, key: Any) -> None:
    with pytest.raises(InvalidKey):
        job.ask("worst delay", message="all", key=key)
    assert not client.asked


def test_ask_refuses_an_unknown_operator_at_once(job: JobHandle, client: Client) -> None:
    with pytest.raises(UnknownOperator, match="has no operator 'wrost'; it has flights, worst delay, out"):
        job.ask("wrost", message="all")
    assert not client.asked


@pytest.mark.parametrize("key", [None, [1], {}, 1j, (1, [2])])
def test_ask_refuses_at_once_what_cannot_be_a_key(job: JobHandle, client: Client, key: Any) -> None:
    with pytest.raises(InvalidKey):
        job.ask("worst delay", key=key, message="all")
    assert not client.asked
