"""The page and REST of clusters of real processes; the history of what has ended; notebooks."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from understudy import (
    InvalidSetting,
    KeyedOperator,
    ListState,
    LocalCluster,
    RemoteCluster,
    UnwritableRoot,
    asgi_app,
)
from understudy.actors.ask_errors import RemoteActorError
from understudy.messages import CheckpointCompleted, JobId, JobStatus, RequestJobView
from understudy.runtime.clusters.remote_errors import Refused
from understudy.runtime.clusters.web import ClusterJobs
from understudy.runtime.web.errors import HttpError
from understudy.runtime.web.server import WebServer
from understudy.state.keys.key_groups import key_group, operator_index_of

from .jobs import Gate, Witness, counting, environment, eventually, generated

Start = Callable[..., LocalCluster]


def ask(url: str, path: str, body: Any = None, method: str | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{url}{path}", data, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def test_a_running_job_is_seen_savepointed_killed_and_stopped_and_then_in_the_history(
    start_cluster: Start, tmp_path: Path
) -> None:
    cluster = start_cluster(2, web_port=0, history_dir=str(tmp_path / "ended"), heartbeat_interval_ms=100)
    url = cluster.web_url
    assert url is not None
    env = environment(checkpoint_dir=str(tmp_path / "checkpoints"))
    counting(env, None, 2_000.0).print()
    job = cluster.submit(env, name="numbers")
    witness = Witness(job)
    witness.checkpoints(1)
    (listed,) = ask(url, "v1/jobs/overview")["jobs"]
    jid = listed["jid"]
    assert f"job-{jid}" == job.job_id

    def rate() -> float:
        found = ask(url, f"jobs/{jid}/vertices/numbers/subtasks/metrics?get=numRecordsInPerSecond&agg=sum")
        return float(found[0]["sum"]) if found else 0.0

    eventually(lambda: rate() > 100, "records of the source")
    ordered = ask(url, f"jobs/{jid}/savepoints", {"target-directory": "nightly"})
    path = _outcome(url, jid, ordered)["location"]
    assert "/savepoints/nightly/" in path
    witness.kill(witness.pids(2)[0])
    eventually(lambda: ask(url, f"jobs/{jid}/exceptions")["root-exception"], "the failure")
    eventually(lambda: ask(url, f"jobs/{jid}")["state"] == "RUNNING", "the restart")
    with_kill = ask(url, f"jobs/{jid}/checkpoints")
    assert with_kill["counts"]["restored"] == 1
    assert len(ask(url, "taskmanagers")["taskmanagers"]) == 2
    assert ask(url, f"jobs/{jid}/vertices/count/backpressure")["subtasks"]
    stopped = _outcome(url, jid, ask(url, f"jobs/{jid}/stop", {"drain": False}))
    assert stopped["location"]
    job.wait(timeout=60)
    eventually(lambda: list((tmp_path / "ended").glob("*.job")), "the job in the history")
    cluster.close()
    assert cluster.web_url is None
    with WebServer(asgi_app(history=tmp_path / "ended")) as server:
        ended = ask(server.url, f"jobs/{jid}")
        assert (ended["state"], ended["name"]) == ("FINISHED", "numbers")
        assert ask(server.url, f"jobs/{jid}/exceptions")["exceptionHistory"]["entries"]
        assert ask(server.url, f"jobs/{jid}/checkpoints")["latest"]["savepoint"]
        with pytest.raises(urllib.error.HTTPError) as refused:
            ask(server.url, f"jobs/{jid}?mode=cancel", method="PATCH")
        assert refused.value.code == 404


def _outcome(url: str, jid: str, ordered: Any) -> Any:
    """Of a savepoint, or of a stop."""
    found: dict[str, Any] = {}

    def is_there() -> bool:
        found.update(ask(url, f"jobs/{jid}/savepoints/{ordered['request-id']}"))
        return bool(found["status"]["id"] == "COMPLETED")

    eventually(is_there, "the savepoint")
    return found["operation"]


def test_from_another_process_through_a_client_with_hostile_orders(start_cluster: Start, tmp_path: Path) -> None:
    """The same through RemoteCluster; a savepoint outside of its root is refused, and the job goes on."""
    cluster, gate = start_cluster(1), Gate(tmp_path)
    env = environment(checkpoint_dir=str(tmp_path / "checkpoints"))
    counting(env, 2_400, 10_000.0, gate=gate).collect(name="numbered")
    job = cluster.submit(env, name="<script>alert(1)</script>")
    job.ready().result(timeout=60)
    with (
        RemoteCluster(cluster.address, cluster._curve) as client,
        WebServer(asgi_app(client)) as server,
    ):
        jid = job.job_id.removeprefix("job-")
        for folder in ("../../outside", "/etc", "a/../../b", "file:///etc"):
            ordered = ask(server.url, f"jobs/{jid}/savepoints", {"target-directory": folder})
            assert "failure-cause" in _outcome(server.url, jid, ordered)
        gone = ask(server.url, "savepoint-disposal", {"savepoint-path": "/etc/passwd"})
        eventually(
            lambda: ask(server.url, f"savepoint-disposal/{gone['request-id']}")["operation"], "the refused disposal"
        )
        assert ask(server.url, f"jobs/{jid}")["name"] == "<script>alert(1)</script>"
        gate.open()
        assert job.wait(timeout=60).status is JobStatus.FINISHED
        assert len(job.results("numbered")) == 2_400
        cluster.close()
        refusals: list[urllib.error.HTTPError] = []

        def is_refused() -> bool:
            """An answer of a moment ago may still be given."""
            try:
                ask(server.url, "jobs/overview")
            except urllib.error.HTTPError as error:
                refusals.append(error)
            return bool(refusals)

        eventually(is_refused, "the JobManager's end")
        assert refusals[0].code == 503
        assert "start one with `understudy jobmanager`" in refusals[0].read().decode()
    assert not (tmp_path / "outside").exists()


class Refusing:
    """A client to whom the JobManager of another process says no, with an error of this type."""

    def __init__(self, type_name: str) -> None:
        self._type_name = type_name

    async def ask_job_manager(self, message: Any, timeout_ms: float | None = None) -> Any:
        raise Refused("it has changed") from RemoteActorError(
            "tcp://127.0.0.1:1", self._type_name, "it has changed", ""
        )


async def refused(cluster: Any, message: Any) -> HttpError:
    with pytest.raises(HttpError) as raised:
        await ClusterJobs(cluster).ask(message)
    return raised.value


def test_a_job_that_a_job_manager_started_anew_does_not_know_is_not_found(shared_cluster: LocalCluster) -> None:
    """A page shows it still, and is not to say that it is not connected."""
    with RemoteCluster(shared_cluster.address, shared_cluster._curve) as client:
        error = asyncio.run(refused(client, RequestJobView(JobId("job-of-before"))))
    assert error.status is HTTPStatus.NOT_FOUND
    assert "job-of-before" in str(error)


@pytest.mark.parametrize(
    ("type_name", "status"), [("NotRestartable", HTTPStatus.CONFLICT), ("ValueError", HTTPStatus.BAD_REQUEST)]
)
def test_a_refusal_from_another_process_has_the_status_of_its_reason(type_name: str, status: HTTPStatus) -> None:
    error = asyncio.run(refused(Refusing(type_name), RequestJobView(JobId("job-1"))))
    assert (error.status, str(error)) == (status, "it has changed")


class Hoarding(KeyedOperator):
    """Keeps each record of key 7, and one of the others."""

    kept = ListState(int)

    def process(self, record: int, out: Any) -> None:
        if self.key == 7 or not self.kept.get():
            self.kept.add(record)


@pytest.mark.parametrize("state_backend", ["memory", "filesystem", "rocksdb"])
def test_the_key_group_that_holds_too_much_is_named(start_cluster: Start, tmp_path: Path, state_backend: str) -> None:
    """As the newest snapshot has it. RocksDB's files do not say it, so nothing is said."""
    cluster, gate = start_cluster(2, web_port=0), Gate(tmp_path)
    env = environment(checkpoint_dir=str(tmp_path / "checkpoints"), state_backend=state_backend)
    hoarded = (
        generated(env, 4_800, None, gate, "numbers").key_by(lambda index: index % 24).process(Hoarding(), name="hoard")
    )
    hoarded.print()
    job = cluster.submit(env, name="numbers")
    witness = Witness(job)
    eventually(lambda: sum(each.records_in for each in job.details().tasks) >= 4_800, "all records")
    witness.checkpoints(len(witness.of(CheckpointCompleted)) + 2)
    (found,) = [
        each
        for each in ask(str(cluster.web_url), f"page/{job.job_id.removeprefix('job-')}/state")
        if each["operator"] == "hoard"
    ]
    if state_backend == "rocksdb":
        assert (found["groups"], found["spread"]) == ([], "")
    else:
        group, first = key_group(7, 128), found["groups"][0]
        assert (first["group"], first["subtask"]) == (group, operator_index_of(group, 128, 2))
        assert first["share"] > 0.2
        assert found["hot"]
        assert f"Key group {group} of 128 holds " in found["spread"]
        shares = [each["share"] for each in found["groups"]]
        assert shares == sorted(shares, reverse=True)
        assert len(shares) == 5
    gate.open()
    job.wait(timeout=60)


def test_notebooks_show_jobs_and_clusters_as_text_that_is_no_markup(shared_cluster: LocalCluster) -> None:
    env = environment()
    counting(env, 240, None).collect(name="numbered")
    job = shared_cluster.submit(env, name="<b>numbers</b>")
    job.wait(timeout=60)
    for shown in (job._repr_html_(), shared_cluster._repr_html_()):
        assert "&lt;b&gt;numbers&lt;/b&gt;" in shown
        assert "<b>numbers" not in shown
        assert "finished" in shown


def test_notebooks_show_what_a_running_job_does_and_lead_to_its_page(start_cluster: Start, tmp_path: Path) -> None:
    """While it runs, of which moment; after its end, and its cluster's, what it did."""
    cluster, gate = start_cluster(1, web_port=0), Gate(tmp_path)
    env = environment()
    counting(env, 2_400, 2_000.0, gate=gate).collect(name="numbered")
    job = cluster.submit(env, name="numbers")
    Witness(job).checkpoints(1)
    url = f"{cluster.web_url}#/{job.job_id.removeprefix('job-')}"
    shown = job._repr_html_()
    assert f'<a href="{url}"' in shown
    assert f'<a href="{url}"' in cluster._repr_html_()
    assert "as of " in shown
    assert "in/s" in shown
    with RemoteCluster(cluster.address, cluster._curve) as client:
        assert "<b>numbers</b>" in client._repr_html_()
        assert "understudy dashboard" in client._repr_html_()
    gate.open()
    job.wait(timeout=60)
    assert "took " in job._repr_html_()
    cluster.close()
    for said in ("finished", "records out"):
        assert said in job._repr_html_()
    assert "as of " not in job._repr_html_()
    assert "is not running" in cluster._repr_html_()
    assert "numbers" in cluster._repr_html_()


def test_a_taken_port_and_a_history_that_cannot_be_written_are_said_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnwritableRoot):
        LocalCluster(history_dir=str(tmp_path / "file")).start()
    with (
        WebServer(asgi_app(history=tmp_path)) as server,
        pytest.raises(OSError, match="choose another port"),
    ):
        LocalCluster(web_port=server.port).start()
    with pytest.raises(InvalidSetting, match="web_token"):
        LocalCluster(web_port=0, web_host="0.0.0.0")
