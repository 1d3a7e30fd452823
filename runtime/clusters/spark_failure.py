"""How a Spark job that a TaskManager lived in has ended: of the TaskManager, or of the rows that it read.

Spark computes a DataFrame while the TaskManager reads it. What fails there, as a division by zero or a Python function,
ends the process, which sees a broken pipe; only Spark's error says why.
"""

from __future__ import annotations

_OF_ROWS = frozenset(
    {
        "ArithmeticException",
        "ArrayIndexOutOfBoundsException",
        "DateTimeException",
        "NumberFormatException",
        "PythonException",
        "SparkNoSuchElementException",
        "SparkRuntimeException",
    }
)
"""PySpark's names for what comes again with the same rows. A file or a network may come back."""

_PASSING = ("Connection", "Timeout", "OSError", "Unavailable")
_LENGTH = 300


def told(error: Exception) -> tuple[str, bool]:
    """What to say of it, in a line; and whether it is the rows, so that the next TaskManager ends of them too."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    if not any(kind.__name__ in _OF_ROWS for kind in type(error).__mro__) or _is_of_a_task_manager(lines):
        telling = [line for line in lines if "Python worker" in line or "SIGKILL" in line or "Exception:" in line]
        return (telling or lines)[0].lstrip(": ")[:_LENGTH], False
    said = lines[0]
    if type(error).__name__ == "PythonException":  # its last lines are those of the traceback
        said = next((line for line in reversed(lines) if not line.startswith("SQLSTATE")), said)
    return f"Spark cannot compute the DataFrame: {said}"[:_LENGTH], not any(each in said for each in _PASSING)


def _is_of_a_task_manager(lines: list[str]) -> bool:
    """Whether it is the traceback of our own function, or of a session that was stopped."""
    return any("spark_launcher" in line or "SPARK_JOB_CANCELLED" in line for line in lines)
