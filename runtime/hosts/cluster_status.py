"""ClusterStatus: which of a cluster's processes are alive, who leads, and who waits to lead;
by their pid files, and by what the leader says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import urlsplit

from ...messages import HostList, HostSummary, JobSummary
from ..clusters.remote_errors import RemoteError
from .hosts_client import HostsClient
from .machines import Found, Machines
from .settings import HostSettings
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
    """A JobManager's cluster has a leader that answers; a TaskManager is known to it."""
    state: str
    """In words."""
    slots: int
    free_slots: int
    log_file: str
    trouble: str
    """What is wrong, and what to do; empty: nothing."""


@dataclass(frozen=True, slots=True)
class ClusterLeader:
    """The JobManager that answers."""

    host: str
    pid: int | None
    """None: it is none of the processes that the settings name."""
    address: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A JobManager that waits to lead."""

    host: str
    pid: int


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """All of it. `jobs` that run; `waiting`: TaskManagers of jobs that wait for slots, a line each."""

    leader: ClusterLeader | None
    """None: nobody leads, or who does does not answer."""
    candidates: tuple[Candidate, ...]
    no_answer: str
    """Why nobody has answered; empty: the leader has."""
    processes: tuple[ProcessLine, ...]
    jobs: tuple[JobSummary, ...]
    waiting: tuple[str, ...]

    @property
    def is_whole(self) -> bool:
        """Whether all that should be there is, and is registered."""
        return not self.no_answer and not any(each.trouble for each in self.processes)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the leader says, and where it is; or why nobody did."""

    leader: str
    """Its address; empty: nobody has answered."""
    hosts: HostList
    jobs: tuple[JobSummary, ...]
    no_answer: str = ""


Wanted = Mapping[tuple[str, Role], int]
"""How many processes of each role the settings want on a host."""


def look(machines: Machines, settings: HostSettings) -> ClusterStatus:
    """Ask the hosts, and the leader. Raises InvalidSettings, NoKeyFile, ProcessFailed."""
    wanted: dict[tuple[str, Role], int] = {}
    for place in machines.places():
        wanted[place.host, place.role] = wanted.get((place.host, place.role), 0) + 1
    with ThreadPoolExecutor(max(1, min(32, len(wanted)))) as pool:
        found = list(pool.map(lambda each: machines.find(*each), wanted))
    return status_of(found, wanted, _ask(settings))


def status_of(found: Sequence[Found], wanted: Wanted, answer: Answer) -> ClusterStatus:
    """Of what the hosts have, what the settings want there, and what the leader says."""
    lines = tuple(line for each in found for line in _lines(each, wanted[each.host, each.role], answer))
    managers = [(each.host, state) for each in found if each.role == "jobmanager" for state in each.running]
    candidates = tuple(Candidate(host, state.pid) for host, state in managers if _waits_to_lead(state, answer))
    running = tuple(job for job in answer.jobs if not job.status.is_terminal)
    return ClusterStatus(_leader(managers, answer), candidates, answer.no_answer, lines, running, answer.hosts.waiting)


def _ask(settings: HostSettings) -> Answer:
    try:
        with HostsClient(settings, answer_timeout_ms=ANSWER_MS) as cluster:
            hosts, jobs = cluster.hosts(), cluster.jobs()
            return Answer(cluster.address, hosts, jobs)
    except RemoteError as error:
        return Answer("", HostList(()), (), str(error))


def _leader(managers: Sequence[tuple[str, ProcessState]], answer: Answer) -> ClusterLeader | None:
    if not answer.leader:
        return None
    for host, state in managers:
        if state.address == answer.leader:
            return ClusterLeader(host, state.pid, answer.leader)
    return ClusterLeader(urlsplit(answer.leader).hostname or "", None, answer.leader)


def _waits_to_lead(state: ProcessState, answer: Answer) -> bool:
    """One that has led, and listens still, may be the one that does not answer."""
    return state.is_ready and (not state.address or answer.leader not in ("", state.address))


def _lines(found: Found, wanted: int, answer: Answer) -> list[ProcessLine]:
    lines = [_line(found, each, answer) for each in found.running]
    how = f"understudy {found.role}"
    for _ in range(wanted - len(lines)):
        trouble = found.trouble or f"it does not run: `{how} --detach` on that host, or `understudy cluster start`"
        lines.append(ProcessLine(found.role, found.host, 0, False, False, "not running", 0, 0, "", trouble))
    return lines


def _line(found: Found, state: ProcessState, answer: Answer) -> ProcessLine:
    role, host, slots, free_slots, trouble = found.role, found.host, 0, 0, ""
    if role == "jobmanager":
        is_registered, what = bool(answer.leader), _manager_state(state, answer)
    elif (summary := next((each for each in answer.hosts.hosts if _is_of(each, state)), None)) is None:
        is_registered, what = False, "alive, not registered"
        trouble = f"it runs, and is not registered with the JobManager; see its log {state.log_file} there"
    else:
        is_registered, what = True, "alive"
        slots, free_slots = summary.slots, summary.free_slots
    return ProcessLine(role, host, state.pid, True, is_registered, what, slots, free_slots, state.log_file, trouble)


def _manager_state(state: ProcessState, answer: Answer) -> str:
    if _waits_to_lead(state, answer):
        return "waits to lead"
    if not state.address:
        return "starts"
    return "leads" if state.address == answer.leader else "alive, does not answer"


def _is_of(summary: HostSummary, state: ProcessState) -> bool:
    return summary.pid == state.pid and summary.host.strip("[]") == (urlsplit(state.address).hostname or "")
