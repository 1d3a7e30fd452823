"""checkpoint_coordinator.json: the coordinator's scripts, and the store, the id counter and the facts around it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import zip_longest

from understudy.messages import CheckpointId, JobStatus
from understudy.state.checkpoints.checkpoint_ids import StandaloneCheckpointIdCounter
from understudy.state.checkpoints.completed_checkpoints import StandaloneCompletedCheckpointStore

from ..actors.checkpoints import test_checkpoint_endings as checkpoint_endings
from ..actors.checkpoints import test_pending_checkpoint
from ..state.checkpoints.test_completed_checkpoints import ids, make_checkpoint
from . import checkpoint_restore, kept_checkpoints
from .coordinator_script import Script, normal_outcome
from .scenario import (
    Difference,
    Scenario,
    UnknownWord,
    Words,
    compare,
    compare_all,
    facts_of,
    scenarios_of,
)

KEYS = frozenset(
    {"tasks_to_trigger", "tasks_to_wait", "tasks_to_confirm", "completed_store", "id_counter", "refused_because"}
    | {"pending_checkpoint_facts", "acked_with_state", "savepoint_checkpoint_id", "expect_deleted_shared_state"}
)
"""Words that only this schema has."""

STATUSES = {status.name: status for status in JobStatus} | {"SUSPENDED": JobStatus.RUNNING}
"""Suspended is whatever is not terminal."""

ENDINGS = [*checkpoint_endings.ENDINGS, "subsumed"]

PROOFS = {
    "can_be_subsumed": [checkpoint_endings.test_a_savepoint_is_not_subsumed],
    "completion_future": [
        test_pending_checkpoint.test_finalize_with_acks_missing_is_illegal_and_changes_nothing,
        test_pending_checkpoint.test_finalize_happens_once,
        *(
            partial(checkpoint_endings.test_whatever_ends_a_savepoint_answers_its_promise_once, reason)
            for reason in checkpoint_endings.ENDINGS
        ),
    ],
    "abort_discards_state": [
        partial(checkpoint_endings.test_whatever_ends_a_checkpoint_discards_its_states_once, reason)
        for reason in ENDINGS
    ],
    "stats_callbacks": [
        checkpoint_endings.test_a_completed_checkpoint_is_counted_as_completed,
        *(
            partial(checkpoint_endings.test_each_acknowledgement_and_each_end_is_counted_once, reason)
            for reason in ENDINGS
        ),
    ],
    "null_state_means_stateless": [
        test_pending_checkpoint.test_a_stateless_subtask_has_no_entry_and_one_with_empty_state_has
    ],
    "timeout_handle": [
        partial(checkpoint_endings.test_whatever_ends_a_checkpoint_cancels_its_timer, reason) for reason in ENDINGS
    ],
}

OTHERWISE = {
    "metadata_persisted_only_when_external": "every checkpoint has a metadata file here, written before it counts"
}


def scenarios(document: Words) -> Iterator[Scenario]:
    yield from scenarios_of(document, "scenarios", _play)
    yield from facts_of(document, "pending_checkpoint_facts", PROOFS, OTHERWISE)
    yield from scenarios_of(document, "completed_store", _store)
    yield from scenarios_of(document, "id_counter", _count)
    yield from checkpoint_restore.scenarios(document)


def _play(words: Words) -> Iterator[Difference]:
    script = Script(words["config"])
    for number, step in enumerate(words["steps"]):
        found = script.describe(*script.play(step))
        expected = {"outcomes": [], "states_discarded": []} | (step.get("expect") or {})
        expected["outcomes"] = [normal_outcome(outcome) for outcome in expected["outcomes"]]
        for facts in (expected, found):
            facts["states_discarded"] = sorted(facts["states_discarded"])
        yield from compare_all(f"step {number} ({step['do']})", expected, found)


# ------------------------------------------------------------------------------------------ store and counter


def _store(words: Words) -> Iterator[Difference]:
    try:
        store = StandaloneCompletedCheckpointStore(words["retain"])
    except ValueError:
        yield from compare("constructor", words.get("expect", {}).get("constructor"), "error")
        return
    if words.get("expect", {}).get("constructor") == "error":
        yield Difference("constructor", "error", "a store")
        return
    if words.get("backend", "standalone") != "standalone":
        yield from kept_checkpoints.play_store(words)
        return
    discarded: list[int] = []
    for number, (step, expected) in enumerate(zip_longest(words["steps"], words.get("expect_after", []), fillvalue={})):
        match step:
            case {"add": checkpoint}:
                discarded += ids(store.add(make_checkpoint(checkpoint)))
            case {"shutdown": status}:
                discarded += ids(store.shutdown(STATUSES[status]))
            case _:
                raise UnknownWord(f"found the step {step}; wanted add or shutdown")
        yield from compare_all(f"step {number}", expected, _contents(store, discarded))
    yield from compare_all("at the end", words.get("expect", {}), _contents(store, discarded))


def _contents(store: StandaloneCompletedCheckpointStore, discarded: list[int]) -> Words:
    latest = store.latest()
    return {
        "retained": ids(store.retained()),
        "latest": None if latest is None else latest.checkpoint_id,
        "discarded": list(discarded),
    }


def _count(words: Words) -> Iterator[Difference]:
    if isinstance(words.get("expect"), dict):
        yield from kept_checkpoints.play_counter(words)
        return
    counter = StandaloneCheckpointIdCounter()
    if "threads" in words:
        # One actor owns a counter: what several threads ask for comes to it one by one.
        drawn = [counter.get_and_increment() for _ in range(words["threads"] * words["increments_per_thread"])]
        yield from compare("drawn", list(range(1, len(drawn) + 1)), sorted(drawn))
        yield from compare("the next", len(drawn) + 1, counter.get_and_increment())
        return
    returned: list[int | None] = []
    for call in words["calls"]:
        match call:
            case "get_and_increment":
                returned.append(counter.get_and_increment())
            case {"set_count": count}:
                returned.append(counter.set_count(CheckpointId(count)))  # type: ignore[func-returns-value]
            case _:
                raise UnknownWord(f"found the call {call!r}; wanted get_and_increment or set_count")
    yield from compare("returns", words["returns"], returned)
