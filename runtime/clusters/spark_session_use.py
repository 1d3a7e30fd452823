"""Whether a Spark session that a program has made can be used, and how many tasks it runs at a time."""

from __future__ import annotations

import re
import subprocess
from typing import Any

from ...messages import one_of_kind
from ..api.errors import InvalidProgram, InvalidSetting


def check_is_session(spark: Any) -> None:
    """Raises InvalidSetting for what is no session of the classic kind, which has its JVM beside this process."""
    if not hasattr(spark, "sparkContext"):
        raise InvalidSetting(
            f"SparkCluster: wanted a classic SparkSession (not Spark Connect), found {one_of_kind(type(spark))}: "
            "make one by SparkSession.builder.master(...).getOrCreate()"
        )


def why_gone(spark: Any) -> str | None:
    """Why no Spark job can ever run in this session again, and what to do; None: one can."""
    java: Any = spark.sparkContext._jsc
    try:
        is_stopped = java is None or java.sc().isStopped()
    except Exception as error:  # noqa: BLE001 - of py4j, or of the socket under it
        if not _has_jvm_ended(spark, error):
            return None
        return (
            "the JVM of the SparkSession has ended (killed, or out of memory), and TaskManagers cannot start in it: "
            "start this program again, as PySpark makes no session beside a JVM that has ended"
        )
    if not is_stopped:
        return None
    return (
        "the SparkSession is stopped, and TaskManagers cannot start in it: make a new one by "
        "SparkSession.builder.getOrCreate() and a SparkCluster of it, and stop it only after the cluster is closed"
    )


def _has_jvm_ended(spark: Any, error: BaseException) -> bool:
    """Whether that is why it could not be asked; no descriptor may be left for a connection to one that lives."""
    process: Any = getattr(spark.sparkContext._gateway, "proc", None)
    if process is None:  # somebody else has started it
        causes = [each for each in (error, error.__cause__, error.__context__) if each is not None]
        return any(isinstance(each, ConnectionRefusedError | ConnectionResetError) for each in causes)
    try:
        process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        return False
    return True


def check_session(spark: Any) -> None:
    """Raises InvalidSetting for a session that is stopped, or whose JVM has ended."""
    if (why := why_gone(spark)) is not None:
        raise InvalidSetting(f"SparkCluster: {why}")


def check_frame(source_name: str, dataframe: Any, spark: Any) -> None:
    """Raises InvalidProgram for a DataFrame of Spark Connect, or of a session that is stopped. `spark`: the one of the
    cluster, which is not.
    """
    if getattr(dataframe, "_jdf", None) is None:
        raise InvalidProgram(
            f"source {source_name!r}: wanted a DataFrame of the SparkCluster's session, found one of Spark Connect, "
            "whose rows only its server can read: write them to files with it, and read the files"
        )
    session = dataframe.sparkSession
    if session is not spark and why_gone(session) is not None:
        raise InvalidProgram(
            f"source {source_name!r}: the SparkSession that its DataFrame was made by is stopped, and no other one can "
            "read it: make the DataFrame again by the session of the SparkCluster, and the stream of it"
        )


def check_speculation(spark: Any) -> None:
    """Raises InvalidSetting where Spark starts a task a second time because it takes long, also one that is alone in
    its stage: a TaskManager takes as long as its job, and each of the two would take the other one's place.
    """
    context = spark.sparkContext
    settings = context.getConf()
    after = settings.get("spark.speculation.task.duration.threshold")
    is_local = str(context.master) == "local" or str(context.master).startswith("local[")  # nothing is speculated there
    if after is None or is_local or str(settings.get("spark.speculation", "false")).lower() != "true":
        return
    raise InvalidSetting(
        f"SparkCluster: spark.speculation.task.duration.threshold={after} has Spark start each TaskManager a second "
        f"time after {after}, on another host, and the two would end each other for as long as the job runs: make the "
        "session without that setting (spark.speculation=true alone is fine), or with spark.speculation=false"
    )


def local_slots(spark: Any) -> int | None:
    """How many tasks a local master of a number of threads runs at a time; None for every other master."""
    context = spark.sparkContext
    found = re.fullmatch(r"local(?:\[(\d+)(?:,\s*\d+)?\])?", str(context.master))
    if found is None:
        return None
    cpus = int(context.getConf().get("spark.task.cpus", "1"))
    return int(found[1] or 1) // max(1, cpus)
