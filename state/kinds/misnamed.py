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


class Misnamed:
    """What accessors of state have beside their methods. They have a `declaration`, and are equal to none but
    themselves.
    """

    __slots__ = ()

    declaration: Any

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Only for names that there are not."""
            if name.startswith("_") or name == "declaration":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
            kind = self.declaration.kind
            instead = _INSTEAD.get(kind, {}).get(name)
            hint = f"write {instead}(...) in its place" if instead else f"it has {_METHODS.get(kind, 'other methods')}"
            raise AttributeError(
                f"state {self.declaration.name!r} is a {kind}, which has no {name!r}: {hint}", name=name, obj=None
            )

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
