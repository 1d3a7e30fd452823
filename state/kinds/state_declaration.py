"""StateDeclaration: what all kinds of declared states share, and those of keys. The kinds: see descriptors."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar, NoReturn

from ...messages import Serializer
from ..errors import InvalidState, UnboundState
from .evolution import Evolving
from .record_serializer import MadeNode, TypeNode
from .schema_fit import schema_text
from .storable_types import unstorable
from .ttl import Ttl, check_ttl
from .value_fit import Fit


class StateDeclaration(Evolving):
    """What all declarations share. `name` is what a snapshot calls the state; it defaults to the attribute's name."""

    kind: ClassVar[str]

    made_by: Mapping[str, str] | None = None
    """What says how its values come about, where an operator of ours writes them: windows, triggers, aggregates. Stored
    values that were made in another way are refused.
    """

    beside: str = ""
    """In an operator of ours, the name of a state of its base: values that an operator without this state has stored
    there are refused.
    """

    def __init__(self, name: str | None, serializer: Serializer | str | None) -> None:
        self.name = name or ""
        self.serializer = serializer

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.name = self.name or attribute

    def node(self) -> TypeNode:
        """The serialiser of what one key holds."""
        raise NotImplementedError(self.kind)  # abstract

    def stored_node(self) -> TypeNode:
        """The same, which also asks what stored values were made by."""
        return self.node() if self.made_by is None else MadeNode(self.node(), self.made_by)

    def unstorable(self) -> str:
        """Why what this is declared to hold cannot be stored, and what to do about it; empty if it can be."""
        types = [getattr(self, name) for name in ("type", "key_type", "value_type") if hasattr(self, name)]
        if self.serializer is not None:  # of the values; a map's keys have none
            types = types[:-1]
        return next(filter(None, map(unstorable, types)), "")

    def fit(self) -> Fit:
        """What `update`, or `add`, takes."""
        raise NotImplementedError(self.kind)  # abstract

    def named(self) -> str:
        """For error texts: `state 'worst' (ValueState of float)`."""
        return f"state {self.name!r} ({self.describe()})"

    def describe(self) -> str:
        """For error texts: `ValueState of float`."""
        return describe_state(self.kind, self.node().schema)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name!r}>"

    def _check_first(self, what: str, value: Any) -> None:
        """A default must fit. None says that there is none. Raises InvalidState."""
        fit = self.fit()
        if value is not None and (misfit := fit.misfit(value)):
            name = f" {self.name!r}" if self.name else ""
            raise InvalidState(f"the {what} of a {self.kind} of {fit.text}{name}: {misfit}")

    def _unbound(self) -> NoReturn:
        raise UnboundState(self.name)


def describe_state(kind: str, schema: Any) -> str:
    return f"{kind} of {schema_text(schema)}"


class KeyedStateDeclaration(StateDeclaration):
    """State of one key. Accessors also know namespaces (a window's state): Flink's InternalKvState.

    With a `ttl` it expires: a value and an accumulator as a whole, items of a list and entries of a map each by itself.
    """

    def __init__(self, name: str | None, serializer: Serializer | str | None, ttl: Ttl | None) -> None:
        super().__init__(name, serializer)
        self.ttl = check_ttl(self.kind, ttl)

    def clear(self) -> None:
        """Forget what is held for this key."""
        self._unbound()

    def set_namespace(self, namespace: Hashable) -> None:
        """From now on this accessor reads and writes the state of this namespace; plain data, and not None."""
        self._unbound()


class MergingStateDeclaration(KeyedStateDeclaration):
    """State whose values of several namespaces can become one: Flink's InternalMergingState."""

    def merge_namespaces(self, target: Hashable, sources: Iterable[Hashable]) -> None:
        """Move what the current key holds under `sources` into `target`. Where nothing is held nothing comes of it."""
        self._unbound()
