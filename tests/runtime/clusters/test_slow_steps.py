"""User code that blocks its task's thread is named, with its line, while it blocks and when it has ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy import FileSink, JobCanceled, LocalCluster, Operator, Source
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.source import END

from .jobs import WAIT_S, Counting, counting, environment, eventually


def warnings(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [record for record in caplog.records if record.name.endswith(".slow_steps")]


def of_what_blocks(caplog: pytest.LogCaptureFixture) -> Any:
    """The first of them; on a busy machine other steps may be slow as well."""
    return next(record for record in warnings(caplog) if "# it blocks here" in record.getMessage())


class Once:
    """What blocks the first time, in each process."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self) -> None:
        seconds, self.seconds = self.seconds, 0
        time.sleep(seconds)  # it blocks here


class Blocking(Source):
    def __init__(self, block: Once) -> None:
        self.block, self.next = block, 0

    def poll(self) -> Any:
        self.block()
        self.next += 1
        return [self.next] if self.next < 3 else END

    def offset(self) -> int:
        return self.next

    def seek(self, offset: int) -> None:
        self.next = offset


def in_poll(env: Any, folder: Path, block: Once) -> str:
    env.from_source(Blocking(block), name="blocking", parallelism=1).collect(name="all")
    return "poll"


def in_process(env: Any, folder: Path, block: Once) -> str:
    class Slow(Counting):
        def process(self, record: int, out: Collector) -> None:
            block()

    counting(env, 100, None, Slow).collect(name="all")
    return "process"


def in_map(env: Any, folder: Path, block: Once) -> str:
    env.generate(lambda index: block(), 10, name="blocking").collect(name="all")
    return "poll"


def in_checkpoint(env: Any, folder: Path, block: Once) -> str:
    class Slow(Counting):
        def on_checkpoint(self, checkpoint_id: Any) -> None:
            block()

    counting(env, 100, None, Slow).collect(name="all")
    return "on_checkpoint"


def in_commit(env: Any, folder: Path, block: Once) -> str:
    class Slow(FileSink):
        def commit(self, transaction: Any) -> None:
            block()
            super().commit(transaction)

    counting(env, 100, None).sink_to(Slow(str(folder / "out"), "jsonl"), name="blocking")
    return "commit"


def in_close(env: Any, folder: Path, block: Once) -> str:
    class Slow(Operator):
        def process_batch(self, batch: Any, out: Collector) -> None: ...

        def close(self) -> None:
            block()

    env.generate(lambda index: index, 10).sink_to(Slow, name="blocking")
    return "close"


@pytest.mark.parametrize("place", [in_poll, in_process, in_map, in_checkpoint, in_commit, in_close])
def test_it_is_named_with_its_operator_and_line(
    shared_cluster: LocalCluster,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    place: Callable[[Any, Path, Once], str],
) -> None:
    env = environment(slow_step_ms=200)
    method = place(env, tmp_path, Once(2))
    shared_cluster.submit(env).wait(timeout=WAIT_S)
    eventually(lambda: any("in all" in record.getMessage() for record in warnings(caplog)), "the end")
    first = of_what_blocks(caplog)
    assert first.levelno == logging.WARNING
    assert f" in {method} (subtask " in first.getMessage()
    assert f"{__file__}:" in first.getMessage()
    assert "time.sleep(seconds)  # it blocks here" in first.getMessage()
    assert first.operator in ("blocking", "count")
    assert f"operator {first.operator!r}" in first.getMessage()
    assert "has held its thread for " in first.getMessage()


def test_a_coroutine_that_blocks_holds_all_of_them(
    shared_cluster: LocalCluster, caplog: pytest.LogCaptureFixture
) -> None:
    block = Once(2)

    async def look_up(record: int) -> int:
        block()
        return record

    env = environment(slow_step_ms=200)
    env.from_collection([1, 2]).map(look_up, name="look-up").collect(name="all")
    shared_cluster.submit(env).wait(timeout=WAIT_S)

    def of_coroutines() -> list[str]:
        return [each.getMessage() for each in caplog.records if each.name.endswith(".slow_coroutines")]

    eventually(lambda: any("in all" in each for each in of_coroutines()), "the end")
    first = of_coroutines()[0]
    assert first.startswith("operator 'look-up' in process (subtask 0, attempt 0) has held the event loop for ")
    assert f"{__file__}:" in first
    assert "time.sleep(seconds)  # it blocks here; all coroutines of this TaskManager wait meanwhile" in first


def test_a_second_and_more_is_slow_if_nothing_else_is_said(
    shared_cluster: LocalCluster, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    env = environment()
    in_process(env, tmp_path, Once(3))
    shared_cluster.submit(env).wait(timeout=WAIT_S)
    eventually(lambda: any("in all" in record.getMessage() for record in warnings(caplog)), "the end")
    assert "operator 'count' in process" in of_what_blocks(caplog).getMessage()


def test_without_a_watch_nothing_is_said(
    shared_cluster: LocalCluster, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    env = environment(slow_step_ms=None)
    in_process(env, tmp_path, Once(1.5))
    shared_cluster.submit(env).wait(timeout=WAIT_S)
    assert warnings(caplog) == []


def test_what_never_ends_is_named_too(start_cluster: Any, caplog: pytest.LogCaptureFixture) -> None:
    class Endless(Operator):
        def process_batch(self, batch: Any, out: Collector) -> None:
            while True:  # without end
                pass

    cluster = start_cluster(1, cancel_timeout_ms=500)
    env = environment(slow_step_ms=300, parallelism=1)
    env.generate(lambda index: index, 10).sink_to(Endless, name="endless")
    job = cluster.submit(env)
    eventually(lambda: warnings(caplog), "the warning")
    assert "operator 'endless' in process_batch (subtask 0, attempt 0)" in warnings(caplog)[0].getMessage()
    job.cancel()
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)
