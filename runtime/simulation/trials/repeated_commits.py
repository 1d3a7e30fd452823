"""RepeatedCommits: whether a sink of the user's commits a transaction that it has committed before.

That is no mistake of the job: who dies behind a commit commits again when it is restored. But a commit that appends, or
adds up, does it twice. Of a sink that writes to a TransactionalLog it is seen whether it has.
"""

from __future__ import annotations

from typing import Any

import cloudpickle

from ....actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from ....messages.whose_code import is_ours
from ..world.transactional_log import logs_of_this_world


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
        if is_ours(type(operator)):
            return
        sink: Any = operator
        commit = sink.commit

        def commit_(transaction: Any) -> object:
            name = sink.context.name
            known = name, cloudpickle.dumps(transaction)
            is_again = bool(transaction) and known in self._done  # empty ones are all alike
            self._done.add(known)
            before = _visible()
            result = commit(transaction)
            if is_again and not (before and _visible() == before):
                self._say(name, transaction)
            return result

        sink.commit = commit_

    def _say(self, name: str, transaction: Any) -> None:
        self.found.setdefault(
            name,
            f"sink {name!r} commits {transaction!r:.60} again, as after each failure between a commit and "
            "the next checkpoint: commit must change nothing then. Let it look whether that is there already, as under "
            "the transaction's own name, or replace what is there in place of adding to it",
        )


def _visible() -> dict[str, int]:
    return {log.name: len(log.committed()) for log in logs_of_this_world()}
