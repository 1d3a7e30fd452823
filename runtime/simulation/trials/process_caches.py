"""ProcessCaches: functions of the user's that remember their results (functools.lru_cache, functools.cache).

A real TaskManager's caches end with its process. Simulated processes share one interpreter and the caches in it, so a
cache would outlive each kill, and each history: what it holds is forgotten whenever a new process is given an operator
that may ask it.
"""

from __future__ import annotations

from ....actors.operators.operator import Operator
from ..world.file_system import current_disk
from .reached_functions import caches_reached_by


class ProcessCaches:
    """Of one history. `look_at`: is called with each operator that a task is given."""

    def __init__(self) -> None:
        self._known: set[tuple[object, object]] = set()
        """Which process has seen which cache."""

    def look_at(self, operator: Operator) -> None:
        """Empty the caches that are new to the process."""
        process = current_disk().owner()
        for cache in caches_reached_by(operator):
            if (process, cache) not in self._known:
                self._known.add((process, cache))
                cache.cache_clear()
