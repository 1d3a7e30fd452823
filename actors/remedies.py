"""What to do about errors whose own text does not say it. Decided where the exception still exists."""

from __future__ import annotations

import sys


def remedy(error: BaseException) -> str:
    """A clause that follows the error's text; empty where there is nothing to add."""
    if isinstance(error, ModuleNotFoundError):
        return (
            f"install it where TaskManagers run (the Python here is {sys.executable}); on Spark, a module of your own "
            "can be shipped with spark.sparkContext.addPyFile(...)"
        )
    if isinstance(error, AttributeError) and isinstance(error.obj, dict) and error.name in error.obj:
        return f"it is an item of this dict: write record[{error.name!r}]"
    return ""
