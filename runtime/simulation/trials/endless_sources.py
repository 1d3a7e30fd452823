"""What to write in a test in place of a source that never ends: a history has a result once all data has ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ....actors.operators.operator import Operator
from ....actors.operators.source import Source

_IN_ITS_PLACE = (
    "read env.from_collection(records) in its place. Let build have a parameter for it, and test "
    "assert_exactly_once(lambda: build(...))"
)


def how_to_bound(operators: Mapping[str, Operator], vertex: str) -> str:
    """`operators`: of the job, by name. `vertex`: the name of the vertex that never ends, for where none is known."""
    sources = list(_endless(operators))
    if not sources:
        return f"{vertex!r} never ends, so there is no result to compare: give its source a bound, or {_IN_ITS_PLACE}"
    name, source = sources[0]
    bound = f"{source._how_to_bound}, or " if source._how_to_bound else ""
    return f"source {name!r} never ends, so there is no result to compare: {bound}{_IN_ITS_PLACE}"


def _endless(operators: Mapping[str, Operator]) -> Iterable[tuple[str, Source]]:
    return ((name, each) for name, each in operators.items() if isinstance(each, Source) and not each.bounded)
