"""RepeatedFailures: how often the same repeatable failure has come, with no completed checkpoint in between.

A record that the program cannot take is read again after each restart, and fails it again, for ever. So the same
failure may come a few times only. It is the same when operator and error types are, and the message or the position of
the record: channels may bring records in another order, and a message may tell the time. Where there is no record, as
in a commit, numbers in the message are no difference: subtasks have files of their own. Other failures in between
change nothing; a completed checkpoint means progress, and resets the counts. It is none for a record that was in
flight: the checkpoint holds it, so it is tried again after a restart. It has a key by which it is known, and is counted
across checkpoints, whatever it fails with. A value machine of the JobMaster.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ...messages import FailureCause, FailureKind
from ...messages.failures import raised, tell_line

SYMPTOMS_KEPT = 50
"""More than this number of different failures between two checkpoints, or of different records in flight, is no
repetition.
"""

CERTAIN = frozenset(
    {
        "CannotCompile",
        "CannotLoad",
        "NumbaMissing",
        "EndlessTimers",
        "InletLogDamaged",
        "LoopIsOver",
        "OffsetMismatch",
        "OutputTakenOver",
        "SparkQueryFailed",
        "SpoolMismatch",
        "StateNotStorable",
        "SuperNotCalled",
        "UnboundState",
        "UnreadableFile",
        "UnregisteredMessage",
        "UnstableKey",
        "UnsupportedValue",
        "UnwantedResult",
        "UpdateForgotten",
        "WrongColumn",
    }
)
"""Errors that come again whatever happens: once is too often."""
CERTAIN_ALONE = frozenset(
    {
        "CallIsOver",
        "ImportError",
        "IndentationError",
        "ModuleNotFoundError",
        "NoEventTime",
        "NoTimerMethod",
        "SyntaxError",
        "TabError",
    }
)
"""The same, where nothing else came of it: a program may do without a module, or a time, and fail there with another
error.
"""

_PLACE = r"\bTaskManager \d+(?: on [^\s,()]+)?"
_CHANGING = re.compile(
    r"(?:\d+-)?\battempt-?[0-9a-f]+|0x[0-9a-f]+|(?<=\.\.\.)0?x?[0-9a-f]{4,}(?=>)|(?<=\brecord )\d+(?= of the batch)"
    rf"|{_PLACE}(?:, {_PLACE})*(?: and \d+ more)?"
)
"""What differs from attempt to attempt: its id, as such and in the names of files, behind its number; addresses, whole
or as the end of a shortened text; how many records of a batch came before; and where it ran, in one place or several.
"""

_NUMBERS = re.compile(r"\d+")

ADVICE = (
    "To restart would repeat it: correct the program or its surroundings, or let it leave such records out, and submit "
    "it again. StreamEnvironment(max_same_failures=...) sets how often is too often; None: never"
)

NO_REMEDY = "no restart can mend it: correct the program or its surroundings, and submit it again"


@dataclass(frozen=True, slots=True)
class Symptom:
    """What of a failure comes again when its reason does."""

    place: str
    error_types: tuple[str, ...]
    message: str
    record_position: int

    def is_same(self, other: Symptom) -> bool:
        if (self.place, self.error_types) != (other.place, other.error_types):
            return False
        is_same_record = self.record_position == other.record_position >= 0
        return is_same_record or self.message == other.message


def symptom_of(failure: FailureCause) -> Symptom:
    types, step = [], raised(failure)
    message = _CHANGING.sub("<>", step.error_message)
    if failure.record_position < 0:
        message = _NUMBERS.sub("#", message)
    while True:
        types.append(step.error_type)
        if step.cause is None:
            break
        step = step.cause
    return Symptom(failure.operator_name or failure.vertex_name, tuple(types), message, failure.record_position)


class RepeatedFailures:
    """The counts of one job. `limit`: how many are too many; None: never."""

    def __init__(self, limit: int | None) -> None:
        self._limit = limit
        self._seen: deque[tuple[Symptom, int]] = deque(maxlen=SYMPTOMS_KEPT)
        self._in_flight: deque[tuple[tuple[object, ...], int]] = deque(maxlen=SYMPTOMS_KEPT)
        """Operator, error types and key of records that were in flight."""
        self.count = 1
        """How often the failure that was added last has come, as far as that counts."""

    def checkpoint_completed(self) -> None:
        self._seen.clear()

    def add(self, failure: FailureCause) -> FailureCause:
        """Count it. Returns it, or what the job fails with when it has come too often."""
        self.count = 1
        if self._limit is None:
            return failure
        symptom, count, count_in_flight = symptom_of(failure), 0, 0
        if failure.repeatable:
            count = _count(self._seen, symptom, symptom.is_same)
        if failure.record_key:
            record = symptom.place, symptom.error_types, failure.record_key
            count_in_flight = _count(self._in_flight, record, record.__eq__)
        self.count = max(1, count, count_in_flight)
        if failure.repeatable and _is_certain(failure):
            return _gave_up(failure, count, NO_REMEDY)
        if count >= self._limit:
            return _gave_up(failure, count, f"no checkpoint completed in between. {ADVICE}")
        if count_in_flight >= self._limit:
            between = f"its record was in flight in the checkpoints in between, with the key {failure.record_key!r:.80}"
            return _gave_up(failure, count_in_flight, f"{between}. {ADVICE}")
        return failure


def _count(seen: deque[tuple[Any, int]], new: Any, is_same: Callable[[Any], bool]) -> int:
    """How often it has been seen, this time too."""
    count = 1
    for known in seen:
        if is_same(known[0]):
            count += known[1]
            seen.remove(known)
            break
    seen.append((new, count))
    return count


def _is_certain(failure: FailureCause) -> bool:
    """Whether no attempt can come further than this one."""
    root = raised(failure)
    step: FailureCause | None = failure
    while step is not None and step.error_type not in CERTAIN and step.kind is not FailureKind.NOT_STORABLE:
        step = step.cause
    return step is not None or root.error_type in CERTAIN_ALONE


def _gave_up(failure: FailureCause, count: int, why: str) -> FailureCause:
    """In the same place, with the failure as its cause."""
    error = raised(failure)
    where = f"operator {failure.operator_name!r}" if failure.operator_name else f"vertex {failure.vertex_name!r}"
    place = f" at record {failure.record_position} of {where}" if failure.record_position >= 0 else f" in {where}"
    details = [f"subtask {failure.subtask_index}", *filter(None, [failure.record_origin])]
    place = f"{place} ({', '.join(details)})" if failure.subtask_index >= 0 else ""
    what = tell_line(replace(error, operator_name="", vertex_name=""))
    times = "once" if count == 1 else f"{count} times"
    text = f"failed {times}{place}: {what}; {why}"
    return replace(
        failure,
        error_type="RepeatedFailure",
        error_message=text,
        traceback="",
        cause=failure,
        kind=FailureKind.REPEATED,
    )
