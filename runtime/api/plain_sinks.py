"""PlainSinks: streams that are printed, collected for the client, or followed while the job runs: parts of a stream."""

from __future__ import annotations

from typing import Unpack

from ...messages.known_names import known_arguments
from ..connectors import CollectSink, OutletSink, PrintSink
from ..connectors.files.outlet_sink import DAY_MS
from .ends import End, Ends
from .errors import InvalidSetting
from .known_options import Options, known_options


class PlainSinks(Ends[End]):
    """Base of the DataStream."""

    @known_options()
    def print(self, prefix: str = "", **options: Unpack[Options]) -> End:
        """Print each record on the TaskManager's standard output, behind the prefix: "late" gives `late: 3`."""
        if not isinstance(prefix, str):
            raise InvalidSetting(f"print: prefix: wanted a text, found {prefix!r:.80}")
        return self.sink_to(PrintSink(prefix), **options)

    @known_options()
    def collect(self, **options: Unpack[Options]) -> End:
        """Bring the records to the client: `job.results(name)`. For results that fit into its memory."""
        return self.sink_to(CollectSink(), **options)

    @known_arguments(first=1)
    def to_outlet(self, name: str, *, retention_ms: float | None = DAY_MS, retention_bytes: int | None = None) -> End:
        """Let readers follow what is committed, exactly once and in one order: `job.outlet(name)`. One subtask takes
        all. Columns stay columns.

        Records are kept for `retention_ms` milliseconds, by default a day, and no more of them than `retention_bytes`;
        None: no such limit. They become readable with the checkpoint that covers them; without checkpoints, at the end.
        """
        return self.sink_to(OutletSink(retention_ms, retention_bytes), name=name, parallelism=1)
