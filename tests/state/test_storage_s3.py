"""CheckpointStorage in S3 behind a bad network: never a wrong read, errors that name object and cause, no litter."""

from __future__ import annotations

import pytest

from understudy.messages import CheckpointId, ExecutionAttemptId, JobId, StateHandle, SubtaskIndex, VertexId
from understudy.state import CorruptState, MissingState, RequestFailed, SnapshotTarget, UnwritableRoot, store_requests
from understudy.state.errors import InvalidStorageSetting
from understudy.state.storage import CheckpointStorage

from ..systems.faulty_s3 import FaultyS3, faulty
from ..systems.s3 import S3Server, s3, s3_server

__all__ = ["faulty", "s3", "s3_server"]

DATA = bytes(range(256)) * 40


@pytest.fixture
def bucket(s3: S3Server) -> str:
    return s3.bucket()


@pytest.fixture
def storage(faulty: FaultyS3, bucket: str) -> CheckpointStorage:
    return CheckpointStorage(f"s3://{bucket}/checkpoints")


def target(storage: CheckpointStorage) -> SnapshotTarget:
    job, vertex, attempt = JobId("job"), VertexId("v"), ExecutionAttemptId("attempt")
    return SnapshotTarget(storage, job, CheckpointId(1), vertex, SubtaskIndex(0), attempt)


@pytest.mark.parametrize("fault", ["500", "cut", "half", "lost"])
def test_a_write_that_fails_once_is_done_again(
    s3: S3Server, storage: CheckpointStorage, faulty: FaultyS3, fault: str
) -> None:
    faulty.times(1, fault, "PUT")
    handle = storage.write("job/a", DATA)
    assert [kind for _, kind in faulty.done] == [fault]
    assert storage.read(handle) == DATA
    assert storage.list_files() == ["job/a"], "under its own name, and no other"


@pytest.mark.parametrize("fault", ["500", "cut", "short", "forged", "404"])
def test_a_read_that_fails_once_is_done_again_and_never_wrong(
    storage: CheckpointStorage, faulty: FaultyS3, fault: str
) -> None:
    handle = storage.write("job/a", DATA)
    faulty.times(1, fault, "GET", "job/a")
    assert storage.read(handle) == DATA
    assert [kind for _, kind in faulty.done] == [fault]


@pytest.mark.drawn
@pytest.mark.parametrize(("fault", "error"), [("500", RequestFailed), ("short", RequestFailed), ("404", MissingState)])
def test_a_read_that_always_fails_names_the_object(
    storage: CheckpointStorage, faulty: FaultyS3, fault: str, error: type[Exception]
) -> None:
    handle = storage.write("job/a", DATA)
    faulty.always(fault, "GET", "job/a")
    with pytest.raises(error, match="job/a"):
        storage.read(handle)


def test_a_read_that_is_always_cut_short_and_forged_is_no_read(storage: CheckpointStorage, faulty: FaultyS3) -> None:
    handle = storage.write("job/a", DATA)
    faulty.always("forged", "GET", "job/a")
    with pytest.raises((CorruptState, RequestFailed), match="job/a"):
        storage.read(handle)


@pytest.mark.drawn
@pytest.mark.parametrize("fault", ["500", "cut", "lost"])
def test_a_snapshot_that_cannot_be_written_says_which_object_and_why_and_leaves_nothing(
    s3: S3Server, bucket: str, storage: CheckpointStorage, faulty: FaultyS3, fault: str
) -> None:
    own = target(storage)
    faulty.always(fault, "PUT")
    with pytest.raises(
        RequestFailed, match=rf"s3://{bucket}/checkpoints/job/chk-1/v-0-attempt: .*write.* in 3 tries: \w"
    ):
        own.write(own.path, DATA)
    assert s3.keys(bucket) == []


def test_a_server_that_does_not_answer_is_waited_for_no_longer_than_the_limit(
    storage: CheckpointStorage, faulty: FaultyS3, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNDERSTUDY_STORAGE_TIMEOUT_MS", "200")
    monkeypatch.setenv("UNDERSTUDY_STORAGE_TRIES", "2")
    hasty = CheckpointStorage(f"s3://{bucket}/checkpoints")
    faulty.always("slow", "PUT")
    with pytest.raises(RequestFailed, match=r"in 2 tries: FSTimeoutError: no answer within the limit"):
        hasty.write("job/a", b"little")


def test_parts_of_a_large_object_that_failed_are_given_up(
    s3: S3Server, bucket: str, storage: CheckpointStorage, faulty: FaultyS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_requests, "PART_BYTES", 5 << 20)
    data = bytes(11 << 20)
    assert storage.read(storage.write("job/large", data)) == data
    faulty.always("500", "PUT", "partNumber=2")
    with pytest.raises(RequestFailed, match="job/other"):
        storage.write("job/other", data)
    assert s3.uploads(bucket) == []
    assert storage.list_files() == ["job/large"]


@pytest.mark.parametrize("fault", ["lost", "500", "cut"])
def test_who_creates_a_file_knows_that_it_has_though_the_answer_was_lost(
    storage: CheckpointStorage, faulty: FaultyS3, fault: str
) -> None:
    faulty.times(1, fault, "PUT")
    storage.create_sealed("names/a/1", b"mine")
    assert storage.read_sealed("names/a/1") == b"mine"
    for other in (b"another's", b"ours"):
        with pytest.raises(FileExistsError):
            storage.create_sealed("names/a/1", other)
        assert storage.read_sealed("names/a/1") == b"mine"


def test_a_sealed_file_that_cannot_be_replaced_stays_as_it_was(storage: CheckpointStorage, faulty: FaultyS3) -> None:
    storage.write_sealed("job/chk-1/_metadata", b"before")
    faulty.always("500", "PUT")
    with pytest.raises(RequestFailed):
        storage.write_sealed("job/chk-1/_metadata", b"after")
    faulty.fault = lambda _: None
    assert storage.read_sealed("job/chk-1/_metadata") == b"before"


def test_what_another_process_has_deleted_is_missing_whatever_this_one_remembers(
    s3: S3Server, bucket: str, storage: CheckpointStorage
) -> None:
    handle = storage.write("job/a", DATA)
    assert storage.list_files() == ["job/a"]
    s3.fs.rm_file(f"{bucket}/checkpoints/job/a")
    with pytest.raises(MissingState, match="job/a"):
        storage.check_there(handle)


def test_a_file_that_is_another_is_corrupt(s3: S3Server, bucket: str, storage: CheckpointStorage) -> None:
    handle: StateHandle = storage.write("job/a", DATA)
    s3.fs.pipe_file(f"{bucket}/checkpoints/job/a", DATA[:-1] + b"?")
    with pytest.raises(CorruptState, match=r"job/a.*CRC-32"):
        storage.read(handle)


def test_a_bucket_that_is_missing_is_named(s3: S3Server) -> None:
    with pytest.raises(UnwritableRoot, match=r"s3://no-such-bucket/x.*make the bucket of .*, or correct its name"):
        CheckpointStorage("s3://no-such-bucket/x").check()


def test_credentials_that_are_refused_are_named(faulty: FaultyS3, storage: CheckpointStorage) -> None:
    faulty.always("403", "PUT")
    with pytest.raises(UnwritableRoot, match=r"credentials .* AWS_ACCESS_KEY_ID") as caught:
        storage.check()
    assert len(faulty.done) == 1, "asking again would not help"
    assert isinstance(caught.value.__cause__, RequestFailed)


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gcsfs", None)
    with pytest.raises(UnwritableRoot, match=r"gs://bucket/x: .*gcsfs"):
        CheckpointStorage("gs://bucket/x")


@pytest.mark.parametrize("value", ["0", "-1", "many", "", "1.5"])
def test_a_setting_that_cannot_be_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("UNDERSTUDY_STORAGE_TRIES", value)
    with pytest.raises(InvalidStorageSetting, match=r"UNDERSTUDY_STORAGE_TRIES: wanted a whole number from 1"):
        CheckpointStorage("memory://x")


@pytest.mark.parametrize("fault", ["500", "cut", "lost"])
def test_the_folder_of_a_job_that_has_ended_is_removed_though_a_request_fails(
    storage: CheckpointStorage, faulty: FaultyS3, fault: str
) -> None:
    job_id = JobId("job-over")
    for number in range(3):
        storage.write(f"{job_id}/{number}", [b"state"])
    faulty.times(1, fault, "POST", "delete")
    storage.delete_job(job_id)
    assert faulty.done, "a request failed"
    assert storage.list_files(job_id) == []


def test_a_listing_that_fails_once_is_asked_again(storage: CheckpointStorage, faulty: FaultyS3) -> None:
    storage.write("job/a", [b"state"])
    for _ in range(2):
        faulty.times(1, "500", "GET", "list-type")
        assert storage.list_files("job") == ["job/a"]
    assert len(faulty.done) == 2


def test_what_cannot_be_looked_at_is_not_said_to_be_missing(storage: CheckpointStorage, faulty: FaultyS3) -> None:
    storage.write("job/a", [b"state"])
    faulty.times(1, "500", "HEAD")
    assert storage.exists("job/a")
    faulty.always("500", "HEAD")
    with pytest.raises(RequestFailed):
        storage.exists("job/a")
    faulty.fault = lambda _: None
    assert not storage.exists("job/b")
    assert not storage.exists("job")
