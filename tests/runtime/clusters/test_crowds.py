"""Who holds connections to a cluster's ports and says nothing takes no descriptor that a checkpoint needs."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from .crowded_service import TOKEN
from .jobs import WAIT_S, eventually

pytestmark = pytest.mark.processes
CROWD = 2_000
PORTS = ("web", "control", "prometheus")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The addresses of its ports."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = psutil.Process().num_fds() + 2 * CROWD
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"this process may open {hard} descriptors only")
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
    folder = tmp_path_factory.mktemp("service")
    command = [sys.executable, str(Path(__file__).parent / "crowded_service.py"), str(folder)]
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())
            process.communicate(timeout=WAIT_S)
            assert process.returncode == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("port", PORTS)
def test_idle_connections_leave_checkpoints_and_users_alone(service: list[str], port: str) -> None:
    web, address = service[0], urlsplit(service[PORTS.index(port)])
    with (
        contextlib.ExitStack() as crowd,
        httpx.Client(base_url=web, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=WAIT_S) as client,
    ):

        def counts() -> dict[str, int]:
            found: dict[str, int] = client.get(f"jobs/{job_id}/checkpoints").json()["counts"]
            return found

        (job,) = client.get("jobs").json()["jobs"]
        job_id = job["id"]
        with client.stream("GET", "live", params={"job": job_id}) as events:
            lines = events.iter_lines()
            next(lines)
            before = counts()
            for _ in range(CROWD):
                where = (address.hostname or "", address.port or 0)
                crowd.enter_context(socket.create_connection(where, timeout=WAIT_S))
            reached = counts()["completed"] + 10
            eventually(lambda: counts()["completed"] >= reached, "ten checkpoints beside the crowd")
            assert counts()["failed"] == before["failed"]
            assert httpx.get(service[2], timeout=WAIT_S).status_code == 200
            assert next(line for line in lines if line.startswith("event: job"))
