"""1,000 subtasks on real TaskManagers: how long `/jobs/:id` takes, how smooth the page is, and what the JobManager's
process, which serves the page too, uses with and without it.
"""

from __future__ import annotations

import shutil
import statistics
import time
from typing import Any

import click
import httpx
import psutil

from understudy import JobHandle, LocalCluster, StreamEnvironment

from .report import deliver, provenance, shared_options, spread

WORKLOAD = "many-subtasks"
BROWSER = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
ANSWERS = 20
SLICE_S = 10.0
SLICES = 2
FRAMES = """() => new Promise((done) => {
  const times = []; let last = performance.now();
  const frame = (now) => {
    times.push(now - last); last = now;
    times.length < 240 ? requestAnimationFrame(frame) : done(times);
  };
  requestAnimationFrame(frame);
})"""


def program(vertices: int, parallelism: int, checkpoint_interval_ms: int | None) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=parallelism, checkpoint_interval_ms=checkpoint_interval_ms)
    stream = env.generate(lambda index: index, None, records_per_second=50, name="numbers")
    for number in range(1, vertices):
        stream = stream.rebalance().map(lambda value: value, name=f"step-{number}")
    stream.filter(lambda _: False).print()
    return env


def _share_of_a_core(process: psutil.Process) -> float:
    """Of the JobManager's process, in percent."""
    before, began = process.cpu_times(), time.monotonic()
    time.sleep(SLICE_S)
    after = process.cpu_times()
    return float(100 * (after.user + after.system - before.user - before.system) / (time.monotonic() - began))


def _answers(url: str, job: JobHandle, subtasks: int) -> tuple[list[float], list[str]]:
    took, problems = [], []
    with httpx.Client(base_url=url) as client:
        for _ in range(ANSWERS):
            began = time.perf_counter()
            found: dict[str, Any] = client.get(f"jobs/{job.job_id}").json()
            took.append(1000 * (time.perf_counter() - began))
            if (running := found["status-counts"]["RUNNING"]) != subtasks:
                problems.append(f"{running} subtasks run, not {subtasks}")
            time.sleep(0.6)  # the same answer serves all who ask within half a second
    return took, problems


def run(vertices: int, parallelism: int, checkpoint_interval_ms: int | None) -> tuple[dict[str, Any], list[str]]:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    alone, shown, process = [], [], psutil.Process()
    with LocalCluster(task_managers=2, slots_per_task_manager=-(-parallelism // 2), web_port=0) as cluster:
        job = cluster.submit(program(vertices, parallelism, checkpoint_interval_ms), name=WORKLOAD)
        job.ready().result(timeout=300)
        assert cluster.web_url is not None
        time.sleep(5)
        took, problems = _answers(cluster.web_url, job, vertices * parallelism)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=BROWSER)
            for _ in range(SLICES):
                before = job.checkpoint_history().completed
                alone.append(_share_of_a_core(process))
                page = browser.new_page()
                page.goto(f"{cluster.web_url}#/{job.job_id.removeprefix('job-')}")
                page.locator(".vertex").nth(vertices - 1).wait_for(timeout=60_000)
                shown.append(_share_of_a_core(process))
                frames = page.evaluate(FRAMES)
                page.close()
                completed = job.checkpoint_history().completed - before
                if checkpoint_interval_ms and checkpoint_interval_ms <= 1000 * SLICE_S and not completed:
                    problems.append(
                        f"no checkpoint was completed in {2 * SLICE_S:.0f} s: the figures are of a job without"
                    )
            browser.close()
        job.cancel().result(timeout=60)
    figures = {
        **spread("jobs_id_ms", took),
        **spread("jobmanager_percent_of_a_core_alone", alone),
        **spread("jobmanager_percent_of_a_core_with_the_page", shown),
        "frame_ms": {"median": round(statistics.median(frames), 1), "p99": round(sorted(frames)[-3], 1)},
    }
    return figures, problems


@click.command(WORKLOAD)
@click.option("--vertices", default=100, show_default=True, type=click.IntRange(2))
@click.option("--parallelism", default=10, show_default=True, type=click.IntRange(1))
@click.option("--checkpoint-interval-ms", default=10_000, show_default=True, help="0: no checkpoints")
@shared_options
def many_subtasks(
    vertices: int, parallelism: int, checkpoint_interval_ms: int, runs: int, json_path: str | None
) -> None:
    """A job of 1,000 subtasks, and the page of it."""
    cases, problems = [], []
    for _ in range(runs):
        figures, wrong = run(vertices, parallelism, checkpoint_interval_ms or None)
        cases.append(figures)
        problems += wrong
    deliver(
        {
            "workload": WORKLOAD,
            "subtasks": vertices * parallelism,
            "checkpoint_interval_ms": checkpoint_interval_ms,
            "cases": cases,
            **provenance(),
        },
        problems,
        json_path,
    )
