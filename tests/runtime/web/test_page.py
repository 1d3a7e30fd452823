"""The page in a real browser: each view, scripts in names, the JobManager gone and back, many subtasks, a small screen.

One short test runs always, the others with `-m slow`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from understudy.messages import ExecutionState, FailureAt, FailureCause, JobStatus
from understudy.runtime.web.app import App, _compressed, _files

from .browser import needs_chromium, page_of, served
from .views import HEX, HOSTILE, AnsweringJobs, in_a_loop, job_view

pytestmark = [needs_chromium, pytest.mark.processes]
TABS = ("Checkpoints", "Exceptions", "Event time", "Flame graph", "State", "TaskManagers", "Settings")


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
        _looked_at_flames(page)
        _asked(page)
        _laid_out(page)
        _looked_at_threads(page)
        _disposed(page)
        page.get_by_role("button", name="Stop…").click()
        page.get_by_label("Folder").fill("nightly")
        page.get_by_role("button", name="Stop it").click()
        page.get_by_text("/savepoints/savepoint-1").wait_for()
        question, disposal, order = jobs.orders
        assert disposal.savepoint_path == f"/savepoints/{HOSTILE}"
        assert (question.operator, question.key, question.plain_question) == ("step-1", ("a", 17), "seen")
        assert (order.target_directory, order.drain) == ("nightly", False)


def _looked_at_flames(page: Any) -> None:
    """By keyboard: to the frame that is called, one frame over the whole width, and back; and as text."""
    page.get_by_role("link", name="Flame graph").click()
    page.locator(".frame").nth(4).wait_for()
    facts = page.locator(".flame-card .facts").inner_text()
    assert "100 samples" in facts
    assert "3.0 s ago" in facts
    assert page.locator(".frame.frame-user").inner_text() == HOSTILE
    page.locator(".frame").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.title").startswith(
        "Output.flush (output.py:9)\n25 of 100 samples, 25 %"
    )
    page.keyboard.press("Enter")
    page.locator(".frame.frame-user").wait_for(state="detached")
    page.get_by_role("button", name="show all of it").click()
    page.locator(".frame.frame-user").wait_for()
    page.get_by_text("the same as text").click()
    text = page.locator(".flame-card pre").inner_text()
    assert f"50 %   {HOSTILE} (job.py:3)  [your code]" in text


def _asked(page: Any) -> None:
    """An answer and a refusal, both with a script in them; sizes, and the subtask that holds too much."""
    page.get_by_role("link", name="State", exact=True).click()
    page.get_by_text("subtask 1 holds far more than the mean").first.wait_for()
    page.get_by_text("Key group 17 of 128 holds 41 % of the keyed state of step-1: subtask 0 has it.").wait_for()
    row = page.locator("tbody tr").first.inner_text()
    assert "ValueState" in row
    assert "9.8 KiB" in row
    page.get_by_label("Operator", exact=True).select_option("step-1")
    page.get_by_label("Key").fill('["a", 17]')
    page.get_by_label("Question").fill("seen")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("article pre").wait_for()
    assert '"3": [' in page.locator("article pre").inner_text()
    page.get_by_label("Question").fill("fail")
    page.keyboard.press("Enter")
    page.locator("article pre.refused").wait_for()
    assert HOSTILE in page.locator("article pre.refused").inner_text()
    page.get_by_label("Key").fill("[null, {}]")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.locator("article pre.refused", has_text="key: ").wait_for()


def _looked_at_threads(page: Any) -> None:
    """Of a TaskManager and of the JobManager: names and stacks with a script in them."""
    page.get_by_role("link", name="TaskManagers").click()
    page.get_by_role("button", name="threads of TaskManager 1").click()
    page.get_by_text(f"slot of tm-1 {HOSTILE}").wait_for()
    page.get_by_text(f"slot of tm-1 {HOSTILE}").click()
    page.get_by_text('File "job.py", line 3, in price').wait_for()
    page.get_by_role("button", name="threads of the JobManager").click()
    page.get_by_text(f"slot of None {HOSTILE}").wait_for()
    page.get_by_role("button", name="close").click()
    page.get_by_role("heading", name="Threads of JobManager").wait_for(state="detached")


def _disposed(page: Any) -> None:
    """Of a savepoint with a script in its path, after the page has said how to start from it."""
    page.get_by_role("link", name="Checkpoints").click()
    page.get_by_role("button", name="Start from it…").click()
    assert "cannot restart it: the JobManager that had its program has ended." in page.locator("dialog").inner_text()
    command = page.locator("dialog pre").inner_text()
    assert command.startswith("understudy run PROGRAM.py --from-savepoint '/savepoints/<img")
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Dispose…").click()
    assert page.locator("dialog pre").inner_text() == f"/savepoints/{HOSTILE}"
    page.get_by_role("button", name="Dispose of it").click()
    page.get_by_text("Dispose of the savepoint: done").wait_for()
    page.get_by_text("None. A savepoint keeps").wait_for()


LAID_OUT = """async () => {
  const { layout } = await import("./layout.js");
  const sizes = { width: 216, height: 84, between: 26, apart: 96, upright: false };
  // A fork and a join, an edge past two ranks, a part that nothing is joined to, and two wires that need not cross.
  const edges = [[0, 1], [0, 2], [1, 3], [2, 3], [0, 3], [3, 4], [6, 8], [5, 7], [0, 4], [9, 4]];
  const again = JSON.stringify(layout(10, edges, sizes)), found = layout(10, edges, sizes);
  const upright = layout(10, edges, { ...sizes, upright: true }), alone = layout(1, [], sizes);
  return { edges, found, upright, alone, isSame: again === JSON.stringify(found) };
}"""

LOOPS_LAID_OUT = """async () => {
  const { layout } = await import("./layout.js");
  const sizes = { width: 216, height: 84, between: 26, apart: 96, upright: false };
  // A loop of three with two ways back, a loop of one behind it, and a way past both.
  const edges = [[0, 1], [1, 2], [2, 3], [3, 1, true], [2, 1, true], [3, 4], [4, 4, true], [4, 5], [0, 5]];
  return { edges, found: layout(6, edges, sizes), upright: layout(6, edges, { ...sizes, upright: true }) };
}"""


def _laid_out(page: Any) -> None:
    """Cards do not overlap, are within the picture, and come after those before them; the same graph looks the same."""
    said = page.evaluate(LAID_OUT)
    assert said["isSame"]
    for found, along in ((said["found"], "x"), (said["upright"], "y")):
        nodes = found["nodes"]
        for n, one in enumerate(nodes):
            assert 108 <= one["x"] <= found["width"] - 108
            assert 42 <= one["y"] <= found["height"] - 42
            for other in nodes[:n]:
                assert abs(one["x"] - other["x"]) >= 216 or abs(one["y"] - other["y"]) >= 84
        for (start, end), points in zip(said["edges"], found["paths"], strict=True):
            assert nodes[start][along] < points[0][along] < points[-1][along] < nodes[end][along]
            assert all(0 <= each["x"] <= found["width"] and 0 <= each["y"] <= found["height"] for each in points)
    assert said["alone"]["nodes"] == [{"x": 116, "y": 50}]


def test_a_loop_is_drawn_with_its_way_back() -> None:
    """Cards stand as without it; the way back leaves behind the tail, and comes to the head past all cards."""
    with served(App(AnsweringJobs(in_a_loop(job_view())))) as server, page_of(f"{server.url}#/{HEX}") as page:
        page.locator("svg.plan .vertex").nth(2).wait_for()
        assert page.locator("svg.plan .wire.back").count() == 1
        assert page.locator("svg.plan .wire.back text").first.text_content() == "back"
        assert page.locator("svg.plan .wire").count() == 4
        said = page.evaluate(LOOPS_LAID_OUT)
    for found, along, across in ((said["found"], "x", "y"), (said["upright"], "y", "x")):
        nodes = found["nodes"]
        assert [each[along] for each in nodes] == sorted({each[along] for each in nodes})
        lanes = set()
        for (start, end, *back), points in zip(said["edges"], found["paths"], strict=True):
            assert all(0 <= each["x"] <= found["width"] and 0 <= each["y"] <= found["height"] for each in points)
            assert nodes[start][along] < points[0][along]
            assert points[-1][along] < nodes[end][along]
            if back:
                lanes.add(lane := max(each[across] for each in points))
                assert all(lane > each[across] + (42 if across == "y" else 108) for each in nodes)
        assert len(lanes) == 3


@pytest.mark.slow
def test_an_order_that_is_not_confirmed_is_none() -> None:
    jobs = AnsweringJobs(job_view())
    with served(App(jobs)) as server, page_of(f"{server.url}#/{HEX}") as page:
        page.get_by_role("button", name="Cancel…").click()
        page.get_by_role("button", name="Leave it").click()
        page.get_by_role("button", name="Cancel…").click()
        page.locator("dialog[open]").wait_for()
        page.keyboard.press("Escape")
        page.locator("dialog").wait_for(state="detached")
    assert jobs.orders == []


@pytest.mark.slow
def test_an_order_that_fails_says_why_and_one_without_a_token_asks_for_it() -> None:
    jobs = AnsweringJobs(job_view())
    with served(App(jobs, token="a-long-secret")) as server, page_of(f"{server.url}#token=a-long-secret") as page:
        page.get_by_role("link", name="orders").click()

        def order_savepoint(folder: str) -> None:
            page.get_by_role("button", name="Savepoint…").click()
            page.get_by_label("Folder").fill(folder)
            page.get_by_role("button", name="Take it").click()

        page.get_by_role("button", name="Checkpoint…").click()
        page.get_by_role("button", name="Take it").click()
        page.get_by_text("Take a checkpoint: done").wait_for()
        page.get_by_text("checkpoint 7", exact=True).wait_for()
        order_savepoint("../../etc")
        page.get_by_text("Take a savepoint failed: ../../etc is not below the root").wait_for()
        page.context.clear_cookies()
        order_savepoint("nightly")
        page.get_by_role("heading", name="A token is wanted").wait_for()
    checkpoint, savepoint = jobs.orders
    assert not checkpoint.full
    assert savepoint.target_directory == "../../etc"


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
def test_a_job_that_restarts_and_then_is_not_known_any_more() -> None:
    """As after a start of the JobManager: the page is connected, and says that the job is not found."""
    view = job_view()
    down = replace(view.summary, status=JobStatus.RESTARTING, tasks_running=0)
    subtasks = tuple(
        replace(each, state=ExecutionState.CANCELED, busy=0.0, back_pressured=0.0) for each in view.subtasks
    )
    jobs = AnsweringJobs(replace(view, summary=down, subtasks=subtasks))
    with served(App(jobs)) as server, page_of(f"{server.url}#/{HEX}") as page:
        page.get_by_text(f"0 of {view.summary.tasks_total} tasks run; the job is restarting.").wait_for()
        jobs.views.clear()
        page.get_by_role("alert").get_by_text("Not found.").wait_for()
        assert page.locator(".live.on").inner_text() == "live"


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
            page.get_by_text("This is not the token that is wanted").wait_for()
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
            page.locator(".vertex").nth(1).focus()
            page.keyboard.press("Enter")
            page.locator(".groups .warned", has_text="it has 8.2 times their mean").wait_for()
            assert page.locator(".groups tbody tr").first.inner_text().split() == [
                "17",
                "0",
                "40.0",
                "KiB",
                "41.0",
                "%",
            ]
            page.get_by_role("link", name="Checkpoints").focus()
            page.keyboard.press("Enter")
            page.get_by_role("button", name="2", exact=True).focus()
            page.keyboard.press("Enter")
            page.get_by_role("heading", name="savepoint 2").wait_for()


@pytest.mark.slow
def test_of_many_jobs_those_of_one_status_are_shown() -> None:
    """Three that failed among three hundred that are finished."""
    few = dict.fromkeys(range(3), JobStatus.FAILED)
    views = [
        job_view(vertices=1, status=few.get(n, JobStatus.FINISHED), name=f"job {n}", job_id=f"job-{n:032x}")
        for n in range(30)
    ]
    jobs = AnsweringJobs(*views)
    with served(App(jobs)) as server, page_of(server.url) as page:
        page.get_by_role("button", name="failed 3").click()
        page.get_by_role("button", name="failed 3", pressed=True).wait_for()
        assert page.locator("tbody tr").count() == 3
        page.get_by_role("button", name="all 30").click()
        page.get_by_role("button", name="all 30", pressed=True).wait_for()
        assert page.locator("tbody tr").count() == 30
        page.get_by_role("button", name="failed 3").click()
        failed = {id: jobs.views.pop(id) for id in [view.summary.job_id for view in views[:3]]}
        page.get_by_role("heading", name="27 in all").wait_for()
        jobs.views.update(failed)
        page.get_by_role("button", name="all 30", pressed=True).wait_for()
        assert page.locator("tbody tr").count() == 30, "it does not narrow by itself"


@pytest.mark.slow
def test_the_operator_that_failed_last_is_found_among_two_hundred_of_its_chain() -> None:
    view = job_view(vertices=1, parallelism=1)
    (vertex,) = view.graph.vertices
    (one, *_) = vertex.operators
    names = [f"step-{n}" for n in range(200)]
    vertex = replace(vertex, name=" -> ".join(names), operators=tuple(replace(one, name=name) for name in names))
    cause = FailureCause("KeyError", "'delya'", vertex_name=vertex.name, operator_name="step-137")
    failed_ms, said = view.at_ms - 5_000, "KeyError: 'delya' (in operator 'step-137')"
    view = replace(
        view,
        graph=replace(view.graph, vertices=(vertex,)),
        failures=(FailureAt(failed_ms, cause),),
        summary=replace(view.summary, latest_failure=said, latest_failure_ms=failed_ms),
    )
    with served(App(AnsweringJobs(view))) as server, page_of(f"{server.url}#/{HEX}") as page:
        page.get_by_text("It runs again; it failed 5.0 s ago: KeyError: 'delya' (in operator 'step-137')").wait_for()
        page.get_by_text("failed: step-137").wait_for()
        page.locator("g.vertex").click()
        page.get_by_role("heading", name="step-0 → … → step-199, 200 operators").wait_for()
        assert page.locator(".op.failing").inner_text().startswith("step-137")


@pytest.mark.slow
def test_on_a_phone_the_list_says_why_a_job_failed_and_no_heading_breaks_within_a_word() -> None:
    view = job_view(vertices=2)
    view = replace(view, summary=replace(view.summary, last_failure="KeyError: 'delya' in operator 'count'"))
    with served(App(AnsweringJobs(view))) as server:
        with page_of(server.url, size=(400, 800)) as page:
            box = page.locator(".narrow", has_text="KeyError: 'delya'").bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= 400
        with page_of(f"{server.url}#/{HEX}", size=(400, 800)) as page:
            page.get_by_role("link", name="Checkpoints").click()
            heading = page.get_by_role("heading", name="Savepoints")
            heading.wait_for()
            lines = heading.evaluate(
                "(one) => { const range = document.createRange(); range.selectNode(one.firstChild);"
                " return range.getClientRects().length; }"
            )
            assert lines == 1


def test_all_that_is_served_is_small_and_what_is_vendored_has_its_licence() -> None:
    files = _files()
    assert sum(map(len, files.values())) < 150_000
    assert sum(len(_compressed(name)) for name in files) < 60_000
    assert {name for name in files if name.startswith("vendor/")} == {
        "vendor/uPlot.iife.min.js",
        "vendor/uPlot-LICENSE.txt",
    }
    assert b"Permission is hereby granted, free of charge" in files["vendor/uPlot-LICENSE.txt"]
