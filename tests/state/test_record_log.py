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
    return RecordLog(files, f"{root}/folder", root)


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


def test_each_segment_begins_with_the_head(log: RecordLog) -> None:
    writer = log.writer("a", head=[b"head", b""])
    writer.append([b"one"])
    place = writer.segment, writer.length
    writer.append([b"two"])
    writer.roll()
    writer.append([b"three"])
    writer.close()
    found = [payload for segment in log.segments() for payload in log.read(segment)[0]]
    assert [each for each in found if each not in (b"head", b"")] == [b"one", b"two", b"three"]
    assert all(log.read(segment)[0][:2] == [b"head", b""] for segment in log.segments())
    assert all(b"head" not in log.read(segment, place[1])[0] for segment in log.segments() if segment == place[0])


def test_what_was_appended_survives_a_power_cut_and_what_is_torn_is_the_end(disk: SimulatedDisk) -> None:
    files, root = DurableFiles.at("sim://logs")
    log = RecordLog(files, f"{root}/folder", root)
    for seed in range(20):
        writer = log.writer(f"{seed:08d}")
        writer.append([b"lasts"])
        open_file = writer._open
        assert open_file is not None
        open_file._file.write(b"\0\0\0\x08torn")  # type: ignore[attr-defined]
        open_file._file.flush()  # type: ignore[attr-defined]
        disk.crash(Random(seed))
        assert log.read(writer.segment)[0] == [b"lasts"]


SEEDS = range(10)
"""Of what a power cut leaves: what does not last may be there or not."""


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_read_survives_a_power_cut_though_its_writer_stood_still_before_it_synced(
    disk: SimulatedDisk, seed: int
) -> None:
    files, root = DurableFiles.at("sim://logs")
    log = RecordLog(files, f"{root}/deep/folder", root)
    frozen, later = log.writer("00000001-a"), log.writer("00000002-b")
    frozen.append([b"lasts"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "sync", lambda file: file.flush())
        frozen.append([b"perhaps"])
    assert read_all(log) == [b"lasts", b"perhaps"]
    later.append([b"built on it"])
    disk.crash(Random(seed))
    assert read_all(log) == [b"lasts", b"perhaps", b"built on it"]


@pytest.mark.parametrize("seed", SEEDS)
def test_an_append_survives_a_power_cut_though_the_maker_of_its_folder_stood_still(
    disk: SimulatedDisk, seed: int
) -> None:
    files, root = DurableFiles.at("sim://logs")
    files.make_folder(root)
    disk.mkdir("/logs/deep")
    disk.mkdir("/logs/deep/folder")
    log = RecordLog(files, f"{root}/deep/folder", root)
    log.writer("a").append([b"lasts"])
    disk.crash(Random(seed))
    assert read_all(log) == [b"lasts"]


FRAME = 20 + 4 + 100


def ten_appends(folder: Path) -> tuple[RecordLog, Path]:
    files, root = DurableFiles.at(str(folder))
    log = RecordLog(files, root, root)
    writer = log.writer("a")
    for index in range(10):
        writer.append([f"record {index}".encode().ljust(100)])
    writer.close()
    (path,) = folder.iterdir()
    return log, path


def overwrite(path: Path, at: int, data: bytes) -> None:
    found = path.read_bytes()
    path.write_bytes(found[:at] + data + found[at + len(data) :])


@pytest.mark.parametrize(
    ("first", "at", "data"),
    [
        (3, 0, b"?"),
        (3, 12, b"\x01"),
        (3, 15, b"\x07"),
        (3, 50, b"?"),
        (3, 20, bytes(512)),
        (3, 50, b"?" * FRAME),
        (8, 50, b"?"),
        (0, 0, bytes(8 * FRAME)),
    ],
    ids=[
        "mark",
        "a length too great",
        "a length",
        "payload",
        "512 zeros",
        "two",
        "the last but one",
        "the first eight",
    ],
)
def test_a_damaged_append_with_others_behind_it_is_no_end(tmp_path: Path, first: int, at: int, data: bytes) -> None:
    log, path = ten_appends(tmp_path)
    overwrite(path, first * FRAME + at, data)
    with pytest.raises(CorruptState, match=f"a whole entry at byte {first * FRAME}"):
        log.read(path.name)
    with pytest.raises(CorruptState, match=f"a whole entry at byte {first * FRAME}"):
        log.read(path.name, first * FRAME)
    assert log.read(path.name, 9 * FRAME)[1] == 10 * FRAME, "what is damaged before it is not looked at"


@pytest.mark.parametrize("url", ["", "memory://"])
@pytest.mark.parametrize("size", [1, 100, 2000])
def test_a_flipped_bit_of_the_last_append_is_no_end(tmp_path: Path, size: int, url: str) -> None:
    """A crash leaves out whole sectors of it and changes no single byte."""
    files, root = DurableFiles.at(f"{url}{uuid4().hex}" if url else str(tmp_path))
    log = RecordLog(files, root, root)
    random = Random(size)
    for index in range(40):
        writer = log.writer(f"{index:04d}")
        for _ in range(index % 3 if not url else 0):
            writer.append([b"lasts"])
        begin = writer.length
        writer.append([random.randbytes(size)])
        writer.close()
        path = f"{root}/{writer.segment}"
        found = bytearray(files.read(path))
        at = begin + index if index < 20 else random.randrange(begin, writer.length)
        found[at] ^= 1 << random.randrange(8)
        files.remove(path)
        files.write(path, [bytes(found)])
        with pytest.raises(CorruptState, match=f"a whole entry at byte {0 if url else begin}"):
            log.read(writer.segment)


def test_a_writer_that_goes_on_while_the_log_is_read_damages_nothing(tmp_path: Path) -> None:
    """Reading is not atomic: what comes later in the file may be newer than what comes first."""
    log, path = ten_appends(tmp_path)
    whole = path.read_bytes()
    views = [whole[: 8 * FRAME] + bytes(FRAME) + whole[9 * FRAME :], whole]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log._files.fs, "cat_file", lambda *_, **__: views.pop(0))
        assert log.read(path.name)[1] == 10 * FRAME
    assert not views


def test_whatever_a_crash_leaves_of_the_last_append_is_the_end(tmp_path: Path) -> None:
    """Sectors of it, in no order: also whole entries of it, behind one that is not, and bytes of another log."""
    files, root = DurableFiles.at(str(tmp_path))
    log = RecordLog(files, root, root)
    writer = log.writer("a")
    writer.append([b"lasts"])
    begin = writer.length
    other = log.writer("b")
    other.append([b"of another log"])
    other.close()
    copied = (tmp_path / other.segment).read_bytes()[: other.length]
    writer.append([b"x" * 5000, copied, b"y" * 5000, copied])
    writer.close()
    path = tmp_path / writer.segment
    whole = path.read_bytes()
    sectors = [range(max(at, begin), min(at + 512, writer.length)) for at in range(0, writer.length, 512)]
    for seed in range(50):
        random = Random(seed)
        found = bytearray(whole)
        for sector in random.sample(sectors, random.randint(1, len(sectors))):
            found[sector.start : sector.stop] = bytes(len(sector))
        path.write_bytes(found)
        assert log.read(path.name) == ([b"lasts"], begin)


def test_after_a_failure_nothing_is_appended_to_the_same_segment(tmp_path: Path) -> None:
    files, root = DurableFiles.at(str(tmp_path))
    log = RecordLog(files, root, root)
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
    log = RecordLog(files, root, root)
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


def test_a_folder_that_was_removed_meanwhile_is_made_again(disk: SimulatedDisk) -> None:
    files, root = DurableFiles.at("sim://logs")
    log = RecordLog(files, f"{root}/folder", root)
    writer = log.writer("a")
    writer.append([b"one"])
    writer.roll()
    log.remove(log.segments())
    files.remove_empty_folder(f"{root}/folder")
    writer.append([b"two"])
    assert read_all(log) == [b"two"]
