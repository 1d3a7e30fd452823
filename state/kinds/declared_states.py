"""Which states a class declares."""

from __future__ import annotations

from collections.abc import Sequence

from ...messages.attributes import attributes_of
from ..errors import InvalidState
from .state_declaration import StateDeclaration


def declared_states(cls: type) -> dict[str, StateDeclaration]:
    """The declarations of a class and its bases by attribute; what a subclass overrides counts. Raises InvalidState."""
    found: dict[str, StateDeclaration] = {}
    for attribute in _attributes(cls.__mro__):
        declared = getattr(cls, attribute)
        if isinstance(declared, StateDeclaration):
            found[attribute] = declared
    names = [declared.name for declared in found.values()]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InvalidState(
            f"{cls.__qualname__} declares two states named {sorted(twice)[0]!r}: give each a "
            "declaration, and a name, of its own"
        )
    for attribute, declared in found.items():
        if again := set(declared.former_names) & {each for each in names if each != declared.name}:
            raise InvalidState(
                f"{cls.__qualname__}.{attribute} was formerly {sorted(again)[0]!r}, and another state has that name now"
            )
    _unshared(found, cls)
    return found


def _unshared(found: dict[str, StateDeclaration], cls: type) -> None:
    """What is stored under a name goes to one state."""
    taken: dict[str, str] = {}
    for attribute, declared in found.items():
        for name in dict.fromkeys(declared.former_names):
            if name in taken:
                raise InvalidState(
                    f"{cls.__qualname__}.{taken[name]} and {cls.__qualname__}.{attribute} were both formerly {name!r}, "
                    "and only one of them would find its values: leave it to one, and fill the other from that"
                )
            taken[name] = attribute


def _attributes(classes: Sequence[type]) -> list[str]:
    """Attributes that hold a declaration in some class of an MRO, bases first, in order of declaration."""
    held = (
        attribute
        for cls in reversed(classes)
        for attribute, value in attributes_of(cls).items()
        if isinstance(value, StateDeclaration)
    )
    return list(dict.fromkeys(held))
