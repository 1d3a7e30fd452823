"""`python -m benchmarks.pictures [FOLDER]`: the pictures of the page in README and docs, of a job that really runs.

An operator raises once, a savepoint is taken, and a TaskManager is killed. Needs the system's Chromium, and playwright.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from understudy import JobHandle, KeyedOperator, ListState, LocalCluster, StreamEnvironment, ValueState

WIDTH, HEIGHT = 1240, 980
BROWSER = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
QUIET_S = 12.0
WAIT_S = 120.0


class Price(KeyedOperator):
    """Each customer's total, slowly. Fails once, `fails_at` orders after its first start."""

    total = ValueState(float, default=0.0)

    def __init__(self, once: str) -> None:
        self._once = Path(once)

    def process(self, order: Any, out: Any) -> None:
        if self._once.exists():
            self._once.unlink(missing_ok=True)
            raise ValueError(f"no price for article {order % 97}")
        if order % 3 == 0:
            time.sleep(0.0005)
        self.total.update(self.total.value() + order % 97)
        out.collect((order % 500, self.total.value()))


class Session(KeyedOperator):
    """The last steps of each customer."""

    inputs = 2
    steps = ListState(int)

    def process(self, ordered: Any, out: Any) -> None:
        out.collect(ordered)

    def process_2(self, click: int, out: Any) -> None:
        if click % 7 == 0:
            self.steps.update([click])


def program(folder: str) -> StreamEnvironment:
    env = StreamEnvironment(
        parallelism=2,
        checkpoint_dir=f"{folder}/checkpoints",
        checkpoint_interval_ms=4_000,
        batch_rows=64,
    )
    orders = env.generate(lambda index: index, None, records_per_second=2_500, name="orders")
    clicks = env.generate(lambda index: index, None, records_per_second=1_200, name="clicks")
    priced = orders.key_by(lambda order: order % 500).process(Price(f"{folder}/fail"), name="price")
    by_customer = clicks.key_by(lambda click: click % 500)
    sessions = priced.key_by(lambda row: row[0]).connect(by_customer).process(Session(), name="session")
    sessions.filter(lambda _: False).print()
    priced.rebalance().map(lambda row: row[1] * 1.19, name="invoice").filter(lambda _: False).print()
    return env


def lived_through(cluster: LocalCluster, job: JobHandle, folder: str) -> None:
    """What the timeline is to show."""
    job.ready().result(timeout=WAIT_S)
    time.sleep(QUIET_S)
    Path(f"{folder}/fail").touch()
    _until_restarted(job, 1)
    time.sleep(QUIET_S)
    job.trigger_savepoint().result(timeout=WAIT_S)
    time.sleep(QUIET_S / 2)
    victim = next(each.pid for each in cluster.metrics().task_managers if each.job_id == job.job_id)
    os.kill(victim, signal.SIGKILL)
    _until_restarted(job, 2)
    time.sleep(QUIET_S * 1.5)


def _until_restarted(job: JobHandle, times: int) -> None:
    deadline = time.monotonic() + WAIT_S
    while job.request_details().result(timeout=WAIT_S).restarts < times:
        assert time.monotonic() < deadline, f"{times} restarts were wanted"
        time.sleep(0.1)
    job.ready().result(timeout=WAIT_S)


def take(url: str, into: Path) -> None:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=BROWSER)
        page = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light").new_page()
        page.goto(url)
        page.get_by_role("link", name="orders and clicks").click()
        page.locator(".vertex").first.wait_for()
        page.locator(".charts canvas").first.wait_for()
        page.mouse.move(620, 5)
        time.sleep(3)
        page.screenshot(path=into / "web-overview.png")
        page.get_by_role("link", name="Checkpoints").click()
        page.locator(".lane").first.wait_for()
        page.mouse.move(620, 5)
        page.evaluate("scrollTo(0, 0)")
        time.sleep(1)
        page.screenshot(path=into / "web-checkpoints.png", full_page=True)
        browser.close()


def main(into: Path) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="understudy-pictures-") as folder,
        LocalCluster(task_managers=2, web_port=0) as cluster,
    ):
        job = cluster.submit(program(folder), name="orders and clicks")
        lived_through(cluster, job, folder)
        assert cluster.web_url is not None
        take(cluster.web_url, into)
        job.cancel().result(timeout=WAIT_S)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
