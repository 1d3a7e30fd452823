"""ProcessLoop: asyncio as on any loop, in virtual time, and only while the process lives."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine
from typing import Any

import pytest

from understudy.runtime.simulation.world.event_loop import NotOnSimulatedLoop
from understudy.runtime.simulation.world.world import Process, World


@pytest.fixture
def world() -> World:
    return World(seed=1)


@pytest.fixture
def process(world: World) -> Process:
    return world.process("p")


def run(process: Process, coroutine: Coroutine[Any, Any, Any], for_ms: float = 10_000) -> Any:
    tasks: list[asyncio.Task[Any]] = []
    process.loop.call_soon(lambda: tasks.append(process.loop.create_task(coroutine)))
    process.world.run_for(for_ms)  # type: ignore[attr-defined]
    return tasks[0].result()


def test_sleepers_wake_in_the_order_of_their_times(process: Process) -> None:
    woken: list[float] = []

    async def sleeper(seconds: float) -> None:
        await asyncio.sleep(seconds)
        woken.append(seconds)

    async def main() -> None:
        await asyncio.gather(*(sleeper(seconds) for seconds in (0.3, 0.1, 0, 0.2)))

    run(process, main())
    assert woken == [0, 0.1, 0.2, 0.3]


def test_sleep_takes_virtual_time_only(process: Process) -> None:
    async def main() -> tuple[float, float]:
        before = asyncio.get_running_loop().time()
        await asyncio.sleep(3.5)
        return before, asyncio.get_running_loop().time()

    before, after = run(process, main())
    assert after - before == pytest.approx(3.5)


def test_gather_keeps_the_order_of_its_arguments_and_raises_the_first_error(process: Process) -> None:
    async def value(number: int) -> int:
        await asyncio.sleep(1 - number / 10)
        if number == 3:
            raise ValueError(number)
        return number

    async def main() -> list[int]:
        with pytest.raises(ValueError, match="3"):
            await asyncio.gather(value(1), value(3), value(2))
        return await asyncio.gather(value(1), value(2))

    assert run(process, main()) == [1, 2]


@pytest.mark.parametrize("wait", ["wait_for", "timeout"])
def test_timeouts_cancel_what_takes_too_long(process: Process, wait: str) -> None:
    seen: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def bounded(work: Coroutine[Any, Any, None]) -> None:
        if wait == "wait_for":
            await asyncio.wait_for(work, 1.5)
        else:
            async with asyncio.timeout(1.5):
                await work

    async def main() -> float:
        with pytest.raises(TimeoutError):
            await bounded(slow())
        return asyncio.get_running_loop().time()

    assert run(process, main()) == pytest.approx(1.5)
    assert seen == ["cancelled"]


def test_a_timeout_that_is_met_leaves_nothing_behind(world: World, process: Process) -> None:
    async def main() -> str:
        async with asyncio.timeout(1):
            await asyncio.sleep(0.5)
        await asyncio.sleep(2)
        return "done"

    assert run(process, main()) == "done"


def test_events_queues_locks_and_conditions_work(process: Process) -> None:
    said: list[object] = []

    async def main() -> None:
        event, queue, lock = asyncio.Event(), asyncio.Queue[int](maxsize=1), asyncio.Lock()

        async def producer() -> None:
            for number in range(3):
                await queue.put(number)
            event.set()

        async def consumer() -> None:
            for _ in range(3):
                async with lock:
                    said.append(await queue.get())
                await asyncio.sleep(0.1)

        async with asyncio.TaskGroup() as group:
            group.create_task(producer())
            group.create_task(consumer())
            await event.wait()
            said.append("event")

    run(process, main())
    assert said == [0, 1, "event", 2]


def test_cancellation_reaches_the_innermost_wait(process: Process) -> None:
    async def inner() -> None:
        await asyncio.get_running_loop().create_future()

    async def main() -> bool:
        task = asyncio.create_task(inner())
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return task.cancelled()

    assert run(process, main())


def test_current_task_and_running_loop_are_those_of_the_process(world: World, process: Process) -> None:
    other = world.process("other")

    async def main() -> tuple[object, str]:
        task = asyncio.current_task()
        assert task is not None
        await asyncio.sleep(1)
        return asyncio.get_running_loop(), task.get_name()

    tasks = [each.loop.create_task(main(), name=each.name) for each in (process, other)]
    world.run_for(2_000)
    assert [task.result() for task in tasks] == [(process.loop, "p"), (other.loop, "other")]
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


def test_runs_inside_a_real_loop_and_leaves_it_as_it_was(world: World, process: Process) -> None:
    async def simulated() -> object:
        await asyncio.sleep(1)
        return asyncio.get_running_loop()

    async def real() -> None:
        loop = asyncio.get_running_loop()
        assert run(process, simulated()) is process.loop
        assert asyncio.get_running_loop() is loop
        await asyncio.sleep(0)

    asyncio.run(real())


def test_the_dead_are_not_even_cancelled(world: World, process: Process) -> None:
    seen: list[str] = []

    async def main() -> None:
        try:
            await asyncio.sleep(1)
        finally:
            seen.append("cleaned up")

    process.loop.call_soon(lambda: process.loop.create_task(main()))
    world.at(500, None, process.kill, "SIGKILL")
    world.run_for(5_000)
    assert seen == []


def test_a_frozen_process_goes_on_where_it_was(world: World, process: Process) -> None:
    steps: list[float] = []

    async def main() -> None:
        for _ in range(3):
            await asyncio.sleep(1)
            steps.append(world.now_ms)

    process.loop.call_soon(lambda: process.loop.create_task(main()))
    world.at(1_500, None, process.freeze)
    world.at(4_000, None, process.thaw)
    world.run_for(10_000)
    assert steps == [1_000, 4_000, 5_000]


def test_what_the_garbage_collector_finds_is_no_part_of_the_history(world: World, process: Process) -> None:
    """It comes at its own time: another one in each run of the same seed."""

    async def forgotten() -> None:
        raise ValueError("nobody asks for this")

    async def endless() -> None:
        await asyncio.get_running_loop().create_future()

    for coroutine in (forgotten(), endless()):
        process.loop.call_soon(lambda coroutine=coroutine: (process.loop.create_task(coroutine), None)[1])
    world.run_for(10)
    before = list(world.trace.lines())
    gc.collect()
    assert list(world.trace.lines()) == before


@pytest.mark.parametrize(
    "connect",
    [
        lambda: asyncio.open_connection("localhost", 80),
        lambda: asyncio.get_running_loop().getaddrinfo("localhost", 80),
        lambda: asyncio.create_subprocess_exec("true"),
        lambda: asyncio.start_server(lambda *_: None, "localhost", 0),
    ],
    ids=["connection", "getaddrinfo", "subprocess", "server"],
)
def test_there_is_nothing_outside_and_the_error_says_what_to_do(process: Process, connect: Any) -> None:
    async def main() -> None:
        await connect()

    with pytest.raises(NotOnSimulatedLoop, match=r"is simulated, without sockets.*give the operator a fake of its cl"):
        run(process, main())


def test_what_would_go_to_a_thread_is_done_at_once(process: Process) -> None:
    def blocking(number: int) -> int:
        if number < 0:
            raise ValueError(number)
        return asyncio.run(asyncio.sleep(0, number))  # a thread has no event loop running

    async def main() -> list[Any]:
        return await asyncio.gather(
            asyncio.to_thread(blocking, 1),
            asyncio.get_running_loop().run_in_executor(None, blocking, 2),
            asyncio.to_thread(blocking, -3),
            return_exceptions=True,
        )

    one, two, error = run(process, main())
    assert (one, two) == (1, 2)
    assert isinstance(error, ValueError)


@pytest.mark.filterwarnings("error::RuntimeWarning", "error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_task_that_has_not_begun_when_its_process_dies_leaves_no_warning(process: Process, is_frozen: bool) -> None:
    begun: list[str] = []

    async def late() -> None:
        begun.append("late")

    process.loop.create_task(late())
    if is_frozen:
        process.freeze()
        process.world.run_for(10)  # type: ignore[attr-defined]
    process.kill("test")
    process.world.run_for(10)  # type: ignore[attr-defined]
    gc.collect()
    assert begun == []
