"""Starting and stopping processes of this host in the background, away from any terminal. Their pid files name them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ...state.full_disk import folder_named
from .errors import ProcessFailed
from .folders import made_folder
from .settings import FIELD_OF, HostSettings
from .settings_sources import LoadedSettings
from .standing_process import ProcessState, Role, other_cluster, running_processes

START_SECONDS = 60.0
REGISTER_SECONDS = 5.0
"""How long a TaskManager that runs is waited for to be registered: its JobManager may come later."""
STOP_SECONDS = 15.0
LOOK_SECONDS = 0.05
_SHOWN_BYTES = 2_000


def start_in_background(role: Role, loaded: LoadedSettings) -> ProcessState:
    """Start one more process, with these settings; returns when it is ready. What it says before it has a log, and why
    it ends by an error, goes to `<log.dir>/<role>.start`. Raises UnwritableFolder, and ProcessFailed with the end of
    that file if the process ends before.
    """
    settings = loaded.settings
    out = made_folder("log.dir", settings.log_dir) / f"{role}.start"
    with folder_named(str(out), is_local=True):
        file = out.open("ab", 0)
        file.write(b"\n")  # a full disk lets a file be made
    with file as output:
        began = output.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "understudy", role, "--in-background", *_as_flags(loaded)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    wait_s = START_SECONDS
    if role == "jobmanager" and settings.has_successors:  # it may have to see that another cluster's leader is dead
        wait_s += settings.session_timeout_ms / 1000
    deadline = time.monotonic() + wait_s
    patience: float | None = None
    while process.poll() is None and time.monotonic() < deadline:
        state = next((each for each in running_processes(settings.run_dir, role) if each.pid == process.pid), None)
        if state is not None and state.is_ready:
            return state
        if state is not None and state.address and role == "taskmanager":
            patience = patience or time.monotonic() + REGISTER_SECONDS
            if time.monotonic() > patience:
                return state
        time.sleep(LOOK_SECONDS)
    how = f"ended with exit code {process.returncode}"
    if process.poll() is None:
        process.kill()
        process.wait()
        how = (
            f"was not ready after {wait_s:g} s, and was ended: see whether this machine is very busy, and "
            f"whether storage.dir ({settings.storage_dir}) answers"
        )
    raise ProcessFailed(f"the {role} process {how}; it wrote to {out}:\n{end_of(out, began)}")


def stop_processes(settings: HostSettings, role: Role) -> list[ProcessState]:
    """SIGTERM to those of this role that run here, and SIGKILL to one that does not end; returns them when they are
    gone. Raises ProcessFailed, also where one is another cluster's: then none is ended.
    """
    meant = running_processes(settings.run_dir, role)
    if trouble := next(filter(None, (other_cluster(each, settings) for each in meant)), ""):
        raise ProcessFailed(trouble)
    for number, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, STOP_SECONDS)):
        left = {each.pid for each in running_processes(settings.run_dir, role)} & {each.pid for each in meant}
        for pid in left:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
            except PermissionError as error:
                raise ProcessFailed(
                    f"process {pid} cannot be ended: {error.strerror}; end it as the user who started it"
                ) from error
        deadline = time.monotonic() + seconds
        while left and time.monotonic() < deadline:
            left &= {each.pid for each in running_processes(settings.run_dir, role)}
            time.sleep(LOOK_SECONDS if left else 0)
        if not left:
            return meant
    raise ProcessFailed(
        f"the {role} processes {sorted(left)} have not ended {STOP_SECONDS:g} s after SIGKILL: they may wait for a "
        "disk or a network folder that does not answer; see whether run.dir and storage.dir can be reached"
    )


def _as_flags(loaded: LoadedSettings) -> list[str]:
    """The settings as they are here; the environment goes with the process by itself."""
    flags = [] if loaded.file is None else ["--config", str(loaded.file)]
    for key, found in loaded.found.items():
        if found.origin.startswith("-D "):
            value = getattr(loaded.settings, FIELD_OF[key])
            flags += ["-D", f"{key}={','.join(value) if isinstance(value, tuple) else value}"]
    return flags


def end_of(file: Path, began: int = 0) -> str:
    """The last lines of what came since."""
    with file.open("rb") as data:
        data.seek(0, os.SEEK_END)
        data.seek(max(began, data.tell() - _SHOWN_BYTES))
        return data.read().decode("utf-8", "replace").strip() or "(nothing)"
