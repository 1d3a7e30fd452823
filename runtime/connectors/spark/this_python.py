"""Which interpreter Spark's Python workers run, where all is on one machine. Nothing else of Spark is at home here."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PYTHON_CHOSEN = "PYSPARK_PYTHON"
"""The environment variable in which users of PySpark name an interpreter."""


def python_of_pyspark() -> str:
    """The interpreter of workers where nobody has chosen one since the session was made."""
    return os.environ.get(PYTHON_CHOSEN) or "python3"


def use_this_python(spark: SparkSession) -> None:
    """On a local master, let workers run the interpreter that runs here, unless the user has chosen another.

    PySpark takes `python3` from the path, which has none of our dependencies when a virtual environment is not
    activated.
    """
    context: Any = spark.sparkContext
    chosen = os.environ.get(PYTHON_CHOSEN) or context.getConf().get("spark.pyspark.python")
    if not chosen and context.master.startswith("local"):
        context.pythonExec = sys.executable
