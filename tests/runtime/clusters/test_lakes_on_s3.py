"""Tables of lakes are exact when their object store goes away between two checkpoints of a job, and comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from understudy import DeltaSink, IcebergSink, LocalCluster, fixed_delay

from ...systems.relay import Relay
from ...systems.s3 import S3Server, s3, s3_server
from .jobs import WAIT_S, Gate, Witness, counted, counting, counts_of, environment, eventually
from .test_lakes import _readers_end
from .test_s3_checkpoints import chained

__all__ = ["_readers_end", "s3", "s3_server"]

COUNT, RATE = 3000, 150
"""Records come for longer than it takes to cut the store off: without any there is nothing to commit."""
COUNTS = pa.schema([("key", pa.int64()), ("number", pa.int64()), ("index", pa.int64())])


@pytest.fixture
def relay(s3: S3Server) -> Iterator[Relay]:
    relay = Relay(s3.port)
    yield relay
    relay.cut()


def delta(s3: S3Server, url: str, folder: Path) -> tuple[Any, Callable[[], pa.Table]]:
    """A sink into an empty table, and what reads it."""
    from deltalake import DeltaTable

    options = {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
        "max_retries": "1",
    }
    path = f"s3://{s3.bucket()}/t"
    sink = DeltaSink(path, schema=COUNTS, storage_options=options)
    return sink, lambda: DeltaTable(path, storage_options=options).to_pyarrow_table()


def iceberg(s3: S3Server, url: str, folder: Path) -> tuple[Any, Callable[[], pa.Table]]:
    """The catalog lies in a local file: the store has data and metadata."""
    from pyiceberg.catalog import load_catalog

    catalog = {
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": f"s3://{s3.bucket()}/lake",
        "s3.endpoint": url,
        "s3.access-key-id": "testing",
        "s3.secret-access-key": "testing",
        "s3.region": "us-east-1",
        "s3.connect-timeout": "2",
        "s3.request-timeout": "2",
    }
    load_catalog("understudy", **catalog).create_namespace_if_not_exists("db")
    sink = IcebergSink("db.t", catalog=catalog, schema=COUNTS)
    return sink, lambda: load_catalog("understudy", **catalog).load_table("db.t").scan().to_arrow()


@pytest.mark.chaos
@pytest.mark.parametrize("make", [delta, iceberg])
def test_a_table_is_exact_when_its_store_goes_away_between_two_checkpoints(
    shared_cluster: LocalCluster, s3: S3Server, relay: Relay, tmp_path: Path, make: Any
) -> None:
    gate = Gate(tmp_path)
    sink, read = make(s3, relay.url, tmp_path)
    env = environment(
        checkpoint_interval_ms=300,
        tolerable_checkpoint_failures=10_000,
        restart_strategy=fixed_delay(attempts=1000, delay_ms=200),
    )
    counting(env, COUNT, RATE, gate=gate).sink_to(sink, name="out")
    job = shared_cluster.submit(env)
    witness = Witness(job)
    witness.checkpoints(3)
    relay.cut()
    eventually(lambda: bool(job.details().failures), "a failure that names the store")
    relay.start()
    witness.checkpoints(2)
    gate.open()
    details = job.wait(timeout=WAIT_S)
    assert "LakeUnreachable" in chained(details.failures[0])
    assert counts_of(read().to_pylist()) == counted(COUNT)
