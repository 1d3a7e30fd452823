"""A cluster that is closed, or given up, while it starts leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest

from understudy import LocalCluster
from understudy.runtime.clusters.beginning import Beginning

from .jobs import WAIT_S

pytestmark = pytest.mark.every_run


class Held(LocalCluster):
    """Its start stands still, before there is any process, until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.begins, self.goes_on = threading.Event(), threading.Event()

    def _get_ready(self) -> None:
        self.begins.set()
        assert self.goes_on.wait(WAIT_S)
        super()._get_ready()


@pytest.fixture
def cluster() -> Iterator[Held]:
    threads, children = set(threading.enumerate()), set(psutil.Process().children())
    held = Held()
    yield held
    held.goes_on.set()
    assert not os.path.exists(held._work_dir)
    assert set(psutil.Process().children()) <= children
    left = {each for each in threading.enumerate() if not each.name.startswith("asyncio")} - threads
    assert left == set()


def test_to_close_it_from_another_thread_waits_for_its_start(cluster: Held) -> None:
    with ThreadPoolExecutor(2) as threads:
        started = threads.submit(cluster.start)
        assert cluster.begins.wait(WAIT_S)
        closed = threads.submit(cluster.close)
        assert not closed.done()
        cluster.goes_on.set()
        closed.result(WAIT_S)
        assert started.result(WAIT_S) is cluster


@pytest.mark.parametrize("moment", ["_get_ready", "_start_launcher", "_serve_web"])
def test_one_that_is_closed_by_the_handler_of_a_signal_does_not_start(
    moment: str, cluster: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The handler runs on the thread that starts it, in the middle of that."""
    cluster.goes_on.set()
    go_on = getattr(cluster, moment)

    def closed_before() -> object:
        cluster.close()
        return go_on()

    monkeypatch.setattr(cluster, moment, closed_before)
    with pytest.raises(RuntimeError, match="this cluster is not running"):
        cluster.start()


def test_async_with_that_is_given_up_closes_what_starts(cluster: Held) -> None:
    async def enter() -> None:
        async with cluster:
            raise AssertionError("it has not started")

    async def give_up() -> None:
        entering = asyncio.ensure_future(enter())
        await asyncio.to_thread(cluster.begins.wait, WAIT_S)
        entering.cancel()
        await asyncio.sleep(0)
        cluster.goes_on.set()
        with pytest.raises(asyncio.CancelledError):
            await entering

    asyncio.run(asyncio.wait_for(give_up(), WAIT_S))


def test_whoever_waits_in_its_start_is_asked_to_give_up_by_others_alone() -> None:
    beginning, asked = Beginning(), threading.Event()
    with ThreadPoolExecutor(1) as threads:
        with beginning.under_way():
            with beginning.over(asked.set):
                assert not asked.is_set()
            over = threads.submit(_wait_for, beginning, asked)
            assert asked.wait(WAIT_S)
            assert not over.done()
        over.result(WAIT_S)


def _wait_for(beginning: Beginning, asked: threading.Event) -> None:
    with beginning.over(asked.set):
        pass
