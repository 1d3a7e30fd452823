"""Files in S3, on a real server of its API: what an upload is, what faults do to it, and sources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from understudy.actors.flow.records import rows_of
from understudy.actors.operators.source import END, FromSplit
from understudy.runtime.connectors import (
    FileSink,
    FileSource,
    LostTransaction,
    UnusableOutput,
    WatchedFileSource,
)
from understudy.runtime.connectors.files.folder_owner import FOLDER as OWNER
from understudy.runtime.connectors.files.upload_directory import UploadDirectory

from ....systems.faulty_s3 import FaultyS3
from ....systems.s3 import S3Server
from ..harness import ManualClock, Running, make_context

MIB = 1 << 20
_QUICK = {("?uploads", "500"), ("partNumber", "cut"), ("complete", "lost")}
"""The others are tried in slow tests."""


@pytest.fixture
def bucket(s3: S3Server) -> str:
    return s3.bucket()


def start(bucket: str, snapshot: Any = None, *, shared: bool = False, **where: Any) -> Running[FileSink]:
    return Running(FileSink(f"s3://{bucket}/out", "jsonl", shared=shared), snapshot, **where)


def numbers(bucket: str) -> list[int]:
    source = FileSource(f"s3://{bucket}/out", "jsonl")
    source.context = make_context()
    source.open()
    found: list[int] = []
    while isinstance(batch := source.poll(), pa.RecordBatch):
        found += [row.n for row in rows_of(batch)]
    assert batch is END
    return sorted(found)


def test_a_large_file_goes_in_parts_and_comes_back_whole(s3: S3Server, bucket: str) -> None:
    directory = UploadDirectory(s3.fs, f"{bucket}/out")
    file = directory.create("", "big")
    parts = [bytes([number]) * (7 * MIB) for number in range(4)]
    for part in parts:
        file.write(part)
    sealed = directory.seal(file, "0-0-0-a")
    assert len(sealed.parts) == 4, "three of 8 MiB and the rest"
    assert s3.keys(bucket) == []
    assert s3.uploads(bucket) == ["out/big"]
    directory.publish(*sealed)
    assert s3.fs.cat_file(f"{bucket}/out/big") == b"".join(parts)
    assert s3.uploads(bucket) == []


def test_a_file_that_is_closed_and_not_sealed_is_no_upload_any_more(s3: S3Server, bucket: str) -> None:
    directory = UploadDirectory(s3.fs, f"{bucket}/out")
    file = directory.create("", "big")
    file.write(bytes(9 * MIB))
    assert s3.uploads(bucket) == ["out/big"]
    file.close()
    assert s3.uploads(bucket) == []
    assert s3.keys(bucket) == []


def written(s3: S3Server, bucket: str) -> list[str]:
    """All objects, but for whose folder it is."""
    return [key for key in s3.keys(bucket) if f"/{OWNER}/" not in key]


def test_neither_objects_nor_uploads_are_there_but_what_is_committed(s3: S3Server, bucket: str) -> None:
    running = start(bucket)
    running.take({"n": 1})
    snapshot = running.checkpoint(1)
    assert written(s3, bucket) == []
    running.complete(1)
    (key,) = written(s3, bucket)
    assert "part-operator-00000-0000000001-" in key
    running.operator.close()
    start(bucket, snapshot, attempt=1).operator.close()
    assert written(s3, bucket) == [key]
    assert s3.uploads(bucket) == []
    assert numbers(bucket) == [1]


def test_checkpoints_that_were_given_up_change_neither_names_nor_what_a_restore_takes_back(
    s3: S3Server, bucket: str
) -> None:
    """The name says the first checkpoint that the file may belong to; it belonged to a later one."""
    first = start(bucket)
    first.take({"n": 1})
    kept = first.checkpoint(1)
    first.complete(1)
    first.take({"n": 2})
    first.checkpoint(2)  # is given up
    first.take({"n": 3})
    first.checkpoint(5)
    first.complete(5)
    assert numbers(bucket) == [1, 2, 3]
    start(bucket, kept, attempt=1)
    assert numbers(bucket) == [1]


def test_an_upload_that_somebody_has_aborted_is_named(s3: S3Server, bucket: str) -> None:
    running = start(bucket)
    running.take({"n": 1})
    snapshot = running.checkpoint(1)
    for upload in s3.fs.call_s3("list_multipart_uploads", Bucket=bucket)["Uploads"]:
        s3.fs.call_s3("abort_multipart_upload", Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
    with pytest.raises(LostTransaction, match=r"neither the upload .* nor the object part-.*lifecycle rule"):
        start(bucket, snapshot, attempt=1)


def test_another_jobs_uploads_in_the_same_folder_are_left_alone(s3: S3Server, bucket: str) -> None:
    other = start(bucket, shared=True, job="job-b")
    other.take({"n": 7})
    other.checkpoint(1)
    start(bucket, shared=True, attempt=3).operator.close()
    other.complete(1)
    assert numbers(bucket) == [7]


def test_a_bucket_that_is_missing_is_refused_at_submit(s3: S3Server) -> None:
    with pytest.raises(UnusableOutput, match="cannot write to s3://no-such-bucket/out"):
        FileSink("s3://no-such-bucket/out").check_at_submit(on_this_machine=True)


def test_files_that_come_in_a_bucket_are_read_when_they_are_there(s3: S3Server, bucket: str) -> None:
    source = WatchedFileSource(f"s3://{bucket}/in/*.csv", "csv", schema=pa.schema([("n", pa.int64())]))
    assert source.settle_ms == 0
    clock = ManualClock()
    source.context = make_context(clock=clock)
    source.open()
    assert source.poll() is None, "there is no such folder yet"
    for number in (1, 2):
        s3.fs.pipe_file(f"{bucket}/in/{number}.csv", f"n\n{number}\n".encode())
        clock.ms += source.watch_ms
        polled = source.poll()
        assert isinstance(polled, FromSplit)
        assert polled.split == f"{bucket}/in/{number}.csv"
        assert source.poll() is None


@pytest.fixture
def faulty(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyS3]:
    from s3fs import S3FileSystem

    proxy = FaultyS3(s3)
    monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
    S3FileSystem.clear_instance_cache()
    yield proxy
    proxy.close()


@pytest.mark.parametrize(
    ("request_kind", "fault"),
    [
        pytest.param(kind, fault, marks=() if (kind, fault) in _QUICK else pytest.mark.slow)
        for kind in ("?uploads", "partNumber", "complete")
        for fault in ("500", "cut", "lost")
    ],
)
def test_a_request_that_fails_once_does_no_harm(
    s3: S3Server, bucket: str, faulty: FaultyS3, fault: str, request_kind: str
) -> None:
    def once(line: str) -> str | None:
        is_meant = {
            "?uploads": line.startswith("POST") and "?uploads" in line,
            "partNumber": "partNumber" in line,
            "complete": line.startswith("POST") and "uploadId" in line,
        }[request_kind]
        return fault if is_meant and not faulty.done else None

    faulty.fault = once
    running = start(bucket)
    for number in (1, 2):
        running.take({"n": number})
        running.checkpoint(number)
        running.complete(number)
    snapshot = running.checkpoint(3)
    running.operator.close()
    start(bucket, snapshot, attempt=1).operator.close()
    assert [kind for _, kind in faulty.done] == [fault]
    assert numbers(bucket) == [1, 2]
    assert s3.uploads(bucket) == []
