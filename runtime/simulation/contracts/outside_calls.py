"""OutsideCalls: sees each call that one thread makes to the outside, and lets a fault happen before or after one.

Nothing of the connector is changed: Python's profiler hook reports each call of a thread, of functions in C too. A call
counts when it goes into a module that is named as outside, from a module that is not; and so do the hooks of the
connector itself, such as `apply`. What such a module calls itself does not count.

A killed thread unwinds by an exception, as Python has no other way. What its `except` and `finally` would do outside is
refused: a process that is killed does nothing more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType, ModuleType
from typing import Any, Literal

When = Literal["before", "after"]
What = Literal["kill", "freeze", "fail"]


class Killed(BaseException):
    """The attempt is dead. No code but the contract's may catch it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens at a call, by its number in the attempt, from 1."""

    number: int
    when: When
    what: What


@dataclass(frozen=True, slots=True)
class CallPlan:
    """Which calls of a thread are seen, and what happens at one of them."""

    outside: Collection[str]
    """Modules: a call into one of them is a call to the outside."""
    hooks: Collection[CodeType]
    """Functions of the connector that count as such calls, too."""
    fault: Fault | None
    freeze: Callable[[], None]
    """Called on that thread; it returns when the thread may go on."""
    error: Callable[[], BaseException]
    """Makes what a failed call raises."""


class OutsideCalls:
    """Those of one attempt. `install` is called on the attempt's own thread."""

    is_waiting = False
    """For another thread."""

    def __init__(self, plan: CallPlan) -> None:
        self.names: list[str] = []
        """Of the calls so far."""
        self.happened = ""
        """Where the fault was, in words; empty as long as it was not."""
        self._plan, self._fault = plan, plan.fault
        self._hooks = frozenset(plan.hooks)
        self._library: object = None
        """The frame, or the function in C, of the library that runs: what it calls does not count."""
        self._open: list[tuple[object, int]] = []
        """Calls that run, innermost last, with their numbers."""
        self.is_dead = False
        """It was killed: whatever it does now, it does not outside."""

    def install(self) -> None:
        sys.setprofile(self._profile)

    def remove(self) -> None:
        sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            if frame.f_code in self._hooks and self._library is None:
                self._begin(frame, frame.f_code.co_qualname, frame)
            elif self._library is None and self._is_outside(frame.f_globals.get("__name__", "")):
                self._library = frame
                self._begin(frame, f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}", frame)
        elif event == "return":
            self._end(frame, frame)
        elif event == "c_call":
            if self._library is None and self._is_outside(_module_of(arg)):
                self._library = arg
                self._begin(arg, f"{_module_of(arg)}.{arg.__qualname__}", frame)
        elif event == "c_return":
            self._end(arg, frame)
        elif event == "c_exception" and self._open and self._open[-1][0] == arg:
            self._open.pop()
            self._library = None

    def _begin(self, call: object, name: str, frame: FrameType) -> None:
        self.names.append(name)
        self._open.append((call, len(self.names)))
        self._at("before", len(self.names), frame)

    def _end(self, call: object, frame: FrameType) -> None:
        if self._open and self._open[-1][0] == call:
            _, number = self._open.pop()
            if self._library == call:
                self._library = None
            self._at("after", number, frame)

    def _at(self, when: When, number: int, frame: FrameType) -> None:
        if self.is_dead:
            self._library = None  # it is not entered, so nothing says that it is left
            self._open.clear()
            self._raise(Killed(), frame)
        fault = self._fault
        if fault is None or (fault.number, fault.when) != (number, when):
            return
        self._fault = None
        self.happened = f"{when} call {number}, {self.names[number - 1]}"
        if fault.what == "freeze":
            self.remove()
            self._plan.freeze()
            self.install()
            return
        self._library = None
        if when == "before":
            self._open.pop()
        self.is_dead = fault.what == "kill"
        self._raise(Killed() if self.is_dead else self._plan.error(), frame)

    def _raise(self, error: BaseException, frame: FrameType) -> None:
        """An exception of the profiler's hook removes the hook. It is put back as soon as any frame sees that one."""

        def put_back(frame: FrameType, event: str, _arg: Any) -> Any:
            if event == "exception":
                sys.settrace(None)
                self.install()
            return self._traced_again(frame) or put_back

        sys.settrace(lambda *_: None)
        for each in _outwards(frame):
            each.f_trace = put_back
        raise error

    def _traced_again(self, frame: FrameType) -> Any:
        """How a frame in which such an exception was is traced from now on; None: not."""
        return None

    def _is_outside(self, module: str) -> bool:
        return any(module == name or module.startswith(f"{name}.") for name in self._plan.outside)


@contextmanager
def pools_in_line() -> Iterator[None]:
    """A thread that is seen does itself, one after the other, all that it gives to a pool by `map` and waits for. So
    these calls are seen, and a run is the same whenever it is repeated.
    """
    kind: Any = ThreadPoolExecutor
    as_it_is = kind.map

    def in_line(pool: Any, function: Callable[..., Any], *iterables: Any, **options: Any) -> Iterator[Any]:
        is_seen = isinstance(getattr(sys.getprofile(), "__self__", None), OutsideCalls)
        if not is_seen or pool._initializer is not None:
            return as_it_is(pool, function, *iterables, **options)  # type: ignore[no-any-return]
        return _results([_outcome(function, each) for each in zip(*iterables, strict=False)])

    kind.map = in_line
    try:
        yield
    finally:
        kind.map = as_it_is


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, Exception | None]:
    try:
        return function(*arguments), None
    except Exception as error:  # noqa: BLE001 - as with a pool, whoever takes the result gets it
        return None, error


def _results(outcomes: list[tuple[Any, Exception | None]]) -> Iterator[Any]:
    for value, error in outcomes:
        if error is not None:
            raise error
        yield value


def _module_of(function: Any) -> str:
    """Of a function in C; without the underscore that modules in C begin with."""
    owner = getattr(function, "__self__", None)
    if owner is None or isinstance(owner, ModuleType):
        return str(getattr(function, "__module__", None) or "").lstrip("_")
    return str((owner if isinstance(owner, type) else type(owner)).__module__).lstrip("_")


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
