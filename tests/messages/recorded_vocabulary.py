"""The vocabulary of a release as a file: each message's fields, and one of it in bytes.

`python -m tests.messages.recorded_vocabulary 0.2.0` writes that of the code as it is, when a release is made.
"""

from __future__ import annotations

import base64
import json
import sys
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from enum import Enum
from pathlib import Path
from typing import Any, NewType

from understudy.messages import CancelJob, JobId, Message, Plain, encode

from .strategies import vocabulary

FOLDER = Path(__file__).parent / "recorded"
_PRIMITIVES: Mapping[Any, Any] = {bool: True, int: 7, float: 0.5, str: "text", bytes: b"\x00\xff"}


def described() -> dict[str, Any]:
    """{tag: {"fields": {name: [type, whether it has a default]}, "bytes": one of it, in base64}}, and the enums."""
    messages = {tag: _message(cls) for tag, cls in sorted(vocabulary().items())}
    hints = [hint for cls in vocabulary().values() for hint in typing.get_type_hints(cls).values()]
    return {"messages": messages, "enums": dict(sorted(_enums(hints).items()))}


def sample(cls: type, within: tuple[type, ...] = ()) -> Any:
    """One message of this class, always the same: no list is empty, and nothing None that can be something."""
    hints = typing.get_type_hints(cls)
    return cls(**{each.name: _value(hints[each.name], (*within, cls)) for each in fields(cls)})


def has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def type_text(hint: Any) -> str:
    """A declared type; of a NewType what it stands for, as the wire knows no more."""
    if isinstance(hint, NewType):
        return type_text(hint.__supertype__)
    arguments = typing.get_args(hint)
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return " | ".join(sorted(map(type_text, arguments)))
    if typing.get_origin(hint) in (tuple, dict):
        return f"{typing.get_origin(hint).__name__}[{', '.join(map(type_text, arguments))}]"
    return "Plain" if hint is Plain else "..." if hint is Ellipsis else str(getattr(hint, "__name__", hint))


def _message(cls: type) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {
        "fields": {each.name: [type_text(hints[each.name]), has_default(each)] for each in fields(cls)},
        "bytes": base64.b64encode(encode(sample(cls))).decode(),
    }


def _enums(hints: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for hint in hints:
        if isinstance(hint, type) and issubclass(hint, Enum):
            found[hint.__name__] = [member.value for member in hint]
        found |= _enums(list(typing.get_args(hint)))
    return found


def _value(hint: Any, within: tuple[type, ...]) -> Any:
    if isinstance(hint, NewType):
        return _value(hint.__supertype__, within)
    if hint is Plain:
        return {"key": (1, "a")}
    if hint is Message:
        return CancelJob(JobId("job-1"))
    if hint in _PRIMITIVES:
        return _PRIMITIVES[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return next(iter(hint))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is tuple:
        return () if arguments[0] in within else (_value(arguments[0], within),)
    if origin is dict:
        return {_value(arguments[0], within): _value(arguments[1], within)}
    if arguments:
        arm = next(arm for arm in arguments if arm is not type(None))
        return None if arm in within else _value(arm, within)
    return sample(hint, within)


if __name__ == "__main__":
    path = FOLDER / f"{sys.argv[1]}.json"
    path.write_text(json.dumps(described(), indent=1, sort_keys=True) + "\n")
    print(f"{path}: {len(described()['messages'])} messages")
