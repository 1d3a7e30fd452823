"""LeaderLine: questions go on with the next leader, orders that may have been carried out do not."""

from __future__ import annotations

import math
import queue
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, cast

import pykka
import pytest

from understudy import LocalCluster, StreamEnvironment
from understudy.actors.actor import Actor
from understudy.actors.ask_errors import ActorDead, AskFailed, AskTimeout, RemoteActorError, Unreachable
from understudy.actors.errors import UnknownJob
from understudy.actors.job_manager.job_listeners import JobListeners
from understudy.messages import (
    JobId,
    JobList,
    JobStatus,
    JobStatusChanged,
    LeaderSessionId,
    ListJobs,
    TriggerSavepoint,
    TriggerSavepointSuccess,
)
from understudy.runtime.clusters.client import FollowingClient
from understudy.runtime.clusters.leader_line import AnswerLost, LeaderLine, NoLeader, _Failed
from understudy.runtime.high_availability import Leader
from understudy.runtime.high_availability.leader import LeaderChanged
from understudy.runtime.system import ActorFuture, ActorSystem, CurveKeys
from understudy.state.errors import LostLeadership

from ...contracts.high_availability import submitted
from .jobs import environment, eventually

WAIT_S = 100
NOBODY_YET = JobList(())
JOB = JobId("job-1")


class Manager(Actor):
    """Stands for a JobManager; `reply` gives its answers, or raises."""

    def __init__(self, reply: Callable[[Any], Any]) -> None:
        self.reply = reply

    def on_receive(self, message: Any) -> Any:
        return self.reply(message)


class Leaders:
    """Says who leads as a test wants it."""

    def __init__(self) -> None:
        self.listeners: list[LeaderChanged] = []
        self.now: Leader | None = None
        self.is_closed = False

    def leader(self) -> Leader | None:
        return self.now

    def on_change(self, callback: LeaderChanged) -> None:
        self.listeners.append(callback)
        callback(self.now)

    def close(self) -> None:
        self.is_closed = True

    def is_now(self, system: ActorSystem | None) -> None:
        self.become(None if system is None else Leader(system.address, LeaderSessionId(f"session of {system.address}")))

    def become(self, leader: Leader | None) -> None:
        self.now = leader
        for listener in self.listeners:
            listener(self.now)


class Scene:
    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.leaders = Leaders()
        self.addresses: list[str] = []
        self.client = self._system("client")
        self.line = LeaderLine(self.client, self.leaders, "trial", self.addresses.append)

    def _system(self, name: str) -> ActorSystem:
        system = ActorSystem(name, bind="tcp://127.0.0.1:0", curve=None).start()
        self._stack.callback(system.shutdown)
        return system

    def manager(self, name: str, reply: Callable[[Any], Any]) -> ActorSystem:
        system = self._system(name)
        system.spawn(Manager(reply), name="job-manager")
        return system

    def silent(self, name: str) -> tuple[ActorSystem, list[Any]]:
        """One that takes everything and never answers, and what it has taken."""
        taken: list[Any] = []
        system = self._system(name)

        class Silent(Actor):
            def on_receive(self, message: Any) -> Any:
                taken.append(message)
                return self.context.promise()

        system.spawn(Silent(), name="job-manager")
        return system, taken


@pytest.fixture
def scene() -> Iterator[Scene]:
    with ExitStack() as stack:
        yield Scene(stack)


def test_a_question_waits_for_a_leader(scene: Scene) -> None:
    answer = scene.line.ask(ListJobs())
    assert not answer.is_done
    first = scene.manager("first", lambda _: NOBODY_YET)
    scene.leaders.is_now(first)
    assert answer.get(timeout=WAIT_S) == NOBODY_YET
    assert scene.addresses == [first.address]


def test_a_question_goes_on_with_the_next_leader_whether_the_one_before_is_gone_or_silent(scene: Scene) -> None:
    silent, taken = scene.silent("silent")
    scene.leaders.is_now(silent)
    answer = scene.line.ask(ListJobs())
    while not taken:  # it has the question
        assert not answer.wait(0.01)
    scene.leaders.is_now(None)
    scene.leaders.is_now(scene.manager("next", lambda _: NOBODY_YET))
    assert answer.get(timeout=WAIT_S) == NOBODY_YET
    gone = scene.manager("gone", lambda _: NOBODY_YET)
    scene.leaders.is_now(gone)
    gone.shutdown()
    later = scene.line.ask(ListJobs())
    assert not later.wait(0.3)
    scene.leaders.is_now(scene.manager("last", lambda _: NOBODY_YET))
    assert later.get(timeout=WAIT_S) == NOBODY_YET


def test_what_becomes_of_a_question_at_a_leader_before_does_not_count_any_more(scene: Scene) -> None:
    """As a time-out there, while the next leader has it."""
    asked, may_answer = threading.Event(), threading.Event()

    def answers_later(_: Any) -> Any:
        asked.set()
        may_answer.wait(WAIT_S)
        return NOBODY_YET

    silent, taken = scene.silent("silent")
    scene.leaders.is_now(silent)
    question = scene.line.ask(ListJobs())
    while not taken:
        assert not question.wait(0.01)
    scene.leaders.is_now(scene.manager("next", answers_later))
    assert asked.wait(WAIT_S)
    scene.line._actor.tell(_Failed(1, 1, AskTimeout(silent.address, "no answer")))
    may_answer.set()
    assert question.get(timeout=WAIT_S) == NOBODY_YET


def test_an_order_that_may_have_been_carried_out_is_not_given_twice(scene: Scene) -> None:
    silent, taken = scene.silent("silent")
    scene.leaders.is_now(silent)
    answer = scene.line.ask(TriggerSavepoint(JOB, ""))
    while not taken:
        assert not answer.wait(0.01)
    given: list[Any] = []

    def take(message: Any) -> Any:
        given.append(message)
        return TriggerSavepointSuccess(JOB, "/savepoints/1")

    scene.leaders.is_now(scene.manager("next", take))
    with pytest.raises(AnswerLost, match=r"TriggerSavepoint: the JobManager went away .* or not: the job goes on"):
        answer.get(timeout=WAIT_S)
    assert given == []
    assert scene.line.ask(TriggerSavepoint(JOB, "")).get(timeout=WAIT_S).savepoint_path == "/savepoints/1"


def test_an_order_that_finds_nobody_waits(scene: Scene) -> None:
    answer = scene.line.ask(TriggerSavepoint(JOB, ""))
    scene.leaders.is_now(scene.manager("first", lambda _: TriggerSavepointSuccess(JOB, "/savepoints/1")))
    assert answer.get(timeout=WAIT_S).savepoint_path == "/savepoints/1"


def test_an_order_that_a_leader_refuses_as_it_leads_no_more_waits_for_the_next_one(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing was changed: so there is no harm in putting it to another one."""
    given: list[Any] = []

    def leads_no_more(message: Any) -> Any:
        given.append(message)
        raise LostLeadership("1-a")

    deposed = scene.manager("deposed", leads_no_more)
    scene.leaders.is_now(deposed)
    answer = scene.line.ask(TriggerSavepoint(JOB, ""))
    assert not answer.wait(0.3)
    later = scene.line.ask(TriggerSavepoint(JOB, ""))
    assert not later.wait(0.1)
    assert len(given) == 1
    scene.leaders.is_now(scene.manager("next", lambda _: TriggerSavepointSuccess(JOB, "/savepoints/1")))
    for each in (answer, later):
        assert each.get(timeout=WAIT_S).savepoint_path == "/savepoints/1"
    assert caplog.messages.count(f"{deposed.address} leads no more: waiting for the next leader") == 1


def test_who_submits_and_loses_the_answer_is_told_to_look_first(scene: Scene) -> None:
    silent, taken = scene.silent("silent")
    scene.leaders.is_now(silent)
    answer = scene.line.ask(submitted())
    while not taken:
        assert not answer.wait(0.01)
    scene.leaders.is_now(scene.manager("next", lambda _: NOBODY_YET))
    with pytest.raises(AnswerLost, match=r"if `understudy list` shows the job it runs, and need not be submitted"):
        answer.get(timeout=WAIT_S)


def test_a_next_leader_that_has_not_taken_up_the_job_yet_is_asked_again(scene: Scene) -> None:
    times: list[Any] = []

    def knows_it_soon(message: Any) -> Any:
        times.append(message)
        if len(times) < 3:
            raise UnknownJob(f"no job {JOB!r} here; known: none")
        return NOBODY_YET

    scene.leaders.is_now(scene.manager("first", knows_it_soon))
    with pytest.raises(Exception, match="no job 'job-1' here"):  # the first leader has nothing to take up
        scene.line.ask(ListJobs()).get(timeout=WAIT_S)
    scene.leaders.is_now(scene.manager("next", knows_it_soon))
    assert scene.line.ask(ListJobs()).get(timeout=WAIT_S) == NOBODY_YET
    assert len(times) == 3


def test_when_nobody_leads_for_too_long_or_a_leader_does_not_answer_that_is_said(scene: Scene) -> None:
    with pytest.raises(NoLeader, match=r"no JobManager has led cluster 'trial' for 0\.05 s"):
        scene.line.ask(ListJobs(), patience_ms=50).get(timeout=WAIT_S)
    silent, _ = scene.silent("silent")
    scene.leaders.is_now(silent)
    with pytest.raises(AskTimeout):
        scene.line.ask(ListJobs(), patience_ms=50).get(timeout=WAIT_S)


def test_who_waits_for_a_leader_is_told_so_once_and_for_how_long(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(NoLeader):
        scene.line.ask(ListJobs(), patience_ms=1_500).get(timeout=WAIT_S)
    with pytest.raises(NoLeader):
        scene.line.ask(ListJobs(), patience_ms=1_500).get(timeout=WAIT_S)
    assert caplog.messages == [
        "no JobManager leads cluster 'trial' now: waiting for one that does, 1.5 s at most from when it was asked"
    ]


def test_who_waits_for_a_leader_that_is_silent_is_told_so(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    silent, _ = scene.silent("silent")
    scene.leaders.is_now(silent)
    with pytest.raises(AskTimeout):
        scene.line.ask(ListJobs(), patience_ms=1_500).get(timeout=WAIT_S)
    assert caplog.messages == [
        f"the JobManager at {silent.address}, which was the last to lead cluster 'trial', has not answered for 1 s: "
        "waiting for it or the next one, 1.5 s at most from when it was asked"
    ]


def test_a_last_leader_that_is_gone_is_named_when_no_other_one_comes(scene: Scene) -> None:
    """Until the next one leads, storage names the one that was killed."""
    gone = scene.manager("gone", lambda _: NOBODY_YET)
    scene.leaders.is_now(gone)
    gone.shutdown()
    with pytest.raises(NoLeader, match=rf"{gone.address}, the last to lead it, cannot be reached"):
        scene.line.ask(ListJobs(), timeout_ms=30_000, patience_ms=5_000).get(timeout=WAIT_S)


class Keyed(Scene):
    """Where client and cluster have a key."""

    def __init__(self, stack: ExitStack) -> None:
        self.keys: CurveKeys | None = CurveKeys.generate()
        super().__init__(stack)

    def _system(self, name: str) -> ActorSystem:
        system = ActorSystem(name, bind="tcp://127.0.0.1:0", curve=self.keys).start()
        self._stack.callback(system.shutdown)
        return system

    def of_another_cluster(self) -> ActorSystem:
        own, self.keys = self.keys, CurveKeys.generate()
        system = self.manager("another", lambda _: NOBODY_YET)
        self.keys = own
        return system


@pytest.fixture
def keyed() -> Iterator[Keyed]:
    with ExitStack() as stack:
        yield Keyed(stack)


@pytest.mark.parametrize("has_answered", [False, True])
def test_a_question_waits_for_the_next_leader_where_another_cluster_has_got_the_port(
    keyed: Keyed, has_answered: bool
) -> None:
    """Until then storage names the leader that was killed. Who has had an answer waits for ever, as for any leader."""
    if has_answered:
        keyed.leaders.is_now(keyed.manager("first", lambda _: NOBODY_YET))
        keyed.line.ask(ListJobs()).get(timeout=WAIT_S)
    keyed.leaders.is_now(keyed.of_another_cluster())
    patience_ms = math.inf if has_answered else WAIT_S * 1000
    answer = keyed.line.ask(ListJobs(), patience_ms=patience_ms)
    with pytest.raises(pykka.Timeout):
        answer.get(timeout=0.7)
    keyed.leaders.is_now(keyed.manager("next", lambda _: NOBODY_YET))
    assert answer.get(timeout=WAIT_S) == NOBODY_YET


def test_a_key_that_is_refused_to_the_end_is_what_is_said(keyed: Keyed) -> None:
    keyed.leaders.is_now(keyed.of_another_cluster())
    with pytest.raises(Unreachable) as caught:
        keyed.line.ask(ListJobs(), timeout_ms=30_000, patience_ms=2_000).get(timeout=WAIT_S)
    assert caught.value.is_refused
    with pytest.raises(Unreachable):
        keyed.line.ask(ListJobs()).get(timeout=WAIT_S)  # for ever; no leader has ever taken this key
    with pytest.raises(Unreachable):
        keyed.line.ask(TriggerSavepoint(JOB), patience_ms=WAIT_S * 1000).get(timeout=WAIT_S)


@pytest.mark.parametrize("has_gaps", [False, True], ids=["at once", "after a while without one"])
def test_followers_hear_of_each_next_leader(scene: Scene, has_gaps: bool) -> None:
    heard: list[str] = []
    scene.line.follow(lambda: heard.append(scene.line.job_manager.address))
    systems = [scene.manager(name, lambda _: NOBODY_YET) for name in ("first", "second", "third")]
    for system in systems:
        if has_gaps:
            scene.leaders.is_now(None)
        scene.leaders.is_now(system)
        scene.line.ask(ListJobs()).get(timeout=WAIT_S)
    assert heard == [f"{each.address}/job-manager" for each in systems[1:]]


def test_what_is_open_fails_when_the_client_is_closed(scene: Scene) -> None:
    answer = scene.line.ask(ListJobs())
    scene.line.close()
    assert scene.leaders.is_closed
    scene.client.shutdown()
    with pytest.raises(ActorDead):
        answer.get(timeout=WAIT_S)


class Prepared:
    """A line on which each question ends as the test has prepared it."""

    job_manager = None

    def __init__(self, *outcomes: JobStatus | AskFailed) -> None:
        self.outcomes = list(outcomes)
        self.followers: list[Callable[[], None]] = []

    def follow(self, callback: Callable[[], None]) -> None:
        self.followers.append(callback)


def listening(
    scene: Scene, *outcomes: JobStatus | AskFailed
) -> tuple[Prepared, queue.SimpleQueue[JobStatus], list[str]]:
    """A client of a job that listens: its line, the statuses that it hears, and why it gives the job up."""
    line, heard, lost = Prepared(*outcomes), queue.SimpleQueue[JobStatus](), list[str]()

    class Client(FollowingClient):
        def ask(self, message: Any, *, timeout_ms: float | None = None) -> ActorFuture[Any]:
            answer: ActorFuture[Any] = ActorFuture()
            outcome = line.outcomes.pop(0)
            if isinstance(outcome, AskFailed):
                answer.try_fail(outcome)
            else:
                answer.try_set(SimpleNamespace(status=outcome))
            return answer

    client = Client(scene.client, cast("Any", line), JOB, lost.append)
    client.listen(lambda event: heard.put(event.status))
    return line, heard, lost


def following(scene: Scene, *outcomes: JobStatus | AskFailed) -> tuple[Prepared, list[JobStatus], list[str]]:
    """The same when a next leader is there, with all the statuses."""
    line, heard, lost = listening(scene, *outcomes)
    for follower in line.followers:
        follower()
    wanted = [each for each in outcomes[1:] if isinstance(each, JobStatus)]
    return line, [heard.get(timeout=WAIT_S) for _ in wanted], lost


def test_a_next_leader_that_is_slow_is_asked_again_and_the_job_is_not_lost(scene: Scene) -> None:
    slow = AskTimeout("tcp://127.0.0.1:1/job-manager", "no answer")
    line, heard, lost = following(scene, JobStatus.RUNNING, slow, slow, JobStatus.RESTARTING)
    assert (line.outcomes, heard, lost) == ([], [JobStatus.RESTARTING], [])


def test_a_client_that_was_away_asks_the_same_leader_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its machine slept while the job ended; a JobManager forgets those that it has not reached for ten minutes."""
    monkeypatch.setattr("understudy.runtime.clusters.client.RENEW_MS", 1)
    slow = AskTimeout("tcp://127.0.0.1:1/job-manager", "no answer")
    line, heard, lost = listening(scene, JobStatus.RUNNING, JobStatus.RUNNING, slow, JobStatus.FINISHED)
    assert heard.get(timeout=WAIT_S) is JobStatus.FINISHED
    assert (line.outcomes, heard.empty(), lost) == ([], True, [])


def test_one_that_does_not_know_the_job_has_lost_it(scene: Scene) -> None:
    unknown = RemoteActorError("tcp://127.0.0.1:1/job-manager", "UnknownJob", "no job 'job-1' here", "")
    _, heard, (why,) = following(scene, JobStatus.RUNNING, unknown)
    assert (heard, "the next leader does not go on with it" in why) == ([], True)


def numbers(count: int | None) -> StreamEnvironment:
    env = environment()
    env.generate(lambda index: index, count, records_per_second=10).collect(name="out")
    return env


def test_a_job_that_was_forgotten_while_its_client_was_away_is_lost(
    start_cluster: Callable[..., LocalCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has ended, and so have as many others since as a JobManager keeps. A real one, and a real answer of it."""
    monkeypatch.setattr("understudy.runtime.clusters.client.RENEW_MS", 1)
    monkeypatch.setattr("understudy.actors.job_manager.job_manager.ENDED_JOBS_KEPT", 1)
    cluster, leaders, lost = start_cluster(1), Leaders(), queue.SimpleQueue[str]()
    keys = CurveKeys.load(cluster.announce().key_file)
    job = cluster.submit(numbers(None), "forgotten")
    with ExitStack() as stack:
        system = ActorSystem("client", bind="tcp://127.0.0.1:0", curve=keys).start()
        stack.callback(system.shutdown)
        line, heard = LeaderLine(system, leaders, "trial", lambda _: None), list[Any]()
        leader = Leader(cluster.address, LeaderSessionId("the only one"))
        leaders.become(leader)
        FollowingClient(system, line, job.job_id, lost.put).listen(heard.append)
        _cut_off(system, leaders, line, monkeypatch)
        job.cancel()
        cluster.submit(numbers(1), "another").wait(timeout=WAIT_S)
        leaders.become(leader)
        why = lost.get(timeout=WAIT_S)
    assert why.startswith("its JobManager does not know it any more: it had ended before, or is lost: UnknownJob: ")
    assert not [event for event in heard if isinstance(event, JobStatusChanged) and event.status.is_terminal]
    assert job.status is JobStatus.CANCELED


def _cut_off(system: ActorSystem, leaders: Leaders, line: LeaderLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what a JobManager tells nothing arrives at this system any more, and what it asks waits."""

    def tell_the_others(listeners: JobListeners, message: Any) -> None:
        for address, each in listeners._there.items():
            if not address.startswith(system.address):
                each.ref.tell(message)

    monkeypatch.setattr(JobListeners, "tell", tell_the_others)
    leaders.become(None)
    eventually(lambda: any(each.asked is None for each in line._line._open.values()), "a question that waits")
