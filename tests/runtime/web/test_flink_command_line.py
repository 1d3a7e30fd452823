"""Apache Flink's own command line on our jobs: list, savepoint, stop, cancel, dispose. Its jars (329 MB, of the PyPI
wheel apache-flink-libraries) are those that the benchmarks fetch; UNDERSTUDY_FLINK_LIB names another folder of them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from understudy import LocalCluster, StreamEnvironment
from understudy.messages import JobStatus
from understudy.runtime.web.java_throwable import LONGEST, failure_cause

_FETCHED = Path("/tmp/understudy-benchmarks/venvs/flink/lib")
LIB = os.environ.get("UNDERSTUDY_FLINK_LIB") or next(map(str, _FETCHED.glob("*/site-packages/pyflink/lib")), "")
HAS_FLINK = bool(LIB) and shutil.which("java") is not None


def job(folder: Path) -> StreamEnvironment:
    env = StreamEnvironment(checkpoint_dir=str(folder), checkpoint_interval_ms=200)
    numbers = env.generate(lambda index: index, None, records_per_second=500, name="numbers")
    numbers.key_by(lambda number: number % 4).reduce(max, name="greatest").filter(lambda _: False).print()
    return env


@pytest.mark.slow
@pytest.mark.processes
@pytest.mark.skipif(not HAS_FLINK, reason="no java, or no jars of Flink (python -m benchmarks --peers flink)")
def test_flinks_own_command_line_lists_savepoints_stops_cancels_and_disposes(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text("rest.port: 8081\n")

    with LocalCluster(task_managers=1, web_port=0) as cluster:
        assert cluster.web_url is not None
        where = cluster.web_url.removeprefix("http://").rstrip("/")

        def flink(verb: str, *arguments: str, fails: bool = False) -> str:
            command = ["java", "-cp", f"{LIB}/*", "org.apache.flink.client.cli.CliFrontend", verb, "-m", where]
            environment = {**os.environ, "FLINK_CONF_DIR": str(tmp_path / "conf")}
            done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment, timeout=120)
            assert (done.returncode != 0) is fails, done.stdout + done.stderr
            return done.stdout + done.stderr

        first = cluster.submit(job(tmp_path / "one"), name="first")
        second = cluster.submit(job(tmp_path / "two"), name="second")
        for each in (first, second):
            each.ready().result(timeout=60)
        one, two = (each.job_id.removeprefix("job-") for each in (first, second))
        listed = flink("list")
        assert f"{one} : first (RUNNING)" in listed
        assert f"{two} : second (RUNNING)" in listed

        path = re.findall(r"Savepoint completed. Path: (\S+)", flink("savepoint", one, "nightly"))[0]
        assert Path(path).exists()
        assert "Savepoint '" in flink("savepoint", "-d", path)
        assert not Path(path).exists()

        taken = re.findall(r"Checkpoint (\d+) for job \S+ completed", flink("checkpoint", one))
        assert first.trigger_checkpoint().result(timeout=60).checkpoint_id > int(taken[0])
        assert re.search(r"Checkpoint\(FULL\) \d+ for job \S+ completed", flink("checkpoint", "--full", one))

        refused = flink("savepoint", one, "/etc", fails=True)
        assert "/etc" in refused
        assert "NullPointerException" not in refused
        assert "not" in flink("cancel", "0" * 32, fails=True)

        stopped = flink("stop", "--savepointPath", "last", one)
        assert "Savepoint completed. Path: " in stopped
        assert first.wait(timeout=60).status is JobStatus.FINISHED
        flink("cancel", two)
        assert flink("list", "-a").count("(CANCELED)") == 1


@pytest.mark.parametrize("text", ["", "no", "ä → 🙂 \0 \udc80", "x" * 100_000, "ä" * 50_000])
def test_a_failure_is_written_as_java_reads_it(text: str) -> None:
    import base64

    cause = failure_cause(text)
    written = base64.b64decode(cause["serialized-throwable"])
    assert written.startswith(b"\xac\xed\x00\x05sr\x00\x29org.apache.flink.util.SerializedThrowable")
    assert b"@MESSAGE@" not in written
    assert b"@STACK@" not in written
    at = written.index(b"java/util/List;xpp\x74") + 19
    size = int.from_bytes(written[at : at + 2], "big")
    assert size <= LONGEST
    shown = written[at + 2 : at + 2 + size].decode()
    assert shown.replace("?", "") == "".join(c for c in text if c not in "\0\udc80🙂")[: len(shown.replace("?", ""))]
    assert written[at + 2 + size :].startswith(b"ur\x00\x1e[Ljava.lang.StackTraceElement;")
