"""state_backend.json: keyed state, on every backend that exists. Facts told in words are held by KeyedStateContract."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from weakref import WeakSet

from understudy.messages import CheckpointId, KeyedStateHandle
from understudy.state.backends.backend import KeyedStateBackend
from understudy.state.checkpoints.state_backends import backend_named, backend_names
from understudy.state.kinds.descriptors import FoldingState, ListState, MapState, ReducingState, ValueState
from understudy.state.kinds.state_declaration import KeyedStateDeclaration
from understudy.state.storage import CheckpointStorage

from ..contracts.fewer_examples import with_fewer_examples
from ..contracts.keyed_state import MAX_PARALLELISM, KeyedStateContract
from ..state.backends import test_heap_backends
from .scenario import Difference, Scenario, UnknownWord, Words, compare, facts_of, scenarios_of

KEYS = frozenset({"ops", "op", "facts"})
"""Words that only this schema has."""

BACKENDS = backend_names()


class OnBackend(KeyedStateContract):
    """The contract of one kind of backend."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def make_backend(self, key_groups: range = range(MAX_PARALLELISM)) -> KeyedStateBackend:
        backend = backend_named(self.kind).keyed_backend(key_groups, MAX_PARALLELISM)
        _made.add(backend)
        return backend


_made: WeakSet[KeyedStateBackend] = WeakSet()


def close_all() -> None:
    """That were made: one of RocksDB has files open."""
    for backend in list(_made):
        backend.close()
    _made.clear()


FEWER = with_fewer_examples(KeyedStateContract, 5)
"""The backends' own tests play more of them."""


def _proved(*tests: Callable[[KeyedStateContract], None]) -> list[Callable[[], None]]:
    """These tests of the contract, on each backend."""
    return [partial(FEWER.get(each.__name__, each), OnBackend(kind)) for each in tests for kind in BACKENDS]


PROOFS = {
    "empty_backend_snapshot_is_none": _proved(KeyedStateContract.test_a_backend_that_never_had_state_gives_no_handle),
    "restore_with_other_key_serializer": [
        partial(test_heap_backends.test_restoring_with_another_key_type_is_refused, str, int)
    ],
    "restore_with_other_value_serializer": _proved(
        KeyedStateContract.test_state_of_another_kind_is_refused_by_name,
        KeyedStateContract.test_values_of_another_type_are_refused_when_the_state_is_bound,
    ),
    "default_value_is_copied": _proved(KeyedStateContract.test_the_default_value_is_copied_for_each_key),
    "namespace_and_its_serializer_are_required": [test_heap_backends.test_a_namespace_is_required],
    "key_group_split_on_restore": _proved(
        KeyedStateContract.test_cutting_into_key_group_ranges_and_merging_back_is_the_identity
    ),
    "asynchronous_snapshot": _proved(
        KeyedStateContract.test_changes_after_the_synchronous_part_do_not_show_in_the_snapshot,
        KeyedStateContract.test_several_snapshots_may_be_written_at_once_in_any_order,
        KeyedStateContract.test_a_cancelled_snapshot_does_no_harm,
    ),
}


def scenarios(document: Words) -> Iterator[Scenario]:
    yield from scenarios_of(document, "scenarios", _play)
    yield from facts_of(document, "facts", PROOFS, {})


def _play(words: Words) -> Iterator[Difference]:
    for kind in BACKENDS:
        yield from _Script(OnBackend(kind), words).play()


def declaration_of(words: Words) -> KeyedStateDeclaration:
    """The state that a scenario is about; values are whatever JSON has."""
    default = words.get("default", words.get("default_value"))
    match words["state"]:
        case "value":
            return ValueState(Any, default, name="state")  # type: ignore[arg-type]
        case "list":
            return ListState(Any, name="state")  # type: ignore[arg-type]
        case "map":
            return MapState(Any, Any, name="state")  # type: ignore[arg-type]
        case "fold":
            return FoldingState(str, default or "", lambda held, added: f"{held},{added}", name="state")
        case "reduce_concat":
            return ReducingState(Any, lambda held, added: f"{held},{added}", name="state")  # type: ignore[arg-type]
        case "reduce_sum":
            return ReducingState(Any, lambda held, added: held + added, name="state")  # type: ignore[arg-type]
        case "aggregate_sum":
            return FoldingState(Any, 0, operator.add, merge=operator.add, name="state")  # type: ignore[arg-type]
    raise UnknownWord(f"found a state of kind {words['state']!r}")


class _Script:
    """One scenario on one backend."""

    def __init__(self, contract: OnBackend, words: Words) -> None:
        self._contract = contract
        self._words = words
        self._declaration = declaration_of(words)
        self._snapshots: dict[str, tuple[list[KeyedStateHandle], CheckpointStorage]] = {}
        self._use(contract.make_backend())

    def _use(self, backend: KeyedStateBackend) -> None:
        self._backend = backend
        self._state: Any = backend.state(self._declaration)
        self._state.set_namespace(0)

    def play(self) -> Iterator[Difference]:
        for number, step in enumerate(self._words["steps"]):
            match step:
                case {"key": key}:
                    self._backend.current_key = key
                case {"namespace": namespace}:
                    self._state.set_namespace(namespace)
                case {"snapshot": name}:
                    snapshot = self._backend.snapshot(CheckpointId(number))
                    self._snapshots[name] = self._contract.write(snapshot)
                case {"restore": name}:
                    self._use(self._contract.restored(*self._snapshots[name]))
                case {"op": [name, *arguments]}:
                    where = f"{self._contract.kind}: step {number}: {name}{tuple(arguments)}"
                    yield from self._compare(where, step, self._do(name, arguments))
                case _:
                    raise UnknownWord(f"found the step {step}")

    def _compare(self, where: str, step: Words, found: Any) -> Iterator[Difference]:
        if "returns" not in step:
            return
        expected = step["returns"]
        if found == [] or found == {}:
            found = None if expected is None else found  # absent and empty are the same here
        if step.get("unordered") and isinstance(expected, list) and isinstance(found, list):
            expected, found = sorted(expected, key=repr), sorted(found, key=repr)
        yield from compare(where, expected, found)

    def _do(self, name: str, arguments: list[Any]) -> Any:
        match name:
            case "get" if arguments:  # of a map
                return self._state.get(*arguments)
            case "value" | "get":
                return self._state.value() if isinstance(self._declaration, ValueState) else self._state.get()
            case "map_get":
                return self._state.get(*arguments)
            case "map_all":
                return {str(key): value for key, value in self._state.items()}
            case "merge":
                return self._state.merge_namespaces(*arguments)
            case "entries_total":
                return self._backend.entry_count()
            case "add" | "update" | "clear" | "put" | "contains" | "remove":
                return getattr(self._state, name)(*arguments)
        raise UnknownWord(f"found the operation {name!r}")
