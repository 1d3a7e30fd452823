"""The usual case of fields.py, made fast: a reader and a writer per message class, generated as Python source.

What comes from a peer of the same version has exactly the declared fields, in their order, of the very types. That is
all that is read and written here. Anything else raises, whatever the exception, and means no more than "not the usual
case": the codec then goes through fields.py, which judges, and says what is wrong. Nothing is read here that fields.py
refuses, and what both read is equal; tests compare the two.

Maps come as tuples of pairs (`object_pairs_hook=tuple`), so that a key said twice is seen without a call per map.
`room` is how many levels of nesting are left for a value. The functions are source text, not closures, because a
message has few fields and most of its time would go into calls between them.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable
from dataclasses import fields
from enum import Enum
from functools import cache
from typing import Any

from .fields import (
    PRIMITIVES,
    arms_of,
    converter,
    declared,
    is_dict,
    is_enum,
    is_tuple,
    is_union,
    is_union_of_messages,
    may_be_none,
)
from .named_types import meant
from .registry import CLASSES, TAGS, Message, Plain, is_made_plainly

Convert = Callable[[Any, int], Any]


class Unusual(Exception):
    """Not the usual case: for fields.py to judge. It never leaves messages/."""


def usual_to_wire(value: Any, room: int) -> list[Any]:
    """`[tag, {field: value}]`, as `fields.to_wire` makes it; raises anything when that is not as usual."""
    cls = type(value)
    return [TAGS[cls], _WRITERS[cls](value, room - 1)]


def usual_from_wire(raw: Any, room: int) -> Any:
    """The message of `[tag, pairs]`, as `fields.from_wire` makes it; raises anything when that is not as usual."""
    if type(raw) is not list:
        raise Unusual
    tag, pairs = raw
    return _READERS[CLASSES[tag]](pairs, room - 1)


def prepare(classes: Iterable[type]) -> None:
    """Generate now what these classes, and those in their fields, want: whoever forks then does it for all forks."""
    waiting, seen = list(classes), set[type]()
    while waiting:
        cls = waiting.pop()
        if cls not in seen:
            seen.add(cls)
            _WRITERS[cls], _READERS[cls]
            waiting += [inner for _, hint in _fields_of(cls) for inner in _messages_in(hint)]


class _Generated(dict[Any, Convert]):
    """A function per class, generated when it is first looked up: a dict finds the others without a Python call."""

    def __init__(self, generate: Callable[[type], Convert]) -> None:
        super().__init__()
        self._generate = generate

    def __missing__(self, cls: type) -> Convert:
        try:
            made = self._generate(cls)
        except Unusual:
            made = _never
        self[cls] = made
        return made


def _never(_: Any, __: int) -> Any:
    raise Unusual


@cache
def _fields_of(cls: Any) -> tuple[tuple[str, Any], ...]:
    """Name and type of each field. Raises UnsupportedValue."""
    hints = declared(cls)
    return tuple((field.name, meant(hints[field.name])) for field in fields(cls))


class _Source:
    """One function's source while it is put together, and the objects that it names."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls
        self.fields = _fields_of(cls)
        if not all(field.init for field in fields(cls)):
            raise Unusual
        self.names: dict[str, Any] = {"Unusual": Unusual, "READERS": _READERS, "WRITERS": _WRITERS}

    def name(self, thing: Any) -> str:
        """A name for an object in the source."""
        name = f"given_{len(self.names)}"
        self.names[name] = thing
        return name

    def compiled(self, *lines: str) -> Convert:
        """The function of `value` and `room` with this body, which first sees to it that there is room."""
        levels = 1 + max((_levels(hint) for _, hint in self.fields), default=0)
        function: Convert = self.defined("value, room", f"if room < {levels}: raise Unusual", *lines)
        return function

    def defined(self, parameters: str, *lines: str) -> Any:
        """The function of these parameters with this body."""
        body = "\n    ".join(lines)
        source = f"def convert({parameters}):\n    {body}\n"
        exec(compile(source, f"<fields of {self.cls.__qualname__}>", "exec"), self.names)
        return self.names["convert"]


def _inner(hint: Any) -> list[Any]:
    return [meant(argument) for argument in typing.get_args(hint) if argument is not Ellipsis]


def _messages_in(hint: Any) -> list[type]:
    return [hint] if hint in TAGS else [cls for inner in _inner(hint) for cls in _messages_in(inner)]


def _levels(hint: Any) -> int:
    """How deep a field nests by itself; the fields of messages inside it count for themselves."""
    if is_tuple(hint) or is_dict(hint):
        return 1 + max(map(_levels, _inner(hint)))
    if hint is Message or is_union_of_messages(hint):
        return 1
    return max(map(_levels, _inner(hint)), default=0)


def _members(enum: type[Enum]) -> dict[Any, Enum]:
    if not all(type(member.value) in PRIMITIVES for member in enum):
        raise Unusual
    return {member.value: member for member in enum}


# -- writing


def _writer(cls: type) -> Convert:
    source = _Source(cls)
    items = [f"{name!r}: {_written(source, hint, f'value.{name}', 1)}," for name, hint in source.fields]
    return source.compiled("return {", *items, "}")


def _written(source: _Source, hint: Any, value: str, depth: int) -> str:
    """The expression that makes what msgpack carries of a value of this type, `depth` levels inside the message."""
    if hint in PRIMITIVES:
        return value
    if is_enum(hint):
        return f"{value}._value_" if _members(hint) else value
    if hint is Plain:
        return f"{source.name(converter.get_unstructure_hook(Plain))}({value})"
    if hint is Message or is_union_of_messages(hint):
        said = f"{source.name(usual_to_wire)}({value}, room - {depth})"
        return said if hint is Message else f"(None if {value} is None else {said})"
    if is_union(hint):
        return f"(None if {value} is None else {_written(source, arms_of(hint)[0], value, depth)})"
    if is_tuple(hint):
        item = _written(source, _inner(hint)[0], f"item_{depth}", depth + 1)
        return f"[{item} for item_{depth} in {value}]" if item != f"item_{depth}" else f"tuple({value})"
    if is_dict(hint):
        key_hint, item_hint = _inner(hint)
        key = _written(source, key_hint, f"key_{depth}", depth + 1)
        item = _written(source, item_hint, f"item_{depth}", depth + 1)
        return f"{{{key}: {item} for key_{depth}, item_{depth} in {value}.items()}}"
    return f"WRITERS[{source.name(hint)}]({value}, room - {depth})"


# -- reading


def _reader(cls: type) -> Convert:
    source = _Source(cls)
    wanted = [f"key_{at} == {name!r}" for at, (name, _) in enumerate(source.fields)]
    wanted += [check for at, (_, hint) in enumerate(source.fields) if (check := _checked(hint, f"value_{at}"))]
    values = [
        f"value_{at}" if _checked(hint, "") else _read(source, hint, f"value_{at}", 1)
        for at, (_, hint) in enumerate(source.fields)
    ]
    lines, made = _made(source, values)
    return source.compiled(
        f"{''.join(f'(key_{at}, value_{at}), ' for at in range(len(values))) or '()'} = value",
        f"if not ({' and '.join(['type(value) is tuple', *wanted])}): raise Unusual",
        *lines,
        f"return {made}",
    )


def _made(source: _Source, values: list[str]) -> tuple[list[str], str]:
    """The lines that make the message, and the expression that it then is.

    Where its class leaves making it to us, a blank twin that is not frozen takes the values and then becomes the
    message, which takes a quarter of the time of the frozen class's `__init__`.
    """
    names = [name for name, _ in source.fields]
    twin = _twin(source.cls, names)
    if twin is None:
        arguments = ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))
        return [], f"{source.name(source.cls)}({arguments})"
    lines = [
        f"made = {source.name(twin)}()",
        *(f"made.{name} = {value}" for name, value in zip(names, values, strict=True)),
        f"made.__class__ = {source.name(source.cls)}",
    ]
    return lines, "made"


def maker(cls: type) -> Callable[[Iterable[tuple[Any, ...]]], list[Any]]:
    """Makes messages of rows, the values of their fields in order, sooner than the class does. It checks no value."""
    source = _Source(cls)
    values = [f"value_{at}" for at in range(len(source.fields))]
    lines, made = _made(source, values)
    loop = f"for {''.join(f'{each}, ' for each in values) or '()'} in rows:"
    made_all: Callable[[Iterable[tuple[Any, ...]]], list[Any]] = source.defined(
        "rows", "found = []", loop, *(f"    {each}" for each in lines), f"    found.append({made})", "return found"
    )
    return made_all


def _twin(cls: type, names: list[str]) -> type | None:
    if not is_made_plainly(cls):
        return None
    twin: Any = type("Blank", (), {"__slots__": tuple(names)})
    try:
        twin().__class__ = cls
    except TypeError:  # this Python thinks that they are laid out differently
        return None
    return twin  # type: ignore[no-any-return]


def _checked(hint: Any, value: str) -> str:
    """The condition under which a value is taken as it is; "" when it must be read."""
    if hint in PRIMITIVES:
        return f"type({value}) is {hint.__name__}"
    if is_union(hint) and len(arms_of(hint)) == 1 and (inner := _checked(arms_of(hint)[0], value)):
        return f"({value} is None or {inner})"
    return ""


def _read(source: _Source, hint: Any, value: str, depth: int) -> str:
    """The expression that makes a field's value of what msgpack carried, `depth` levels inside the message."""
    if hint in PRIMITIVES:
        return f"{source.name(_primitive_reader(hint))}({value})"
    if is_enum(hint):
        return f"{source.name(_members(hint))}[{value}]"
    if hint is Plain:
        return f"{source.name(converter.get_structure_hook(Plain))}({value}, None)"
    if hint is Message:
        return f"{source.name(usual_from_wire)}({value}, room - {depth})"
    if is_union_of_messages(hint):
        said = f"{source.name(_read_one_of)}({value}, room - {depth}, {source.name(arms_of(hint))})"
        return f"(None if {value} is None else {said})" if may_be_none(hint) else said
    if is_union(hint):
        return f"(None if {value} is None else {_read(source, arms_of(hint)[0], value, depth)})"
    if is_tuple(hint):
        return _read_tuple(source, _inner(hint)[0], value, depth)
    if is_dict(hint):
        key, item = (
            _read(source, inner, f"{what}_in_{depth}", depth + 1)
            for inner, what in zip(_inner(hint), ("key", "item"), strict=True)
        )
        read = f"{{{key}: {item} for key_in_{depth}, item_in_{depth} in {value}}}"
        return f"{source.name(_all_of)}({value}, {read})"
    return f"READERS[{source.name(hint)}]({value}, room - {depth})"


def _read_tuple(source: _Source, hint: Any, value: str, depth: int) -> str:
    if hint in PRIMITIVES:
        return f"{source.name(_tuple_reader(hint))}({value})"
    item = _read(source, hint, f"item_in_{depth}", depth + 1)
    return f"tuple([{item} for item_in_{depth} in {source.name(_list)}({value})])"


def _primitive_reader(wanted: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not wanted:
            raise Unusual
        return value

    return read


def _tuple_reader(wanted: type) -> Callable[[Any], tuple[Any, ...]]:
    def read(value: Any) -> tuple[Any, ...]:
        for item in _list(value):
            if type(item) is not wanted:
                raise Unusual
        return tuple(value)

    return read


def _list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise Unusual
    return value


def _all_of(pairs: Any, read: dict[Any, Any]) -> dict[Any, Any]:
    if type(pairs) is not tuple or len(pairs) != len(read):
        raise Unusual
    return read


def _read_one_of(value: Any, room: int, arms: tuple[type, ...]) -> Any:
    if CLASSES[value[0]] not in arms:
        raise Unusual
    return usual_from_wire(value, room)


_READERS = _Generated(_reader)
_WRITERS = _Generated(_writer)
