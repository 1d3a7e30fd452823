"""Misnamed: a state that is used as if it were what it holds says which of its methods gives that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

_OF_LISTS: Final = {
    "append": "add",
    "extend": "add_all",
    "put": "add",
    "set": "update",
    "value": "get",
    "read": "get",
    "write": "update",
}
_OF_RESULTS: Final = {"value": "get", "read": "get", "update": "add", "put": "add", "append": "add", "write": "add"}
_LISTS, _RESULTS = "get, add, add_all, update and clear", "get, add and clear"

_INSTEAD: Final[Mapping[str, Mapping[str, str]]] = {
    "ValueState": {
        "get": "value",
        "set": "update",
        "put": "update",
        "add": "update",
        "read": "value",
        "write": "update",
    },
    "ListState": _OF_LISTS,
    "OperatorListState": _OF_LISTS,
    "MapState": {"set": "put", "update": "put", "add": "put", "pop": "remove", "delete": "remove", "value": "get"},
    "ReducingState": _OF_RESULTS,
    "FoldingState": _OF_RESULTS,
}
"""By kind of state: the method for one that is looked for."""

_METHODS: Final[Mapping[str, str]] = {
    "ValueState": "value, update and clear",
    "ListState": _LISTS,
    "OperatorListState": _LISTS,
    "MapState": "get, put, remove, contains, keys, values, items, is_empty and clear",
    "ReducingState": _RESULTS,
    "FoldingState": _RESULTS,
}

_CONTENTS: Final[Mapping[str, str]] = {
    "ValueState": ".value()",
    "MapState": ".get(key), .items() or .is_empty()",
}
"""By kind of state, what gives what it holds; of the others it is `.get()`."""

_OPERATORS: Final = (
    *("lt", "le", "gt", "ge", "eq", "ne", "bool", "format", "int", "float", "index", "round", "abs", "neg", "invert"),
    *(f"{side}{name}" for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow") for side in ("", "r")),
    *(f"{side}{name}" for name in ("or", "and", "xor") for side in ("", "r")),
)
"""What a value has, and a state has not. In place, as in `+=`, Python takes the same."""


class _OtherName:
    """In the place of a method that a state of this kind has under another name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, state: Misnamed | None, _owner: Any = None) -> NoReturn:
        if state is None:
            raise AttributeError(self._name)
        raise no_method(state, self._name)


class Misnamed:
    """What accessors of state have beside their methods. They have a `declaration`, and are equal to none but
    themselves.

    No `__getattr__`: with one, CPython finds each attribute three times as slowly, and a record uses a dozen. So the
    usual other names of methods are attributes, and who catches the AttributeError of any other asks `no_method`.
    """

    __slots__ = ()

    declaration: Any

    def __init_subclass__(cls, kind: str = "", **named: Any) -> None:
        """`kind`: of a class, and those derived from it, whose states are of this kind."""
        super().__init_subclass__(**named)
        for name in _INSTEAD.get(kind, ()):
            if not hasattr(cls, name):
                setattr(cls, name, _OtherName(name))

    if not TYPE_CHECKING:

        def _no_collection(self, *_: Any) -> NoReturn:
            kind = self.declaration.kind
            raise TypeError(
                f"state {self.declaration.name!r} is a {kind}, and neither a list nor a dict: it has "
                f"{_METHODS.get(kind, 'other methods')}"
            )

        __iter__ = __len__ = __contains__ = __getitem__ = __setitem__ = __delitem__ = _no_collection

        def _no_value(self, *_: Any) -> NoReturn:
            raise TypeError(
                f"state {self.declaration.name!r} is a {self.declaration.kind}, and not what it holds, which comes of "
                f"{self._contents_by()}"
            )

        for _name in _OPERATORS:
            locals()[f"__{_name}__"] = _no_value
        del _name

        __hash__ = object.__hash__

        def __repr__(self) -> str:
            return f"<{self.declaration.kind} {self.declaration.name!r}, which holds {self._contents_by()}>"

        def _contents_by(self) -> str:
            return _CONTENTS.get(self.declaration.kind, ".get()")


def no_method(state: Misnamed, name: str) -> AttributeError:
    """The error of somebody who looked for a method of this name."""
    kind = state.declaration.kind
    instead = _INSTEAD.get(kind, {}).get(name)
    hint = f"write {instead}(...) in its place" if instead else f"it has {_METHODS.get(kind, 'other methods')}"
    text = f"state {state.declaration.name!r} is a {kind}, which has no {name!r}: {hint}"
    return AttributeError(text, name=name, obj=None)
