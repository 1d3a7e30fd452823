"""One record, one way to read it: on real TaskManagers, through channels, state and results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from understudy import Collector, JobFailed, KeyedOperator, ListState, LocalCluster, StreamEnvironment, ValueState
from understudy.messages import DictRow
from understudy.runtime.api.stream import DataStream

from .jobs import WAIT_S, environment

FLIGHTS = [{"origin": origin, "delay": float(delay)} for delay in range(60) for origin in ("JFK", "EWR", "LGA")]
TABLE = pa.Table.from_pylist(FLIGHTS)


def from_collection(env: StreamEnvironment, folder: Path) -> DataStream:
    return env.from_collection(FLIGHTS, records_per_second=600)


def from_parquet(env: StreamEnvironment, folder: Path) -> DataStream:
    pa.parquet.write_table(TABLE, folder / "flights.parquet")
    return env.from_parquet(str(folder / "flights.parquet"), records_per_second=600)


def from_csv(env: StreamEnvironment, folder: Path) -> DataStream:
    pa.csv.write_csv(TABLE, folder / "flights.csv")
    return env.from_csv(str(folder / "flights.csv"), records_per_second=600)


def from_jsonl(env: StreamEnvironment, folder: Path) -> DataStream:
    (folder / "flights.jsonl").write_text("".join(json.dumps(flight) + "\n" for flight in FLIGHTS))
    return env.from_jsonl(str(folder / "flights.jsonl"), records_per_second=600)


def columns(start: int, rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(FLIGHTS[start : start + rows], schema=TABLE.schema)


def generated(env: StreamEnvironment, folder: Path) -> DataStream:
    return env.generate(columns, len(FLIGHTS), records_per_second=600, parallelism=1)


class Remembered(KeyedOperator):
    """Reads its records in every way there is, from the channel and from state."""

    before = ListState(object)
    last = ValueState(object)

    def process(self, flight: Any, out: Collector) -> None:
        self.before.add(flight)
        self.last.update(flight)
        seen = self.before.get()
        assert all(each["delay"] == each.delay for each in seen)  # type: ignore[attr-defined]
        assert dict(self.last.value()) == flight.asdict() == {**flight}
        if len(seen) == 40 and not self.failed.exists():
            self.failed.touch()
            raise RuntimeError("once, so that state is restored")
        out.collect((self.key, len(seen), flight))

    def __init__(self, failed: Path) -> None:
        self.failed = failed


@pytest.mark.parametrize("source", [from_collection, from_parquet, from_csv, from_jsonl, generated])
def test_a_record_is_read_alike_from_every_source(shared_cluster: LocalCluster, tmp_path: Path, source: Any) -> None:
    env = environment(parallelism=2, batch_rows=10)
    flights = source(env, tmp_path)
    flights.key_by("origin").process(Remembered(tmp_path / "failed"), name="seen").collect(name="out")
    job = shared_cluster.submit(env)
    job.wait(timeout=WAIT_S)
    found = job.results("out")
    assert (tmp_path / "failed").exists()
    wanted = [(origin, count + 1, float(count)) for count in range(60) for origin in ("JFK", "EWR", "LGA")]
    assert sorted((origin, count, flight["delay"]) for origin, count, flight in found) == sorted(wanted)
    assert all(flight.asdict() == {"origin": origin, "delay": count - 1.0} for origin, count, flight in found)
    if source is from_collection:
        assert {type(flight) for _, _, flight in found} == {DictRow}


def record_of(env: StreamEnvironment) -> DataStream:
    return env.from_collection([{"origin": "JFK"}])


@pytest.mark.parametrize(
    ("build", "operator"),
    [
        (lambda env: record_of(env).map(dict).key_by("orgin"), "seen"),
        (lambda env: record_of(env).map(lambda record: record.orgin).key_by(len), "map-1"),
        (lambda env: record_of(env).map(lambda record: record["orgin"]).key_by(len), "map-1"),
    ],
    ids=["key", "attribute", "brackets"],
)
def test_a_wrong_name_is_told_with_the_operator(
    shared_cluster: LocalCluster, tmp_path: Path, build: Any, operator: str
) -> None:
    env = StreamEnvironment(parallelism=2)
    build(env).process(Remembered(tmp_path / "failed"), name="seen").collect(name="out")
    with pytest.raises(JobFailed, match=f"operator '{operator}'") as raised:
        shared_cluster.submit(env).wait(timeout=WAIT_S)
    assert "origin; did you mean 'origin'?" in str(raised.value)
