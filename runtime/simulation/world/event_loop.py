"""ProcessLoop: one simulated process's asyncio loop. All of a world's loops share its events and its virtual time.

Tasks, futures, `asyncio.timeout` and timers work as on any loop. There are no sockets, threads or processes: what
would come from outside has a simulated counterpart. An executor's work is done at once, in its place.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, NoReturn

from ....messages.attributes import attributes_of
from ...coroutines.begun_tasks import BegunTimer, context_of_unit, note, noted
from .process import Event, Process, Timeline
from .running_loop import put_back, take_out

log = logging.getLogger(__name__)


class NotOnSimulatedLoop(NotImplementedError):
    """A coroutine wanted something of the outside, as a connection, from an event loop that has none."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}: this event loop is simulated, without sockets, pipes and subprocesses, as in an OperatorHarness, "
            "a SimulatedCluster and LocalCluster(debug=True): give the operator a fake of its client, as in "
            "Enrich(connect=FakeClient); a LocalCluster() has a real one. A blocking client works here, too, with "
            "`await asyncio.to_thread(...)`"
        )


class off_loop:  # used as a function; a generator would cost more than what is done within
    """The code within is work of a thread, which has no event loop running: it may run one of its own."""

    __slots__ = ("_running",)

    def __enter__(self) -> None:
        self._running = take_out()

    def __exit__(self, *_: object) -> None:
        put_back(self._running)


class ProcessLoop(asyncio.AbstractEventLoop):
    """What is asked for here happens on behalf of one process, or not at all when that has died."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._world: Timeline = process.world

    def time(self) -> float:
        return self._world.now_ms / 1000

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Event:  # type: ignore[override]
        event = Event(self._process, callback, args, self._world.now_ms, context or context_of_unit())
        self._world.soon(event)
        return event

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Event:
        return self._timer(when * 1000, noted(callback, context), callback, args, context)

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Event:
        when_ms = self._world.now_ms + delay * 1000
        return self._timer(when_ms, noted(callback, context), callback, args, context)

    def _timer(
        self,
        when_ms: float,
        timer: BegunTimer | None,
        callback: Callable[..., object],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> Event:
        if timer is None:
            return self._world.schedule(Event(self._process, callback, args, when_ms, context))
        event = Event(self._process, timer, args, when_ms, context or copy_context())
        timer.set(event)
        return self._world.schedule(event)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, Any], *, context: Context | None = None, **options: Any
    ) -> asyncio.Task[Any]:
        return note(asyncio.Task(coro, loop=self, context=context, **options), context)

    def close_unbegun(self, _reason: str) -> None:
        """The process has died: coroutines of tasks that have not begun never will, and Python is not to warn of it."""
        for task in asyncio.all_tasks(self):
            coroutine = task.get_coro()
            if inspect.iscoroutine(coroutine) and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
                coroutine.close()

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, function: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """Done at once, on behalf of this process; who awaits it goes on later."""
        future = self.create_future()
        try:
            with off_loop():
                result = function(*args)
        except Exception as error:  # noqa: BLE001 - for who awaits it
            future.set_exception(error)
        else:
            future.set_result(result)
        return future

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Somebody's failure was never retrieved, or its task never ended. That shows when the garbage collector comes
        by, perhaps after the world's end, so it is no part of what happens.
        """
        if self._process.is_alive:
            log.debug("%s: %s", self._process.name, context.get("message"), exc_info=context.get("exception"))


def _missing(name: str) -> Callable[..., Any]:
    def missing(self: ProcessLoop, *_args: Any, **_named: Any) -> NoReturn:
        raise NotOnSimulatedLoop(f"loop.{name}")

    return missing


for _name in (
    *(
        name
        for name in attributes_of(asyncio.AbstractEventLoop)
        if name.startswith(("create_", "connect_", "sock_", "subprocess_"))
    ),
    *("getaddrinfo", "getnameinfo", "start_tls", "sendfile", "connect_accepted_socket"),
    *("add_reader", "remove_reader", "add_writer", "remove_writer", "add_signal_handler", "remove_signal_handler"),
    *("run_until_complete", "run_forever", "shutdown_asyncgens", "shutdown_default_executor"),
):
    if _name not in vars(ProcessLoop):
        setattr(ProcessLoop, _name, _missing(_name))
