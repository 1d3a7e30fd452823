"""Calm: what must hold of a history in which nothing is wrong, beyond what its jobs commit."""

from __future__ import annotations

from collections.abc import Iterator

from ....messages import CheckpointAborted, CheckpointCompleted, JobStatusChanged
from ...oracles import Violation
from ..world.trace import Trace
from .catalogue import CATALOGUE
from .scenario import Scenario

_START_AND_END_MS = 10_000.0
"""For starting processes and for the last checkpoints, over a slow network and with slow storage."""

_ACTION_MS = 5_000.0
"""For each thing that the user does: a savepoint, an end, a new beginning."""

_LONG_MS = 20_000.0
"""Half of this is enough for event time to go on, and for a checkpoint after that."""

_USERS_OWN = ("subsumed", "region_restarting", "scheduler_stopped", "coordinator_shut_down", "job_is_ending")
"""Why checkpoints are given up in a calm history too: newer ones are complete, or the user, or the data, has ended the
job.
"""


def needless_trouble(scenario: Scenario, trace: Trace) -> Iterator[Violation]:
    """Checkpoints that failed for no reason, and an end that came too late, in virtual time."""
    ended_ms = 0.0
    for now_ms, _, _, details in trace.entries:
        match details:
            case (CheckpointAborted(checkpoint_id=checkpoint_id, reason=reason),) if not reason.startswith(_USERS_OWN):
                yield Violation("calm", f"checkpoint {checkpoint_id} failed, and nothing was wrong: {reason}")
            case (JobStatusChanged(status=status),) if status.is_terminal:
                ended_ms = now_ms
    limit_ms = patience_ms(scenario)
    if ended_ms > limit_ms:
        problem = f"the last job ended after {ended_ms:.0f} ms, and {limit_ms:.0f} ms would have been long enough"
        yield Violation("calm", problem)


def kept_to_the_end(scenario: Scenario, trace: Trace) -> Violation | None:
    """Nothing was committed before the last checkpoint of a long history, in which event time goes on meanwhile."""
    if scenario.workload.duration_ms < _LONG_MS or scenario.actions:
        return None
    for _, _, what, details in trace.entries:
        match details:
            case (CheckpointCompleted(final=True),):
                return Violation("calm", "nothing is committed before the end of the data, and nothing was wrong")
            case (_, str(path)) if what == "rename" and "/collected/" in path and "/." not in path:
                return None
    return None


def patience_ms(scenario: Scenario) -> float:
    """How long the jobs of a calm history may take. One subtask may have all records, at its share of their rate."""
    last_ms = max((action.at_ms for action in scenario.actions), default=0.0)
    sources_ms = scenario.workload.duration_ms * scenario.job_parallelism
    answers_ms = scenario.workload.records * CATALOGUE[scenario.topology].answer_ms
    return last_ms + sources_ms + answers_ms + _START_AND_END_MS + _ACTION_MS * len(scenario.actions)
