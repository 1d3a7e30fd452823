"""A candidate of a failover run whose messages are those of another release, in the process of its JobManager alone.

Each message that it sends, or keeps in ZooKeeper, has a field that this release does not know, and lacks those that are
at their default. Its TaskManagers are of this release, as those are that go on during a rolling upgrade.
"""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import Any

from understudy.messages import codec, usual_fields
from understudy.messages.registry import class_of
from understudy.runtime.chaos import candidate

_usual_to_wire = usual_fields.usual_to_wire


def of_another_release(value: Any, *depth: Any) -> Any:
    return _changed(_usual_to_wire(value, *depth))


def _changed(raw: Any) -> Any:
    tag, values = raw
    cls = class_of(tag)
    assert cls is not None
    defaults = {each.name: each.default for each in fields(cls)}
    left = {name: _inner(value) for name, value in values.items() if not _is_at(value, defaults[name])}
    return [tag, {"of_the_next_release": [1, {"a": "b"}], **left}]


def _inner(value: Any) -> Any:
    """Of a message in a message."""
    is_message = type(value) is list and len(value) == 2 and type(value[0]) is str and type(value[1]) is dict
    return _changed(value) if is_message and class_of(value[0]) is not None else value


def _is_at(value: Any, default: Any) -> bool:
    return type(value) is type(default) and value == default


if __name__ == "__main__":
    codec.usual_to_wire = of_another_release  # type: ignore[attr-defined]
    candidate.main(sys.argv[1])
