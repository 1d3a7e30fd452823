"""Notebook: what a job and a cluster look like at the end of a cell. Self-contained HTML, without scripts.

It is as of its moment, and says of which; where the page is served, it leads there.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Protocol

from ...messages import JobDetails, JobSummary, JobView
from ...messages.counted import counted
from .jobs import flink_id

_STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.4em 0"
_CELL = "text-align:left;padding:.15em .9em .15em 0"
_COLORS = {
    "running": "#1a7f4b",
    "finished": "#3b6fb6",
    "restarting": "#9a6700",
    "failing": "#c0362c",
    "failed": "#c0362c",
}
_DIM = "color:#888"
AMBER, VIOLET = "#d08700", "#7c5cc4"


class ShownJob(Protocol):
    """A job's handle."""

    @property
    def name(self) -> str: ...

    @property
    def job_id(self) -> Any: ...

    @property
    def status(self) -> Any: ...


def cluster_card(
    kind: str, is_running: bool, jobs: Iterable[ShownJob], summaries: Sequence[JobSummary] | None, url: str | None
) -> str:
    """A cluster: its jobs, newest first, and where its page is. `summaries` None: its JobManager does not answer, and
    `jobs` are those that are known here.
    """
    if summaries is None:
        rows = [(_status(job.status.value), escape(job.name), f"<code>{escape(job.job_id)}</code>") for job in jobs]
        table = _table(("status", "job", "id"), rows)
    else:
        now_ms = time.time() * 1000
        newest = sorted(summaries, key=lambda each: each.started_ms, reverse=True)
        table = _table(
            ("status", "job", "id", "tasks", "time", "restarts", "last failure"),
            [
                (
                    _status(each.status.value),
                    _job_link(each.name, each.job_id, url),
                    f"<code>{escape(each.job_id)}</code>",
                    f"{each.tasks_running}/{each.tasks_total}",
                    _span((each.ended_ms or now_ms) - each.started_ms),
                    str(each.restarts),
                    escape(each.last_failure[:200]),
                )
                for each in newest
            ],
        )
    state = "runs" if is_running else "is not running"
    return f"<div><b>{escape(kind)}</b> {state}{_page(url, is_running)}{table or '<br>no jobs yet'}</div>"


def job_card(job: ShownJob, details: JobDetails | None, view: JobView | None, url: str | None) -> str:
    """A job: its status, and what each vertex does. `view` None: the JobManager is gone, and `details` are the last;
    without them nobody answers.
    """
    head = f"{_job_link(job.name, job.job_id, url)} {_status(job.status.value)} <code>{escape(job.job_id)}</code>"
    details = view.details if view is not None else details
    if details is None:
        return f"<div>{head}<br>its JobManager does not answer</div>"
    facts = [counted(details.completed_checkpoints, "checkpoint"), counted(details.restarts, "restart")]
    if view is not None:
        took = (view.summary.ended_ms or view.at_ms) - view.summary.started_ms
        facts.insert(0, f"{'took' if view.summary.ended_ms else 'runs for'} {_span(took)}")
    if details.restarted_as:
        facts.append(f"goes on as <code>{escape(details.restarted_as)}</code>")
    is_over = job.status.is_terminal
    moment = (
        "" if view is None or is_over else _dim(f"as of {_clock(view.at_ms)}; run the cell again for newer figures")
    )
    last = details.failures[-1] if details.failures else None
    why = f"<br>last failure: {escape(str(last))}" if last else ""
    table = _totals(details) if view is None or is_over else _rates(view)
    return f"<div>{head}{_page(url, not is_over)}<br>{', '.join(facts)}{why}{table}{moment}</div>"


def _rates(view: JobView) -> str:
    """Of a job that runs: the busiest subtask of each vertex says how busy that is."""
    totals = {each.attempt_id: each.records_in for each in view.details.tasks}
    rows = []
    for vertex in view.graph.vertices:
        tasks = [each for each in view.subtasks if each.vertex_id == vertex.vertex_id]
        rows.append(
            (
                escape(vertex.name),
                f"{sum(each.state.value == 'running' for each in tasks)}/{vertex.parallelism}",
                f"{sum(each.records_in_per_second for each in tasks):,.0f}",
                f"{sum(each.records_out_per_second for each in tasks):,.0f}",
                f"{sum(totals.get(each.attempt_id, 0) for each in tasks):,}",
                _bar(max((each.busy for each in tasks), default=0.0), AMBER),
                _bar(max((each.back_pressured for each in tasks), default=0.0), VIOLET),
            )
        )
    return _table(("vertex", "tasks", "in/s", "out/s", "records in", "busy", "waits"), rows)


def _totals(details: JobDetails) -> str:
    """Of one that is over."""
    vertices: dict[str, list[Any]] = {}
    for task in details.tasks:
        vertices.setdefault(task.vertex_name, []).append(task)
    rows = [
        (
            escape(name),
            str(len(tasks)),
            f"{sum(each.records_in for each in tasks):,}",
            f"{sum(each.records_out for each in tasks):,}",
        )
        for name, tasks in vertices.items()
    ]
    return _table(("vertex", "tasks", "records in", "records out"), rows)


def _page(url: str | None, is_running: bool) -> str:
    if url:
        return f' · <a href="{escape(url)}" target="_blank" rel="noopener">{escape(url)}</a>'
    return f" · {_dim('a live page: web_port=0 of the cluster, or `understudy dashboard`')}" if is_running else ""


def _job_link(name: str, job_id: str, url: str | None) -> str:
    shown = f"<b>{escape(name)}</b>"
    if not url:
        return shown
    return f'<a href="{escape(url)}#/{flink_id(job_id)}" target="_blank" rel="noopener">{shown}</a>'


def _status(value: str) -> str:
    return f'<span style="color:{_COLORS.get(value, "inherit")}">● {escape(value)}</span>'


def _bar(share: float, color: str) -> str:
    percent = round(100 * min(1.0, max(0.0, share)))
    inner = f'<span style="display:block;width:{percent}%;height:100%;background:{color}"></span>'
    outer = "display:inline-block;width:4em;height:.6em;background:#8883;border-radius:2px;margin-right:.4em"
    return f'<span style="{outer}">{inner}</span>{percent} %'


def _dim(text: str) -> str:
    return f'<small style="{_DIM}">{escape(text)}</small>'


def _span(ms: float) -> str:
    seconds = max(0, round(ms / 1000))
    hours, minutes = seconds // 3600, seconds // 60 % 60
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {seconds % 60:02d} s" if minutes else f"{seconds} s"


def _clock(ms: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(ms / 1000))


def _table(names: Iterable[str], rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    head = _row("th", names)
    body = "".join(_row("td", row) for row in rows)
    return f'<table style="{_STYLE}"><thead>{head}</thead><tbody>{body}</tbody></table>'


def _row(kind: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f'<{kind} style="{_CELL}">{cell}</{kind}>' for cell in cells) + "</tr>"
