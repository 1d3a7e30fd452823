"""Evolving: what a declaration says of the versions of a program before: names and types that its state had.

Whether a stored state fits, and what becomes of it, is worked out in `schema_fit` and `record_serializer`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

from ...messages import Serializer
from ..errors import InvalidState
from .record_serializer import MigratingNode, TypeNode, node_of
from .schema_fit import SchemaMismatch
from .value_fit import fit_of


class Evolving:
    """A base of state declarations."""

    kind: ClassVar[str]
    serializer: Serializer | str | None

    former_names: tuple[str, ...] = ()
    """Under which it is looked for in a savepoint that does not have its name."""

    migrations: tuple[tuple[Any, Callable[[Any], Any]], ...] = ()
    """Earlier types, and the functions that make values of today of theirs."""

    def formerly(self, *names: str) -> Self:
        """This state, which snapshots may hold under another name: `ValueState(int).formerly("count")`."""
        if not names or not all(isinstance(name, str) and name for name in names):
            raise InvalidState(f"{self.kind}.formerly: wanted the names that the state had before, found {names!r:.60}")
        self.former_names = names
        return self

    def migrating(self, earlier: Any, migrate: Callable[[Any], Any]) -> Self:
        """This state, whose values may have been stored as the type `earlier`: `migrate(old)` makes those of today.

        It is called for each value; of a list for each item, of a map for each of its values. Several may be named, the
        newest type first: `ValueState(Leg).migrating(LegV2, from_v2).migrating(int, from_minutes)`.
        """
        if not callable(migrate):
            raise InvalidState(f"{self.kind}.migrating: wanted a function of a stored value, found {migrate!r:.60}")
        self.migrations = (*self.migrations, (earlier, migrate))
        return self

    def value_node(self, hint: Any) -> TypeNode:
        """The serialiser of values, which also makes them of those of earlier types."""
        node = node_of(hint, self.serializer)
        earlier = tuple((node_of(each), _checked(hint, self.serializer, migrate)) for each, migrate in self.migrations)
        return MigratingNode(node, earlier) if earlier else node


def _checked(hint: Any, serializer: Serializer | str | None, migrate: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The function of the user's, which must return what is declared."""
    fit = fit_of(hint, serializer)

    def checked(old: Any) -> Any:
        value = migrate(old)
        if misfit := fit.misfit(value):
            raise SchemaMismatch(f"migrating {old!r:.80} returned a value of another type than is declared: {misfit}")
        return value

    return checked
