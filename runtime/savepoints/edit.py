"""SavepointEdit: what is to be other in a new savepoint, until `write` writes that.

An edit changes nothing of the savepoint that it began with, and reads its states only when it writes. Names are checked
at once, values when they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ...messages import OperatorId, operator_id_of
from ...state.backends.timer_queue import EVENT_TIMERS, KIND, PROCESSING_TIMERS
from ...state.file_locations import AnyPath
from ...state.kinds.declared_states import declared_states
from ...state.kinds.schema_fit import Schema
from ...state.kinds.state_declaration import KeyedStateDeclaration
from ...state.kinds.state_descriptions import LIST_KINDS, description_of
from ...state.storage import CheckpointStorage
from ..api.function_kinds import FunctionKind
from ..api.function_kinds import found as function_found
from .edited_rows import Columns, pairs_of
from .errors import InvalidEdit, NoSuchState
from .found import readable_path
from .reading import SavepointOperator, SavepointReader

Change: TypeAlias = Callable[[Any, Any], Any]
"""(key, value) -> the new value; None removes the entry."""


_RECORD_KEY = (
    "a table shows a key that is a record as the dict of its fields, which does not say of which class it is: give an "
    "object of the class, as put([(Place('JFK', 4), value)])"
)


@dataclass(slots=True)
class StateEdit:
    """One state of an edit. Its methods return it, so that they can be chained; they happen in their order."""

    operator: str
    name: str
    kind: str
    schema: Schema
    is_new: bool = False
    """Whether the savepoint that is edited does not know it."""
    dropped: bool = False
    steps: list[Change | dict[Any, Any] | list[Any] | frozenset[Any]] = field(default_factory=list)
    """A change of every entry; what is put under keys; timers that are added; keys that are removed."""

    def drop(self) -> StateEdit:
        """Forget all of it; entries that are put afterwards are all that there are."""
        self.dropped = True
        self.steps.clear()
        return self

    def update(self, change: Change) -> StateEdit:
        """Each entry's value becomes `change(key, value)`, and None removes it; of a list `change(position, item)`.
        Raises InvalidEdit, also for a function that never returns a value: all entries would go.
        """
        if self.kind == KIND:
            raise InvalidEdit(f"{self._where}: timers have no values: drop() them, and put others")
        if not callable(change):
            raise InvalidEdit(f"{self._where}: update(...) wants a function of (key, value), found {change!r:.80}")
        there = function_found(change)
        if there.kind is not FunctionKind.PLAIN:
            raise InvalidEdit(f"{self._where}: update(...) wants a plain function of (key, value), found {there}")
        if there.returns_nothing:
            raise InvalidEdit(
                f"{self._where}: the function of update(...) ({there.where}) returns nothing, and None removes an "
                "entry: is a `return` missing? To remove all of them write drop()"
            )
        self.steps.append(change)
        return self

    def remove(self, keys: Iterable[Any]) -> StateEdit:
        """Forget these keys. Raises InvalidEdit for one text, whose letters would be the keys."""
        if isinstance(keys, str | bytes):
            raise InvalidEdit(
                f"{self._where}: remove(...) wants a list of keys, found {keys!r:.80}: write remove([{keys!r:.80}])"
            )
        try:
            gone = frozenset(keys)
        except TypeError as error:
            hint = f": {_RECORD_KEY}" if "'dict'" in str(error) else ""
            raise InvalidEdit(f"{self._where}: this is no key: {error}{hint}") from error
        if self.kind in LIST_KINDS:
            return self.update(lambda position, item: None if position in gone else item)
        self.steps.append(gone)
        return self

    def put(self, rows: Any, *, key: Columns = "key", value: Columns = "value") -> StateEdit:
        """Hold these, in place of what their keys hold: a table (Arrow, pandas, Polars, a Spark DataFrame), a mapping,
        or rows that are dicts or pairs. `key` and `value` name the columns of a table, or of dicts. Timers are
        `(key, time in ms)`, and are added. Raises InvalidEdit.
        """
        if self.kind in LIST_KINDS:
            raise InvalidEdit(f"{self._where}: a list has no keys; change its items with update(...)")
        if self.kind == KIND and value == "value":
            value = "time_ms"
        found = pairs_of(rows, key, value, self._where)
        try:
            self.steps.append(list(found) if self.kind == KIND else dict(found))
        except TypeError as error:
            hint = f": {_RECORD_KEY}" if "'dict'" in str(error) else ""
            raise InvalidEdit(f"{self._where}: this is no key: {error}{hint}") from error
        return self

    @property
    def value_schema(self) -> Schema:
        """That of the values without their times."""
        return self.schema["ttl"] if self.has_ttl else self.schema

    @property
    def has_ttl(self) -> bool:
        return isinstance(self.schema, dict) and "ttl" in self.schema

    @property
    def is_gone(self) -> bool:
        """Whether nothing of it is left, and nothing put."""
        return self.dropped and not self.steps

    @property
    def is_touched(self) -> bool:
        return self.is_new or self.dropped or bool(self.steps)

    @property
    def _where(self) -> str:
        return f"{self.operator}.{self.name}"


class OperatorEdit:
    """One operator of an edit."""

    def __init__(self, uid: OperatorId, source: SavepointOperator | None, parallelism: int) -> None:
        self.uid, self.source, self.parallelism = uid, source, parallelism
        self.name = source.name if source else str(uid)
        self.dropped = False
        self.states: dict[str, StateEdit] = {}
        """Those that were asked for."""

    def state(self, name: str) -> StateEdit:
        """Raises NoSuchState, and InvalidEdit for state in columns, which can only be dropped with its operator."""
        if name in self.states:
            return self.states[name]
        if self.source is None:
            raise NoSuchState(f"operator {self.uid!r}", f"state {name!r}", self.states)
        table = self.source.state(name)
        if table.stored.is_arrow:
            raise InvalidEdit(
                f"{self.uid}.{name}: state in columns is not edited; drop() the operator to start it empty"
            )
        if len(table.stored.schemas) > 1:
            raise InvalidEdit(
                f"{self.uid}.{name} was written under several types ({table.type}): let a job take a savepoint"
            )
        edit = StateEdit(self.uid, name, table.kind, table.stored.schemas[0], is_new=not table.shares)
        return self.states.setdefault(name, edit)

    def timers(self, domain: str = "event") -> StateEdit:
        """Those of "event" or of "processing" time, which need not be there yet."""
        name = {"event": EVENT_TIMERS, "processing": PROCESSING_TIMERS}.get(domain)
        if name is None:
            raise InvalidEdit(f"timers of operator {self.uid!r}: wanted 'event' or 'processing', found {domain!r}")
        if name not in self.states:
            is_new = self.source is None or name not in self.source.keyed.tables()
            self.states[name] = StateEdit(self.uid, name, KIND, None, is_new=is_new)
        return self.states[name]

    def declare(self, declaration: KeyedStateDeclaration) -> StateEdit:
        """A state that is not there yet, as `ValueState(int, name="seen")`. Raises InvalidEdit, and InvalidState."""
        if not isinstance(declaration, KeyedStateDeclaration) or not declaration.name:
            raise InvalidEdit(f"operator {self.uid!r}: wanted a keyed state with a name, found {declaration!r}")
        if declaration.name in self.states or (self.source and declaration.name in self.source.table_names()):
            raise InvalidEdit(f"operator {self.uid!r} has a state {declaration.name!r} already")
        described = description_of(declaration)
        schema: Schema = described.schema
        if declaration.ttl is not None:
            schema = {"ttl": schema, "clock": declaration.ttl.clock}
        edit = StateEdit(self.uid, declaration.name, described.kind, schema, is_new=True)
        return self.states.setdefault(declaration.name, edit)

    def rename(self, uid: str) -> OperatorEdit:
        """Give it another uid, under which a program takes its state over. Raises InvalidEdit for what is no text, or
        an empty one.
        """
        if not isinstance(uid, str) or not uid.strip():
            raise InvalidEdit(f"{self.uid}: rename wants the uid of an operator, found {uid!r:.60}")
        self.uid, self.name = operator_id_of(uid), uid
        return self

    def drop(self) -> None:
        """Forget all its state: the operator starts empty."""
        self.dropped = True

    @property
    def is_touched(self) -> bool:
        return self.source is None or any(each.is_touched for each in self.states.values())


class SavepointEdit:
    """`savepoint.edit()`, or from nothing `Savepoint.new()`. `write` writes a new one, and may be called again."""

    def __init__(
        self,
        base: SavepointReader | None,
        write: Callable[[SavepointEdit, CheckpointStorage], str],
        max_parallelism: int | None = None,
    ) -> None:
        self.base = base
        self.new_max_parallelism: int | None = None
        self._write = write
        if max_parallelism is not None:
            self.max_parallelism(max_parallelism)
        self._operators = {
            each.uid: OperatorEdit(each.uid, each, each.parallelism) for each in (base.operators() if base else ())
        }

    def operator(self, uid: str) -> OperatorEdit:
        """By its uid, or else its name. Raises NoSuchState."""
        if uid in self._operators:
            return self._operators[OperatorId(uid)]
        if self.base is None:
            raise NoSuchState("a new savepoint", f"operator {uid!r}", self._operators)
        return self._operators[self.base.operator(uid).uid]

    def operators(self) -> list[OperatorEdit]:
        """An edit of each operator that the new savepoint will have."""
        return list(self._operators.values())

    def add(self, uid: str, operator: type | None = None, *, parallelism: int = 1) -> OperatorEdit:
        """An operator that is not there yet, with the keyed states that its class declares. Raises InvalidEdit."""
        operator_id = operator_id_of(uid)
        if operator_id in self._operators:
            raise InvalidEdit(f"there is an operator {uid!r} already: take operator({uid!r})")
        edit = OperatorEdit(operator_id, None, parallelism)
        edit.name = uid
        for declared in declared_states(operator).values() if operator is not None else ():
            if isinstance(declared, KeyedStateDeclaration):
                edit.declare(declared)
        return self._operators.setdefault(operator_id, edit)

    def max_parallelism(self, max_parallelism: int) -> SavepointEdit:
        """Deal all keys out to this number of key groups. The program must say the same."""
        if not 1 <= max_parallelism <= 1 << 15:
            raise InvalidEdit(f"max_parallelism: wanted 1 to {1 << 15}, found {max_parallelism}")
        self.new_max_parallelism = max_parallelism
        return self

    def write(self, checkpoint_dir: AnyPath | None = None) -> str:
        """Write the new savepoint, whole or not at all, and return its path, for `submit(..., from_savepoint=path)`. It
        lies below this checkpoint directory (None: the one that the edited savepoint lies in), which the job that
        starts from it should have. Raises InvalidEdit, a StorageError or OSError.
        """
        if checkpoint_dir is None and self.base is None:
            raise InvalidEdit("a new savepoint is to be written: wanted write(checkpoint_dir)")
        if checkpoint_dir is None:
            assert self.base is not None
            return self._write(self, self.base.found.storage)
        return self._write(self, CheckpointStorage(readable_path(checkpoint_dir)))
