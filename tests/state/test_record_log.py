"""RecordLog: what was appended is read back, on the local disk, on one with folders, and on an object store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from uuid import uuid4

import pytest

from understudy.runtime.simulation.world.disk import SimulatedDisk
from understudy.runtime.simulation.world.file_system import using
from understudy.state import CorruptState, DurableFiles, record_log
from understudy.state.record_log import RecordLog

Open = Callable[[], RecordLog]


@pytest.fixture
def disk() -> Iterator[SimulatedDisk]:
    with using(SimulatedDisk()) as disk:
        yield disk


@pytest.fixture(params=["local", "simulated", "memory"])
def log(request: pytest.FixtureRequest, tmp_path: Path, disk: SimulatedDisk) -> RecordLog:
    urls = {"local": str(tmp_path), "simulated": "sim://logs", "memory": f"memory://{uuid4().hex}"}
    files, root = DurableFiles.at(urls[request.param])
    return RecordLog(files, f"{root}/folder")


def read_all(log: RecordLog) -> list[bytes]:
    return [payload for segment in log.segments() for payload in log.read(segment)[0]]


def test_what_was_appended_is_read_in_its_order(log: RecordLog) -> None:
    assert log.segments() == []
    writer = log.writer("00000001-a")
    writer.append([b"one", b"two"])
    writer.append([b"three"])
    place = writer.segment, writer.length
    writer.append([b"four"])
    writer.roll()
    writer.append([b"five"])
    writer.close()
    assert read_all(log) == [b"one", b"two", b"three", b"four", b"five"]
    later = log.read(*place)[0] + [p for each in log.segments() if each > place[0] for p in log.read(each)[0]]
    assert later == [b"four", b"five"]


def test_segments_of_a_later_writer_come_later_and_can_be_removed(log: RecordLog) -> None:
    for name in ("00000001-a", "00000002-b"):
        writer = log.writer(name)
        writer.append([name.encode()])
        writer.close()
    first, second = log.segments()
    log.remove([first, "missing"])
    assert log.segments() == [second]
    assert log.read(first) == ([], 0)


def test_what_was_appended_survives_a_power_cut_and_what_is_torn_is_the_end(disk: SimulatedDisk) -> None:
    files, root = DurableFiles.at("sim://logs")
    log = RecordLog(files, f"{root}/folder")
    for seed in range(20):
        writer = log.writer(f"{seed:08d}")
        writer.append([b"lasts"])
        open_file = writer._open
        assert open_file is not None
        open_file._file.write(b"\0\0\0\x08torn")  # type: ignore[attr-defined]
        open_file._file.flush()  # type: ignore[attr-defined]
        disk.crash(Random(seed))
        assert log.read(writer.segment)[0] == [b"lasts"]


def test_a_damaged_entry_with_others_behind_it_is_no_end(tmp_path: Path) -> None:
    files, root = DurableFiles.at(str(tmp_path))
    log = RecordLog(files, root)
    writer = log.writer("a")
    writer.append([b"first"])
    writer.append([b"second"])
    writer.close()
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes().replace(b"first", b"fault"))
    with pytest.raises(CorruptState, match="a whole entry at byte 0"):
        log.read(path.name)


def test_after_a_failure_nothing_is_appended_to_the_same_segment(tmp_path: Path) -> None:
    files, root = DurableFiles.at(str(tmp_path))
    log = RecordLog(files, root)
    writer = log.writer("a")
    writer.append([b"before"])

    def fail(_: int) -> None:
        raise OSError("the disk is tired")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_log, "_sync_data", fail)
        with pytest.raises(OSError, match="tired"):
            writer.append([b"perhaps"])
    writer.append([b"again"])
    writer.close()
    first, second = log.segments()
    assert log.read(first)[0][:1] == [b"before"]
    assert log.read(second)[0] == [b"again"]


def test_a_segment_that_was_made_ahead_is_the_next_or_none(tmp_path: Path) -> None:
    files, root = DurableFiles.at(str(tmp_path))
    log = RecordLog(files, root)
    writer = log.writer("a")
    assert writer.wants_spare
    make = writer.spare_work()
    assert not writer.wants_spare
    writer.append([b"one"])  # it could not wait
    writer.keep_spare(make())
    assert not writer.wants_spare, "the one in use is hardly begun"
    writer.roll()
    writer.keep_spare(writer.spare_work()())
    writer.append([b"two"])
    writer.close()
    assert [log.read(each)[0] for each in log.segments()] == [[b"one"], [b"two"]]
