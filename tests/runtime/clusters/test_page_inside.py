"""The page's looks inside a running job, in a real browser: flame graph, state, questions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from understudy import LocalCluster

from ..web.browser import needs_chromium, page_of
from .jobs import Witness, counting, environment

WAIT_MS = 400_000

pytestmark = [needs_chromium, pytest.mark.processes]


def test_frames_are_sampled_state_is_listed_and_an_operator_is_asked(
    start_cluster: Callable[..., LocalCluster], tmp_path: Path
) -> None:
    cluster = start_cluster(1, web_port=0)
    env = environment(checkpoint_dir=str(tmp_path / "checkpoints"))
    counting(env, None, 2_000.0).print()
    job = cluster.submit(env, name="numbers")
    Witness(job).checkpoints(2)
    with page_of(f"{cluster.web_url}#/{job.job_id}/flame") as page:
        page.set_default_timeout(WAIT_MS)
        page.get_by_label("vertex", exact=True).select_option(index=1)
        page.locator(".frame").first.wait_for()
        assert "samples" in page.locator(".flame-card .facts").inner_text()
        page.get_by_text("the same as text").click()
        assert "%" in page.locator(".flame-card pre").inner_text()

        page.get_by_role("link", name="State", exact=True).click()
        page.get_by_text("ValueState").first.wait_for()
        page.get_by_label("Operator", exact=True).select_option("count")
        page.get_by_label("Key").fill("1")
        page.get_by_label("Question").fill("seen")
        page.get_by_role("button", name="Ask", exact=True).click()
        page.locator("article pre").first.wait_for()
        assert int(page.locator("article pre").first.inner_text()) > 0
        page.get_by_label("Question").fill('["raise", "<b>no such thing</b>"]')
        page.keyboard.press("Enter")
        page.locator("article pre.refused").wait_for()
        assert "<b>no such thing</b>" in page.locator("article pre.refused").inner_text()
    job.cancel().result(timeout=60)
