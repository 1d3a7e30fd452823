"""StoredType: values as a snapshot holds them, and as data without the user's classes; by the schema in the snapshot.

A record is a dict of its fields, a member of an enum its value, and what a serializer of the user's wrote stays bytes.
All else is the value itself. The way back checks each value, so that no edit stores what a job could not read.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any, Protocol

from ...messages import shape_of
from ...state.kinds.record_serializer import Convert
from ...state.kinds.schema_fit import Schema, schema_text


class NoSuchValue(ValueError):
    """A value that this type does not hold; the text says why."""


class StoredType(Protocol):
    """One type, as a schema describes it."""

    @property
    def decode(self) -> Convert:
        """Stored plain data to data; None: it is the same."""
        ...

    def encode(self, value: Any) -> Any:
        """Data to what is stored. Raises NoSuchValue."""
        ...


def stored_type(schema: Schema) -> StoredType:
    match schema:
        case {"ttl": inner} | {"values": inner}:
            return stored_type(inner)
        case {"list": inner}:
            return ListType(stored_type(inner))
        case {"map": [key, value]}:
            return MapType(stored_type(key), stored_type(value))
        case {"optional": inner}:
            return OptionalType(stored_type(inner))
        case {"record": name, "fields": fields}:
            types = {field: stored_type(each) for field, each in fields.items()}
            return RecordType(name, types)
        case {"serializer": _}:
            return PlainType("bytes", (bytes,))
        case str():
            return PlainType(schema, _TAKES.get(schema))
    return PlainType(schema_text(schema), None)


_TAKES: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "str": (str,),
    "bytes": (bytes,),
    "tuple": (tuple,),
    "list": (list,),
    "dict": (dict,),
}
"""The classes whose values a plain type takes; any for others."""


class PlainType:
    """What plain data carries by itself."""

    decode: Convert = None

    def __init__(self, name: str, takes: tuple[type, ...] | None) -> None:
        self.name = name
        self._takes = takes

    def encode(self, value: Any) -> Any:
        if self._takes is not None and not isinstance(value, self._takes):
            raise NoSuchValue(f"wanted {self.name}, found {type(value).__name__} {value!r:.60}")
        return float(value) if self.name == "float" else value


class ListType:
    def __init__(self, item: StoredType) -> None:
        self.item = item

    @property
    def decode(self) -> Convert:
        convert = self.item.decode
        return None if convert is None else lambda items: [convert(item) for item in items]

    def encode(self, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise NoSuchValue(f"wanted a list, found {type(value).__name__} {value!r:.60}")
        return [self.item.encode(item) for item in value]


class MapType:
    def __init__(self, key: StoredType, value: StoredType) -> None:
        self.key, self.value = key, value

    @property
    def decode(self) -> Convert:
        key, value = self.key.decode, self.value.decode
        if key is None and value is None:
            return None
        of_key, of_value = key or _same, value or _same
        return lambda pairs: {of_key(k): of_value(v) for k, v in pairs.items()}

    def encode(self, value: Any) -> Any:
        return {self.key.encode(k): self.value.encode(v) for k, v in mapping_of(value).items()}


def mapping_of(value: Any) -> dict[Any, Any]:
    """A dict, or one that is given as pairs, as Arrow gives a map back. Raises NoSuchValue."""
    with suppress(TypeError, ValueError):
        if isinstance(value, dict | list):
            return dict(value)
    raise NoSuchValue(f"wanted a dict, found {type(value).__name__} {value!r:.60}")


class OptionalType:
    def __init__(self, inner: StoredType) -> None:
        self.inner = inner

    @property
    def decode(self) -> Convert:
        convert = self.inner.decode
        return None if convert is None else lambda value: None if value is None else convert(value)

    def encode(self, value: Any) -> Any:
        return None if value is None else self.inner.encode(value)


class RecordType:
    """A record: stored as the list of its fields' values, and what it holds beside them."""

    BESIDE = "beside its fields"
    """The key of what a record holds that its class declares no field for."""

    def __init__(self, name: str, fields: dict[str, StoredType]) -> None:
        self.name, self.fields = name, fields

    @property
    def decode(self) -> Convert:
        steps: list[tuple[str, Callable[[Any], Any]]] = [
            (name, each.decode or _same) for name, each in self.fields.items()
        ]

        def decode(raw: Any) -> dict[str, Any]:
            found = {name: step(part) for (name, step), part in zip(steps, raw, strict=False)}
            if len(raw) > len(steps):
                found[self.BESIDE] = raw[len(steps)]
            return found

        return decode

    def encode(self, value: Any) -> Any:
        own = self._taken_apart(value)
        if not isinstance(own, dict):
            raise NoSuchValue(f"wanted a dict of {self.name}'s fields, found {type(value).__name__} {value!r:.60}")
        if missing := [name for name in self.fields if name not in own]:
            raise NoSuchValue(f"{self.name}: {', '.join(map(repr, missing))} is missing in {value!r:.80}")
        if strange := own.keys() - self.fields.keys() - {self.BESIDE}:
            raise NoSuchValue(f"{self.name} has no field {', '.join(map(repr, sorted(strange, key=str)))}")
        parts = [each.encode(own[name]) for name, each in self.fields.items()]
        return [*parts, own[self.BESIDE]] if self.BESIDE in own else parts

    def _taken_apart(self, value: Any) -> Any:
        """A record as a dict, as `decode` gives it; what is none as it is."""
        if isinstance(value, dict):
            return value
        if (shape := shape_of(type(value))) is None:
            return getattr(value, "__dict__", value)
        beside = None if shape.beside is None else shape.beside(value)
        return shape.values(value) | ({} if beside is None else {self.BESIDE: beside})


def _same(value: Any) -> Any:
    return value


def hashable(value: Any) -> Hashable:
    """The value, or where it is a record as data something that is equal where that is."""
    try:
        hash(value)
    except TypeError:
        if isinstance(value, tuple):
            return tuple(map(hashable, value))
        if isinstance(value, dict):
            return tuple((key, hashable(each)) for key, each in value.items())
        return repr(value)
    found: Hashable = value
    return found
