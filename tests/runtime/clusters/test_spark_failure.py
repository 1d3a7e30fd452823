"""What is said of a Spark job that has ended, by the texts that PySpark 4.3 raises."""

from __future__ import annotations

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
        (PythonException('in __call__\n  File "spark_launcher.py"\nPartitionFailed: no more'), "in __call__"),
        (CapturedException("[SPARK_JOB_CANCELLED] Job 7 cancelled"), "[SPARK_JOB_CANCELLED]"),
        (AnalysisException(""), "AnalysisException"),
    ],
)
def test_how_a_task_manager_ended_does_not_count(error: Exception, said: str) -> None:
    assert said in told(error)[0]
    assert "DataFrame" not in told(error)[0]
    assert not told(error)[1]


def test_nothing_stands_before_what_java_says() -> None:
    error = Exception("An error occurred while calling runJob.\n: org.apache.spark.SparkException: [FILE_NOT_EXIST]")
    assert told(error) == ("org.apache.spark.SparkException: [FILE_NOT_EXIST]", False)
