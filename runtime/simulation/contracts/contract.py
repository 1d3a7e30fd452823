"""What SinkContract and SourceContract have in common: tests at each call, and what is said when one fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from types import CodeType, FunctionType
from typing import Any, ClassVar

from ....actors.operators.operator import Operator
from .life import Life, Unsettled, quick_collections
from .outside_calls import CallPlan, Fault, OutsideCalls, What, When

_SHOWN = 12


class Contract:
    """The base of both."""

    outside: ClassVar[Sequence[str]] = ()
    """Modules of the client: a call into one of them is a call to the outside. Those of a sink are seen on the thread
    that calls it; those of a source on the threads that it starts, too."""
    most_points: ClassVar[int] = 400
    """Of one test: if there are more, they are taken evenly from all."""
    hooks: ClassVar[Collection[str]] = ()
    """Methods of the connector that count as calls, too."""

    def clear(self) -> None:
        """Set the outside system back to how a test is to find it, or make a new table or topic for the next one."""
        raise NotImplementedError(f"{type(self).__name__}.clear is not defined")  # abstract

    def error(self) -> BaseException:
        """The error of a call that fails, or loses its answer."""
        return ConnectionError("the connection was lost (by the contract)")

    # -- the tests of both

    def test_a_kill_before_and_after_each_call(self) -> None:
        self._at_each_call("kill", "it was killed")

    def test_two_kills(self) -> None:
        self._two_at_a_time()

    def test_a_call_that_fails_and_one_whose_answer_is_lost(self) -> None:
        self._at_each_call("fail", "a call failed")

    def test_a_zombie_that_wakes_up_after_its_successor(self) -> None:
        self._at_each_call("freeze", "it was frozen")

    # -- for the two

    def _made(self) -> Operator:
        """A new connector."""
        raise NotImplementedError

    def _life(self, faults: Sequence[Fault | None] = (), *, salt: str = "") -> Life:
        """A new life, in an outside system that is clear. `salt`: of what is drawn in it."""
        raise NotImplementedError

    def _check(self, life: Life) -> None:
        """Raises AssertionError when a life has come out wrong."""
        raise NotImplementedError

    def _run(self, life: Life, what: str) -> None:
        try:
            life.live()
        except Unsettled as error:
            raise AssertionError(self._story(f"{what}: {error}", life.story, (), life)) from error.__cause__
        self._check(life)

    def _undisturbed(self, salt: str = "") -> Life:
        """A life without any fault. Raises AssertionError where it calls no module of `outside`: what the hooks alone
        prove is little."""
        life = self._life(salt=salt)
        self._run(life, "without any fault")
        assert self._called_outside(life) or not self.outside, (
            f"no call into {' or '.join(map(repr, self.outside))} was seen: name the modules that the connector calls "
            "in `outside`; those that only threads of a client call are not seen, and do not belong there"
        )
        return life

    def _called_outside(self, life: Life) -> bool:
        """Whether an undisturbed one has called a module of `outside`."""
        prefixes = tuple(f"{name}." for name in self.outside)
        return any(name.startswith(prefixes) for name in life.calls[0].names)

    def _at_each_call(self, what: What, done: str) -> None:
        points = self._points(what)
        with quick_collections():
            for point in points:
                self._run(self._life([point]), f"{done} {point.when} call {point.number}")
        self._print(f"{len(points)} points at which {done}")

    def _two_at_a_time(self) -> None:
        points = self._points("kill")
        with quick_collections():
            for number, first in enumerate(points):
                second = points[(number * 7) % len(points)]
                self._run(self._life([first, second]), "it was killed twice")
        self._print(f"{len(points)} pairs of points at which it was killed")

    def _points(self, what: What) -> list[Fault]:
        life = self._undisturbed()
        moments: tuple[When, When] = ("before", "after")
        points = [Fault(number, when, what) for number in range(1, len(life.calls[0].names) + 1) for when in moments]
        step = -(-len(points) // self.most_points) or 1
        return points[::step]

    def _print(self, what: str) -> None:
        print(f"{type(self).__name__}: {what}")

    def _watch(self, fault: Fault | None, freeze: Callable[[], None]) -> OutsideCalls:
        return OutsideCalls(self._plan(fault, freeze))

    def _plan(self, fault: Fault | None, freeze: Callable[[], None]) -> CallPlan:
        return CallPlan(self.outside, self._hook_codes, fault, freeze, self.error)

    @cached_property
    def _hook_codes(self) -> list[CodeType]:
        return list(_codes_of(type(self._made()), self.hooks))

    def _story(self, what: str, story: Sequence[str], problems: Sequence[str] = (), life: Life | None = None) -> str:
        lines = [f"{type(self._made()).__name__}: {what}.", "What happened:", *(f"  {line}" for line in story)]
        if problems:
            lines += ["What was found:", *(f"  {problem}" for problem in problems[:_SHOWN])]
            lines += [f"  and {len(problems) - _SHOWN} more"] if len(problems) > _SHOWN else []
        if life is not None:
            names = enumerate(life.calls[0].names, 1)
            lines += ["The calls of attempt 1:", *(f"  {number:3} {name}" for number, name in names)]
        return "\n".join(lines)


def differences(
    wanted: Iterable[Any], found: Iterable[Any], *, optional: Sequence[Any] = (), may_repeat: bool = False
) -> list[str]:
    """In words, a line each; empty when both hold the same. `optional`: may be there once, or not at all."""
    expected, there, allowed = (Counter(map(comparable, each)) for each in (wanted, found, optional))
    lines = [f"{record} is missing" for record, count in expected.items() if there[record] < count]
    for record, times in there.items():
        most = expected[record] or min(allowed[record], 1)
        if times > most and not (may_repeat and most):
            lines.append(f"{record} is there {times} times, wanted {most}")
    return lines


def comparable(record: Any) -> str:
    """Equal for equal records, whatever holds them."""
    if hasattr(record, "_asdict"):
        record = record._asdict()
    if isinstance(record, dict):
        return "{" + ", ".join(f"{key}: {record[key]!r}" for key in sorted(record, key=str)) + "}"
    return repr(record)


def _codes_of(kind: type, hooks: Collection[str]) -> Iterator[CodeType]:
    """What the connector defines; not its base classes of operators."""
    for each in kind.__mro__:
        if ".actors." not in each.__module__ and each is not object:
            functions = (vars(each).get(hook) for hook in hooks)
            yield from (function.__code__ for function in functions if isinstance(function, FunctionType))
