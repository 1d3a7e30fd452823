"""Sent: what nobody waits for, and is lost, is logged."""

from __future__ import annotations

import asyncio

import pytest

from understudy.runtime.clusters.job_errors import InletClosed
from understudy.runtime.clusters.sent import Sent, settle


class Inlet:
    trouble = ""

    def __repr__(self) -> str:
        return "<inlet 'orders'>"


def test_records_that_are_lost_and_that_nobody_waited_for_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """As Python does of a coroutine that was never awaited. One error closes an inlet for all of them."""
    settle([Sent(Inlet(), None, None) for _ in range(3)], InletClosed("inlet 'orders' takes no more records"))
    (said,) = caplog.messages
    assert "<inlet 'orders'>: records are not known to last, and no code has waited for what send() returned" in said
    assert "InletClosed: inlet 'orders' takes no more records" in said
    assert "`await inlet.send(record)`" in said


async def _awaited(sent: Sent) -> int:
    return await sent


def test_one_that_was_awaited_or_asked_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    awaited, asked, polled = (Sent(Inlet(), None, None) for _ in range(3))
    for sent in (awaited, asked, polled):
        settle([sent], InletClosed("closed"))
    with pytest.raises(InletClosed):
        asyncio.run(_awaited(awaited))
    with pytest.raises(InletClosed):
        asked.result()
    assert polled.done()
    del awaited, asked, polled, sent
    assert caplog.records == []


def test_the_parts_of_a_larger_one_and_those_that_last_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    settle([Sent(None, None, None)], InletClosed("closed"))
    settle([Sent(Inlet(), None, None)])
    assert caplog.records == []
