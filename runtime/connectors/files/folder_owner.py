"""FolderOwner: which job may make files visible in an output folder, as small files in a hidden folder of it.

    <output>/.understudy-owner/<number>-<job>      one per job that writes there; the highest owns the folder
                               .seat-<job>-<n>     of a local folder: subtask n of the job's sink has it, too

A job claims the folder with the next number when it begins to write. All its subtasks, sinks and attempts have that one
claim. Before files become visible the sink looks whether the claim is the highest still. One that is not is a job that
another one has replaced: it commits nothing more, also after a restart, for its claim is there and will never be the
highest. Of two jobs that choose one number at once, the greater name owns the folder.

A name says all that decides, so one list of names is a check, and no store has to create without replacing. The content
is for texts alone; of a local folder it names the process too, which a later submit on this machine looks at to warn.
Which jobs of a cluster have not ended is not at home here: the JobManager looks at that, at submit.
docs/decisions/0055 has what was considered.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from ....messages import JobId
from ....state import DurableFiles
from ....state.checkpoints.job_runs import RunOwner
from ...system.this_process import is_gone, this_process
from ..errors import OutputTakenOver
from .committed_files import fingerprint

FOLDER = ".understudy-owner"
CLAIMS_KEPT = 100
"""The newest; a job that a hundred others have replaced since is no zombie any more."""

_CLAIM = re.compile(r"(\d{8,})-([0-9a-f]{16})")


class FolderOwner:
    """One job's claim to one output folder. All of it blocks; raises what the file system does."""

    def __init__(self, url: str, job_id: JobId, sink: str) -> None:
        """`sink`: the name of the sink, for texts."""
        self._files, root = DurableFiles.at(url)
        self._url, self._job_id, self._sink = url, job_id, sink
        self._own = fingerprint(job_id)
        self._folder = f"{root.rstrip('/')}/{FOLDER}"

    def take(self, wall_ms: int) -> int:
        """Own the folder; the number of the claim. Raises OutputTakenOver when another job has taken it over."""
        claims = self._claims()
        if not any(job == self._own for _, job in claims):
            number = claims[-1][0] + 1 if claims else 1
            self._write(f"{number:08d}-{self._own}", wall_ms)
            for old, job in claims[:-CLAIMS_KEPT]:
                self._files.remove(f"{self._folder}/{old:08d}-{job}")
                self._remove_seats(job)
            claims = self._claims()
        self._check(claims)
        return max((number for number, job in claims if job == self._own), default=1)

    def check(self) -> None:
        """Raises OutputTakenOver when another job owns the folder."""
        self._check(self._claims())

    def sit(self, subtask: int) -> None:
        """Leave a sign for `absent`, of a job that has a claim. It need not last."""
        path = self._seat(subtask)
        if not self._files.exists(path):
            self._files.create(path).close()

    def absent(self, subtasks: int) -> list[int]:
        """Those of the `subtasks` that have left no sign here: their folder of this name is another one, on another
        machine.
        """
        look = f"{self._seat(0)}-look"
        self._files.create(look).close()  # with a change of its own a machine reads a mounted folder again
        self._files.remove(look)
        names = set(self._files.names(self._folder))
        return [each for each in range(subtasks) if posixpath.basename(self._seat(each)) not in names]

    def rival(self, others: Iterable[JobId]) -> str:
        """The job whose folder it is, if it may still run: its process, another one of this machine, is not gone. Empty
        if there is none, or it is one of the others. A process may outlive its job.
        """
        claims = self._claims()
        mine = {self._own, *map(fingerprint, others)}
        if not claims or claims[-1][1] in mine:
            return ""
        name = f"{claims[-1][0]:08d}-{claims[-1][1]}"
        try:
            process = RunOwner(**self._content(name)["process"])
        except (KeyError, TypeError):
            return ""
        if process == this_process() or is_gone(process):
            return ""
        return f"{self._said(name)}, in process {process.pid} on {process.host}"

    # -- inside

    def _seat(self, subtask: int) -> str:
        return f"{self._folder}/.seat-{self._own}-{fingerprint(self._sink)}-{subtask}"

    def _remove_seats(self, job: str) -> None:
        for name in self._files.names(self._folder):
            if name.startswith(f".seat-{job}-"):
                self._files.remove(f"{self._folder}/{name}")

    def _claims(self) -> list[tuple[int, str]]:
        """Number and job of each, the highest last."""
        found = (_CLAIM.fullmatch(name) for name in self._files.names(self._folder))
        return sorted((int(parts[1]), parts[2]) for parts in found if parts is not None)

    def _write(self, name: str, wall_ms: int) -> None:
        """Under its own name at once, so that a crash leaves nothing else. Its content may be cut off then."""
        said: dict[str, Any] = {"job_id": self._job_id, "sink": self._sink, "since_ms": wall_ms}
        if self._files.is_local:
            said["process"] = asdict(this_process())
        self._files.make_folder(self._folder)
        self._files.write(f"{self._folder}/{name}", [json.dumps(said).encode()])
        self._files.sync_folder(self._folder)

    def _check(self, claims: list[tuple[int, str]]) -> None:
        """Where there is none, somebody has emptied the folder: no other job is known to write there."""
        if claims and claims[-1][1] != self._own:
            number, job = claims[-1]
            raise OutputTakenOver(
                f"the output folder {self._url} belongs to another job now: {self._said(f'{number:08d}-{job}')}. What "
                f"job {self._job_id} (sink {self._sink!r}) has not committed there yet it does not commit any more: "
                "two jobs in one folder would give their readers records twice. End one of the two, or give each a "
                "folder of its own. Jobs that are to share a folder say so, each of them: FileSink(..., shared=True)"
            )

    def _content(self, name: str) -> dict[str, Any]:
        """Nothing where it is gone, or cut off."""
        said: Any = {}
        with suppress(OSError, ValueError):
            said = json.loads(self._files.read(f"{self._folder}/{name}", is_there=True))
        return said if isinstance(said, dict) else {}

    def _said(self, name: str) -> str:
        said = self._content(name)
        if not isinstance(said.get("since_ms"), int):
            return f"its claim is {self._folder}/{name}, which does not say which"
        since = datetime.fromtimestamp(said["since_ms"] / 1000, UTC)
        return f"job {said.get('job_id')} (sink {said.get('sink')!r}) has begun to write there at {since:%F %T} UTC"
