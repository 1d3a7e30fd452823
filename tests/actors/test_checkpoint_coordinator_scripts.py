"""CheckpointCoordinator against Flink's scripts: tests/vectors/checkpoint_coordinator.json, all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from understudy.actors.checkpoint_effects import (
    AnswerSavepoint,
    AttemptFailed,
    CheckpointEffect,
    PeriodicTick,
    Refused,
    Send,
    Shutdown,
    StartScheduler,
    StopScheduler,
    TriggerCheckpointNow,
    TriggerSavepointNow,
)
from understudy.actors.pending_checkpoint import AckResult
from understudy.messages import (
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointConfig,
    ExecutionAttemptId,
    JobId,
    JobStatus,
    NotifyCheckpointAborted,
    TriggerCheckpoint,
    TriggerSavepointSuccess,
)

from .checkpoint_driver import (
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
)

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "checkpoint_coordinator.json").read_text())

DISCARDED_BESIDES = {("shutdown_refuses_everything__1_4", 4): ["s2"]}
"""Flink leaks the state of an acknowledgement that comes after shutdown; here it is discarded like any late one."""

ANSWERED_FALSE = {AckResult.UNKNOWN_CHECKPOINT, AckResult.WRONG_JOB, AckResult.SHUT_DOWN}


class Script:
    """Plays one scenario and describes what happened in the words of its `expect`."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        config = scenario["config"]
        self.name = scenario["name"]
        self.tasks: dict[str, str] = {}
        self.futures: dict[str, str] = {}
        plan = make_plan(config["tasks_to_trigger"], config["tasks_to_wait"], config["tasks_to_confirm"])
        self.driver = Driver(
            CheckpointConfig(
                "file:///tmp",
                interval_ms=config["interval_ms"],
                timeout_ms=config["timeout_ms"],
                min_pause_ms=config.get("min_pause_ms", 0),
                max_concurrent=config.get("max_concurrent", 1000),
                retained=max(1, config["retain"]),
            ),
            plan,
            first_id=config.get("first_id", 1),
        )
        for task in plan.vertices:
            self.deploy(task, config.get("task_states", {}).get(task, "running"))

    def deploy(self, task: str, state: str) -> None:
        if state != "not_deployed":
            self.tasks[task] = task
            self.driver.tell(changed(task, running=state == "running"))

    def play(self, step: dict[str, Any]) -> tuple[Any, list[CheckpointEffect]]:
        """What the step answers, and its effects."""
        tell, wall_ms = self.driver.tell, step.get("timestamp")
        match step["do"]:
            case "trigger":
                event = PeriodicTick(0) if step.get("periodic") else TriggerCheckpointNow()
                effects = tell(event, wall_ms=wall_ms)
                return not of_type(Refused, effects), effects
            case "trigger_savepoint":
                name = f"sp{len(self.futures) + 1}"
                self.futures[name] = "open"
                return name, tell(TriggerSavepointNow(name), wall_ms=wall_ms)
            case "ack":
                message = ack(step["task"], step["checkpoint"], step.get("state"), JobId(step.get("job", JOB)))
                effects = tell(message)
                return not ANSWERED_FALSE.intersection(ignored(effects)), effects
            case "decline":
                return True, tell(decline(step["task"], step["checkpoint"]))
            case "advance_ms":
                return None, self.driver.advance(step["ms"])
            case "restart_task":
                self.tasks[step["attempt"]] = step["task"]
                return None, tell(changed(step["task"], step["attempt"]))
            case "task_failed":
                return None, tell(AttemptFailed(ExecutionAttemptId(step["attempt"])))
        simple = {
            "start_scheduler": StartScheduler(),
            "stop_scheduler": StopScheduler(),
            "shutdown": Shutdown(JobStatus.FINISHED),
        }
        return None, tell(simple[step["do"]])

    def describe(self, returned: Any, effects: list[CheckpointEffect]) -> dict[str, Any]:
        for answer in of_type(AnswerSavepoint, effects):
            is_kept = isinstance(answer.answer, TriggerSavepointSuccess)
            self.futures[answer.token] = "done" if is_kept else "failed"
        refusals = of_type(Refused, effects)
        return {
            "returns": returned,
            "refused_because": refusals[-1].reason.value if refusals else None,
            "pending": {
                str(pending.checkpoint_id): {
                    "acked": len(pending.acknowledged),
                    "missing": len(pending.attempts) - len(pending.acknowledged),
                }
                for pending in self.driver.coordinator.pending
            },
            "retained": self.driver.retained_ids(),
            "messages": [
                line for effect in of_type(Send, effects) if (line := self.line_of(effect.message)) is not None
            ],
            "outcomes": [outcome_of(message) for message in published(effects)],
            "states_discarded": [name for name in discarded(effects) if not name.startswith("chk-")],
            "futures": self.futures,
        }

    def line_of(self, message: Any) -> list[Any] | None:
        if isinstance(message, NotifyCheckpointAborted):
            return None  # Flink 1.4 has no such message
        word = "trigger" if isinstance(message, TriggerCheckpoint) else "notify_complete"
        return [self.tasks[message.attempt_id], word, message.checkpoint_id, message.timestamp_ms]


def outcome_of(message: CheckpointCompleted | CheckpointAborted) -> dict[str, Any]:
    if isinstance(message, CheckpointCompleted):
        return {"checkpoint": message.checkpoint_id, "completed": True}
    reason = message.reason.partition(":")[0]
    return {"checkpoint": message.checkpoint_id, "aborted": "declined" if reason == "task_failed" else reason}


@pytest.mark.parametrize("scenario", [pytest.param(each, id=each["name"]) for each in VECTORS["scenarios"]])
def test_flink_script(scenario: dict[str, Any]) -> None:
    script = Script(scenario)
    for number, step in enumerate(scenario["steps"]):
        found = script.describe(*script.play(step))
        wanted = {"outcomes": [], "states_discarded": []} | step["expect"]
        wanted["states_discarded"] = sorted(
            wanted["states_discarded"] + DISCARDED_BESIDES.get((scenario["name"], number), [])
        )
        assert {key: found[key] for key in wanted} == wanted, f"step {number}: {step}"
