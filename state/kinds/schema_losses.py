"""What is lost of values that fit: fields that nobody takes, beside new ones with defaults, and members of enums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .schema_fit import Schema, stored_field


def losses(declared: Schema, stored: Schema) -> Iterator[str]:
    """In sentences."""
    match declared, stored:
        case {"values": inner, **rest}, _ if "record" not in rest:
            yield from losses(inner, stored)
        case _, {"ttl": inner} | {"values": inner}:
            yield from losses(declared, inner)
        case {"list": item}, {"list": stored_item}:
            yield from losses(item, stored_item)
        case {"map": [key, value]}, {"map": [stored_key, stored_value]}:
            yield from losses(key, stored_key)
            yield from losses(value, stored_value)
        case {"optional": inner}, {"optional": stored_inner}:
            yield from losses(inner, stored_inner)
        case {"ttl": inner} | {"optional": inner}, _:
            yield from losses(inner, stored)
        case {"enum": name, "members": members}, {"enum": _, "members": were}:
            yield from _members(name, members, were)
        case {"record": _}, {"record": _}:
            yield from _fields(declared, stored)


def _members(name: str, now: dict[str, Any], were: dict[str, Any]) -> Iterator[str]:
    gone = [each for each, value in were.items() if each not in now and value not in now.values()]
    if gone:
        yield (
            f"{name} has no member {', '.join(gone)} any more: a stored value that is one fails the restore; keep it, "
            "or make its name that of another member"
        )


def _fields(declared: dict[str, Any], stored: dict[str, Any]) -> Iterator[str]:
    found = {name: stored_field(declared, stored, name) for name in declared["fields"]}
    gone = [name for name in stored["fields"] if name not in found.values()]
    new = [name for name, there in found.items() if there is None]
    if gone and new:
        yield (
            f"{declared['record']} takes no field {', '.join(gone)} of the savepoint, whose values are forgotten, and "
            f"{', '.join(new)} begins with its default: a field that has another name now says so in the class, as "
            f"__formerly__ = {{{new[0]!r}: {gone[0]!r}}}"
        )
    for name, there in found.items():
        if there is not None:
            yield from losses(declared["fields"][name], stored["fields"][there])
