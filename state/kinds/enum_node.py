"""EnumNode: members of an enum stand in a snapshot by their values, and the schema says which member had which value.

A member is known by its name. So one whose value has changed, as those of `enum.auto()` do when another is put before
them, is still the same member; one that was given another name is known by its value, as long as no other member had
that name; and of one that is gone nothing is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, Flag
from typing import Any

from .schema_fit import Schema, SchemaMismatch, is_untyped, misfit

_PLAIN = (bool, int, float, str, bytes, type(None))


@dataclass(frozen=True, slots=True)
class EnumNode:
    kind: type[Enum]

    @property
    def schema(self) -> Schema:
        """With the members, where their values can stand in a schema."""
        members = {member.name: member.value for member in self.kind}
        named = {"enum": self.kind.__qualname__}
        return named | {"members": members} if all(map(_is_plain, members.values())) else named

    @property
    def encode(self) -> Callable[[Any], Any]:
        return lambda value: value.value

    def decoder(self, stored: Schema) -> Callable[[Any], Any]:
        if problem := misfit(self.schema, stored):
            raise SchemaMismatch(problem)
        if is_untyped(stored):
            return lambda raw: raw if isinstance(raw, self.kind) else self._member(raw, {})
        were: dict[str, Any] = stored.get("members", {})
        now = self.kind.__members__
        if were and all(name in now and _are_same(now[name].value, value) for name, value in were.items()):
            return self.kind
        if issubclass(self.kind, Flag):
            return lambda raw: self._flag(raw, were)
        return lambda raw: self._member(raw, were)

    def _member(self, raw: Any, were: dict[str, Any]) -> Enum:
        name = next((each for each, value in were.items() if _are_same(value, raw)), None)
        if name is not None and name in self.kind.__members__:
            return self.kind[name]
        try:
            found = self.kind(raw)
        except ValueError as error:
            raise self._gone(name, raw) from error
        if name is not None and found.name in were:
            raise self._gone(name, raw, f", whose value is that of {found.name} now")
        return found

    def _flag(self, raw: int, were: dict[str, int]) -> Enum:
        """Each of its bits by the name that it had."""
        rest, result = raw, 0
        for name, value in were.items():
            if value & raw == value:
                if name not in self.kind.__members__:
                    raise self._gone(name, value)
                rest, result = rest & ~value, result | self.kind[name].value
        try:
            return self.kind(result | rest)
        except ValueError as error:
            raise self._gone(None, raw) from error

    def _gone(self, name: str | None, raw: Any, more: str = "") -> SchemaMismatch:
        kind = self.kind.__qualname__
        was = f"{kind}.{name}" if name else f"a member of {kind}"
        return SchemaMismatch(
            f"a stored value is {was} ({raw!r:.60}){more}, and {kind} has no such member any more: keep it, make its "
            f"name that of another member (as `{name or 'GONE'} = {next(iter(self.kind)).name}` in the class), or "
            "change these values with Savepoint.open(path).edit()"
        )


def _is_plain(value: Any) -> bool:
    return type(value) in _PLAIN or (type(value) is tuple and all(map(_is_plain, value)))


def _are_same(one: Any, other: Any) -> bool:
    """Where 1, True and 1.0 are three values."""
    return type(one) is type(other) and one == other
