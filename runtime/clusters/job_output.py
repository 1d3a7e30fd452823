"""JobOutput: what a job has brought or written, as records and as tables. A part of the JobHandle."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from ...messages import FailureCause, JobDetails, JobGraph, JobStatus
from ...messages.failures import tell_line
from ...messages.known_names import known_arguments
from ..api.warned import warn
from ..connectors.errors import require
from .async_twin import Blocking, async_twin, warn_of_event_loop
from .job_errors import ResultsUnavailable
from .job_results import JobResults


class JobOutput(Blocking):
    """Base of the JobHandle.

    Only this job's output is read, whatever else is in a folder. Of a job that was started from a savepoint or
    checkpoint also what the jobs before it had committed there by then, so that the whole is exact.
    """

    _graph: JobGraph
    _results: JobResults
    _status: JobStatus
    _last_details: JobDetails | None = None
    """After the job's end."""
    _heard_failure: FailureCause | None = None
    """Of the latest event that had one."""
    _is_failure_known = False
    """Whether an error of the job has come to its user."""

    _is_none_known = False
    """Whether it was said that there are no results yet."""

    @known_arguments(first=1, example='job.results("delays"), the name of a collect(name=...)')
    def results(self, name: str, *, after: int = 0) -> list[Any]:
        """The records that `collect(name=...)` has brought: of a finished job all, else those committed so far.

        The list grows with the job, and all of it is read each time: for results that fit into memory. What is read
        while the job runs, or for long, wants `to_outlet`. `after`: leave out this number of records at the beginning.
        Of a collect with `parallelism=1`, whose records keep their order, these are the ones of an earlier call.
        Of a failed job they are those committed before it failed: a RuntimeWarning says so to whoever has not waited.
        """
        if not self._status.is_terminal:
            warn_of_event_loop(f"job.results({name!r})", f"`await job.results_async({name!r})`", depth=3)
        self._warn_of_failure()
        found = self._results.collected(name, after)
        if not found:
            self._warn_of_none_yet(name)
        return found

    results_async = async_twin(results)

    def to_arrow(self, name: str) -> pa.Table:
        """What `collect(name=...)` has brought so far, or what a finished job's FileSink has written, as a table.

        Records become columns by their names; plain tuples have `_1` to `_n`, and any other record is the column
        `value`. A collect that has brought nothing gives a table without columns. Raises RecordMismatch for records of
        several kinds, and ResultsUnavailable for a sink of another kind, and for a FileSink before the job's end or
        without a file.
        """
        if not self._results.is_collected(name):
            self._check_finished()
        self._warn_of_failure()
        return self._results.table(name)

    to_arrow_async = async_twin(to_arrow)

    def to_pandas(self, name: str) -> Any:
        """The same as a pandas DataFrame, as `pa.Table.to_pandas` makes it: integers with nulls become floats.

        Raises as `to_arrow`, and MissingExtra without pandas.
        """
        require("pandas", extra="frames", wanted_by="to_pandas")
        return self.to_arrow(name).to_pandas()

    to_pandas_async = async_twin(to_pandas)

    def to_polars(self, name: str) -> Any:
        """The same as a Polars DataFrame. Raises as `to_arrow`, and MissingExtra without Polars."""
        polars = require("polars", extra="frames", wanted_by="to_polars")
        return polars.from_arrow(self.to_arrow(name))

    to_polars_async = async_twin(to_polars)

    def to_duckdb(self, name: str, connection: Any = None) -> Any:
        """The same as a relation of DuckDB, in this connection or in DuckDB's own: `relation.filter(...)`, or by its
        name in SQL. Raises as `to_arrow`, and MissingExtra without DuckDB.
        """
        duckdb = require("duckdb", extra="frames", wanted_by="to_duckdb")
        return (duckdb if connection is None else connection).from_arrow(self.to_arrow(name))

    to_duckdb_async = async_twin(to_duckdb)

    def to_dataframe(self, name: str, spark: Any) -> Any:
        """What a finished job's FileSink has written, as a DataFrame of this SparkSession.

        Raises ResultsUnavailable when there is no file, as there are no columns then.
        """
        self._check_finished()
        return self._results.dataframe(name, spark)

    to_dataframe_async = async_twin(to_dataframe)

    def _warn_of_failure(self) -> None:
        """Once, of a job that has failed while nobody waited: so its results look like all there are."""
        if self._status is not JobStatus.FAILED or self._is_failure_known:
            return
        self._is_failure_known = True
        failures = (self._heard_failure,) if self._last_details is None else self._last_details.failures[-1:]
        why = "".join(f": {tell_line(each)}" for each in failures if each is not None)
        warn(
            f"job {self._graph.name!r} has failed, and its results are what it had committed by then{why}; job.wait() "
            "raises the error with its traceback",
            RuntimeWarning,
        )

    def _warn_of_none_yet(self, name: str) -> None:
        """Once, of a job without checkpoints in whose life no result is committed: it looks as if there were none."""
        if self._is_none_known or self._status.is_terminal or self._graph.checkpoints.interval_ms is not None:
            return
        self._is_none_known = True
        warn(
            f"job.results({name!r}): job {self._graph.name!r} has not ended, and without checkpoint_interval_ms its "
            "results are there when it has: job.wait() first",
            RuntimeWarning,
        )

    def _check_finished(self) -> None:
        if self._status is not JobStatus.FINISHED:
            job = f"job {self._graph.name!r} is {self._status.value}"
            raise ResultsUnavailable(f"{job}; its output is whole once it has finished: wait() first")
