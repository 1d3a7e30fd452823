"""Storage that is away, or has lost or spoilt what a leader wrote: no second leader, and no record is lost."""

from __future__ import annotations

import errno
import shutil
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from understudy.messages import LeaderSessionId, encode
from understudy.runtime.high_availability.errors import AnotherCluster
from understudy.runtime.high_availability.storage_election import StorageElection
from understudy.runtime.high_availability.storage_epochs import EpochTerm, StorageEpochs
from understudy.state import CheckpointStorage
from understudy.state.errors import LostLeadership

from ..clusters.jobs import eventually
from .clusters import Candidates, config


def test_an_epoch_that_was_won_and_never_opened_hides_nothing(patient: Candidates) -> None:
    """Its leader died in between."""
    first = patient.win()
    first.write("job", b"kept")
    first.resign()
    epochs = StorageEpochs(patient.services.storage)
    newest = epochs.newest()
    assert newest is not None
    assert epochs.claim(newest.number + 1, replace(newest.term, is_over=True))
    assert dict(patient.win().read()) == {"job": b"kept"}


@pytest.mark.parametrize("is_alive", [True, False])
def test_a_term_file_that_is_cut_off_is_as_good_as_none(candidates: Candidates, is_alive: bool) -> None:
    leader = candidates.win()
    leader.write("job", b"kept")
    if not is_alive:
        leader.resign()
    Path(candidates.services.storage.location("epochs/00000001/term")).write_bytes(b"")
    if is_alive:
        leader.write("job", b"and changed")
        leader.resign()
    assert dict(candidates.win().read()) == {"job": b"and changed" if is_alive else b"kept"}


@pytest.mark.parametrize("is_alive", [True, False])
def test_without_its_term_file_the_newest_epoch_still_is_it_and_keeps_its_records(
    candidates: Candidates, is_alive: bool
) -> None:
    """Somebody has removed it: a leader that lives says it again, and who follows inherits what it has."""
    candidates.win().resign()
    leader = candidates.win()
    leader.write("job", b"kept")
    storage, epochs = candidates.services.storage, StorageEpochs(candidates.services.storage)
    if not is_alive:
        leader.resign()
    storage.delete("epochs/00000002/term")
    assert epochs.is_newest(2)
    if is_alive:
        leader.write("job", b"and changed")
        leader.publish("tcp://127.0.0.1:1")
        newest = epochs.newest()
        assert newest is not None
        assert (newest.number, newest.term.leader_session_id) == (2, leader.session)
        leader.resign()
    follower = candidates.win()
    assert follower.session.startswith("3-")
    assert dict(follower.read()) == {"job": b"and changed" if is_alive else b"kept"}


def opened_file(candidates: Candidates, number: int) -> Path:
    return Path(candidates.services.storage.location(f"epochs/{number:08d}/opened"))


@pytest.mark.parametrize("writes", [0, 1])
@pytest.mark.parametrize("is_followed_in_vain", [False, True])
def test_records_are_kept_though_somebody_has_removed_the_file_that_says_they_count(
    patient: Candidates, writes: int, is_followed_in_vain: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """As rules for old files do: the file is written once, and records again and again."""
    first = patient.win()
    first.write("job", b"kept")
    first.resign()
    second = patient.win()
    for _ in range(writes):
        second.write("job", b"kept")
    opened_file(patient, 2).unlink()
    second.resign()
    if is_followed_in_vain:
        assert StorageEpochs(patient.services.storage).claim(3, EpochTerm(LeaderSessionId("dies"), is_over=True))
    third = patient.win()
    assert dict(third.read()) == {"job": b"kept"}
    assert "epochs/00000002/opened has been removed, though the records of jobs beside it are there" in caplog.text
    third.write("job", b"newer")
    third.resign()
    assert dict(patient.win().read()) == {"job": b"newer"}


def test_what_a_leader_has_written_counts_though_the_file_that_says_so_and_not_the_folder_before_is_gone(
    patient: Candidates,
) -> None:
    """It died before it had removed the epoch before its own, which a rule for old files has not reached."""
    first = patient.win()
    first.write("job", b"kept")
    first.resign()
    before = opened_file(patient, 1).parent
    shutil.copytree(before, before.with_name("aside"))
    second = patient.win()
    second.write("job", b"newer")
    before.with_name("aside").rename(before)
    opened_file(patient, 2).unlink()
    second.resign()
    assert dict(patient.win().read()) == {"job": b"newer"}


def test_half_a_copy_of_records_is_not_taken_for_them(patient: Candidates) -> None:
    leader = patient.win()
    leader.write("a", b"1")
    leader.write("b", b"2")
    leader.resign()
    opened_file(patient, 1).unlink()
    epochs = StorageEpochs(patient.services.storage)
    assert epochs.claim(2, EpochTerm(LeaderSessionId("dies"), is_over=True))

    def dies(*_: Any) -> None:
        raise OSError("as if it died")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(epochs, "write", dies)
        with pytest.raises(OSError, match="as if it died"):
            epochs.inherit(2)
    epochs.write(2, "a", 1, b"1")
    assert dict(patient.win().read()) == {"a": b"1", "b": b"2"}


def test_a_late_write_of_a_leader_that_was_followed_brings_nothing_back(patient: Candidates) -> None:
    leader = patient.win()
    leader.write("job", b"kept")
    leader.resign()
    follower = patient.win()
    epochs = StorageEpochs(patient.services.storage)
    epochs.write(1, "job", 9, b"late")
    follower.resign()
    third = patient.win()
    assert dict(third.read()) == {"job": b"kept"}
    epochs.write(2, "job", 9, b"late")
    opened_file(patient, 3).unlink()
    third.resign()
    assert dict(patient.win().read()) == {"job": b"kept"}


def test_a_candidate_that_has_seen_the_cluster_waits_where_something_else_lies_in_its_place(
    patient: Candidates, caplog: pytest.LogCaptureFixture
) -> None:
    leader, withdraw = patient.win(), threading.Event()
    seen = threading.Event()
    election = patient.services.election()
    newest = election._epochs.newest  # type: ignore[attr-defined]

    def looked() -> Any:
        found = newest()
        seen.set()
        return found

    election._epochs.newest = looked  # type: ignore[method-assign, attr-defined]
    waiting = threading.Thread(target=lambda: election.campaign(withdraw))
    waiting.start()
    assert seen.wait(60)
    strange = Path(patient.services.storage.location("epochs/00000009/term"))
    strange.parent.mkdir()
    strange.write_text("x")
    eventually(lambda: "waits: " in caplog.text and "holds what Understudy has not written" in caplog.text)
    assert waiting.is_alive()
    strange.unlink()
    strange.parent.rmdir()
    withdraw.set()
    waiting.join(60)
    leader.resign()


def remove(folder: Path) -> None:
    """However fast others put back what is theirs."""
    while True:
        with suppress(OSError):
            shutil.rmtree(folder)
            return


def test_with_all_its_files_gone_a_leader_leads_on_and_no_second_one_begins(candidates: Candidates) -> None:
    leader, withdraw = candidates.win(), threading.Event()
    leader.write("job", b"kept")
    epochs = Path(candidates.services.storage.location("epochs"))
    looked, won = threading.Semaphore(0), list[object]()
    election = candidates.services.election()
    newest = election._epochs.newest  # type: ignore[attr-defined]

    def looking() -> Any:
        found = newest()
        looked.release()
        return found

    election._epochs.newest = looking  # type: ignore[method-assign, attr-defined]
    waiting = threading.Thread(target=lambda: won.append(election.campaign(withdraw)))
    waiting.start()
    assert looked.acquire(timeout=60)
    remove(epochs)
    eventually((epochs / "00000001" / "term").exists)
    leader.write("job", b"and changed")
    for _ in range(20):
        assert looked.acquire(timeout=60)
    assert leader.is_sure
    withdraw.set()
    waiting.join(60)
    assert won == [None]
    leader.resign()
    assert dict(candidates.win().read()) == {"job": b"and changed"}


def test_a_leader_whose_number_was_won_again_leads_no_more(patient: Candidates) -> None:
    """By a process that has never seen it, when all files were gone. A beat of the leader would take it back."""
    leader, lost = patient.win(), threading.Event()
    leader.on_lost(lambda _: lost.set())
    epochs = StorageEpochs(patient.services.storage)
    patient.services.storage.write_sealed("epochs/00000001/term", encode(EpochTerm(LeaderSessionId("other"))))
    assert not epochs.is_newest(1, leader.session)
    with pytest.raises(LostLeadership):
        leader.write("job", b"late")
    assert lost.wait(60)
    newest = epochs.newest()
    assert newest is not None
    assert newest.term.leader_session_id == "other"


@pytest.mark.parametrize("act", [lambda leader: leader.publish("tcp://late:1"), lambda leader: leader.resign()])
def test_nor_does_it_write_over_the_word_of_who_has_won(patient: Candidates, act: Callable[[Any], None]) -> None:
    """With its beat, or as it gives up: the other would take its number for lost, or over."""
    leader = patient.win()
    epochs = StorageEpochs(patient.services.storage)
    other = EpochTerm(LeaderSessionId("other"))
    patient.services.storage.write_sealed("epochs/00000001/term", encode(other))
    with suppress(LostLeadership):
        act(leader)
    newest = epochs.newest()
    assert newest is not None
    assert newest.term == other


class Away(CheckpointStorage):
    """Storage that does not answer for a while, or takes no file of this name."""

    is_away = False
    refuses = ""

    def list_files(self, directory: str = "") -> list[str]:
        if self.is_away:
            raise OSError("storage does not answer")
        return super().list_files(directory)

    def write_sealed(self, path: str, data: bytes) -> None:
        if self.refuses and path.endswith(self.refuses):
            raise OSError("no space left")
        super().write_sealed(path, data)


def test_an_epoch_that_cannot_be_opened_leaves_the_one_before(tmp_path: Path) -> None:
    storage = Away(str(tmp_path))
    epochs = StorageEpochs(storage)
    assert epochs.claim(1, EpochTerm(LeaderSessionId("one")))
    epochs.inherit(1)
    epochs.write(1, "job", 2, b"record")
    before = storage.list_files()
    assert epochs.claim(2, EpochTerm(LeaderSessionId("two")))
    storage.refuses = "opened"
    with pytest.raises(OSError, match="no space left"):
        epochs.inherit(2)
    assert set(before) <= set(storage.list_files())
    storage.refuses = ""
    epochs.inherit(2)
    assert dict(epochs.records(2)) == {"job": b"record"}
    assert not set(before) & set(storage.list_files())


def test_where_the_newest_version_of_a_record_is_spoilt_the_one_before_counts(tmp_path: Path) -> None:
    """As long as that is there: the write that made the newest one would have removed it."""
    storage = CheckpointStorage(str(tmp_path))
    epochs = StorageEpochs(storage)
    assert epochs.claim(1, EpochTerm(LeaderSessionId("one")))
    epochs.write(1, "job", 2, b"older")
    epochs.write(1, "job", 3, b"newest")
    (newest,) = (path for path in storage.list_files() if path.endswith("/job/00000003"))
    (tmp_path / newest).write_bytes(b"half a file")
    assert dict(epochs.records(1)) == {"job": b"older"}
    (tmp_path / newest).unlink()
    assert dict(epochs.records(1)) == {"job": b"older"}


class Deleting(CheckpointStorage):
    """Storage that deletes so many files and no more, and says what it has made last."""

    most = 1
    lasting: tuple[str, ...] = ()

    def delete(self, path: str) -> None:
        if self.most == 0:
            raise OSError("storage does not answer")
        self.most -= 1
        super().delete(path)

    def make_deletions_last(self, paths: Iterable[str]) -> None:
        self.lasting = tuple(paths)
        super().make_deletions_last(self.lasting)


def test_a_record_that_is_removed_by_half_is_still_the_newest_one_and_lasts_when_it_is_gone(tmp_path: Path) -> None:
    """An older version must not come back: its checkpoints are deleted."""
    storage = Deleting(str(tmp_path))
    epochs = StorageEpochs(storage)
    assert epochs.claim(1, EpochTerm(LeaderSessionId("one")))
    for version, data in enumerate((b"older", b"old", b"newest"), 2):
        epochs.write(1, "job", version, data)
    written = {path for path in storage.list_files() if "/jobs/" in path}
    with pytest.raises(OSError, match="does not answer"):
        epochs.remove(1, "job", 5)
    assert dict(epochs.records(1)) == {"job": b"newest"}
    assert not storage.lasting
    storage.most = 5
    epochs.remove(1, "job", 5)
    assert not epochs.records(1)
    assert list(storage.lasting) == sorted(written)[1:]


def test_a_record_that_its_leader_removes_while_the_next_one_reads_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty one would be kept by each leader from then on, as of a job that cannot go on."""
    epochs = StorageEpochs(CheckpointStorage(str(tmp_path)))
    for name in ("job", "other"):
        epochs.write(1, name, 2, name.encode())
    read = epochs._newest_record

    def late(number: int, name: str, versions: list[int]) -> bytes:
        if name == "job":
            epochs.remove(number, name, 3)
        return read(number, name, versions)

    monkeypatch.setattr(epochs, "_newest_record", late)
    assert dict(epochs.records(1)) == {"other": b"other"}


def test_what_could_not_be_seen_while_storage_was_away_is_no_silence(tmp_path: Path) -> None:
    """The leader could not say anything either: it gets the whole time once more."""
    settings = Candidates(config(tmp_path)).services.settings
    storage, timeout_s = Away(str(tmp_path / "cluster")), settings.session_timeout_ms / 1000
    assert StorageEpochs(storage).claim(1, EpochTerm(LeaderSessionId("leader")))
    clock = [0.0]

    class Withdraw(threading.Event):
        """Time passes between looks: storage is away, is back, and then nobody wants to lead any more."""

        looks = 0

        def wait(self, timeout: float | None = None) -> bool:
            self.looks += 1
            if self.looks == 1:
                storage.is_away = True
                clock[0] += timeout_s * 2
            elif self.looks == 2:
                storage.is_away = False
                clock[0] += timeout_s / 2
            else:
                self.set()
            return self.is_set()

    withdraw = Withdraw()
    assert StorageElection(settings, storage, lambda: clock[0]).campaign(withdraw) is None
    assert withdraw.looks == 3


def test_a_candidate_that_waits_for_storage_warns_of_it_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As on a full disk, where files can be read: each try to lead says how many bytes are free by then."""
    settings = Candidates(config(tmp_path)).services.settings
    storage, free, clock = CheckpointStorage(str(tmp_path / "cluster")), [0], [0.0]
    assert StorageEpochs(storage).claim(1, EpochTerm(LeaderSessionId("leader"), is_over=True))

    class Full(CheckpointStorage):
        def create_sealed(self, path: str, data: bytes) -> None:
            free[0] += 1
            raise OSError(errno.ENOSPC, f"the disk is full ({free[0]} bytes are free)")

    class Withdraw(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            return free[0] == 3

        def is_set(self) -> bool:
            return free[0] == 3

    full = Full(str(tmp_path / "cluster"))
    assert StorageElection(settings, full, lambda: clock[0]).campaign(Withdraw()) is None
    (said,) = [each.message for each in caplog.records if each.levelname == "WARNING"]
    assert "waits for storage" in said
    assert "(1 bytes are free)" in said


def test_a_cluster_with_another_key_is_not_waited_for(tmp_path: Path) -> None:
    """It would wait for ever, or until it leads and can run nothing of what was left."""
    mine, other = config(tmp_path), config(tmp_path)
    other["high-availability.cluster-id"] = mine["high-availability.cluster-id"]
    leads, waits = Candidates(mine), Candidates(other)
    leads.win().publish("tcp://127.0.0.1:1")
    key_file = other["high-availability.key-file"]
    said = f"led by the JobManager at tcp://127.0.0.1:1, .*another key than {key_file}.*set another .*cluster-id"
    with pytest.raises(AnotherCluster, match=said):
        waits.win()
    leads.close()
    waits.win()
    waits.close()


def test_after_a_change_of_keys_the_dead_leader_is_followed(tmp_path: Path) -> None:
    mine, other = config(tmp_path), config(tmp_path)
    other["high-availability.cluster-id"] = mine["high-availability.cluster-id"]
    services, renewed = Candidates(mine).services, Candidates(other)
    dead = EpochTerm(LeaderSessionId("dead"), "tcp://127.0.0.1:1", key_id=services.keys.key_id)
    assert StorageEpochs(services.storage).claim(1, dead)
    renewed.win()
    renewed.close()
