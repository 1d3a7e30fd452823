"""Names with an underscore that our bases use for themselves, and that a user's subclass must not take.

Python lets a subclass replace them silently: a sink of a user's that keeps `self._pending` would lose what its base
keeps there. Names with two underscores are the class's own, by Python's rule, and are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from types import CodeType, FunctionType
from typing import Any

from ...messages.attributes import attributes_of
from ...messages.code_steps import inner_codes, placed_steps
from ...messages.own_annotations import own_annotations
from ...messages.whose_code import is_ours
from .errors import InvalidOperator


def check_private_names(kind: type[Any]) -> None:
    """Raises InvalidOperator for a class of a user's that defines or assigns a private name of a base of ours."""
    for place, each in enumerate(kind.__mro__):
        if not is_ours(each):
            ours = [base for base in kind.__mro__[place + 1 :] if is_ours(base)]
            for base in ours:
                for name in sorted(_taken_by(each) & _taken_by(base)):
                    named = next(known for known in ours if issubclass(known, base))  # the one that the user wrote
                    raise InvalidOperator(
                        f"{each.__name__} uses the name {name!r}, which its base {named.__name__} keeps something of "
                        f"its own in: name it differently, for example `{_other(name, each)}`"
                    )


def _other(name: str, kind: type[Any]) -> str:
    return f"_{kind.__name__.strip('_').lower()}{name}"


@cache
def _taken_by(kind: type[Any]) -> frozenset[str]:
    """The private names that the class itself defines, declares, or assigns in its methods."""
    names = {*attributes_of(kind), *own_annotations(kind)}
    for value in attributes_of(kind).values():
        names.update(name for name, _ in assigned(value))
    return frozenset(name for name in names - _set_by_us(kind) if name.startswith("_") and not _is_its_own(name, kind))


def _set_by_us(kind: type[Any]) -> set[str]:
    """What a base of ours, or Python, sets on each subclass."""
    hooks = [vars(each).get("__init_subclass__") for each in kind.__mro__ if is_ours(each)]
    return {
        "_abc_impl",
        "_is_protocol",
        "_is_runtime_protocol",
        *(name for hook in hooks for name, _ in assigned(hook)),
    }


def _is_its_own(name: str, kind: type[Any]) -> bool:
    """One with two underscores, as it is written or as Python mangles it: `_Orders__pending`."""
    return name.startswith("__") or any(name.startswith(f"_{each.__name__.lstrip('_')}__") for each in kind.__mro__)


def assigned(value: Any) -> Iterator[tuple[str, str]]:
    """What a function, method or property assigns to attributes of its first argument, and where: `file:line`."""
    function = getattr(value, "fget", None) or getattr(value, "func", None) or getattr(value, "__func__", value)
    if isinstance(function, FunctionType) and function.__code__.co_argcount:
        yield from _assigned_in(function.__code__, function.__code__.co_varnames[0])


def _assigned_in(code: CodeType, itself: str) -> Iterator[tuple[str, str]]:
    """In functions within it, too. `x += 1` takes x of a copy of the object, and swaps the sum and the object."""
    before, added_to = ("", ""), set[str]()
    for each, place in placed_steps(code):
        if each.name == "LOAD_ATTR" and before == ("COPY", itself):
            added_to.add(each.value)
        elif each.name == "STORE_ATTR" and (before[1] == itself or (before[0] == "SWAP" and each.value in added_to)):
            yield each.value, place
        before = (each.name, before[1] if each.name == "COPY" else each.value)
    for inner in inner_codes(code):
        if itself in inner.co_freevars:
            yield from _assigned_in(inner, itself)
