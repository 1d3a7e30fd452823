"""Why there is no checkpoint, in words: for the log, the commands and the page. Events, REST and errors of the API keep
the words of CheckpointFailure and Refusal, which programs compare.
"""

from __future__ import annotations

import re

from .checkpoint_reasons import CheckpointFailure, Refusal

WORDS = {
    CheckpointFailure.SUBSUMED.value: "a newer one has completed before it",
    CheckpointFailure.TASK_FAILED.value: "a task has failed",
    CheckpointFailure.REGION_RESTARTING.value: "tasks restart",
    CheckpointFailure.METADATA_FAILED.value: "its metadata could not be written",
    CheckpointFailure.ORDERS_LOST.value: "its order may be lost",
    CheckpointFailure.SCHEDULER_STOPPED.value: "checkpoints were stopped",
    Refusal.COORDINATOR_SHUT_DOWN.value: "the job has ended",
    Refusal.PERIODIC_SCHEDULER_OFF.value: "checkpoints at an interval are off",
    Refusal.ALREADY_QUEUED.value: "one waits already",
    Refusal.TOO_MANY_CONCURRENT.value: "too many are under way",
    Refusal.MIN_PAUSE.value: "the pause after the last one is not over",
    Refusal.TASKS_NOT_READY.value: "not all tasks run",
    Refusal.STOP_UNDER_WAY.value: "a stop with a savepoint is under way",
    Refusal.JOB_IS_STOPPING.value: "the job is being stopped",
    Refusal.JOB_IS_ENDING.value: "the job is ending",
}
"""Those that are no plain words by themselves."""

_CODE = re.compile(rf"(^|: )({'|'.join(WORDS)})(?=: |$)", re.MULTILINE)
"""A part of a text between colons: within one it may be the user's."""


def in_words(text: str) -> str:
    return _CODE.sub(lambda found: found[1] + WORDS[found[2]], text)
