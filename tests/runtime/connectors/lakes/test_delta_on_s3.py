"""A Delta table in an object store is written and read through delta-rs alone."""

from __future__ import annotations

import pytest

from tests.systems.s3 import S3Server, s3, s3_server
from understudy import DeltaSink, DeltaSource
from understudy.testing import OperatorHarness

from .lake import SCHEMA, rows
from .sink_contract import running
from .source_contract import keys, read_all

__all__ = ["s3", "s3_server"]


@pytest.mark.processes
def test_rows_come_back(s3: S3Server) -> None:
    s3.fs.call_s3("create_bucket", Bucket="lake")
    options = {
        "AWS_ENDPOINT_URL": s3.url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
    }
    with running(DeltaSink("s3://lake/t", schema=SCHEMA, partition_by="text", storage_options=options)) as sink:
        for number in range(3):
            sink.process(rows([number]))
            sink.complete(sink.snapshot())
    with OperatorHarness(DeltaSource("s3://lake/t", storage_options=options)) as reading:
        assert read_all(reading)
        assert keys(reading) == [0, 1, 2]
