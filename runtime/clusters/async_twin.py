"""Async twins: of a method that blocks, the same for a running event loop, as `<name>_async`.

    class JobHandle(Blocking):
        def details(self, timeout=30.0): ...
        details_async = async_twin(details)

The loop goes on meanwhile: the method runs on a thread of the loop's pool. A world without threads (the simulator)
says so by another `_aside`.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from ...messages.error_frames import end_at_the_caller
from ..library_code import is_our_frame
from .awaited_call import AwaitedCall

T = TypeVar("T")
P = ParamSpec("P")


_WAKE_SECONDS = 0.5
_IN_A_LOOP = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR | inspect.CO_ITERABLE_COROUTINE


def _is_of_cell(frame: FrameType | None) -> bool:
    """Whether a cell, as IPython runs it, has called this through plain functions alone."""
    while frame is not None:
        if "get_ipython" in frame.f_globals and frame.f_code.co_name.startswith(("<module", "<cell")):
            return True
        if frame.f_code.co_flags & _IN_A_LOOP:
            return False
        frame = frame.f_back
    return False


def warn_of_event_loop(call: str, instead: str, *, depth: int = 2) -> None:
    """To wait is to stand still, and with it every coroutine of this thread: warns whoever called the caller, if that
    is not the library. But for the cell of a notebook, which runs while the loop of its kernel does, and which
    everything waits for anyway, unless a cell before it has begun a task. `depth`: of the frame that has called, 3 if
    there is a decorator.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    blocked = "the event loop of this thread"
    frame = sys._getframe(depth)
    if is_our_frame(frame):
        return
    if _is_of_cell(frame):
        if not (held := _tasks_of_notebook()):
            return
        blocked = f"{' and '.join(held)}, which this notebook has begun"
    warnings.warn(f"{call} blocks {blocked}: write {instead}", RuntimeWarning, stacklevel=depth + 1)


def _is_of_notebook(names: dict[str, Any]) -> bool:
    return names.get("__name__") == "__main__" and "get_ipython" in names


def _tasks_of_notebook() -> list[str]:
    """The coroutines that cells have made tasks of, and that would go on if whoever asks did not block."""
    own, found = asyncio.current_task(), list[str]()
    for task in asyncio.all_tasks():
        frame = getattr(task.get_coro(), "cr_frame", None)
        if task is not own and frame is not None and _is_of_notebook(frame.f_globals):
            found.append(f"{frame.f_code.co_name}()")
    return sorted(found)


def _is_below_asyncio() -> bool:
    """Whether this thread stands within `asyncio.run`, or a loop's `run_forever`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") not in ("asyncio.runners", "asyncio.base_events"):
        frame = frame.f_back
    return frame is not None


@contextmanager
def interruptible() -> Iterator[None]:
    """While something is awaited in it, wake the event loop of a notebook twice a second: its kernel cancels an `await`
    that is interrupted from a signal handler, which no sleeping loop notices. Elsewhere nothing.
    """
    if "ipykernel" not in sys.modules:
        yield
        return
    loop, armed = asyncio.get_running_loop(), list[asyncio.TimerHandle]()

    def wake() -> None:
        armed[:] = [loop.call_later(_WAKE_SECONDS, wake)]

    wake()
    try:
        yield
    finally:
        armed[0].cancel()


class Blocking:
    """Base of classes whose methods have twins."""

    async def _aside(self, work: Callable[[], T]) -> T:
        """Do blocking work while the event loop goes on."""
        if asyncio._get_running_loop() is None:
            if _is_below_asyncio():
                raise RuntimeError(
                    f"a {type(self).__name__} is awaited in a fork of the process whose event loop runs the coroutine, "
                    f"and a fork (this process, {os.getpid()}) has no event loop: start one there, and a cluster of "
                    "its own, by asyncio.run(...); or fork before the loop runs"
                )
            raise RuntimeError(
                f"a {type(self).__name__} is awaited on asyncio's event loop, and none runs here: on another one, as "
                "trio's, use the calls without await in a thread, as by `anyio.to_thread.run_sync(cluster.start)`"
            )
        return await asyncio.to_thread(work)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} belongs to the process that has made it, and cannot be pickled: give another "
            "process the address (cluster.announce(), or save_keys and cluster.address) and the job's name, for a "
            "RemoteCluster there"
        )


B = TypeVar("B", bound=Blocking)


def async_twin(method: Callable[Concatenate[B, P], T]) -> Callable[Concatenate[B, P], Coroutine[Any, Any, T]]:
    """Same arguments, same result, same errors. A subclass that overrides the method has its own one called.

    To cancel the twin ends the wait for the method, and not the method.
    """
    name = method.__name__

    async def call(self: B, work: Callable[[], T]) -> T:
        try:
            return await self._aside(work)
        except Exception as error:
            end_at_the_caller(error)
            raise

    def twin(self: B, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        work = partial(getattr(self, name), *args, **kwargs)
        return AwaitedCall(f"{type(self).__name__}.{name}_async", lambda: call(self, work))

    twin.__name__ = f"{name}_async"
    twin.__qualname__ = f"{method.__qualname__}_async"
    twin.__doc__ = f"`{name}`, for a running event loop, which goes on meanwhile."
    return _known_as_coroutine_function(twin)


F = TypeVar("F", bound=Callable[..., Any])


def _known_as_coroutine_function(function: F) -> F:
    """To frameworks that ask before they call it."""
    if sys.version_info >= (3, 12):
        return inspect.markcoroutinefunction(function)
    # Both `inspect` and `asyncio` go by this flag of the code. Python 3.11 itself makes coroutines by an instruction at
    # the beginning of the code, which there is none of here.
    code = function.__code__
    function.__code__ = code.replace(co_flags=code.co_flags | inspect.CO_COROUTINE)
    return function
