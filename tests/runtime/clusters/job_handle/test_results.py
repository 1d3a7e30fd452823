"""JobHandle: the results of a job, as records and as a DataFrame."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from understudy.messages import (
    JobStatus,
    pack_plain,
)
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.clusters.job_errors import (
    ResultsUnavailable,
    UnknownOperator,
)
from understudy.runtime.clusters.job_handle import JobHandle
from understudy.runtime.connectors import FileSink
from understudy.runtime.connectors.files.committed_files import fingerprint

from .clients import Client, translated


class TestResults:
    @pytest.fixture
    def job(self, client: Client, tmp_path: Path) -> JobHandle:
        env = StreamEnvironment(checkpoint_dir=str(tmp_path))
        stream = env.from_collection([1])
        stream.collect(name="collected")
        stream.sink_to(FileSink(str(tmp_path / "out"), format="csv"), name="files")
        return JobHandle(client, translated(env, job_id="job-7"))

    def test_results_are_what_has_been_committed(self, job: JobHandle, client: Client, tmp_path: Path) -> None:
        assert job.results("collected") == []
        records = pack_plain(["one", "two"])
        directory = tmp_path / "collected" / "job-7" / "collected"
        directory.mkdir(parents=True)
        content = len(records).to_bytes(4, "big") + records
        for job_id in ("job-7", "job-8"):
            name = f"part-collected-00000-0000000001-{fingerprint(job_id)}-0-attempt.records"
            (directory / name).write_bytes(content)
        assert job.results("collected") == ["one", "two"]

    def test_results_outlive_the_clusters_files(self, job: JobHandle, client: Client, tmp_path: Path) -> None:
        self.test_results_are_what_has_been_committed(job, client, tmp_path)
        client.move(JobStatus.FINISHED)
        job.wait(timeout=10)
        shutil.rmtree(tmp_path)
        assert job.results("collected") == ["one", "two"]

    def test_a_dataframe_of_what_a_file_sink_wrote(self, job: JobHandle, client: Client, tmp_path: Path) -> None:
        with pytest.raises(ResultsUnavailable, match="job 'job' is created; its output is whole once it has finished"):
            job.to_dataframe("files", None)
        client.move(JobStatus.FINISHED)
        with pytest.raises(ResultsUnavailable, match=r"job 'job' has committed no record to .*out"):
            job.to_dataframe("files", None)
        (tmp_path / "out").mkdir()
        mine = f"part-files-00000-0000000001-{fingerprint('job-7')}-0-attempt.csv"
        for name in (mine, mine.replace("files", "other"), mine.replace(fingerprint("job-7"), fingerprint("job-8"))):
            (tmp_path / "out" / name).write_text("a\n1\n")
        reader = Reader()
        assert job.to_dataframe("files", reader) == f"csv ['{tmp_path}/out/{mine}']"
        assert reader.chosen == {"header": "true", "inferSchema": "true"}

    def test_a_sink_of_another_kind_or_none(self, job: JobHandle, client: Client) -> None:
        client.move(JobStatus.FINISHED)
        with pytest.raises(ResultsUnavailable, match="sink 'files' is a FileSink; results come from collect"):
            job.results("files")
        with pytest.raises(
            ResultsUnavailable, match="'collected' is a CollectSink; a DataFrame is read from a FileSink"
        ):
            job.to_dataframe("collected", Reader())
        with pytest.raises(UnknownOperator, match="job 'job' has no sink 'out'; it has collected, files"):
            job.results("out")


class Reader:
    """A SparkSession that tells what it is asked to read."""

    def __init__(self) -> None:
        self.read = self
        self.chosen: dict[str, str] = {}
        self.kind = ""

    def format(self, kind: str) -> Reader:
        self.kind = kind
        return self

    def options(self, **options: str) -> Reader:
        self.chosen = options
        return self

    def load(self, path: list[str]) -> str:
        return f"{self.kind} {path}"
