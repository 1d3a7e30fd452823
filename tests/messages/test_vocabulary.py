"""What is said: the vocabulary of DESIGN section 3, and what holds for every word of it."""

from __future__ import annotations

import typing
from dataclasses import FrozenInstanceError, fields
from typing import Any, NewType

import pytest

from understudy.messages import SubtaskIndex

from .strategies import vocabulary

DESIGN = {
    "TriggerCheckpoint": ("job_id", "attempt_id", "checkpoint_id"),
    "AcknowledgeCheckpoint": ("job_id", "attempt_id", "checkpoint_id", "state", "state_size_bytes"),
    "DeclineCheckpoint": ("job_id", "attempt_id", "checkpoint_id", "reason"),
    "NotifyCheckpointComplete": ("job_id", "attempt_id", "checkpoint_id"),
    "NotifyCheckpointAborted": ("job_id", "attempt_id", "checkpoint_id"),
    "TriggerSavepoint": ("job_id",),
    "TriggerSavepointSuccess": ("job_id", "savepoint_path"),
    "TriggerSavepointFailure": ("job_id", "cause"),
    "DisposeSavepoint": ("savepoint_path",),
    "DisposeSavepointSuccess": (),
    "DisposeSavepointFailure": ("cause",),
    "SubmitJob": ("graph",),
    "CancelJob": ("job_id",),
    "StopJob": ("job_id",),
    "RequestJobStatus": ("job_id",),
    "JobStatusChanged": ("job_id", "status"),
    "RegisterTaskManager": ("task_manager_id", "slots"),
    "AcknowledgeRegistration": ("leader_session_id", "task_manager_id"),
    "RefuseRegistration": ("task_manager_id", "reason"),
    "Heartbeat": ("sender",),
    "SubmitTask": ("deployment",),
    "CancelTask": ("attempt_id",),
    "UpdateTaskExecutionState": ("attempt_id", "state", "failure"),
    "LeaderSessionMessage": ("leader_session_id", "message"),
}

WORDS: list[Any] = list(vocabulary().values())

NOT_IDS = {
    "correlation_id": "one ask of one actor system; it means nothing to anybody else",
    "key_id": "made of a key, and compared with those of other keys alone",
}


def test_the_vocabulary_of_the_design_is_complete() -> None:
    for tag, named in DESIGN.items():
        assert set(named) <= {field.name for field in fields(vocabulary()[tag])}, tag


def test_a_message_is_frozen_slotted_and_known_by_its_bare_name() -> None:
    for cls in WORDS:
        assert vocabulary()[cls.__name__] is cls
        assert "__slots__" in vars(cls)
        assert "__dict__" not in dir(cls)
        assert cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
        blank = object.__new__(cls)
        for field in fields(cls):
            with pytest.raises(FrozenInstanceError):
                setattr(blank, field.name, None)


def test_ids_and_subtask_indices_are_new_types() -> None:
    for cls in WORDS:
        for name, hint in typing.get_type_hints(cls).items():
            if name.endswith("_id") and name not in NOT_IDS:
                arms = [arm for arm in typing.get_args(hint) if arm is not type(None)] or [hint]
                assert all(isinstance(arm, NewType) for arm in arms), f"{cls.__name__}.{name} is a bare {hint}"
            if name.endswith(("subtask", "subtask_index")):
                assert hint is SubtaskIndex


def test_units_come_last_in_names() -> None:
    for cls in WORDS:
        for field in fields(cls):
            assert not any(unit in field.name.split("_")[:-1] for unit in ("ms", "bytes", "seconds"))
