"""RepeatedCommits: whether a sink of the user's commits a transaction that it has committed before.

That is no mistake of the job: who dies behind a commit commits again when it is restored. But a commit that appends, or
adds up, does it twice. Of a sink that writes to a TransactionalLog it is seen whether it has.
"""

from __future__ import annotations

from typing import Any

import cloudpickle

from ....actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from ....messages.whose_code import is_ours
from ..world.transactional_log import sizes_of_logs


class RepeatedCommits:
    """Of one history. `found`: a sentence for each sink."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self._done: set[tuple[str, bytes]] = set()
        """Of each sink, transactions."""

    def begin_again(self) -> None:
        """Another history follows."""
        self._done.clear()

    def look_at(self, operator: TwoPhaseCommitSink[Any]) -> None:
        sink: Any = operator
        if is_ours(type(sink).commit):
            return
        commit = sink.commit

        def commit_(transaction: Any) -> object:
            name = sink.context.name
            known = name, cloudpickle.dumps(transaction)
            is_again = bool(transaction) and known in self._done  # empty ones are all alike
            self._done.add(known)
            before = sizes_of_logs()
            result = commit(transaction)
            if is_again and not (before and sizes_of_logs() == before):
                self._say(name, transaction)
            return result

        sink.commit = commit_

    def _say(self, name: str, transaction: Any) -> None:
        self.found.setdefault(
            name,
            f"sink {name!r} committed {transaction!r:.60} twice. This happens whenever a failure falls between a "
            "commit and the next completed checkpoint, so commit must be idempotent: look first whether the "
            "transaction is there (for example under its own name), or replace it instead of adding",
        )
