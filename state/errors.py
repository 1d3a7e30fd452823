"""What can go wrong while remembering.

StateError
├── InvalidState           a declaration that cannot work, or one used where it does not belong
├── UnboundState           a state declaration was used before its task bound it to a backend
├── NoCurrentKey           keyed state, or `self.key`, was used where no key is set, as in `open`
├── HasCurrentKey          a loop over all keys where a key is set, as in `process`
├── WrongColumn            an aggregate is of a column that its input does not have, or has in another type
├── WrongStateType         a value was put into a state that is declared for another type
├── UpdateForgotten        a default was changed in place, and not put into the state
├── ReadOnlyState          a question tried to change state
├── InvalidKey             a value that cannot be a key (in key_hash.py)
├── StateIncompatible      a snapshot's state does not fit the declaration of today
├── StateNotStorable       a value, or a key, that cannot be put into a snapshot
├── SnapshotTooLarge       more state than travels inside an acknowledgement
├── UnknownBackend         no such state backend is registered
├── LocalStateFailed       RocksDB could not read or write its files on this machine
├── UnwritableFolder       a disk takes no more: it is full, read-only, another user's, or a quota is used up
├── LostLeadership         another JobManager leads
├── AlreadyRunning         a job of this name is to go on, and somebody else's runs
├── AlreadyFinished        a job of this name is to go on, and has finished
├── LostOwnership          another process has taken a job's name over
└── StorageError           something is wrong with the checkpoint storage
    ├── CorruptState       a file is not what was written: length or checksum differ
    ├── MissingState       a file that a handle points to is gone
    │   ├── NotShared      a task has written it, and this process does not find it under the same path
    │   ├── EarlierFilesGone    a checkpoint goes on using files of earlier ones, and somebody has removed them
    │   └── MissingSavepoint   there is no savepoint at this path, or not any more
    ├── WrongSavepointStore    a savepoint's path or directory that this kind of store cannot have
    ├── ForgedPointer      a savepoint's pointer leads to what is not its job's
    ├── OutsideRoot        a path from outside leads out of the checkpoint directory
    │   └── UnknownSavepointRoot   a savepoint's path is below no folder in which savepoints are looked for
    ├── UnwritableRoot     the checkpoint directory cannot be made or written
    ├── UnreachableRoot    the checkpoint directory is not there now, so nobody knows about the files in it
    ├── RequestFailed      an object store did not do what was asked, or not in time, or refused it
    ├── WrongEncryptionKey this process cannot open an encrypted file, or cannot encrypt as its job wants it
    ├── InvalidEncryptionKeys  the file with the keys of this process cannot be used
    └── InvalidStorageSetting  a variable of the environment about object stores has a value that cannot be
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from types import FrameType

from ..messages.shown_url import path_shown


def of_operator(name: str) -> str:
    """The begin of an error text: whose state it is, where that is known."""
    return f"operator {name!r}: " if name else ""


class StateError(Exception):
    """Base of all errors of state/."""


class InvalidState(StateError, TypeError):
    """A state declaration that cannot work; the text names it and says what was wanted."""


class WrongColumn(StateError, ValueError):
    """An aggregate is of a column that its input does not have, or has in another type. Found before a record is taken,
    and found again after each restart.
    """


class UnboundState(StateError, RuntimeError):
    """State was used on a class, or on an operator that no task has opened."""

    def __init__(self, state: str) -> None:
        if not state:
            told = (
                "a state that no class declares was used, made in a method such as `open`, or used in the body of its "
                "class before it has a name: declare it in the class, as `NAME = ValueState(...)` beside the methods, "
                "and use it as self.NAME in `process`"
            )
        elif _is_within("__init__"):
            told = (
                f"state {state!r} is not bound: `__init__` runs where the program is built, before any record and key; "
                "use it in `process`, and give a first value as default=..."
            )
        else:
            told = (
                f"state {state!r} is not bound: it was used on the class, or on an operator that no task has opened; "
                f"write self.{state} in `process`; a test opens the operator with OperatorHarness"
            )
        super().__init__(told)


def _is_within(function: str) -> bool:
    """Whether one of this name is among the callers of whoever made the error."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_name != function:
        frame = frame.f_back
    return frame is not None


class NoCurrentKey(StateError, RuntimeError):
    """Keyed state, and `self.key`, belong to a key, and none is set here.

    `used` says what was used. `hook` is the method of the operator in which it was; whoever calls that method sets it.
    `has_keys`: whether the operator has a key anywhere.
    """

    def __init__(self, used: str, operator: str = "", hook: str = "", has_keys: bool = True) -> None:
        super().__init__(used, operator, hook, has_keys)
        self.used, self.operator, self.hook, self.has_keys = used, operator, hook, has_keys

    def __str__(self) -> str:
        if not self.has_keys:
            return (
                f"{of_operator(self.operator)}{self.used} was used, and this operator has no key: subclass "
                "KeyedOperator, and call key_by(...) before it. Set an attribute of your own before, as in open"
            )
        where = f" in `{self.hook}`, which is called without a key" if self.hook else " without a key"
        if self.hook == "process_2":
            remedy = (
                "a broadcast record has none; keep what every key needs in an OperatorListState(..., "
                "mode='broadcast'), which `process` reads, or go through all keys with `for key in self.keys():`"
            )
        elif self.hook == "on_receive":
            remedy = "ask with key=..., or go through all keys with `for key in self.keys():`"
        elif self.hook:
            remedy = "only `process` has the key of a record; go through all keys with `for key in self.keys():`"
        else:
            remedy = "use it in `process` or in `for key in self.keys():`, or ask with key=..."
        return f"{of_operator(self.operator)}{self.used} was used{where}: {remedy}"


class CallIsOver(StateError, RuntimeError):
    """Something was used on behalf of a record whose `process` has ended, or was cancelled.

    `used` says what; `was_kept`: it is an `out` that the operator kept beyond a call, or gave to a thread; `begun_at`:
    the line that began the task, or set the timer, which used it, if that is known. `in_thread`: a thread of the
    operator's own used it, of an operator without coroutines.
    """

    def __init__(
        self, used: str, operator: str = "", was_kept: bool = False, begun_at: str = "", in_thread: bool = False
    ) -> None:
        super().__init__(used, operator, was_kept, begun_at, in_thread)
        self.used, self.operator, self.was_kept, self.begun_at = used, operator, was_kept, begun_at
        self.in_thread = in_thread

    def __str__(self) -> str:
        found = f"{of_operator(self.operator)}{self.used} was used "
        if self.was_kept:
            return (
                f"{found}after the call that it was given to had returned: no checkpoint counts what a thread emits, "
                "or an `out` that was kept; emit before process (or on_timer, on_end, ...) returns, or write "
                "`async def process` and await there what takes long"
            )
        if self.in_thread:
            return (
                f"{found}by another thread than that of its task: state goes by the key of the record that the task is "
                "at, which may be any. Use it in process, on_timer or on_idle; for what is due by the clock set "
                "self.timers.at_processing_time(...), and write `async def process` for what takes long"
            )
        what = f"what was begun at {self.begun_at}" if self.begun_at else "what it began"
        return (
            f"{found}by code that outlived its record: `async def process` has returned, or was cancelled, and {what} "
            "went on; await all that it begins, as with asyncio.gather(...) or asyncio.TaskGroup()"
        )


class HasCurrentKey(StateError, RuntimeError):
    """`self.keys()` sets one key after the other, and here a key is set that this would take away."""

    def __init__(self, key: object, operator: str = "") -> None:
        super().__init__(
            f"{of_operator(operator)}self.keys() was used where the key is {key!r:.60}: it sets one key after the "
            "other, so use it where there is no key, as in `on_end`; not in `process`, nor inside another such loop"
        )


class ReadOnlyState(StateError, RuntimeError):
    """A question may read state only: no source could replay the change after a failure."""

    def __init__(self, state: str) -> None:
        super().__init__(f"state {state!r} is read-only while a question is answered")


_TWO_OF_A_NAME = re.compile(r"wanted (?:\w+\.)*(\S+)(?: \| None)?, found \1 ")
"""In what a Misfit says."""


class WrongStateType(StateError, TypeError):
    """A value was put into a state that is declared for another type. `text`: what was wanted, and what was found."""

    def __init__(self, declared: str, text: str, operator: str = "") -> None:
        if two := _TWO_OF_A_NAME.search(text):
            todo = (
                f"there are two classes {two[1]}, as when the cell of one is run again in a notebook: run that of the "
                "operator again, too, so that it declares the new class"
            )
        else:
            todo = "store a value of the declared type, or declare the type of this value"
        super().__init__(f"{of_operator(operator)}{declared}: {text}; {todo}")
        self.operator = operator


class UpdateForgotten(StateError):
    """A default, or a coroutine's copy of a value, was changed in place, and nothing has put it back."""

    def __init__(self, declared: tuple[str, str, bool], key: object, operator: str, found: str = "the default") -> None:
        """`declared`: the state in words, its name, and whether it is a map. `found`: what was changed."""
        told, name, is_map = declared
        method, put = ("get", f"{name}.put(key, value)") if is_map else ("value", f"{name}.update({name})")
        instead = "" if is_map else ", or declare a ListState or a MapState, which need no update"
        super().__init__(
            f"{of_operator(operator)}{told}: what {method}() gave for key {key!r:.60} was {found}; it has been "
            f"changed in place, and would be lost: put it back in the same call, with self.{put}{instead}"
        )


class StateIncompatible(StateError):
    """A restored state does not fit its declaration. Names the state and both types; where these are the same, a value
    or key of it does not.
    """

    def __init__(self, state: str, wanted: str, found: str, reason: str = "", operator: str = "") -> None:
        because, whose = f": {reason}" if reason else "", of_operator(operator)
        if wanted == found and reason:
            super().__init__(f"{whose}state {state!r} ({wanted}) cannot be restored{because}")
        else:
            super().__init__(f"{whose}state {state!r} is declared as {wanted}, but the snapshot holds {found}{because}")
        self.state, self.wanted, self.found = state, wanted, found


class StateNotStorable(StateError, TypeError):
    """A value or key that cannot be written into a snapshot; the text names the state."""


class SnapshotTooLarge(StateError):
    """Inline state has a limit; larger state wants the filesystem backend."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            f"this subtask's state has {size_bytes} bytes; the memory backend sends at most {limit_bytes} "
            "with an acknowledgement: use the filesystem backend and a checkpoint directory"
        )


class UnknownBackend(StateError, LookupError):
    """No state backend is registered under this name; the text lists those that are."""


_LIMITS_OF_ROCKSDB = {
    "File too large": "no file there may become so large: raise the limit (ulimit -f) where TaskManagers start",
    "Too many open files": "raise the limit of open files (ulimit -n) where TaskManagers start",
}
"""What to do, by the words of the operating system."""


class LocalStateFailed(StateError, OSError):
    """RocksDB cannot read or write its files on this machine. `path`: their folder; `found`: what RocksDB says; `todo`:
    what to do, if the caller knows it.
    """

    may_pass = True

    def __init__(self, path: str, found: str, todo: str = "") -> None:
        todo = todo or (
            "see that the folder can be written and its disk has room, or set state_dir to one of which both is true"
        )
        todo = next((each for limit, each in _LIMITS_OF_ROCKSDB.items() if limit in found), todo)
        short = found.replace(f"{path}/", "")
        super().__init__(f"RocksDB failed in its working folder {path}: {short}; {todo}")
        self.path, self.found = path, found


class UnwritableFolder(StateError, OSError):
    """A disk takes no more, or not from this user. The errno is that of the cause; the text names the folder, and says
    what to do.
    """


class LostLeadership(StateError):
    """Another leader session has begun: what this one wants to keep is refused."""

    def __init__(self, session: str) -> None:
        super().__init__(f"leader session {session} is over: another JobManager leads; nothing was changed")


class AlreadyRunning(StateError):
    """With `resume`: the job of this name runs, as far as anybody knows; nothing was changed. `host`, `pid`: whose."""

    def __init__(self, text: str, host: str, pid: int) -> None:
        super().__init__(text)
        self.host, self.pid = host, pid


class AlreadyFinished(StateError):
    """With `resume`: the job of this name has processed all its data; nothing was changed."""


class LostOwnership(StateError):
    """The job goes on elsewhere: another process has taken its name over while this one was not heard of. From then on
    this one completes no checkpoint, so it commits nothing, and deletes nothing.
    """


class StorageError(StateError):
    """Base of what is wrong with stored files. `path` says which; the text shows no password of a URL."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(f"{path_shown(path)}: {text}")
        self.path = path


class CorruptState(StorageError):
    """A file's bytes are not those that were written."""

    def __init__(self, path: str, expected: str, found: str) -> None:
        super().__init__(path, f"corrupt state: expected {expected}, found {found}")
        self.expected, self.found = expected, found


class MissingState(StorageError):
    """A file that should be there is not."""

    def __init__(self, path: str) -> None:
        super().__init__(path, "missing state: no such file")


class NotShared(MissingState):
    """A task has written a file, and this process does not find it: under one path they have two folders."""

    def __init__(self, path: str, root: str, *, never_was: bool) -> None:
        """`never_was`: no file of any task was found yet."""
        self.never_was = never_was
        StorageError.__init__(
            self,
            path,
            f"a task has written this file below {path_shown(root)} on its host, and the JobManager does not find it "
            "there: no other host could restore from it. Put the checkpoint_dir where all hosts share it at the same "
            "path: on a shared file system (is it mounted on each of them?), or in an object store, as "
            "s3://bucket/folder",
        )


class EarlierFilesGone(MissingState):
    """A new checkpoint names files that an earlier one has written, and they are gone."""

    def __init__(self, path: str, checkpoint_id: int, count: int, folder: str) -> None:
        StorageError.__init__(
            self,
            path,
            f"checkpoint {checkpoint_id} uses files that earlier checkpoints have written, and {count} of them, this "
            f"one among them, are gone: somebody has removed them from {path_shown(folder)}",
        )


class MissingSavepoint(MissingState):
    """No savepoint is here."""

    def __init__(self, path: str, why: str = "") -> None:
        """`why`: empty when all that is known is that it is not here."""
        StorageError.__init__(self, path, f"missing savepoint: {why or 'it has been disposed of, or never was here'}")
        self.why = why


class WrongSavepointStore(StorageError):
    """This kind of savepoint store has no such path; the text says which kind it is, and what to set."""


class ForgedPointer(StorageError):
    """A savepoint's pointer leads to another checkpoint than it names, or is that of another savepoint: it must not be
    used to read or delete.
    """


class OutsideRoot(StorageError):
    """A path leads out of the checkpoint directory, or of the other one that is `called` so."""

    def __init__(self, path: str, root: str, called: str = "checkpoint directory") -> None:
        super().__init__(path, f"is outside of the {called} {root}: wanted a path below it")
        self.root = root


class UnknownSavepointRoot(OutsideRoot):
    """Savepoints are looked for in these directories only, and the path leads out of all of them."""

    def __init__(self, path: str, roots: tuple[str, ...]) -> None:
        StorageError.__init__(
            self,
            path,
            f"is in none of the savepoint directories of this cluster's jobs ({', '.join(roots) or 'there are none'}): "
            "set the checkpoint_dir of its job on the StreamEnvironment, or savepoints.state.backend.fs.dir on the "
            "cluster",
        )
        self.root = ", ".join(roots)


class UnwritableRoot(StorageError):
    """The checkpoint directory cannot be made or written; raised early, by `CheckpointStorage.check`."""

    def __init__(self, path: str, cause: object, called: str = "checkpoint directory") -> None:
        super().__init__(path, f"the {called} cannot be written: {cause}")
        self.cause = str(cause)


class UnreachableRoot(StorageError):
    """The whole checkpoint directory is gone, as when a disk is not mounted: worth another try, later."""

    def __init__(self, path: str, called: str = "checkpoint directory", found: str = "") -> None:
        """`found`: what says so, and what to do, where it is not just missing."""
        missing = f"the {called} is not there; mount it again, or bring it back with all that was in it"
        super().__init__(path, found or missing)
        self.found = found


class RequestFailed(StorageError, OSError):
    """An object store did not do what was asked; worth another try, later. `tries`: how often it was asked."""

    def __init__(self, path: str, what: str, tries: int, cause: BaseException) -> None:
        times = "1 try" if tries == 1 else f"{tries} tries"
        why = str(cause) or "no answer within the limit of time"
        super().__init__(path, f"could not {what} this object in {times}: {type(cause).__name__}: {why}")
        self.tries = tries


class WrongEncryptionKey(StorageError):
    """`path` was encrypted with the key `key_id`, which this process does not have; its keys are `ids`, of the file
    `source`. Nothing is known about what the file holds: it is not damaged.
    """

    def __init__(self, path: str, key_id: str, ids: Sequence[str], source: str) -> None:
        has = f"has {', '.join(ids)} of {source or 'its keyring'}" if ids else "has no keys"
        super().__init__(
            path,
            f"is encrypted with key {key_id}, and this process {has}; "
            "name the file with that key in UNDERSTUDY_ENCRYPTION_KEYS, or add the key to the file, as another line",
        )
        self.key_id, self.ids = key_id, tuple(ids)


class InvalidEncryptionKeys(StorageError, ValueError):
    """The file with the keys of encryption at rest, `path`, cannot be used; the text says what was wanted."""


class InvalidStorageSetting(StorageError, ValueError):
    """A variable of the environment that says how object stores are asked; the text says what was wanted."""
