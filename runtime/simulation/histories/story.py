"""Story: what of a trace a person wants to read. One short line for each event that matters, in order.

Faults and their ends, processes, TaskManagers, the job's status and why it changed, checkpoints, restores, commits, and
the oracles that broke. A cycle that repeats many times is printed once at its beginning and once at its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from ....messages import (
    CheckpointAborted,
    CheckpointCompleted,
    FailureCause,
    JobStatus,
    JobStatusChanged,
    SubmitTask,
    TaskManagerChanged,
)
from ..world.faults import JOB_MANAGER, Fault, Who
from ..world.frame_text import FrameText
from ..world.trace import Entry, Trace
from .actions import ClientAction

_FAULT = "FAULT: "
_NEVER_LEFT_OUT = ("fault", "fault over", "violation", "asks", "answered", "refused", "cancels")
_LONGEST = 160
_LONGEST_CYCLE = 12
_TOLD_IN_FULL = 4
"""The number of repetitions of a cycle printed one by one; of more, the first and the last."""


@dataclass(frozen=True, slots=True)
class Line:
    """One event. Lines of the same `kind` report the same kind of event."""

    now_ms: float
    who: str
    told: str
    kind: str

    def __str__(self) -> str:
        return f"{self.now_ms / 1000:10.3f} s  {self.who:<12} {self.told}"


def tell(trace: Trace) -> Iterator[str]:
    """The story, line by line. A fault comes before what it does at the same instant."""
    lines = sorted(_Teller().lines(trace.entries), key=lambda line: (line.now_ms, not line.told.startswith(_FAULT)))
    return map(str, _without_repetitions(lines))


def told_fault(fault: Fault | ClientAction, name_of: dict[Who, str] | None = None) -> str:
    """A fault, or what a user does, in words: `partition (tm-0-1, job-manager, one way, for 2.5 s)`."""
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", type(fault).__name__).lower()
    names = sorted((each.name for each in fields(fault)), key=lambda name: name == "for_ms")
    told = [_told_field(name, getattr(fault, name), name_of or {}) for name in names]
    told = [each for each in told if each]
    return f"{words} ({', '.join(told)})" if told else words


def _told_field(name: str, value: Any, name_of: dict[Who, str]) -> str:
    match name, value:
        case "at_ms", _:
            return ""
        case (("who" | "one" | "other"), _):
            return name_of.get(value) or ("job-manager" if value == JOB_MANAGER else f"TaskManager {value}")
        case _, bool():
            return name.replace("_", " ") if value else ""
        case "call", _:
            return str(value)
        case _, 0:
            return ""
        case _ if name.endswith("_ms") and "_per_" not in name:
            words = name.removesuffix("_ms").replace("_", " ")
            return f"{words} {_rounded(value / 1000)} s" if abs(value) >= 1000 else f"{words} {_rounded(value)} ms"
        case _:
            return f"{name.replace('_', ' ')} {value}"


def _rounded(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


class _Teller:
    """Goes through a trace, and remembers who is who just then."""

    def __init__(self) -> None:
        self._name_of: dict[Who, str] = {}
        self._told_faults: dict[Fault, str] = {}
        self._restored: set[tuple[str, int]] = set()
        self._committed: set[str] = set()

    def lines(self, entries: Iterable[Entry]) -> Iterator[Line]:
        for now_ms, who, what, details in entries:
            told = self._told(who, what, details)
            if told:
                told = _short(told)
                kind = f"{now_ms} {told}" if what in _NEVER_LEFT_OUT else re.sub(r"\d+", "0", f"{who} {told}")
                yield Line(now_ms, who, told, kind)

    def _told(self, who: str, what: str, details: tuple[Any, ...]) -> str:
        match what, details:
            case "received", (FrameText() as frame,):
                return self._told_restore(who, frame)
            case "rename", (source, target) if _is_commit(source, target):
                return self._told_commit(target)
            case "rename refused", (source, target) if _is_commit(source, target):
                return f"cannot commit {_name(target)}"
            case "process started", _:
                self._remember(who)
                return "starts"
            case "transaction", ("commits", which):
                return f"commits transaction {which}"
            case "asks", (ClientAction() as action, path):
                return f"asks: {told_fault(action)}{f' of {_name(path)}' if path else ''}"
            case (("answered" | "refused"), (ClientAction() as action, answer)):
                return f"gets the answer to {told_fault(action)}: {_name(answer) if what == 'answered' else answer}"
            case "cancels", (job_id,):
                return f"cancels {job_id}"
            case "frozen", (where,):
                return f"freezes {where}"
            case "process ended", (reason,):
                return f"ends: {reason}"
            case (("fault" | "fault over"), (Fault() as fault,)):
                return self._told_fault(what, fault)
            case "violation", (oracle, problem):
                return f"VIOLATION of {oracle}: {problem}"
            case "unhandled", _:
                return f"unhandled: {' '.join(map(str, details))}"
            case _:
                return _told_event(details[0]) if details else ""

    def _remember(self, process: str) -> None:
        kind, _, index = process.rpartition("-")[0].partition("-")
        if kind == "tm" and index.isdecimal():
            self._name_of[int(index)] = process

    def _told_fault(self, what: str, fault: Fault) -> str:
        """Its end names those whom its beginning named, although others may have taken their places."""
        if what == "fault":
            self._told_faults[fault] = told_fault(fault, self._name_of)
            return f"{_FAULT}{self._told_faults[fault]}"
        return f"over: {self._told_faults.get(fault) or told_fault(fault)}"

    def _told_commit(self, target: str) -> str:
        """After a restore a sink commits once more what may have been committed before."""
        again = " again, if need be" if target in self._committed else ""
        self._committed.add(target)
        return f"commits {_name(target)}{again}"

    def _told_restore(self, who: str, frame: FrameText) -> str:
        """Reported for the first task that a TaskManager runs again."""
        message = frame.message()
        if not isinstance(message, SubmitTask):
            return ""
        task = message.deployment
        again = (who, task.attempt_number)
        if again in self._restored or task.attempt_number == 0:
            return ""
        self._restored.add(again)
        if task.restored_checkpoint_id is None:
            return f"starts its tasks from the beginning (attempt {task.attempt_number})"
        return f"restores its tasks from checkpoint {task.restored_checkpoint_id} (attempt {task.attempt_number})"


def _is_commit(source: str, target: str) -> bool:
    """A file goes from a hidden folder to where everybody sees it."""
    return "/." in source and _name(target).startswith("part-")


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _told_event(event: object) -> str:
    match event:
        case TaskManagerChanged(registered=True):
            return f"{event.task_manager_id} is registered"
        case TaskManagerChanged():
            return f"{event.task_manager_id} is lost: {event.reason}"
        case JobStatusChanged():
            return f"is {event.status.value}{_told_cause(event)}"
        case CheckpointCompleted():
            return f"{'final ' if event.final else ''}checkpoint {event.checkpoint_id} is complete"
        case CheckpointAborted():
            return f"checkpoint {event.checkpoint_id} is aborted: {event.reason}"
        case _:
            return ""


def _told_cause(event: JobStatusChanged) -> str:
    if event.failure is None or event.status not in (JobStatus.RESTARTING, JobStatus.FAILED):
        return ""
    return f": {told_failure(event.failure)}"


def told_failure(failure: FailureCause) -> str:
    """Where it happened, and the root of it."""
    subtask = f"[{failure.subtask_index}]" if failure.subtask_index >= 0 else ""
    where = f"{failure.vertex_name}{subtask} " if failure.vertex_name else ""
    root = failure
    while root.cause is not None:
        root = root.cause
    return f"{where}{root.headline}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


# ---- repetitions


def _without_repetitions(lines: list[Line]) -> Iterator[Line | str]:
    position = 0
    while position < len(lines):
        length, times = _cycle_at(lines, position)
        if times <= _TOLD_IN_FULL:
            yield lines[position]
            position += 1
            continue
        end = position + length * times
        yield from lines[position : position + length]
        yield f"{'':10}    … {times - 2} more times like this …"
        yield from lines[end - length : end]
        position = end


def _cycle_at(lines: list[Line], start: int) -> tuple[int, int]:
    """The shortest cycle that begins here and is repeated often: its length, and how many times it occurs.

    Within a cycle the order does not count: what happens at about the same time comes now first, now last.
    """
    for length in range(1, _LONGEST_CYCLE + 1):
        cycle = _kinds(lines, start, length)
        times = 1
        while _kinds(lines, start + length * times, length) == cycle:
            times += 1
        if times > _TOLD_IN_FULL:
            return length, times
    return 1, 1


def _kinds(lines: list[Line], start: int, length: int) -> list[str]:
    return sorted(line.kind for line in lines[start : start + length])
