"""Async twins: whatever blocks in the API has one, and its event loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import sys
import threading
import warnings
from contextlib import suppress
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest

import understudy
from understudy import (
    Inlet,
    JobHandle,
    LocalCluster,
    Outlet,
    RemoteCluster,
    SparkCluster,
    StandaloneCluster,
    StreamEnvironment,
)
from understudy.runtime.clusters.async_twin import Blocking, async_twin, warn_of_event_loop
from understudy.runtime.clusters.job_future import JobFuture
from understudy.runtime.system.future import ActorFuture
from understudy.testing import SimulatedCluster

from .jobs import Gate, hold


class Counter(Blocking):
    """Blocks until `let_go` is set."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def total(self, first: int, *, second: int = 0) -> int:
        """Add."""
        assert self.let_go.wait(60)
        if first < 0:
            raise ValueError("negative")
        return first + second

    total_async = async_twin(total)


class Doubling(Counter):
    def total(self, first: int, *, second: int = 0) -> int:
        return 2 * super().total(first, second=second)


def test_the_loop_goes_on_while_the_method_blocks() -> None:
    counter = Counter()

    async def scenario() -> int:
        answer = asyncio.ensure_future(counter.total_async(1, second=2))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not answer.done()
        counter.let_go.set()  # only a loop that goes on comes here
        return await answer

    assert asyncio.run(scenario()) == 3


def test_it_raises_what_the_method_raises_and_calls_that_of_a_subclass() -> None:
    counter, doubling = Counter(), Doubling()
    counter.let_go.set()
    doubling.let_go.set()
    with pytest.raises(ValueError, match="negative"):
        asyncio.run(counter.total_async(-1))
    assert asyncio.run(doubling.total_async(1)) == 2


def is_coroutine_function(function: Any) -> bool:
    """As frameworks ask: most ask `inspect`, and older ones, up to Python 3.13, `asyncio`."""
    asked = [inspect.iscoroutinefunction]
    if sys.version_info < (3, 14):
        asked.append(asyncio.iscoroutinefunction)
    return all(ask(function) for ask in asked)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_of_a_coroutine_is_told_so_and_not_of_another_event_loop() -> None:
    """A fork has its parent's coroutine, and no event loop that runs."""
    counter = Counter()

    async def scenario() -> bytes:
        ours, theirs = os.pipe()
        if (child := os.fork()) == 0:
            try:
                await counter.total_async(1)
            except BaseException as error:  # noqa: BLE001  (what it is, is asked)
                os.write(theirs, str(error).encode())
            finally:
                os._exit(0)
        os.close(theirs)
        with os.fdopen(ours, "rb") as told:
            said = await asyncio.to_thread(told.read)
        await asyncio.to_thread(os.waitpid, child, 0)
        return said

    said = asyncio.run(scenario()).decode()
    assert said.startswith("a Counter is awaited in a fork of the process whose event loop runs the coroutine")
    assert "trio" not in said


def gone(held: list[Any]) -> None:
    held.clear()
    gc.collect()


def test_who_forgets_to_await_reads_so() -> None:
    counter = Counter()
    total: list[Any] = [counter.total_async(1)]
    with pytest.raises(AttributeError, match=r"no \.real here: .*not awaited: write `await \.\.\.total_async\("):
        _ = total[0].real
    with pytest.warns(RuntimeWarning, match=r"Counter\.total_async\(.*\) was never awaited, so nothing was done"):
        gone(total)
    total.append(counter.total_async(1))
    with pytest.warns(RuntimeWarning, match="wanted a value, found"), pytest.raises(TypeError, match="not awaited"):
        dict(total[0])
    with pytest.warns(RuntimeWarning, match="never awaited"):
        gone(total)


def test_it_is_a_coroutine_to_asyncio() -> None:
    counter = Counter()
    counter.let_go.set()

    async def scenario() -> list[int]:
        called = counter.total_async(1)
        assert asyncio.iscoroutine(called)
        assert inspect.isawaitable(called)
        task = asyncio.create_task(counter.total_async(2))
        assert "total_async" in repr(task)
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            third = group.create_task(counter.total_async(3))
        return [*await asyncio.gather(called, task), third.result()]

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asyncio.run(scenario(), debug=True) == [1, 2, 3]
        counter.total_async(4).close()
    assert is_coroutine_function(Counter.total_async)


def test_its_name_and_text_are_its_own() -> None:
    assert Counter.total_async.__name__ == "total_async"
    assert Counter.total_async.__qualname__ == "Counter.total_async"
    assert "`total`" in (Counter.total_async.__doc__ or "")


TWINS = {
    JobHandle: {
        *{"wait", "details", "metrics", "results", "checkpoint_history", "to_dataframe"},
        *{"to_arrow", "to_pandas", "to_polars", "to_duckdb"},
        *{"explain_watermark", "back_pressure", "flame_graph"},
    },
    LocalCluster: {"start", "close", "hand_over", "submit", "submit_translated", "metrics"},
    SparkCluster: {"start", "close", "hand_over", "submit", "submit_translated", "metrics"},
    SimulatedCluster: {"start", "close", "hand_over", "submit", "submit_translated", "metrics"},
    RemoteCluster: {
        "start",
        "close",
        "jobs",
        "find",
        "details",
        "checkpoints",
        "cancel",
        "explain_watermark",
        "explain_watermarks",
        *{"metrics", "back_pressure", "flame_graph", "logs"},
    },
    StandaloneCluster: {"start", "close", "hosts", "why_waiting", "submit"},
    Inlet: set(),
    Outlet: {"read"},
}
TWINS[StandaloneCluster] |= TWINS[RemoteCluster]
"""Methods that block, by class: each has a twin."""
FUTURES = {
    JobHandle: {
        *{"ready", "request_details", "request_checkpoint_history", "ask", "ask_each", "cancel", "stop"},
        *{"trigger_checkpoint", "trigger_savepoint", "stop_with_savepoint", "cancel_with_savepoint"},
    },
    LocalCluster: {"dispose_savepoint", "ask_job_manager"},
    SparkCluster: {"dispose_savepoint", "ask_job_manager"},
    SimulatedCluster: {"dispose_savepoint", "ask_job_manager"},
    RemoteCluster: {
        *{"trigger_checkpoint", "trigger_savepoint", "stop_with_savepoint", "cancel_with_savepoint"},
        *{"dispose_savepoint", "ask_job_manager"},
    },
    StandaloneCluster: set(),
    Inlet: {"send", "send_many", "send_batch", "last_number"},
    Outlet: set[str](),
}
FUTURES[StandaloneCluster] |= FUTURES[RemoteCluster]
AT_ONCE = {
    JobHandle: {"lost", "on_event", "before_close", "wait_as_cluster", "inlet", "outlet"},
    LocalCluster: {"translate", "save_keys", "announce"},
    SparkCluster: {"translate", "save_keys", "announce"},
    SimulatedCluster: {
        *{"translate", "save_keys", "announce"},
        *{"process", "processes", "newest_checkpoint_file", "run_for", "run_until", "start_again"},
    },
    RemoteCluster: {"outlet"},
    StandaloneCluster: {"outlet"},
    Inlet: set[str](),
    Outlet: set[str](),
}
NO_HANDLES = {"ClusterSettings", "JobFuture", "JobClient", "OutletBatch", "Sent"}
"""What users hold of a cluster, besides, has nothing that blocks but what is a future's own."""


@pytest.mark.parametrize("holder", TWINS, ids=lambda holder: holder.__name__)
def test_every_method_has_a_twin_or_gives_a_future_or_is_known_not_to_block(holder: Any) -> None:
    methods = {name for name, _ in inspect.getmembers(holder, inspect.isfunction) if not name.startswith("_")}
    blocking = {name for name in methods if not name.endswith("_async")} - FUTURES[holder] - AT_ONCE[holder]
    assert blocking == TWINS[holder]
    assert {name for name in methods if name.endswith("_async")} == {f"{name}_async" for name in blocking}
    for name in blocking:
        assert is_coroutine_function(getattr(holder, f"{name}_async"))


@pytest.mark.parametrize("holder", TWINS, ids=lambda holder: holder.__name__)
def test_what_is_said_to_give_a_future_does(holder: Any) -> None:
    for name in FUTURES[holder]:
        given = inspect.signature(getattr(holder, name)).return_annotation
        assert given.startswith(("JobFuture[", "list[JobFuture[", "Sent")), name


@pytest.mark.parametrize("holder", TWINS, ids=lambda holder: holder.__name__)
def test_a_twin_takes_what_its_method_takes(holder: Any) -> None:
    for name in TWINS[holder]:
        twin, method = getattr(holder, f"{name}_async"), getattr(holder, name)
        taken = {kind.kind for kind in inspect.signature(twin).parameters.values()}
        passes_all_on = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} <= taken
        assert passes_all_on or list(inspect.signature(twin).parameters) == list(inspect.signature(method).parameters)


@pytest.mark.parametrize("holder", TWINS, ids=lambda holder: holder.__name__)
def test_whatever_is_entered_or_looped_over_is_so_in_an_event_loop_too(holder: Any) -> None:
    for plain, twin in (("__enter__", "__aenter__"), ("__exit__", "__aexit__"), ("__iter__", "__aiter__")):
        assert hasattr(holder, plain) == hasattr(holder, twin), plain


def test_no_handle_is_left_out() -> None:
    """Every public class of the rooms of clusters that has methods of its own is looked at here."""
    held = {
        name
        for name in understudy.__all__
        if isinstance(kind := getattr(understudy, name), type)
        and kind.__module__.startswith("understudy.runtime.clusters.")
        and not issubclass(kind, BaseException)
        and any(inspect.isfunction(value) and not name.startswith("_") for name, value in vars(kind).items())
        and not is_dataclass(kind)
    }
    known = {holder.__name__ for holder in TWINS} | NO_HANDLES | {"Cluster"}
    assert held <= known, "add it to TWINS, FUTURES and AT_ONCE"


class Waiting:
    def wait(self) -> None:
        warn_of_event_loop("waiting.wait()", "`await waiting`")


@pytest.mark.parametrize(
    ("code", "names", "warned"),
    [
        ("waiting.wait()", {"get_ipython": None}, 0),
        ("def first():\n    waiting.wait()\nfirst()", {"get_ipython": None}, 0),
        ("async def first():\n    waiting.wait()\nfirst().send(None)", {"get_ipython": None}, 1),
        ("waiting.wait()", {}, 1),
    ],
    ids=["a cell", "a function in a cell", "a coroutine of a cell", "a program"],
)
def test_whoever_blocks_an_event_loop_is_warned_but_for_the_cell_of_a_notebook(
    code: str, names: dict[str, Any], warned: int
) -> None:
    async def kernel() -> None:
        with suppress(StopIteration):  # a coroutine has ended
            exec(code, {"waiting": Waiting(), **names})

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(kernel())
    assert [each.category for each in caught] == [RuntimeWarning] * warned


def test_a_cluster_that_is_entered_by_with_on_an_event_loop_warns_with_what_to_write() -> None:
    async def main() -> None:
        with LocalCluster(debug=True):
            pass
        async with LocalCluster(debug=True):
            pass

    with pytest.warns(RuntimeWarning) as caught:
        asyncio.run(main())
    (said,) = caught
    assert (said.filename, str(said.message)) == (
        __file__,
        "a cluster's `with`, at its start and its end, blocks the event loop of this thread: write `async with`",
    )


@pytest.mark.parametrize(("code", "warned"), [("work()", True), ("theirs()", False)], ids=["a cell's", "the kernel's"])
def test_a_cell_that_holds_up_a_task_of_an_earlier_one_is_warned(code: str, warned: bool) -> None:
    """It would wait for ever for what that task does."""
    cells: dict[str, Any] = {"__name__": "__main__", "get_ipython": None, "asyncio": asyncio, "waiting": Waiting()}

    async def theirs() -> None:
        await asyncio.sleep(60)

    async def kernel() -> None:
        exec("async def work():\n    await asyncio.sleep(60)", cells)
        exec(f"task = asyncio.ensure_future({code})", cells | {"theirs": theirs}, cells)
        await asyncio.sleep(0)
        exec("waiting.wait()", cells)
        cells["task"].cancel()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(kernel())
    texts = ["waiting.wait() blocks work(), which this notebook has begun: write `await waiting`"]
    assert [str(each.message) for each in caught] == texts * warned


def test_a_result_that_is_waited_for_on_an_event_loop_says_to_await_it() -> None:
    answer: ActorFuture[int] = ActorFuture()
    future: JobFuture[int] = JobFuture(answer, "the answer")

    async def main() -> None:
        for wait in (future.result, future.exception):
            with (
                pytest.warns(
                    RuntimeWarning, match=r"of the answer blocks the event loop .*: write `await future`"
                ) as at,
                suppress(TimeoutError),
            ):
                wait(timeout=0.01)
            assert [each.filename for each in at] == [__file__]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with suppress(TimeoutError):
                future.result(timeout=0)
            answer.set(7)
            assert future.result() == await future == 7

    asyncio.run(main())


def test_so_do_submit_and_the_results_of_a_job_that_runs_with_their_twins(tmp_path: Path) -> None:
    env = StreamEnvironment(parallelism=1, checkpoint_interval_ms=100)
    env.from_collection([1]).collect(name="out")
    hold(env, gate := Gate(tmp_path))

    async def main() -> None:
        async with LocalCluster(1) as cluster:
            with pytest.warns(
                RuntimeWarning, match=r"cluster.submit of job 'one' .* `await cluster.submit_async\("
            ) as at:
                job = cluster.submit(env, "one")
            assert [each.filename for each in at] == [__file__]
            with pytest.warns(
                RuntimeWarning, match=r"job.results\('out'\) blocks .* `await job.results_async\('out'\)`"
            ):
                job.results("out")
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                gate.open()
                await job
                assert job.results("out") == [1]
                job.details()

    asyncio.run(main())
