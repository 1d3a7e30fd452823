"""Misnamed: a state that is used as if it were a list, a dict or its value says which of its methods does that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

_OF_LISTS: Final = {
    "append": "add",
    "extend": "add_all",
    "put": "add",
    "set": "update",
    "value": "get",
}
_OF_RESULTS: Final = {"value": "get", "update": "add", "put": "add", "append": "add"}
_PLAIN = (int, float, str, bool, bytes, list, dict, tuple, set, type(None))
_OF_GET = frozenset({"ListState", "OperatorListState", "ReducingState", "FoldingState"})
_LISTS, _RESULTS = "get, add, add_all, update and clear", "get, add and clear"

_INSTEAD: Final[Mapping[str, Mapping[str, str]]] = {
    "ValueState": {"get": "value", "set": "update", "put": "update", "add": "update"},
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


class Misnamed:
    """What accessors of state have beside their methods. They have a `declaration`."""

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
                f"state {self.declaration.name!r} is a {kind}, which has no {name!r}: {hint}", name=name, obj=self
            )

        def __iter__(self) -> NoReturn:
            raise self._no_collection()

        def __getitem__(self, key: Any) -> NoReturn:
            raise self._no_collection()

        def __bool__(self) -> NoReturn:
            raise self._no_value()

        def __eq__(self, other: object) -> bool:
            if type(other) in _PLAIN:
                raise self._no_value()
            return self is other

        __hash__ = object.__hash__

        def __format__(self, spec: str) -> NoReturn:
            raise self._no_value()

        def __setitem__(self, key: Any, value: Any) -> NoReturn:
            raise self._no_collection()

    def _no_value(self) -> TypeError:
        kind = self.declaration.kind
        read = "value" if kind == "ValueState" else "get" if kind in _OF_GET else "items"
        return TypeError(
            f"state {self.declaration.name!r} is a {kind}, and not what it holds: write .{read}() behind it"
        )

    def _no_collection(self) -> TypeError:
        kind = self.declaration.kind
        return TypeError(
            f"state {self.declaration.name!r} is a {kind}, and neither a list nor a dict: it has "
            f"{_METHODS.get(kind, 'other methods')}"
        )
