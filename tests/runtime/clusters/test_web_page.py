"""The page on a job that runs, fails, loses a TaskManager and ends; the command that serves it beside the job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from understudy import KeyedOperator, LocalCluster, ValueState
from understudy.messages import JobStatus
from understudy.runtime.cli import main

from ..web.browser import needs_chromium, page_of
from .jobs import Witness, counting, environment

Start = Callable[..., LocalCluster]


class Fragile(KeyedOperator):
    """Raises where a file says so, once."""

    seen = ValueState(int, default=0)

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._sign = folder / "raise"

    def process(self, record: int, out: Any) -> None:
        self.seen.update(self.seen.value() + 1)
        if self._sign.exists():
            self._sign.unlink()
            raise ValueError("no price <b>today</b>")
        out.collect({"key": self.key, "number": self.seen.value(), "index": record})


@pytest.mark.slow
@needs_chromium
def test_a_job_is_watched_through_a_failure_a_kill_and_its_end(start_cluster: Start, tmp_path: Path) -> None:
    cluster = start_cluster(2, web_port=0, heartbeat_interval_ms=200)
    env = environment(checkpoint_dir=str(tmp_path / "checkpoints"), checkpoint_interval_ms=300)
    counting(env, None, 2_000.0, Fragile(tmp_path)).print()
    job = cluster.submit(env, name="numbers")
    witness = Witness(job)
    witness.checkpoints(1)
    assert cluster.web_url is not None
    with page_of(f"{cluster.web_url}#/{job.job_id.removeprefix('job-')}") as page:
        page.locator(".vertex.is-running").nth(1).wait_for()
        page.locator(".charts canvas").nth(1).wait_for()
        (tmp_path / "raise").touch()
        page.locator(".events .failure").get_by_text("no price <b>today</b>").wait_for()
        witness.kill(witness.pids(2)[1])
        page.locator(".events .task_manager_lost").wait_for()
        page.get_by_role("link", name="Exceptions").click()
        page.locator(".failure").nth(1).wait_for()
        assert 'raise ValueError("no price' in page.locator(".failure pre .last").nth(1).inner_text()
        page.get_by_role("link", name="Overview").click()
        page.locator(".vertex.is-running").nth(1).wait_for()
        page.locator(".pill.is-running").wait_for()
        page.get_by_role("button", name="Stop…").click()
        page.get_by_role("button", name="Stop it").click()
        page.locator(".notes .ok code").wait_for()
        page.locator(".pill.is-finished").wait_for()
    assert job.wait(timeout=60).status is JobStatus.FINISHED


@pytest.mark.every_run
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--history-only"], "--history-only needs --history DIR"),
        (["--history", "ended", "--history-only", "--host", "0.0.0.0"], "can be reached from other machines"),
        (["--history", "ended", "--history-only", "--token", "short"], "can be guessed"),
        (["--port", "70000"], "70000"),
    ],
)
def test_the_command_says_what_is_wrong(arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(main, ["dashboard", *arguments])
    assert done.exit_code in (1, 2)
    assert says in done.output
