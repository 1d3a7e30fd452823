"""Who is slow is said alike by samples, by metrics, by REST and by the page, of a job that really runs."""

from __future__ import annotations

import time
from typing import Any

import httpx
import pytest

from understudy import LocalCluster

from ..clusters.jobs import WAIT_S, eventually
from ..clusters.test_metrics import program
from .browser import needs_chromium, page_of

pytestmark = [
    needs_chromium,
    pytest.mark.processes,
    pytest.mark.drawn,
    pytest.mark.usefixtures("forked_templates"),
]
VERTICES = ("source", "measured", "behind")


def levels_by_rest(client: httpx.Client, job_id: str) -> list[str]:
    """Samples are asked for, and what is known by now."""
    ids = [each["id"] for each in client.get(f"jobs/{job_id}").json()["vertices"]]
    return [client.get(f"jobs/{job_id}/vertices/{each}/backpressure").json()["backpressure-level"] for each in ids]


def levels_on_page(page: Any) -> list[str]:
    """The colour of each vertex."""
    classes = [page.locator(".vertex").nth(n).get_attribute("class").split() for n in range(len(VERTICES))]
    return [next(each for each in of if each.startswith(("waits-", "busy-", "calm"))) for of in classes]


@pytest.mark.parametrize(
    ("pause_s", "source", "expected", "colours"),
    [
        (0.005, {}, ["high", "ok", "ok"], [{"waits-high"}, {"busy-high", "busy-low"}, {"calm", "busy-low"}]),
        (0, {"records_per_second": 500}, ["ok"] * 3, [{"calm"}] * 3),
    ],
    ids=["slow", "quick"],
)
def test_the_culprit_is_the_same_by_samples_metrics_and_page(
    pause_s: float, source: dict[str, Any], expected: list[str], colours: list[set[str]], record_property: Any
) -> None:
    """How long it took from the job's start is reported, and not judged."""
    with LocalCluster(task_managers=2, web_port=0) as cluster:
        job = cluster.submit(program(pause_s, **source), "watched")
        job.ready().result(timeout=WAIT_S)
        began = time.monotonic()
        assert cluster.web_url is not None
        hex_id = job.job_id.removeprefix("job-")
        with (
            httpx.Client(base_url=cluster.web_url, timeout=WAIT_S) as client,
            page_of(f"{cluster.web_url}#/{hex_id}") as page,
        ):
            page.locator(".vertex").nth(2).wait_for()

            def is_told_alike() -> bool:
                shown = levels_on_page(page)
                held = [job.metrics().vertex(name).values["backPressuredTimeMsPerSecond"] > 500 for name in VERTICES]
                by_samples = [job.back_pressure(name, wait=False).level for name in VERTICES]
                return (
                    all(one in of for one, of in zip(shown, colours, strict=True))
                    and by_samples == levels_by_rest(client, hex_id) == expected
                    and held == [level == "high" for level in expected]
                )

            eventually(is_told_alike, f"{expected} by samples, REST, metrics and the page")
            took_s = time.monotonic() - began
        job.cancel().result(timeout=WAIT_S)
    record_property("told_after_s", took_s)
    print(f"told alike after {took_s:.1f} s")
