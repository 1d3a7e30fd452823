"""ClusterStatus: which of a cluster's processes are alive, and which are not; by their pid files, and by what the
JobManager says.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

from ...messages import HostList, HostSummary, JobSummary
from ..clusters.remote_errors import RemoteError
from .machines import Found, Machines
from .settings import HostSettings
from .standalone_cluster import StandaloneCluster
from .standing_process import ProcessState, Role

ANSWER_MS = 5_000.0


@dataclass(frozen=True, slots=True)
class ProcessLine:
    """One process that is there, or should be."""

    role: str
    host: str
    pid: int
    """0: there is none."""
    is_alive: bool
    is_registered: bool
    """A JobManager answers; a TaskManager is known to it."""
    slots: int
    free_slots: int
    log_file: str
    trouble: str
    """What is wrong, and what to do; empty: nothing."""


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """All of it. `jobs` that run; `waiting`: TaskManagers of jobs that wait for slots, a line each."""

    jobmanager: str
    """Its address."""
    processes: tuple[ProcessLine, ...]
    jobs: tuple[JobSummary, ...]
    waiting: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether all that should be there is, and is registered."""
        return not any(each.trouble for each in self.processes)


def look(machines: Machines, settings: HostSettings) -> ClusterStatus:
    """Ask the hosts, and the JobManager. Raises InvalidSettings, NoKeyFile, ProcessFailed."""
    places = machines.places()
    wanted: dict[tuple[str, Role], int] = {}
    for place in places:
        wanted[place.host, place.role] = wanted.get((place.host, place.role), 0) + 1
    with ThreadPoolExecutor(max(1, min(32, len(wanted)))) as pool:
        found = list(pool.map(lambda each: machines.find(*each), wanted))
    hosts, jobs, trouble = _ask(settings)
    lines = [line for each in found for line in _lines(each, wanted[each.host, each.role], hosts, trouble)]
    running = tuple(job for job in jobs if not job.status.is_terminal)
    return ClusterStatus(settings.jobmanager_address, tuple(lines), running, hosts.waiting)


def _ask(settings: HostSettings) -> tuple[HostList, tuple[JobSummary, ...], str]:
    """And why it did not answer, if so."""
    try:
        with StandaloneCluster(settings, answer_timeout_ms=ANSWER_MS) as cluster:
            return cluster.hosts(), cluster.jobs(), ""
    except RemoteError as error:
        return HostList(()), (), str(error)


def _lines(found: Found, wanted: int, hosts: HostList, no_answer: str) -> list[ProcessLine]:
    lines = [_line(found, each, hosts, no_answer) for each in found.running]
    how = f"understudy {found.role}"
    for _ in range(wanted - len(lines)):
        trouble = found.trouble or f"it does not run: `{how} --detach` on that host, or `understudy cluster start`"
        lines.append(ProcessLine(found.role, found.host, 0, False, False, 0, 0, "", trouble))
    return lines


def _line(found: Found, state: ProcessState, hosts: HostList, no_answer: str) -> ProcessLine:
    if found.role == "jobmanager":
        return ProcessLine(found.role, found.host, state.pid, True, not no_answer, 0, 0, state.log_file, no_answer)
    summary = next((each for each in hosts.hosts if _is_of(each, state)), None)
    if summary is None:
        trouble = f"it runs, and is not registered with the JobManager; see its log {state.log_file} there"
        return ProcessLine(found.role, found.host, state.pid, True, False, 0, 0, state.log_file, trouble)
    return ProcessLine(
        found.role, found.host, state.pid, True, True, summary.slots, summary.free_slots, state.log_file, ""
    )


def _is_of(summary: HostSummary, state: ProcessState) -> bool:
    return summary.pid == state.pid and summary.host.strip("[]") == (urlsplit(state.address).hostname or "")
