"""ResourceManager and Host on virtual time, with a network that breaks: each TaskManager that is wanted runs once, and
its end is reported once per start, whatever becomes of hosts, connections and the JobManager.

In the place of a JobManager stands an actor that starts what has ended again, as a JobMaster does; in the place of
child processes a list.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from understudy import Actor, InvalidSetting
from understudy.messages import (
    CheckpointConfig,
    HostId,
    JobGraph,
    JobId,
    LaunchTaskManager,
    LeaderSessionId,
    ProgramFile,
    RestartStrategyConfig,
    RestartStrategyKind,
    SubmitJob,
    TaskManagerAwaited,
    TaskManagerExited,
)
from understudy.runtime.clusters.task_manager_process import TaskManagerLaunch
from understudy.runtime.high_availability import FixedLeader, Leader
from understudy.runtime.hosts.host import Host, HostSpec, Leave
from understudy.runtime.hosts.releases import differences
from understudy.runtime.hosts.resource_manager import NAME, HostLauncher, HostTimes, ResourceManager
from understudy.runtime.simulation.world.blocking import SimulatedBlocking
from understudy.runtime.simulation.world.dispatchers import SimulatedDispatcher
from understudy.runtime.simulation.world.network import Network
from understudy.runtime.simulation.world.transport import SimulatedTransport, control_address
from understudy.runtime.simulation.world.world import Process, World
from understudy.runtime.system import ActorSystem

JOB = JobId("job-1")
TIMES = HostTimes(heartbeat_interval_ms=500, heartbeat_timeout_ms=3_000)
MANAGER = "manager"


def submission(slots: int = 1) -> SubmitJob:
    restart = RestartStrategyConfig(RestartStrategyKind.NONE)
    graph = JobGraph(JOB, "numbers", (), (), CheckpointConfig("sim://checkpoints"), restart)
    return SubmitJob(graph, 2, slots, program=ProgramFile("programs/job-1"))


class Wanting(Actor):
    """What the ResourceManager sees of a JobManager: it starts again what has ended, as long as it wants that."""

    def __init__(self, launcher: HostLauncher) -> None:
        self.launcher = launcher
        self.starts: Counter[int] = Counter()
        self.ends: list[TaskManagerExited] = []
        self.awaited: list[TaskManagerAwaited] = []

    def on_receive(self, message: Any) -> None:
        match message:
            case ("want", index):
                self.start_one(index)
            case TaskManagerExited():
                self.ends.append(message)
                self.start_one(message.index)
            case TaskManagerAwaited():
                self.awaited.append(message)

    def start_one(self, index: int) -> None:
        self.starts[index] += 1
        self.launcher.start(JOB, index)


class Children:
    """Child processes of one host, by name."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.prepared: set[JobId] = set()
        self.running: list[tuple[JobId, int]] = []
        self.forgotten: list[JobId] = []
        self.tell: Callable[[object], None]
        process.when_ended(lambda _: self.running.clear())

    def prepare(self, launch: TaskManagerLaunch) -> None:
        self.prepared.add(JOB)

    def start(self, job_id: JobId, index: int) -> None:
        assert job_id in self.prepared
        self.running.append((job_id, index))

    def kill(self, job_id: JobId, index: int) -> None:
        self.end(index, "killed by SIGKILL")

    def forget(self, job_id: JobId) -> None:
        self.forgotten.append(job_id)

    def end(self, index: int, reason: str) -> None:
        for each in [each for each in self.running if each[1] == index]:
            self.running.remove(each)
            self.process.loop.call_soon(self.tell, TaskManagerExited(*each, reason))


class Yard:
    """A world with a manager and hosts."""

    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.network = Network(self.world)
        self.children: dict[str, Children] = {}
        self.hosts: dict[str, Any] = {}
        self.refusal: Exception | None = None
        """What reading a job's code raises."""
        self.numbers = 0
        self.manage()

    def system(self, process: Process) -> ActorSystem:
        system = ActorSystem(
            process.name,
            loop=process.loop,
            clock=process.clock,
            random_source=self.world.chance(process.name),
            new_id=self.world.new_id,
            transport=SimulatedTransport(self.network.of(process)),
            blocking=SimulatedBlocking(process, lambda: 5.0),
            dispatchers={"asyncio": SimulatedDispatcher(process)},
        )
        opened: list[Any] = []
        process.loop.call_soon(lambda: opened.append(process.loop.create_task(system.open())))
        self.world.run_until(lambda: bool(opened) and opened[0].done(), self.world.now_ms)
        opened[0].result()
        return system

    def manage(self) -> None:
        """A JobManager's process begins, the first one or the next."""
        self.numbers += 1
        self.manager = self.world.process(MANAGER)
        system = self.system(self.manager)
        session = LeaderSessionId(f"session-{self.numbers}")
        resources = ResourceManager(session, system.actor_of("job-manager"), TIMES)
        ref = system.spawn(resources, name=NAME)
        self.launcher = HostLauncher(ref)
        self.launcher.expect(submission())
        self.wanting = Wanting(self.launcher)
        self.wants = system.spawn(self.wanting, name="job-manager")

    def host(self, name: str, slots: int = 2) -> Process:
        process = self.world.process(name)
        system = self.system(process)
        children = self.children[name] = Children(process)
        spec = HostSpec(HostId(self.world.new_id("host")), name, 1, slots)
        leader = FixedLeader(Leader(control_address(MANAGER), LeaderSessionId("")))
        ref = system.spawn(Host(spec, leader, children, self.make), name="host")
        children.tell = ref.tell
        self.hosts[name] = ref
        return process

    def make(self, order: LaunchTaskManager, leader: str) -> Any:
        assert leader == control_address(MANAGER)
        if self.refusal is not None:
            raise self.refusal
        return order

    def want(self, *indexes: int) -> None:
        for index in indexes:
            self.wants.tell(("want", index))
        self.run(1_000)

    def run(self, duration_ms: float) -> None:
        self.world.run_for(duration_ms)

    def running(self) -> list[int]:
        return sorted(index for children in self.children.values() for _, index in children.running)


@pytest.fixture
def yard() -> Yard:
    return Yard()


def test_taskmanagers_are_started_on_the_hosts_and_their_ends_are_reported(yard: Yard) -> None:
    yard.host("a")
    yard.host("b")
    yard.run(1_000)
    yard.want(0, 1)
    assert [len(yard.children[name].running) for name in ("a", "b")] == [1, 1]
    yard.children["a"].end(0, "exited with code 1")
    yard.run(1_000)
    assert yard.wanting.ends == [TaskManagerExited(JOB, 0, "exited with code 1")]
    assert yard.running() == [0, 1]


def test_a_host_with_another_release_is_named_in_the_log(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    yard.host("same")
    yard.run(1_000)
    assert not [each for each in caplog.messages if "install the same" in each]
    monkeypatch.setattr("understudy.runtime.hosts.host.own_releases", lambda: {"pyarrow": "1.0", "unknown": "2.0"})
    yard.host("other")
    yard.run(1_000)
    (said,) = [each for each in caplog.messages if "install the same" in each]
    assert said.startswith(f"host other runs pyarrow 1.0 (here {pa.__version__}): install the same on all hosts")


def test_of_python_only_the_minor_release_counts() -> None:
    ours = {"python": "3.11.7", "numpy": "2.4.0"}
    assert differences({"python": "3.11.2", "numpy": "2.4.0"}, ours) == ""
    assert (
        differences({"python": "3.12.1", "numpy": "2.4.1"}, ours)
        == "python 3.12.1 (here 3.11.7), numpy 2.4.1 (here 2.4.0)"
    )
    assert differences({}, ours) == ""


def test_a_host_that_dies_is_noticed_and_its_work_goes_on_elsewhere(
    yard: Yard, caplog: pytest.LogCaptureFixture
) -> None:
    dying = yard.host("a")
    yard.host("b")
    yard.run(1_000)
    yard.want(0, 1)
    dying.kill("power failure")
    yard.run(10_000)
    (end,) = yard.wanting.ends
    assert end.reason.startswith("its host a (process 1) sent no heartbeat")
    assert sorted(index for _, index in yard.children["b"].running) == [0, 1]
    lost = [each for each in caplog.messages if "cannot be reached" in each or "sent no heartbeat" in each]
    assert lost
    assert all(each.startswith("host a (process 1) ") for each in lost), "as it was when it came, not by an id"


def test_one_that_was_frozen_comes_back_with_empty_hands(yard: Yard) -> None:
    """What it had was given up, and runs elsewhere: it is ended when the host is here again."""
    frozen = yard.host("a")
    yard.host("b")
    yard.run(1_000)
    yard.want(0, 1)
    frozen.freeze()
    yard.run(10_000)
    assert sorted(index for _, index in yard.children["b"].running) == [0, 1]
    frozen.thaw()
    yard.run(10_000)
    assert yard.running() == [0, 1]
    assert yard.children["a"].running == []
    assert yard.wanting.starts == Counter({0: 2, 1: 1})
    yard.children["b"].end(1, "exited")
    yard.run(1_000)
    assert len(yard.children["a"].running) == 1, "it takes work again"


def test_a_host_whose_jobmanager_is_away_registers_with_the_next(yard: Yard, caplog: pytest.LogCaptureFixture) -> None:
    """And what it runs is not started twice."""
    yard.host("a")
    yard.run(1_000)
    yard.want(0)
    yard.manager.kill("SIGKILL")
    yard.run(120_000)
    assert sum("is away" in each.getMessage() for each in caplog.records) == 1
    yard.manage()
    yard.run(10_000)
    yard.want(0, 1)
    assert yard.running() == [0, 1]
    assert yard.wanting.ends == []


def test_code_that_cannot_be_had_is_an_end_with_its_reason(yard: Yard) -> None:
    yard.host("a")
    yard.run(1_000)
    yard.refusal = InvalidSetting("not signed")
    yard.wants.tell(("want", 0))
    yard.world.run_until(lambda: bool(yard.wanting.ends), yard.world.now_ms + 5_000)
    assert yard.wanting.ends[0].reason == "InvalidSetting: not signed"
    yard.refusal = None
    yard.run(2_000)
    assert yard.running() == [0]


def test_one_that_waits_is_reported_with_what_is_missing(yard: Yard) -> None:
    yard.want(0)
    assert [each.index for each in yard.wanting.awaited] == [0]
    assert "start one with `understudy taskmanager`" in yard.wanting.awaited[0].why
    yard.host("a")
    yard.run(1_000)
    assert yard.running() == [0]


def test_a_kill_reaches_the_host(yard: Yard) -> None:
    yard.host("a")
    yard.run(1_000)
    yard.want(0)
    yard.launcher.kill(JOB, 0)
    yard.run(1_000)
    assert [each.reason for each in yard.wanting.ends] == ["killed by SIGKILL"]
    assert yard.running() == [0]


def test_a_job_that_is_over_is_forgotten_everywhere(yard: Yard) -> None:
    yard.host("a")
    yard.run(1_000)
    yard.want(0)
    yard.launcher.forget(JOB)
    yard.run(1_000)
    assert yard.children["a"].forgotten == [JOB]


def test_one_that_leaves_says_so(yard: Yard) -> None:
    yard.host("a")
    yard.host("b")
    yard.run(1_000)
    yard.want(0)
    yard.hosts["a"].tell(Leave("SIGTERM"))
    yard.run(1_000)
    assert [each.reason for each in yard.wanting.ends] == ["its host a (process 1) leaves: SIGTERM"]
    assert yard.children["b"].running == [(JOB, 0)]


def test_a_host_that_no_word_reaches_any_more_registers_again(yard: Yard) -> None:
    """It is heard, and so it is not lost; what it runs goes on."""
    yard.host("a")
    yard.run(1_000)
    yard.want(0)
    yard.network.block(MANAGER, "a")
    yard.run(10_000)
    yard.network.unblock(MANAGER, "a")
    yard.run(10_000)
    yard.want(1)
    assert yard.running() == [0, 1]


@pytest.mark.parametrize("seed", range(25))
def test_whatever_happens_each_runs_once_in_the_end_and_no_end_is_reported_twice(seed: int) -> None:
    """Hosts freeze, die and come anew, connections are cut in one direction or both, children end, are killed; at last
    all is well for a while.
    """
    yard, chance = Yard(seed), random.Random(seed)
    names = ["a", "b", "c"]
    processes = {name: yard.host(name, slots=4) for name in names}
    yard.run(1_000)
    yard.want(0, 1, 2, 3)
    blocked: list[tuple[str, str]] = []
    for _ in range(12):
        name = chance.choice(names)
        match chance.randrange(5):
            case 0:
                processes[name].freeze()
            case 1:
                processes[name].kill("SIGKILL")
                processes[name] = yard.host(f"{name}'")
                names[names.index(name)] = f"{name}'"
                processes[f"{name}'"] = processes.pop(name)
            case 2:
                link = (name, MANAGER) if chance.random() < 0.5 else (MANAGER, name)
                yard.network.block(*link)
                blocked.append(link)
            case 3:
                yard.children[name].end(chance.randrange(4), "exited")
            case 4:
                yard.launcher.kill(JOB, chance.randrange(4))
        yard.run(chance.choice([100.0, 1_000.0, 8_000.0]))
        for process in processes.values():
            if process.is_frozen and chance.random() < 0.5:
                process.thaw()
        if blocked and chance.random() < 0.6:
            yard.network.unblock(*blocked.pop())
    for link in blocked:
        yard.network.unblock(*link)
    for process in processes.values():
        if process.is_frozen:
            process.thaw()
    yard.run(60_000)
    assert yard.running() == [0, 1, 2, 3]
    ends = Counter(end.index for end in yard.wanting.ends)
    assert all(yard.wanting.starts[index] == ends[index] + 1 for index in range(4))
