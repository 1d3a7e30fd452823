"""What `run` writes of events where there is no terminal."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from understudy.messages import CheckpointAborted, CheckpointId, JobId
from understudy.runtime.cli.display import Display, narrate

FULL = "declined: big subtask 0: UnwritableFolder: cannot write to /data/chk-%d: its disk is full"


def told(*reasons: str) -> list[str]:
    out = StringIO()
    display = Display(Console(file=out, width=1000))
    for number, reason in enumerate(reasons, 1):
        narrate(CheckpointAborted(JobId("job"), CheckpointId(number), reason, 0), display)
    return [line.partition(" s  ")[2] for line in out.getvalue().splitlines()]


def test_a_reason_that_comes_with_each_checkpoint_is_written_in_full_once() -> None:
    assert told(FULL % 1, "tasks restart", FULL % 3, "tasks restart", "expired, " * 9 + "at last") == [
        f"checkpoint 1 aborted: {FULL % 1}",
        "checkpoint 2 aborted: tasks restart",
        "checkpoint 3 aborted for the same reason as checkpoint 1",
        "checkpoint 4 aborted: tasks restart",
        f"checkpoint 5 aborted: {'expired, ' * 9}at last",
    ]
