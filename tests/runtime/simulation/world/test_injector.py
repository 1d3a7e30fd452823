"""Injector: each fault does what its docstring says, ends when it should, and is counted only when it happened."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import get_args

import pytest

from understudy.messages import JobStatus
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.simulation.histories.story import tell
from understudy.runtime.simulation.world.cluster import SimulatedCluster
from understudy.runtime.simulation.world.faults import (
    FAULTS,
    JOB_MANAGER,
    CheckpointMoment,
    CutConnections,
    FailingOperator,
    FailingStorage,
    Fault,
    FreezeProcess,
    FullDisk,
    KillAtCheckpoint,
    KillAtOperation,
    KillProcess,
    Partition,
    PowerFailure,
    RottenFile,
    SkewClock,
    SlowFiles,
    SlowLink,
    SlowProcess,
    SlowStorage,
    SyncedFolder,
)
from understudy.runtime.simulation.world.file_system import SimulatedFileSystem
from understudy.runtime.simulation.world.power import FAILS, synced_folder
from understudy.runtime.simulation.world.world import Process

START_MS = 600.0
"""By then both TaskManagers are there."""


def counting(records: int = 40) -> StreamEnvironment:
    env = StreamEnvironment(parallelism=2, checkpoint_interval_ms=1_000)
    numbers = env.from_collection(range(records), records_per_second=4.0, parallelism=1)
    numbers.key_by(lambda number: number % 3).map(lambda number: number).collect(name="out")
    return env


@contextmanager
def running(*faults: Fault, seed: int = 1) -> Iterator[SimulatedCluster]:
    with SimulatedCluster(2, seed=seed, faults=faults, heartbeat_timeout_ms=6_000) as cluster:
        cluster.submit(counting())
        cluster.run_for(START_MS)
        yield cluster


def tm(cluster: SimulatedCluster, index: int) -> Process:
    process = cluster.process(index)
    assert process is not None
    return process


def names(processes: Iterable[Process]) -> list[str]:
    return [process.name for process in processes]


class TestProcesses:
    def test_kill(self) -> None:
        with running(KillProcess(1_000, who=1)) as cluster:
            victim = tm(cluster, 1)
            cluster.run_for(1_000)
            assert (victim.is_alive, victim.end_reason) == (False, "SIGKILL")
            cluster.run_for(1_000)
            assert tm(cluster, 1) is not victim
            assert cluster.faults_that_happened == {"KillProcess": 1}

    def test_kill_at_an_operation(self) -> None:
        with running(KillAtOperation(1_000, who=0, operations=3)) as cluster:
            victim = tm(cluster, 0)
            cluster.run_until(lambda: cluster.now_ms >= 1_000)
            before = victim.operations
            assert cluster.run_until(lambda: not victim.is_alive, timeout=5)
            assert victim.operations == before + 3

    @pytest.mark.parametrize("moment", get_args(CheckpointMoment))
    @pytest.mark.parametrize("which", [0, 1, 5])
    def test_kill_at_a_moment_of_a_checkpoint(self, moment: CheckpointMoment, which: int) -> None:
        with running(KillAtCheckpoint(3_500, moment, which)) as cluster:
            cluster.run_for(60_000)
            (killed,) = (each for each in cluster.trace.entries if "SIGKILL, " in str(each))
            number = re.findall(r"checkpoint (\d+)", str(killed))[0]
            story = list(tell(cluster.trace))
            dies = next(index for index, line in enumerate(story) if "SIGKILL, " in line)
            is_complete = any(line.endswith(f"checkpoint {number} is complete") for line in story[:dies])
            assert is_complete == (moment == "notice")
            restored = next(line for line in story[dies:] if "restores its tasks" in line)
            assert f"from checkpoint {number if moment != 'barrier' else int(number) - 1} " in restored
            assert cluster._handles[0].status is JobStatus.FINISHED
            assert sorted(cluster._handles[0].results("out")) == list(range(40))

    def test_of_a_process_that_is_not_there_does_not_happen(self) -> None:
        with running(KillProcess(1_000, who=7), SkewClock(1_000, 7, 5), FreezeProcess(1_000, 10, 7)) as cluster:
            cluster.run_for(2_000)
            assert not cluster.faults_that_happened

    def test_freeze_and_thaw(self) -> None:
        with running(FreezeProcess(1_000, 500, who=0)) as cluster:
            victim = tm(cluster, 0)
            cluster.run_for(450)
            assert victim.is_frozen
            cluster.run_for(500)
            assert not victim.is_frozen
            assert victim.is_alive

    def test_freeze_in_the_middle_of_an_operation(self) -> None:
        with running(FreezeProcess(1_000, 500, who=0, operations=2)) as cluster:
            cluster.run_for(3_000)
            assert sum("in the middle of its operation" in line for line in cluster.trace.lines()) == 1
            assert tm(cluster, 0).is_alive

    def test_freeze_of_the_job_manager_is_survived(self) -> None:
        with running(FreezeProcess(1_000, 1_000, who=JOB_MANAGER)) as cluster:
            cluster.run_for(30_000)
            assert tm(cluster, JOB_MANAGER).is_alive
            assert cluster._handles[0].status is JobStatus.FINISHED

    def test_skew(self) -> None:
        with running(SkewClock(1_000, JOB_MANAGER, -5_000)) as cluster:
            clock = tm(cluster, JOB_MANAGER).clock
            before = clock.wall_ms() - cluster.now_ms
            cluster.run_for(1_000)
            assert clock.wall_ms() - cluster.now_ms == pytest.approx(before - 5_000, abs=1)

    def test_a_power_failure_kills_zombies_too_and_spares_the_job_manager(self) -> None:
        with running(PowerFailure(1_000)) as cluster:
            zombie = cluster.world.process("a zombie")
            cluster.run_for(401)
            assert "job-manager" in names(cluster.processes())
            assert not zombie.is_alive
            assert cluster.faults_that_happened == {"PowerFailure": 1}


@pytest.mark.parametrize("folder", [each for each in get_args(SyncedFolder) if each != "savepoint"])
def test_the_power_may_fail_right_after_a_sync(folder: SyncedFolder) -> None:
    with running(PowerFailure(700, folder)) as cluster:
        cluster.run_for(8_000)
        entries = cluster.trace.entries
        failures = [(now_ms, details[0]) for now_ms, _, what, details in entries if what == FAILS]
        ends = {now_ms for now_ms, _, _, details in entries if details == ("the power failed",)}
        assert [synced_folder(path) for _, path in failures] == [folder]
        assert ends == {failures[0][0]}


def test_the_power_may_fail_right_after_a_metadata_file_is_written() -> None:
    with running(PowerFailure(700, "metadata")) as cluster:
        cluster.run_for(8_000)
        (path,) = [details[0] for _, _, what, details in cluster.trace.entries if what == FAILS]
        assert path.endswith("/_metadata")
        assert cluster.faults_that_happened == {"PowerFailure": 1}


class TestNetwork:
    def test_a_cut_breaks_what_there_is(self) -> None:
        with running(CutConnections(1_000, JOB_MANAGER, 0)) as cluster:
            cluster.run_for(500)
            assert cluster.faults_that_happened == {"CutConnections": 1}
            assert any("the connection broke" in line for line in cluster.trace.lines())

    def test_a_cut_of_nothing_does_not_happen(self) -> None:
        with running(CutConnections(1_000, 0, 0), CutConnections(1_000, 0, 9)) as cluster:
            cluster.run_for(500)
            assert not cluster.faults_that_happened

    @pytest.mark.parametrize("one_way", [True, False])
    def test_a_partition_blocks_and_heals(self, one_way: bool) -> None:
        with running(Partition(1_000, 500, JOB_MANAGER, 1, one_way=one_way)) as cluster:
            hosts = tm(cluster, JOB_MANAGER).host, tm(cluster, 1).host
            cluster.run_for(410)
            assert cluster.network.link(*hosts).blocks == 1
            assert cluster.network.link(*reversed(hosts)).blocks == (0 if one_way else 1)
            cluster.run_for(500)
            assert not cluster.network.is_cut_off(tm(cluster, JOB_MANAGER), tm(cluster, 1))

    def test_a_partition_outlasts_the_process_and_holds_for_its_successor_on_the_same_host(self) -> None:
        with running(Partition(1_000, 5_000, JOB_MANAGER, 1), KillProcess(1_100, 1)) as cluster:
            cluster.run_for(2_000)
            assert tm(cluster, 1).name != "tm-1-1"
            assert cluster.network.is_cut_off(tm(cluster, JOB_MANAGER), tm(cluster, 1))
            cluster.run_for(30_000)
            assert cluster._handles[0].status is JobStatus.FINISHED

    def test_a_partition_may_leave_a_zombie_that_goes_on(self) -> None:
        """It was never frozen: it works and writes while its successor does."""
        found = 0
        for seed in range(12):
            with running(Partition(1_000, 20_000, JOB_MANAGER, 1), seed=seed) as cluster:
                first = tm(cluster, 1)
                cluster.run_until(lambda first=first, cluster=cluster: cluster.process(1) not in (first, None), 10)
                found += first.is_alive
        assert found

    def test_a_slow_link(self) -> None:
        with running(SlowLink(1_000, 500, 0, 1, extra_latency_ms=300)) as cluster:
            link = cluster.network.link(tm(cluster, 0).host, tm(cluster, 1).host)
            cluster.run_for(410)
            assert link.extra_latency_ms == 300
            cluster.run_for(500)
            assert link.extra_latency_ms == 0


class TestStorage:
    def in_process(self, cluster: SimulatedCluster, write: bytes) -> str:
        """What comes of writing a file on behalf of a process."""
        outcome: list[str] = []

        def work() -> None:
            try:
                with SimulatedFileSystem().open("/storage/probe", "wb") as file:
                    file.write(write)
                outcome.append("written")
            except OSError as error:
                outcome.append(error.strerror)

        cluster.world.after(0, tm(cluster, JOB_MANAGER), work)
        cluster.run_until(lambda: bool(outcome), timeout=1)
        return outcome[0]

    def test_a_full_disk_takes_nothing_until_it_is_over(self) -> None:
        with running(FullDisk(1_000, 500)) as cluster:
            assert self.in_process(cluster, b"x") == "written"
            cluster.run_for(410)
            assert self.in_process(cluster, b"x") == "the simulated disk is full"
            cluster.run_for(500)
            assert self.in_process(cluster, b"x") == "written"

    def test_of_two_full_disks_both_must_be_over(self) -> None:
        with running(FullDisk(1_000, 500), FullDisk(1_200, 500)) as cluster:
            cluster.run_for(1_000)
            assert self.in_process(cluster, b"x") == "the simulated disk is full"
            cluster.run_for(200)
            assert self.in_process(cluster, b"x") == "written"

    def test_a_failing_disk_fails_in_some_operations(self) -> None:
        with running(
            FailingStorage(1_000, 500, probability=1.0), FailingStorage(1_000, 300, probability=0.1)
        ) as cluster:
            cluster.run_for(410)
            assert self.in_process(cluster, b"x") == "the simulated disk failed"
            cluster.run_for(600)
            assert self.in_process(cluster, b"x") == "written"
            assert cluster.storage.failures == []

    def test_a_slow_disk_takes_longer(self) -> None:
        with running(SlowStorage(1_000, 500, extra_ms=700), SlowStorage(1_000, 800, extra_ms=70)) as cluster:
            cluster.run_for(410)
            process = tm(cluster, 0)
            assert 770 <= cluster.storage.delay_ms(process) <= 780
            cluster.run_for(1_000)
            assert cluster.storage.delay_ms(process) < 10

    def test_the_files_of_one_process_are_slow(self) -> None:
        with running(SlowFiles(1_000, 500, JOB_MANAGER, extra_ms=700)) as cluster:
            cluster.run_for(410)
            assert 700 <= cluster.storage.delay_ms(tm(cluster, JOB_MANAGER)) <= 710
            assert cluster.storage.delay_ms(tm(cluster, 0)) < 10
            cluster.run_for(500)
            assert cluster.storage.delay_ms(tm(cluster, JOB_MANAGER)) < 10

    def test_a_rotten_file_is_the_newest_checkpoint_s(self) -> None:
        with running(RottenFile(3_500)) as cluster:
            cluster.run_until(lambda: cluster.now_ms >= 3_499.9)
            newest = cluster.newest_checkpoint_file()
            assert newest is not None
            cluster.run_until(lambda: bool(cluster.faults_that_happened), timeout=0.01)
            assert dict(cluster.disk.files())[newest] == 3

    def test_a_rotten_file_may_be_as_long_as_it_was(self) -> None:
        with running(RottenFile(3_500, flips=True)) as cluster:
            cluster.run_for(3_499.9 - cluster.now_ms)
            newest = cluster.newest_checkpoint_file()
            assert newest is not None
            before = cluster.disk.read(newest)
            assert cluster.run_until(lambda: bool(cluster.faults_that_happened), 10)
            after = cluster.disk.read(newest)
            assert len(after) == len(before)
            assert sum((one ^ other).bit_count() for one, other in zip(before, after, strict=True)) == 1

    def test_a_rotten_file_needs_a_checkpoint(self) -> None:
        with running(RottenFile(700)) as cluster:
            cluster.run_for(200)
            assert not cluster.faults_that_happened


def test_a_slow_process_takes_its_time_for_each_step() -> None:
    """So that records wait for it: from then on it takes two in three seconds, and they come at four a second."""
    with running(SlowProcess(1_000, 20_000, 0, 1_500.0), SlowProcess(1_000, 20_000, 1, 1_500.0)) as cluster:
        cluster.run_for(10_000)
        tasks = cluster._handles[0].details().tasks
        taken = sum(task.records_in for task in tasks if "map" in task.vertex_name.lower())
        assert 0 < taken < 30
        cluster.run_for(60_000)
        assert sorted(cluster._handles[0].results("out")) == list(range(40))


def test_an_operator_raises_where_the_fault_says() -> None:
    with running(FailingOperator(1_000, "process_batch")) as cluster:
        cluster.run_for(2_000)
        (failure,) = cluster._handles[0].details().failures
        assert "process_batch raises" in str(failure)


def test_every_fault_of_the_catalogue_can_happen() -> None:
    """That is, the injector knows it: an unknown one is an AssertionError."""
    one_of_each = [
        KillProcess(3_500, 0),
        KillAtOperation(3_600, 1, 2),
        FreezeProcess(2_000, 100, 0),
        CutConnections(2_200, 0, JOB_MANAGER),
        Partition(2_400, 100, 0, JOB_MANAGER),
        SlowLink(2_500, 100, 0, 1, 5.0),
        FailingStorage(2_600, 100, 0.1),
        SlowStorage(2_700, 100, 5.0),
        FullDisk(2_800, 100),
        RottenFile(3_300),
        PowerFailure(6_000),
        SkewClock(2_900, 0, 5),
        FailingOperator(3_000),
        SlowProcess(3_100, 100, 1, 20.0),
        SlowFiles(3_150, 100, 1, 20.0),
        KillAtCheckpoint(5_000, "barrier"),
    ]
    assert {type(fault) for fault in one_of_each} == set(FAULTS)
    with running(*one_of_each) as cluster:
        cluster.run_for(60_000)
        assert set(cluster.faults_that_happened) == {kind.__name__ for kind in FAULTS}
        assert cluster._handles[0].status is JobStatus.FINISHED
        assert sorted(cluster._handles[0].results("out")) == list(range(40))
