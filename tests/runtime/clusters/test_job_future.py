"""JobFuture is a `concurrent.futures.Future` that can be awaited, and says what it waited for."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from typing import Any

import pytest

from understudy import AskTimeout, JobFuture, SavepointFailed
from understudy.runtime.system import ActorFuture


def refuse(_: Any) -> str:
    raise SavepointFailed("declined")


def done_with(value: Any) -> ActorFuture[Any]:
    source: ActorFuture[Any] = ActorFuture()
    source.set(value)
    return source


def failed_with(error: BaseException) -> ActorFuture[Any]:
    source: ActorFuture[Any] = ActorFuture()
    source.try_fail(error)
    return source


def test_its_value_is_what_is_read_from_the_answer() -> None:
    future: JobFuture[str] = JobFuture(done_with(7), "the answer", read=str)
    assert (future.done(), future.result(timeout=0), future.exception(), asyncio.run(awaited(future))) == (
        True,
        "7",
        None,
        "7",
    )


def test_an_answer_that_says_no_is_its_failure() -> None:
    future: JobFuture[str] = JobFuture(done_with(7), "the answer", read=refuse)
    assert isinstance(future.exception(timeout=0), SavepointFailed)
    with pytest.raises(SavepointFailed, match="declined"):
        future.result()
    with pytest.raises(SavepointFailed, match="declined"):
        asyncio.run(awaited(future))


def test_what_the_answer_fails_with_can_be_translated_and_stays_its_cause() -> None:
    asked = AskTimeout("job-manager", "no answer within 5 ms")
    plain: JobFuture[Any] = JobFuture(failed_with(asked), "the answer")
    assert plain.exception() is asked
    translated: JobFuture[Any] = JobFuture(failed_with(asked), "the answer", failed=lambda error: KeyError(str(error)))
    error = translated.exception()
    assert isinstance(error, KeyError)
    assert error.__cause__ is asked


def test_a_wait_that_is_too_short_says_what_it_waited_for_and_the_future_stays_open() -> None:
    source: ActorFuture[Any] = ActorFuture()
    future: JobFuture[int] = JobFuture(source, "the savepoint of job 'flights'")
    for wait in (future.result, future.exception):
        with pytest.raises(TimeoutError, match=r"the savepoint of job 'flights' is not done after 0\.01 seconds"):
            wait(timeout=0.01)
    assert not future.done()
    source.set(1)
    assert future.result() == 1


def test_callbacks_come_once_with_the_future_before_or_after() -> None:
    source: ActorFuture[Any] = ActorFuture()
    future: JobFuture[int] = JobFuture(source, "the answer")
    calls: list[Any] = []
    future.add_done_callback(lambda done: calls.append((done is future, done.result())))
    source.set(1)
    future.add_done_callback(lambda done: calls.append((done is future, done.result())))
    assert calls == [(True, 1), (True, 1)]


def test_it_is_awaited_while_another_thread_sets_it() -> None:
    async def main() -> list[int]:
        source: ActorFuture[Any] = ActorFuture()
        future: JobFuture[int] = JobFuture(source, "the answer")
        waiting = [asyncio.ensure_future(awaited(future)), asyncio.wrap_future(future)]
        await asyncio.sleep(0)
        threading.Thread(target=source.set, args=(42,)).start()
        return await asyncio.gather(*waiting)

    assert asyncio.run(main()) == [42, 42]


def test_asyncio_takes_it_wherever_it_takes_an_awaitable() -> None:
    async def main() -> list[int]:
        sources: list[ActorFuture[Any]] = [ActorFuture() for _ in range(8)]
        first, *rest = [JobFuture[int](each, "the answer") for each in sources]
        for number, source in enumerate(sources):
            threading.Timer(0, source.set, args=(number,)).start()
        tasks = [asyncio.ensure_future(each) for each in rest[4:]]
        done, left = await asyncio.wait(tasks)
        assert not left
        return [
            await first,
            *await asyncio.gather(rest[0], rest[1]),
            await asyncio.wait_for(rest[2], timeout=60),
            await asyncio.shield(rest[3]),
            *sorted(task.result() for task in done),
        ]

    assert asyncio.run(main()) == list(range(8))


def test_asyncio_wait_takes_tasks_and_says_so() -> None:
    future: Any = JobFuture(ActorFuture(), "the savepoint of job 'x'")

    async def main() -> None:
        with pytest.raises(TypeError, match=r"future of the savepoint of job 'x': write asyncio\.wait\(\[asyncio\."):
            await asyncio.wait([future])

    asyncio.run(main())


def test_a_wait_for_it_that_is_given_up_does_not_cancel_it() -> None:
    source: ActorFuture[Any] = ActorFuture()
    future: JobFuture[int] = JobFuture(source, "the answer")

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(future, timeout=0)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(future), timeout=0)

    asyncio.run(give_up())
    assert not future.cancel()
    source.set(1)
    assert future.result() == 1


def test_it_goes_with_the_others_of_concurrent_futures() -> None:
    sources: list[ActorFuture[Any]] = [ActorFuture() for _ in range(3)]
    futures: list[JobFuture[int]] = [JobFuture(each, "the answer") for each in sources]
    sources[1].set(1)
    done, open_ = concurrent.futures.wait(futures, return_when=concurrent.futures.FIRST_COMPLETED)
    assert done == {futures[1]}
    assert open_ == {futures[0], futures[2]}


async def awaited(future: JobFuture[Any]) -> Any:
    return await future


@pytest.mark.parametrize("raised", [asyncio.CancelledError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_what_a_callback_raises_does_not_reach_the_thread_that_brings_the_answer(
    raised: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    source: ActorFuture[Any] = ActorFuture()
    future: JobFuture[Any] = JobFuture(source, "the savepoint of job 'x'")
    called: list[Any] = []

    def fail(_: Any) -> None:
        raise raised

    future.add_done_callback(fail)
    future.add_done_callback(called.append)
    source.set(7)
    assert called == [future]
    assert "a done callback of the savepoint of job 'x' failed" in caplog.text


def test_a_callback_that_would_wait_on_the_thread_that_brings_answers_is_refused() -> None:
    """The other answer would never come: that thread is the one that stands still."""
    source: ActorFuture[Any] = ActorFuture()
    future: JobFuture[Any] = JobFuture(source, "the savepoint")
    other: JobFuture[Any] = JobFuture(ActorFuture(), "the details of job 'x'")
    refused: list[str] = []

    def wait(_: Any) -> None:
        with pytest.raises(RuntimeError) as error:
            other.result()
        refused.append(str(error.value))

    future.add_done_callback(wait)
    source.set(7)
    assert refused == [
        "a done callback waits for the details of job 'x', on the thread that brings it: use job.on_event, or a thread"
    ]


def test_a_callback_that_comes_late_is_called_as_by_concurrent_futures() -> None:
    future: JobFuture[Any] = JobFuture(done_with(7), "the savepoint")

    def interrupt(_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        future.add_done_callback(interrupt)


def test_one_that_is_printed_in_place_of_its_value_says_how_to_get_that() -> None:
    pending: JobFuture[str] = JobFuture(ActorFuture(), "the savepoint of job 'shop'")
    assert repr(pending) == "<JobFuture of the savepoint of job 'shop': pending; await it, or call its result()>"
    assert "done; await" in repr(JobFuture(done_with(7), "the answer"))
    refused: JobFuture[str] = JobFuture(done_with(7), "the answer", read=refuse)
    assert "failed with SavepointFailed; await" in repr(refused)


def test_one_that_is_taken_for_its_value_says_what_to_write() -> None:
    """FastAPI's encoder tries dict(), and goes on to our lock: its own error names that alone."""
    pending: Any = JobFuture(ActorFuture(), "the answer")
    with (
        pytest.warns(RuntimeWarning, match="await it"),
        pytest.raises(TypeError, match="found <JobFuture"),
    ):
        dict(pending)
    with pytest.raises(TypeError, match=r"of which \['total'\] can be taken, found <JobFuture of the answer: pending"):
        pending["total"]
