"""ActorFuture keeps Pykka's semantics, and can be awaited on any loop."""

from __future__ import annotations

import asyncio
import threading

import pykka
import pytest

from understudy.runtime.system import ActorFuture, AskTimeout, FutureTimeout


def later(future, value):
    thread = threading.Thread(target=future.set, args=(value,))
    thread.start()
    return thread


def test_it_can_be_awaited_while_another_thread_sets_it():
    async def main():
        future = ActorFuture()
        waiting = asyncio.ensure_future(future)
        await asyncio.sleep(0)
        later(future, 42).join()
        return await waiting, await future

    assert asyncio.run(main()) == (42, 42)


def test_awaiting_raises_the_failure():
    async def main():
        future = ActorFuture()
        future.try_fail(ValueError("no"))
        await future

    with pytest.raises(ValueError, match="no"):
        asyncio.run(main())


def test_what_is_derived_is_awaited_without_blocking_the_loop():
    async def main():
        left, right = ActorFuture(), ActorFuture()
        total = left.join(right).map(sum)
        waiting = asyncio.ensure_future(total)
        await asyncio.sleep(0)
        left.set(1)
        await asyncio.sleep(0)
        right.set(2)
        return await waiting

    assert asyncio.run(main()) == 3


def test_filter_and_reduce_are_pykkas():
    future = ActorFuture()
    future.set([1, 2, 3, 4])
    assert future.filter(lambda n: n % 2 == 0).get() == [2, 4]
    assert future.reduce(lambda left, right: left + right, 10).get() == 20


def test_the_first_outcome_counts():
    future = ActorFuture()
    assert future.try_set(1)
    assert not future.try_set(2)
    assert not future.try_fail(ValueError())
    assert future.get() == 1


def test_get_times_out_as_pykkas_does():
    with pytest.raises(pykka.Timeout):
        ActorFuture().get(timeout=0)


def test_callbacks_come_once_before_or_after():
    future, calls = ActorFuture(), []
    future.add_done_callback(lambda done: calls.append(("before", done.get())))
    future.set("x")
    future.add_done_callback(lambda done: calls.append(("after", done.get())))
    future.map(str.upper).add_done_callback(lambda done: calls.append(("mapped", done.get())))
    assert calls == [("before", "x"), ("after", "x"), ("mapped", "X")]


def test_a_waiter_whose_loop_is_closed_harms_nobody():
    future = ActorFuture()

    async def give_up():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(future, timeout=0)

    asyncio.run(give_up())
    future.set("late")
    assert future.get() == "late"


def test_a_wait_that_is_too_short_is_pykkas_and_pythons_timeout():
    future = ActorFuture()
    for waited in (future, future.map(str), future.join(ActorFuture())):
        with pytest.raises(FutureTimeout, match=r"not done after 0\.01 seconds") as caught:
            waited.get(timeout=0.01)
        assert isinstance(caught.value, TimeoutError)
        assert isinstance(caught.value, pykka.Timeout)


def test_a_timeout_that_it_failed_with_stays_what_it_is():
    future = ActorFuture()
    future.try_fail(AskTimeout("worst", "no answer within 5 ms"))
    with pytest.raises(AskTimeout, match="no answer within 5 ms"):
        future.get(timeout=1)


def test_it_has_the_methods_of_concurrent_futures():
    future = ActorFuture()
    for wait in (future.result, future.exception):
        with pytest.raises(TimeoutError):
            wait(timeout=0)
    assert not future.done()
    future.set([1])
    assert (future.done(), future.result(timeout=0), future.exception(timeout=0)) == (True, [1], None)
    failed = ActorFuture()
    failed.try_fail(ValueError("no"))
    assert isinstance(failed.exception(), ValueError)
    mapped = failed.map(str)
    assert (mapped.done(), str(mapped.exception())) == (True, "no")
