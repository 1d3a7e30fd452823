"""TaskState: the state of one subtask's operators. Made empty, restored off the task's thread, bound, snapshotted,
closed.

Each operator has a list backend, and a keyed one if it is keyed; an operator that brings keyed state of its own shape
(`keyed_state`) is snapshotted through that. A source's offset is a list state of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from ...messages import (
    ChannelStateHandle,
    CheckpointId,
    InputWatermark,
    KeyedStateHandle,
    OperatorId,
    SubtaskIndex,
    SubtaskState,
    TaskDeployment,
)
from ...messages.whose_code import is_ours
from ...state import (
    CheckpointStorage,
    KeyedStateBackend,
    NoCurrentKey,
    OperatorListState,
    OperatorStateBackend,
    SnapshotTarget,
    StateBackend,
    SubtaskSnapshot,
    bind_states,
    handle_reader,
    key_group_range,
    read_channel,
    state_size_bytes,
)
from ...state.backends.backend import (
    KeyedSnapshot,
    ReadState,
    is_counted,
    is_incremental,
    is_sampled,
    is_sharing,
)
from ...state.backends.frozen_state import KeptState
from ...state.backends.operator_state import packed_list
from ...state.backends.shared_backend import SharedBackend
from ...state.checkpoints.local_copies import LocalCopies
from ...state.keys.key_groups import KeyGroupRange
from ...state.rocks.common_format import in_common_format
from ..async_calls.async_calls import AsyncCalls
from ..async_calls.event_loop import CallLoop, no_call_loop
from ..barriers.in_flight_elements import InFlight, unpack_in_flight
from ..operators.keyed_operator import KeyedOperator
from ..operators.loops import IN_LOOP
from ..operators.missing_here import missing_here
from ..operators.operator import Operator
from ..operators.operator_time import OperatorTime
from ..operators.overdue_timers import OverdueTimers
from ..operators.restored_keys import SAMPLE, kinds_of, warn_of_question
from ..operators.source import RecordedOffset, Source
from ..operators.timers import Timers
from .operator_hooks import blame

OFFSET = OperatorListState(object, mode="union", name="source-offset")
"""At most one item, a RecordedOffset; restored, those of all subtasks."""


@dataclass(frozen=True, slots=True)
class StateServices:
    """Where snapshots go, and come from when they are another job's, and which backend holds keyed state."""

    storage: CheckpointStorage
    backend: StateBackend
    inline_threshold_bytes: int
    open_storage: Callable[[str], CheckpointStorage] = CheckpointStorage
    """Opens the root of another job's checkpoints, which the JobManager names."""
    call_loop: Callable[[], CallLoop] = no_call_loop
    """The event loop that the coroutines of operators run on."""
    copies_folder: str | None = None
    """On this machine, for copies of snapshots; None: there are none."""
    incremental: bool = False
    """Whether snapshots may hold files of earlier ones."""
    encryption_key: str = ""
    """The id of a key that this process needs; empty: it needs none."""


@dataclass(frozen=True, slots=True)
class Snapshotted:
    """What the newest snapshot of an operator has; `entries` None: the backend would have to look."""

    entries: int | None
    size_bytes: int


@dataclass(slots=True)
class _OperatorState:
    operator: Operator
    keyed: KeyedStateBackend | None
    lists: OperatorStateBackend = field(default_factory=OperatorStateBackend)
    calls: KeptState | None = None
    """What an operator with coroutines has in flight."""
    asked_kinds: set[str] = field(default_factory=set)
    """Of keys of questions that were compared with those in state."""


class TaskState:
    """Owned by the task; `restore` and the callable that `snapshot` returns may run on another thread."""

    def __init__(
        self, deployment: TaskDeployment, operators: Mapping[OperatorId, Operator], services: StateServices
    ) -> None:
        self.data_ended = any(state.data_ended for state in deployment.restored)
        """Whether the restored snapshot was taken after the subtask's data had ended."""
        self.in_flight: dict[tuple[int, SubtaskIndex], list[InFlight]] = {}
        """By edge and producer subtask, once it is restored: what an unaligned snapshot found in the channels."""
        self.sizes: dict[OperatorId, Snapshotted] = {}
        """By operator, of the newest snapshot; another one takes its place, so any thread may read it."""
        self.restored_watermarks = [each for state in deployment.restored for each in state.watermarks]
        self._deployment = deployment
        self._services = services
        folder = services.copies_folder
        self._copies = None
        if folder is not None:
            keys = services.storage.keys
            self._copies = LocalCopies(folder, deployment.vertex_id, deployment.subtask_index, keys)
        self._states = {
            operator_id: _OperatorState(operator, self._make_keyed(operator))
            for operator_id, operator in operators.items()
        }
        self._offset: OperatorListState[Any] | None = None
        for operator_id, state in self._states.items():
            if services.incremental and is_incremental(state.keyed):
                state.keyed.track_changes(operator_id)

    def restore(self) -> None:
        """Read what the deployment restores, and put accessors in place of the operators' declarations. Blocks. Raises
        WrongEncryptionKey where snapshots of this process would not be encrypted as the job wants it.
        """
        self._services.storage.check_encryption(self._services.encryption_key)
        root = self._deployment.restored_root
        storage = self._services.open_storage(root) if root else self._services.storage
        for restored in self._deployment.restored:
            read = handle_reader(storage) if self._copies is None else self._copies.reader(storage)
            for operator_id, found in restored.operators.items():
                state = self._states.get(operator_id)
                if state is None:
                    continue
                state.lists.restore(found.lists, read)
                if found.keyed and state.keyed is not None:
                    state.keyed.restore(self._readable(state, found.keyed, read), read)
            for channel in restored.channels:
                self.in_flight[channel.edge, channel.producer_subtask] = read_channel(channel, read, unpack_in_flight)
        for state in self._states.values():
            is_keyed = isinstance(state.operator, KeyedOperator)
            clock = OperatorTime(state.operator) if isinstance(state.operator, KeyedOperator) else None
            keyed = state.keyed if is_keyed else None
            bind_states(state.operator, keyed, state.lists, state.operator.context.name, clock)
            if state.calls is not None and isinstance(state.keyed, SharedBackend):
                state.keyed.keep(state.calls)
            if isinstance(state.operator, Source):
                self._offset = state.lists.state(OFFSET)
            if isinstance(state.operator, KeyedOperator):
                assert state.keyed is not None
                state.operator._backend = state.keyed
                state.lists.has_key = state.operator._has_key
                if is_sampled(state.keyed):
                    state.operator._kept_kinds = kinds_of(state.keyed.some_keys(SAMPLE))
                operator = state.operator
                of_user = not is_ours(type(operator))
                event_ms, overdue = (operator._event_time, OverdueTimers(operator)) if of_user else (None, None)
                operator._overdue = overdue
                operator.timers = Timers(state.keyed, operator._no_timers, operator.processing_time, event_ms, overdue)

    def give_calls(self, make: Callable[[Operator, SharedBackend], AsyncCalls]) -> None:
        """Make what runs the coroutines of the first operator, if it has any: before `restore`."""
        for state in self._states.values():
            if isinstance(state.keyed, SharedBackend):
                state.operator._calls = state.calls = make(state.operator, state.keyed)

    def restored_offsets(self) -> list[RecordedOffset]:
        """What all subtasks of the source recorded; nothing on a fresh start."""
        return [RecordedOffset(*item) for item in self._offset.get()] if self._offset is not None else []

    def snapshot(
        self,
        checkpoint_id: CheckpointId,
        offset: tuple[Any] | None,
        *,
        data_ended: bool,
        watermarks: tuple[InputWatermark, ...] = (),
        whole: bool = False,
    ) -> Callable[..., tuple[SubtaskState, int]]:
        """The synchronous part; the callable writes, and returns the handles and their size in bytes.

        It takes the state of channels, for a snapshot that is not aligned, and at the head of a loop what was on its
        way back. `whole`: it names no file of earlier ones.
        """
        if offset is not None and self._offset is not None:
            where = self._deployment
            self._offset.update([(where.subtask_index, where.parallelism, *offset)])
        entries: dict[OperatorId, int] = {}
        taken = SubtaskSnapshot(data_ended=data_ended, watermarks=watermarks)
        for operator_id, state in self._states.items():
            with blame(state.operator):
                keyed = self._keyed(state, checkpoint_id, whole, data_ended)
                if is_counted(state.keyed):
                    entries[operator_id] = state.keyed.stored_entries()
                taken.add(operator_id, keyed, state.lists.snapshot(), state.operator.context.name)
        deployment = self._deployment
        target = SnapshotTarget(
            self._services.storage,
            deployment.job_id,
            checkpoint_id,
            deployment.vertex_id,
            deployment.subtask_index,
            deployment.attempt_id,
            self._services.inline_threshold_bytes,
            self._copies,
        )

        def write(
            channels: tuple[ChannelStateHandle, ...] = (), in_loop: Sequence[bytes] = ()
        ) -> tuple[SubtaskState, int]:
            if in_loop:
                taken.add_list(deployment.operators[0].operator_id, packed_list(IN_LOOP, in_loop))
            written = taken.write(target, self._services.backend.store, channels)
            if self._copies is not None:
                self._copies.written(checkpoint_id, written)
            self.sizes = {each: Snapshotted(entries.get(each), taken.sizes.get(each, 0)) for each in self._states}
            return written, state_size_bytes(written)

        return write

    def checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        for state in self._states.values():
            if state.keyed is not None:
                state.keyed.checkpoint_complete(checkpoint_id)
        if self._copies is not None:
            self._copies.complete(checkpoint_id)

    def _keyed(
        self, state: _OperatorState, checkpoint_id: CheckpointId, whole: bool, data_ended: bool
    ) -> KeyedSnapshot | None:
        """The last checkpoint of a job may be large and is hardly ever read: it may name files all the same."""
        if state.keyed is None:
            return None
        if whole and not data_ended and is_sharing(state.keyed):
            return state.keyed.whole_snapshot(checkpoint_id)
        if self._services.incremental and not whole and is_incremental(state.keyed):
            return state.keyed.increment(checkpoint_id)
        return state.keyed.snapshot(checkpoint_id)

    @contextmanager
    def reading(self, operator: Operator, has_key: bool, key: Any) -> Iterator[None]:
        """While a question is answered: its key is set, or none if it has none, and nothing may change."""
        state = self._states[operator.context.operator_id]
        if has_key and is_sampled(state.keyed):
            warn_of_question(operator.context.name, key, state.keyed.some_keys, state.asked_kinds)
        keyed = nullcontext() if state.keyed is None else state.keyed.read_only()
        with state.lists.read_only(), keyed:
            timers = operator.timers if isinstance(operator, KeyedOperator) else None
            if has_key and isinstance(operator, KeyedOperator):
                operator._enter_key(key)
            if timers is not None:
                timers.is_read_only = True
            try:
                yield
            except (NoCurrentKey, AttributeError) as error:
                found = missing_here(error, operator, "on_receive")
                if found is error:
                    raise
                raise found from None
            finally:
                if timers is not None:
                    timers.is_read_only = False
                operator._leave_key()

    def close(self) -> None:
        for state in self._states.values():
            state.lists.close()
            if state.keyed is not None:
                state.keyed.close()

    def _readable(
        self, state: _OperatorState, handles: tuple[KeyedStateHandle, ...], read: ReadState
    ) -> tuple[KeyedStateHandle, ...]:
        """In a format that this operator's keyed state knows; an operator's own state knows only the common one."""
        is_own = getattr(state.operator, "keyed_state", None) is not None
        reads = frozenset[str]() if is_own else self._services.backend.reads
        if reads:
            return handles
        return in_common_format(handles, read, self._key_groups().groups)

    def _key_groups(self) -> KeyGroupRange:
        where = self._deployment
        return key_group_range(where.max_parallelism, where.parallelism, where.subtask_index)

    def _make_keyed(self, operator: Operator) -> KeyedStateBackend | None:
        own = getattr(operator, "keyed_state", None)
        if own is not None:
            return own  # type: ignore[no-any-return]
        if not (isinstance(operator, KeyedOperator) or operator._is_async):
            return None
        backend = self._services.backend.keyed_backend(self._key_groups(), self._deployment.max_parallelism)
        return SharedBackend(backend, self._services.call_loop().lock()) if operator._is_async else backend
