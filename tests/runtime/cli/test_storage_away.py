"""recovery.mode storage, in an object store that is away for longer than a leader may be silent: processes as users
start them wait for it, and the job goes on from its newest checkpoint.
"""

from __future__ import annotations

from understudy import FileSink, StandaloneCluster
from understudy.messages import JobStatus

from ...systems.faulty_s3 import FaultyS3, faulty
from ...systems.s3 import S3Server, s3, s3_server
from ..clusters.jobs import Gate, Witness, counted, counting, environment, read_output
from .conftest import WAIT_S
from .yard import Yard, yard

__all__ = ["faulty", "s3", "s3_server", "yard"]

SESSION_MS = 12_000
ASKS_AGAIN = "this JobManager waits to lead, and asks again"


def test_a_leader_whose_storage_is_away_leads_again_when_it_is_back_and_its_job_goes_on(
    s3: S3Server, faulty: FaultyS3, yard: Yard
) -> None:
    yard.shell.env["UNDERSTUDY_STORAGE_TRIES"] = "2"
    bucket = s3.bucket()
    settings = {
        "recovery.mode": "storage",
        "storage.dir": f"s3://{bucket}/storage",
        "high-availability.session-timeout-ms": str(SESSION_MS),
    }
    flags = [part for key, value in settings.items() for part in ("-D", f"{key}={value}")]
    leader, worker = yard.start("jobmanager", *flags), yard.start("taskmanager", *flags)
    yard.until_registered(worker)
    gate, out = Gate(yard.folder), yard.folder / "out"
    with StandaloneCluster(yard.file, flags=settings) as cluster:
        env = environment(
            checkpoint_interval_ms=200,
            checkpoint_dir=f"s3://{bucket}/checkpoints",
            tolerable_checkpoint_failures=10_000,
        )
        counting(env, 1_000, 500.0, gate=gate).sink_to(FileSink(str(out), "jsonl"), name="out")
        job = cluster.submit(env, "numbers")
        witness = Witness(job)
        newest = witness.checkpoints(2)[-1].checkpoint_id
        faulty.always("cut")
        yard.until(lambda: "leads no more" in yard.log("jobmanager"), "a leader that is sure no more")
        yard.until(lambda: yard.log("jobmanager").count(ASKS_AGAIN) >= 2, "a candidate that waits for storage")
        assert f"s3://{bucket}/storage" in yard.log("jobmanager").rpartition(ASKS_AGAIN)[2]
        faulty.fault = lambda _: None
        witness.checkpoints(1)
        restored = job.checkpoint_history().restored_checkpoint_id
        gate.open()
        job.wait(WAIT_S)
        assert job.status is JobStatus.FINISHED
        assert not restored or restored >= newest, "its tasks ran on, or began again from no earlier checkpoint"
        assert read_output(out, "jsonl") == counted(1_000)
    assert yard.end(worker)[0] == 0
    assert yard.end(leader)[0] == 0
