"""Case classes and their msgpack codec.

`@message` makes a frozen, slotted dataclass and registers it by name. On the wire a message is
`[tag, {field: value}]`; a field whose type is a message class is written as its map, and a field typed
`Message` (any message at all) carries its own tag.

Decoding trusts nothing: size and depth are bounded, an unknown tag, a missing field or a value of another type is a
`MalformedMessage`. Unknown extra fields are ignored and defaults fill what is missing, so two versions can talk.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, dataclass_transform

import msgpack
from cattrs import Converter
from cattrs.errors import BaseValidationError
from cattrs.gen import make_dict_structure_fn

from .errors import MalformedMessage, UnregisteredMessage
from .plain import Plain, pack_plain, register_record_type, unpack_plain

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""A larger control message is refused on both sides; bulk data goes through channels and storage."""

MAX_DEPTH = 32
"""Nesting of maps and lists; deeper bytes are refused before anything is built from them."""


T = TypeVar("T")

if TYPE_CHECKING:
    Message: TypeAlias = Any
else:

    class Message:
        """Annotation for a field that may hold any registered message."""


_by_tag: dict[str, type] = {}
_tag_of: dict[type, str] = {}


def register(cls: type, tag: str) -> None:
    """Make `cls` known under `tag`. The same class twice is fine, another class under a taken tag is a ValueError.

    A class of the same module and name replaces the older one: user code that is reloaded, or shipped by value to a
    process that has it already, is the same class to everybody else.
    """
    known = _by_tag.get(tag)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise ValueError(f"message tag {tag!r} belongs to {known.__module__}.{known.__qualname__} already")
    _by_tag[tag] = cls
    _tag_of[cls] = tag
    register_record_type(cls, tag)


@dataclass_transform(frozen_default=True)
def message(cls: type[T]) -> type[T]:
    """Class decorator: a frozen, slotted case class that can be sent.

    Our own classes are registered by their bare name, everybody else's by module and name. Fields are typed; the types
    allowed are the NewTypes of `ids`, None, bool, int, float, str, bytes, enums, messages, `Message`, `Plain`, and
    tuples, dicts and optionals of these.
    """
    made: type[T] = dataclass(frozen=True, slots=True)(cls)
    own = made.__module__.partition(".")[0] == "understudy"
    register(made, made.__name__ if own else f"{made.__module__}.{made.__qualname__}")
    return made


def registered_messages(own: bool = True) -> dict[str, type]:
    """All known message classes by tag; with `own=False` only those that users declared."""
    return {tag: cls for tag, cls in sorted(_by_tag.items()) if own or cls.__module__.partition(".")[0] != "understudy"}


def tag_of(value: object) -> str:
    """The registered name of a message; raises UnregisteredMessage."""
    try:
        return _tag_of[type(value)]
    except KeyError:
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        raise UnregisteredMessage(f"{name} is not a message: declare the class with @message") from None


def encode(value: object) -> bytes:
    """One message to bytes; raises UnregisteredMessage, UnsupportedValue, or ValueError when it is too large."""
    data: bytes = msgpack.packb(_tagged(value))
    if len(data) > MAX_MESSAGE_BYTES:
        raise ValueError(f"{tag_of(value)} has {len(data)} bytes; the limit is {MAX_MESSAGE_BYTES}")
    return data


def decode(data: bytes) -> Any:
    """Bytes to one message; every failure is a MalformedMessage that says what was found."""
    if len(data) > MAX_MESSAGE_BYTES:
        raise MalformedMessage(f"{len(data)} bytes; the limit is {MAX_MESSAGE_BYTES}")
    try:
        raw = msgpack.unpackb(data, strict_map_key=False)
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise MalformedMessage(f"not msgpack: {error or type(error).__name__}") from error
    _check_depth(raw)
    try:
        return _structure_tagged(raw, Message)
    except BaseValidationError as error:
        raise MalformedMessage(f"{_first_cause(error)} in {_name_of(raw)}") from error
    except (TypeError, ValueError, KeyError, RecursionError) as error:
        raise MalformedMessage(f"{error} in {_name_of(raw)}") from error


def _tagged(value: object) -> list[Any]:
    return [tag_of(value), _unstructure_fields(value)]


_annotations: dict[type, tuple[tuple[str, Any], ...]] = {}


def _hints(cls: type) -> tuple[tuple[str, Any], ...]:
    known = _annotations.get(cls)
    if known is None:
        hints = typing.get_type_hints(cls)
        known = _annotations[cls] = tuple((f.name, hints[f.name]) for f in fields(cls))
    return known


def _unstructure_fields(value: object) -> dict[str, Any]:
    return {name: _unstructure(getattr(value, name), hint) for name, hint in _hints(type(value))}


def _unstructure(value: Any, hint: Any) -> Any:
    if hint == Plain:
        return pack_plain(value)
    if value is None:
        return None
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        (hint,) = (arm for arm in typing.get_args(hint) if arm is not type(None))
    if hint is Message:
        return _tagged(value)
    origin = typing.get_origin(hint)
    if origin is tuple:
        return [_unstructure(item, typing.get_args(hint)[0]) for item in value]
    if origin is dict:
        inner = typing.get_args(hint)[1]
        return {key: _unstructure(item, inner) for key, item in value.items()}
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return _unstructure_fields(value)
    return value


def _strict(wanted: type[T]) -> Callable[[Any, Any], T]:
    def check(value: Any, _: Any) -> T:
        if type(value) is wanted:
            return value
        if wanted is float and type(value) is int:
            return float(value)  # type: ignore[return-value]
        raise TypeError(f"wanted {wanted.__name__}, found {type(value).__name__} {value!r:.60}")

    return check


def _structure_tagged(raw: Any, _: Any) -> Any:
    if not isinstance(raw, list) or len(raw) != 2 or not isinstance(raw[0], str) or not isinstance(raw[1], dict):
        raise TypeError(f"wanted [tag, fields], found {raw!r:.60}")
    cls = _by_tag.get(raw[0])
    if cls is None:
        raise ValueError(f"unknown message {raw[0]!r:.60}")
    return _converter.structure(raw[1], cls)


def _is_tuple(hint: Any) -> bool:
    return typing.get_origin(hint) is tuple


def _structure_tuple(raw: Any, hint: Any) -> tuple[Any, ...]:
    if not isinstance(raw, list):
        raise TypeError(f"wanted a list, found {type(raw).__name__} {raw!r:.60}")
    inner = typing.get_args(hint)[0]
    return tuple(_converter.structure(item, inner) for item in raw)


def _structure_message(cls: type) -> Callable[[Any, Any], Any]:
    inner: Callable[[Any, Any], Any] = make_dict_structure_fn(cls, _converter)

    def structure(raw: Any, hint: Any) -> Any:
        if not isinstance(raw, dict):
            raise TypeError(f"wanted the fields of {cls.__name__}, found {type(raw).__name__} {raw!r:.60}")
        return inner(raw, hint)

    return structure


def _make_converter() -> Converter:
    converter = Converter()
    for primitive in (bool, int, float, str, bytes):
        converter.register_structure_hook(primitive, _strict(primitive))
    converter.register_structure_hook_func(lambda hint: hint is Message, _structure_tagged)
    converter.register_structure_hook_func(lambda hint: hint == Plain, lambda raw, _: unpack_plain(raw))
    converter.register_structure_hook_func(_is_tuple, _structure_tuple)
    converter.register_structure_hook_factory(is_dataclass, _structure_message)
    return converter


_converter = _make_converter()


def _check_depth(raw: Any) -> None:
    level, depth = [raw], 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            raise MalformedMessage(f"nested deeper than {MAX_DEPTH}")
        level = [
            child
            for item in level
            if isinstance(item, (list, dict))
            for child in (item.values() if isinstance(item, dict) else item)
        ]


def _first_cause(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        notes = getattr(error.exceptions[0], "__notes__", None)
        error = error.exceptions[0]
        if not isinstance(error, BaseExceptionGroup) and notes:
            return f"{error!r} ({notes[0]})"
    return repr(error)


def _name_of(raw: Any) -> str:
    return f"{raw[0]!r:.60}" if isinstance(raw, list) and raw else "message"
