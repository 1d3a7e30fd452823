"""TaskCounters: where a task's time goes, with a thread of its own and with one that it shares."""

from __future__ import annotations

from understudy.actors.tasks.task_counters import TaskCounters


def linked() -> tuple[TaskCounters, TaskCounters]:
    """A producer and its consumer on one thread."""
    producer, consumer = TaskCounters(), TaskCounters()
    producer.behind = (consumer,)
    return producer, consumer


def step(task: TaskCounters, begin_ms: float, end_ms: float, *, is_more: bool = True) -> None:
    task.begins(begin_ms)
    task.worked(end_ms, is_more)


def test_a_step_that_lasts_counts_as_busy_already() -> None:
    task = TaskCounters()
    step(task, 0, 10)
    task.begins(100)
    assert task.is_in_step
    assert task.busy_ms(150) == 60
    task.worked(160, is_more=False)
    assert task.busy_ms(500) == 70


def test_a_step_that_did_nothing_is_idle_time() -> None:
    task = TaskCounters()
    task.begins(0)
    task.rests()
    assert task.busy_ms(10) == 0
    assert not task.is_in_step


def test_outputs_that_take_nothing_hold_it_back_until_it_goes_on() -> None:
    task = TaskCounters()
    task.held_back(100)
    task.held_back(150)
    assert task.is_blocked
    assert task.is_held_back(160)
    assert task.back_pressured_ms(160) == 60
    task.begins(200)
    assert (task.back_pressured_ms(900), task.is_held_back(900)) == (100, False)


def test_a_consumer_that_uses_its_thread_for_longer_than_itself_holds_it_back() -> None:
    producer, consumer = linked()
    step(producer, 0, 10)
    consumer.begins(10)
    assert not producer.is_held_back(15), "no longer than its own step so far"
    assert producer.is_held_back(50)
    consumer.worked(110, is_more=True)
    producer.begins(110)
    assert producer.back_pressured_ms(110) == 90
    assert consumer.back_pressured_ms(110) == 0


def test_a_consumer_that_is_as_fast_as_itself_does_not() -> None:
    producer, consumer = linked()
    for turn in range(10):
        step(producer, 20.0 * turn, 20.0 * turn + 10)
        step(consumer, 20.0 * turn + 10, 20.0 * turn + 20)
    assert producer.back_pressured_ms(200) == 0
    assert producer.busy_ms(200) == consumer.busy_ms(200) == 100


def test_a_producer_that_is_slow_holds_no_consumer_back() -> None:
    producer, consumer = linked()
    step(consumer, 0, 1)
    step(producer, 1, 1_000)
    consumer.begins(1_000)
    assert consumer.back_pressured_ms(1_000) == 0


def test_a_task_that_has_nothing_to_do_waits_for_nobody() -> None:
    producer, consumer = linked()
    step(producer, 0, 1, is_more=False)
    step(consumer, 1, 500)
    producer.begins(500)
    assert producer.back_pressured_ms(500) == 0


def test_what_it_does_for_a_message_counts_as_busy_while_it_lasts() -> None:
    task = TaskCounters()
    step(task, 0, 10)
    task.turns_to_message(100)
    assert task.is_in_step, "the sampler looks at its stack"
    assert task.busy_ms(150) == 60
    task.back_from_message(160)
    assert (task.is_in_step, task.busy_ms(500)) == (False, 70)


def test_a_consumer_that_commits_on_its_thread_holds_it_back() -> None:
    producer, consumer = linked()
    step(producer, 0, 10)
    consumer.turns_to_message(10)
    assert producer.is_held_back(300)
    consumer.back_from_message(310)
    producer.begins(310)
    assert producer.back_pressured_ms(310) == 290, "300 ms, but for the 10 that its own step took"


def test_a_message_while_its_outputs_take_nothing_leaves_it_held_back() -> None:
    task = TaskCounters()
    task.held_back(100)
    task.turns_to_message(150)
    task.back_from_message(160)
    assert (task.busy_ms(200), task.back_pressured_ms(200)) == (0, 100), "no moment counts twice"


def test_an_attempt_that_ends_with_a_message_is_busy_no_more() -> None:
    task = TaskCounters()
    task.turns_to_message(100)
    task.ends(150)
    task.back_from_message(160)
    assert (task.is_in_step, task.busy_ms(500)) == (False, 50)
