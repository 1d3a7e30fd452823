"""StreamQueries: the queries of Spark that run beside the jobs of one cluster: each as long as its job."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ..api.translation import QueryBinding
from ..connectors.spark.spool import Spool
from ..connectors.spark.stream_query import StreamQuery
from .job_handle import JobHandle

_CLOSE_SECONDS = 30.0


class StreamQueries:
    """All of one cluster, also those that are ending."""

    def __init__(self) -> None:
        self._queries: list[StreamQuery] = []

    @staticmethod
    def prepare(bindings: Sequence[QueryBinding]) -> None:
        """Their jobs are about to be submitted: no source may see how a former query has ended."""
        for each in bindings:
            Spool(each.spool).begin()

    def begin(self, bindings: Sequence[QueryBinding], job: JobHandle) -> None:
        """Start them. What fails, now or later, is said by the job's sources. They end with the job."""
        for each in bindings:
            query = StreamQuery(each.source_name, Spool(each.spool), each.stream)
            before = [other for other in self._queries if other.path == query.path]
            self._queries.append(query)
            query.begin(before[-1] if before else None)
            job._when_over(query.ending)

    def close(self) -> None:
        """End all, and wait until they are over."""
        for each in self._queries:
            each.ending()
        deadline = time.monotonic() + _CLOSE_SECONDS
        for each in self._queries:
            each.close(max(0.0, deadline - time.monotonic()))
