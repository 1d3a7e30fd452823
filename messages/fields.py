"""How the fields of messages are carried: the cattrs converter, strict in what it takes.

Towards the wire a message becomes a map of its fields, and a field that may hold one of several messages becomes
`[tag, {field: value}]`. From the wire, every value must be of the very type that the field declares (an int will do for
a float). Extra fields are ignored, and defaults fill what is missing, so two versions can talk.
"""

from __future__ import annotations

import reprlib
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from enum import Enum
from typing import Any, TypeVar

from cattrs import Converter
from cattrs.errors import BaseValidationError, IterableValidationError, IterableValidationNote
from cattrs.gen import make_dict_structure_fn, make_dict_unstructure_fn

from .errors import MalformedMessage, UnsupportedValue
from .named_types import meant
from .registry import Message, Plain, class_of, is_message, tag_of

T = TypeVar("T")
Read = Callable[[Any, Any], Any]
"""From the wire: the raw value and the declared type to the value, as cattrs calls it."""

PRIMITIVES = (bool, int, float, str, bytes)

_DEEPEST = 32
"""How many names may stand within each other."""

converter = Converter()


def to_wire(value: object) -> list[Any]:
    """`[tag, {field: value}]`, of what msgpack carries. Raises a MessageError, or whatever a wrong value raises."""
    return [tag_of(value), converter.unstructure(value)]


def from_wire(raw: Any) -> Any:
    """The message of `[tag, {field: value}]`. Raises MalformedMessage, saying which field; UnsupportedValue."""
    cls = _class_said(raw)
    try:
        return converter.get_structure_hook(cls)(raw[1], cls)
    except BaseValidationError as error:
        path, cause = _first_cause(error)
        raise MalformedMessage(f"{raw[0]}{path}: {_text_of(cause)}") from error


def found(value: Any) -> str:
    """A value as error texts show it: its type and its beginning."""
    return f"{type(value).__name__} {reprlib.repr(value)[:60]}"


def _class_said(raw: Any) -> type:
    if not (type(raw) is list and len(raw) == 2 and type(raw[0]) is str and type(raw[1]) is dict):
        raise MalformedMessage(f"wanted [tag, fields], found {found(raw)}")
    cls = class_of(raw[0])
    if cls is None:
        raise MalformedMessage(
            f"unknown message {reprlib.repr(raw[0])}: no module that this process has imported defines it"
        )
    return cls


def _first_cause(error: BaseException) -> tuple[str, BaseException]:
    """The first thing wrong and the path to it, as in `.deployment.inputs[0].edge`."""
    path = ""
    while True:
        for note in getattr(error, "__notes__", ()):
            if isinstance(note, IterableValidationNote):
                path += f"[{reprlib.repr(note.index)}]"
            elif (name := getattr(note, "name", None)) is not None:
                path += f".{name}"
        if not isinstance(error, BaseValidationError):
            return path, error
        error = error.exceptions[0]


def _text_of(cause: BaseException) -> str:
    return "is missing" if isinstance(cause, KeyError) else str(cause) or type(cause).__name__


# -- what may be declared


def declared(cls: type) -> dict[str, Any]:
    """The types of its fields by their names. Raises UnsupportedValue for one that no message can have."""
    try:
        hints = typing.get_type_hints(cls)
    except NameError as error:
        raise UnsupportedValue(f"the annotations of message {cls.__qualname__} cannot be resolved: {error}") from error
    for name, hint in hints.items():
        if not _is_carried(hint):
            raise UnsupportedValue(f"{cls.__qualname__}.{name}: messages have no fields of type {hint}; see @message")
    return hints


def _is_carried(hint: Any, within: tuple[Any, ...] = ()) -> bool:
    """`within`: the names around it. One that stands in itself has no end, and is not carried."""
    if (named := meant(hint)) is not hint:
        if hint in within or len(within) == _DEEPEST:
            return False
        hint, within = named, (*within, hint)
    arguments = typing.get_args(hint)
    if is_union(hint):
        arms = arms_of(hint)
        return _is_carried(arms[0], within) if len(arms) == 1 else all(map(is_message, arms))
    if is_tuple(hint):
        return len(arguments) == 2 and arguments[1] is Ellipsis and _is_carried(arguments[0], within)
    if is_dict(hint):
        return len(arguments) == 2 and all(_is_carried(argument, within) for argument in arguments)
    return hint in (*PRIMITIVES, Message, Plain) or (isinstance(hint, type) and (is_enum(hint) or is_message(hint)))


def is_union(hint: Any) -> bool:
    return isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union


def arms_of(hint: Any) -> tuple[Any, ...]:
    """The types of a union but for None; names and unions within it are resolved."""
    return tuple(arm for arm in _arms(hint) if arm is not type(None))


def may_be_none(hint: Any) -> bool:
    return type(None) in _arms(hint)


def _arms(hint: Any) -> list[Any]:
    if not is_union(hint := meant(hint)):
        return [hint]
    return list(dict.fromkeys(arm for inner in typing.get_args(hint) for arm in _arms(inner)))


def is_union_of_messages(hint: Any) -> bool:
    return is_union(hint) and len(arms_of(hint)) > 1


def _is_named(hint: Any) -> bool:
    return meant(hint) is not hint


def is_tuple(hint: Any) -> bool:
    return typing.get_origin(hint) is tuple


def is_dict(hint: Any) -> bool:
    return typing.get_origin(hint) is dict


def is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Enum)


# -- how each kind is read and written


def _expect(wanted: type, value: Any) -> None:
    if type(value) is not wanted:
        raise TypeError(f"wanted {wanted.__name__}, found {found(value)}")


def _read_primitive(wanted: type[T]) -> Callable[[Any, Any], T]:
    def read(value: Any, _: Any) -> T:
        if type(value) is not wanted:
            _expect(wanted, value)
        return value  # type: ignore[no-any-return]

    return read


def _read_float(value: Any, _: Any) -> float:
    if type(value) is not int:
        _expect(float, value)
    return float(value)


def _read_enum(value: Any, wanted: type[Enum]) -> Enum:
    try:
        return wanted(value)
    except (ValueError, TypeError):
        raise TypeError(f"wanted a {wanted.__name__}, found {found(value)}") from None


def _tuple_reader(hint: Any) -> Read:
    inner = typing.get_args(hint)[0]
    read = converter.get_structure_hook(inner)
    fast = {meant(inner)}.intersection(PRIMITIVES)  # values of this very type need no reading

    def read_tuple(raw: Any, _: Any) -> tuple[Any, ...]:
        _expect(list, raw)
        if set(map(type, raw)) == fast:
            return tuple(raw)
        items: list[Any] = []
        try:
            for item in raw:
                items.append(read(item, inner))  # noqa: PERF401 - how many were read tells which one was wrong
        except Exception as error:
            raise _at(len(items), error, hint) from error
        return tuple(items)

    return read_tuple


def _dict_reader(hint: Any) -> Read:
    key_type, value_type = typing.get_args(hint)
    read_key, read_value = converter.get_structure_hook(key_type), converter.get_structure_hook(value_type)

    def read_dict(raw: Any, _: Any) -> dict[Any, Any]:
        _expect(dict, raw)
        items: dict[Any, Any] = {}
        for key, item in raw.items():
            try:
                items[read_key(key, key_type)] = read_value(item, value_type)
            except Exception as error:
                raise _at(key, error, hint) from error
        return items

    return read_dict


def _at(index: Any, error: Exception, hint: Any) -> IterableValidationError:
    error.add_note(IterableValidationNote("", index, hint))
    return IterableValidationError("in a collection", [error], hint)


def _message_reader(cls: type) -> Read:
    declared(cls)
    inner: Read = make_dict_structure_fn(cls, converter)

    def read_message(raw: Any, hint: Any) -> Any:
        if type(raw) is not dict:
            raise TypeError(f"wanted the fields of {cls.__name__}, found {found(raw)}")
        return inner(raw, hint)

    return read_message


def _message_writer(cls: type) -> Callable[[Any], Mapping[str, Any]]:
    declared(cls)
    return make_dict_unstructure_fn(cls, converter)


def _read_any_message(raw: Any, _: Any) -> Any:
    cls = _class_said(raw)
    return converter.get_structure_hook(cls)(raw[1], cls)


def _union_reader(hint: Any) -> Read:
    arms, takes_none = arms_of(hint), may_be_none(hint)

    def read_one_of(raw: Any, _: Any) -> Any:
        if raw is None and takes_none:
            return None
        if (cls := _class_said(raw)) not in arms:
            raise TypeError(f"wanted one of {', '.join(arm.__name__ for arm in arms)}, found {raw[0]}")
        return converter.get_structure_hook(cls)(raw[1], cls)

    return read_one_of


def _named_reader(hint: Any) -> Read:
    inner = meant(hint)
    read: Read = converter.get_structure_hook(inner)
    return lambda raw, _: read(raw, inner)


def _named_writer(hint: Any) -> Callable[[Any], Any]:
    return converter.get_unstructure_hook(meant(hint))


def _write_any_message(value: Any) -> list[Any] | None:
    return None if value is None else to_wire(value)


def _set_up() -> None:
    """Of several hooks that fit a type, cattrs takes the one registered last."""
    for primitive in (bool, int, str, bytes):
        converter.register_structure_hook(primitive, _read_primitive(primitive))
    converter.register_structure_hook(float, _read_float)
    converter.register_structure_hook_func(is_enum, _read_enum)
    converter.register_structure_hook_factory(is_tuple, _tuple_reader)
    converter.register_structure_hook_factory(is_dict, _dict_reader)
    converter.register_structure_hook_factory(is_dataclass, _message_reader)
    converter.register_unstructure_hook_factory(is_dataclass, _message_writer)
    converter.register_structure_hook_factory(is_union_of_messages, _union_reader)
    converter.register_structure_hook_func(lambda hint: hint is Message, _read_any_message)
    converter.register_structure_hook_factory(_is_named, _named_reader)
    converter.register_unstructure_hook_factory(_is_named, _named_writer)
    for is_tagged in (is_union_of_messages, lambda hint: hint is Message):
        converter.register_unstructure_hook_func(is_tagged, _write_any_message)


_set_up()
