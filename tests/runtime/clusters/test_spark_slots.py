"""Why a TaskManager has no task slot of Spark: what an operator reads, by executors and settings."""

from __future__ import annotations

import pytest

from understudy.runtime.clusters.spark_slots import Executor, Found, Shortage, found_short

MASTER = "spark://10.0.0.1:7077"


def said_of(
    here: list[Executor],
    settings: dict[str, str],
    task_managers: int,
    of_job: int,
    master: str = MASTER,
    has_lost: bool = False,
) -> str:
    short = shortage(here, settings, task_managers, of_job, master, has_lost)
    return "" if short is None else short.why


def shortage(
    here: list[Executor],
    settings: dict[str, str],
    task_managers: int,
    of_job: int,
    master: str = MASTER,
    has_lost: bool = False,
) -> Shortage | None:
    return found_short(Found(master, "app-7", here, has_lost, settings), task_managers, of_job)


def two(cores: int = 2, running: int = 0) -> list[Executor]:
    return [Executor(str(index), f"10.0.0.{index + 2}", cores, cores, running) for index in range(2)]


def test_without_an_executor_the_text_names_what_one_would_need_and_where_to_look() -> None:
    said = said_of([], {"spark.executor.memory": "20g"}, 2, 0)
    assert said == (
        "the job wants 2 TaskManagers, a Spark task slot each for as long as it runs, and Spark has no executor for "
        "app-7 yet: see at the page of its master (spark://10.0.0.1:7077) whether workers are there, and have "
        "spark.executor.memory (20g) and spark.executor.cores (all of a worker) free: start workers, lower these "
        "settings, or end the application that holds all cores (spark.cores.max limits one)"
    )


def test_a_master_that_was_started_anew_and_forgot_the_application_is_told_where_executors_were_lost() -> None:
    said = said_of([], {}, 2, 0, has_lost=True)
    assert "no executor for app-7 any more: see at the page of its master (spark://10.0.0.1:7077) whether that" in said
    assert "without spark.deploy.recoveryMode" in said
    assert "start this program again" in said


def test_of_other_masters_the_hosts_and_the_queue_are_named() -> None:
    said = said_of([], {}, 2, 0, master="yarn", has_lost=True)
    assert said.endswith(
        "yet: see whether yarn has hosts with spark.executor.memory (1g) and spark.executor.cores (all of a worker) "
        "free, and whether this application's queue gets them"
    )


def test_with_too_few_slots_it_says_who_has_how_many_and_that_fewer_task_managers_would_do() -> None:
    assert said_of(two(running=2), {}, 5, 4) == (
        "the job wants 5 TaskManagers, a Spark task slot each for as long as it runs; Spark has 2 executors (0 on "
        "10.0.0.2 with 2 cores for 2 tasks, 1 on 10.0.0.3 with 2 cores for 2 tasks), and 4 of 4 slots are taken: start "
        "more workers, or give them more cores or memory, or give SparkCluster task_managers=4"
    )


def test_where_slots_are_free_nothing_is_said() -> None:
    """It has just ended, and is about to be handed to Spark again."""
    assert said_of(two(running=1), {"spark.cores.max": "4"}, 4, 2) == ""


def test_slots_that_others_hold_are_counted() -> None:
    said = said_of(two(cores=1, running=1), {}, 2, 0)
    assert "2 of 2 slots are taken, 2 of them not by this job" in said
    assert "task_managers=" not in said


def test_tasks_that_a_local_master_counts_beyond_its_slots_take_no_more_than_there_are() -> None:
    said = said_of([Executor("driver", "host", 2, 2, 4)], {}, 2, 0, "local[2]")
    assert "2 of 2 slots are taken, 2 of them not by this job" in said
    one_is_free = [Executor("0", "host", 2, 2, 3), Executor("1", "host", 2, 2, 1)]
    assert said_of(one_is_free, {}, 2, 1) == ""


def test_what_runs_now_is_no_part_of_what_lasts_and_the_executors_and_the_advice_are() -> None:
    found = [shortage(two(running=running), {}, 5, of_job) for running, of_job in [(1, 1), (2, 1), (2, 4)]]
    assert len({each and each.why for each in found}) == 3
    lasting = {each and each.lasting for each in found}
    assert len(lasting) == 1
    for here, settings in [(two(cores=1, running=1), {}), (two(running=2), {"spark.cores.max": "4"}), ([], {})]:
        other = shortage(here, settings, 5, 1)
        assert other is not None
        assert other.lasting not in lasting


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ({"spark.cores.max": "4"}, "raise spark.cores.max (4)"),
        ({"spark.executor.instances": "2"}, "raise spark.executor.instances (2)"),
        (
            {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "2"},
            "raise spark.dynamicAllocation.maxExecutors (2)",
        ),
        ({"spark.task.cpus": "2"}, "lower spark.task.cpus (2), the cores that each TaskManager takes"),
        ({"spark.cores.max": "40"}, "start more workers"),
    ],
)
def test_the_setting_that_is_reached_is_named(settings: dict[str, str], advice: str) -> None:
    assert advice in said_of(two(running=2), settings, 5, 4, "yarn")


def test_many_executors_are_not_all_listed() -> None:
    many = [Executor(str(index), "host", 1, 1, 1) for index in range(30)]
    assert "and 26 more)" in said_of(many, {}, 40, 30)
