"""Why there is no checkpoint, as it is shown: no code word is left, and nothing else is changed."""

from __future__ import annotations

import pytest

from understudy.actors.checkpoints.checkpoint_reasons import CheckpointFailure, Refusal
from understudy.actors.checkpoints.reason_words import in_words


@pytest.mark.parametrize("reason", [*CheckpointFailure, *Refusal], ids=str)
def test_each_reason_has_words(reason: CheckpointFailure | Refusal) -> None:
    for text in (reason.value, f"no savepoint could be triggered: {reason.value}: a/0", f"{reason.value}: a_b"):
        assert "_" not in in_words(text).replace("a_b", "")


@pytest.mark.parametrize("text", ["declined: map-0: KeyError: 'task_failed'", "expired: see region_restarting.txt", ""])
def test_a_users_own_text_stays(text: str) -> None:
    assert in_words(text) == text


def test_what_follows_stays() -> None:
    found = in_words("no savepoint could be triggered: tasks_not_ready: a/0 not running")
    assert found == "no savepoint could be triggered: not all tasks run: a/0 not running"


def test_each_line_has_its_reason() -> None:
    assert in_words("checkpoint 7: task_failed\nsubsumed") == "checkpoint 7: a task has failed\n" + in_words("subsumed")
