"""FailureLog: what the JobManager's process logs of one job's failures, on the logger `understudy.job`.

A failure is logged in full when it comes first, with the user's traceback; when it comes again, in one line with how
often. All of that at WARNING, and the end of a failed job at ERROR. Without any configuration of logging, Python shows
both on standard error. `understudy logs` has the same lines. Each record has the attributes of records that operators
log (docs/debugging.md), and `job_id` and `error_type`, by which a handler can group them. It decides nothing, and is
fed by the ManagedJob.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from ...messages import (
    CheckpointAborted,
    CheckpointId,
    FailureCause,
    FailureKind,
    JobGraph,
    JobStatus,
    RestartStrategyKind,
    TaskManagerChanged,
)
from ...messages.counted import counted
from ...messages.failures import raised, tell_line, tell_place
from ..checkpoints.checkpoint_reasons import CheckpointFailure
from ..checkpoints.reason_words import in_words
from ..context import Clock
from ..failure import is_run_by_another, tell_kept
from .job_effects import FailureKnown, ProcessEnded, Restart
from .repeated_failures import SYMPTOMS_KEPT, Symptom, symptom_of

log = logging.getLogger("understudy.job")

TOLD_AT_ONCE = 10
"""Repetitions of a failure that are logged as they come."""

PAUSE_MS = 10_000.0
"""After those, at most one in this time; it says how many there were."""

LOST_AGAIN = 3
"""When a TaskManager is lost this many times with no completed checkpoint in between, the log says what may be behind
it.
"""

FAILED_IN_A_ROW = 10
"""After this number of checkpoints without one that completed the log says so, and then each time it has doubled."""

SHORT_LINE = 160
"""Characters of a text without a place that is logged again with each repetition; of a longer one, that it was."""

_AS_LOGGED = ", as logged above"

IN_VAIN = 5
"""After this number of restarts without a completed checkpoint the log says so, and then each time it has doubled."""

_FAILED = tuple(
    each.value for each in (CheckpointFailure.DECLINED, CheckpointFailure.EXPIRED, CheckpointFailure.METADATA_FAILED)
)
"""How the reason begins; others have their cause outside the checkpoint."""

_DEADLY = (
    "time with no completed checkpoint in between, and each attempt reads the same records again. If nobody kills its "
    "process, a record may: look for os._exit in the operators, for a library that crashes (PYTHONFAULTHANDLER=1 logs "
    "where), and for memory that runs out (SIGKILL). Restarts go on as the restart strategy says: "
    "restart_strategy=fixed_delay(attempts=...) limits them"
)


_WITHOUT_CHECKPOINTS = (
    "as a job without checkpoints is not restarted: StreamEnvironment(checkpoint_interval_ms=1_000) takes one a "
    "second, and lets it go on from there"
)
_SOONER = (
    "Mend what fails, or let a checkpoint complete before it does: `understudy checkpoints` says why none has, "
    "`understudy back-pressure` which task is slow; checkpoint_interval_ms takes the first one sooner, "
    "checkpoint_timeout_ms gives it longer"
)
_TAKE_SOME = (
    "The job takes no checkpoints: StreamEnvironment(checkpoint_interval_ms=1_000) takes one a second, and lets it go "
    "on from there"
)
_GOES_ROUND = ". It does not end the job, as checkpoints complete in between: it comes again until somebody mends it"
_OF_ONE_RECORD = (
    ". The same record has failed twice, and is read again: correct the program, or let it leave such records out"
)


@dataclass(slots=True)
class _Told:
    symptom: Symptom
    count: int = 0
    told_ms: float = 0.0

    def is_of_one_record(self, failure: FailureCause) -> bool:
        """Whether this is the second failure, and at the record of the first."""
        return self.count == 2 and self.symptom.record_position == failure.record_position >= 0


class FailureLog:
    """One job's."""

    def __init__(
        self,
        graph: JobGraph,
        clock: Clock,
        keep: Callable[[str, int, str], None] = lambda *_: None,
        named: Callable[[JobGraph], str] = lambda graph: f"job {graph.name!r}",
    ) -> None:
        """`keep`: is called with logger, level and text of all that is logged. `named`: how the job is called now."""
        self._graph = graph
        self._named = named
        self._limit = graph.max_same_failures
        self._never_restarts = graph.checkpoints.interval_ms is None and graph.restart.kind is RestartStrategyKind.NONE
        self._clock = clock
        self._keep = keep
        self._told: deque[_Told] = deque(maxlen=SYMPTOMS_KEPT)
        self._lost: Counter[int] = Counter()
        """By index, how often that TaskManager was lost since the last completed checkpoint."""
        self._long_reason = ""
        """Why a process has ended, as it was logged last."""
        self._in_a_row = 0
        """Checkpoints that have failed since then."""
        self._in_vain = 0
        """Restarts since then."""
        self._is_stopping = False
        """The order to stop came while the job was down."""
        self._takes_checkpoints = graph.checkpoints.interval_ms is not None

    def failed(self, known: FailureKnown) -> None:
        """A failure, and what follows it."""
        if not log.isEnabledFor(logging.WARNING):
            return
        failure = known.failure
        if failure.kind is FailureKind.REPEATED and failure.cause is not None:
            failure = failure.cause
        self._tell(known, failure)
        if known.restart is not None:
            self._count_in_vain(known.restart)

    def _tell(self, known: FailureKnown, failure: FailureCause) -> None:
        told = self._counted(failure)
        if not self._is_due(told):
            return
        if told.count == 1:
            line = f"{self._job} failed: {self._line_of(failure)}; {self._first_outlook(known)}{self._until(known)}"
            self.say("\n".join([line, *_tracebacks(raised(failure))]), of=failure)
            return
        is_counted = known.count > 1 and self._limit is not None
        times = f"{known.count} of {self._limit}" if is_counted else f"for the {_ordinal(told.count)} time"
        goes_round = ""
        if not is_counted and failure.repeatable and self._limit is not None:
            times += ", but the first since a checkpoint completed"
            goes_round = _GOES_ROUND if known.restart is not None and told.count == self._limit else ""
        is_same_text = symptom_of(failure).message == told.symptom.message
        what = _told_shortly(failure) if is_same_text else self._line_of(failure)
        advice = _OF_ONE_RECORD if known.restart is not None and told.is_of_one_record(failure) else ""
        self.say(
            f"{self._job}: the same failure again, {times}: {what}; {_outlook(known.restart)}{advice}{goes_round}",
            of=failure,
        )

    def _first_outlook(self, known: FailureKnown) -> str:
        is_lost = known.failure.kind is FailureKind.TASK_MANAGER_LOST
        return f"the job ends, {_WITHOUT_CHECKPOINTS}" if is_lost and self._never_restarts else _outlook(known.restart)

    def _count_in_vain(self, restart: Restart) -> None:
        """The failures alone look as if something were done between them."""
        self._in_vain += 1
        if not _has_doubled(self._in_vain, IN_VAIN):
            return
        self.say(
            f"{self._job}: {self._in_vain} restarts in a row without a completed checkpoint in between: each goes back "
            f"to {_origin(restart.checkpoint_id)}, and nothing that was done since is kept. "
            f"{_SOONER if self._takes_checkpoints else _TAKE_SOME}"
        )

    def task_manager_lost(self, lost: TaskManagerChanged) -> None:
        self._lost[lost.index] += 1
        times = self._lost[lost.index]
        advice = f". It is the {_ordinal(times)} {_DEADLY}" if times == LOST_AGAIN else ""
        why = self._shortly(lost.reason)
        self.say(f"{self._job}: TaskManager {lost.index} (process {lost.pid}) was lost: {why}{advice}")

    def process_ended(self, ended: ProcessEnded) -> None:
        """It was lost before, or had not even registered."""
        why = self._shortly(ended.reason)
        if ended.next_in_ms is None:
            self.say(f"{self._job}: the process of TaskManager {ended.index}: {why}")
            return
        self.say(
            f"{self._job}: TaskManager {ended.index} ended before it registered: {why}; the next one starts in "
            f"{ended.next_in_ms / 1000:.1f} s"
        )

    def _shortly(self, reason: str) -> str:
        """A long one, with what is likely and what to do, in full once; then its first clause."""
        if len(reason) <= SHORT_LINE:
            return reason
        is_new, self._long_reason = reason != self._long_reason, reason
        return reason if is_new else _first_clause(reason)

    def _line_of(self, failure: FailureCause) -> str:
        """That of a lost TaskManager has the reason of its end, which stands in the line before."""
        line, known = tell_line(failure), self._long_reason
        return line.replace(known, _first_clause(known)) if known else line

    def checkpoint_completed(self) -> None:
        """That is progress: what ended processes before is over."""
        self._lost.clear()
        self._in_a_row = self._in_vain = 0

    def checkpoint_aborted(self, aborted: CheckpointAborted) -> None:
        """With `tolerable_checkpoint_failures` the job goes on without any, and would never say why it does not end."""
        if not aborted.reason.startswith(_FAILED):
            return
        self._in_a_row += 1
        if not _has_doubled(self._in_a_row, FAILED_IN_A_ROW):
            return
        is_late = aborted.reason.startswith(CheckpointFailure.EXPIRED.value)
        advice = "; checkpoint_timeout_ms gives them longer, checkpoint_interval_ms takes fewer" if is_late else ""
        self.say(
            f"{self._job}: {self._in_a_row} checkpoints in a row have failed, the last one ({aborted.checkpoint_id}): "
            f"{in_words(aborted.reason)}. Until one completes, sinks publish nothing and the job cannot finish{advice}"
        )

    def checkpoint_waits(self, what: str) -> None:
        """Longer than it should."""
        self.say(f"{self._job}: {what}")

    def job_ended(self, status: JobStatus, failure: FailureCause | None, restarts: int, kept: str = "") -> None:
        """Only a failed one is worth a word here. `kept`: the path of the checkpoint that it leaves."""
        if status is not JobStatus.FAILED or not log.isEnabledFor(logging.ERROR):
            return
        why = "no cause is known" if failure is None else self._tell_end(failure)
        way_back = f"; {tell_kept(kept, failure)}" if kept else ""
        if kept and not is_run_by_another(failure):
            way_back += ", or --from-savepoint on the command line"
        job = f"job {self._graph.name!r} ({self._graph.job_id})"
        text = f"{job} has ended after {counted(restarts, 'restart')}: it {why}{way_back}"
        self.say(text, logging.ERROR, failure)

    def stopped_while_down(self, failure: FailureCause, checkpoint: CheckpointId | None) -> None:
        """The user has ordered a job to stop that waits for its restart from this checkpoint; None: the beginning. It
        will finish as if nothing had been left to read. Said once.
        """
        if not self._is_stopping:
            self._is_stopping = True
            self.say(
                f"{self._job} is stopped while it is down because of {tell_line(failure)}; its sources stop as soon as "
                f"they run again, from {_origin(checkpoint)}: what they have behind that is not read",
                of=failure,
            )

    def kept_is_gone(self, path: str) -> None:
        """Storage has been looked at since: the checkpoint that `job_ended` has named is not there."""
        self.say(
            f"{self._job}: the checkpoint that it leaves is not there: {path} was deleted or moved, or its file system "
            "is not mounted. Once it is back, a job can start from it; without it, start from another savepoint"
        )

    def say(self, text: str, level: int = logging.WARNING, of: FailureCause | None = None) -> None:
        """Log it, and keep it, if it is to be logged. `of`: the failure that it is about."""
        if log.isEnabledFor(level):
            log.log(level, "%s", text, extra=self._attributes(of))
            self._keep(log.name, level, text)

    def _attributes(self, of: FailureCause | None) -> dict[str, str | int]:
        if of is not None and of.kind is FailureKind.REPEATED and of.cause is not None:
            of = of.cause
        return {
            "job_name": self._graph.name,
            "job_id": str(self._graph.job_id),
            "operator": "" if of is None else of.operator_name,
            "subtask": -1 if of is None else of.subtask_index,
            "attempt": -1 if of is None else of.attempt_number,
            "task_manager": "" if of is None else of.task_manager,
            "error_type": "" if of is None else raised(of).error_type,
        }

    @property
    def _job(self) -> str:
        return self._named(self._graph)

    def _until(self, known: FailureKnown) -> str:
        """Why it is tried again, and for how long."""
        if known.restart is None or self._limit is None or not known.failure.repeatable:
            return ""
        return f", in case it passes; the same failure {self._limit} times ends the job"

    def _tell_end(self, failure: FailureCause) -> str:
        """In full only if it was not logged before."""
        is_repeated = failure.kind is FailureKind.REPEATED and failure.cause is not None
        root = failure.cause if is_repeated and failure.cause is not None else failure
        symptom = symptom_of(root)
        if not any(each.symptom.is_same(symptom) for each in self._told):
            return tell_end(failure)
        what = raised(root)
        if not is_repeated:
            return f"failed: {_told_shortly(root).removesuffix(_AS_LOGGED)}{_AS_LOGGED}"
        return f"{failure.error_message.partition(f': {what.error_type}')[0]}: {what.error_type}, as logged above"

    def _counted(self, failure: FailureCause) -> _Told:
        symptom = symptom_of(failure)
        told = next((each for each in self._told if each.symptom.is_same(symptom)), None)
        if told is None:
            told = _Told(symptom)
            self._told.append(told)
        told.count += 1
        return told

    def _is_due(self, told: _Told) -> bool:
        now_ms = self._clock.now_ms()
        if told.count > TOLD_AT_ONCE and now_ms - told.told_ms < PAUSE_MS:
            return False
        told.told_ms = now_ms
        return True


def tell_end(failure: FailureCause) -> str:
    """Why a job has failed, in a line that follows its name."""
    return failure.error_message if failure.kind is FailureKind.REPEATED else f"failed: {tell_line(failure)}"


def _told_shortly(failure: FailureCause) -> str:
    """What was raised, and where; of a checkpoint, or of a TaskManager that was lost, that is nowhere."""
    what = raised(failure).error_type
    if place := tell_place(failure):
        return f"{what} in {place}"
    line = tell_line(failure)
    return line if len(line) <= SHORT_LINE else f"{what}{_AS_LOGGED}"


def _outlook(restart: Restart | None) -> str:
    if restart is None:
        return "the job ends"
    return f"restarting in {restart.delay_ms / 1000:.1f} s from {_origin(restart.checkpoint_id)}"


def _origin(checkpoint: CheckpointId | None) -> str:
    return "the beginning" if checkpoint is None else f"checkpoint {checkpoint}"


def _tracebacks(failure: FailureCause) -> list[str]:
    """Of what was raised, and of what caused that."""
    lines: list[str] = []
    step: FailureCause | None = failure
    while step is not None:
        if step is not failure:
            lines.append(f"  caused by {step.headline}")
        lines += [f"    {line}" for line in step.traceback.rstrip().splitlines()]
        step = step.cause
    return lines


def _has_doubled(count: int, first: int) -> bool:
    """Whether it is the first, or twice that, four times, ..."""
    times, rest = divmod(count, first)
    return not rest and times > 0 and not times & (times - 1)


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"


def _first_clause(reason: str) -> str:
    return f"{reason.partition(',')[0][:SHORT_LINE]}, as logged above"
