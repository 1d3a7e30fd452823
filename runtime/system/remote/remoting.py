"""Remoting: tell, ask and watch across processes, over a Transport.

Tables are touched on the system's loop only. What ends a wait: the answer, the loss of the connection to the peer, or
the ask's own timeout. A watch is repeated now and then, because the notice that answers it travels on another
connection, which may break.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence
from typing import Any

from ....actors.ask_errors import ActorDead, RemoteActorError, Unreachable
from ....actors.traceback_text import chained_traceback_text
from ....messages import MalformedMessage, decode, encode
from ..dead_letters import DeadLetterReason
from ..future import ActorFuture
from ..host import Host
from ..inbox import INTERNAL
from ..inbox import Envelope as Letter
from ..ref import Watcher
from ..seldom import seldom_logger
from .address import Address, is_reachable_base, parse_address
from .envelope import (
    AskAnswered,
    AskRaised,
    AskRefused,
    Envelope,
    UnwatchActor,
    WatchActor,
    WatchedActorStopped,
    pack_payload,
    tell_frame,
    unpack_payload,
)
from .transport import Transport

logger = logging.getLogger(__name__)
LOST = f"{__name__}.lost"
"""The logger of connections that are lost: some are tried again and again, and not everybody wants to read that."""
_REPEAT_WATCH_MS = 5_000
_MAX_TEXT = 20_000
_MOST_REFUSALS = 100
"""The most peers of which the log says that they do not accept our key."""


class Remoting:
    """One system's conversations with others."""

    def __init__(self, system: Host, transport: Transport) -> None:
        self._system = system
        self._transport = transport
        self._incarnation = system.new_id("system")
        self._numbers = itertools.count()
        self._asks: dict[str, tuple[Address, ActorFuture[Any]]] = {}
        self._watches: dict[Address, _Watch] = {}
        self._served: dict[str, set[str]] = {}
        self._repeating = False
        self._refused_by: set[str] = set()
        """Peers that do not accept our key, as the log has it."""
        self.malformed_count = 0
        self._of_strangers = seldom_logger(f"{__name__}.malformed")
        """One of another release sends what is malformed with each heartbeat."""

    # ---- from any thread

    def tell(self, address: str, message: Any) -> None:
        target = parse_address(address, "")
        self._system.loop.call(self._send, target.base, tell_frame(target.name, pack_payload(message)))

    def ask(self, address: str, message: Any, timeout_ms: float | None) -> ActorFuture[Any]:
        target = parse_address(address, "")
        correlation_id = f"{self._incarnation}-{next(self._numbers)}"
        frame = encode(Envelope(target.name, self._system.address, pack_payload(message), correlation_id))
        future = self._system.asks.open(address, timeout_ms)
        self._system.loop.call(self._send_ask, target, correlation_id, frame, future)
        return future

    def watch(self, key: str, address: str, heard: Watcher) -> None:
        self._system.loop.call(self._watch, key, parse_address(address, ""), heard)

    def unwatch(self, key: str, address: str) -> None:
        self._system.loop.call(self._unwatch, key, parse_address(address, ""))

    # ---- what comes in

    def on_frame(self, peer: str, frame: bytes) -> None:
        try:
            said = decode(frame)
            self._on_said(said)
        except Exception as error:  # noqa: BLE001  (bytes from outside must not harm the loop, whatever they trip over)
            self.malformed_count += 1
            self._of_strangers.warning(
                "%s: malformed message from %.200r: %s; it is left out. Is that process of another release?",
                self._system.address,
                peer,
                error,
            )

    def on_peer_lost(self, peer: str, reason: str, unsent: Sequence[bytes], *, is_refused: bool = False) -> None:
        buried = sum(self._bury(peer, frame, DeadLetterReason.UNREACHABLE) for frame in unsent)
        asked = [(target, future) for target, future in self._asks.values() if target.base == peer]
        for target, future in asked:
            future.try_fail(Unreachable(str(target), reason, is_refused=is_refused))
        if is_refused and not asked and peer not in self._refused_by and len(self._refused_by) < _MOST_REFUSALS:
            self._refused_by.add(peer)
            logger.warning("%s refuses this process (%s): if it goes on, compare the key files of both", peer, reason)
        _say_lost(self._system.address, peer, reason, len(asked), buried)
        for target in [target for target in self._watches if target.base == peer]:
            self._watches.pop(target).end(f"unreachable: {reason}", may_be_there=True)
        for name in self._served.pop(peer, ()):  # if it lives after all, it will repeat its watch
            self._system.unwatch_by_name(peer, name)

    def _on_said(self, said: object) -> None:
        match said:
            case Envelope(sender=base) | WatchActor(watcher=base) if base and not is_reachable_base(base):
                raise MalformedMessage(f"{base!r:.60} is no address for answers")
            case Envelope():
                self._deliver(said)
            case AskAnswered(correlation_id, payload):
                self._settle(correlation_id, lambda _, future: _take_answer(payload, future))
            case AskRefused(correlation_id, reason):
                self._settle(correlation_id, lambda address, future: future.try_fail(ActorDead(address, reason)))
            case AskRaised(correlation_id, type_name, text, trace, raised_by):
                self._settle(
                    correlation_id,
                    lambda asked, future: future.try_fail(RemoteActorError(raised_by or asked, type_name, text, trace)),
                )
            case WatchActor():
                self._on_watch(said)
            case UnwatchActor(target, watcher):
                self._served.get(watcher, set()).discard(target)
                self._system.unwatch_by_name(watcher, target)
            case WatchedActorStopped():
                self._on_stopped(said)
            case _:
                raise MalformedMessage(f"{type(said).__name__} is no message between actor systems")

    def _deliver(self, envelope: Envelope) -> None:
        answer: ActorFuture[Any] | None = None
        if envelope.correlation_id:
            answer = ActorFuture()
            answer.add_done_callback(lambda done: self._answer(envelope, done))
        try:
            message = unpack_payload(envelope.payload)
            if isinstance(message, INTERNAL):
                raise MalformedMessage(f"{type(message).__name__} is no message for other processes to send")
        except MalformedMessage as error:
            if answer is not None:
                answer.try_fail(error)
            raise
        self._system.deliver(envelope.target, Letter(message, reply_to=answer))

    # ---- asks

    def _send_ask(self, target: Address, correlation_id: str, frame: bytes, future: ActorFuture[Any]) -> None:
        self._asks[correlation_id] = (target, future)
        future.add_done_callback(lambda _: self._system.loop.call(self._asks.pop, correlation_id, None))
        if not self._send(target.base, frame):
            future.try_fail(Unreachable(str(target), DeadLetterReason.UNSENT.value))

    def _settle(self, correlation_id: str, outcome: Any) -> None:
        target, future = self._asks.pop(correlation_id, (None, None))
        if future is not None:
            outcome(str(target), future)

    def _answer(self, asked: Envelope, done: ActorFuture[Any]) -> None:
        """On whichever thread the actor answered."""
        address = f"{self._system.address}/{asked.target}"
        try:
            frame = encode(AskAnswered(asked.correlation_id, pack_payload(done.result())))
        except ActorDead as error:
            said = AskRefused(asked.correlation_id, error.reason) if error.address == address else _raised(asked, error)
            frame = encode(said)
        except Exception as error:  # noqa: BLE001  (whatever the handler raised, or an answer that cannot be sent)
            frame = encode(_raised(asked, error))
        self._system.loop.call(self._send, asked.sender, frame)

    # ---- watching

    def _watch(self, key: str, target: Address, heard: Watcher) -> None:
        watch = self._watches.get(target)
        if watch is None:
            watch = self._watches[target] = _Watch(target, next(self._numbers))
            self._send_watch(watch)
        watch.heard[key] = heard
        if not self._repeating:
            self._repeating = True
            self._system.loop.call_later(_REPEAT_WATCH_MS, self._repeat_watches)

    def _unwatch(self, key: str, target: Address) -> None:
        watch = self._watches.get(target)
        if watch is None or key not in watch.heard:
            return
        del watch.heard[key]
        if not watch.heard:
            del self._watches[target]
            self._send(target.base, encode(UnwatchActor(target.name, self._system.address)))

    def _send_watch(self, watch: _Watch) -> None:
        self._send(watch.target.base, encode(WatchActor(watch.target.name, self._system.address, watch.number)))

    def _repeat_watches(self) -> None:
        self._repeating = bool(self._watches)
        if self._repeating:
            for watch in self._watches.values():
                self._send_watch(watch)
            self._system.loop.call_later(_REPEAT_WATCH_MS, self._repeat_watches)

    def _on_watch(self, wanted: WatchActor) -> None:
        """Another system wants to know when one of our actors stops."""
        address = f"{self._system.address}/{wanted.target}"

        def stopped(reason: str, *, may_be_there: bool = False) -> None:
            frame = encode(WatchedActorStopped(address, reason[:_MAX_TEXT], wanted.number))
            self._system.loop.call(self._send, wanted.watcher, frame)

        self._served.setdefault(wanted.watcher, set()).add(wanted.target)
        self._system.watch_by_name(wanted.watcher, wanted.target, stopped)

    def _on_stopped(self, notice: WatchedActorStopped) -> None:
        target = parse_address(notice.address, "")
        watch = self._watches.get(target)
        if watch is not None and watch.number == notice.number:
            self._watches.pop(target).end(notice.reason)

    # ---- sending

    def _send(self, peer: str, frame: bytes) -> bool:
        sent = self._transport.send(peer, frame)
        if not sent:
            self._bury(peer, frame, DeadLetterReason.UNSENT)
        return sent

    def _bury(self, peer: str, frame: bytes, reason: DeadLetterReason) -> bool:
        """Count what an actor said; what the systems say between themselves is no dead letter."""
        said = decode(frame)
        is_letter = isinstance(said, Envelope)
        if is_letter:
            self._system.dead_letters.add(f"{peer}/{said.target}", unpack_payload(said.payload), reason)
        return is_letter


class _Watch:
    """Actors of this system, by address, that watch one actor of another."""

    def __init__(self, target: Address, number: int) -> None:
        self.target = target
        self.number = number
        self.heard: dict[str, Watcher] = {}

    def end(self, reason: str, *, may_be_there: bool = False) -> None:
        for heard in self.heard.values():
            heard(reason, may_be_there=may_be_there)


def _take_answer(payload: bytes, future: ActorFuture[Any]) -> None:
    try:
        answer = unpack_payload(payload)
    except MalformedMessage as error:
        future.try_fail(error)
        raise
    future.try_set(answer)


def _say_lost(address: str, peer: str, reason: str, answers: int, letters: int) -> None:
    """Watchers are notified, and know whether the peer was to end: for them alone the log has no line."""
    counts = ((answers, "answer"), (letters, "message"))
    missed = " and ".join(f"{number} {what}{'s' * (number != 1)}" for number, what in counts if number)
    if missed:
        logging.getLogger(LOST).info("%s: the connection to %s is lost, with %s: %s", address, peer, missed, reason)
    else:
        logging.getLogger(LOST).debug("%s: the connection to %s is over: %s", address, peer, reason)


def _raised(asked: Envelope, error: BaseException) -> AskRaised:
    """An error that has come from another process already stays what it was there."""
    if isinstance(error, RemoteActorError):
        return AskRaised(asked.correlation_id, error.type_name, error.message, error.traceback_text, error.address)
    trace = chained_traceback_text(error)
    return AskRaised(asked.correlation_id, type(error).__name__, str(error)[:_MAX_TEXT], trace[-_MAX_TEXT:])
