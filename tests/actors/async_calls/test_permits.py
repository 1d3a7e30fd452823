"""Permits: what one subtask may begin; it asks about ten times a second, one request at a time."""

from __future__ import annotations

from understudy.actors.async_calls.permits import Permits
from understudy.messages import ExecutionAttemptId, GrantPermits, JobId, OperatorId


class Stage:
    def __init__(self) -> None:
        self.requests: list[int] = []
        self.throttles: list[float] = []
        self.permits = Permits(self.requests.append, self.throttles.append)

    def grant(self, count: int, rate: float = 0.0) -> None:
        self.permits.granted(GrantPermits(JobId("job"), ExecutionAttemptId("a"), OperatorId("op"), count, rate))


def test_there_are_none_before_the_first_grant_and_one_request_is_under_way() -> None:
    stage = Stage()
    assert (stage.permits.take(3), stage.permits.take(5)) == (0, 0)
    assert stage.requests == [3]


def test_what_was_granted_may_begin_and_what_is_missing_is_requested() -> None:
    stage = Stage()
    stage.permits.take(3)
    stage.grant(2)
    assert stage.permits.take(3) == 2
    assert stage.requests == [3, 1]
    stage.grant(1)
    assert stage.permits.take(1) == 1
    assert stage.requests == [3, 1], "a slow operator asks for no more than it wants"


def test_a_fast_operator_asks_ahead_for_a_tenth_of_a_second() -> None:
    stage = Stage()
    stage.permits.take(1)
    stage.grant(1, rate=1000)
    assert stage.permits.take(1) == 1
    assert stage.requests == [1, 100], "it has none left, and knows by now how fast it is"
    stage.grant(100, rate=1000)
    assert sum(stage.permits.take(1) for _ in range(50)) == 50
    assert stage.requests == [1, 100]
    assert stage.permits.take(1) == 1
    assert stage.requests == [1, 100, 51], "at less than half it asks again, before it has to wait"


def test_a_second_of_single_calls_takes_few_requests() -> None:
    stage, begun, answered = Stage(), 0, 0
    for _ in range(1000):
        if len(stage.requests) > answered:
            stage.grant(stage.requests[-1], rate=1000)
            answered += 1
        begun += stage.permits.take(1)
    assert begun == 999, "the first one had to wait for the first grant"
    assert len(stage.requests) <= 22


def test_another_jobmanager_is_asked_for_what_the_one_before_has_not_granted() -> None:
    stage = Stage()
    stage.permits.say_again()
    assert stage.requests == [], "nothing was asked for"
    stage.permits.take(3)
    stage.permits.say_again()
    assert stage.requests == [3, 3]
    stage.grant(3)
    stage.permits.say_again()
    assert stage.requests == [3, 3]


def test_what_is_given_back_may_be_taken_again() -> None:
    stage = Stage()
    stage.permits.take(4)
    stage.grant(4)
    assert stage.permits.take(4) == 4
    stage.permits.give_back(3)
    assert stage.permits.take(4) == 3
    assert stage.requests == [4, 1]


def test_a_throttle_is_reported_and_what_is_held_is_lost() -> None:
    stage = Stage()
    stage.permits.take(5)
    stage.grant(5)
    stage.permits.throttled(2000.0)
    stage.permits.throttled(None)
    assert stage.throttles == [2000.0, 0.0]
    assert stage.permits.take(2) == 0
    assert stage.requests == [5, 2]


def test_a_request_that_is_under_way_survives_a_throttle() -> None:
    stage = Stage()
    stage.permits.take(5)
    stage.permits.throttled(1.0)
    assert stage.permits.take(5) == 0
    assert stage.requests == [5]
    stage.grant(5)
    assert stage.permits.take(5) == 5
