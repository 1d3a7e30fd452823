"""LeaderLine: how a client speaks to whichever JobManager leads, and goes on with the next one.

    put to the leader -> answered, or refused
     ^      '-> that leader is gone -> waits for the next one -.
     '---------------------------------------------------------'

A question, and an order that may be repeated without harm, is put to the next leader again. Any other order may have
been carried out by the leader that is gone: it fails with AnswerLost, which says so. An order that finds no leader
waits, and so does one that a leader refused because its time was over: nothing was changed. Where the key is refused,
another cluster may have got the port of a leader that is gone: that is asked again, as an address where nobody is. A
new leader may not have taken up a job yet that it is about to go on with: what it does not know is asked again for a
while. How the leader is found is not at home here (`high_availability`).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import pykka

from ...actors.actor import Actor
from ...actors.ask_errors import ActorDead, AskTimeout, RemoteActorError, Unreachable
from ...actors.context import Timer
from ...actors.errors import ActorError, UnknownJob
from ...messages import LeaderSessionId
from ...state.errors import LostLeadership
from ..high_availability import Leader, LeaderRetrieval
from ..system import ActorFuture, ActorSystem
from .questions import REPEATABLE, SOON_ANSWERED, WHAT_FOLLOWS

log = logging.getLogger(__name__)

JOB_MANAGER = "job-manager"
AGAIN_MS = 1_000.0
UNKNOWN_AGAIN_MS = 250.0
TAKE_UP_MS = 60_000.0
"""How long a new leader may need to take up the jobs of the one before."""
TOLD_MS = 1_000.0
"""After so long a line says what is waited for."""


class AnswerLost(ActorError):
    """The leader that had this order is gone; whether it has carried it out is not known."""


class NoLeader(ActorError):
    """Nobody led the cluster for as long as was to be waited."""


@dataclass(frozen=True, slots=True)
class _Put:
    message: Any
    actor: str
    timeout_ms: float | None
    """Of one leader."""
    patience_ms: float
    """Of all of it."""


@dataclass(frozen=True, slots=True)
class _Heard:
    leader: Leader | None


@dataclass(frozen=True, slots=True)
class _Follow:
    callback: Callable[[], None]


@dataclass(frozen=True, slots=True)
class _Answered:
    number: int
    attempt: int
    answer: Any


@dataclass(frozen=True, slots=True)
class _Failed:
    number: int
    attempt: int
    error: BaseException


@dataclass(frozen=True, slots=True)
class _Again:
    number: int
    attempt: int


@dataclass(frozen=True, slots=True)
class _Overdue:
    number: int


@dataclass(frozen=True, slots=True)
class _StillOpen:
    number: int


@dataclass(slots=True)
class _Open:
    """What is not answered yet. `asked`: the session of the leader that has it; None: it waits for one.
    `is_unreached`: that leader could not be reached.
    """

    put: _Put
    promise: pykka.Future[Any]
    overdue: Timer | None
    attempt: int = 0
    asked: LeaderSessionId | None = None
    is_unreached: bool = False
    refusal: Unreachable | None = None
    """How the last try failed, if the key was refused."""


class LeaderLine:
    """Of one client. `leaders` is closed with it. `led_by` is called with the address of each leader; it must not
    block.
    """

    def __init__(
        self, system: ActorSystem, leaders: LeaderRetrieval, cluster_id: str, led_by: Callable[[str], None]
    ) -> None:
        self.job_manager = LeaderRef(self)
        self._leaders = leaders
        self._line = _Line(cluster_id, led_by)
        self._actor = system.spawn(self._line)
        leaders.on_change(lambda leader: self._actor.tell(_Heard(leader)))

    def ask(
        self, message: Any, *, actor: str = JOB_MANAGER, timeout_ms: float | None = None, patience_ms: float = math.inf
    ) -> ActorFuture[Any]:
        """Put it to an actor of whoever leads. `timeout_ms`: of one leader's answer; None: the usual time.
        `patience_ms`: of all, with the time in which nobody leads.

        The future fails as an ask does, or with AnswerLost or NoLeader.
        """
        put = _Put(message, actor, timeout_ms, patience_ms)
        return self._actor.ask(put, timeout_ms=math.inf)

    def follow(self, callback: Callable[[], None]) -> None:
        """Call back when a next leader is there, on the system's loop. It must not block."""
        self._actor.tell(_Follow(callback))

    def address(self) -> str:
        """Of the JobManager that led as far as was heard; "" before the first one."""
        return self._line.address

    def close(self) -> None:
        """Nobody is followed any more; what is open fails with the actor system."""
        self._leaders.close()


class LeaderRef:
    """The JobManager that leads, in place of the Ref of a certain one. Nobody else can find it."""

    def __init__(self, line: LeaderLine) -> None:
        self._line = line

    @property
    def address(self) -> str:
        return self._line.address()

    def ask(self, message: Any, *, timeout_ms: float | None = None) -> ActorFuture[Any]:
        return self._line.ask(message, timeout_ms=timeout_ms)

    def tell(self, message: Any) -> None:
        """As `ask`; the answer is dropped."""
        self._line.ask(message)


class _Line(Actor):
    def __init__(self, cluster_id: str, led_by: Callable[[str], None]) -> None:
        self.address = ""
        self._cluster_id, self._led_by = cluster_id, led_by
        self._leader: Leader | None = None
        self._latest: LeaderSessionId | None = None
        """Of the leader before, too."""
        self._new_until_ms = -math.inf
        self._is_told = False
        """Whoever waits knows already that a leader is missing."""
        self._has_answered = False
        """Whether any leader has, so the key is the right one."""
        self._open: dict[int, _Open] = {}
        self._count = 0
        self._followers: list[Callable[[], None]] = []

    def on_receive(self, message: Any) -> Any:
        match message:
            case _Put():
                return self._accept(message)
            case _Heard(leader):
                self._heard(leader)
            case _Follow(callback):
                self._followers.append(callback)
            case _Answered(number, attempt, answer):
                if self._is_current(number, attempt):
                    self._is_told, self._has_answered = False, True
                    self._close(number).set(answer)
            case _Failed(number, attempt, error):
                if self._is_current(number, attempt):
                    self._failed(number, error)
            case _Again(number, attempt):
                if self._is_current(number, attempt):
                    self._put(number)
            case _StillOpen(number):
                if number in self._open:
                    self._tell(self._open[number].put)
            case _Overdue(number):
                if number in self._open:
                    self._fail(number, self._out_of_patience(self._open[number]))
        return None

    def on_stop(self) -> None:
        for number in list(self._open):
            self._fail(number, ActorDead(self.context.self_ref.address, "this client of the cluster was closed"))

    # -- leaders

    def _heard(self, leader: Leader | None) -> None:
        if leader is None:
            if self._leader is not None:
                log.warning("%s leads no more: waiting for the next leader", self._leader.address)
                self._is_told = True
            self._leader = None
            return
        is_same, is_first = leader.session == self._latest, self._latest is None
        self._leader, self._latest = leader, leader.session
        if not is_same:
            self.address = f"{leader.address}/{JOB_MANAGER}"
            self._led_by(leader.address)
            if not is_first:
                log.warning("following the next leader, %s", leader.address)
                self._new_until_ms = self.context.clock.now_ms() + TAKE_UP_MS
        for number, each in list(self._open.items()):
            if each.asked is None or (each.asked != leader.session and self._is_repeatable(each)):
                self._put(number)
            elif each.asked != leader.session:
                self._lost(number)
        if not is_same and not is_first:
            for follower in self._followers:
                follower()

    # -- what was put

    def _accept(self, put: _Put) -> pykka.Future[Any]:
        self._count += 1
        number, promise = self._count, self.context.promise()
        overdue = None if math.isinf(put.patience_ms) else self.context.schedule(put.patience_ms, _Overdue(number))
        self._open[number] = _Open(put, promise, overdue)
        if self._leader is None or isinstance(put.message, SOON_ANSWERED):  # when one goes later, that is said at once
            self.context.schedule(TOLD_MS, _StillOpen(number))
        self._put(number)
        return promise

    def _put(self, number: int) -> None:
        """To the leader; or let it wait for one."""
        each = self._open[number]
        each.attempt += 1
        if self._leader is None:
            each.asked = None
            return
        each.asked = self._leader.session
        asked = self.context.actor_of(f"{self._leader.address}/{each.put.actor}")
        answer = cast("pykka.Future[Any]", asked.ask(each.put.message, timeout_ms=each.put.timeout_ms))
        self.context.pipe_to_self(
            answer, partial(_Answered, number, each.attempt), partial(_Failed, number, each.attempt)
        )

    def _failed(self, number: int, error: BaseException) -> None:
        each = self._open[number]
        each.is_unreached = isinstance(error, Unreachable)
        each.refusal = error if isinstance(error, Unreachable) and error.is_refused else None
        is_gone = isinstance(error, ActorDead | Unreachable) and (each.refusal is None or self._may_be_anothers(each))
        if isinstance(error, RemoteActorError) and error.type_name == LostLeadership.__name__:
            each.asked = None
            self._heard(None)
        elif self._may_know_soon(error):
            self.context.schedule(UNKNOWN_AGAIN_MS, _Again(number, each.attempt))
        elif is_gone and self._is_repeatable(each):  # it may be back, or be replaced
            self.context.schedule(AGAIN_MS, _Again(number, each.attempt))
        elif is_gone:
            self._lost(number)
        else:
            self._fail(number, error)

    def _may_be_anothers(self, each: _Open) -> bool:
        """Whether the address where the key was refused may be another cluster's now; else the key is a wrong one."""
        return self._has_answered or (self._is_repeatable(each) and not math.isinf(each.put.patience_ms))

    def _may_know_soon(self, error: BaseException) -> bool:
        is_unknown = isinstance(error, RemoteActorError) and error.type_name == UnknownJob.__name__
        return is_unknown and self.context.clock.now_ms() < self._new_until_ms

    def _is_current(self, number: int, attempt: int) -> bool:
        return number in self._open and self._open[number].attempt == attempt

    @staticmethod
    def _is_repeatable(each: _Open) -> bool:
        return isinstance(each.put.message, REPEATABLE)

    def _lost(self, number: int) -> None:
        order = type(self._open[number].put.message)
        reason = f"{order.__name__}: the JobManager went away before it answered, and may have done it or not: "
        self._fail(number, AnswerLost(reason + WHAT_FOLLOWS.get(order, "look, or ask again")))

    def _tell(self, put: _Put) -> None:
        """That it waits, and for how long; once, until somebody leads and answers."""
        if self._is_told or (self._leader is not None and not isinstance(put.message, SOON_ANSWERED)):
            return
        self._is_told = True
        limit = "" if math.isinf(put.patience_ms) else f", {put.patience_ms / 1000:g} s at most from when it was asked"
        if self._leader is None:
            log.warning("no JobManager leads cluster %r now: waiting for one that does%s", self._cluster_id, limit)
        else:
            log.warning(
                "the JobManager at %s, which was the last to lead cluster %r, has not answered for %g s: waiting for "
                "it or the next one%s",
                self._leader.address,
                self._cluster_id,
                TOLD_MS / 1000,
                limit,
            )

    def _out_of_patience(self, each: _Open) -> Exception:
        put, seconds = each.put, f"{each.put.patience_ms / 1000:g} s"
        if self._leader is None:
            return NoLeader(f"no JobManager has led cluster {self._cluster_id!r} for {seconds}")
        if each.refusal is not None:
            return each.refusal
        if each.is_unreached:
            return NoLeader(
                f"no JobManager of cluster {self._cluster_id!r} has answered for {seconds}: {self._leader.address}, "
                "the last to lead it, cannot be reached, and no other one has taken over"
            )
        return AskTimeout(self._leader.address, f"no answer to {type(put.message).__name__} within {seconds}")

    def _fail(self, number: int, error: BaseException) -> None:
        self._close(number).set_exception((type(error), error, error.__traceback__))

    def _close(self, number: int) -> pykka.Future[Any]:
        each = self._open.pop(number)
        if each.overdue is not None:
            each.overdue.cancel()
        return each.promise
