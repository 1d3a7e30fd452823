"""A module that starts a cluster where it is imported: its TaskManagers import it, and do not start clusters again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from understudy import InvalidProgram, LocalCluster
from understudy.runtime.clusters.as_task_manager import as_task_manager, preparing_task_managers

from ...prepared import PATIENCE_SECONDS, Prepared

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


def test_none_starts_in_a_process_that_prepares_task_managers() -> None:
    said = rf"which imports this file, as '{__name__}', at {__file__}:\d+\. If that is the name of a library"
    with preparing_task_managers(), pytest.raises(InvalidProgram, match=said):
        LocalCluster().start()
    with LocalCluster():
        pass


@pytest.mark.slow
@pytest.mark.processes
def test_a_script_with_the_name_of_a_library_starts_no_clusters_without_end(tmp_path: Path) -> None:
    """The template imports pandas, which imports `six`, and found the script, which started a cluster, and so on."""
    (tmp_path / "six.py").write_text(APP)
    command = [sys.executable, "six.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == 1
    assert f"imports this file, as 'six', at {tmp_path}/six.py:" in done.stderr
    assert "no TaskManager can start" in done.stderr


@pytest.mark.processes
def test_the_job_ends_and_names_the_line(tmp_path: Path, prepared: Prepared) -> None:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "run.py").write_text("import app\n")
    done = prepared.run("run.py", folder=tmp_path)
    assert done.returncode == 1
    line = APP.splitlines().index("with LocalCluster(task_managers=1) as cluster:") + 1
    assert "a cluster was to start in a TaskManager of job 'app', which imports this module to run" in done.stderr
    assert f"at {tmp_path}/app.py:{line}: write that line, and what goes with it, below" in done.stderr
