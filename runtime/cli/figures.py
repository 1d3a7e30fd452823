"""How figures are shown in a terminal: the table of a job's vertices, or of their subtasks, and numbers in short."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table
from rich.text import Text

from ...messages import JobMetrics
from .jobs import plain_table

COLUMNS = ("vertex", "subtask", "busy", "held back", "idle", "records in/s", "out/s", "bytes in/s", "lag", "late")
_NUMBERS = COLUMNS[1:]
_HIGH, _LOW = 500.0, 100.0
"""Of back-pressure, in ms of a second: more than this is HIGH, or LOW."""


def table_of(job: JobMetrics, *, with_subtasks: bool) -> Table:
    """A line per vertex, or per subtask. A vertex shows its worst subtask, and sums of what adds up."""
    table = plain_table(COLUMNS, numbers=_NUMBERS)
    for vertex in job.vertices:
        if with_subtasks:
            for subtask in vertex.subtasks:
                _add(table, vertex.name, str(subtask.subtask_index), subtask.values)
        else:
            _add(table, vertex.name, str(vertex.parallelism), vertex.values)
    return table


def short(number: float) -> str:
    """As in 950, 12.3k, 4.6M."""
    for least, size, unit in ((999_950_000, 1e9, "G"), (999_950, 1e6, "M"), (9_999.5, 1e3, "k")):
        if abs(number) >= least:  # what would be rounded to a thousand of the unit below is one of this
            return f"{number / size:.1f}{unit}"
    return f"{number:.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"


def in_full(number: float) -> str:
    """A figure in full."""
    return str(int(number)) if number == int(number) else f"{number:.3f}"


def _add(table: Table, name: str, subtask: str, values: Mapping[str, float]) -> None:
    if "busyTimeMsPerSecond" not in values:
        table.add_row(Text(name), subtask, *[""] * (len(COLUMNS) - 2))
        return
    busy, held, idle = (values[f"{each}TimeMsPerSecond"] for each in ("busy", "backPressured", "idle"))
    style = "bold red" if held > _HIGH else "yellow" if held > _LOW else ""
    lag = values.get("watermarkLag")
    late = values.get("numLateRecordsDropped", 0.0)
    table.add_row(
        Text(name),
        subtask,
        Text(_percent(busy), style="bold green" if busy > _HIGH else ""),
        Text(_percent(held), style=style),
        _percent(idle),
        short(values["numRecordsInPerSecond"]),
        short(values["numRecordsOutPerSecond"]),
        short(values["numBytesInPerSecond"]),
        "" if lag is None else f"{lag / 1000:.1f} s",
        short(late) if late else "",
    )


def _percent(ms_per_second: float) -> str:
    return f"{ms_per_second / 10:.0f} %"
