"""Submissions: graph and program of each job, in shared storage, signed with a key of the cluster.

    <storageDir>/<cluster id>/submissions/<job id>

Whoever takes a job over runs the program, so nothing is unpickled before its signature was found right: who can write
to ZooKeeper or to the storage, but has not the key, cannot make a JobManager run anything. Job ids are not used again,
so a file never changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from urllib.parse import quote, unquote

from ...messages import JobId, MalformedMessage, SubmitJob, decode, encode, message
from ...state import CheckpointStorage, CorruptState
from .errors import ForgedSubmission
from .signatures import Signatures

FOLDER = "submissions"
_LENGTH = Struct(">I")


@dataclass(frozen=True, slots=True)
class StoredProgram:
    """The user's code of one job."""

    pickled: bytes
    """A JobProgram, dumped; empty where TaskManagers get it by another way."""
    sys_path: tuple[str, ...] = ()
    """Where modules were looked for by whoever submitted it."""
    warm_up: tuple[str, ...] = ()


@message
class SubmissionHead:
    """Before the program."""

    submitted: SubmitJob
    sys_path: tuple[str, ...]
    warm_up: tuple[str, ...]


class Submissions:
    """Of one cluster. `storage`: its own folder; `key`: any secret bytes. All of it blocks and raises OSError and
    StorageErrors.
    """

    def __init__(self, storage: CheckpointStorage, key: bytes) -> None:
        self._storage = storage
        self._signatures = Signatures(key, "submissions")

    def store(self, submitted: SubmitJob, program: StoredProgram) -> None:
        job_id = submitted.graph.job_id
        head = encode(SubmissionHead(submitted, program.sys_path, program.warm_up))
        body = _LENGTH.pack(len(head)) + head + program.pickled
        self._storage.write_sealed(_path(job_id), self._signatures.signed(job_id, body))

    def load(self, job_id: JobId) -> tuple[SubmitJob, StoredProgram]:
        """Raises ForgedSubmission, CorruptState, MissingState."""
        path = _path(job_id)
        body = self._signatures.checked(job_id, self._storage.read_sealed(path))
        if body is None:
            raise ForgedSubmission(self._storage.location(path))
        (length,) = _LENGTH.unpack_from(body)
        try:
            head = decode(body[_LENGTH.size : _LENGTH.size + length])
        except MalformedMessage as error:
            raise CorruptState(path, "a submission of this version", str(error)) from error
        if not isinstance(head, SubmissionHead):
            raise CorruptState(path, "a submission", f"{head!r:.80}")
        return head.submitted, StoredProgram(body[_LENGTH.size + length :], head.sys_path, head.warm_up)

    def delete(self, job_id: JobId) -> None:
        self.delete_named(encode_name(job_id))

    def delete_named(self, name: str) -> None:
        self._storage.delete(f"{FOLDER}/{name}")

    def stored(self) -> list[str]:
        """The names of all files, as `encode_name` makes them."""
        return [path.rpartition("/")[2] for path in self._storage.list_files(FOLDER)]


def encode_name(job_id: str) -> str:
    """A job id as a name of a file, or of a node."""
    return quote(job_id, safe="")


def decode_name(name: str) -> JobId:
    """The job id of such a name."""
    return JobId(unquote(name))


def _path(job_id: JobId) -> str:
    return f"{FOLDER}/{encode_name(job_id)}"
