"""Cell: one spawned actor. Its inbox, its life, its children and who watches it.

    STARTING -> RUNNING -> STOPPING -> STOPPED
                  |  ^
                  v  |
               RESTARTING

STOPPING and RESTARTING wait for the children to stop and let other messages wait meanwhile. A cell is driven by its
dispatcher, one call at a time; `post`, `tell`, `ask` and the watchers' methods may be used from any thread. It does
not know where it runs.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Any, NoReturn

from pykka import messages as pykka_messages

from ...actors.actor import Actor, Step, SupervisorStrategy, Terminated
from ...actors.ask_errors import ActorDead
from ...actors.errors import ActorError, MessageNotHandled
from ...messages import MessageError
from ...messages.fields import found
from ...messages.whose_code import is_ours
from . import slow_handlers
from .context import CellContext
from .dead_letters import DeadLetterReason
from .dispatcher import Seat, drive, outcome_of
from .errors import SystemStopped
from .future import ActorFuture
from .host import Host, Spawned
from .inbox import ChildStopped, Envelope, Escalated, Inbox, Piped, TimerFired
from .ref import LocalRef, Watcher
from .supervision import Supervision

logger = logging.getLogger(__name__)

_ABOUT_CELLS = frozenset((pykka_messages._ActorStop, ChildStopped, Escalated))
"""Messages to a cell that its actor does not see."""

_PYKKA_CALLS = (pykka_messages.ProxyCall, pykka_messages.ProxyGetAttr, pykka_messages.ProxySetAttr)


class Phase(Enum):
    STARTING = auto()
    RUNNING = auto()
    RESTARTING = auto()
    STOPPING = auto()
    STOPPED = auto()


def check_actor(actor: object) -> None:
    """Raises TypeError for what is no actor: a class spawned as one would be filled with the fields of an actor."""
    if isinstance(actor, type):
        raise TypeError(f"spawn wants an actor, found the class {actor.__name__}: write spawn({actor.__name__}())")
    if not isinstance(actor, Actor):
        raise TypeError(f"spawn wants an object of a subclass of understudy.Actor, found {found(actor)}")


class Cell:
    """One actor's running self."""

    def __init__(self, system: Host, actor: Actor, name: str, parent: Spawned | None, supervision: Supervision) -> None:
        self.system = system
        self.actor = actor
        self.name = name
        self.address = f"{system.address}/{name}"
        self.parent = parent
        self.inbox = Inbox()
        self.seat: Seat
        self._supervision = supervision
        self._phase = Phase.STARTING
        self._children: dict[str, Spawned] = {}
        self._failure: BaseException | None = None
        self._escalates = False
        self._end_reason = "stopped"
        self._stop_askers: list[ActorFuture[Any]] = []
        self._watchers: dict[object, Watcher] = {}
        self._lock = threading.Lock()
        self._is_of_the_user = not is_ours(type(actor))
        self.ref = self._attach()
        self.context = actor.context = CellContext(self)

    def _attach(self) -> LocalRef:
        """Give the actor the fields that Pykka's code expects."""
        actor: Any = self.actor
        actor.actor_urn = self.address
        actor.actor_inbox = self.inbox
        actor.actor_stopped = threading.Event()
        actor._actor_ref = LocalRef(self.actor, self)
        return actor._actor_ref  # type: ignore[no-any-return]

    # ---- from any thread

    @property
    def is_terminated(self) -> bool:
        return self._phase is Phase.STOPPED

    @property
    def is_ending(self) -> bool:
        return self._phase in (Phase.STOPPING, Phase.STOPPED)

    @property
    def has_messages(self) -> bool:
        return not self.inbox.is_empty

    @property
    def is_stepping(self) -> bool:
        return callable(getattr(self.actor, "step", None))

    @property
    def idle_ms(self) -> float | None:
        return getattr(self.actor, "idle_ms", None)

    def tell(self, message: Any) -> None:
        self.post(Envelope(message))

    def ask(self, message: Any, timeout_ms: float | None) -> ActorFuture[Any]:
        future = self.system.asks.open(self.address, timeout_ms)
        self.post(Envelope(message, reply_to=future))
        return future

    def post(self, envelope: Envelope[Any], *, urgent: bool = False) -> None:
        if self.inbox.put(envelope, urgent=urgent):
            self.seat.signal()
        else:
            self._refuse(envelope)

    def add_watcher(self, key: object, watcher: Watcher) -> bool:
        """Call `watcher(reason)` when the actor has stopped. False when it has already: it will not be called."""
        with self._lock:
            if self._phase is not Phase.STOPPED:
                self._watchers[key] = watcher
                return True
        return False

    def remove_watcher(self, key: object) -> None:
        with self._lock:
            self._watchers.pop(key, None)

    # ---- for the dispatcher

    async def start(self) -> None:
        try:
            await self._call(self.actor.on_start)
            self._phase = Phase.RUNNING
        except _failures() as error:
            self._fail(error)
            await self._settle()

    async def handle_next(self) -> bool:
        envelope = self.inbox.take(only_urgent=self._phase in (Phase.STOPPING, Phase.RESTARTING))
        if envelope is None or self._phase is Phase.STOPPED:
            return False
        await self._handle_one(envelope)
        return True

    def handle_at_once(self) -> bool:
        phase = self._phase  # in a variable of its own, as handling may change it
        if phase is not Phase.RUNNING:
            return drive(self.handle_next())
        envelope = self.inbox.take()
        if envelope is None:
            return False
        if type(envelope.message) in _ABOUT_CELLS:
            drive(self._handle_one(envelope))
            return True
        try:
            result: Any = self._handle(envelope.message)
        except BaseException as error:  # noqa: BLE001  (judged where all others are, and raised there if need be)
            drive(self._receive(envelope, partial(_raise, error)))
        else:
            if inspect.iscoroutine(result):
                drive(self._receive(envelope, lambda: result))
            else:
                reply_to: Any = envelope.reply_to
                if reply_to is not None:
                    self.system.answer(reply_to, result)
        if self._phase is not Phase.RUNNING:
            drive(self._settle())
        return True

    async def _handle_one(self, envelope: Envelope[Any]) -> None:
        match envelope.message:
            case pykka_messages._ActorStop():
                self._begin_stop("stopped", envelope.reply_to)
            case ChildStopped(name):
                self._children.pop(name, None)
            case Escalated(name, error):
                self._children.pop(name, None)
                self._fail(error)
            case message:
                is_watched = self._is_of_the_user and self.seat.runs_coroutines
                await self._receive(envelope, partial(self._watched if is_watched else self._handle, message))
        if self._phase is not Phase.RUNNING:
            await self._settle()

    async def step(self) -> Step:
        outcome = self._step()
        await self._settle()
        return outcome

    def step_at_once(self) -> Step:
        outcome = self._step()
        if self._phase is not Phase.RUNNING:
            drive(self._settle())
        return outcome

    def _step(self) -> Step:
        if self._phase is not Phase.RUNNING:
            return Step.IDLE
        try:
            outcome: Step = self.actor.step()  # type: ignore[attr-defined]
        except _failures() as error:
            self._fail(error)
            outcome = Step.BUSY
        if outcome is Step.DONE:
            self._begin_stop("finished")
        return outcome

    def abandon(self, reason: str) -> None:
        if self._phase is not Phase.STOPPED:
            self._end_reason = reason
            for child in list(self._children.values()):
                child.post(Envelope(pykka_messages._ActorStop()), urgent=True)
            self._terminate()

    # ---- for the context

    def add_child(self, child: Spawned) -> None:
        self._children[child.name] = child

    # ---- handling

    async def _receive(self, envelope: Envelope[Any], handle: Callable[[], Any]) -> None:
        """`handle` is, or was, the actor's handling of it."""
        reply_to: Any = envelope.reply_to
        try:
            result = await self._call(handle)
        except _failures() as error:
            if reply_to is not None:
                reply_to.try_fail(error)
                if isinstance(error, (ActorError, MessageError)):
                    return  # a refusal, said by name to the one who asked: the actor is well
            elif isinstance(error, MessageNotHandled) and error.actor is self.actor:
                logger.warning("%s has left a message: %s", self.address, error)
                return
            self._fail(error)
        else:
            if reply_to is not None:
                self.system.answer(reply_to, result)

    def _handle(self, message: Any) -> Any:
        match message:
            case TimerFired(timer, due):
                return self.actor.on_receive(due) if self.context.take_timer(timer) else None
            case Piped(future, success, failure):
                return self.actor.on_receive(_outcome(future, success, failure))
            case _ if isinstance(message, _PYKKA_CALLS):
                return self.actor._handle_receive(message)
            case _:
                return self.actor.on_receive(message)

    def _watched(self, message: Any) -> Any:
        return slow_handlers.watched(self._handle, type(self.actor), self.address, message, self.system.clock)

    async def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call into the actor; only this may raise what its code raises."""
        try:
            return await outcome_of(function(*args), self.seat.runs_coroutines)
        except asyncio.CancelledError as error:
            if _is_being_cancelled():
                raise
            raise RuntimeError("the handler awaited something that was cancelled") from error

    # ---- failing, restarting, stopping

    def _fail(self, error: BaseException) -> None:
        """A failure begins: the supervisor's decision becomes this cell's next phase."""
        if self.is_ending:
            logger.warning("%s failed while it stopped", self.address, exc_info=error)
            return
        if isinstance(error, SystemStopped) and not self.system.is_running:  # no fault of the actor's
            self._begin_stop("its actor system stops")
            return
        decision = self._supervision.decide(self.system.clock.now_ms())
        logger.warning("%s failed: %s", self.address, decision.name, exc_info=error)
        self._failure = error
        if decision is SupervisorStrategy.RESTART:
            self._phase = Phase.RESTARTING
            self._stop_children()
        else:
            self._escalates = decision is SupervisorStrategy.ESCALATE
            self._begin_stop(f"failed: {type(error).__name__}: {error}")

    def _begin_stop(self, reason: str, asker: Any = None) -> None:
        if asker is not None:
            self._stop_askers.append(asker)
        if not self.is_ending:
            self._phase, self._end_reason = Phase.STOPPING, reason
            self._stop_children()

    def _stop_children(self) -> None:
        for child in reversed(self._children.values()):
            child.tell(pykka_messages._ActorStop())

    async def _settle(self) -> None:
        """Once no child is left, go on with what waits for that."""
        while not self._children and self._phase in (Phase.RESTARTING, Phase.STOPPING):
            if self._phase is Phase.RESTARTING:
                await self._restart()
            else:
                await self._finish()

    async def _restart(self) -> None:
        self.context.cancel_timers()
        try:
            await self._call(self.actor.on_restart, self._failure)
            await self._call(self.actor.on_start)
        except _failures() as error:
            self._fail(error)
        else:
            self._phase, self._failure = Phase.RUNNING, None

    async def _finish(self) -> None:
        error = self._failure
        if error is not None:
            await self._call_last(self.actor.on_failure, type(error), error, error.__traceback__)
        await self._call_last(self.actor.on_stop)
        self._terminate()

    async def _call_last(self, hook: Callable[..., Any], *args: Any) -> None:
        try:
            await self._call(hook, *args)
        except _failures() as error:
            logger.warning("%s raised in %s", self.address, hook.__name__, exc_info=error)

    def _terminate(self) -> None:
        """The end: give everything back, and tell everybody who wants to know."""
        with self._lock:
            self._phase = Phase.STOPPED
            watchers, self._watchers = self._watchers, {}
        left = self.inbox.close()
        self.context.release()
        self.actor.actor_stopped.set()
        self.system.forget(self.name)
        for envelope in left:
            self._refuse(envelope)
        for watcher in watchers.values():
            watcher(self._end_reason)
        if self.parent is not None:
            gone = Escalated(self.name, self._failure) if self._escalates and self._failure else ChildStopped(self.name)
            self.parent.post(Envelope(gone), urgent=True)
        for asker in self._stop_askers:
            asker.try_set(True)
        self.system.has_ended(self)

    def _refuse(self, envelope: Envelope[Any]) -> None:
        """The inbox is closed: say so to whoever asked, and count the other messages."""
        reply_to: Any = envelope.reply_to
        match envelope.message:
            case pykka_messages._ActorStop():
                if reply_to is not None:
                    reply_to.try_set(False)
            case ChildStopped() | Escalated() | TimerFired() | Piped() | Terminated():
                return
            case message:
                self.system.dead_letters.add(self.address, message, DeadLetterReason.STOPPED)
                if reply_to is not None:
                    reply_to.try_fail(ActorDead(self.address, f"it has stopped ({self._end_reason})"))


def _raise(error: BaseException) -> NoReturn:
    raise error


def _failures() -> tuple[type[BaseException], ...]:
    """What an actor's code may raise without harm to others; `sys.exit` must not end the thread of its neighbours."""
    return (Exception, SystemExit)


def _is_being_cancelled() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # an actor on a thread: nobody cancels those
        return False
    return task is not None and task.cancelling() > 0


def _outcome(future: Any, success: Callable[[Any], object], failure: Callable[[BaseException], object]) -> object:
    try:
        value = future.get()
    except Exception as error:  # noqa: BLE001  (whatever the future failed with is data here)
        return failure(error)
    return success(value)
