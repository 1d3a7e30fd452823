"""Methods that a source or a sink must have and its class does not define: it is refused where the stream is built.

Each would be called in a task, and fail the job there, some only at a checkpoint or after a failure.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from ...actors.operators.committer import CommittableWriter, Committer
from ...actors.operators.idempotent_sink import IdempotentSink
from ...actors.operators.ledger_sink import LedgerSink
from ...actors.operators.operator import Operator
from ...actors.operators.source import Source
from ...actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from ...messages.attributes import attributes_of
from ...messages.whose_code import is_ours
from .errors import InvalidOperator

_WANTED: Final[Mapping[type[Operator], Mapping[str, str]]] = {
    Source: {
        "poll": "poll(self), which returns a list of records, None where there are none yet, or END",
        "offset": "offset(self), which returns as plain data where the source is",
        "seek": "seek(self, offset), which goes on from there",
    },
    TwoPhaseCommitSink: {
        "begin_transaction": "begin_transaction(self), which returns a handle",
        "write": "write(self, transaction, batch), with a list of records",
        "pre_commit": "pre_commit(self, transaction)",
        "commit": "commit(self, transaction)",
        "abort": "abort(self, transaction)",
    },
    CommittableWriter: {
        "write": "write(self, batch)",
        "finish": "finish(self), which returns what is to be committed",
    },
    Committer: {"commit": "commit(self, committables, marker)", "last_marker": "last_marker(self, writer)"},
    LedgerSink: {
        "apply": "apply(self, batches, marker), which writes lists of records and the marker in one act",
        "last_marker": "last_marker(self, writer), which returns where its row stands, or None",
    },
    IdempotentSink: {"upsert": "upsert(self, batch), with a list of records"},
}
"""By base, how each of its abstract methods is defined. The first base that a class has counts."""

_WRITERS: Final = ("write_batch", "write_row", "invoke", "write", "process", "foreach_batch", "foreachBatch")
_ELSEWHERE: Final[Mapping[str, tuple[str, ...]]] = {
    "poll": ("next_batch", "poll_next", "pollNext", "run", "next_item", "read", "get_data"),
    "offset": ("snapshot", "snapshot_state", "snapshotState", "latestOffset", "latest_offset"),
    "seek": ("restore", "resume", "initialize_state", "initializeState"),
    "begin_transaction": ("beginTransaction",),
    "pre_commit": ("preCommit", "prepare_commit", "prepareCommit"),
    "finish": ("prepare_commit", "prepareCommit"),
    **dict.fromkeys(("write", "upsert", "apply"), _WRITERS),
}
"""What Flink, Bytewax and Spark call it."""

_OF_BATCHES: Final = ("write", "upsert")
"""Called by `process_batch` alone."""


def check_methods_supplied(operator: Operator) -> None:
    """Raises InvalidOperator."""
    kind = type(operator)
    base = next((each for each in _WANTED if isinstance(operator, each)), None)
    if base is None:
        return
    own_batches = kind.process_batch is not base.process_batch
    for name in _WANTED[base]:
        if getattr(kind, name, None) is not getattr(base, name) or name in vars(operator):
            continue
        if name in _OF_BATCHES and own_batches:
            continue
        role = "source" if base is Source else "sink"
        raise InvalidOperator(f"{role} {kind.__name__} does not define {name}{_of_another_name(kind, base, name)}")


def _of_another_name(kind: type[Operator], base: type[Operator], name: str) -> str:
    """What to write: in place of a method of the user's that is like it, if there is any that is not the base's too."""
    own = {
        each
        for user in kind.__mro__
        if not is_ours(user)
        for each, value in attributes_of(user).items()
        if _is_method(value)
    }
    strange = own - set(dir(base))
    found = next((each for each in _ELSEWHERE.get(name, ()) if each in strange), None)
    if found is None:
        found = next(iter(get_close_matches(name, sorted(strange), 1)), None)
    written = _WANTED[base][name]
    return f": write {written}" if found is None else f"; it defines {found}: write {written}, in its place"


def _is_method(value: object) -> bool:
    return inspect.isfunction(value)
