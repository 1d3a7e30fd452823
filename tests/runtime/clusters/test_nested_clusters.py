"""A module that starts a cluster where it is imported: its TaskManagers import it, and do not start clusters again."""

from __future__ import annotations

from pathlib import Path

import pytest

from understudy import InvalidProgram, LocalCluster
from understudy.runtime.clusters.as_task_manager import as_task_manager

from ...prepared import Prepared

APP = """
from understudy import KeyedOperator, LocalCluster, StreamEnvironment

class Same(KeyedOperator):
    def process(self, record, out):
        out.collect(record)

env = StreamEnvironment(parallelism=1)
env.from_collection([1]).key_by(lambda record: record).process(Same).collect(name="out")
with LocalCluster(task_managers=1) as cluster:
    cluster.submit(env, name="app").wait()
"""


def test_no_cluster_starts_in_a_task_manager() -> None:
    cluster = LocalCluster()
    with as_task_manager("orders"), pytest.raises(InvalidProgram, match=f"of job 'orders', .* at {__file__}:"):
        cluster.start()
    with cluster:
        pass


@pytest.mark.processes
def test_the_job_ends_and_names_the_line(tmp_path: Path, prepared: Prepared) -> None:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "run.py").write_text("import app\n")
    done = prepared.run("run.py", folder=tmp_path)
    assert done.returncode == 1
    line = APP.splitlines().index("with LocalCluster(task_managers=1) as cluster:") + 1
    assert "a cluster was to start in a TaskManager of job 'app', which imports this module to run" in done.stderr
    assert f"at {tmp_path}/app.py:{line}: write that line, and what goes with it, below" in done.stderr
