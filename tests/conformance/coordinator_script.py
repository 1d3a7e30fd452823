"""One scenario of checkpoint_coordinator.json: steps as events for a CheckpointCoordinator, its effects as words."""

from __future__ import annotations

from typing import Any

from understudy.actors.checkpoints.checkpoint_effects import (
    AnswerSavepoint,
    CheckpointEffect,
    Refused,
    Send,
)
from understudy.actors.checkpoints.checkpoint_events import (
    AttemptChanged,
    AttemptFailed,
    Shutdown,
    StartScheduler,
    StopScheduler,
    TriggerCheckpointNow,
)
from understudy.actors.checkpoints.checkpoint_reasons import CheckpointFailure
from understudy.actors.checkpoints.pending_checkpoint import AckResult
from understudy.messages import (
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointConfig,
    CheckpointId,
    ExecutionAttemptId,
    JobId,
    JobStatus,
    NotifyCheckpointAborted,
    TriggerCheckpoint,
    TriggerSavepointSuccess,
)

from ..actors.checkpoints.checkpoint_driver import (
    JOB,
    Driver,
    ack,
    changed,
    decline,
    discarded,
    ignored,
    make_plan,
    of_type,
    published,
    subtask,
)
from ..actors.savepoint_requests import savepoint_now
from .scenario import UnknownWord, Words, said

UNLIMITED = 1_000_000

_ANSWERED_FALSE = frozenset({AckResult.UNKNOWN_CHECKPOINT, AckResult.WRONG_JOB, AckResult.SHUT_DOWN})

_TASK_STATES = frozenset({"not_deployed", "created", "running", "finished"})

_SAME_WORD = frozenset({"declined", "expired", "subsumed", "scheduler_stopped", "coordinator_shut_down"})
"""Outcomes that the file calls as we do. It has one word for what a task declines and for a task that fails, and does
not name the one for a store that fails: any other word means that.
"""


class Script:
    """A coordinator in the state that a scenario describes, and what its steps do to it."""

    def __init__(self, config: Words) -> None:
        config = said(config)
        self._futures: dict[str, str] = {}
        self._late: set[str] = set()
        self._is_down = False
        plan = make_plan(config["tasks_to_trigger"], config["tasks_to_wait"], config.get("tasks_to_confirm", []))
        self._driver = Driver(
            CheckpointConfig(
                "file:///tmp",
                interval_ms=config.get("interval_ms"),
                timeout_ms=config.get("timeout_ms", 600_000),
                min_pause_ms=config.get("min_pause_ms", 0),
                max_concurrent=config.get("max_concurrent") or UNLIMITED,
                retained=max(1, config.get("retain", 1)),  # a savepoint coordinator retains 0: it takes savepoints only
            ),
            plan,
            first_id=config.get("first_id", 1),
            store_failure=lambda draft: _why_not_stored(config, draft.is_savepoint),
        )
        self._attempts = {str(task): str(task) for task in plan.vertices}
        self._states = dict.fromkeys(self._attempts, "running") | config.get("task_states", {})
        for task in self._attempts:
            self._announce(task)

    def _announce(self, task: str) -> list[CheckpointEffect]:
        """Tell the coordinator which attempt stands for a task, as the script has it."""
        state = self._states[task]
        if state not in _TASK_STATES:
            raise UnknownWord(f"found task state {state!r}; wanted one of {', '.join(sorted(_TASK_STATES))}")
        if state == "not_deployed":
            return self._driver.tell(AttemptChanged(subtask(task), None, is_running=False))
        return self._driver.tell(changed(task, self._attempts[task], running=state == "running"))

    # ------------------------------------------------------------------------------------------------- steps

    def play(self, step: Words) -> tuple[Any, list[CheckpointEffect]]:
        """What the step answers, and its effects."""
        self._late.clear()
        match step["do"]:
            case "trigger" | "trigger_savepoint":
                return self._trigger(step)
            case "ack":
                return self._acknowledge(step)
            case "decline":
                message = decline(step["task"], step["checkpoint"])
                is_known = not self._is_down and self._driver.coordinator.knows(CheckpointId(step["checkpoint"]))
                return is_known, self._driver.tell(message)
            case "advance_ms":
                return None, self._driver.advance(step["ms"])
            case "set_task_state" | "restart_task" | "task_failed":
                return None, self._change_task(step)
            case "start_scheduler":
                return None, self._driver.tell(StartScheduler())
            case "stop_scheduler":
                return None, self._driver.tell(StopScheduler())
            case "shutdown":
                self._is_down = True
                return None, self._driver.tell(Shutdown(JobStatus.FINISHED))
        raise UnknownWord(f"found the step {step['do']!r}")

    def _trigger(self, step: Words) -> tuple[Any, list[CheckpointEffect]]:
        if step["do"] == "trigger_savepoint":
            name = f"sp{len(self._futures) + 1}"
            self._futures[name] = "open"
            return name, self._driver.tell(savepoint_now(name), wall_ms=step.get("timestamp", 0))
        event = TriggerCheckpointNow(is_periodic=bool(step.get("periodic")))
        effects = self._driver.tell(event, wall_ms=step.get("timestamp", 0))
        return not of_type(Refused, effects), effects

    def _acknowledge(self, step: Words) -> tuple[Any, list[CheckpointEffect]]:
        state = step.get("state")
        effects = self._driver.tell(ack(step["task"], step["checkpoint"], state, JobId(step.get("job", JOB))))
        if state is not None and AckResult.SHUT_DOWN in ignored(effects):
            self._late.add(state)
        reasons = [message.reason for message in published(effects) if isinstance(message, CheckpointAborted)]
        if any(reason.startswith(CheckpointFailure.METADATA_FAILED.value) for reason in reasons):
            return "error", effects
        return not _ANSWERED_FALSE.intersection(ignored(effects)), effects

    def _change_task(self, step: Words) -> list[CheckpointEffect]:
        match step["do"]:
            case "set_task_state":
                self._states[step["task"]] = step["state"]
                return self._announce(step["task"])
            case "restart_task":
                self._attempts[step["task"]] = step["attempt"]
                self._states[step["task"]] = step.get("state", "running")
                return self._announce(step["task"])
        # The state of a task is what the script says, and a failure alone does not change it.
        effects = self._driver.tell(AttemptFailed(ExecutionAttemptId(step["attempt"])))
        current = [task for task, attempt in self._attempts.items() if attempt == step["attempt"]]
        return effects + [effect for task in current for effect in self._announce(task)]

    # ----------------------------------------------------------------------------------------------- in words

    def describe(self, returned: Any, effects: list[CheckpointEffect]) -> Words:
        for answer in of_type(AnswerSavepoint, effects):
            is_kept = isinstance(answer.answer, TriggerSavepointSuccess)
            self._futures[answer.request.token] = "done" if is_kept else "failed"
        refusals = of_type(Refused, effects)
        messages = [line for effect in of_type(Send, effects) if (line := self._line_of(effect)) is not None]
        return {
            "returns": returned,
            "refused_because": refusals[-1].reason.value if refusals else None,
            "pending": {
                str(pending.checkpoint_id): {
                    "acked": len(pending.acknowledged),
                    "missing": len(pending.attempts) - len(pending.acknowledged),
                }
                for pending in self._driver.coordinator.pending
            },
            "retained": self._driver.retained_ids(),
            "messages": messages,
            "outcomes": [_outcome_of(message) for message in published(effects)],
            "states_discarded": self._discarded(effects),
            "futures": dict(self._futures),
        }

    def _discarded(self, effects: list[CheckpointEffect]) -> list[str]:
        """Without that of an acknowledgement after shutdown: Flink leaks it, and here it is discarded like any late
        one.
        """
        return [name for name in discarded(effects) if not name.startswith("chk-") and name not in self._late]

    def _line_of(self, sent: Send) -> list[Any] | None:
        message = sent.message
        if isinstance(message, NotifyCheckpointAborted):
            return None  # release 1.4 has no such message
        task = next(task for task, attempt in self._attempts.items() if attempt == message.attempt_id)
        word = "trigger" if isinstance(message, TriggerCheckpoint) else "notify_complete"
        return [task, word, message.checkpoint_id, message.timestamp_ms]


def _outcome_of(message: CheckpointCompleted | CheckpointAborted) -> Words:
    if isinstance(message, CheckpointCompleted):
        return {"checkpoint": message.checkpoint_id, "completed": True}
    reason = message.reason.partition(":")[0]
    return {"checkpoint": message.checkpoint_id, "aborted": "declined" if reason == "task_failed" else reason}


def normal_outcome(outcome: Words) -> Words:
    """An outcome that a file expects, with our word for a store that fails."""
    if outcome.get("aborted", "declined") in _SAME_WORD:
        return outcome
    return outcome | {"aborted": CheckpointFailure.METADATA_FAILED.value}


def _why_not_stored(config: Words, is_savepoint: bool) -> str:
    setting = "savepoint_store_fails" if is_savepoint else "store_fails"
    return setting if config.get(setting) else ""
