"""two_phase_commit.json: a TwoPhaseCommitSink into a store that keeps transactions."""

from __future__ import annotations

from collections.abc import Iterator

from ..actors.operators.transaction_store import Store, StoreSink
from ..runtime.connectors.harness import ManualClock, Running, Snapshot
from .scenario import REMARKS, Difference, Scenario, UnknownWord, Words, compare, said, scenarios_of

KEYS = frozenset(
    {"write", "notify_complete", "restart_from", "visible", "open_transactions", "open_transactions_after_close"}
)
"""Words that only this schema has."""


def scenarios(document: Words) -> Iterator[Scenario]:
    return scenarios_of(document, "scenarios", lambda words: _Script(said(words)).play())


class _Script:
    """One scenario: a sink, its attempts, its snapshots by name."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._store, self._clock = Store(), ManualClock()
        self._snapshots: dict[str, Snapshot] = {}
        self._attempt = 0
        self._running: Running[StoreSink] | None = self._start(None)

    def _start(self, snapshot: Snapshot | None) -> Running[StoreSink]:
        sink = StoreSink(self._store)
        sink.transaction_timeout_ms = self._words.get("timeout_ms")
        sink.ignore_failures_after_timeout = self._words.get("ignore_failures_after_timeout", False)
        return Running(sink, snapshot, clock=self._clock, attempt=self._attempt)

    def _sink(self) -> Running[StoreSink]:
        assert self._running is not None, "the sink runs: a restart before this step was to fail"
        return self._running

    def play(self) -> Iterator[Difference]:
        for number, step in enumerate(map(said, self._words["steps"])):
            match step:
                case {"at_ms": at_ms}:
                    self._clock.ms = at_ms
                case {"write": record}:
                    self._sink().take(record)
                case {"snapshot": checkpoint_id}:
                    yield from self._snapshot(f"step {number}", checkpoint_id, step)
                case {"notify_complete": checkpoint_id}:
                    self._sink().complete(checkpoint_id)
                case {"close": True}:
                    self._sink().operator.close()
                    self._running = None
                case {"restart_from": name}:
                    yield from self._restart(f"step {number}", self._snapshots[str(name)], step.get("expect", "ok"))
                case _:
                    raise UnknownWord(f"found the step {step}")
        yield from self._compare_end(self._words["expect"])

    def _snapshot(self, where: str, checkpoint_id: int, step: Words) -> Iterator[Difference]:
        self._store.fail_pre_commits = step.get("fails", False)
        found = "ok"
        try:
            self._snapshots[step.get("as", str(checkpoint_id))] = self._sink().checkpoint(checkpoint_id)
        except OSError:
            found = "error"
        self._store.fail_pre_commits = False
        yield from compare(f"{where}: snapshot", "error" if step.get("fails") else "ok", found)

    def _restart(self, where: str, snapshot: Snapshot, expected: str) -> Iterator[Difference]:
        if self._running is not None:
            self._running.operator.close()
            self._running = None
        self._attempt += 1
        self._store.fail_commits = self._words.get("commit_on_recovery_fails", False)
        found = "ok"
        try:
            self._running = self._start(snapshot)
        except OSError:
            found = "error"
        yield from compare(f"{where}: restart", expected, found)

    def _compare_end(self, expect: Words) -> Iterator[Difference]:
        for name, wanted in expect.items():
            match name:
                case _ if name in REMARKS:
                    pass
                case "visible":
                    yield from compare(name, wanted, self._store.visible)
                case "open_transactions":
                    yield from compare(name, wanted, len(self._store.open))
                case "open_transactions_after_close":
                    pass
                case _:
                    raise UnknownWord(f"nothing can be said about {name!r}")
        if "open_transactions_after_close" in expect:
            if self._running is not None:
                self._running.operator.close()
            yield from compare("after close", expect["open_transactions_after_close"], len(self._store.open))
