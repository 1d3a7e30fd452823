"""What a job in progress looks like: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import re
import sys
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ...actors.checkpoints.reason_words import in_words
from ...messages import (
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointId,
    JobStatusChanged,
    TaskManagerChanged,
    TaskMetrics,
)
from ...messages.failures import raised, tell_line

SHOWN_EVENTS = 12
SHORT_REASON = 40
"""Characters; why a checkpoint was aborted is said again where it takes no more."""


class Display:
    """Events as they come, and a table of rows per second per task. Use it as a context manager.

    `tells_why`: it says why a job fails or restarts; else somebody else does, as the log on the same screen.
    """

    def __init__(self, console: Console | None = None, *, tells_why: bool = True) -> None:
        self._tells_why = tells_why
        self._console = console or Console()
        self._started = time.monotonic()
        self._events: deque[Text] = deque(maxlen=SHOWN_EVENTS)
        self._tasks: Sequence[TaskMetrics] = ()
        self._rates: dict[str, float] = {}
        self._last: dict[str, tuple[float, int]] = {}
        self._reason: tuple[str, str] | None = None
        self._aborted: dict[str, CheckpointId] = {}
        """For which checkpoint a reason was first given."""
        self._live = (
            Live(
                console=self._console,
                get_renderable=self._render,
                refresh_per_second=8,
                redirect_stdout=sys.stdout.isatty(),  # or what jobs print would miss the file that it is meant for
            )
            if self._console.is_terminal
            else None
        )

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    @property
    def is_live(self) -> bool:
        """Whether a terminal shows it."""
        return self._live is not None

    def say(self, what: str, style: str = "") -> None:
        """One event, with the seconds since the start."""
        line = Text(f"{time.monotonic() - self._started:6.2f} s  {what}", style=style)
        if self._live is None:
            self._console.print(line.plain, highlight=False, soft_wrap=True, markup=False)
        else:
            self._events.append(line)

    def status(self, event: JobStatusChanged) -> None:
        """Writes the reason in full when it differs from the one before."""
        because = ""
        if event.failure is not None and self._tells_why:
            error = raised(event.failure)
            reason = error.error_type, error.error_message
            is_new, self._reason = reason != self._reason, reason
            because = f" because of {tell_line(event.failure)}" if is_new else " for the same reason"
        self.say(f"job is {event.status.value}{because}", "bold")

    def aborted(self, event: CheckpointAborted) -> None:
        """A long reason is written in full once: on a full disk it comes with each checkpoint, in other numbers."""
        reason = in_words(event.reason)
        first = self._aborted.setdefault(re.sub(r"\d+", "0", reason), event.checkpoint_id)
        is_known = first != event.checkpoint_id and len(reason) > SHORT_REASON
        why = f" for the same reason as checkpoint {first}" if is_known else f": {reason}"
        self.say(f"checkpoint {event.checkpoint_id} aborted{why}", "yellow")

    def tasks(self, tasks: Sequence[TaskMetrics]) -> None:
        """New figures of the running tasks."""
        now = time.monotonic()
        for task in tasks:
            before = self._last.get(task.attempt_id)
            if before is not None and now > before[0]:
                self._rates[task.attempt_id] = max(0.0, (task.records_in - before[1]) / (now - before[0]))
            self._last[task.attempt_id] = (now, task.records_in)
        self._tasks = tasks

    def _render(self) -> Group:
        table = Table(box=None, pad_edge=False)
        for name in ("task", "subtask", "state"):
            table.add_column(name)
        for name in ("rows in", "rows/s"):
            table.add_column(name, justify="right")
        for task in sorted(self._tasks, key=lambda task: (task.vertex_name, task.subtask_index)):
            table.add_row(
                Text(task.vertex_name),
                str(task.subtask_index),
                task.status,
                f"{task.records_in:,}",
                f"{self._rates.get(task.attempt_id, 0):,.0f}",
            )
        return Group(table, Text(), *self._events)


def narrate(event: Any, display: Display, *, every_checkpoint: bool = True) -> None:
    """Tell what happens to a job; comes on the cluster's thread."""
    match event:
        case TaskManagerChanged(registered=True):
            display.say(f"TaskManager {event.index} is here (process {event.pid})", "green")
        case TaskManagerChanged():
            display.say(f"TaskManager {event.index} is lost: {event.reason}", "bold red")
        case CheckpointCompleted() if every_checkpoint or event.final:
            what = "final checkpoint" if event.final else f"checkpoint {event.checkpoint_id}"
            display.say(f"{what} complete: {event.state_size_bytes:,} bytes, {event.duration_ms} ms", "cyan")
        case CheckpointAborted():
            display.aborted(event)
        case JobStatusChanged():
            display.status(event)
