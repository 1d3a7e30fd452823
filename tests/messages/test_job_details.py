"""JobDetails in a line, as `print(job.wait())` shows them."""

from __future__ import annotations

from understudy.messages import CheckpointId, FailureCause, JobDetails, JobId, JobStatus


def test_a_job_that_has_finished_is_one_short_line() -> None:
    details = JobDetails(JobId("job-7"), "orders", JobStatus.FINISHED, 0, (), 12, CheckpointId(12), "/ck/chk-12", ())
    assert str(details) == "job 'orders' (job-7): finished, restarts: 0, completed checkpoints: 12"


def test_the_last_failure_and_what_is_left_are_named() -> None:
    failures = (FailureCause("OSError", "full"), FailureCause("ValueError", "no price\nin record 7"))
    left = {"retained_checkpoint_path": "/ck/chk-3", "restarted_as": "job-8"}
    details = JobDetails(
        JobId("job-7"), "orders", JobStatus.FAILED, 1, failures, 3, CheckpointId(3), "/ck/chk-3", (), **left
    )
    assert str(details) == (
        "job 'orders' (job-7): failed, restarts: 1, completed checkpoints: 3, last failure: ValueError: no price, "
        "kept checkpoint: /ck/chk-3, restarted as job-8"
    )


def test_a_cell_of_a_notebook_shows_the_line() -> None:
    details = JobDetails(JobId("job-7"), "orders", JobStatus.FINISHED, 0, (), 12, CheckpointId(12), "/ck/chk-12", ())
    shown: list[str] = []
    details._repr_pretty_(Printer(shown), False)
    assert shown == [str(details)]


class Printer:
    """IPython's, as far as it is used."""

    def __init__(self, shown: list[str]) -> None:
        self.text = shown.append
