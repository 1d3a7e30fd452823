"""The page in a real browser: each view, scripts in names, the JobManager gone and back, many subtasks, a small screen.

One short test runs always, the others with `-m slow`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from understudy.messages import JobStatus
from understudy.runtime.web.app import App, _files

from .browser import needs_chromium, page_of, served
from .views import HEX, HOSTILE, AnsweringJobs, job_view

pytestmark = [needs_chromium, pytest.mark.processes]
TABS = ("Checkpoints", "Exceptions", "Event time", "TaskManagers", "Settings")


def test_a_job_with_scripts_in_its_names_is_shown_as_text_and_stopped_by_a_button() -> None:
    """A script, style or address that is not the page's own would be refused by its policy, and fail this test."""
    jobs = AnsweringJobs(job_view(name=HOSTILE))
    with served(App(jobs)) as server, page_of(server.url) as page:
        page.get_by_role("link", name="<img src=x").click()
        page.locator("svg.plan .vertex").nth(2).wait_for()
        assert page.locator("h1").inner_text().startswith(HOSTILE)
        assert page.locator(".suspects li").first.inner_text().startswith("step-1")
        assert HOSTILE in page.locator(".events").inner_text()
        for tab in TABS:
            page.get_by_role("link", name=tab, exact=False).click()
            page.locator("section.card").first.wait_for()
        page.get_by_role("link", name="Exceptions").click()
        assert HOSTILE in page.locator(".failure").inner_text()
        page.get_by_role("button", name="Stop…").click()
        page.get_by_label("Folder").fill("nightly")
        page.get_by_role("button", name="Stop it").click()
        page.get_by_text("/savepoints/savepoint-1").wait_for()
        (order,) = jobs.orders
        assert (order.target_directory, order.drain) == ("nightly", False)


@pytest.mark.slow
def test_an_order_that_is_not_confirmed_is_none() -> None:
    jobs = AnsweringJobs(job_view())
    with served(App(jobs)) as server, page_of(f"{server.url}#/{HEX}") as page:
        page.get_by_role("button", name="Cancel…").click()
        page.get_by_role("button", name="Leave it").click()
        page.get_by_role("button", name="Cancel…").click()
        page.keyboard.press("Escape")
        page.locator("dialog").wait_for(state="detached")
    assert jobs.orders == []


@pytest.mark.slow
def test_the_job_manager_goes_and_comes_back() -> None:
    """First it, then the server itself; what was known stays in sight."""
    jobs = AnsweringJobs(job_view())
    with served(App(jobs)) as server:
        port = server.port
        with page_of(f"{server.url}#/{HEX}") as page:
            page.locator(".vertex").first.wait_for()
            jobs.away = True
            page.get_by_role("alert").get_by_text("does it still run?").wait_for()
            assert page.locator("main.stale .vertex").count() == 3
            assert page.get_by_role("button", name="Stop…").is_disabled()
            jobs.away = False
            page.locator(".live.on").wait_for()
            server.close()
            page.get_by_role("alert").wait_for()
            with served(App(jobs), port):
                page.locator(".live.on").wait_for()
                page.get_by_role("alert").wait_for(state="detached")


@pytest.mark.slow
def test_a_job_that_ends_while_it_is_watched() -> None:
    jobs = AnsweringJobs(job_view())
    with served(App(jobs)) as server, page_of(f"{server.url}#/{HEX}") as page:
        page.get_by_role("button", name="Stop…").wait_for()
        ended = job_view(status=JobStatus.CANCELED)
        jobs.views[ended.graph.job_id] = ended
        page.locator(".pill.is-canceled").wait_for()
        page.get_by_role("button", name="Stop…").wait_for(state="detached")


@pytest.mark.slow
def test_a_token_is_asked_for_and_kept() -> None:
    jobs = AnsweringJobs(job_view())
    with served(App(jobs, token="a-long-secret")) as server:
        with page_of(server.url) as page:
            page.get_by_label("Token").fill("wrong")
            page.get_by_role("button", name="Show me the jobs").click()
            page.get_by_text("a wrong one was given").wait_for()
            page.get_by_label("Token").fill("a-long-secret")
            page.get_by_role("button", name="Show me the jobs").click()
            page.get_by_role("link", name="orders").wait_for()
            page.reload()
            page.get_by_role("link", name="orders").wait_for()
        with page_of(f"{server.url}#token=a-long-secret") as page:
            page.get_by_role("link", name="orders").wait_for()
            assert "secret" not in page.url


FRAMES = """() => new Promise((done) => {
  const times = []; let last = performance.now();
  const frame = (now) => {
    times.push(now - last); last = now;
    times.length < 120 ? requestAnimationFrame(frame) : done(times);
  };
  requestAnimationFrame(frame);
})"""


@pytest.mark.slow
def test_a_hundred_vertices_and_a_thousand_subtasks(record_property: Any) -> None:
    """Frame times and the time of an answer are reported, and not judged."""
    jobs = AnsweringJobs(job_view(vertices=100, parallelism=10, slow_vertex=40))
    with served(App(jobs)) as server, page_of(f"{server.url}#/{HEX}") as page:
        page.locator(".vertex").nth(99).wait_for()
        for moved in range(3):  # figures change, as they do
            view = jobs.views[f"job-{HEX}"]
            rows = tuple(replace(each, records_in_per_second=1000.0 + moved) for each in view.subtasks)
            jobs.views[f"job-{HEX}"] = replace(view, subtasks=rows, at_ms=view.at_ms + 1000)
            times = sorted(page.evaluate(FRAMES))
        page.locator(".vertex").nth(40).click()
        page.get_by_role("heading", name="step-40").wait_for()
        page.get_by_role("link", name="Checkpoints").click()
        page.locator(".lane").nth(100).wait_for()
        page.get_by_role("button", name="show").click()
        page.locator(".lane").nth(999).wait_for()
        began = time.perf_counter()
        page.evaluate(f"fetch('jobs/{HEX}').then((answer) => answer.text())")
        answer_ms = 1000 * (time.perf_counter() - began)
    middle, late = times[len(times) // 2], times[int(len(times) * 0.99)]
    record_property("frame_ms", {"median": middle, "p99": late})
    print(f"frames: median {middle:.1f} ms, p99 {late:.1f} ms; /jobs/:id {answer_ms:.0f} ms")


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_is_read_easily_in_light_and_dark(dark: bool) -> None:
    """WCAG 2 AA: a contrast of 4.5 at least between text and what is behind it."""
    with served(App(AnsweringJobs(job_view()))) as server, page_of(f"{server.url}#/{HEX}", dark=dark) as page:
        page.locator(".vertex").first.wait_for()
        found = page.evaluate(CONTRASTS)
        for tab in TABS:
            page.get_by_role("link", name=tab).click()
            page.locator("section.card").first.wait_for()
            found += page.evaluate(CONTRASTS)
    assert len(found) > 100
    assert [each for each in found if each[0] < 4.5] == []


CONTRASTS = """() => {
  const numbers = (color) => (color.match(/[\\d.]+/g) || []).map(Number);
  const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const [r, g, b, a = 1] = numbers(getComputedStyle(element).backgroundColor);
      if (a > 0.9) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const hasText = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const apart = "svg, .hint, .charts, button:disabled";
  const isMeant = (one) => !one.closest(apart) && hasText(one) && one.checkVisibility();
  return [...document.querySelectorAll("main *, header *")].filter(isMeant).map((one) => {
    const [a, b] = [light(numbers(getComputedStyle(one).color)), light(behind(one))].sort((x, y) => y - x);
    return [Math.round(100 * (a + 0.05) / (b + 0.05)) / 100, one.textContent.slice(0, 30), getComputedStyle(one).color];
  });
}"""


@pytest.mark.slow
def test_it_is_read_on_a_phone_and_steered_by_the_keyboard() -> None:
    jobs = AnsweringJobs(job_view(vertices=5))
    with served(App(jobs)) as server:
        with page_of(f"{server.url}#/{HEX}", size=(390, 800)) as page:
            page.locator(".vertex").first.wait_for()
            for tab in (None, *TABS):
                if tab:
                    page.get_by_role("link", name=tab).click()
                    page.locator("section.card").first.wait_for()
                wide = page.evaluate("document.documentElement.scrollWidth")
                assert wide <= 390, f"{tab or 'Overview'} is wider than the screen"
        with page_of(server.url) as page:
            page.get_by_role("link", name="orders").focus()
            page.keyboard.press("Enter")
            page.locator(".vertex").first.focus()
            page.keyboard.press("Enter")
            page.get_by_role("heading", name="step-0").wait_for()
            page.get_by_role("link", name="Checkpoints").focus()
            page.keyboard.press("Enter")
            page.get_by_role("button", name="2", exact=True).focus()
            page.keyboard.press("Enter")
            page.get_by_role("heading", name="savepoint 2").wait_for()


def test_what_is_vendored_is_small_and_has_its_licence() -> None:
    vendored = {name: body for name, body in _files().items() if name.startswith("vendor/")}
    assert sum(map(len, vendored.values())) < 150_000
    for name in ("dagre", "uPlot"):
        assert b"Permission is hereby granted, free of charge" in vendored[f"vendor/{name}-LICENSE.txt"]
