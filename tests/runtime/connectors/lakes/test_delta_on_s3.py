"""A Delta table in an object store is written and read through delta-rs alone; one that is away is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.systems.s3 import S3Server, s3, s3_server
from understudy import DeltaSink, DeltaSource
from understudy.actors.errors import UserCodeError
from understudy.runtime.connectors.lakes.errors import LakeUnreachable
from understudy.testing import OperatorHarness

from .lake import SCHEMA, rows
from .sink_contract import running
from .source_contract import keys, read_all

__all__ = ["s3", "s3_server"]

pytestmark = pytest.mark.processes


def options(url: str) -> dict[str, str]:
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
        "max_retries": "1",
    }


def found(path: str, url: str) -> list[int]:
    with OperatorHarness(DeltaSource(path, storage_options=options(url))) as reading:
        assert read_all(reading)
        return keys(reading)


def test_rows_come_back(s3: S3Server) -> None:
    path = f"s3://{s3.bucket()}/t"
    with running(DeltaSink(path, schema=SCHEMA, partition_by="text", storage_options=options(s3.url))) as sink:
        for number in range(3):
            sink.process(rows([number]))
            sink.complete(sink.snapshot())
    assert found(path, s3.url) == [0, 1, 2]


@pytest.mark.parametrize(
    "make", [DeltaSource, lambda path, **o: DeltaSink(path, schema=SCHEMA, **o)], ids=["from", "to"]
)
def test_a_store_that_is_away_is_named_where_the_table_is_looked_at(make: Callable[..., object]) -> None:
    with pytest.raises(LakeUnreachable) as away:
        make("s3://lake/t", storage_options=options("http://127.0.0.1:9"))
    text = str(away.value)
    assert text.startswith("s3://lake/t: its object store at http://127.0.0.1:9 does not answer, or refuses: ")
    assert "Connection refused" in text
    assert "storage_options=" in text
    assert "testing" not in text, "no credentials"
    assert text.isprintable(), "one line, without colours"


def test_a_job_that_meets_a_store_that_is_away_names_it(s3: S3Server) -> None:
    """Where files are written, and where the table is opened to commit."""
    sink = DeltaSink(f"s3://{s3.bucket()}/t", schema=SCHEMA, storage_options=options(s3.url))
    sink.storage_options = options("http://127.0.0.1:9")
    with OperatorHarness(sink.writer()) as writer:
        writer.process(rows([1]))
        with pytest.raises(UserCodeError) as not_written:
            writer.snapshot()
    with pytest.raises(UserCodeError) as not_opened, OperatorHarness(sink.committer()):
        pass
    for failure in (not_written, not_opened):
        assert isinstance(failure.value.__cause__, LakeUnreachable)
