"""SimulatedDisk: what was synced survives a crash, the rest may be lost, and nothing appears that was not written."""

from __future__ import annotations

import errno
from collections import Counter
from copy import deepcopy
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.runtime.simulation.world.disk import DiskOperation, OpenFile, SimulatedDisk, TornWrite


class Killed(BaseException):
    pass


class Script:
    """A hook that notes the operations, and raises what it was told to raise at the operation with that number."""

    def __init__(self, **faults: BaseException) -> None:
        self.seen: list[DiskOperation] = []
        self.faults = faults

    def before(self, operation: DiskOperation) -> None:
        self.seen.append(operation)
        if error := self.faults.get(operation.kind):
            raise error


def put(disk: SimulatedDisk, path: str, data: bytes, *, sync: bool = False) -> OpenFile:
    file = disk.open(path)
    file.write(data)
    if sync:
        file.sync()
    return file


def content(disk: SimulatedDisk) -> dict[str, bytes]:
    return {path: disk.read(path) for path, _ in disk.files()}


def after_crashes(disk_of: object, seeds: int = 40) -> list[dict[str, bytes]]:
    """What is left after a crash, in many different worlds."""
    left = []
    for seed in range(seeds):
        disk = disk_of()  # type: ignore[operator]
        disk.crash(Random(seed))
        left.append(content(disk))
    return left


# -- without faults


def test_files_and_folders() -> None:
    disk = SimulatedDisk(now=lambda: 7.5)
    disk.mkdir("/a")
    put(disk, "/a/x", b"one").write(b"two")
    disk.open("/a/x", append=True).write(b"!")
    assert disk.read("/a/x") == b"onetwo!"
    assert disk.read("/a/x", 3, 6) == b"two"
    assert disk.stat("/a/x") == (7, 7.5)
    assert disk.stat("/a") is None
    disk.rename("/a/x", "/y")
    put(disk, "/a/b", b"")
    assert (disk.list("/"), disk.list("/a"), dict(disk.files())) == (["a", "y"], ["b"], {"/a/b": 0, "/y": 7})
    put(disk, "/y", b"less")
    assert disk.used_bytes == 4
    disk.remove("/y")
    disk.remove("/a/b")
    disk.rmdir("/a")
    assert (disk.list("/"), disk.used_bytes) == ([], 0)


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda disk: disk.read("/none"), FileNotFoundError),
        (lambda disk: disk.read("/none/x"), FileNotFoundError),
        (lambda disk: disk.read("/f/x"), NotADirectoryError),
        (lambda disk: disk.read("/d"), IsADirectoryError),
        (lambda disk: disk.open("/none/x"), FileNotFoundError),
        (lambda disk: disk.open("/d"), IsADirectoryError),
        (lambda disk: disk.open("/"), OSError),
        (lambda disk: disk.remove("/none"), FileNotFoundError),
        (lambda disk: disk.remove("/d"), IsADirectoryError),
        (lambda disk: disk.mkdir("/d"), FileExistsError),
        (lambda disk: disk.mkdir("/none/d"), FileNotFoundError),
        (lambda disk: disk.rmdir("/full"), OSError),
        (lambda disk: disk.rmdir("/f"), NotADirectoryError),
        (lambda disk: disk.list("/f"), NotADirectoryError),
        (lambda disk: disk.stat("/none"), FileNotFoundError),
        (lambda disk: disk.rename("/none", "/x"), FileNotFoundError),
        (lambda disk: disk.rename("/f", "/d"), IsADirectoryError),
        (lambda disk: disk.rename("/d", "/f"), NotADirectoryError),
        (lambda disk: disk.rename("/full", "/full/x"), OSError),
        (lambda disk: disk.sync_directory("/none"), FileNotFoundError),
    ],
)
def test_errors_are_those_of_an_operating_system(act: object, error: type[OSError]) -> None:
    disk = SimulatedDisk()
    for folder in ("/d", "/full"):
        disk.mkdir(folder)
    put(disk, "/f", b"f")
    put(disk, "/full/g", b"g")
    with pytest.raises(error):
        act(disk)  # type: ignore[operator]
    assert content(disk) == {"/f": b"f", "/full/g": b"g"}


def test_a_removed_file_may_still_be_written_to() -> None:
    disk = SimulatedDisk(capacity_bytes=10)
    file = put(disk, "/x", b"12345")
    disk.remove("/x")
    file.write(b"6789")
    assert (disk.used_bytes, list(disk.files())) == (0, [])


# -- hooks


def test_the_hook_is_asked_before_each_operation() -> None:
    script = Script()
    disk = SimulatedDisk(hooks=script)
    disk.mkdir("/a")
    put(disk, "/a/x", b"four", sync=True)
    disk.sync_directory("/a")
    disk.rename("/a/x", "/y")
    disk.read("/y")
    disk.stat("/y")
    disk.list("/")
    disk.remove("/y")
    disk.rmdir("/a")
    kinds = "mkdir open write sync sync_directory rename read stat list remove rmdir"
    assert [operation.kind for operation in script.seen] == kinds.split()
    assert script.seen[2] == DiskOperation("write", "/a/x", 4)
    assert script.seen[5] == DiskOperation("rename", "/a/x", 0, "/y")


@pytest.mark.parametrize("error", [OSError(errno.EIO, "broken"), Killed()], ids=["failure", "death"])
def test_a_refused_operation_has_done_nothing(error: BaseException) -> None:
    script = Script()
    disk = SimulatedDisk(hooks=script)
    disk.mkdir("/a")
    file = put(disk, "/x", b"data")
    script.faults = dict.fromkeys(["open", "write", "rename", "remove", "mkdir", "rmdir"], error)
    for act in (
        lambda: disk.open("/y"),
        lambda: disk.open("/x"),
        lambda: file.write(b"more"),
        lambda: disk.rename("/x", "/y"),
        lambda: disk.remove("/x"),
        lambda: disk.mkdir("/b"),
        lambda: disk.rmdir("/a"),
    ):
        with pytest.raises(type(error)):
            act()
    assert (disk.list("/"), disk.read("/x"), disk.used_bytes) == (["a", "x"], b"data", 4)


def test_a_torn_write_leaves_its_beginning() -> None:
    script = Script(write=TornWrite(2, OSError(errno.EIO, "torn")))
    disk = SimulatedDisk(hooks=script)
    with pytest.raises(OSError, match="torn"):
        put(disk, "/x", b"data")
    assert (disk.read("/x"), disk.used_bytes) == (b"da", 2)
    script.faults = {"write": TornWrite(99, Killed())}
    with pytest.raises(Killed):
        put(disk, "/y", b"data")
    assert disk.read("/y") == b"data"


def test_a_full_disk_takes_what_fits() -> None:
    disk = SimulatedDisk(capacity_bytes=6)
    file = put(disk, "/x", b"1234")
    with pytest.raises(OSError, match="No space left") as raised:
        put(disk, "/y", b"5678")
    assert raised.value.errno == errno.ENOSPC
    assert content(disk) == {"/x": b"1234", "/y": b"56"}
    disk.remove("/y")
    file.write(b"56")
    assert disk.read("/x") == b"123456"
    put(disk, "/x", b"abcdef")


def test_a_disk_that_shrinks_below_what_it_holds_takes_nothing() -> None:
    disk = SimulatedDisk()
    file = put(disk, "/x", b"1234")
    disk.capacity_bytes = 2
    with pytest.raises(OSError, match="No space left"):
        file.write(b"5")
    assert disk.read("/x") == b"1234"


# -- rot and loss


def test_rotten_and_lost_files_stay_so() -> None:
    disk = SimulatedDisk()
    for name in ("/x", "/y", "/z"):
        put(disk, name, b"content", sync=True)
    disk.sync_directory("/")
    disk.rot("/x", 3)
    disk.lose("/y")
    for _ in range(2):
        assert content(disk) == {"/x": b"con", "/z": b"content"}
        assert disk.used_bytes == 10
        disk.crash(Random(1))
    put(disk, "/y", b"again")


# -- crashes


def test_only_what_is_synced_survives_for_sure() -> None:
    def disk_of() -> SimulatedDisk:
        disk = SimulatedDisk()
        put(disk, "/both", b"both", sync=True)
        put(disk, "/content", b"text")
        disk.sync_directory("/")
        put(disk, "/name", b"name", sync=True)
        return disk

    left = after_crashes(disk_of)
    assert all(each["/both"] == b"both" for each in left)
    assert {each["/content"] for each in left} == {b"", b"t", b"te", b"tex", b"text"}
    assert {each.get("/name") for each in left} == {None, b"name"}


def test_a_rename_survives_as_a_whole_or_not_at_all() -> None:
    def disk_of() -> SimulatedDisk:
        disk = SimulatedDisk()
        disk.mkdir("/hidden")
        put(disk, "/hidden/x", b"new", sync=True)
        put(disk, "/x", b"old", sync=True)
        disk.sync_directory("/hidden")
        disk.sync_directory("/")
        disk.rename("/hidden/x", "/x")
        return disk

    left = after_crashes(disk_of)
    before, after = {"/hidden/x": b"new", "/x": b"old"}, {"/x": b"new"}
    assert all(each in (before, after) for each in left)
    assert before in left
    assert after in left


@pytest.mark.parametrize("synced", ["/hidden", "/"])
def test_syncing_either_folder_of_a_rename_is_enough(synced: str) -> None:
    def disk_of() -> SimulatedDisk:
        disk = SimulatedDisk()
        disk.mkdir("/hidden")
        disk.sync_directory("/")
        put(disk, "/hidden/x", b"data", sync=True)
        disk.rename("/hidden/x", "/y")
        disk.sync_directory(synced)
        return disk

    assert all(each == {"/y": b"data"} for each in after_crashes(disk_of))


def test_a_folder_that_lasts_removed_takes_nothing_with_it() -> None:
    def disk_of() -> SimulatedDisk:
        disk = SimulatedDisk()
        for folder in ("/a", "/b"):
            disk.mkdir(folder)
        put(disk, "/a/x", b"data", sync=True)
        disk.sync_directory("/a")
        disk.rename("/a/x", "/b/x")
        disk.rmdir("/a")
        disk.sync_directory("/")
        return disk

    assert all(each == {"/b/x": b"data"} for each in after_crashes(disk_of))


def test_emptying_a_file_lasts_when_it_is_synced() -> None:
    def disk_of() -> SimulatedDisk:
        disk = SimulatedDisk()
        put(disk, "/x", b"old", sync=True)
        disk.sync_directory("/")
        put(disk, "/x", b"new")
        return disk

    assert {each["/x"] for each in after_crashes(disk_of)} == {b"old", b"", b"n", b"ne", b"new"}


def test_a_folder_is_lost_with_all_that_is_in_it() -> None:
    def disk_of() -> SimulatedDisk:
        disk = SimulatedDisk()
        disk.mkdir("/a")
        put(disk, "/a/x", b"data", sync=True)
        disk.sync_directory("/a")
        return disk

    assert {each.get("/a/x") for each in after_crashes(disk_of)} == {None, b"data"}


def test_a_file_that_was_open_writes_to_nowhere_after_a_crash() -> None:
    disk = SimulatedDisk(capacity_bytes=100)
    file = put(disk, "/x", b"data", sync=True)
    disk.sync_directory("/")
    disk.crash(Random(0))
    file.write(b"more")
    assert (disk.read("/x"), disk.used_bytes) == (b"data", 4)


def test_folders_that_are_no_more_are_forgotten() -> None:
    disk = SimulatedDisk()
    for number in range(100):
        disk.mkdir(f"/{number}")
        put(disk, f"/{number}/x", b"x")
        disk.remove(f"/{number}/x")
        disk.rmdir(f"/{number}")
    disk.sync_directory("/")
    assert not disk._changed


# -- any history

FOLDERS = ("/", "/a", "/b")
PATHS = ("/x", "/y", "/a/x", "/b/x")

acts = st.one_of(
    st.tuples(st.just("keep"), st.sampled_from(PATHS), st.integers(1, 4)),
    st.tuples(st.just("write"), st.sampled_from(PATHS), st.integers(1, 4)),
    st.tuples(st.just("append"), st.sampled_from(PATHS), st.integers(1, 4)),
    st.tuples(st.just("sync"), st.sampled_from(PATHS)),
    st.tuples(st.just("rename"), st.sampled_from(PATHS), st.sampled_from(PATHS)),
    st.tuples(st.just("remove"), st.sampled_from(PATHS)),
    st.tuples(st.just("sync_directory"), st.sampled_from(FOLDERS)),
)


class Written:
    """One file of the model, whatever its name. Each of its versions begins with a byte that no other one has."""

    def __init__(self) -> None:
        self.versions: list[bytes] = []
        self.names: set[str] = set()
        self.is_synced = False
        self.is_kept = False
        """It must be there after a crash: it was synced under a name that lasts, and nobody has removed it since."""


class History:
    """Does things to a disk, and remembers what must be true of it after a crash."""

    def __init__(self) -> None:
        self.disk = SimulatedDisk()
        for folder in FOLDERS[1:]:
            self.disk.mkdir(folder)
        self.disk.sync_directory("/")
        self.live: dict[str, Written] = {}
        self.settled: dict[str, Written | None] = dict.fromkeys(PATHS)
        """What must lie under a name: those names that were not touched since their folder was synced."""
        self.all: list[Written] = []
        self._first = iter(range(256))

    def do(self, kind: str, path: str, *rest: object) -> None:
        if kind == "keep":
            self.do("write", path, *rest)
            self.do("sync", path)
            self.do("sync_directory", path.rpartition("/")[0] or "/")
        elif kind in ("write", "append"):
            self._write(path, int(str(rest[0])), append=kind == "append")
        elif kind == "sync_directory":
            self.disk.sync_directory(path)
            for each in PATHS:
                if each.rpartition("/")[0] == path.rstrip("/"):
                    self.settled[each] = self.live.get(each)
        elif path in self.live:
            {"sync": self._sync, "rename": self._rename, "remove": self._remove}[kind](path, *map(str, rest))
        self._note_kept()

    def _write(self, path: str, size: int, append: bool) -> None:
        file = self.disk.open(path, append=append)
        if path not in self.live:
            self.settled.pop(path, None)
            self.live[path] = Written()
            self.all.append(self.live[path])
        written = self.live[path]
        before = written.versions[-1] if append and written.versions else b""
        if not append:
            written.is_kept = False
        data = bytes([next(self._first)]) * size
        file.write(data)
        written.versions.append(before + data)
        written.names.add(path)
        written.is_synced = False

    def _sync(self, path: str) -> None:
        self.disk.open(path, append=True).sync()
        self.live[path].is_synced = True
        self.live[path].versions = self.live[path].versions[-1:]

    def _rename(self, path: str, target: str) -> None:
        self.disk.rename(path, target)
        if path == target:
            return
        if target in self.live:
            self.live[target].is_kept = False
        self.live[target] = self.live.pop(path)
        self.live[target].names.add(target)
        for each in (path, target):
            self.settled.pop(each, None)

    def _remove(self, path: str) -> None:
        self.disk.remove(path)
        self.live.pop(path).is_kept = False
        self.settled.pop(path, None)

    def _note_kept(self) -> None:
        for path, written in self.settled.items():
            if written is not None and written.is_synced and self.live.get(path) is written:
                written.is_kept = True

    def crash(self, seed: int) -> None:
        self.disk.crash(Random(seed))
        left = content(self.disk)
        for path, written in self.settled.items():
            if written is None:
                assert path not in left
            else:
                self._check_content(left[path], written)
        seen: Counter[int] = Counter()
        for path, data in left.items():
            owners = [each for each in self.all if path in each.names and self._may_hold(each, data)]
            assert owners, f"{path} holds {data!r}, which nobody wrote there"
            seen.update({id(owners[0]): 1} if data else {})
        assert max(seen.values(), default=0) <= 1, "a file is there under two names"
        assert all(seen[id(each)] == 1 for each in self.all if each.is_kept), "a file is lost"

    def _check_content(self, data: bytes, written: Written) -> None:
        assert self._may_hold(written, data)
        if written.is_synced:
            assert data == written.versions[-1]

    def _may_hold(self, written: Written, data: bytes) -> bool:
        return any(version.startswith(data) for version in written.versions)


@given(st.lists(acts, max_size=25))
def test_a_crash_takes_only_what_was_not_synced(what: list[tuple[str, ...]]) -> None:
    history = History()
    for act in what:
        history.do(*act)
    for seed in range(10):
        deepcopy(history).crash(seed)


@given(st.lists(acts, max_size=15), st.integers(0, 2**32))
def test_the_same_seed_leaves_the_same(what: list[tuple[str, ...]], seed: int) -> None:
    left = []
    for _ in range(2):
        history = History()
        for act in what:
            history.do(*act)
        history.disk.crash(Random(seed))
        left.append(content(history.disk))
        first = dict(history.disk.files())
        history.disk.crash(Random(seed))
        assert dict(history.disk.files()) == first, "a second crash takes nothing more"
        assert history.disk.used_bytes == sum(first.values())
    assert left[0] == left[1]
