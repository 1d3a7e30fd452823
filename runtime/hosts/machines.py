"""Machines: the hosts of a cluster, as its settings name them, and commands that are run there: here at once, elsewhere
by ssh. Flink: start-cluster.sh.

Every host has the command `understudy`, the settings at the same path, and the key file. Settings that come from this
host's environment or from flags go along as flags.
"""

from __future__ import annotations

import json
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .background import end_of, start_in_background, stop_processes
from .errors import HostError, InvalidSettings, ProcessFailed
from .settings import FIELD_OF
from .settings_sources import LoadedSettings
from .standing_process import ProcessState, Role, other_cluster, running_processes

COMMAND_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Place:
    """A process that the settings want: its role, and the host's name as the settings have it."""

    role: Role
    host: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a command there."""

    place: Place
    is_done: bool
    text: str


@dataclass(frozen=True, slots=True)
class Found:
    """The processes of a role on a host; `trouble` when it could not be asked."""

    host: str
    role: Role
    running: tuple[ProcessState, ...] = ()
    trouble: str = ""


class Machines:
    """Those of one cluster."""

    def __init__(self, loaded: LoadedSettings) -> None:
        self._loaded = loaded
        self._settings = loaded.settings

    def places(self) -> list[Place]:
        """The JobManagers first. A host that is named twice has two TaskManagers. Raises InvalidSettings for two
        JobManagers on this host, and for several of which none would be the leader's successor.
        """
        settings = self._settings
        masters = settings.masters or (settings.jobmanager_host,)
        if settings.recovery_mode == "standalone" and len(masters) > 1:
            raise InvalidSettings(
                f"cluster.masters names {len(masters)} hosts ({', '.join(masters)}), and recovery.mode standalone has "
                "one JobManager: name one, or choose another recovery.mode"
            )
        if len(here := [host for host in masters if is_here(host)]) > 1:
            raise InvalidSettings(
                f"cluster.masters names this host twice: {', '.join(here)}; a host has one JobManager: name it once"
            )
        workers = _as_one(settings.workers or ("localhost",))
        return [*(Place("jobmanager", host) for host in masters), *(Place("taskmanager", host) for host in workers)]

    def hosts(self) -> list[str]:
        """All of them, each once."""
        return list(dict.fromkeys(place.host for place in self.places()))

    def shares_folder(self) -> bool:
        """Whether storage.dir was chosen, or all is on this host."""
        return self._loaded.found["storage.dir"].origin != "default" or all(map(is_here, self.hosts()))

    def split(self, places: Sequence[Place]) -> tuple[list[Outcome], list[Place]]:
        """Those at which a process runs already, and those where one is missing."""
        running = {each: list(self.find(each.host, each.role).running) for each in dict.fromkeys(places)}
        there, missing = list[Outcome](), list[Place]()
        for place in places:
            if running[place]:
                state = running[place].pop(0)
                trouble = other_cluster(state, self._settings)
                there.append(Outcome(place, is_done=not trouble, text=trouble or f"{state}: runs already"))
            else:
                missing.append(place)
        return there, missing

    def start(self, place: Place) -> Outcome:
        """One more process, in the background."""
        if is_here(place.host):
            return _here(place, lambda: f"started {start_in_background(place.role, self._loaded)}")
        own = ["-D", f"jobmanager.host={place.host}"] if place.role == "jobmanager" and not is_here(place.host) else []
        return self._do(place, [place.role, "--detach", *self._options(), *own])

    def still_there(self, outcomes: Sequence[Outcome]) -> list[Outcome]:
        """The same outcomes, but for JobManagers that have ended since: they have failed."""
        there = list[Outcome]()
        for each in outcomes:
            host, role = each.place.host, each.place.role
            if each.is_done and role == "jobmanager" and not (found := self.find(host, role)).running:
                said = found.trouble or self._last_log(each.place)
                there.append(Outcome(each.place, False, f"the {role} has started, and has ended since; {said}"))
            else:
                there.append(each)
        return there

    def stop(self, place: Place) -> Outcome:
        """All of this role there."""
        if is_here(place.host):
            return _here(place, lambda: in_words(place.role, stop_processes(self._settings, place.role)))
        return self._do(place, [place.role, "--stop", *self._options()])

    def find(self, host: str, role: Role) -> Found:
        """What runs there, by its pid files."""
        if is_here(host):
            return Found(host, role, tuple(running_processes(self._settings.run_dir, role)))
        done = self.run(host, [role, "--status", "--json", *self._options()])
        try:
            said = json.loads(done.stdout)
            return Found(host, role, tuple(ProcessState(**each) for each in said))
        except (ValueError, TypeError):
            return Found(host, role, trouble=_last_words(done))

    def send_key(self, host: str) -> Outcome:
        """This host's key file to another one, which must have none."""
        key = Path(self._settings.key_file).read_text()
        done = self.run(host, ["cluster", "key", "--receive", *self._options()], key)
        return Outcome(Place("taskmanager", host), done.returncode == 0, _last_words(done))

    def run(self, host: str, arguments: Sequence[str], given: str = "") -> subprocess.CompletedProcess[str]:
        """`understudy ARGUMENTS` there. Raises ProcessFailed where the command cannot be run at all."""
        if is_here(host):
            command = [sys.executable, "-m", "understudy", *arguments]
        else:
            remote = f"{self._settings.command} {shlex.join(arguments)}"
            command = [*shlex.split(self._settings.ssh), host, remote]
        try:
            return subprocess.run(
                command, input=given, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
            )
        except FileNotFoundError as error:
            raise ProcessFailed(f"{command[0]} is not installed here: see cluster.ssh") from error
        except subprocess.TimeoutExpired as error:
            raise ProcessFailed(
                f"{host} did not answer within {COMMAND_SECONDS:.0f} s: {shlex.join(command)}"
            ) from error

    def _do(self, place: Place, arguments: Sequence[str]) -> Outcome:
        try:
            done = self.run(place.host, arguments)
        except ProcessFailed as error:
            return Outcome(place, False, str(error))
        return Outcome(place, done.returncode == 0, _last_words(done))

    def _last_log(self, place: Place) -> str:
        file = Path(self._settings.log_dir) / f"{place.role}.log"
        if not is_here(place.host) or not file.exists():
            return f"see its log {file} there"
        return f"the end of its log {file}:\n{end_of(file)}"

    def _options(self) -> list[str]:
        loaded = self._loaded
        options = [] if loaded.file is None else ["--config", str(loaded.file)]
        for key, found in loaded.found.items():
            if found.origin.startswith(("-D ", "UNDERSTUDY_")):
                value = getattr(loaded.settings, FIELD_OF[key])
                options += ["-D", f"{key}={','.join(value) if isinstance(value, tuple) else value}"]
        return options


def at_once(work: Callable[[Place], Outcome], places: Sequence[Place]) -> list[Outcome]:
    """The work at all of these places, several at a time; the outcomes in the order of the places."""
    with ThreadPoolExecutor(max(1, min(32, len(places)))) as pool:
        return list(pool.map(work, places))


def is_here(host: str) -> bool:
    """Whether this name or address is this host's own."""
    if host in ("localhost", "127.0.0.1", "::1", socket.gethostname()):
        return True
    try:
        family, kind, protocol, _, target = socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(target)  # only an address of this host can be bound to
    except OSError:
        return False
    return True


def in_words(role: Role, ended: Sequence[ProcessState]) -> str:
    """In words, which of a role have been stopped on a host."""
    return ", ".join(f"stopped {each.name} (process {each.pid})" for each in ended) or f"no {role} runs there"


def _as_one(hosts: Sequence[str]) -> list[str]:
    """All names of this host replaced by the first of them: what runs here is looked for by name and role."""
    here = [host for host in dict.fromkeys(hosts) if is_here(host)]
    return [here[0] if host in here else host for host in hosts]


def _here(place: Place, work: Callable[[], str]) -> Outcome:
    try:
        return Outcome(place, True, work())
    except HostError as error:
        return Outcome(place, False, str(error))


def _last_words(done: subprocess.CompletedProcess[str]) -> str:
    """What it said, and how it ended if it failed and said nothing."""
    said = (done.stderr.strip() or done.stdout.strip()).removeprefix("Error: ")
    return said or f"exit code {done.returncode}"
