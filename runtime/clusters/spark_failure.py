"""How a Spark job that a TaskManager lived in has ended: of the TaskManager, or of the rows that it read.

Spark computes a DataFrame while the TaskManager reads it. What fails there, as a division by zero or a Python function,
ends the process, which sees a broken pipe; only Spark's error says why. A job that was cancelled has no error but that:
then Spark's books say why its tasks had failed before.
"""

from __future__ import annotations

import re
import sys
from itertools import takewhile
from typing import Any

from ...actors.remedies import HOLD_LESS

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
_CANCELLED = "SPARK_JOB_CANCELLED"
_TASK = re.compile(r".*Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \((?P<host>\S+) executor (?P<executor>\S+)\): ")
"""Spark's prefix, longer than the reason itself."""
_OF_SURROUNDINGS = re.compile(
    r"[\w.]+: \[(?:PYTHON_VERSION_MISMATCH|PACKAGE_NOT_INSTALLED)\]|(?:ModuleNotFound|Import)Error\b"
)
_START = "Error from python worker:"
_AFTER_START = "PYTHONPATH was:"
_NO_START = (
    "; PYSPARK_PYTHON and spark.python.daemon.module say what is started, and each executor has to have it. Name a "
    "module of Understudy there only if Understudy is installed on the executors: what a job ships arrives later. "
    "Install it there, or leave the setting out"
)
_FRAME = re.compile(r'^\s*File "([^"]+)", line ', re.MULTILINE)
_FILE_OF_SPARKS = re.compile(
    r"<frozen |(?:(?:site|dist)-packages|python|pyspark\.zip)/(?:pyspark|pyarrow|pandas|numpy|cloudpickle)/"
    r"|/lib/python3\.\d+/(?!site-packages/|dist-packages/)"
    r"|(?:^|/)understudy/(?:(?:actors|messages|runtime|state)/|__init__\.py)"
)
"""Of Python, PySpark, Understudy or what these import, and not the user's own."""
_CODE_OF_SIGKILL = re.compile(r"(?:code|status:?) 137\b")
_KILLED = (
    "; 137 is SIGKILL: if nobody did it, memory ran out: raise spark.executor.memoryOverhead, which has the Python of "
    "TaskManagers (on YARN and Kubernetes), or spark.executor.memory"
)
_CRASHED = re.compile(r"(Python worker exited unexpectedly \(crashed\))\. Consider setting .*")
CRASHED = (
    "; a signal ended it, or the program did: if the kernel of that host did, for want of memory (`dmesg` there says "
    f"it), the Python of TaskManagers wants more beside the JVM of the executor: {HOLD_LESS}; "
    "spark.python.worker.faulthandler.enabled=true shows a crash of native code"
)
"""What is said of a Python worker whose end Spark cannot explain."""
_SAME_PYTHON = (
    f"; wanted on each executor: Python {sys.version_info.major}.{sys.version_info.minor}, as here, with the packages "
    "that Understudy and your program import; PYSPARK_PYTHON names it, before the session is made"
)


def told(error: Exception) -> tuple[str, bool]:
    """What to say of it, in a line; and whether it is the rows, so that the next TaskManager ends of them too."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    is_pythons = type(error).__name__ == "PythonException"
    said = _raised(str(error)) if is_pythons else lines[0]
    if is_pythons and _OF_SURROUNDINGS.match(said) is not None and not _is_of_the_user(str(error)):
        return f"Spark's Python cannot run TaskManagers: {said[:_LENGTH]}{_SAME_PYTHON}", False
    if start := _of_start(lines):
        return start, False
    if not any(kind.__name__ in _OF_ROWS for kind in type(error).__mro__) or _is_of_a_task_manager(lines):
        return _plain(said if is_pythons else _telling(lines)), False
    return f"Spark cannot compute the DataFrame: {said}"[:_LENGTH], not any(each in said for each in _PASSING)


def with_kills(reason: str, kills: str | None) -> str:
    """`kills`: what MemoryEvents counts, where the TaskManager was on this machine."""
    if not kills or CRASHED not in reason:
        return reason
    return reason.replace(CRASHED, f": probably memory ran out, and the kernel ended it ({kills}); {HOLD_LESS}")


def was_cancelled(reason: str) -> bool:
    """Whether nothing else is known of a Spark job's end."""
    return _CANCELLED in reason


def why_tasks_failed(context: Any, group: str) -> str:
    """What Spark knows of the last task that has failed in this group's newest Spark job; empty: of none."""
    jobs = list(context.statusTracker().getJobIdsForGroup(group))
    if not jobs:
        return ""
    books = context._jsc.sc().statusStore()
    reasons = []
    for stage in context.statusTracker().getJobInfo(max(jobs)).stageIds:
        tasks = books.taskList(stage, 0, 1000)
        for place in range(tasks.size()):
            task = tasks.apply(place)
            if task.errorMessage().isDefined() and _CANCELLED not in (said := str(task.errorMessage().get())):
                reasons.append((int(task.taskId()), str(task.executorId()), str(task.host()), said))
    if not reasons:
        return ""
    _, executor, host, said = max(reasons)
    lines = [line.strip() for line in said.splitlines() if line.strip()] or ["a task failed without a reason"]
    return _of_start(lines) or _plain(_telling(lines), f" (executor {executor} on {host})")


def _of_start(lines: list[str]) -> str:
    """Of a Python that has ended before it could take a task: what it wrote last; empty: it is not that."""
    if _START not in lines:
        return ""
    wrote = list(takewhile(lambda line: line != _AFTER_START, lines[lines.index(_START) + 1 :])) or ["nothing"]
    place = next((found for line in lines if (found := _TASK.match(line))), None)
    where = "" if place is None else f" (executor {place['executor']} on {place['host']})"
    return f"Spark's Python cannot start{where}; it wrote last: {wrote[-1][:_LENGTH]}{_NO_START}"


def _raised(text: str) -> str:
    """The line that names the exception in the text of a traceback: the first one behind the last frame."""
    lines = [line for line in text.splitlines() if line.strip()]
    last = max((place for place, line in enumerate(lines) if line.startswith('  File "')), default=-1)
    behind = [line.strip() for line in lines[last + 1 :] if not line.startswith("  ")]
    return behind[0] if behind else lines[-1].strip()


def _is_of_the_user(traceback: str) -> bool:
    """Whether one of its frames is in a file of the user's."""
    return any(_FILE_OF_SPARKS.search(file) is None for file in _FRAME.findall(traceback))


def _telling(lines: list[str]) -> str:
    signs = ("Python worker", "SIGKILL", "Exception:")
    return next((line for line in lines if any(sign in line for sign in signs)), lines[0])


def _plain(line: str, where: str = "") -> str:
    """Without what Java and Spark write before the reason; with what to do about a process that was killed."""
    line = line.lstrip(": ")
    line = _CRASHED.sub(r"\1", line)
    advice = _KILLED if _CODE_OF_SIGKILL.search(line) else CRASHED if "(crashed)" in line else ""
    if (place := _TASK.match(line)) is not None:
        line, where = line[place.end() :], f" (executor {place['executor']} on {place['host']})"
    return f"{line[:_LENGTH]}{where}{advice}"


def _is_of_a_task_manager(lines: list[str]) -> bool:
    """Whether it is the traceback of our own function, or of a session that was stopped."""
    return any("spark_launcher" in line or _CANCELLED in line for line in lines)
