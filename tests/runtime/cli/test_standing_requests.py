"""What a client asks of, and sends to, processes that stand alone, while TaskManagers of its job come and go."""

from __future__ import annotations

import time
from typing import Any

import pytest

from understudy import InletClosed, KeyWanted, NotRunning, RemoteActorError
from understudy.messages import JobStatus

from ..clusters.jobs import Counting, Gate, Witness, counting
from .conftest import WAIT_S
from .yard import Yard, yard

__all__ = ["yard"]


def test_an_inlet_outlives_the_task_managers_of_its_job_and_not_the_job(yard: Yard) -> None:
    """What the JobManager says of them comes from another process here, as the names of errors and their texts."""
    yard.start("jobmanager")
    yard.start("taskmanager")
    with yard.cluster() as cluster:
        env = yard.environment()
        env.from_inlet("numbers").collect(name="out")
        job = cluster.submit(env, "sending")
        witness, inlet = Witness(job), job.inlet("numbers")
        sent = [inlet.send(0)]
        for killed in range(1, 4):
            sent[-1].result(WAIT_S)
            pids = witness.pids(1)
            sent += [inlet.send(number) for number in range(500)]
            witness.kill(pids[0])
            sent += [inlet.send(killed)]
        assert sent[-1].result(WAIT_S) == len(sent)
        job.cancel().result(WAIT_S)
        witness.status(JobStatus.CANCELED)
        with pytest.raises(
            InletClosed, match=r"takes no more records: operator 'numbers': not running: .*the job is canceled"
        ):
            inlet.send(5).result(WAIT_S)


def test_a_question_that_waits_outlives_the_task_manager_that_was_asked(yard: Yard) -> None:
    """It gets no answer: the operator holds it back until its process is killed."""
    yard.start("jobmanager")
    yard.start("taskmanager")
    gate, has_come = Gate(yard.folder), yard.folder / "has-come"

    class Slow(Counting):
        def on_receive(self, message: Any) -> Any:
            has_come.touch()
            while not gate.is_open:
                time.sleep(0.01)
            return "at last"

    with yard.cluster() as cluster:
        env = yard.environment()
        counting(env, None, 100.0, Slow).collect(name="all")
        job = cluster.submit(env, "asked")
        witness = Witness(job)
        pids = witness.pids(1)
        job.ready().result(WAIT_S)
        at_once = job.ask("count", message="seen", key=3, wait=False)
        waiting = job.ask("count", message="seen", key=3, wait_ms=1000 * WAIT_S)
        yard.until(has_come.exists, "a question that has come")
        witness.kill(pids[0])
        with pytest.raises(NotRunning, match=r"its TaskManager was lost before it answered: .*; ask again"):
            at_once.result(WAIT_S)
        gate.open()
        assert waiting.result(WAIT_S) == "at last"
        job.cancel().result(WAIT_S)


def test_what_an_operator_raises_when_asked_is_named_as_in_a_cluster_of_its_own(yard: Yard) -> None:
    """The JobManager is a process between: its name and address stood for the operator's."""
    yard.start("jobmanager")
    yard.start("taskmanager")
    with yard.cluster() as cluster:
        counting(env := yard.environment(), None, 100.0).collect(name="all")
        job = cluster.submit(env, "asked")
        job.ready().result(WAIT_S)
        with pytest.raises(RemoteActorError, match=r"^operator 'count': ValueError: no luck$") as caught:
            job.ask("count", message=["raise", "no luck"], key=3).result(WAIT_S)
        assert caught.value.type_name == "ValueError"
        with pytest.raises(KeyWanted, match=r"^operator 'count': keyed state 'seen' was used .*: ask with key="):
            job.ask("count", message="seen").result(WAIT_S)
        job.cancel().result(WAIT_S)
