"""What is said of a Spark job that has ended, by the texts that PySpark 4.3 raises."""

from __future__ import annotations

import sys

import pytest

from understudy.runtime.clusters.spark_failure import told

FUNCTION = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "flights.py", line 32, in <lambda>
    u = udf(lambda x: 1 / (x - 500), "double")
                      ~~^~~~~~~~~~~
{}
 SQLSTATE: 39000"""


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
  File "worker.py", line 3312, in main
    check_python_version(infile)
  File "worker_util.py", line 81, in check_python_version
    raise PySparkRuntimeError(
pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot run with different minor versions.
Please check environment variables PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON are correctly set.

"""  # noqa: E501

PACKAGE = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "understudy/runtime/clusters/spark_launcher.py", line 19, in <module>
    import pyarrow as pa
ModuleNotFoundError: No module named 'pyarrow'
"""


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
        "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed)"
    )
    said = "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed) (executor 7 on 192.0.2.2)"
    assert told(error) == (said, False)


def test_nothing_stands_before_what_java_says() -> None:
    error = Exception("An error occurred while calling runJob.\n: org.apache.spark.SparkException: [FILE_NOT_EXIST]")
    assert told(error) == ("org.apache.spark.SparkException: [FILE_NOT_EXIST]", False)
