"""RepeatedFailures: what is the same failure, what counts, and what is said when it came too often."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from understudy.actors.checkpoints.checkpoint_failures import NAMES_SHOWN, _some
from understudy.actors.failure import lost_task_manager
from understudy.actors.jobs.repeated_failures import SYMPTOMS_KEPT, RepeatedFailures
from understudy.messages import FailureCause, FailureKind, shown
from understudy.messages.failures import tell_line


def typo(position: int = 17, message: str = "'delya'", kind: str = "KeyError", operator: str = "worst") -> FailureCause:
    return FailureCause(
        "UserCodeError",
        f"operator {operator!r} raised at record {position} of this attempt",
        vertex_name="worst -> out",
        operator_name=operator,
        subtask_index=0,
        attempt_number=3,
        record_position=position,
        cause=FailureCause(kind, message, traceback="Traceback: the user's line"),
        repeatable=True,
        kind=FailureKind.USER_CODE,
    )


def ends(failures: RepeatedFailures, *added: FailureCause) -> list[bool]:
    return [failures.add(each).kind is FailureKind.REPEATED for each in added]


def test_the_same_failure_is_the_end_when_it_comes_the_fifth_time() -> None:
    assert ends(RepeatedFailures(5), *[typo()] * 5) == [False, False, False, False, True]


def test_the_end_says_how_often_where_and_what_and_what_to_do() -> None:
    failures = RepeatedFailures(2)
    failures.add(typo())
    end = failures.add(typo())
    assert end.error_message.startswith(
        "failed 2 times at record 17 of operator 'worst' (subtask 0): KeyError: 'delya'; "
        "no checkpoint completed in between. "
    )
    assert "max_same_failures" in end.error_message
    assert (end.operator_name, end.record_position, end.subtask_index) == ("worst", 17, 0)
    assert end.cause == typo()
    assert (
        tell_line(end)
        == tell_line(typo())
        == ("KeyError: 'delya' (in operator 'worst', subtask 0, attempt 3, record 17)")
    )


def test_the_end_names_no_place_that_there_is_not() -> None:
    failure = FailureCause("CheckpointFailed", "checkpoint 3 has expired", repeatable=True)
    assert RepeatedFailures(1).add(failure).error_message.startswith("failed once: CheckpointFailed: checkpoint 3 has")


def test_a_failure_outside_of_records_is_told_by_its_operator() -> None:
    failures = RepeatedFailures(1)
    end = failures.add(replace(typo(), record_position=-1))
    assert end.error_message.startswith("failed once in operator 'worst' (subtask 0): KeyError: 'delya';")


def test_a_completed_checkpoint_begins_the_count_anew() -> None:
    failures = RepeatedFailures(2)
    failures.add(typo())
    failures.checkpoint_completed()
    assert ends(failures, typo(), typo()) == [False, True]


def test_the_same_failure_elsewhere_is_the_same() -> None:
    def declined(place: str) -> FailureCause:
        text = f"checkpoint 3 was declined by op subtask 0 ({place}): state 'v': a lock"
        return FailureCause("CheckpointFailed", text, repeatable=True)

    places = ("TaskManager 0 on one", "TaskManager 1 on two.example", "TaskManager 2 on fe80::1")
    assert ends(RepeatedFailures(3), *map(declined, places)) == [False, False, True]


def test_the_same_failure_in_more_or_fewer_places_is_the_same() -> None:
    """As a checkpoint that has expired names them."""

    def missing(*places: str) -> FailureCause:
        text = f"expired: missing: op 3 ({_some(places, NAMES_SHOWN)}); barriers stand behind records"
        return typo(-1, text, "CheckpointFailed")

    one, two = "TaskManager 0 on one", "TaskManager 11 on two.example"
    failures = RepeatedFailures(4)
    assert ends(failures, missing(one), missing(one, two), missing("TaskManager 2")) == [False] * 3
    assert ends(failures, missing(two, *[one] * NAMES_SHOWN)) == [True]


@pytest.mark.parametrize(
    "other",
    [typo(operator="best"), typo(kind="TypeError"), typo(position=18, message="'dealy'")],
    ids=["operator", "type", "record and message"],
)
def test_another_failure_is_counted_for_itself(other: FailureCause) -> None:
    failures = RepeatedFailures(2)
    assert ends(failures, typo(), other, other) == [False, False, True]


def test_other_failures_in_between_do_not_begin_the_count_anew() -> None:
    failures = RepeatedFailures(3)
    lost = lost_task_manager("tm-1", "no heartbeat")
    assert ends(failures, typo(), lost, typo(), typo(operator="best"), typo()) == [False, False, False, False, True]


@pytest.mark.parametrize("other", [typo(position=3), typo(message="at 12:03:09")], ids=["other record", "other text"])
def test_either_the_record_or_the_message_may_differ(other: FailureCause) -> None:
    assert ends(RepeatedFailures(2), typo(), other) == [False, True]


def test_subtasks_of_an_operator_count_together() -> None:
    assert ends(RepeatedFailures(2), typo(), replace(typo(), subtask_index=1)) == [False, True]


def test_ids_of_attempts_and_addresses_in_a_message_are_no_difference() -> None:
    one = "no file /out/.understudy-job1-sink/0-0-3-attempt3f9c-1.parquet of attempt-3f9c, <Row at 0x7f00>"
    two = "no file /out/.understudy-job1-sink/0-0-4-attempt81aa-1.parquet of attempt-81aa, <Row at 0x7f88>"
    assert ends(RepeatedFailures(2), typo(1, one), typo(2, two)) == [False, True]


def test_nor_are_addresses_of_which_a_shortened_text_shows_the_end() -> None:
    """As in what cannot be stored, which comes with no record's position."""
    texts = [shown(threading.Lock()) for _ in range(2)]
    locks = [f"a _thread.lock cannot be stored: {text}" for text in (*texts, "<unlocked _th...x7f0c0cbb6340>")]
    assert len(set(locks)) > 1
    assert ends(RepeatedFailures(3), *(typo(-1, lock) for lock in locks)) == [False, False, True]


def test_where_there_is_no_record_numbers_are_no_difference() -> None:
    """As in the commits of two subtasks."""
    one, two = typo(-1, "no /out/part-op-00000-0000000007-3f"), typo(-1, "no /out/part-op-00001-0000000007-3f")
    assert ends(RepeatedFailures(2), one, two) == [False, True]
    assert ends(RepeatedFailures(2), typo(1, "row 7"), typo(2, "row 8")) == [False, False]


def test_what_may_pass_by_itself_never_ends_a_job() -> None:
    passing = replace(typo(), repeatable=False)
    assert ends(RepeatedFailures(2), *[passing] * 10) == [False] * 10


def test_without_a_limit_nothing_does() -> None:
    assert ends(RepeatedFailures(None), *[typo()] * 10) == [False] * 10


def test_what_is_remembered_is_bounded() -> None:
    failures = RepeatedFailures(2)
    ends(failures, typo(), *[typo(position, str(position)) for position in range(100, 1100)])
    assert ends(failures, typo()) == [False]


def test_the_first_record_is_a_position_too() -> None:
    failures = RepeatedFailures(3)
    assert ends(failures, *(typo(position=0, message=f"at {when}") for when in ("noon", "one", "two")))[-1]


@pytest.mark.parametrize(
    "kind",
    [
        "CannotCompile",
        "NumbaMissing",
        "EndlessTimers",
        "LoopIsOver",
        "OffsetMismatch",
        "UnboundState",
        "UnreadableFile",
        "UnstableKey",
        "UnwantedResult",
    ],
)
def test_what_comes_again_whatever_happens_is_the_end_at_once(kind: str) -> None:
    assert ends(RepeatedFailures(5), typo(kind=kind)) == [True]
    assert ends(RepeatedFailures(None), typo(kind=kind)) == [False]


def in_flight(key: str = "ask-attempt-7", kind: str = "KeyError", *, repeatable: bool = True) -> FailureCause:
    failed = typo(position=-1, message=f"at {len(kind)}", kind=kind)
    return replace(failed, record_key=key, repeatable=repeatable)


def test_the_same_record_in_flight_is_counted_across_checkpoints() -> None:
    """A checkpoint holds it, so after each restart it is asked again, and fails again."""
    failures = RepeatedFailures(3)
    for _ in range(2):
        assert ends(failures, in_flight()) == [False]
        failures.checkpoint_completed()
    end = failures.add(in_flight())

    assert end.kind is FailureKind.REPEATED
    assert "its record was in flight in the checkpoints in between, with the key 'ask-attempt-7'" in end.error_message


@pytest.mark.parametrize("other", [in_flight("ask-attempt-8"), in_flight(kind="TypeError")], ids=["record", "error"])
def test_another_record_in_flight_or_another_error_is_counted_for_itself(other: FailureCause) -> None:
    failures = RepeatedFailures(2)
    failures.add(in_flight())
    failures.checkpoint_completed()
    assert ends(failures, other) == [False]


def test_a_timeout_counts_for_its_record_alone() -> None:
    """What fails with it is not repeatable: others may be answered."""
    failures = RepeatedFailures(2)
    first, second = (in_flight(key, "CallTimedOut", repeatable=False) for key in ("one", "two"))
    assert ends(failures, first, second, first) == [False, False, True]


def test_records_in_flight_that_fail_are_not_remembered_for_ever() -> None:
    failures = RepeatedFailures(2)
    for number in range(2 * SYMPTOMS_KEPT):
        failures.add(in_flight(f"key {number}"))
        failures.checkpoint_completed()
    assert ends(failures, in_flight("key 0")) == [False]


@pytest.mark.parametrize(
    "kind",
    [
        "WrongColumn",
        "UnsupportedValue",
        "ModuleNotFoundError",
        "SyntaxError",
        "IndentationError",
        "CallIsOver",
        "NoEventTime",
        "NoTimerMethod",
    ],
)
def test_what_no_restart_can_mend_is_the_end_at_once(kind: str) -> None:
    end = RepeatedFailures(5).add(typo(kind=kind))
    assert end.kind is FailureKind.REPEATED
    assert end.error_message.startswith(f"failed once at record 17 of operator 'worst' (subtask 0): {kind}: 'delya'; ")
    assert "no restart can mend it" in end.error_message


def test_state_that_cannot_be_stored_is_the_end_at_once_also_where_it_comes_with_a_decline() -> None:
    text = "checkpoint 3 was declined by op subtask 0: state 'v': a lock (tolerable_checkpoint_failures=0)"
    declined = FailureCause("CheckpointFailed", text, repeatable=True)
    end = RepeatedFailures(5).add(replace(declined, kind=FailureKind.NOT_STORABLE))
    assert end.kind is FailureKind.REPEATED
    assert "no restart can mend it" in end.error_message
    assert ends(RepeatedFailures(5), declined) == [False]


@pytest.mark.parametrize("missing", ["ModuleNotFoundError", "NoEventTime"])
def test_a_module_or_a_time_that_is_missing_is_no_end_where_another_error_came_of_it(missing: str) -> None:
    """As where a program does without it, and fails there."""
    failure = typo()
    assert failure.cause is not None
    cause = replace(failure.cause, cause=FailureCause(missing, "No module named 'orjson'"))
    assert ends(RepeatedFailures(5), replace(failure, cause=cause)) == [False]


def test_a_damaged_log_of_an_inlet_is_the_end_at_once() -> None:
    failures = RepeatedFailures(5)
    end = failures.add(FailureCause("InletLogDamaged", "a file is missing", vertex_name="orders", repeatable=True))
    assert end.kind is FailureKind.REPEATED
    assert end.error_message.startswith("failed once: InletLogDamaged: a file is missing;")


def test_the_end_names_a_record_as_its_sender_does() -> None:
    end = RepeatedFailures(1).add(replace(typo(), record_origin="number 7 of sender 'shop'"))
    assert "at record 17 of operator 'worst' (subtask 0, number 7 of sender 'shop'): KeyError" in end.error_message
    assert tell_line(end).endswith("record 17, number 7 of sender 'shop')")
