"""What can go wrong while acting.

ActorError
├── UserCodeError           a user's function raised; the cause is its exception
│   └── RecordNotSent       an operator emitted a record that cannot travel; the cause says why
├── UnusableRecord          a record that the program made cannot be keyed, or fits no column; says which and why
│   └── RecordMismatch      it does not fit the wanted columns
├── UnwantedResult          a user's function returned what would be lost; says what to write instead
├── CannotLoad              a TaskManager has not the code that an operator needs, or another; says where from
├── SuperNotCalled          a method of a subclass stands before one that has to run; says what to call
├── NoEventTime             event time was asked for where records have none; says what to write
├── NoTimerMethod           an operator sets a timer and defines no on_timer; says what to write
├── EndlessTimers           the data has ended, and timers set each other for ever; says when to stop
├── ChannelBroken           a gap, a duplicate or a lost peer on a channel
├── UnknownChannel          restored elements were in flight on a channel that is not there
├── InvalidJobGraph         a graph that cannot run, with the vertex or operator that is wrong
├── NoResourceAvailable     too few slots; says how many are needed and offered
├── UnknownJob              no job of this id was submitted here
├── NotRestartable          a job cannot be started again where it ran; says why, and what to do
├── OutputInUse             a job would write where another one writes; says which, and what to do
├── CannotRestore           a job cannot be started from what was named: it is not there, or cannot be read
│   ├── StateDoesNotFit     it does not fit the program; lists what does and what does not
│   └── NoReadableCheckpoint    a job that is to be resumed has checkpoints, and each is spoilt
├── CannotRescale           a source that cannot go on with another parallelism
├── OutsideUnavailable      a sink's outside system has refused for as long as the sink tries again
├── MarkerMoved             a LedgerSink's `apply` found the marker elsewhere, and wrote nothing
├── MarkerMismatch          that marker cannot be what it is; says what was lost, or who else counts
├── MessageNotHandled       an actor does not know this message, or defines no on_receive; it goes on
├── InvalidTimeout          a timeout that is no number; says what to write
└── IllegalTransition       an execution or job got an event that its transition table does not allow
"""

from __future__ import annotations

from collections.abc import Iterable

from ..messages import SubtaskIndex
from ..state.kinds.durations import may_be_seconds


class ActorError(Exception):
    """Base of all errors of actors/."""


class UserCodeError(ActorError):
    """User code raised; `__cause__` is what it raised, and ends the text, as some show the last error alone. `what`:
    the text without it. `record_position` is None outside of a record function.

    `record_key`: the idempotency key of a record in flight; `others_ended`: whether other records of its operator have
    been answered in this attempt, so that it is not the whole service that fails. `record_origin`: see FailureCause.
    `hook`: the method that raised, where it is one without a key that takes records.
    """

    record_key = ""
    others_ended = False
    record_origin = ""

    def __init__(self, operator_name: str, record_position: int | None, hook: str = "") -> None:
        where = "" if record_position is None else f" at record {record_position} of this attempt"
        self.what = f"operator {operator_name!r} raised{where}"
        super().__init__(self.what)
        self.operator_name = operator_name
        self.record_position = record_position
        self.hook = hook

    def __str__(self) -> str:
        cause = self.__cause__
        return self.what if cause is None else f"{self.what}: {type(cause).__name__}: {cause}"


class RecordNotSent(UserCodeError):
    """What an operator emitted cannot be sent to the next task; `__cause__` says what in it, and what could be."""

    def __init__(self, operator_name: str, why: object) -> None:
        super().__init__(operator_name, None)
        self.what = f"operator {operator_name!r} emitted a record that cannot be sent: {why}"
        self.args = (self.what,)

    def __str__(self) -> str:
        return self.what


class UnusableRecord(ActorError, ValueError):
    """A record, as the program made it, cannot be used: a base that says so of errors of the rooms above."""


class RecordMismatch(UnusableRecord):
    """A record or a batch does not fit the wanted columns; says which record and column, what was found and wanted."""


class UnwantedResult(ActorError, TypeError):
    """User code returned a coroutine or a generator, or a value where there is no place for one.

    `index`: whose result it is, of the records of a batch; None when it is not one record's.
    """

    def __init__(self, text: str, index: int | None = None) -> None:
        super().__init__(text)
        self.index = index


class CannotLoad(ActorError):
    """A TaskManager cannot load the job's code; `__cause__` is what loading it raised, `text` says what differs."""

    def __init__(self, text: str) -> None:
        super().__init__(f"this TaskManager cannot load the job's code: {text}")


class SuperNotCalled(ActorError, TypeError):
    """A user's method stands in the place of one of ours that has to run, and does not call it."""

    def __init__(self, kind: str, call: str, lost: str) -> None:
        """`call`: as in "open()". `lost`: what comes of it, a clause."""
        method = call.partition("(")[0]
        super().__init__(f"{kind}.{method} does not call super().{call}, so {lost}: let it do that first")


class NoEventTime(ActorError, ValueError, AttributeError):
    """Event time was asked for, and the records, or what was called, have none: so there is no `self.timestamp`."""

    def __init__(self, operator_name: str, what: str, input_index: int | None = None) -> None:
        """`input_index`: which input's records have none, where there are two."""
        records = "the records" if input_index is None else f"records of its {('first', 'second')[input_index]} input"
        super().__init__(
            f"operator {operator_name!r}: {what} was asked for, and there is no event time here: {records} have "
            "none, or it is neither a record nor an event-time timer that is processed. Put "
            'stream.assign_timestamps("column", bounded_out_of_orderness(ms)) before this operator, and behind any '
            "map_batches or operator of whole batches that drops the times"
        )


class NoTimerMethod(ActorError, NotImplementedError):
    """An operator sets a timer, and has no `on_timer` for it; the text says what to write."""


class EndlessTimers(ActorError):
    """The data has ended, so every timer is due, and `on_timer` sets more and more of them."""

    def __init__(self, operator_name: str, fired: int) -> None:
        super().__init__(
            f"operator {operator_name!r}: the data has ended, so all timers are due at once, and on_timer has set "
            f"others again and again: over {fired} of them have fired. A timer that always sets the next one never "
            "ends: set none where there is nothing left to wait for, or where self.watermark is 2**63 - 1, the end of "
            "time"
        )


class CallTimedOut(ActorError, TimeoutError):
    """A coroutine of an operator took longer than its `timeout_ms` or `total_timeout_ms`, and was cancelled."""

    def __init__(self, what: str, limit_ms: float, tries: int = 1, waited_for: str = "") -> None:
        """`waited_for`: the setting for whose sake this try was not made within `total_timeout_ms`."""
        if waited_for:
            super().__init__(
                f"{what}: {limit_ms:.0f} ms (total_timeout_ms) were over while try {tries} waited for its turn "
                f"({waited_for}), so it was not made: raise total_timeout_ms, or the other setting"
            )
            return
        which = f" in try {tries}" if tries > 1 else ""
        unit = ". Both are in milliseconds" if may_be_seconds(limit_ms) else ""
        super().__init__(
            f"{what} took longer than {limit_ms:.0f} ms{which} and was cancelled: raise timeout_ms (of a try) or "
            f"total_timeout_ms (of all) in its async_settings, or give it a retry{unit}"
        )


class ChannelBroken(ActorError):
    """A channel lost data, or would have: the attempt fails and is restored from the last checkpoint."""


class UnknownChannel(ActorError, LookupError):
    """An unaligned snapshot can be restored only into the graph that it was taken from."""

    def __init__(self, edge: int, producer_subtask: int, known: list[tuple[int, SubtaskIndex]]) -> None:
        there = ", ".join(f"edge {edge} from subtask {subtask}" for edge, subtask in known) or "none"
        super().__init__(
            f"restored elements were in flight on edge {edge} from subtask {producer_subtask}; "
            f"the task has these input channels: {there}"
        )


class InvalidJobGraph(ActorError, ValueError):
    """The job cannot run as it stands; the message names the operator and what was wanted."""


class NoResourceAvailable(ActorError):
    """The cluster has too few slots for the job."""


class UnknownJob(ActorError, LookupError):
    """The JobManager knows no job of this id; the text lists those that it knows."""

    @classmethod
    def among(cls, known: Iterable[str], job_id: str) -> UnknownJob:
        return cls(f"no job {job_id!r} here; known: {', '.join(known) or 'none'}")


class NotRestartable(ActorError):
    """A job cannot be started again by the JobManager that had it; the text says why."""


class OutputInUse(ActorError):
    """A sink would write to a place that belongs to a job that has not ended; the text names both. No job was made."""


class CannotRestore(ActorError):
    """A job cannot be started from this path; the text says why. No job was made."""


class StateDoesNotFit(CannotRestore):
    """The program cannot take the state over. `matched`: names of operators that would find theirs; `problems`: what
    is in the way, a line each.
    """

    def __init__(self, text: str, matched: tuple[str, ...], problems: tuple[str, ...]) -> None:
        super().__init__(text)
        self.matched, self.problems = matched, problems


class NoReadableCheckpoint(CannotRestore):
    """With `resume`: each checkpoint of this name's jobs is spoilt or gone; the text lists them. No job was made."""


class CannotRescale(ActorError):
    """A source was restored with another parallelism than it was stored with, and cannot deal out its records again."""


class OutsideUnavailable(ActorError):
    """What a sink writes to, or a source reads, has not done what it was asked, again and again; `__cause__` is the
    last error. Nothing is lost: the checkpoint has all that it covers.
    """

    may_pass = True

    def __init__(self, who: str, what: str, tries: int, tried_ms: float, error: BaseException, why: str = "") -> None:
        """`why`: what the error means, and what to check; by default its own words."""
        said = why or (
            f"{type(error).__name__}: {error}. See whether the outside system can be reached and takes what is written"
        )
        super().__init__(
            f"{who}: {what} has failed {tries} times in {tried_ms / 1000:.1f} s, the last time: {said}. A larger "
            "retry_ms is more patient"
        )


class MarkerMoved(ActorError):
    """For `LedgerSink.apply` to raise: the marker does not stand at `marker.after`, so nothing was written."""

    def __init__(self, writer: str, wanted: int, found: int | None = None) -> None:
        """`wanted`: marker.after; `found`: what the row says, if that is known."""
        there = "" if found is None else f", found {found}"
        super().__init__(f"marker {writer!r}: wanted it at {wanted}{there}: somebody else has moved it")


class MarkerMismatch(ActorError):
    """The marker of a LedgerSink contradicts the sink's state. Nothing was written."""

    may_pass = False

    @classmethod
    def behind(cls, who: str, writer: str, wanted: int, found: int) -> MarkerMismatch:
        return cls(
            f"sink {who!r}: marker {writer!r} stands at {found}, wanted {wanted} or more, which this sink has applied: "
            "the outside system has lost what was written (an older backup, a dropped table, a deleted marker), or "
            f"is another one. Put back what was lost, with its markers; or set the marker's row to {wanted} if the gap "
            "is meant to stay"
        )

    @classmethod
    def ahead(cls, who: str, writer: str, wanted: int, found: int) -> MarkerMismatch:
        return cls(
            f"sink {who!r}: marker {writer!r} stands at {found}, wanted at most {wanted}: another attempt goes on "
            "under this name. If this one is a zombie, its end is right; if not, it was restored from a checkpoint "
            "that is not the newest: start the job again from that checkpoint as a new job"
        )


class MessageNotHandled(ActorError):
    """An actor does not know this message; the text says what it was, and which class is without its handler."""

    actor: object = None
    """The one that does not know it."""


class InvalidTimeout(ActorError, TypeError, ValueError):
    """A timeout that is no number of seconds, or of milliseconds; the text says what to write instead."""


class IllegalTransition(ActorError):
    """A state machine got an event that its transition table does not allow."""
