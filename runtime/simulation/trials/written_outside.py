"""What a job would write outside of its simulated world, and what to write in a test in its place.

Each history runs the job from its beginning, with failures of its own. A real table would get the rows of them all, and
none would find it as the one before did.
"""

from __future__ import annotations

from collections.abc import Mapping

from ....actors.operators.operator import Operator
from ....actors.operators.source import Source
from ...connectors import FileSink

_SCHEME = "sim://"

_OF_FILES = "for the simulation give it a path that begins with sim://"
_OF_SOURCES = "leave group= out in the test, or read env.from_collection(records) in its place"
_OF_SINKS = (
    "end the job in collect(name=...) in its place, or in a sink of your own that writes to a TransactionalLog. Let "
    "build have a parameter for it, and test assert_exactly_once(lambda: build(...))"
)


def written_outside(operators: Mapping[str, Operator]) -> str:
    """The first of these that says it writes to what is real, and what to do; empty if there is none."""
    for name, operator in operators.items():
        place = operator._writes_to
        if place and not place.startswith(_SCHEME):
            return _told(name, operator, place)
    return ""


def _told(name: str, operator: Operator, place: str) -> str:
    who = f"{name!r} ({type(operator).__name__})"
    if isinstance(operator, FileSink):
        return f"sink {who} writes real files, to {place}, which no simulated failure touches: {_OF_FILES}"
    role, what_to_do = ("source", _OF_SOURCES) if isinstance(operator, Source) else ("sink", _OF_SINKS)
    return (
        f"{role} {who} writes to {place}, which is real: every history would write there, and no simulated failure "
        f"touches it. Nothing has run yet. In the test {what_to_do}"
    )
