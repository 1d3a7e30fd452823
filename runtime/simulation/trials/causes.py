"""Causes: looks at a user's operators while a history that went wrong is run once more, for common mistakes.

State in a plain attribute: it changed up to a barrier, and after the restore it is not what it was at any barrier that
may have been restored. Output that is visible too early: a TransactionalLog grows while a batch is processed or at a
barrier, when the checkpoint may still fail. An offset that does not say what comes next: other records follow on it
than did before. Where nothing of that was found, the clock, and then the moments of checkpoints; where not even that,
calls that give something else in each run, and variables of the program that a function changes; and last, generators
and caches, whose contents nobody can compare, state that expires by the clock, and transactions that are committed
again. Beside any of these, timers that were due when they were deleted. All are likely causes, and no more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from types import AsyncGeneratorType, GeneratorType, SimpleNamespace
from typing import Any

import cloudpickle

from ....actors.operators.collector import Collector
from ....actors.operators.idempotent_sink import IdempotentSink
from ....actors.operators.keyed_operator import KeyedOperator
from ....actors.operators.operator import Operator
from ....actors.operators.source import FromSplit, Source
from ....actors.operators.two_phase_commit_sink import TwoPhaseCommitSink
from ....messages import CheckpointId
from ....messages.attributes import attributes_of
from ....messages.whose_code import is_ours
from ....state import declared_states
from ...api.captured_changes import changes, changes_of
from ...api.stream_graph import StreamNode
from ..harness.attribute_watch import Held, is_generator, same_data, what_was_lost
from ..world.transactional_log import sizes_of_logs
from .deleted_timers import DeletedTimers
from .held_by import advice_on_lists, held_and_listed, held_by, holds_sets, is_the_users_hook
from .reached_functions import caches_reached_by, functions_reached_by, methods_reached_by
from .repeated_commits import RepeatedCommits
from .unsteady_calls import FILES, HASH, unsteady_calls

_OF_THE_RECORD = "Make random numbers from the record: random.Random(record_id), or numpy's default_rng(record_id)"

_IN_OPEN = "in open, which is called again in each subtask and after each restore"

_Place = tuple[str, str, int, int]
"""A subtask of an operator: job, operator, parallelism and index."""


class Causes:
    """Of one history. `found`: what was seen, a sentence each, in the order in which it was."""

    def __init__(self) -> None:
        self._found: dict[str, str] = {}
        """By attribute, or by operator and log: each is reported once."""
        self._at_barriers: dict[_Place, dict[CheckpointId, tuple[Held, Held]]] = defaultdict(dict)
        """By checkpoint: what the attempt held when it was opened, and at the barrier."""
        self._sizes: dict[str, int] = {}
        self._clocks: dict[str, str] = {}
        """By operator, where nothing of that is found."""
        self._paced: dict[str, str] = {}
        """By operator, where nothing of these is found."""
        self._unsteady: dict[str, str] = {}
        self._hashes: dict[str, str] = {}
        self._variables: dict[str, str] = {}
        """The same, where nothing else is found."""
        self._memories: dict[str, str] = {}
        self._sets: dict[str, str] = {}
        """And the same again, in this order."""
        self._commits, self._timers = RepeatedCommits(), DeletedTimers()
        self._after: dict[tuple[object, ...], dict[bytes, Any]] = defaultdict(dict)
        """By source, of whichever job of the history, and offset, the first record that came then."""

    @property
    def found(self) -> tuple[str, ...]:
        seen = self._found, self._clocks, self._paced
        last = self._memories, self._commits.found, self._sets
        in_code = {**self._unsteady, **self._hashes}, self._variables
        return tuple(next(filter(None, (*seen, *in_code, *last)), {}).values())

    @property
    def timers(self) -> tuple[str, ...]:
        """The operators that have deleted timers that were due: a cause beside these, where batches may end elsewhere
        than in the run that the history is compared with. Two runs of one seed have the same batches.
        """
        return tuple(self._timers.found.values())

    def begin_again(self) -> None:
        """Another history follows, which restores nothing of what was before."""
        self._at_barriers.clear()
        self._sizes.clear()
        self._commits.begin_again()

    def look_at(self, operator: Operator) -> None:
        """Stand before what a new operator is called with."""
        self.look_at_code(operator)
        self._timers.look_at(operator)
        if isinstance(operator, Source):
            if not is_ours(type(operator)):
                self._look_at_offsets(operator)
        else:
            self._look_at_attributes(operator)
            self._look_at_checkpoints(operator)
            for name, moment in (
                ("process_batch", "while it processes a batch"),
                ("on_idle", "while it processes a batch"),
                ("on_checkpoint", "at a barrier"),
            ):
                self._look_at_output(operator, name, moment)
            if isinstance(operator, TwoPhaseCommitSink):  # in open it commits what was prepared
                self._commits.look_at(operator)
            else:
                self._look_at_output(operator, "open", _IN_OPEN)

    def look_at_code(self, operator: Operator) -> None:
        """The part that needs no run."""
        self._look_at_variables(operator)
        self._look_at_calls(operator)

    def look_at_keys(self, nodes: Iterable[StreamNode]) -> None:
        """The same, for functions that give records their keys."""
        selectors = (edge.selector for node in nodes for edge in node.inputs if edge.selector is not None)
        for function in (part for selector in selectors for part in selector.parts if callable(part)):
            holder: Any = SimpleNamespace(key_function=function)
            self.look_at_code(holder)

    @property
    def in_code(self) -> list[str]:
        """What may be wrong, though nothing has gone wrong."""
        return [*self._unsteady.values(), *self._variables.values(), *self._memories.values()]

    # ---- inside

    def _look_at_variables(self, operator: Operator) -> None:
        helpers = (change for function in functions_reached_by(operator) for change in changes(function))
        objects = (change for method in methods_reached_by(operator) for change in changes(*method))
        for function, what, file, line in (*changes_of(operator), *helpers, *objects):
            self._variables.setdefault(
                what,
                f"{function} changes {what} of your program ({file}:{line}): no checkpoint holds it, and what it is "
                "depends on what else its process has done. Keep what later records need in the state of a "
                "KeyedOperator",
            )

    def _look_at_calls(self, operator: Operator) -> None:
        for each in unsteady_calls(operator):
            into = self._memories if each.asks in FILES else self._hashes if each.asks == HASH else self._unsteady
            into.setdefault(f"{each.function} {each.asks}", each.told)

    def _look_at_offsets(self, source: Any) -> None:
        """Whether the same records follow on an offset, each time."""
        offset, seek, poll = source.offset, source.seek, source.poll
        ahead: dict[bytes, tuple[str, Any]] = {}
        """Offsets on which the next record follows."""

        def offset_() -> Any:
            given = offset()
            ahead[cloudpickle.dumps(given)] = "offset() had returned", given
            return given

        def seek_(given: Any) -> object:
            ahead[cloudpickle.dumps(given)] = "seek was called with", given
            return seek(given)

        def poll_() -> Any:
            batch = poll()
            records = batch.records if isinstance(batch, FromSplit) else batch
            if isinstance(records, list) and records:
                after = self._after[_place(source)[1:]]
                for key, (how, given) in ahead.items():
                    before = after.setdefault(key, records[0])
                    if before != records[0]:
                        self._found.setdefault(
                            f"offset of {source.context.name}",
                            f"source {source.context.name!r} gave {records[0]!r:.60} next when {how} {given!r:.60}, "
                            f"and {before!r:.60} another time: offset() has to say which record poll() gives next, and "
                            "seek(offset) to go there",
                        )
                ahead.clear()
            return batch

        source.offset, source.seek, source.poll = offset_, seek_, poll_

    def _look_at_attributes(self, operator: Any) -> None:
        opened: Callable[[], object] = operator.open
        on_checkpoint: Callable[[CheckpointId], object] = operator.on_checkpoint
        on_complete: Callable[[CheckpointId], object] = operator.on_checkpoint_complete
        first: list[Held] = []

        def open_() -> object:
            self._look_at_clock(operator)
            result = opened()
            first.append(held_by(operator))
            self._restored(operator, first[0])
            return result

        def barrier(checkpoint_id: CheckpointId) -> object:
            result = on_checkpoint(checkpoint_id)
            self._look_at_memories(operator)
            self._at_barriers[_place(operator)][checkpoint_id] = first[0], held_by(operator)
            return result

        def complete(checkpoint_id: CheckpointId) -> object:
            barriers = self._at_barriers[_place(operator)]
            for older in [each for each in barriers if each < checkpoint_id]:
                del barriers[older]
            return on_complete(checkpoint_id)

        operator.open, operator.on_checkpoint, operator.on_checkpoint_complete = open_, barrier, complete

    def _restored(self, operator: Operator, held: Held) -> None:
        """An attempt is opened. It restores the newest complete checkpoint, or a later one that nobody has heard of."""
        barriers = self._at_barriers[_place(operator)]
        remedy = "Declare it, as an OperatorListState for example"
        if isinstance(operator, KeyedOperator):
            remedy = "Declare it, as a ValueState or MapState for example"
        elif is_ours(type(operator)):
            remedy = (
                "Write an operator in place of the function, and declare it there: as a ValueState of a KeyedOperator"
            )
        lists = advice_on_lists(operator)
        if lists:
            remedy = f"Declare it; or, if a list of the operator holds it, read that list in open: {lists}"
        for before, at_barrier in barriers.values():
            for line in what_was_lost(before, at_barrier, held):
                what, _, values = line.partition(": ")
                if not any(same_data(other.get(what), held.get(what)) for _, other in barriers.values()):
                    if lists and not same_data(before.get(what), held.get(what)):
                        self._found.setdefault(what, f"{what} comes back as something else: {values}. {lists}")
                        continue
                    told = f"{what} is not declared as state, so no checkpoint holds it: {values}"
                    draws = is_generator(at_barrier.get(what))
                    self._found.setdefault(what, f"{told}. {_OF_THE_RECORD if draws else remedy}")

    def _look_at_memories(self, operator: Operator) -> None:
        """What cannot be pickled, and so not compared: generators, and functions that remember their results. And state
        that is short-lived enough to have expired by now.
        """
        kind = type(operator).__name__
        for name, each in declared_states(type(operator)).items():
            if operator.context.restored and holds_sets(each):
                self._sets[name] = (
                    f"state {name!r} of {kind} holds sets, and a restored one is gone through in another order: "
                    "sorted(...) where its items go out"
                )
            ttl = getattr(each, "ttl", None)
            if ttl is not None and ttl.clock == "processing" and ttl.duration_ms <= operator.context.clock.now_ms():
                self._memories[name] = (
                    f"state {name!r} of {kind} expires by the clock, after {ttl.duration_ms} ms: what is there depends "
                    'on when it runs, and a restart changes that. Ttl(..., clock="event") goes by event time'
                )
        for name, value in attributes_of(operator).items():
            if isinstance(value, GeneratorType | AsyncGeneratorType) and not is_ours(type(operator)):
                self._memories[name] = (
                    f"attribute {name!r} of {kind} is a generator, and no checkpoint holds the variables of its "
                    "function. Keep in declared state what it goes by"
                )
        for cache in caches_reached_by(operator):
            self._say_cached(cache)

    def _say_cached(self, function: Any) -> None:
        self._memories[function.__qualname__] = (
            f"{function.__qualname__} remembers what it has returned (functools.lru_cache), in its process and in no "
            "checkpoint. Let it remember only what its arguments alone decide, and not what goes by state"
        )

    def _look_at_clock(self, operator: Any) -> None:
        """Whether a KeyedOperator of the user's goes by processing time. Its timers are there when it is opened."""
        if not isinstance(operator, KeyedOperator) or is_ours(type(operator)):
            return

        def watched(call: Callable[..., Any], what: str) -> Callable[..., Any]:
            def asked(*arguments: Any, **named: Any) -> Any:
                self._clocks.setdefault(
                    operator.context.name,
                    f"operator {operator.context.name!r} goes by the clock ({what}): what it emits depends on when it "
                    "runs, and a restart changes that. Use event time, or leave out of the comparison what the clock "
                    "decides",
                )
                return call(*arguments, **named)

            return asked

        asked_for: Any = operator
        asked_for.processing_time = watched(operator.processing_time, "self.processing_time")
        if (timers := getattr(operator, "timers", None)) is not None:
            timers.at_processing_time = watched(timers.at_processing_time, "self.timers.at_processing_time")

    def _look_at_checkpoints(self, operator: Any) -> None:
        """Whether a hook of the user's, at a barrier or behind a checkpoint, decides what is emitted."""
        complete, before_barrier = operator.on_checkpoint_complete, operator.before_barrier

        def paced(what: str, first: str = "") -> None:
            name = operator.context.name
            self._paced.setdefault(
                name,
                f"operator {name!r} {what}: what it emits depends on when checkpoints are taken and complete, which "
                f"changes from run to run. {first}Go by the records, or by event time, or leave out of the "
                "comparison what depends on it",
            )

        def completed(checkpoint_id: CheckpointId) -> object:
            before = held_and_listed(operator)
            result = complete(checkpoint_id)
            after = held_and_listed(operator)
            if changed := next((what for what in after if before.get(what) != after[what]), None):
                paced(
                    f"changes {changed} when a checkpoint completes (on_checkpoint_complete)",
                    "If it holds what waits for its checkpoint, take there only what came before that checkpoint's "
                    "barrier, and keep what has come since. Otherwise: ",
                )
            return result

        def at_barrier(checkpoint_id: CheckpointId, out: Collector) -> object:
            held = len(out)
            result = before_barrier(checkpoint_id, out)
            if len(out) > held:
                paced("emits records at a barrier (before_barrier)")
            return result

        if is_the_users_hook(operator, "on_checkpoint_complete"):
            operator.on_checkpoint_complete = completed
        if is_the_users_hook(operator, "before_barrier"):
            operator.before_barrier = at_barrier

    def _look_at_output(self, operator: Any, name: str, moment: str) -> None:
        function: Callable[..., object] = getattr(operator, name, None) or (lambda *_: None)

        def called(*arguments: Any) -> object:
            self._grown()
            result = function(*arguments)
            for log in self._grown():
                told = f"made records of the log {log!r} visible {moment}: they come again. Make them visible in commit"
                if moment != _IN_OPEN:
                    told = (
                        f"made records of the log {log!r} visible {moment}, when their checkpoint was not complete: "
                        "after a restore they come again. Make them visible in commit"
                    )
                if isinstance(operator, IdempotentSink):
                    told = (
                        f"sets rows, and sets them again after a restore: the log {log!r} has each time. Compare the "
                        f"rows that are left, as in outside={{{log!r}: lambda: dict(TransactionalLog({log!r})"
                        ".committed()).items()}"
                    )
                self._found.setdefault(f"{operator.context.name} {log}", f"{operator.context.name!r} {told}")
            return result

        if hasattr(operator, name):
            setattr(operator, name, called)

    def _grown(self) -> list[str]:
        """The logs in which more is visible than the last time."""
        before, self._sizes = self._sizes, sizes_of_logs()
        return [name for name, size in self._sizes.items() if size > before.get(name, 0)]


def _place(operator: Operator) -> _Place:
    context = operator.context
    return context.job_id, context.name, context.parallelism, context.subtask_index
