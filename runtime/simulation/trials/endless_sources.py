"""What to write in a test in place of a source that never ends: a history has a result once all data has ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ....actors.operators.operator import Operator
from ....actors.operators.source import Source

_WATCHING = "leave watch_ms out in the test, and it ends where its files end"
_TABLE = "leave watch_ms out in the test, and it ends where the table ends"
_BOUNDS: Mapping[str, str] = {
    "WatchedFileSource": _WATCHING,
    "DeltaSource": _TABLE,
    "IcebergSource": _TABLE,
    "GeneratorSource": "say how many records it makes, as in env.generate(make, 100)",
    "KafkaSource": "bounded=True lets it end where its topics end",
}
"""By the class of the source."""

_OTHERS = "give its source a bound"
_IN_ITS_PLACE = (
    "or read env.from_collection(records) in its place. Let build have a parameter for it, and test "
    "assert_exactly_once(lambda: build(...))"
)


def how_to_bound(operators: Mapping[str, Operator], vertex: str) -> str:
    """`operators`: of the job, by name. `vertex`: the name of the vertex that never ends, for where none is known."""
    sources = list(_endless(operators))
    if not sources:
        return f"{vertex!r} never ends, so there is no result to compare: {_OTHERS}, {_IN_ITS_PLACE}"
    name, source = sources[0]
    kind = next((each.__name__ for each in type(source).__mro__ if each.__name__ in _BOUNDS), "")
    bound = _BOUNDS.get(kind, _OTHERS)
    return f"source {name!r} never ends, so there is no result to compare: {bound}, {_IN_ITS_PLACE}"


def _endless(operators: Mapping[str, Operator]) -> Iterable[tuple[str, Source]]:
    return ((name, each) for name, each in operators.items() if isinstance(each, Source) and not each.bounded)
