"""How far a campaign is, on a terminal; and its figures, anywhere."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from rich import progress
from rich.console import Console
from rich.table import Table

from ..simulation.histories.campaign import Figures


class Progress:
    """A bar on a terminal, and nothing elsewhere. Use it as a context manager."""

    def __init__(self, console: Console, histories: int | None, minutes: float | None = None) -> None:
        """`minutes`: how long, where no number of histories says when it ends."""
        self._histories = histories
        of = f"of {histories:,} histories" if histories is not None else f"histories, in {minutes:g} minutes"
        self._bar = progress.Progress(
            progress.TextColumn(f"{{task.fields[histories]:,}} {of}"),
            progress.BarColumn(),
            progress.TextColumn("{task.fields[figures]}"),
            progress.TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=histories or 60 * (minutes or 0), histories=0, figures="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self._bar.stop()

    def told(self, figures: Figures) -> None:
        """One more history."""
        if not self._bar.disable:
            hours = figures.virtual_ms / 3_600_000
            text = f"{figures.violations} failed, {hours:.1f} virtual hours, {figures.recoveries:,} recoveries"
            done = figures.seconds if self._histories is None else figures.histories
            self._bar.update(self._task, completed=done, histories=figures.histories, figures=text)


def table(figures: Figures) -> Table:
    """The same figures as in the JSON report."""
    shown = Table(box=None, show_header=False, pad_edge=False)
    shown.add_column(style="bold")
    shown.add_column()
    for name, value in figures.as_json().items():
        if name == "situations":
            continue
        shown.add_row(name.replace("_", " "), _told(value))
    return shown


def coverage_table(figures: Figures) -> Table:
    """How many of the histories have reached each situation."""
    shown = Table(box=None, pad_edge=False, title=f"Of {figures.histories:,} histories", title_justify="left")
    shown.add_column("reached", justify="right", style="bold")
    shown.add_column("situation")
    for situation, reached in figures.situations.items():
        shown.add_row(f"{reached:,}", situation)
    return shown


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {number:,}" for name, number in value.items()) or "-"
    return f"{value:,}"
