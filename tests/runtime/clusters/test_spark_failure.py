"""What is said of a Spark job that has ended, by the texts that PySpark 4.3 raises."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from understudy.runtime.clusters.spark_failure import CRASHED, told, why_tasks_failed, with_kills

FUNCTION = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "flights.py", line 32, in <lambda>
    u = udf(lambda x: 1 / (x - 500), "double")
                      ~~^~~~~~~~~~~
{}
 SQLSTATE: 39000"""

PACKAGE = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "understudy/runtime/clusters/spark_launcher.py", line 19, in <module>
    import pyarrow as pa
ModuleNotFoundError: No module named 'pyarrow'
"""


class CapturedException(Exception): ...


class ArithmeticException(CapturedException): ...


class PythonException(CapturedException): ...


class AnalysisException(CapturedException): ...


@pytest.mark.parametrize(
    ("error", "said", "repeatable"),
    [
        (
            ArithmeticException("[DIVIDE_BY_ZERO] Division by zero.\n== SQL =="),
            "[DIVIDE_BY_ZERO] Division by zero.",
            True,
        ),
        (PythonException(FUNCTION.format("ZeroDivisionError: division by zero")), "ZeroDivisionError: division", True),
        (PythonException(FUNCTION.format("ModuleNotFoundError: No module named 'geolib'")), "ModuleNotFound", True),
        (PythonException(FUNCTION.format("ValueError: row 7 says ImportError")), "ValueError: row 7 says", True),
        (
            PythonException(PACKAGE.replace("understudy/runtime/clusters/spark_launcher", "me/understudy/job")),
            "ModuleNotFoundError: No",
            True,
        ),
        (PythonException(FUNCTION.format("ConnectionError: no route")), "ConnectionError: no route", False),
    ],
)
def test_what_cannot_be_computed_is_said_and_comes_again(error: Exception, said: str, repeatable: bool) -> None:
    assert told(error)[0].startswith(f"Spark cannot compute the DataFrame: {said}")
    assert told(error)[1] is repeatable


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            Exception("An error occurred\n: org.apache.spark.SparkException: Python worker exited unexpectedly"),
            "Python worker",
        ),
        (PythonException('in __call__\n  File "spark_launcher.py"\nPartitionFailed: no more'), "PartitionFailed: no"),
        (CapturedException("[SPARK_JOB_CANCELLED] Job 7 cancelled"), "[SPARK_JOB_CANCELLED]"),
        (AnalysisException(""), "AnalysisException"),
    ],
)
def test_how_a_task_manager_ended_does_not_count(error: Exception, said: str) -> None:
    assert said in told(error)[0]
    assert "DataFrame" not in told(error)[0]
    assert not told(error)[1]


VERSION = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", line 3312, in main
    check_python_version(infile)
  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker_util.py", line 81, in check_python_version
    raise PySparkRuntimeError(
pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run with different minor versions.
Please check environment variables PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON are correctly set.

"""  # noqa: E501


def test_a_word_of_the_users_does_not_make_it_sparks_python() -> None:
    text = PACKAGE.replace("ModuleNotFoundError: No module named 'pyarrow'", "ValueError: row 7 says ImportError")
    assert not told(PythonException(text))[0].startswith("Spark's Python")


@pytest.mark.parametrize(("text", "said"), [(VERSION, "worker has different version: 3.12"), (PACKAGE, "'pyarrow'")])
def test_a_python_of_sparks_that_is_another_one_is_told_with_what_is_wanted(text: str, said: str) -> None:
    """It was "Please check environment variables", or "An exception was thrown from the Python worker:"."""
    reason, repeatable = told(PythonException(text))
    assert reason.startswith("Spark's Python cannot run TaskManagers: ")
    assert said in reason
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}, as here" in reason
    assert reason.endswith("PYSPARK_PYTHON names it, before the session is made")
    assert not repeatable, "none of it registers, so the job ends of that"


def test_an_exception_of_several_lines_is_told_by_its_first() -> None:
    reason, _ = told(PythonException(FUNCTION.format("ValueError: no such plane\nlook at the fleet\n  of today")))
    assert reason.endswith(": ValueError: no such plane")


def test_which_executor_it_was_stands_behind_the_reason() -> None:
    error = Exception(
        "An error occurred\n: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 23.0 "
        "failed 1 times, most recent failure: Lost task 0.0 in stage 23.0 (TID 23) (192.0.2.2 executor 7): "
        "org.apache.spark.SparkException: Job aborted"
    )
    assert told(error) == ("org.apache.spark.SparkException: Job aborted (executor 7 on 192.0.2.2)", False)


def test_a_python_that_was_killed_is_told_with_what_to_do_about_its_memory() -> None:
    """Of a real kill by the kernel: Spark's own advice was all that was said."""
    reason, _ = told(
        Exception(
            "An error occurred\n: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage "
            "23.0 failed 4 times, most recent failure: Lost task 0.3 in stage 23.0 (TID 23) (192.0.2.2 executor 7): "
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider setting "
            "'spark.sql.execution.pyspark.udf.faulthandler.enabled' or'spark.python.worker.faulthandler.enabled' "
            "configuration to 'true' for the better Python traceback."
        )
    )
    said = (
        "Python worker exited unexpectedly (crashed) (executor 7 on 192.0.2.2); a signal ended it, or the program did: "
    )
    assert said in reason
    assert "the kernel of that host did, for want of memory" in reason
    assert "udf.faulthandler" not in reason


def test_a_python_that_cannot_start_is_told_with_what_it_wrote() -> None:
    """As with our daemon where this package is not installed: "org.apache.spark.SparkException: " was all."""
    reason, repeatable = told(
        Exception(
            "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.runJob.\n"
            ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, "
            "most recent failure: Lost task 0.3 in stage 0.0 (TID 7) (192.0.2.2 executor 1): "
            "org.apache.spark.SparkException: \n"
            "Error from python worker:\n"
            "  /usr/bin/python3: Error while finding module specification for "
            "'understudy.runtime.clusters.spark_daemon' (ModuleNotFoundError: No module named 'understudy')\n"
            "PYTHONPATH was:\n  /opt/spark/python/lib/pyspark.zip\n"
            "org.apache.spark.SparkException: EOFException occurred while reading the port number from stdout"
        )
    )
    assert reason.startswith(
        "Spark's Python cannot start (executor 1 on 192.0.2.2); it wrote last: /usr/bin/python3: Error while finding"
    )
    assert "No module named 'understudy'); PYSPARK_PYTHON and spark.python.daemon.module say what is started" in reason
    assert not repeatable


def test_where_the_kernel_counts_such_kills_here_that_is_said_in_place_of_advice() -> None:
    counted = "oom_kill of this machine (/proc/vmstat) went from 0 to 1 in the last 3 s"
    said = with_kills(f"Python worker exited unexpectedly (crashed) (executor driver on here){CRASHED}", counted)
    assert f"on here): probably memory ran out, and the kernel ended it ({counted}); " in said
    assert "dmesg" not in said
    assert with_kills(f"crashed{CRASHED}", "") == f"crashed{CRASHED}"
    assert with_kills("Job aborted", counted) == "Job aborted"


def test_an_executor_that_was_killed_is_told_with_what_to_do_about_its_memory() -> None:
    error = Exception(
        "An error occurred\n: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 23.0 "
        "failed 4 times, most recent failure: Lost task 0.3 in stage 23.0 (TID 23) (192.0.2.2 executor 7): "
        f"{LOST.format(137)}"
    )
    said = f"{LOST.format(137)} (executor 7 on 192.0.2.2); 137 is SIGKILL: if nobody did it, memory ran out: raise sp"
    assert told(error)[0].startswith(said)


class Books:
    """What Spark has kept of its jobs, by the interface that py4j shows."""

    def __init__(self, *errors: str | None) -> None:
        self._errors = errors
        self._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(statusStore=lambda: self))

    def statusTracker(self) -> Any:
        info = SimpleNamespace(stageIds=[3])
        return SimpleNamespace(getJobIdsForGroup=lambda _: [4, 7] if self._errors else [], getJobInfo=lambda _: info)

    def taskList(self, _stage: int, _attempt: int, _most: int) -> Any:
        return SimpleNamespace(size=lambda: len(self._errors), apply=self._task)

    def _task(self, place: int) -> Any:
        said = self._errors[place]
        error = SimpleNamespace(isDefined=lambda: said is not None, get=lambda: said)
        return SimpleNamespace(
            errorMessage=lambda: error, taskId=lambda: place, executorId=lambda: "1", host=lambda: "192.0.2.2"
        )


LOST = "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: Command exited with code {}"


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        ((LOST.format(1),), f"{LOST.format(1)} (executor 1 on 192.0.2.2)"),
        ((LOST.format(137),), "code 137 (executor 1 on 192.0.2.2); 137 is SIGKILL: if nobody did it, memory ran out: "),
        (("older", LOST.format(1), "[SPARK_JOB_CANCELLED] Job 7", None), f"{LOST.format(1)} (executor 1 on 192.0.2.2)"),
        ((None,), ""),
        ((), ""),
    ],
)
def test_why_a_task_had_failed_before_its_job_was_cancelled(errors: tuple[str | None, ...], said: str) -> None:
    """Of the last one that has; the texts are Spark 4.3's."""
    found = why_tasks_failed(Books(*errors), "group")
    assert said in found
    assert bool(said) == bool(found)


def test_nothing_stands_before_what_java_says() -> None:
    error = Exception("An error occurred while calling runJob.\n: org.apache.spark.SparkException: [FILE_NOT_EXIST]")
    assert told(error) == ("org.apache.spark.SparkException: [FILE_NOT_EXIST]", False)
