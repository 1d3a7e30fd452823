"""RepeatedFailures: how often the same repeatable failure has come, with no completed checkpoint in between.

A record that the program cannot take is read again after each restart, and fails it again, for ever. So the same
failure may come a few times only. It is the same when operator and error types are, and the message or the position of
the record: channels may bring records in another order, and a message may tell the time. Where there is no record, as
in a commit, numbers in the message are no difference: subtasks have files of their own. Other failures in between
change nothing; a completed checkpoint means progress, and resets the counts. A value machine of the JobMaster.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, replace

from ...messages import FailureCause, FailureKind
from ..failure import raised, tell_line

SYMPTOMS_KEPT = 50
"""More than this number of different failures between two checkpoints is no repetition."""

CERTAIN = frozenset({"CannotCompile", "NumbaMissing", "EndlessTimers"})
"""Errors that come again whatever happens: once is too often."""

_CHANGING = re.compile(r"(?:\d+-)?\battempt-?[0-9a-f]+|0x[0-9a-f]+")
"""What differs from attempt to attempt: its id, as such and in the names of files, behind its number; and addresses."""

_NUMBERS = re.compile(r"\d+")

ADVICE = (
    "To restart would repeat it: correct the program or its surroundings, or let it leave such records out, and submit "
    "it again. StreamEnvironment(max_same_failures=...) sets how often is too often; None: never"
)


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

    def checkpoint_completed(self) -> None:
        self._seen.clear()

    def add(self, failure: FailureCause) -> FailureCause:
        """Count it. Returns it, or what the job fails with when it has come too often."""
        if self._limit is None or not failure.repeatable:
            return failure
        symptom, count = symptom_of(failure), 1
        for known in self._seen:
            if known[0].is_same(symptom):
                count += known[1]
                self._seen.remove(known)
                break
        self._seen.append((symptom, count))
        return failure if count < self._limit and not _is_certain(failure) else _gave_up(failure, count)


def _is_certain(failure: FailureCause) -> bool:
    """Whether no attempt can come further than this one."""
    step: FailureCause | None = failure
    while step is not None and step.error_type not in CERTAIN:
        step = step.cause
    return step is not None


def _gave_up(failure: FailureCause, count: int) -> FailureCause:
    """In the same place, with the failure as its cause."""
    error = raised(failure)
    where = f"operator {failure.operator_name!r}" if failure.operator_name else f"vertex {failure.vertex_name!r}"
    place = f"at record {failure.record_position} of {where}" if failure.record_position >= 0 else f"in {where}"
    what = tell_line(replace(error, operator_name="", vertex_name=""))
    times = "once" if count == 1 else f"{count} times"
    text = (
        f"failed {times} {place} (subtask {failure.subtask_index}): {what}; "
        f"no checkpoint completed in between. {ADVICE}"
    )
    return replace(
        failure,
        error_type="RepeatedFailure",
        error_message=text,
        traceback="",
        cause=failure,
        kind=FailureKind.REPEATED,
    )
