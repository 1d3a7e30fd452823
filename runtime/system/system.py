"""ActorSystem: spawns actors, finds them by name or address, and ends them all.

    with ActorSystem("greeting", bind="tcp://127.0.0.1:0") as system:
        greeter = system.spawn(Greeter(), name="greeter")
        print(greeter.ask("world").get(timeout=1), greeter.address)

The system owns its event loop (unless one is lent), its dispatchers' threads, its blocking pool and its transport, and
gives all of them back in `shutdown`. It holds no policy about actors: their life is cell.py, and what goes between
processes is remoting.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import random
import threading
from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

import pykka
from pykka.messages import _ActorStop

from ...actors.actor import Actor, SupervisorStrategy
from ...actors.ask_errors import ActorDead
from ...actors.context import Clock, Ref
from ...actors.timeouts import timeout_seconds
from .asks import OpenAsks
from .asyncio_dispatcher import AsyncioDispatcher
from .blocking import Blocking, BlockingPool
from .cell import Cell, check_actor
from .clock import RandomIds, SystemClock
from .dead_letters import DeadLetterReason, DeadLetters
from .dispatcher import Dispatcher
from .errors import InvalidAddress, NameTaken, SystemStopped
from .event_loop import SystemLoop
from .future import ActorFuture
from .home import Home
from .host import Spawned
from .inbox import Envelope
from .ref import LocalRef, NamedRef, RemoteRef, Watcher
from .remote.address import check_name, parse_address
from .remote.curve import CurveKeys
from .remote.remoting import Remoting
from .remote.transport import Transport
from .remote.zmq_transport import TransportOptions, ZmqTransport
from .stepping_dispatcher import SteppingDispatcher
from .supervision import Supervision
from .thread_dispatcher import ThreadDispatcher

T = TypeVar("T")
logger = logging.getLogger(__name__)


class ActorSystem:
    """A process's actors. Start it with `with`, `async with`, `start()` or `await open()`."""

    def __init__(
        self,
        name: str,
        *,
        bind: str | None = None,
        curve: CurveKeys | None = None,
        advertised_host: str | None = None,
        options: TransportOptions = TransportOptions(),  # noqa: B008  (frozen)
        loop: asyncio.AbstractEventLoop | None = None,
        clock: Clock | None = None,
        random_source: random.Random | None = None,
        new_id: Callable[[str], str] | None = None,
        transport: Transport | None = None,
        blocking: Blocking | None = None,
        dispatchers: Mapping[str, Dispatcher] | None = None,
        default_dispatcher: str = "asyncio",
        supervisor_strategy: SupervisorStrategy = SupervisorStrategy.STOP,
        ask_timeout_ms: float = 30_000,
        blocking_threads: int = 8,
        flush_ms: float = 500,
    ) -> None:
        """`bind` (as in "tcp://127.0.0.1:0") makes the actors reachable from other processes, and them from here.

        `loop` lends a running loop; otherwise the system runs one on a daemon thread of its own. `supervisor_strategy`
        is for actors without a parent. `transport` and `dispatchers` replace the real ones (a simulator's).
        """
        self.name = check_name(name)
        self.clock: Clock = clock or SystemClock()
        self.random = random_source or random.Random()
        self.new_id: Callable[[str], str] = new_id or RandomIds()
        self.dead_letters = DeadLetters()
        self.loop = SystemLoop(name, loop)
        self.asks = OpenAsks(self.loop, ask_timeout_ms)
        if transport is None and bind is not None:
            transport = ZmqTransport(bind, curve, name, options, self.new_id, advertised_host)
        self._transport = transport
        self._remoting: Remoting | None = None
        self._blocking: Blocking = blocking or BlockingPool(f"{name}-blocking", blocking_threads)
        self._dispatchers: dict[str, Dispatcher] = {
            "asyncio": AsyncioDispatcher(self.loop),
            "thread": ThreadDispatcher(),
            "stepping": SteppingDispatcher(self.clock),
            **(dispatchers or {}),
        }
        self._default_dispatcher = default_dispatcher
        self._top_strategy = supervisor_strategy
        self._flush_ms = flush_ms
        self._numbers = itertools.count(1)
        self._cells: dict[str, Cell] = {}
        self._lock = threading.Lock()
        self._living: set[object] = set()
        self._all_ended = asyncio.Event()
        self._running = False
        self._started = False

    # ---- life

    def start(self) -> Self:
        """Start on a thread of its own; returns when actors can be spawned and the port is bound."""
        if self.loop.is_lent:
            raise RuntimeError("this system runs on a loop that you lent it: use `await system.open()`")
        self._take_start()
        self.loop.start()
        try:
            self.loop.run(self._open())
        except BaseException:
            self.loop.stop()
            raise
        return self

    async def open(self) -> Self:
        """`start`, for callers on an event loop; on a lent loop, from that loop."""
        if self.loop.is_lent:
            self._take_start()
            await self._open()
        else:
            await asyncio.to_thread(self.start)
        return self

    def shutdown(self, timeout: float = 5.0) -> None:
        """Stop all actors, the last spawned first, within `timeout` seconds; then give back sockets and threads.

        Every open ask is done afterwards. Again, or before `start`, it does nothing.
        """
        seconds = timeout_seconds(timeout)
        if self.loop.is_here:
            raise RuntimeError("this would block the actor system's own event loop: `await system.close()`")
        if self._take_end() and not self.loop.is_elsewhere:
            self.loop.run(self._close(seconds))
            self.loop.stop()

    async def close(self, timeout: float = 5.0) -> None:
        """`shutdown`, for callers on an event loop."""
        seconds = timeout_seconds(timeout)
        if self._take_end() and not self.loop.is_elsewhere:
            await self.loop.run_here(self._close(seconds))
            if not self.loop.is_lent:
                await asyncio.to_thread(self.loop.stop)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # ---- actors

    @property
    def address(self) -> str:
        """The base of all its actors' addresses: `tcp://host:port`, or `local://name` when it is not bound."""
        return self._transport.address if self._transport is not None else f"local://{self.name}"

    @property
    def is_running(self) -> bool:
        return self._running

    @property
    def malformed_messages(self) -> int:
        """How many frames came in that were no message of ours."""
        return self._remoting.malformed_count if self._remoting is not None else 0

    def spawn(
        self,
        actor: Actor,
        *,
        name: str | None = None,
        dispatcher: str | None = None,
        supervisor_strategy: SupervisorStrategy | None = None,
    ) -> LocalRef:
        """Start `actor` (an instance) under "asyncio", "thread" or "stepping:<group>".

        Raises NameTaken, InvalidAddress for an unfit name, SystemStopped.
        """
        return self._spawn(None, actor, name, dispatcher, supervisor_strategy or self._top_strategy)

    def actor_of(self, address: str) -> Ref:
        """A reference to an actor here (by name or address) or elsewhere; nobody asks now whether there is one."""
        target = parse_address(address, self.address)
        if target.base == self.address:
            return NamedRef(self, target.name)
        if self._remoting is None:
            raise InvalidAddress(
                f"{address} is not in this system, and {self.name} is not bound: give it a bind address"
            )
        if not target.base.startswith("tcp://"):
            raise InvalidAddress(f"{address} cannot be reached from another process: wanted tcp://host:port/name")
        return RemoteRef(self._remoting, address)

    def stop(self, ref: Ref) -> None:
        """Stop an actor of this system after the messages it was sent so far; its children stop first."""
        if isinstance(ref, RemoteRef):
            raise InvalidAddress(f"{ref.address} is in another process: send it a message that makes it stop")
        ref.tell(_ActorStop())

    def run_blocking(self, function: Callable[..., T], *args: Any) -> ActorFuture[T]:
        """Run blocking code on the system's pool."""
        return self._blocking.submit(function, *args)

    # ---- for contexts, references and remoting

    def spawn_child(self, parent: Spawned, actor: Actor, name: str | None, dispatcher: str | None) -> LocalRef:
        return self._spawn(parent, actor, name, dispatcher, parent.actor.supervisor_strategy)

    def deliver(self, name: str, letter: Envelope[Any]) -> None:
        """Put a letter into the inbox of whoever has this name."""
        cell = self._cells.get(name)
        if cell is not None:
            cell.post(letter)
        elif not isinstance(letter.message, _ActorStop):
            address = f"{self.address}/{name}"
            self.dead_letters.add(address, letter.message, DeadLetterReason.UNKNOWN)
            reply_to: Any = letter.reply_to
            if reply_to is not None:
                reply_to.try_fail(ActorDead(address, "there is no such actor"))

    def tell_by_name(self, name: str, message: Any) -> None:
        self.deliver(name, Envelope(message))

    def ask_by_name(self, name: str, message: Any, timeout_ms: float | None) -> ActorFuture[Any]:
        future = self.asks.open(f"{self.address}/{name}", timeout_ms)
        self.deliver(name, Envelope(message, reply_to=future))
        return future

    def answer(self, reply_to: ActorFuture[Any], result: Any) -> None:
        """Fulfil an ask; a handler that returned a future has promised its outcome."""
        if isinstance(result, pykka.Future):
            self.when_done(result, lambda: _copy_outcome(result, reply_to))
        else:
            reply_to.try_set(result)

    def when_done(self, future: pykka.Future[Any], callback: Callable[[], object]) -> None:
        """Call back when any of Pykka's futures is done, without blocking; one that is not ours takes a pool thread."""
        ours = future if isinstance(future, ActorFuture) else self.run_blocking(_wait_for, future)
        ours.add_done_callback(lambda _: callback())

    def watch(self, key: str, ref: Ref, heard: Watcher) -> None:
        """Call `heard` once when the actor of `ref` has stopped, or at once if it has already; `key` ends the watch."""
        match ref:
            case RemoteRef() if self._remoting is not None:
                self._remoting.watch(key, ref.address, heard)
            case LocalRef():
                if not ref.cell.add_watcher(key, heard):
                    heard("it had stopped before")
            case _:
                self.watch_by_name(key, parse_address(ref.address, self.address).name, heard)

    def unwatch(self, key: str, address: str) -> None:
        target = parse_address(address, self.address)
        if target.base == self.address:
            self.unwatch_by_name(key, target.name)
        elif self._remoting is not None:
            self._remoting.unwatch(key, address)

    def watch_by_name(self, key: str, name: str, heard: Watcher) -> None:
        cell = self._cells.get(name)
        if cell is None or not cell.add_watcher(key, heard):
            heard("there is no such actor")

    def unwatch_by_name(self, key: str, name: str) -> None:
        cell = self._cells.get(name)
        if cell is not None:
            cell.remove_watcher(key)

    def forget(self, name: str) -> None:
        """The actor of this name stops: the name is free."""
        with self._lock:
            self._cells.pop(name, None)

    def has_ended(self, cell: object) -> None:
        """The cell has stopped, and every watcher is notified."""
        with self._lock:
            self._living.discard(cell)
            if not self._living and not self._running:
                self.loop.call(self._all_ended.set)

    # ---- inside

    def _spawn(
        self,
        parent: Spawned | None,
        actor: Actor,
        name: str | None,
        dispatcher: str | None,
        strategy: SupervisorStrategy,
    ) -> LocalRef:
        kind, _, argument = (dispatcher or self._default_dispatcher).partition(":")
        if kind not in self._dispatchers:
            raise ValueError(f"no dispatcher {kind!r}: wanted one of {sorted(self._dispatchers)}")
        check_actor(actor)
        if isinstance(getattr(actor, "_actor_ref", None), LocalRef):
            raise ValueError(f"{actor} has been spawned already: spawn a new instance")
        if parent is not None and parent.is_ending:
            raise SystemStopped(f"{parent.address} is stopping, and can spawn no children")
        driver = self._dispatchers[kind]
        name = check_name(name or f"{type(actor).__name__.lower()}-{next(self._numbers)}")
        cell = Cell(self, actor, name, parent, Supervision(strategy, actor.restart_limit))
        cell.seat = driver.attach(cell, argument)
        self._register(cell)
        if parent is not None:
            parent.add_child(cell)
        try:
            driver.launch(cell.seat)
        except BaseException:
            cell.abandon("it could not be launched")
            raise
        return cell.ref

    def _register(self, cell: Cell) -> None:
        if self.loop.home is not None and self.loop.home.is_elsewhere:
            raise SystemStopped(f"actor system {self.name}: {self.loop.home.why}")
        with self._lock:
            if not self._running:
                raise SystemStopped(f"actor system {self.name} does not run: use it as `with ActorSystem(...)`")
            if cell.name in self._cells:
                raise NameTaken(f"{self._cells[cell.name].address} runs already: choose another name")
            self._cells[cell.name] = cell
            self._living.add(cell)

    def _take_start(self) -> None:
        with self._lock:
            if self._started:
                raise SystemStopped(f"actor system {self.name} has been started before: make a new ActorSystem")
            self._started = True
            self.loop.home = Home()

    def _take_end(self) -> bool:
        """Whether the caller is the one who ends it."""
        with self._lock:
            was_running, self._running = self._running, False
        return was_running

    async def _open(self) -> None:
        if self._transport is not None:
            self._remoting = Remoting(self, self._transport)
            await self._transport.open(self._remoting)
        self._running = True

    async def _close(self, timeout: float | None) -> None:
        with self._lock:
            top = [cell for cell in self._cells.values() if cell.parent is None]
            if not self._living:
                self._all_ended.set()
        for cell in reversed(top):
            cell.tell(_ActorStop())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._all_ended.wait()
        for dispatcher in self._dispatchers.values():
            for name in await dispatcher.close(timeout_ms=1_000):
                logger.warning("actor system %s: %s did not stop", self.name, name)
        self.asks.close()
        if self._transport is not None:
            await self._transport.close(self._flush_ms)
        await self._blocking.close(timeout_ms=1_000)


def _wait_for(future: pykka.Future[T]) -> T:
    return future.get()


def _copy_outcome(source: pykka.Future[Any], to: ActorFuture[Any]) -> None:
    try:
        value = source.get()
    except Exception as error:  # noqa: BLE001  (whatever it failed with is the answer)
        to.try_fail(error)
    else:
        to.try_set(value)
