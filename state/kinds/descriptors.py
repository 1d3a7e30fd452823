"""State declarations: class attributes of operators, in Flink's kinds.

    class WorstDelay(KeyedOperator):
        worst = ValueState(float, default=0.0)

A declaration is a plain class attribute. When a task opens the operator, it gives the instance an accessor of the same
name, and with the same methods; until then every method raises UnboundState. The methods that
stand here are what type checkers and readers see. Flink: StateDescriptor and its subclasses.

What is taken out of state belongs to the state: change it, and put it back in the same call; do not keep it for later.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, Literal, TypeVar, overload

from ...messages import Serializer
from ...messages.known_names import known_arguments
from ..errors import InvalidState
from .record_serializer import ListNode, MapNode, TypeNode, node_of
from .state_declaration import KeyedStateDeclaration, MergingStateDeclaration, StateDeclaration
from .ttl import Ttl
from .value_fit import Fit, fit_of

T = TypeVar("T")
U = TypeVar("U")
"""Of a constructor: pyright does not solve the class's own one inside of another type."""
A = TypeVar("A")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
D = TypeVar("D")

Mode = Literal["split", "union", "broadcast"]


class ValueState(KeyedStateDeclaration, Generic[T]):
    """One value per key. `value()` of an absent one is a copy of the default. `update(None)` clears, as in Flink."""

    kind = "ValueState"

    @overload
    def __init__(
        self: ValueState[U],
        type: type[U],
        default: U,
        *,
        name: str | None = None,
        serializer: Any = None,
        ttl: Ttl | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self: ValueState[U | None],
        type: type[U],
        default: None = None,
        *,
        name: str | None = None,
        serializer: Any = None,
        ttl: Ttl | None = None,
    ) -> None: ...

    @known_arguments("ValueState", first=1, example="ValueState(int, default=0)")
    def __init__(
        self,
        type: Any,
        default: Any = None,
        *,
        name: str | None = None,
        serializer: Serializer | str | None = None,
        ttl: Ttl | None = None,
    ) -> None:
        super().__init__(name, serializer, ttl)
        _check_type(self.kind, type)
        self.type, self.default = type, default
        self._check_first("default", default)

    def node(self) -> TypeNode:
        return self.value_node(self.type)

    def fit(self) -> Fit:
        return fit_of(self.type, self.serializer)

    def value(self) -> T:
        """The key's value; a copy of the default where none is held."""
        self._unbound()

    def update(self, value: T) -> None:
        """Hold this value for the key; None clears. Raises WrongStateType."""
        self._unbound()


class ItemsDeclaration(StateDeclaration, Generic[T]):
    """A list of items of one type, of a key or of the operator's own."""

    type: type[T]

    def fit(self) -> Fit:
        return fit_of(self.type, self.serializer)

    def get(self) -> list[T]:
        """A list of one's own: changing it changes no state."""
        self._unbound()

    def add(self, item: T) -> None:
        """Append one item. Raises WrongStateType."""
        self._unbound()

    def add_all(self, items: Iterable[T]) -> None:
        """Append all items, in order. Raises WrongStateType."""
        self._unbound()

    def update(self, items: Iterable[T]) -> None:
        """Replace the whole list."""
        self._unbound()


class ListState(ItemsDeclaration[T], MergingStateDeclaration):
    """A list per key; absent and empty are the same."""

    kind = "ListState"

    @known_arguments("ListState", first=1, example="ListState(int)")
    def __init__(
        self,
        type: type[T],
        *,
        name: str | None = None,
        serializer: Serializer | str | None = None,
        ttl: Ttl | None = None,
    ) -> None:
        super().__init__(name, serializer, ttl)
        _check_type(self.kind, type)
        self.type = type

    def node(self) -> TypeNode:
        return ListNode(self.value_node(self.type))


class MapState(KeyedStateDeclaration, Generic[K, V]):
    """A map per key; absent and empty are the same. `keys`, `values` and `items` are lists of one's own."""

    kind = "MapState"

    @known_arguments("MapState", first=1, example="MapState(str, int)")
    def __init__(
        self,
        key_type: type[K],
        value_type: type[V],
        *,
        name: str | None = None,
        serializer: Serializer | str | None = None,
        ttl: Ttl | None = None,
    ) -> None:
        super().__init__(name, serializer, ttl)
        self.key_type, self.value_type = key_type, value_type

    def node(self) -> TypeNode:
        return MapNode(node_of(self.key_type), self.value_node(self.value_type))

    def fit(self) -> Fit:
        return fit_of(self.value_type, self.serializer)

    def key_fit(self) -> Fit:
        return fit_of(self.key_type)

    @overload
    def get(self, key: K) -> V | None: ...

    @overload
    def get(self, key: K, default: D) -> V | D: ...

    def get(self, key: K, default: Any = None) -> Any:
        """The value of an entry; the default where there is none."""
        self._unbound()

    def put(self, key: K, value: V) -> None:
        """Set one entry. Raises WrongStateType."""
        self._unbound()

    def remove(self, key: K) -> None:
        """Forget one entry; an absent one is fine."""
        self._unbound()

    def contains(self, key: K) -> bool:
        """Whether there is such an entry."""
        self._unbound()

    def keys(self) -> list[K]:
        """A new list of the keys of all entries, in no order to rely on."""
        self._unbound()

    def values(self) -> list[V]:
        """A new list of the values of all entries."""
        self._unbound()

    def items(self) -> list[tuple[K, V]]:
        """A new list of all entries as pairs."""
        self._unbound()

    def is_empty(self) -> bool:
        """Whether there is no entry."""
        self._unbound()


class ReducingState(MergingStateDeclaration, Generic[T]):
    """One value per key, into which `reduce(held, added)` takes each added one."""

    kind = "ReducingState"

    @known_arguments("ReducingState", first=1, example="ReducingState(int, max)")
    def __init__(
        self,
        type: type[T],
        reduce: Callable[[T, T], T],
        *,
        name: str | None = None,
        serializer: Serializer | str | None = None,
        ttl: Ttl | None = None,
    ) -> None:
        super().__init__(name, serializer, ttl)
        self.type, self.reduce = type, reduce
        self.look_at_first: Callable[[Any, Any, Any], None] | None = None
        """Called with what an accessor has combined first, and the result; it may raise."""

    def node(self) -> TypeNode:
        return self.value_node(self.type)

    def fit(self) -> Fit:
        return fit_of(self.type, self.serializer)

    def get(self) -> T | None:
        """None when nothing was added."""
        self._unbound()

    def add(self, value: T) -> None:
        """Combine this value with the held one; the first is held as it is."""
        self._unbound()


class FoldingState(MergingStateDeclaration, Generic[A]):
    """An accumulator of `type` per key, first a copy of `initial`, into which `fold(held, added)` takes each one.

    With `merge(held, other)`, which makes one accumulator of two, namespaces can be merged: Flink's AggregatingState.
    """

    kind = "FoldingState"

    @known_arguments("FoldingState", first=1, example="FoldingState(int, 0, lambda total, record: total + 1)")
    def __init__(
        self,
        type: type[A],
        initial: A,
        fold: Callable[[A, Any], A],
        *,
        merge: Callable[[A, A], A] | None = None,
        name: str | None = None,
        serializer: Serializer | str | None = None,
        ttl: Ttl | None = None,
    ) -> None:
        super().__init__(name, serializer, ttl)
        self.type, self.initial, self.fold, self.merge = type, initial, fold, merge
        self._check_first("initial accumulator", initial)

    def node(self) -> TypeNode:
        return self.value_node(self.type)

    def fit(self) -> Fit:
        return fit_of(self.type, self.serializer)

    def get(self) -> A | None:
        """None when nothing was added."""
        self._unbound()

    def add(self, value: Any) -> None:
        """Fold this value into the accumulator."""
        self._unbound()


class OperatorListState(ItemsDeclaration[T]):
    """A list of the operator's own, not of a key. `mode` is how a rescale deals it out.

    "split": its items are dealt out evenly; "union": every subtask gets all items; "broadcast": every subtask gets one
    subtask's list (they are all alike). Flink: OperatorStateHandle.Mode.
    """

    kind = "OperatorListState"

    @known_arguments("OperatorListState", first=1, example="OperatorListState(int)")
    def __init__(
        self,
        type: type[T],
        mode: Mode = "split",
        *,
        name: str | None = None,
        serializer: Serializer | str | None = None,
    ) -> None:
        super().__init__(name, serializer)
        if mode not in ("split", "union", "broadcast"):
            raise InvalidState(f"mode: wanted 'split', 'union' or 'broadcast', found {mode!r}")
        self.type, self.mode = type, mode

    def node(self) -> TypeNode:
        return self.value_node(self.type)

    def clear(self) -> None:
        self._unbound()


def _check_type(kind: str, hint: Any) -> None:
    """Raises InvalidState for a value in the place of a type, as in ValueState(0)."""
    if isinstance(hint, str):
        raise InvalidState(
            f"{kind}: wanted a type such as int, found {hint!r:.60}: write the type itself, without quotes"
        )
    if isinstance(hint, bool | int | float | bytes | list | dict | set | tuple):
        raise InvalidState(
            f"{kind}: wanted a type such as int, found {hint!r:.60}: the value at first is the default, as in "
            "ValueState(int, default=0)"
        )
