"""OutputDirectory: where a sink's files are written, sealed and published.

Files in progress lie in a hidden folder below the output, whose name begins with a dot, so that Spark and other
readers do not see them. A file is published by renaming it, which is atomic on a file system; an object store
copies, and shows the copy when it is whole. On a local disk what was sealed or published also survives a power cut.
Any fsspec URL will do; in S3 there is a better way, see `UploadDirectory`.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
from collections.abc import Iterator, Sequence
from io import BufferedWriter, FileIO
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from ....actors.passing_errors import is_lasting
from ....state import DurableFiles
from ..errors import LostTransaction, UnusableOutput
from .locations import located

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_BUFFER_BYTES = 1 << 16
_TRIES = 5
"""Another subtask that ends may remove the hidden folder between its making and the file's."""


_WANTED = (
    "Wanted: a folder that each TaskManager can make and write to, and that nobody moves or deletes while the job "
    "runs. Put that right, or submit the job with another path"
)


class Sealed(NamedTuple):
    """Names of a sealed file while in progress and when visible, and tags of its parts, if it has any."""

    in_progress: str
    final: str
    parts: Sequence[str]


@contextlib.contextmanager
def explained(folder: str) -> Iterator[None]:
    """An error that will repeat until somebody changes something there gets a text that names the change."""
    try:
        yield
    except OSError as error:
        if not is_lasting(error):
            raise
        raise UnusableOutput(f"cannot write to the output folder {folder}: {error}. {_WANTED}") from error


class OutputDirectory:
    """One output directory, with one hidden folder. All names are relative to these two."""

    def __init__(self, url: str, hidden: str) -> None:
        fs, root = located(url)
        self._files = DurableFiles(fs)
        self.root = root.rstrip("/")
        self.hidden = f"{self.root}/{hidden}"
        self._is_root_synced = False

    def create(self, name: str, _final: str = "") -> BinaryIO:
        """A new file in progress. Raises UnusableOutput."""
        path = f"{self.hidden}/{name}"
        with self._explained():
            self._check_still_there()
            for _ in range(_TRIES - 1):
                with contextlib.suppress(FileNotFoundError):
                    return self._create(path)
            return self._create(path)

    def seal(self, file: BinaryIO, name: str) -> int:
        """Close the file of this name and see that it lasts, in folders that another subtask may have made; its size.
        Raises UnusableOutput, also where somebody has taken the file away or changed its size meanwhile: its records
        come again then, as the checkpoint fails.
        """
        with self._explained():
            size_bytes = file.tell()
            self._files.seal(file)
            self._files.sync_folder(self.hidden)
            self._files.sync_folder(self.root)
        if self._files.is_local:
            self._check_sealed(f"{self.hidden}/{name}", size_bytes)
        return size_bytes

    def publish(self, name: str, final: str, _parts: Sequence[str] = (), *, size_bytes: int | None = None) -> None:
        """Make a sealed file, of this size if that is known, visible as `final`. Doing it twice is doing it once;
        raises LostTransaction and UnusableOutput.
        """
        source, target = f"{self.hidden}/{name}", f"{self.root}/{final}"
        with self._explained():
            try:
                if size_bytes is not None and self._files.is_local:
                    self._check_size(source, size_bytes)
                self._files.replace(source, target)
            except FileNotFoundError:
                if not self._files.exists(target):
                    raise self._lost(source, target) from None
                self._files.sync_folder(self.root)

    def remove(self, name: str) -> None:
        """Remove a file in progress; an absent one is fine."""
        self._files.remove(f"{self.hidden}/{name}")

    def make_removals_last(self) -> None:
        """Of files in progress. Without it they may be back when the power has failed."""
        with contextlib.suppress(FileNotFoundError):  # another subtask has removed the folder, which was empty
            self._files.sync_folder(self.hidden)

    def in_progress(self, _beginning: str = "") -> list[str]:
        """The names of all files in progress, of whichever subtask and attempt. Raises UnusableOutput."""
        with self._explained():
            return self._files.names(self.hidden)

    def committed(self, beginning: str) -> list[str]:
        """The names of all visible files that begin so. Raises UnusableOutput."""
        with self._explained():
            return [name for name in self._files.names(self.root) if name.startswith(beginning)]

    def take_back(self, final: str) -> None:
        """Remove a visible file; an absent one is fine."""
        self._files.remove(f"{self.root}/{final}")
        self._files.sync_folder(self.root)

    def remove_hidden_if_empty(self) -> None:
        """Only on a local disk, which refuses to remove a folder that is not empty; object stores have no folders. Then
        it is gone permanently, and what was removed from it before.
        """
        if self._files.remove_empty_folder(self.hidden):
            self._files.sync_folder(self.root)

    def _lost(self, source: str, target: str) -> LostTransaction:
        elsewhere = (
            ", or they lie on another host, with a folder of its own under this path: a job on several hosts needs one "
            "that all of them share"
        )
        return LostTransaction(
            f"committed records of the output folder {self.root} are lost: neither the pre-committed file {source} nor "
            f"the committed one {target} exists. Somebody has moved or deleted them, while the job ran or before it "
            f"was restored{elsewhere if self._files.is_local else ''}. Put the files back, or submit the job afresh, "
            "with an output folder of its own"
        )

    def _check_sealed(self, path: str, size_bytes: int) -> None:
        try:
            found = self._files.size_bytes(path)
        except FileNotFoundError:
            what = "is gone"
        else:
            if found == size_bytes:
                return
            what = f"has {found} bytes, and {size_bytes} were written"
        raise _changed(path, what)

    def _check_size(self, source: str, size_bytes: int) -> None:
        found = self._files.opened_size_bytes(source)
        if found != size_bytes:
            raise LostTransaction(
                f"committed records of the output folder {self.root} are spoilt: the pre-committed file {source} has "
                f"{found} bytes, and had {size_bytes} when its checkpoint was taken. Somebody, or a fault of the disk, "
                "has changed it. Put it back as it was, or submit the job again, with an output folder of its own"
            )

    def _check_still_there(self) -> None:
        """Others may make the folder, but who removes it takes committed files along. Only a local one is looked at."""
        if self._is_root_synced and self._files.is_local and not self._files.exists(self.root):
            raise UnusableOutput(
                f"the output folder {self.root} is gone: it was there when this attempt began to write, and somebody "
                f"has removed it since, with what was committed. {_WANTED}"
            )

    def _explained(self) -> contextlib.AbstractContextManager[None]:
        return explained(self.root)

    def _create(self, path: str) -> BinaryIO:
        self._files.make_folder(self.hidden)
        if not self._is_root_synced:  # whoever made the folders above may have failed, or died, before they were synced
            self._files.sync_up(posixpath.dirname(self.root), "/")
            self._is_root_synced = True
        return self._files.create(path, lambda path: BufferedWriter(_Growing(path), _BUFFER_BYTES))


class _Growing(FileIO):
    """A file that only grows, and only by what is written here. Cut short by somebody else it would have a hole then,
    in front of the next bytes, and in the end the size that it should have.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, "wb")
        self._path, self._end = path, 0

    def write(self, data: ReadableBuffer) -> int:
        """Raises UnusableOutput."""
        if (found := os.fstat(self.fileno()).st_size) != self._end:
            raise _changed(self._path, f"has {found} bytes, and {self._end} were written")
        written = super().write(data)
        self._end += written
        return written


def _changed(path: str, what: str) -> UnusableOutput:
    return UnusableOutput(
        f"the file {path} {what}: somebody has changed it while it was written, so the checkpoint fails, and its "
        f"records are written again. {_WANTED}"
    )
