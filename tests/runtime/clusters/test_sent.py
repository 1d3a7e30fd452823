"""Sent: what nobody waits for, and is lost, is logged; all who wait are woken."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from understudy.runtime.clusters.job_errors import InletClosed
from understudy.runtime.clusters.sent import Sent, settle
from understudy.runtime.system.future import ActorFuture


class Inlet:
    trouble = ""

    def __repr__(self) -> str:
        return "<inlet 'orders'>"


def test_records_that_are_lost_and_that_nobody_waited_for_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """As Python does of a coroutine that was never awaited. One error closes an inlet for all of them."""
    settle([Sent(Inlet(), None, None) for _ in range(3)], InletClosed("inlet 'orders' takes no more records"))
    (said,) = caplog.messages
    assert "<inlet 'orders'>: records may be lost, and no code has asked for the outcome of what send()" in said
    assert "InletClosed: inlet 'orders' takes no more records" in said
    assert "`await inlet.send(record)`" in said


async def _awaited(sent: Sent) -> int:
    return await sent


def test_one_that_was_awaited_or_asked_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    awaited, asked = (Sent(Inlet(), None, None) for _ in range(2))
    for sent in (awaited, asked):
        settle([sent], InletClosed("closed"))
    with pytest.raises(InletClosed):
        asyncio.run(_awaited(awaited))
    with pytest.raises(InletClosed):
        asked.result()
    del awaited, asked, sent
    assert caplog.records == []


def test_one_that_was_only_polled_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """That it is done does not say that its records last."""
    polled = Sent(Inlet(), None, None)
    settle([polled], InletClosed("closed"))
    assert polled.done()
    del polled
    (said,) = caplog.messages
    assert "no code has asked for the outcome of what send() returned: InletClosed: closed" in said


def test_the_parts_of_a_larger_one_and_those_that_last_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    settle([Sent(None, None, None)], InletClosed("closed"))
    settle([Sent(Inlet(), None, None)])
    assert caplog.records == []


async def _others_of_one_that_is_canceled(count: int) -> list[int]:
    sent = [Sent(Inlet(), None, None) for _ in range(count)]
    waiting = [asyncio.ensure_future(_awaited(each)) for each in sent]
    await asyncio.sleep(0)
    waiting[0].cancel()
    settle(sent)
    return await asyncio.wait_for(asyncio.gather(*waiting[1:]), 5)


def test_who_gives_up_keeps_no_other_from_being_woken() -> None:
    """They are woken together, in the order in which they came."""
    assert asyncio.run(_others_of_one_that_is_canceled(3)) == [0, 0]


def test_all_threads_that_wait_are_woken() -> None:
    sent, made = Sent(Inlet(), None, None), list[ActorFuture[None]]()
    sent._promise = lambda: made.append(ActorFuture()) or made[-1]  # type: ignore[func-returns-value]
    with ThreadPoolExecutor(3) as pool:
        answers = [pool.submit(sent.result, 5) for _ in range(3)]
        while len(made) < 3:
            pass
        settle([sent])
        assert [answer.result() for answer in answers] == [0, 0, 0]


def test_one_that_is_done_while_its_waiter_is_made_waits_for_nothing() -> None:
    def promise() -> ActorFuture[None]:
        settle([sent])
        return ActorFuture()

    sent = Sent(Inlet(), None, promise)
    assert sent.result(timeout=5) == 0


def test_a_loop_that_is_closed_keeps_no_other_from_being_woken() -> None:
    async def entered() -> object:
        waiting = sent.__await__()
        next(waiting)
        return waiting

    async def of_an_open_one() -> int:
        waiting = asyncio.ensure_future(_awaited(sent))
        await asyncio.sleep(0)
        settle([sent])
        return await asyncio.wait_for(waiting, 5)

    sent = Sent(Inlet(), None, None)
    loop = asyncio.new_event_loop()
    left = loop.run_until_complete(entered())
    loop.close()
    assert asyncio.run(of_an_open_one()) == 0
    del left


def test_one_that_is_overdue_says_so_and_can_be_asked_again() -> None:
    sent = Sent(Inlet(), 0.01, None)
    for _ in range(2):
        with pytest.raises(TimeoutError, match=r"the record of <inlet .orders.> is not acknowledged after 0\.01 sec"):
            sent.result()
    settle([sent])
    assert sent.result() == 0


def test_one_that_is_taken_for_its_value_says_what_to_write() -> None:
    sent: Any = Sent(Inlet(), None, None)
    assert repr(sent) == "<Sent: a record of <inlet 'orders'>: pending; await it, or call its result()>"
    sent.number = 3
    settle([sent])
    with (
        pytest.warns(RuntimeWarning, match="await it"),
        pytest.raises(TypeError, match="wanted a value, found <Sent: record 3 of <inlet 'orders'>: done; await it"),
    ):
        dict(sent)


class Looked(Sent):
    """Another thread looks at it as soon as it is done, without the lock."""

    seen: BaseException | None = None
    _done = False

    @property
    def _is_done(self) -> bool:  # type: ignore[override]
        return self._done

    @_is_done.setter
    def _is_done(self, is_done: bool) -> None:
        self._done = is_done
        if is_done:
            with pytest.raises(InletClosed) as raised:
                self.result()
            self.seen = raised.value


def test_one_that_fails_is_never_seen_as_done_without_its_error() -> None:
    """Its records would be taken for safe."""
    sent, error = Looked(Inlet(), None, None), InletClosed("closed")
    settle([sent], error)
    assert sent.seen is error
