"""The vocabulary: `@message` declares a case class and makes it known by its tag, its name on the wire.

One vocabulary per process. Our own classes are known by their bare name, everybody else's by module and name; a script
that is run is `__main__` to everybody, also where multiprocessing calls it `__mp_main__`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, dataclass_transform

from .attributes import attributes_of
from .errors import UnregisteredMessage
from .whose_code import is_ours

T = TypeVar("T")

if TYPE_CHECKING:
    Message: TypeAlias = Any
    Plain: TypeAlias = Any
else:

    class Message:
        """Annotation for a field that may hold any registered message."""

    class Plain:
        """Annotation for a field of a message that holds plain data."""


CLASSES: dict[str, type] = {}
TAGS: dict[type, str] = {}
"""Both directions of the vocabulary, for the codec, which spares itself a call; others use the functions below."""

_made_plainly: set[type] = set()
_MAKING = {"__init__", "__new__", "__post_init__"}


@dataclass_transform(frozen_default=True)
def message(cls: type[T]) -> type[T]:
    """Class decorator: a frozen, slotted case class that can be sent.

    Fields are typed; the types allowed are the NewTypes of `ids`, bool, int, float, str, bytes, enums, messages, unions
    of messages, `Message`, `Plain`, and `tuple[X, ...]`, `dict[K, V]` and `X | None` of these, by names of their own
    too (a NewType, a `type` statement). Another type is an UnsupportedValue when the first instance is sent.
    """
    plainly = cls.__bases__ == (object,) and type(cls) is type and _MAKING.isdisjoint(attributes_of(cls))
    made: type[T] = dataclass(frozen=True, slots=True)(cls)
    if plainly:
        _made_plainly.add(made)
    register(made, made.__name__ if is_ours(made) else f"{module_name(made)}.{made.__qualname__}")
    return made


def register(cls: type, tag: str) -> None:
    """Make `cls` known under `tag`. The same class twice is fine, another class under a taken tag is a ValueError.

    A class of the same module and name replaces the older one: user code that is reloaded, or shipped by value to a
    process that has it already, is the same class to everybody else.
    """
    known = CLASSES.get(tag)
    if known is not None and _full_name(known) != _full_name(cls):
        raise ValueError(f"message tag {tag!r} belongs to {known.__module__}.{known.__qualname__} already")
    CLASSES[tag] = cls
    TAGS[cls] = tag


def registered_messages(own: bool = True) -> dict[str, type]:
    """All known message classes by tag; with `own=False` only those that users declared."""
    return {tag: cls for tag, cls in sorted(CLASSES.copy().items()) if own or not is_ours(cls)}


def class_of(tag: str) -> type | None:
    """The message class with this tag."""
    return CLASSES.get(tag)


def is_message(cls: type) -> bool:
    """Whether instances of exactly this class can be sent."""
    return cls in TAGS


def is_made_plainly(cls: type) -> bool:
    """Whether making an instance of this class does nothing but fill its fields."""
    return cls in _made_plainly


def tag_of(value: object) -> str:
    """The registered name of a message; raises UnregisteredMessage."""
    try:
        return TAGS[type(value)]
    except KeyError:
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        raise UnregisteredMessage(f"{name} is not a message: declare the class with @message") from None


def module_name(cls: type) -> str:
    """The class's module, by the same name in every process."""
    return "__main__" if cls.__module__ == "__mp_main__" else cls.__module__


def _full_name(cls: type) -> tuple[str, str]:
    return module_name(cls), cls.__qualname__
