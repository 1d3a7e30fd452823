"""CheckedOptions: refuses what an assertion is given by mistake, above all what makes a test that cannot fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any

from ...api.environment import StreamEnvironment
from ..histories.actions import ClientAction
from ..world.faults import Fault
from .committed_output import Output
from .job_trial import Unfit


def environment_of(name: str, job: Any, job_name: str) -> StreamEnvironment:
    """Of a job, or of what a function returns. Raises Unfit."""
    if not isinstance(job, StreamEnvironment) and not callable(job):
        raise Unfit(f"{name}: wanted a StreamEnvironment, or a function that returns one; found {job!r:.60}")
    env: Any = job if isinstance(job, StreamEnvironment) else job()
    if not isinstance(env, StreamEnvironment):
        hint = ": does it lack `return env`?" if env is None else ""
        raise Unfit(f"{name}: wanted a StreamEnvironment, and {job_name}() returned {env!r:.60}{hint}")
    return env


def check_options(name: str, given: Mapping[str, Any]) -> None:
    """Raises Unfit."""
    for option, least in (("histories", 1), ("first_seed", 0)):
        value = given.get(option)
        if value is not None and (type(value) is not int or value < least):
            raise Unfit(f"{name}: {option}: wanted a number from {least}, found {value!r:.60}")
    minutes = given.get("minutes")
    if minutes is not None and not (type(minutes) in (int, float) and 0 < minutes < inf):
        raise Unfit(f"{name}: minutes: wanted a number above 0, as minutes=0.5, found {minutes!r:.60}")
    if minutes is not None and given.get("histories") is not None:
        raise Unfit(f"{name}: histories says how many, and minutes takes as many as fit: leave out one or the other")
    for option, kind in (("faults", Fault), ("actions", ClientAction)):
        _check_each(f"{name}: {option}", given.get(option), kind)
    expected = given.get("expected")
    if isinstance(expected, str) or not (expected is None or callable(expected) or isinstance(expected, Iterable)):
        raise Unfit(
            f"{name}: expected: wanted records, a dictionary of records by sink, or a function that computes them; "
            f"found {expected!r:.60}"
        )


def check_expected(records: Any, output: Output) -> None:
    """Whether there are such sinks: of another one there is nothing to compare. Raises Unfit."""
    unknown = [name for name in records if name not in output] if isinstance(records, Mapping) else []
    if unknown:
        there = ", ".join(map(repr, output))
        raise Unfit(
            f"expected: there is no sink {', '.join(map(repr, unknown))} that can be compared; there is {there}"
        )


def check_that_some_happened(faults: Sequence[Fault] | None, happened: int, virtual_ms: float) -> None:
    """Faults that were asked for, none of which has found anything to happen to. Raises Unfit."""
    if faults and not happened:
        raise Unfit(
            f"faults: none of them has happened, in any history: {faults[0]!r}. Without faults the job lasts "
            f"{virtual_ms:.0f} ms, and a TaskManager has a number from 0"
        )


def _check_each(option: str, values: Any, kind: type) -> None:
    if values is None:
        return
    if isinstance(values, kind):
        raise Unfit(f"{option}: wanted a list of them, as in [{values!r}]")
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise Unfit(f"{option}: wanted a list, found {values!r:.60}")
    for each in values:
        if not isinstance(each, kind):
            of = f", as {each.__name__}(at_ms=...)" if isinstance(each, type) and issubclass(each, kind) else ""
            wanted = "Rescale(at_ms, parallelism)" if kind is ClientAction else f"objects of understudy.testing{of}"
            raise Unfit(f"{option}: wanted {wanted}, found {each!r:.60}")
