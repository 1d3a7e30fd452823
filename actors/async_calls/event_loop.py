"""CallLoop: the event loop of the operators' coroutines, as the task's side sees it. `runtime/` supplies it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager
from typing import Any, NoReturn, Protocol, TypeAlias

from .call import Call
from .run import Run

Begin: TypeAlias = "Callable[[Call], Coroutine[Any, Any, Any] | None]"
"""Begins the work of a call, on the loop: returns its coroutine, or None if it is done."""
Ended: TypeAlias = "Call | Run"


class CallRunner(Protocol):
    """Runs the calls of one attempt of one operator. Its methods are called on the task's thread, and none waits but
    `close`. It decides nothing: what becomes of a call that has failed, or was cancelled, is settled by who takes it.
    """

    @property
    def has_ended(self) -> bool:
        """Whether `taken` would return any."""
        ...

    def waiting_at(self) -> str:
        """The lines of the user's at which coroutines wait."""
        ...

    def awaits_begun(self, within_ms: float) -> bool:
        """Whether what calls have begun, and not awaited, still runs or waits, at most for this long after it was first
        asked; what then still does is logged.
        """
        ...

    def submit(self, calls: Sequence[Ended]) -> None:
        """Begin them soon, in this order."""

    def taken(self, most: int | None = None) -> list[Ended]:
        """Those that have ended since, in the order in which they did; `most`: no more than these. `error` says what a
        call has failed with.
        """
        ...

    def run(self, make: Callable[[], Coroutine[Any, Any, Any]], then: Callable[[BaseException | None], None]) -> None:
        """Make and run one that belongs to no call, as `open`, unless it is closed before; on the loop's thread, as
        `then` is.
        """

    def close(self, within_ms: float, last: Callable[[], Coroutine[Any, Any, Any]] | None) -> None:
        """Cancel all that runs, wait for its end, then run `last`; blocks for this long at most, and not at all where
        nothing may block, as in the simulator. What ends from now on goes nowhere. Raises what `last` raises.
        """


class CallLoop(Protocol):
    """One for each TaskManager, and not the thread of any task."""

    def runner(self, begin: Begin, what: str, wake: Callable[[], None]) -> CallRunner:
        """A new one. `what` is for error texts; `wake` is called on the loop's thread when some calls have ended."""
        ...

    def lock(self) -> AbstractContextManager[Any]:
        """A new lock between the loop and a task, which whoever holds it may take again."""
        ...

    @property
    def begun_so_far(self) -> int:
        """A number that grows with all that coroutines begin on it: tasks, timers, work for executors."""
        ...


def no_call_loop() -> NoReturn:
    """Where there is none."""
    raise RuntimeError("operators with `async def` do not run here: there is no event loop for them")
