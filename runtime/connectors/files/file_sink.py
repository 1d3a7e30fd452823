"""FileSink: exactly-once files. A file becomes visible when the checkpoint that covers it is complete. Flink: FileSink.

Each transaction is one file; in S3 it is a multipart upload (UploadDirectory), elsewhere it is written under a hidden
folder whose name says the *lineage*: the job that was first started and all jobs restored from its checkpoints. File
names say the subtask, the generation (how many jobs of the lineage came before) and the attempt, whose number is above
those of all before it, also of those that another JobManager began. So an attempt never writes to another's file,
and a restored one removes what earlier attempts left behind, except for what some subtask has recorded. A folder has
one owner, a job (FolderOwner): another one that begins to write there takes it over, and the first commits nothing
there any more. So of two jobs that are restored from one savepoint one goes on.

A transaction names its directory. So a job that is restored with another one commits what was pre-committed where the
first job has its output, which may be committing it too, and touches nothing else there.

A zombie may write after its successor has cleaned up, and pre-commit for a checkpoint that never completes: nobody can
tell it in time. So each attempt removes leftovers again when it ends. What a zombie writes after the end of its job,
and what a job that is cancelled had pre-committed for a checkpoint that was not complete, stays hidden until a job is
restored from one of its checkpoints.

A job that cannot read its newest checkpoint goes back to an older one, and repeats what came after that. The files of
those later checkpoints, visible by then, are taken back: their names say the job, the attempt and the checkpoint.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Sequence
from contextlib import ExitStack, suppress
from typing import Any, BinaryIO, ClassVar, NotRequired, TypeAlias, TypedDict

import pyarrow as pa

from ....actors.flow.elements import Batch
from ....actors.flow.records import RecordMismatch, batch_of, conform, schema_problem
from ....actors.operators.operator import Takes
from ....actors.operators.two_phase_commit_sink import TRANSACTIONS, TwoPhaseCommitSink
from ....messages import CheckpointId, JobId, Predecessor
from ....messages.absent import name_absent
from ....messages.known_names import known_arguments
from ....state import DurableFiles, OperatorListState
from ....state.file_locations import AnyPath, absolute
from ...system.this_process import this_process
from ..errors import UnusableOutput
from .committed_files import fingerprint, others_than, slug
from .file_writers import FILE_FORMATS, WRITE_FORMATS, BatchWriter, csv_refuses
from .folder_owner import FolderOwner
from .locations import one_url
from .output_directory import OutputDirectory, Sealed, explained
from .output_trial import is_local, output_named, try_output
from .upload_directory import UploadDirectory, output_directory

log = logging.getLogger(__name__)

_IN_PROGRESS = re.compile(r"(\d+)-(\d+)-(\d+)-")
"""Subtask, generation and attempt number at the head of a hidden file's name."""


_UPLOAD = re.compile(r"part-([^-]*)-(\d+)-\d+-([0-9a-f]{16})-(\d+)-")
"""Operator, subtask, job and attempt number at the head of an upload's name."""

_COMMITTED = re.compile(r"(\d+)-([0-9a-f]{16})-(\d+)-")
"""Checkpoint, job and attempt number in a visible file's name, after its operator and subtask."""


Directory: TypeAlias = OutputDirectory | UploadDirectory


class FileTransaction(TypedDict):
    """`in_progress`: the hidden file's name. `final`: its visible one; empty while open, and if nothing was written.
    `directory`: the output directory of both. `parts`: tags of an upload's parts, in their order. `size_bytes`: of a
    sealed file, else.
    """

    in_progress: str
    final: str
    directory: str
    parts: NotRequired[list[str]]
    size_bytes: NotRequired[int]


class FileSink(TwoPhaseCommitSink[FileTransaction]):
    """Writes files `part-<operator>-<subtask>-<checkpoint>-<job>-<attempt>` of `format` "parquet", "csv" or "jsonl".

    Takes records or columns. Without a `schema` the first batch of an attempt decides the columns and their types (of a
    "jsonl" file nothing does); with one, each batch must fit it. `path` is a local path or an fsspec URL. Of several
    jobs one may write there at a time, unless each is `shared`: then nobody looks.
    """

    takes: ClassVar[Takes] = "any"

    _recorded = OperatorListState(dict, mode="union", name="files-in-progress")
    """Per subtask: its lineage, the checkpoint, and the hidden files that its transactions need."""
    _recorded.beside = TRANSACTIONS

    @known_arguments("FileSink", first=1)
    def __init__(
        self, path: AnyPath, format: str = "parquet", schema: pa.Schema | None = None, *, shared: bool = False
    ) -> None:
        if format not in WRITE_FORMATS:
            raise ValueError(f"format: wanted one of {', '.join(FILE_FORMATS)}, found {format!r}")
        self.path = absolute(path)
        self.format = format
        if schema is not None and not isinstance(schema, pa.Schema):
            raise ValueError(
                "FileSink: schema: wanted a pyarrow.Schema, as in pa.schema([('id', pa.int64())]), found "
                f"{schema!r:.60}"
            )
        if not isinstance(shared, bool):
            raise ValueError(f"FileSink: shared: wanted True or False, found {shared!r:.60}")
        self.schema = schema
        self.shared = shared
        self._format_problem(schema)
        self._directory: Directory | None = None
        self._owner: FolderOwner | None = None
        self._looks_for_others = False
        """Whether all subtasks have this folder is still to be seen."""
        self._earlier_directories: dict[str, Directory] = {}
        self._file: BinaryIO | None = None
        self._writer: BatchWriter | None = None
        self._begun = 0
        self._checkpoint_id = CheckpointId(0)
        self._needed: set[str] | None = None
        """Hidden files of earlier attempts that some subtask may still have to commit; None before that is known."""

    # -- at submit

    def check_at_submit(self, on_this_machine: bool) -> None:
        """Raises UnusableOutput when no file can be written to the path. A local path of other machines is not tried
        here.
        """
        if on_this_machine or not is_local(self.path):
            try_output(self.path)

    @property
    def _owned_place(self) -> str:
        return "" if self.shared else one_url(self.path)

    @property
    def _writes_to(self) -> str:
        return self.path

    def files_of_others(self, job_id: JobId, predecessors: Sequence[Predecessor] = ()) -> int:
        """How many files of other jobs are visible in the folder, if it is one of this machine that can be read. Those
        that this job goes on from do not count.
        """
        files, root = DurableFiles.at(self.path)
        with suppress(OSError):
            return others_than(job_id, files.names(root), predecessors) if files.is_local else 0
        return 0

    def rival(self, job_id: JobId, others: Collection[JobId] = ()) -> str:
        """The job that the folder belongs to, and that may still run on this machine; empty if there is none, or it is
        one of these others.
        """
        if self.shared or not is_local(self.path):
            return ""
        with suppress(OSError):
            return FolderOwner(self.path, job_id, "").rival(others)
        return ""

    def output_schema(self, *inputs: pa.Schema | None) -> None:
        """A sink emits nothing; raises ValueError when an input cannot be written."""
        for upstream in inputs:
            self.check_schema(upstream)

    def check_schema(self, upstream: pa.Schema | None) -> None:
        """Raises ValueError, naming the columns, when batches of this schema can never be written here."""
        if upstream is None:
            return
        if self.schema is None:
            self._format_problem(upstream)
        elif problem := schema_problem(upstream, self.schema):
            raise RecordMismatch(f"{type(self).__name__}({self.path!r}): {problem}")

    def _format_problem(self, schema: pa.Schema | None) -> None:
        """Raises RecordMismatch, naming the columns, when a file of this format cannot hold them."""
        if self.format != "csv":
            return
        if refused := [f"{field.name} ({field.type})" for field in schema or () if csv_refuses(field.type)]:
            raise RecordMismatch(
                f"a csv file holds no lists, structs and other nested columns, found {', '.join(refused)}: write "
                'format="jsonl" or "parquet", or make a text of it in a map before the sink, as json.dumps does'
            )

    # -- life cycle

    def open(self) -> None:
        recorded = self._recorded.get()
        claim = self._take_folder()
        self._lineage, self._generation = self._place_in_lineage(recorded, claim)
        self._take_seat(is_first=not recorded)
        self._generations = {fingerprint(each["job_id"]): each["generation"] for each in recorded}
        self._generations[fingerprint(self.context.job_id)] = self._generation
        own = [each["checkpoint_id"] for each in recorded if each["job_id"] == self.context.job_id]
        self._checkpoint_id = max(own, default=CheckpointId(0))
        self._directory = output_directory(self.path, f".understudy-{self._lineage}")
        self._take_back_what_came_after(recorded)
        super().open()
        self._needed = {name for each in recorded for name in each["names"]}
        self._remove_leftovers(self._needed)

    def on_checkpoint(self, checkpoint_id: CheckpointId) -> None:
        self._checkpoint_id = checkpoint_id
        super().on_checkpoint(checkpoint_id)
        self._recorded.update(
            [
                {
                    "lineage": self._lineage,
                    "job_id": self.context.job_id,
                    "generation": self._generation,
                    "checkpoint_id": checkpoint_id,
                    "names": [transaction["in_progress"] for transaction in self.transactions()],
                }
            ]
        )

    def on_checkpoint_complete(self, checkpoint_id: CheckpointId) -> None:
        waiting = len(self._pending)
        if self._owner is not None and any(each["final"] for each in self.transactions()[:waiting]):
            with explained(self.path):
                self._owner.check()
        if self._looks_for_others:
            self._look_for_others()
        super().on_checkpoint_complete(checkpoint_id)
        if len(self._pending) < waiting:  # one that this attempt took part in: all have committed what they restored
            self._needed = set()

    def close(self) -> None:
        super().close()
        if self._directory is None:
            return
        if self._needed is not None:
            try:
                self._remove_leftovers(self._needed)
            except (OSError, UnusableOutput) as error:  # committed files are whole: no reason to fail
                log.warning("%s: could not remove leftovers of earlier attempts: %s", self.context.name, error)
        for directory in (self._directory, *self._earlier_directories.values()):
            directory.remove_hidden_if_empty()

    # -- transactions

    def begin_transaction(self) -> FileTransaction:
        self._begun += 1
        context = self.context
        attempt = f"{self._generation}-{context.attempt_number}-{slug(context.attempt_id)}"
        name = f"{context.subtask_index}-{attempt}-{self._begun}{self._extension}"
        return {"in_progress": name, "final": "", "directory": self.path}

    def write(self, transaction: FileTransaction, batch: Batch) -> None:
        prepared = self._fitted(batch)
        with output_named(self.path):
            if self._writer is None:
                self._file = self._opened_directory().create(transaction["in_progress"], self._upload_name)
                self._writer = WRITE_FORMATS[self.format].open(self._file, self.schema)
            self._writer.write(prepared)

    def pre_commit(self, transaction: FileTransaction) -> FileTransaction | None:
        if self._writer is None or self._file is None:
            return None
        writer, self._writer = self._writer, None
        with output_named(self.path):
            writer.close()
            sealed = self._opened_directory().seal(self._file, transaction["in_progress"])
        self._file = None
        if isinstance(sealed, Sealed):
            in_progress, final, parts = sealed
            return {**transaction, "in_progress": in_progress, "final": final, "parts": list(parts)}
        return {**transaction, "final": self._final_name(self._checkpoint_id), "size_bytes": sealed}

    def commit(self, transaction: FileTransaction) -> None:
        if transaction["final"]:
            directory = self._directory_of(transaction)
            parts, size_bytes = transaction.get("parts", ()), transaction.get("size_bytes")
            directory.publish(transaction["in_progress"], transaction["final"], parts, size_bytes=size_bytes)

    def recover_and_abort(self, transaction: FileTransaction) -> None:
        """In another directory the job that had begun it may be at it still."""
        if transaction["directory"] == self.path:
            self.abort(transaction)

    def abort(self, transaction: FileTransaction) -> None:
        writer, file = self._writer, self._file
        self._writer = self._file = None
        with output_named(self.path), ExitStack() as last_first:  # each is done, whatever the others raise
            last_first.callback(self._opened_directory().remove, transaction["in_progress"])
            if file is not None:
                last_first.callback(file.close)
            if writer is not None:
                last_first.callback(writer.close)

    # -- details

    @property
    def _extension(self) -> str:
        return WRITE_FORMATS[self.format].extension

    @property
    def _place(self) -> str:
        """How the names of this subtask's visible files begin."""
        return f"part-{slug(self.context.operator_id)}-{self.context.subtask_index:05d}-"

    def _final_name(self, checkpoint_id: int) -> str:
        context = self.context
        attempt = f"{fingerprint(context.job_id)}-{context.attempt_number}-{slug(context.attempt_id)}"
        return f"{self._place}{checkpoint_id:010d}-{attempt}{self._extension}"

    @property
    def _upload_name(self) -> str:
        """The visible name of what is begun now. Its checkpoint is not known yet: the name says the first that it may
        be. No checkpoint in between can ever be restored, as this subtask has taken part in none.
        """
        return self._final_name(self._checkpoint_id + 1)

    def _opened_directory(self) -> Directory:
        assert self._directory is not None, "the sink is not open"
        return self._directory

    def _directory_of(self, transaction: FileTransaction) -> Directory:
        return self._directory_at(transaction["directory"])

    def _directory_at(self, path: str) -> Directory:
        """This sink's, or one that an earlier job of the lineage wrote to."""
        if path == self.path:
            return self._opened_directory()
        if path not in self._earlier_directories:
            self._earlier_directories[path] = output_directory(path, f".understudy-{self._lineage}")
        return self._earlier_directories[path]

    def _fitted(self, batch: Batch) -> Batch:
        """The batch with the file's columns; the first one decides them if nothing else did."""
        if self.schema is None and not WRITE_FORMATS[self.format].columnar:
            return batch
        columns = batch if isinstance(batch, pa.RecordBatch) else batch_of(batch, self.schema)
        if self.schema is None:
            self._format_problem(columns.schema)
            self.schema = columns.schema
        return conform(columns, self.schema)

    def _take_folder(self) -> int:
        """The number of the job's claim to the folder; 0: none is made. Raises OutputTakenOver, UnusableOutput."""
        if self.shared:
            return 0
        self._owner = FolderOwner(self.path, self.context.job_id, self.context.name)
        with explained(self.path), output_named(self.path):
            return self._owner.take(self.context.clock.wall_ms())

    def _take_seat(self, *, is_first: bool) -> None:
        """In a local folder, which may be another one on each machine: subtask 0 looks for the others' signs when the
        first checkpoint of the job is complete, as all are open then.
        """
        if self._owner is None or self.context.parallelism == 1 or not is_local(self.path):
            return
        with output_named(self.path):
            self._owner.sit(self.context.subtask_index)
        self._looks_for_others = is_first and self.context.subtask_index == 0

    def _look_for_others(self) -> None:
        self._looks_for_others = False
        owner, context = self._owner, self.context
        assert owner is not None
        with suppress(OSError):
            if absent := owner.absent(context.parallelism):
                log.warning(
                    "sink %r: %d of its %d subtasks (%s) write to a folder %s that is not the one of %s: they run on "
                    "other machines, and each of those keeps its part of the files, which a restart on another one "
                    "does not find. Give a folder that all machines share, or a URL such as s3://bucket/folder",
                    context.name,
                    len(absent),
                    context.parallelism,
                    ", ".join(map(str, absent[:8])) + ", ..." * (len(absent) > 8),
                    self.path,
                    this_process().host,
                )

    def _place_in_lineage(self, recorded: list[dict[str, Any]], claim: int) -> tuple[str, int]:
        """A fresh job founds a lineage, which all its subtasks call alike; a restored job continues its origin's.

        Its generation is not below its claim: of jobs restored from one savepoint each has another, and none removes
        what a newer one has in progress.
        """
        context = self.context
        if not recorded:
            return f"{slug(context.job_id)}-{slug(context.operator_id)}", 0
        last = recorded[0]
        if last["job_id"] == context.job_id:
            return last["lineage"], last["generation"]
        return last["lineage"], max(last["generation"] + 1, claim)

    def _take_back_what_came_after(self, recorded: list[dict[str, Any]]) -> None:
        """Remove what earlier attempts committed for checkpoints later than the one that is restored.

        There is none, unless the job had to go back. A later attempt's files are its own affair: this one may be a
        zombie that was slow to start.
        """
        context = self.context
        if not recorded or recorded[0]["job_id"] != context.job_id:
            return
        restored = max(each["checkpoint_id"] for each in recorded)
        for name in self._opened_directory().committed(self._place):
            if (parts := _COMMITTED.match(name, len(self._place))) is None or parts[2] != fingerprint(context.job_id):
                continue
            if int(parts[1]) > restored and int(parts[3]) < context.attempt_number:
                self._opened_directory().take_back(name)

    def _remove_leftovers(self, needed: set[str]) -> None:
        """Remove what earlier attempts of this subtask left, and subtask 0 also what subtasks left that are no more."""
        directory, context, has_removed = self._opened_directory(), self.context, False
        for name in directory.in_progress(f"part-{slug(context.operator_id)}-"):
            if (origin := self._origin_of(name)) is None:
                continue
            subtask, generation, attempt = origin
            mine = subtask == context.subtask_index or (context.subtask_index == 0 and subtask >= context.parallelism)
            if mine and (generation, attempt) < (self._generation, context.attempt_number) and name not in needed:
                directory.remove(name)
                has_removed = True
        if has_removed:
            directory.make_removals_last()

    def _origin_of(self, name: str) -> tuple[int, int, int] | None:
        """Subtask, generation and attempt number of a file in progress; None if it is not of this lineage."""
        if (parts := _IN_PROGRESS.match(name)) is not None:
            return int(parts[1]), int(parts[2]), int(parts[3])
        parts = _UPLOAD.match(name)
        if parts is None or parts[1] != slug(self.context.operator_id) or parts[3] not in self._generations:
            return None
        return int(parts[2]), self._generations[parts[3]], int(parts[4])


_FORMATS = 'write FileSink("out", format="parquet"), or "csv" or "jsonl"'
name_absent(FileSink, "FileSink", dict.fromkeys(("for_row_format", "for_bulk_format", "builder"), _FORMATS))
