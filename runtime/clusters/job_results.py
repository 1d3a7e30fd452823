"""JobResults: the records that a job's sinks have brought to its user. A part of the JobHandle.

Read from committed files, and only this job's: whatever else is in the folder. The results of `collect` are kept once
the job has finished, because its cluster may remove the files when it closes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ...actors.flow.records import batch_of
from ...actors.operators.operator import Operator
from ...messages import Predecessor, with_record_types
from ...messages.known_names import there_are
from ..api.errors import InvalidSetting
from ..api.translation import Translation
from ..connectors import CollectSink, FileSink, OutletSink, read_collected
from ..connectors.files.committed_files import OutputOf
from ..connectors.files.file_source import read_table
from ..connectors.files.locations import located
from ..connectors.files.output_directory import OutputDirectory
from .job_errors import ResultsUnavailable, UnknownOperator

_SPARK_READERS: dict[str, tuple[str, dict[str, str]]] = {
    "parquet": ("parquet", {}),
    "csv": ("csv", {"header": "true", "inferSchema": "true"}),
    "jsonl": ("json", {}),
}
"""Our format -> Spark's, with the options that read what FileSink writes."""


class JobResults:
    """One job's. `predecessors`: the jobs whose savepoint or checkpoint it was started from."""

    def __init__(self, translation: Translation, predecessors: Callable[[], tuple[Predecessor, ...]]) -> None:
        self._graph = translation.graph
        self._sinks = translation.sinks
        self._predecessors = predecessors
        self.record_types = translation.record_types
        """The script's classes that the job has."""
        self._kept: dict[str, list[Any]] = {}

    def collected(self, name: str, after: int = 0) -> list[Any]:
        """The records of a `collect`, without the first `after`. Raises UnknownOperator, ResultsUnavailable for another
        sink.
        """
        if type(after) is not int or after < 0:
            raise InvalidSetting(f"after: wanted a number of records, at least 0, found {after!r}")
        sink = self.sink(name)
        if not isinstance(sink, CollectSink):
            if isinstance(sink, OutletSink):
                raise ResultsUnavailable(f"{name!r} is an outlet: read it with job.outlet({name!r})")
            raise ResultsUnavailable(f"sink {name!r} is a {type(sink).__name__}; results come from collect(name=...)")
        if name in self._kept:
            return self._kept[name][after:]
        return self._read(name, sink)[after:]

    def is_collected(self, name: str) -> bool:
        return isinstance(self.sink(name), CollectSink)

    def keep(self) -> None:
        """Take the results home."""
        for name, sink in self._sinks.items():
            if isinstance(sink, CollectSink) and name not in self._kept:
                self._kept[name] = self._read(name, sink)

    def _read(self, name: str, sink: CollectSink) -> list[Any]:
        return with_record_types(self.record_types, read_collected, sink.path, of=self._output_of(name))

    def table(self, name: str) -> pa.Table:
        """The records of a `collect`, or the files of a FileSink, as columns. Raises as `collected`, and where there is
        no file; RecordMismatch for collected records that are not of one kind.
        """
        sink = self.sink(name)
        if isinstance(sink, FileSink) and not isinstance(sink, CollectSink):
            fs, root = located(sink.path)
            return read_table(fs, [f"{root}/{each}" for each in self._files(name, sink)], sink.format)
        records = self.collected(name)
        return pa.Table.from_batches([batch_of(records)]) if records else pa.table({})

    def dataframe(self, name: str, spark: Any) -> Any:
        """The files of a FileSink as a DataFrame of Spark. Raises as `collected`, and where there is no file."""
        sink = self.sink(name)
        if not isinstance(sink, FileSink) or isinstance(sink, CollectSink):
            raise ResultsUnavailable(f"sink {name!r} is a {type(sink).__name__}; a DataFrame is read from a FileSink")
        format, options = _SPARK_READERS[sink.format]
        files, root = self._files(name, sink), sink.path.rstrip("/")
        return spark.read.format(format).options(**options).load([f"{root}/{each}" for each in files])

    def _files(self, name: str, sink: FileSink) -> list[str]:
        """This job's, and of the jobs that it continues. Raises ResultsUnavailable when there is none."""
        names = self._output_of(name).among(OutputDirectory(sink.path, "").committed(""))
        if not names:
            raise ResultsUnavailable(f"job {self._graph.name!r} has committed no record to {sink.path}")
        return list(names)

    def _output_of(self, name: str) -> OutputOf:
        described = (one for vertex in self._graph.vertices for one in vertex.operators)
        operator_id = next(one.operator_id for one in described if one.name == name)
        return OutputOf(self._graph.job_id, operator_id, self._predecessors())

    def sink(self, name: str) -> Operator:
        sink = self._sinks.get(name)
        if sink is None:
            raise UnknownOperator(f"job {self._graph.name!r} has no sink {name!r}{there_are(name, self._sinks)}")
        return sink

    def outlet_or_sink(self, name: str) -> Operator:
        """The same for whoever wants an outlet: the others are not offered to them."""
        outlets = [each for each, sink in self._sinks.items() if isinstance(sink, OutletSink)]
        if name not in self._sinks:
            raise UnknownOperator(f"job {self._graph.name!r} has no outlet {name!r}{there_are(name, outlets)}")
        return self._sinks[name]
