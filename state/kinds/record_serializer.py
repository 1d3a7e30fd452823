"""Serialisers for Python records, by declared type, with a schema that is written into every snapshot.

A `TypeNode` turns values of one declared type into plain data (see messages/plain.py) and back. Its `schema` stands
in the snapshot; `decoder(stored_schema)` says what becomes of a value written under another schema: read as it is
(*compatible*), converted (*migrated*), or refused with `SchemaMismatch`, which the caller turns into a
StateIncompatible that names the state. Which it is, schema_fit.py says from the two schemas alone.

Records are dataclasses, named tuples, attrs classes and Pydantic models. They are known by class name, so a class may
move to another module. A class with a serializer of the user's own (messages/serializers.py) is written by that. Flink:
TypeSerializerSnapshot, PojoSerializer's schema evolution.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeAlias

from ...messages import (
    RecordShape,
    Serializer,
    UnsupportedValue,
    find_serializer,
    pack_plain,
    serializer_for,
    shape_of,
)
from ...messages.named_types import meant_by
from .enum_node import EnumNode
from .schema_fit import Schema, SchemaMismatch, is_untyped, misfit, stored_field, values_of
from .type_texts import one_spelling

Convert: TypeAlias = Callable[[Any], Any] | None
"""None stands for "as it is", which is the fast path of all plain types."""


class TypeNode(Protocol):
    """One declared type."""

    @property
    def schema(self) -> Schema: ...

    @property
    def encode(self) -> Convert:
        """Value to plain data."""

    def decoder(self, stored: Schema) -> Convert:
        """Plain data written under `stored` to a value; raises SchemaMismatch."""


def node_of(hint: Any, serializer: Serializer | str | None = None, within: tuple[Any, ...] = ()) -> TypeNode:
    """The node of a type as in an annotation. `within`: the records and names around it; a recursive one is plain
    inside.
    """
    if serializer is not None:
        return CustomNode(type_name(hint), find_serializer(serializer))
    if (meant := meant_by(hint)) is not hint and hint not in within:
        return node_of(meant, within=(*within, hint))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        return ListNode(node_of(arguments[0], within=within))
    if origin is dict:
        return MapNode(node_of(arguments[0], within=within), node_of(arguments[1], within=within))
    if origin in (typing.Union, types.UnionType) and len(arguments) == 2 and type(None) in arguments:
        (inner,) = (argument for argument in arguments if argument is not type(None))
        return OptionalNode(node_of(inner, within=within))
    if isinstance(hint, type) and hint not in within and origin is None:
        if (registered := serializer_for(hint)) is not None:
            return CustomNode(type_name(hint), registered)
        if issubclass(hint, Enum):
            return EnumNode(hint)
        if (shape := shape_of(hint)) is not None:
            return RecordNode.of(hint, shape, (*within, hint))
    return PlainNode(type_name(hint))


def type_name(hint: Any) -> str:
    """How a type is called in schemas and error texts."""
    if isinstance(hint, type) and typing.get_origin(hint) is None:
        return hint.__qualname__
    return one_spelling(str(hint).replace("typing.", ""))


def declared_schema(node: TypeNode) -> Schema:
    """The schema that stored values are held against: the node's own, and what else it can make its values of."""
    return getattr(node, "declared", node.schema)


def _check_fit(declared: Schema, stored: Schema) -> None:
    if problem := misfit(declared, stored):
        raise SchemaMismatch(problem)


def _exact_float(value: Any) -> float:
    """Of an int. Not every one beyond 2**53 is a float."""
    if (magnitude := abs(value)) > _EXACT and (magnitude > _LARGEST or int(float(value)) != value):
        bits = magnitude.bit_length()
        shown = value if bits <= _SHOWN_BITS else f"of {bits} bits"
        raise SchemaMismatch(
            f"the int {shown} is no float, and would lose digits: leave the type int, or change such values with "
            "Savepoint.open(path).edit()"
        )
    return float(value)


_EXACT, _LARGEST, _SHOWN_BITS = 2**53, int(sys.float_info.max), 128

_WIDEN: dict[str, Convert] = {"int": int, "float": _exact_float}
"""How a plain type that is wider than the stored one converts its values."""


_PLAIN: dict[str, type | tuple[type, ...]] = {
    **{kind.__name__: kind for kind in (bool, int, str, bytes, list, dict, tuple, set, frozenset)},
    "float": (float, int),
}
"""The types that a value of a plain type may have."""


def _checked(kind: type | tuple[type, ...], convert: Convert = None) -> Callable[[Any], Any]:
    """Converts a value that was stored as Any, if it is of this kind; else it raises SchemaMismatch."""

    def checked(value: Any) -> Any:
        if not isinstance(value, kind):
            wanted = " or ".join(each.__name__ for each in (kind if isinstance(kind, tuple) else (kind,)))
            raise SchemaMismatch(f"found {value!r:.80}, which was stored as Any, wanted {wanted}")
        return convert(value) if convert is not None else value

    return checked


@dataclass(frozen=True, slots=True)
class PlainNode:
    """A type that plain data carries by itself."""

    schema: str
    encode: Convert = None

    def decoder(self, stored: Schema) -> Convert:
        _check_fit(self.schema, stored)
        if stored == self.schema or self.schema not in _PLAIN:
            return None
        return _checked(_PLAIN[self.schema], _WIDEN.get(self.schema)) if is_untyped(stored) else _WIDEN.get(self.schema)


@dataclass(frozen=True, slots=True)
class ListNode:
    item: TypeNode

    @property
    def schema(self) -> Schema:
        return {"list": self.item.schema}

    @property
    def declared(self) -> Schema:
        return {"list": declared_schema(self.item)}

    @property
    def encode(self) -> Convert:
        return _each(self.item.encode)

    def decoder(self, stored: Schema) -> Convert:
        _check_fit(self.declared, stored)
        if is_untyped(stored):
            return _checked(list, _each(self.item.decoder(stored)))
        return _each(self.item.decoder(stored["list"]))


@dataclass(frozen=True, slots=True)
class MapNode:
    key: TypeNode
    value: TypeNode

    @property
    def schema(self) -> Schema:
        return {"map": [self.key.schema, self.value.schema]}

    @property
    def declared(self) -> Schema:
        return {"map": [declared_schema(self.key), declared_schema(self.value)]}

    @property
    def encode(self) -> Convert:
        of_key = self.key.encode
        return _each_pair(of_key and (lambda key: _frozen(of_key(key))), self.value.encode)

    def decoder(self, stored: Schema) -> Convert:
        _check_fit(self.declared, stored)
        if is_untyped(stored):
            return _checked(dict, _each_pair(self.key.decoder(stored), self.value.decoder(stored)))
        key, value = stored["map"]
        return _each_pair(self.key.decoder(key), self.value.decoder(value))


@dataclass(frozen=True, slots=True)
class OptionalNode:
    inner: TypeNode

    @property
    def schema(self) -> Schema:
        return {"optional": self.inner.schema}

    @property
    def encode(self) -> Convert:
        return _unless_none(self.inner.encode)

    def decoder(self, stored: Schema) -> Convert:
        _check_fit(self.schema, stored)
        optional = isinstance(stored, dict) and "optional" in stored
        return _unless_none(self.inner.decoder(stored["optional"] if optional else stored))


@dataclass(frozen=True, slots=True)
class MadeNode:
    """Values that an operator of ours has made by these rules: see StateDeclaration.made_by."""

    inner: TypeNode
    made_by: Mapping[str, str]

    @property
    def schema(self) -> Schema:
        return {"made by": dict(self.made_by), "values": self.inner.schema}

    @property
    def declared(self) -> Schema:
        return {"made by": dict(self.made_by), "values": declared_schema(self.inner)}

    @property
    def encode(self) -> Convert:
        return self.inner.encode

    def decoder(self, stored: Schema) -> Convert:
        _check_fit(self.declared, stored)
        return self.inner.decoder(values_of(stored))


@dataclass(frozen=True, slots=True)
class MigratingNode:
    """Values that may have been stored as another type, from which a function of the user's makes those of today."""

    inner: TypeNode
    earlier: tuple[tuple[TypeNode, Callable[[Any], Any]], ...]

    @property
    def schema(self) -> Schema:
        return self.inner.schema

    @property
    def declared(self) -> Schema:
        earlier = [declared_schema(node) for node, _ in self.earlier]
        return {"migrates": earlier, "values": declared_schema(self.inner)}

    @property
    def encode(self) -> Convert:
        return self.inner.encode

    def decoder(self, stored: Schema) -> Convert:
        is_meant = is_untyped(stored) and any(is_untyped(node.schema) for node, _ in self.earlier)
        if not is_meant and not misfit(declared_schema(self.inner), stored):
            return self.inner.decoder(stored)
        for node, migrate in self.earlier:
            if not misfit(declared_schema(node), stored):
                return _migrating(node.decoder(stored), migrate)
        _check_fit(self.declared, stored)
        raise AssertionError("it fits none of them")


@dataclass(frozen=True, slots=True)
class CustomNode:
    """Values as the bytes that a user's serialiser makes."""

    type_name: str
    serializer: Serializer

    @property
    def schema(self) -> Schema:
        return {"serializer": self.serializer.name, "version": self.serializer.version, "type": self.type_name}

    @property
    def encode(self) -> Convert:
        return self.serializer.serialize

    def decoder(self, stored: Schema) -> Convert:
        _check_fit(self.schema, stored)
        version: int = stored["version"]
        deserialize = self.serializer.deserialize
        return lambda data: deserialize(data, version)


@dataclass(frozen=True, slots=True)
class RecordNode:
    """A record, as the list of its fields' values in the schema's order, and then what it holds beside its fields."""

    kind: type
    shape: RecordShape
    nodes: dict[str, TypeNode]

    @classmethod
    def of(cls, kind: type, shape: RecordShape, within: tuple[type, ...]) -> RecordNode:
        hints = hints_of(kind)
        return cls(kind, shape, {name: node_of(hints.get(name, Any), within=within) for name in shape.fields})

    @property
    def schema(self) -> Schema:
        own = {name: node.schema for name, node in self.nodes.items()}
        schema = {"record": self.kind.__qualname__, "fields": own, "defaults": sorted(self.shape.optional)}
        formerly = former_names_of(self.kind)
        return schema | {"formerly": formerly} if formerly else schema

    @property
    def encode(self) -> Convert:
        steps = [(name, node.encode) for name, node in self.nodes.items()]
        beside = self.shape.beside

        def encode(value: Any) -> list[Any]:
            if type(value) is not self.kind:
                raise UnsupportedValue(
                    f"a {type(value).__qualname__} was put where {self.kind.__qualname__} is declared"
                )
            parts = [convert(getattr(value, name)) if convert else getattr(value, name) for name, convert in steps]
            if beside is not None and (more := beside(value)) is not None:
                parts.append(more)
            return parts

        return encode

    def decoder(self, stored: Schema) -> Convert:
        _check_fit(self.schema, stored)
        if is_untyped(stored):
            return _checked(self.kind)
        kept = list(stored["fields"])
        declared = self.schema
        there = {name: stored_field(declared, stored, name) for name in self.nodes}
        steps = [
            (kept.index(was), name, self.nodes[name].decoder(stored["fields"][was]))
            for name, was in there.items()
            if was is not None
        ]
        make, has_more = self.shape.make, self.shape.beside is not None

        def decode(raw: Any) -> Any:
            beside = raw[len(kept)] if has_more and len(raw) > len(kept) else None
            return make({name: step(raw[at]) if step else raw[at] for at, name, step in steps}, beside)

        return decode


def former_names_of(kind: type) -> dict[str, list[str]]:
    """What `__formerly__` of a record's class says: by field, or "class", the names that it had before."""
    formerly = vars(kind).get("__formerly__", {})
    return {name: [each] if isinstance(each, str) else list(each) for name, each in formerly.items()}


def _migrating(decode: Convert, migrate: Callable[[Any], Any]) -> Convert:
    def made(raw: Any) -> Any:
        value = raw if decode is None else decode(raw)
        try:
            return migrate(value)
        except SchemaMismatch:
            raise
        except Exception as error:
            raise SchemaMismatch(f"migrating {value!r:.80} raised {type(error).__name__}: {error}") from error

    return made


def hints_of(kind: type) -> dict[str, Any]:
    """The annotations of a record; none where they cannot be resolved here: then its values are taken as plain."""
    try:
        return typing.get_type_hints(kind)
    except Exception:  # noqa: BLE001 - an annotation is an expression of the user's, perhaps for type checkers only
        return {}


def _each(convert: Convert) -> Convert:
    return None if convert is None else lambda items: [convert(item) for item in items]


def _each_pair(key: Convert, value: Convert) -> Convert:
    if key is None and value is None:
        return None
    of_key, of_value = key or _same, value or _same
    return lambda pairs: {of_key(k): of_value(v) for k, v in pairs.items()}


def _frozen(raw: Any) -> Any:
    """Plain data of a key, which can be one again: a record is a list of its fields."""
    return tuple(map(_frozen, raw)) if isinstance(raw, list | tuple) else raw


def _unless_none(convert: Convert) -> Convert:
    return None if convert is None else lambda value: None if value is None else convert(value)


def _same(value: Any) -> Any:
    return value


def packed_schema(schema: Schema) -> bytes:
    """A schema as bytes, equal for equal schemas."""
    return pack_plain(schema)
