"""BlockingPool: where the machine has no more threads, and after its end."""

from __future__ import annotations

import asyncio
import threading

import pytest

from understudy.actors.ask_errors import ActorDead
from understudy.runtime.system.blocking import BlockingPool


def test_where_no_thread_can_be_started_the_outcome_says_so_and_the_call_is_not_made_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The executor queues a call before it starts a thread for it."""
    pool, made = BlockingPool("pool", 1), list[str]()

    def no_thread(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_thread)
        failed = pool.submit(made.append, "refused")
    with pytest.raises(RuntimeError, match="can't start new thread"):
        failed.get(timeout=5)
    pool.submit(made.append, "taken").get(timeout=5)
    assert made == ["taken"]
    asyncio.run(pool.close(5_000))


def test_after_its_end_it_takes_no_call() -> None:
    pool = BlockingPool("pool", 1)
    asyncio.run(pool.close(5_000))
    with pytest.raises(ActorDead, match="its system is shut down"):
        pool.submit(print).get(timeout=5)
