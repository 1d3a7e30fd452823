"""SubtaskSnapshot: what one subtask writes for one checkpoint, and where it goes.

Each operator contributes its parts in the synchronous phase; `write` runs on another thread and makes the
SubtaskState of the acknowledgement. Parts come as inline handles. A *snapshot store* then leaves them inside the
acknowledgement (`store_inline`), or moves them all into one file (`store_in_file`), so that many states do not make
many files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TypeAlias, TypeVar

from ...messages import (
    ChannelStateHandle,
    InputWatermark,
    KeyedStateHandle,
    OperatorId,
    OperatorListHandle,
    OperatorSubtaskState,
    StateHandle,
    SubtaskState,
)
from ..backends.backend import KeyedSnapshot, SnapshotTarget
from ..errors import SnapshotTooLarge, StateNotStorable

MAX_INLINE_BYTES = 5 * 1024 * 1024
"""The most that the memory backend sends with an acknowledgement. Flink: MemoryStateBackend.DEFAULT_MAX_STATE_SIZE."""

SnapshotStore: TypeAlias = Callable[[SubtaskState, SnapshotTarget], SubtaskState]
"""Takes a state with inline handles, and says where it lies from now on."""

Part: TypeAlias = KeyedStateHandle | OperatorListHandle | ChannelStateHandle

Run = TypeVar("Run", OperatorListHandle, ChannelStateHandle)
"""What lies in one run of bytes, piece by piece."""


class SubtaskSnapshot:
    """Collects the operators' parts on the task's thread; written once, on another."""

    def __init__(self, *, data_ended: bool = False, watermarks: tuple[InputWatermark, ...] = ()) -> None:
        self._data_ended = data_ended
        self._watermarks = watermarks
        self.sizes: dict[OperatorId, int] = {}
        """By operator, the bytes of its state, once it is written."""
        self._parts: dict[OperatorId, tuple[KeyedSnapshot | None, tuple[OperatorListHandle, ...], str]] = {}

    def add(
        self,
        operator_id: OperatorId,
        keyed: KeyedSnapshot | None = None,
        lists: tuple[OperatorListHandle, ...] = (),
        name: str = "",
    ) -> None:
        """The synchronous results of one operator. `name`: the operator's, for errors."""
        assert operator_id not in self._parts, f"operator {operator_id} was added twice"
        self._parts[operator_id] = (keyed, lists, name or operator_id)

    def add_list(self, operator_id: OperatorId, handle: OperatorListHandle) -> None:
        """One more list of an operator that was added, known only now."""
        keyed, lists, name = self._parts[operator_id]
        self._parts[operator_id] = (keyed, (*lists, handle), name)

    def write(
        self, target: SnapshotTarget, store: SnapshotStore, channels: tuple[ChannelStateHandle, ...] = ()
    ) -> SubtaskState:
        """Run the asynchronous parts and store the result; a failure leaves no file under its final name. Raises
        StateNotStorable, which names the operator.

        `channels`: what was in flight, as inline handles, for a snapshot that is not aligned.
        """
        operators: dict[OperatorId, OperatorSubtaskState] = {}
        when_stored: list[Callable[[], None]] = []
        target = replace(target, when_stored=when_stored)
        try:
            for operator_id, (keyed, lists, name) in self._parts.items():
                try:
                    handle = keyed(target) if keyed is not None else None
                except StateNotStorable as error:
                    raise StateNotStorable(f"operator {name!r}, {error}") from error
                if handle is not None or lists:
                    made = OperatorSubtaskState((handle,) if handle is not None else (), lists)
                    operators[operator_id] = made
                    self.sizes[operator_id] = state_size_bytes(SubtaskState({operator_id: made}))
            stored = store(SubtaskState(operators, self._data_ended, channels, self._watermarks), target)
            return _with_own_bytes(stored) if when_stored else stored
        except BaseException:
            _remove_new_files(operators, target)
            raise
        finally:
            for call in when_stored:
                call()


def store_inline(state: SubtaskState, target: SnapshotTarget, limit_bytes: int = MAX_INLINE_BYTES) -> SubtaskState:
    """Leave the state as it is; raises SnapshotTooLarge."""
    size = state_size_bytes(state)
    if size > limit_bytes:
        raise SnapshotTooLarge(size, limit_bytes)
    return state


def store_in_file(state: SubtaskState, target: SnapshotTarget) -> SubtaskState:
    """Move all inline parts into the target's one file; handles that have files of their own stay as they are.

    So do lists that every subtask restores, unless they are large: for them each would read the files of all others.
    """
    inline = [part for part in _parts(state) if _inline(part)]
    if _size_bytes(inline) < target.inline_below_bytes:
        return state
    moves = _inline if _size_bytes(filter(_is_shared, inline)) >= target.inline_below_bytes else _inline_and_own
    moved = [part.handle for part in inline if moves(part)]
    parts = (handle.data for handle in moved if handle.data is not None)
    file = target.write(target.path, parts, first_checksum=moved[0].checksum if moved else None)
    return _moved(state, file, moves)


def state_handles(state: SubtaskState) -> Iterator[StateHandle]:
    """All handles, in order, shared ones too; several may point to one file."""
    for part in _parts(state):
        yield part.handle
        if isinstance(part, KeyedStateHandle):
            yield from (shared.handle for shared in part.shared)


def state_size_bytes(state: SubtaskState) -> int:
    """What the state takes, inline and in files, counting each file once."""
    files = {handle.path: handle.size_bytes for handle in state_handles(state) if handle.path is not None}
    return sum(files.values()) + sum(h.size_bytes for h in state_handles(state) if h.path is None)


def _parts(state: SubtaskState) -> Iterator[Part]:
    for operator in state.operators.values():
        yield from operator.keyed
        yield from operator.lists
    yield from state.channels


def _remove_new_files(operators: Mapping[OperatorId, OperatorSubtaskState], target: SnapshotTarget) -> None:
    """Of a snapshot that could not be written: its own shared files, which nobody has heard of."""
    handles = state_handles(SubtaskState(dict(operators)))
    for path in dict.fromkeys(handle.path for handle in handles if handle.path is not None):
        if target.storage is not None and target.wrote(path):
            with suppress(OSError):  # what stays goes when the job ends
                target.storage.delete(path)


def _with_own_bytes(state: SubtaskState) -> SubtaskState:
    """The same state, whose inline parts are not the memory of a backend; bytes are not copied."""

    def own(part: KeyedStateHandle) -> KeyedStateHandle:
        data = part.handle.data
        return part if data is None else replace(part, handle=replace(part.handle, data=bytes(data)))

    operators = {
        operator_id: replace(operator, keyed=tuple(map(own, operator.keyed)))
        for operator_id, operator in state.operators.items()
    }
    return replace(state, operators=operators)


def _moved(state: SubtaskState, file: StateHandle, moves: Callable[[Part], bool]) -> SubtaskState:
    """The same state, with every part that moves pointing into `file`, where they lie in their order."""
    base = 0

    def advance(handle: StateHandle) -> int:
        nonlocal base
        start = base
        base += handle.size_bytes
        return start

    operators = {}
    for operator_id, operator in state.operators.items():
        keyed = tuple(
            _moved_keyed(part, advance(part.handle), file) if moves(part) else part for part in operator.keyed
        )
        lists = tuple(_moved_run(part, advance(part.handle), file) if moves(part) else part for part in operator.lists)
        operators[operator_id] = OperatorSubtaskState(keyed, lists)
    channels = tuple(_moved_run(part, advance(part.handle), file) if moves(part) else part for part in state.channels)
    return replace(state, operators=operators, channels=channels)


def _size_bytes(parts: Iterable[Part]) -> int:
    return sum(part.handle.size_bytes for part in parts)


def _inline(part: Part) -> bool:
    return part.handle.data is not None


def _is_shared(part: Part) -> bool:
    """Whether all subtasks restore it, not only one."""
    return isinstance(part, OperatorListHandle) and part.mode != "split"


def _inline_and_own(part: Part) -> bool:
    return _inline(part) and not _is_shared(part)


def _moved_keyed(part: KeyedStateHandle, base: int, file: StateHandle) -> KeyedStateHandle:
    offsets = {group: (base + start, *rest) for group, (start, *rest) in part.offsets.items()}
    return replace(part, offsets=offsets, handle=file)


def _moved_run(part: Run, base: int, file: StateHandle) -> Run:
    return replace(part, offsets=tuple(base + offset for offset in part.offsets), handle=file)
