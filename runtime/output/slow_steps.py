"""SlowSteps: names the operator and the line that hold a task's thread for long.

One thread per TaskManager's process looks at the turns of its stepping groups about every quarter of the threshold. A
turn that takes longer is logged while it lasts, so also when it never ends, with what runs at that moment; and once
more when it has ended. Code that holds Python's lock all the while holds this thread too: it is logged when it lets go.

The same place is logged the first few times and then now and then only.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, Self

from ...actors.async_calls import timer_calls
from ...actors.context import Clock
from ...actors.tasks.task import Task
from ...state.backends import shared_backend
from ..system.dispatcher import Driven
from ..system.stepping_dispatcher import SteppingGroup
from .running_code import RunningCode
from .slow_places import SlowPlaces, operator_of, warn

log = logging.getLogger(__name__)

_PATIENCE_WITH_IMPORTS = 10
"""An import is slow when it takes this many times the threshold: nobody can make it shorter."""

_LOCKS = frozenset({shared_backend.__file__, timer_calls.__file__})
"""Code that waits for the lock between a task and its coroutines."""

_MEANWHILE = "its task takes no records, checkpoints or cancellation meanwhile"


@dataclass(slots=True)
class _SlowTurn:
    """One that has been logged, and has not ended yet."""

    began_ms: float
    what: str
    code: RunningCode


class SlowSteps:
    """The watch, and as a context manager its thread."""

    def __init__(
        self,
        slow_ms: float,
        clock: Clock,
        frames: Callable[[], dict[int, FrameType]] = sys._current_frames,
        also: Callable[[], None] = lambda: None,
        on_the_loop: Callable[[], RunningCode | None] = lambda: None,
    ) -> None:
        """`also`: called on the watch's thread after each look. `on_the_loop`: the code of a coroutine that runs now,
        which is at fault where a task waits for the lock of its state.
        """
        self.slow_ms = slow_ms
        self._clock = clock
        self._frames = frames
        self._lock = threading.Lock()
        self._groups: dict[SteppingGroup, int] = {}
        """With the idents of their threads."""
        self._logged: dict[SteppingGroup, _SlowTurn] = {}
        self._seen: dict[SteppingGroup, float] = {}
        """The beginning of the last turn of each that has been looked at because it was slow."""
        self._importing: dict[SteppingGroup, float] = {}
        """The same of those that imported when they were looked at."""
        self._places = SlowPlaces()
        self._also = also
        self._on_the_loop = on_the_loop
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="understudy-slow-steps", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()

    # -- on the groups' threads

    def begin(self, group: SteppingGroup) -> None:
        with self._lock:
            self._groups[group] = threading.get_ident()

    def end(self, group: SteppingGroup) -> None:
        with self._lock:
            self._groups.pop(group, None)
            self._logged.pop(group, None)
            self._seen.pop(group, None)
            self._importing.pop(group, None)

    def slow_turn_ended(self, group: SteppingGroup, cell: Driven, began_ms: float, took_ms: float) -> None:
        with self._lock:
            was_seen = began_ms in (self._seen.pop(group, None), self._importing.pop(group, None))
            logged = self._logged.pop(group, None)
            if logged is not None:
                warn(
                    log,
                    logged.code,
                    "%s held its thread for %.1f s in all: %s",
                    logged.what,
                    took_ms / 1000,
                    logged.code,
                )
            elif not was_seen:
                self._log_unseen(_actor_of(cell), took_ms)

    # -- on its own

    def look(self) -> None:
        """See whether a turn has become slow."""
        now_ms = self._clock.now_ms()
        with self._lock:
            for group, thread in self._groups.items():
                began_ms, cell = group.began_ms, group.turning
                if cell is None or now_ms - began_ms < self.slow_ms or self._seen.get(group) == began_ms:
                    continue
                code = self._at_fault(self._frames().get(thread))
                if code.imports and now_ms - began_ms < _PATIENCE_WITH_IMPORTS * self.slow_ms:
                    self._importing[group] = began_ms
                elif group.turning is cell and group.began_ms == began_ms:
                    self._see(group, _actor_of(cell), code, began_ms)

    def _run(self) -> None:
        while not self._closed.wait(min(self.slow_ms / 4000, threading.TIMEOUT_MAX)):
            self.look()
            self._also()

    def _at_fault(self, top: FrameType | None) -> RunningCode:
        """What runs; or, where that waits for the lock of state that coroutines use, who holds it."""
        waits = top is not None and top.f_code.co_filename in _LOCKS
        return (self._on_the_loop() if waits else None) or RunningCode.of(top)

    def _see(self, group: SteppingGroup, actor: Any, code: RunningCode, began_ms: float) -> None:
        self._seen[group] = began_ms
        now_ms = self._clock.now_ms()
        what = _what(actor, code)
        before = self._places.noted(what, code, now_ms)
        if before is None:
            return
        self._logged[group] = _SlowTurn(began_ms, what, code)
        held_s = (now_ms - began_ms) / 1000
        warn(log, code, "%s has held its thread for %.1f s: %s; %s%s", what, held_s, code, _MEANWHILE, before)

    def _log_unseen(self, actor: Any, took_ms: float) -> None:
        """It held Python's lock to its end, so nobody could look; or it ended just so."""
        what = _what(actor, RunningCode(None))
        code = RunningCode(None)
        if self._places.noted(what, code, self._clock.now_ms()) is not None:
            warn(log, code, "%s held its thread for %.1f s; at which line is not known", what, took_ms / 1000)


def _actor_of(cell: Driven) -> Any:
    return getattr(cell, "actor", None)


def _what(actor: Any, code: RunningCode) -> str:
    """As in "operator 'count' in process (subtask 2, attempt 0)"."""
    operator = operator_of(code)
    if operator is not None:
        return operator
    if isinstance(actor, Task):
        to = actor.deployment
        return f"a step of {to.vertex_name!r} (subtask {to.subtask_index}, attempt {to.attempt_number})"
    return f"a step of {type(actor).__name__}"
