"""Whose output a file in a shared folder is."""

from __future__ import annotations

from understudy.messages import CheckpointId, JobId, OperatorId, Predecessor
from understudy.runtime.connectors.files.committed_files import OutputOf, checkpoint_of, fingerprint

OUT = OperatorId("out-1")


def name(job: str, checkpoint: int, operator: str = "out1") -> str:
    return f"part-{operator}-00000-{checkpoint:010d}-{fingerprint(job)}-0-attempt.parquet"


def test_a_job_has_its_own_files_and_no_other_jobs() -> None:
    mine, others = [name("a", 1), name("a", 2)], [name("b", 1), "part-00000-by-spark.parquet", "_SUCCESS", ".hidden"]
    assert OutputOf(JobId("a"), OUT).among([*others, *reversed(mine)]) == mine


def test_two_sinks_in_one_folder_are_told_apart() -> None:
    files = [name("a", 1), name("a", 1, "out2"), name("a", 1, "out12")]
    assert OutputOf(JobId("a"), OUT).among(files) == [name("a", 1)]


def test_of_the_jobs_before_it_a_job_has_what_they_committed_until_it_took_over() -> None:
    """The first was continued at 3, its successor at 5: what either committed later was done again."""
    output = OutputOf(
        JobId("c"), OUT, (Predecessor(JobId("a"), CheckpointId(3)), Predecessor(JobId("b"), CheckpointId(5)))
    )
    files = {job: [name(job, checkpoint) for checkpoint in range(1, 8)] for job in "abcd"}
    found = output.among([each for names in files.values() for each in names])
    assert {job: [checkpoint_of(each) for each in found if each in files[job]] for job in "abcd"} == {
        "a": [1, 2, 3],
        "b": [1, 2, 3, 4, 5],
        "c": [1, 2, 3, 4, 5, 6, 7],
        "d": [],
    }
