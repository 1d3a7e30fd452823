"""A job that is started again from a savepoint, by REST and by the page: each record counts once, and what cannot be is
refused with why, having changed nothing.
"""

from __future__ import annotations

import json
import time
import urllib.error
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from understudy import FileSink, JobCanceled, JobHandle, LocalCluster, RemoteCluster, asgi_app
from understudy.messages import JobStatus
from understudy.runtime.savepoints.found import follow
from understudy.runtime.system import CurveKeys
from understudy.runtime.web.server import WebServer

from ..web.browser import needs_chromium, page_of
from .jobs import (
    WAIT_S,
    Counting,
    Gate,
    Heavy,
    Witness,
    counted,
    counting,
    counts_of,
    environment,
    eventually,
    read_output,
)
from .test_web import ask

Start = Callable[..., LocalCluster]
COUNT = 2_400
RATE = 4_000.0


def submitted(cluster: LocalCluster, folder: Path, gate: Gate, **options: Any) -> JobHandle:
    """A job that has begun to count, and ends when the gate is open."""
    env = environment(checkpoint_dir=str(folder / "checkpoints"))
    counted_records = counting(env, COUNT, RATE, gate=gate)
    counted_records.collect(name="out")
    counted_records.sink_to(FileSink(str(folder / "files"), "jsonl"), name="files")
    job = cluster.submit(env, name="numbers", **options)
    Witness(job).checkpoints(2)
    return job


def hexed(job: JobHandle) -> str:
    return job.job_id.removeprefix("job-")


def settled(url: str, jid: str, body: Any) -> Any:
    """What becomes of a restart."""
    ordered = ask(url, f"jobs/{jid}/restart", body)
    found: dict[str, Any] = {}

    def is_there() -> bool:
        found.update(ask(url, f"jobs/{jid}/restart/{ordered['request-id']}"))
        return bool(found["status"]["id"] == "COMPLETED")

    eventually(is_there, "the restart")
    return found["operation"]


def refused(url: str, path: str, body: Any) -> tuple[int, str]:
    with pytest.raises(urllib.error.HTTPError) as error:
        ask(url, path, body)
    (text,) = json.loads(error.value.read())["errors"]
    return error.value.code, text


@pytest.mark.parametrize("asked", ["here", "from another process", "where another process may take over"])
def test_a_stopped_job_is_restarted_where_it_stopped(start_cluster: Start, tmp_path: Path, asked: str) -> None:
    """(a) It has ended. The order is given twice, and is one; the old job says which one goes on. A successor would
    find that one, with its code.
    """
    config = {}
    if asked == "where another process may take over":
        CurveKeys.generate().save(str(tmp_path / "key"))
        config = {
            "recovery.mode": "storage",
            "high-availability.storageDir": str(tmp_path / "kept"),
            "high-availability.key-file": str(tmp_path / "key"),
            "high-availability.cluster-id": "own",
        }
    cluster, gate = start_cluster(2, web_port=0, config=config), Gate(tmp_path)
    job = submitted(cluster, tmp_path, gate)
    path = job.stop_with_savepoint().result(timeout=WAIT_S)
    job.wait(timeout=WAIT_S)
    with RemoteCluster(cluster.address, cluster._curve) as client, WebServer(asgi_app(client)) as server:
        url = server.url if asked == "from another process" else cluster.web_url
        assert url is not None
        again = {"savepointPath": path, "triggerId": "5" * 32}
        first = settled(url, hexed(job), again)
        assert settled(url, hexed(job), again) == first
        view = ask(url, f"jobs/{first['jobid']}")
        assert (view["name"], view["jid"]) == ("numbers", first["jobid"])
        assert len(ask(url, "jobs")["jobs"]) == 2
        code, text = refused(url, f"jobs/{hexed(job)}/restart", {"savepointPath": path})
        assert code == 409
        assert f"job job-{first['jobid']} goes on in its place" in text
    assert job.details().restarted_as == f"job-{first['jobid']}"
    old, new = cluster.handles
    assert (old, hexed(new)) == (job, first["jobid"])
    assert new.restored_from is not None
    assert new.restored_from.path == path
    if config:
        assert [each.name for each in (tmp_path / "kept/own/submissions").iterdir()] == [new.job_id]
    gate.open()
    assert new.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    assert counts_of(new.results("out")) == counted(COUNT)
    assert read_output(tmp_path / "files", "jsonl") == counted(COUNT)


def test_a_running_job_is_cancelled_and_restarted(start_cluster: Start, tmp_path: Path) -> None:
    """(b) Its old handle hears which job goes on. What was committed since the savepoint comes twice, as is said; what
    the new job gives is exact. A job that was restarted can be restarted.
    """
    cluster, gate = start_cluster(2, web_port=0), Gate(tmp_path)
    url = cluster.web_url
    assert url is not None
    job = submitted(cluster, tmp_path, gate)
    path = job.trigger_savepoint().result(timeout=WAIT_S)
    Witness(job).checkpoints(1)
    code, text = refused(url, f"jobs/{hexed(job)}/restart", {"savepointPath": path})
    assert (code, 'say "cancelJob": true' in text) == (409, True)
    new_ids = [settled(url, hexed(job), {"savepointPath": path, "cancelJob": True})["jobid"]]
    with pytest.raises(JobCanceled, match=f"goes on as job job-{new_ids[0]}"):
        job.wait(timeout=WAIT_S)
    new_ids.append(settled(url, new_ids[0], {"savepointPath": path, "cancelJob": True})["jobid"])
    newest = cluster.handles[-1]
    assert [hexed(each) for each in cluster.handles[1:]] == new_ids
    gate.open()
    newest.wait(timeout=WAIT_S)
    assert counts_of(newest.results("out")) == counted(COUNT)


def test_a_savepoint_that_cannot_be_used_is_refused_and_the_job_goes_on(start_cluster: Start, tmp_path: Path) -> None:
    """Unknown, outside of the roots, damaged, of another program: the job is not cancelled for it."""
    cluster, gate = start_cluster(2, web_port=0), Gate(tmp_path)
    url = cluster.web_url
    assert url is not None
    job = submitted(cluster, tmp_path, gate)
    path = job.trigger_savepoint().result(timeout=WAIT_S)
    other_env = environment(checkpoint_dir=str(tmp_path / "checkpoints"))
    counting(other_env, None, 500.0, type("Else", (Counting,), {})).uid("other").collect(name="others")
    other = cluster.submit(other_env, name="other")
    Witness(other).checkpoints(1)
    of_another = other.stop_with_savepoint().result(timeout=WAIT_S)
    other.wait(timeout=WAIT_S)
    secret = tmp_path / "secret"
    secret.write_text("not to be read")
    Path(f"{path}-junk").write_text("not to be read")
    for wrong, why in {
        f"{path}-not": "cannot be started from",
        "../../etc/passwd": "cannot be started from",
        f"{Path(path).parent}/../../secret": "cannot be started from",
        str(secret): "cannot be started from",
        "/etc/passwd": "cannot be started from",
        f"{path}-junk": "cannot be started from",
        of_another: "does not fit the program 'numbers'",
        f"{tmp_path}/checkpoints/{job.job_id}/chk-1": "a checkpoint of it may go while it is cancelled",
    }.items():
        outcome = settled(url, hexed(job), {"savepointPath": wrong, "cancelJob": True})
        said = outcome["failure-cause"]["stack-trace"]
        assert why in said, (wrong, said)
        assert "not to be read" not in said
    assert refused(url, f"jobs/{hexed(job)}/restart", {"savepointPath": "a\0b"})[0] == 400
    assert refused(url, f"jobs/{hexed(job)}/restart", {})[0] == 400
    assert refused(url, f"jobs/{'9' * 32}/restart", {"savepointPath": path})[0] == 404
    assert job.details().restarted_as == ""
    assert job.status is JobStatus.RUNNING
    assert len(cluster.handles) == 2
    gate.open()
    job.wait(timeout=WAIT_S)
    assert counts_of(job.results("out")) == counted(COUNT)


class SlowToEnd(Heavy):
    def close(self) -> None:
        time.sleep(3)


def test_the_state_of_a_savepoint_is_read_before_and_kept_until_the_job_is_restarted(
    start_cluster: Start, tmp_path: Path
) -> None:
    """A savepoint with a damaged byte is refused, and the job goes on; one that is needed cannot be disposed of."""
    cluster, gate = start_cluster(2, web_port=0), Gate(tmp_path)
    url = cluster.web_url
    assert url is not None
    env = environment(checkpoint_dir=str(tmp_path / "checkpoints"), state_backend="filesystem")
    counting(env, COUNT, RATE, SlowToEnd, gate=gate).collect(name="out")
    job = cluster.submit(env, name="numbers")
    Witness(job).checkpoints(2)
    path = job.trigger_savepoint().result(timeout=WAIT_S)
    order = {"savepointPath": path, "cancelJob": True}
    state = next((tmp_path / "checkpoints" / follow(path).metadata).parent.glob("count-0-*"))
    whole = state.read_bytes()
    state.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert "corrupt state" in settled(url, hexed(job), order)["failure-cause"]["stack-trace"]
    assert job.status is JobStatus.RUNNING
    state.write_bytes(whole)
    ordered = ask(url, f"jobs/{hexed(job)}/restart", order)
    eventually(lambda: job.status is JobStatus.CANCELLING, "the job to be cancelled")
    disposal = ask(url, "savepoint-disposal", {"savepoint-path": path})
    with pytest.raises(JobCanceled):
        job.wait(timeout=WAIT_S)
    refusal = ask(url, f"savepoint-disposal/{disposal['request-id']}")["operation"]["failure-cause"]["stack-trace"]
    assert f"job {job.job_id} is just being restarted from it" in refusal
    at = f"jobs/{hexed(job)}/restart/{ordered['request-id']}"
    eventually(lambda: ask(url, at)["status"]["id"] == "COMPLETED", "the restart")
    gate.open()
    new = cluster.handles[-1]
    assert new.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    assert counts_of(new.results("out")) == counted(COUNT)


def test_jobs_that_cannot_be_restarted_say_why(start_cluster: Start, tmp_path: Path) -> None:
    """One that owns its name; and one whose JobManager is gone, of which the history is left."""
    cluster, gate = start_cluster(2, web_port=0, history_dir=str(tmp_path / "ended")), Gate(tmp_path)
    url = cluster.web_url
    assert url is not None
    job = submitted(cluster, tmp_path, gate, resume="latest")
    path = job.stop_with_savepoint().result(timeout=WAIT_S)
    job.wait(timeout=WAIT_S)
    code, text = refused(url, f"jobs/{hexed(job)}/restart", {"savepointPath": path})
    assert (code, "start its program again" in text) == (409, True)
    eventually(lambda: list((tmp_path / "ended").glob("*.job")), "the job in the history")
    cluster.close()
    later = start_cluster(1, web_port=0, history_dir=str(tmp_path / "ended"))
    assert later.web_url is not None
    code, text = refused(later.web_url, f"jobs/{hexed(job)}/restart", {"savepointPath": path})
    assert (code, "the JobManager that had its program has ended" in text) == (409, True)


@pytest.mark.slow
@needs_chromium
def test_the_page_restarts_a_job_that_runs_and_one_that_was_stopped(start_cluster: Start, tmp_path: Path) -> None:
    """From the head of a job that runs, by a savepoint that the page takes; and from the list of savepoints."""
    cluster, gate = start_cluster(2, web_port=0), Gate(tmp_path)
    job = submitted(cluster, tmp_path, gate)
    with page_of(f"{cluster.web_url}#/{hexed(job)}") as page:
        page.get_by_role("button", name="Savepoint…").click()
        page.get_by_role("button", name="Take it").click()
        page.locator(".notes .ok code").wait_for()
        page.get_by_role("link", name="Checkpoints").click()
        page.get_by_role("button", name="Restart from it…").wait_for()
        page.get_by_role("button", name="Restart…").click()
        assert "come twice" in page.locator("dialog .alert").inner_text()
        path = page.get_by_label("Savepoint", exact=True).input_value()
        page.get_by_role("button", name="Leave it").click()
        page.locator("dialog").wait_for(state="detached")
        assert job.status is JobStatus.RUNNING
        page.get_by_role("button", name="Restart…").click()
        page.get_by_role("button", name="Cancel and restart it").click()
        page.wait_for_url(lambda url: hexed(job) not in url)
        page.locator(".vertex.is-running").first.wait_for()
        second = cluster.handles[-1]
        assert hexed(second) in page.url
        assert second.restored_from is not None
        assert second.restored_from.path == path
        page.get_by_role("button", name="Stop…").click()
        page.get_by_role("button", name="Stop it").click()
        page.locator(".pill.is-finished").wait_for()
        page.get_by_role("link", name="Checkpoints").click()
        page.get_by_role("button", name="Restart from it…").click()
        page.get_by_role("button", name="Restart it", exact=True).click()
        page.wait_for_url(lambda url: hexed(second) not in url)
        page.locator(".vertex.is-running").first.wait_for()
        third = cluster.handles[-1]
        page.goto(f"{cluster.web_url}#/{hexed(second)}")
        page.get_by_role("link", name=third.job_id).click()
        page.locator(".pill.is-running").wait_for()
        gate.open()
        page.locator(".pill.is-finished").wait_for()
    assert third.wait(timeout=WAIT_S).status is JobStatus.FINISHED
    assert counts_of(third.results("out")) == counted(COUNT)


def test_a_restarted_job_is_stopped_as_the_first_one_is(start_cluster: Start, tmp_path: Path) -> None:
    """`understudy run` has submitted it, say, whose user writes no Python."""
    cluster = start_cluster(web_port=0)
    gate = Gate(tmp_path)
    env = environment(checkpoint_dir=str(tmp_path / "checkpoints"))
    counting(env, COUNT, RATE, gate=gate).collect(name="out")
    job = cluster.submit_translated(cluster.translate(env, "numbers"), stop_call="`understudy stop numbers`")
    Witness(job).checkpoints(1)
    path = job.stop_with_savepoint().result(WAIT_S)
    job.wait(timeout=WAIT_S)
    assert cluster.web_url is not None
    settled(cluster.web_url, hexed(job), {"savepointPath": path})
    first, second = cluster.handles
    assert first._stop_call == second._stop_call == "`understudy stop numbers`"
    gate.open()
    second.wait(timeout=WAIT_S)
