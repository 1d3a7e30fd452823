"""Notebook: what a job and a cluster look like at the end of a cell. Self-contained HTML, without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any, Protocol

from ...messages import JobDetails

_STYLE = "border-collapse:collapse;font-variant-numeric:tabular-nums"
_CELL = "text-align:left;padding:.15em .9em .15em 0"
_COLORS = {
    "running": "#1a7f4b",
    "finished": "#3b6fb6",
    "restarting": "#9a6700",
    "failing": "#c0362c",
    "failed": "#c0362c",
}


class ShownJob(Protocol):
    """A job's handle."""

    @property
    def name(self) -> str: ...

    @property
    def job_id(self) -> Any: ...

    @property
    def status(self) -> Any: ...


def cluster_card(kind: str, is_running: bool, jobs: Iterable[ShownJob], url: str | None) -> str:
    """A cluster: its jobs, and where its page is."""
    rows = [(_status(job.status.value), escape(job.name), f"<code>{escape(job.job_id)}</code>") for job in jobs]
    link = f' · <a href="{escape(url)}" target="_blank" rel="noopener">{escape(url)}</a>' if url else ""
    state = "runs" if is_running else "is not running"
    return f"<div><b>{escape(kind)}</b> {state}{link}{_table(('status', 'job', 'id'), rows)}</div>"


def job_card(job: ShownJob, details: JobDetails | None) -> str:
    """A job: its status, and what each vertex has done so far. `details` None: the JobManager does not answer."""
    head = f"<b>{escape(job.name)}</b> {_status(job.status.value)} <code>{escape(job.job_id)}</code>"
    if details is None:
        return f"<div>{head}</div>"
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
    facts = f"{details.completed_checkpoints} checkpoints, {details.restarts} restarts"
    last = details.failures[-1] if details.failures else None
    why = f"<br>last failure: {escape(last.error_type)}: {escape(last.error_message[:500])}" if last else ""
    table = _table(("vertex", "tasks", "records in", "records out"), rows)
    return f"<div>{head}<br>{facts}{why}{table}</div>"


def _status(value: str) -> str:
    return f'<span style="color:{_COLORS.get(value, "inherit")}">● {escape(value)}</span>'


def _table(names: Iterable[str], rows: Sequence[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    head = _row("th", names)
    body = "".join(_row("td", row) for row in rows)
    return f'<table style="{_STYLE}"><thead>{head}</thead><tbody>{body}</tbody></table>'


def _row(kind: str, cells: Iterable[str]) -> str:
    return "<tr>" + "".join(f'<{kind} style="{_CELL}">{cell}</{kind}>' for cell in cells) + "</tr>"
