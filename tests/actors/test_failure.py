"""Failures as text: the user's line comes first, and one line says what and where."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from understudy.actors.errors import ChannelBroken
from understudy.actors.failure import describe, lost_task_manager, tell_story
from understudy.actors.flow.key_selector import KeySelectionFailed, KeySelector
from understudy.actors.operators.collector import Collector
from understudy.actors.operators.operator import Operator
from understudy.messages import ExecutionState, FailureCause, FailureKind, UpdateTaskExecutionState
from understudy.messages.failures import raised, tell_line
from understudy.state import CheckpointStorage
from understudy.state.errors import MissingState, OutsideRoot

from .tasks.task_stage import TaskStage, deployment


class Worst(Operator):
    def process_batch(self, batch: Any, out: Collector) -> None:
        _delay_of(batch[0])


def _delay_of(flight: dict[str, float]) -> float:
    return flight["delya"]  # the user's own line


def failure_of(operator: Operator, folder: Path) -> FailureCause:
    stage = TaskStage(operator, deployment(inputs=1), str(folder))
    stage.arrives(0, [{"delay": 3.0}])
    failed = stage.said(UpdateTaskExecutionState)[-1]
    assert failed.state is ExecutionState.FAILED
    assert failed.failure is not None
    return failed.failure


def test_a_traceback_begins_with_the_users_frames(tmp_path: Path) -> None:
    traceback = raised(failure_of(Worst(), tmp_path)).traceback
    assert 'return flight["delya"]  # the user\'s own line' in traceback
    files = [line for line in traceback.splitlines() if line.startswith("  File ")]
    assert len(files) == 2, "process_batch, and what it calls"
    assert all("test_failure.py" in line for line in files)


def test_a_failure_of_our_own_code_keeps_all_its_frames() -> None:
    space = {"__name__": "understudy.actors.somewhere"}
    exec(compile("def fail():\n    raise KeyError('ours')\n", "<somewhere>", "exec"), space)
    with pytest.raises(KeyError) as caught:
        exec(compile("fail()", "<above>", "exec"), space)
    assert caught.tb.tb_next is not None
    assert '"<above>"' in describe(caught.value.with_traceback(caught.tb.tb_next)).traceback


def test_what_is_said_of_stored_state_needs_no_traceback(tmp_path: Path) -> None:
    storage = CheckpointStorage(str(tmp_path))
    with pytest.raises(MissingState) as caught:
        storage.read_sealed("chk-1/count")
    assert caught.tb.tb_next is not None
    missing = describe(caught.value.with_traceback(caught.tb.tb_next))
    assert missing.cause is not None
    assert (missing.error_type, missing.cause.error_type) == ("MissingState", "FileNotFoundError")
    assert (missing.traceback, missing.cause.traceback) == ("", "")
    assert "test_failure.py" in describe(caught.value.with_traceback(caught.tb)).traceback, "it passed the user's code"


@pytest.mark.parametrize("key", [None, [1]])
def test_what_is_said_of_a_record_is_said_once_without_our_frames(key: Any) -> None:
    with pytest.raises(KeySelectionFailed) as refused:
        KeySelector(lambda record: key).key_groups(["a"], 128)
    assert refused.tb.tb_next is not None
    described = describe(refused.value.with_traceback(refused.tb.tb_next))
    assert "record 0 of the batch" in described.error_message
    assert (described.traceback, described.cause) == ("", None)


def test_a_key_function_that_asks_the_system_keeps_its_traceback() -> None:
    with pytest.raises(KeySelectionFailed) as refused:
        KeySelector(lambda record: Path(record).read_text()).key_groups(["/nowhere/x"], 128)
    described = describe(refused.value)
    assert described.cause is not None
    assert (described.cause.error_type, "read_text()" in described.cause.traceback) == ("FileNotFoundError", True)


def test_what_the_system_says_of_a_file_of_the_user_keeps_its_traceback(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no flights") as caught:
        _read_flights(tmp_path / "flights.csv")
    above = describe(caught.value)
    assert above.cause is not None
    assert above.cause.error_type == "FileNotFoundError"
    assert "return path.read_text()  # of the user" in above.cause.traceback
    assert caught.value.__cause__ is not None
    assert "return path.read_text()  # of the user" in describe(caught.value.__cause__).traceback


def _read_flights(path: Path) -> str:
    try:
        return path.read_text()  # of the user
    except OSError as error:
        raise ValueError("no flights") from error


def test_one_line_says_what_and_where(tmp_path: Path) -> None:
    failure = failure_of(Worst(), tmp_path)
    assert failure.repeatable
    name = failure.operator_name
    assert tell_line(failure) == f"KeyError: 'delya' (in operator {name!r}, subtask 0, attempt 0)"
    assert tell_line(replace(failure, record_position=17)).endswith("attempt 0, record 17)")
    assert tell_line(lost_task_manager("tm-1", "killed")) == "TaskManagerLost: TaskManager tm-1 was lost: killed"


def test_one_line_stays_one_line_and_short() -> None:
    failure = FailureCause("ValueError", "two\nlines " + "x" * 10_000, operator_name="worst")
    line = tell_line(failure)
    assert line.startswith("ValueError: two lines xxx")
    assert line.endswith("x (in operator 'worst')")
    assert len(line) < 650
    assert str(failure) == line, "as an endpoint, a log or a page shows it"


def test_a_line_that_is_cut_ends_with_what_to_do() -> None:
    remedy = "Put the files back, or submit the job afresh, with an output folder of its own"
    line = tell_line(FailureCause("LostTransaction", f"the output folder {'/long' * 200} is gone. {remedy}"))
    assert line.startswith("LostTransaction: the output folder /long")
    assert line.endswith(f"/long is gone. {remedy}")
    assert "…" in line


def test_what_was_raised_is_under_what_was_put_around_it() -> None:
    root = FailureCause("KeyError", "'delya'")
    mine = FailureCause("RuntimeError", "no such flight", cause=root)
    inner = FailureCause("UserCodeError", "raised", cause=mine, kind=FailureKind.USER_CODE)
    around = FailureCause("RepeatedFailure", "5 times", cause=inner, kind=FailureKind.REPEATED)
    assert raised(around) == mine
    alone = FailureCause("UserCodeError", "alone", kind=FailureKind.USER_CODE)
    assert raised(alone) == alone


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MissingState("a/b"), FailureKind.UNREADABLE_STATE),
        (OutsideRoot("/etc", "root"), FailureKind.UNREADABLE_STATE),
        (ChannelBroken("gone"), FailureKind.CHANNEL_BROKEN),
        (KeyError("x"), FailureKind.OTHER),
    ],
)
def test_the_kind_of_a_failure_is_known_by_the_errors_class(error: Exception, kind: FailureKind) -> None:
    assert describe(error).kind is kind


def test_a_users_error_of_the_same_name_is_not_taken_for_ours() -> None:
    theirs = type("ChannelBroken", (Exception,), {})("TV channel 3")
    assert describe(theirs).error_type == "ChannelBroken"
    assert describe(theirs).kind is FailureKind.OTHER


@pytest.mark.parametrize("text", ["UserCodeError", "caused by KeyError: 'delya'", "the user's own line"])
def test_the_story_tells_all_of_it(text: str, tmp_path: Path) -> None:
    assert text in tell_story(failure_of(Worst(), tmp_path))
