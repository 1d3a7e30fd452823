"""LocalCopies: copies of a subtask's snapshot files on its machine's own disk, for whoever restores it there.

    <folder>/<vertex>-<subtask>/<path of the file in the checkpoint directory, quoted>

A copy is only ever a shortcut. It is read whole and compared with the handle's length and checksum; one that is
missing, damaged or unreadable is passed over, and the file of the checkpoint directory is read. A full disk means no
copy, and no failure. So the folder may be deleted at any time. Where the process has keys, copies are encrypted,
too. Flink: TaskLocalStateStore.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from urllib.parse import quote

from ...messages import CheckpointId, StateHandle, SubtaskIndex, SubtaskState, VertexId
from ..errors import CorruptState, WrongEncryptionKey
from ..full_disk import named
from ..handle_bytes import verified
from ..keyring import Keyring, is_sealed, opened
from ..storage import CheckpointStorage, handle_reader
from .snapshot_file import state_handles

log = logging.getLogger(__name__)

_WRITING = ".writing"
_PIECE_BYTES = 1024 * 1024


class LocalCopies:
    """Those of one subtask. Safe from several threads as long as each writes other files."""

    def __init__(
        self, folder: str, vertex_id: VertexId, subtask_index: SubtaskIndex, keys: Keyring | None = None
    ) -> None:
        self._keys = keys
        self._all = folder
        self._own = os.path.join(folder, f"{quote(vertex_id, safe='')}-{subtask_index}")
        self._of: dict[CheckpointId, set[str]] = {}
        self._completed: CheckpointId | None = None
        self._has_warned = False

    def keep(self, path: str, chunks: Iterable[bytes]) -> None:
        """Copy a file that was written into the checkpoint directory."""

        def write(copy: str) -> None:
            with open(copy, "wb") as file:
                file.writelines(chunks if self._keys is None else self._keys.sealed(chunks))

        self._make(path, write)

    def keep_file(self, path: str, source: str) -> None:
        """The same of one whose bytes stand in a file that never changes: by a hard link, where that is possible."""
        if self._keys is None:
            self._make(path, lambda copy: _link(source, copy))
        else:
            self.keep(path, _pieces(source))

    def written(self, checkpoint_id: CheckpointId, state: SubtaskState) -> None:
        """The snapshot of this checkpoint consists of these files. Removes those that nobody restores from any more,
        and what earlier attempts have left. Blocks.
        """
        self._of[checkpoint_id] = {_name(handle.path) for handle in state_handles(state) if handle.path is not None}
        if self._completed is None:
            return
        needed = {number: names for number, names in self._of.copy().items() if number >= self._completed}
        self._of = needed
        kept = set[str]().union(*needed.values())
        with suppress(OSError):  # a copy too many is no harm
            for name in set(os.listdir(self._own)) - kept:
                if not name.endswith(_WRITING):
                    os.unlink(os.path.join(self._own, name))

    def complete(self, checkpoint_id: CheckpointId) -> None:
        """Nobody restores from an older checkpoint any more: its copies go when the next snapshot has been written."""
        self._completed = checkpoint_id

    def reader(self, storage: CheckpointStorage) -> Callable[[StateHandle], bytes]:
        """A reader as `handle_reader` gives, which looks here first."""
        other = handle_reader(storage)
        held: dict[str, bytes] = {}

        def read(handle: StateHandle) -> bytes:
            if handle.path is None:
                return other(handle)
            if handle.path not in held:
                found = self._read(handle)
                if found is None:
                    return other(handle)
                held.clear()  # the next handles are likely to lie in the same file
                held[handle.path] = found
            return held[handle.path]

        return read

    def _read(self, handle: StateHandle) -> bytes | None:
        assert handle.path is not None
        for copy in self._copies_of(handle.path):
            try:
                with open(copy, "rb") as file:
                    found = file.read()
                data = verified(opened(self._keys, copy, found) if is_sealed(found) else found, handle)
            except (OSError, WrongEncryptionKey):
                continue
            except CorruptState as error:
                log.warning("the local copy %s is not used: %s", copy, error)
                with suppress(OSError):
                    os.unlink(copy)
                continue
            log.info("restored from the local copy %s", copy)
            return data
        return None

    def _copies_of(self, path: str) -> Sequence[str]:
        """Where it may lie: after a rescale also with other subtasks."""
        try:
            folders = sorted(os.listdir(self._all))
        except OSError:
            return ()
        own = os.path.basename(self._own)
        folders.sort(key=lambda folder: folder != own)
        return [os.path.join(self._all, folder, _name(path)) for folder in folders]

    def _make(self, path: str, write: Callable[[str], None]) -> None:
        copy = os.path.join(self._own, _name(path))
        try:
            os.makedirs(self._own, exist_ok=True)
            write(copy + _WRITING)
            os.replace(copy + _WRITING, copy)
        except OSError as error:
            log.log(
                logging.INFO if self._has_warned else logging.WARNING,
                "there is no local copy of %s in %s, so a restart reads it from the checkpoint directory: %s. Of the "
                "next ones of this attempt the log says so at INFO",
                path,
                self._own,
                named(error, copy, is_local=True),
            )
            self._has_warned = True
            with suppress(OSError):
                os.unlink(copy + _WRITING)


def _name(path: str) -> str:
    return quote(path, safe="")


def _pieces(source: str) -> Iterator[bytes]:
    with open(source, "rb") as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


def _link(source: str, copy: str) -> None:
    try:
        os.link(source, copy)
    except OSError:  # another disk
        shutil.copyfile(source, copy)
