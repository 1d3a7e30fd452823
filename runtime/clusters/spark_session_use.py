"""Whether a Spark session that a program has made can be used, and how many tasks it runs at a time."""

from __future__ import annotations

import re
from typing import Any

from ..api.errors import InvalidSetting


def check_is_session(spark: Any) -> None:
    """Raises InvalidSetting for what is no session of the classic kind, which has its JVM beside this process."""
    if not hasattr(spark, "sparkContext"):
        found = f"{type(spark).__module__}.{type(spark).__qualname__}"
        raise InvalidSetting(
            f"SparkCluster: wanted a classic SparkSession (not Spark Connect), found a {found}: make one by "
            "SparkSession.builder.master(...).getOrCreate()"
        )


def check_session(spark: Any) -> None:
    """Raises InvalidSetting for a session that is stopped."""
    if spark.sparkContext._jsc is None:
        raise InvalidSetting(
            "SparkCluster: the SparkSession is stopped, and TaskManagers cannot start in it: make a new one by "
            "SparkSession.builder.getOrCreate(), and stop it only after the cluster is closed"
        )


def local_slots(spark: Any) -> int | None:
    """How many tasks a local master of a number of threads runs at a time; None for every other master."""
    context = spark.sparkContext
    found = re.fullmatch(r"local(?:\[(\d+)(?:,\s*\d+)?\])?", str(context.master))
    if found is None:
        return None
    cpus = int(context.getConf().get("spark.task.cpus", "1"))
    return int(found[1] or 1) // max(1, cpus)
