"""UploadDirectory: an output directory in S3, where a file in progress is a multipart upload that nobody sees.

A file is uploaded under its final name, in parts, while it is written. At its checkpoint the last part follows. The
upload's id and the tags of its parts are remembered: with them any process can complete it, in one request, which makes
the object visible whole. There is no copy, no rename, and no hidden object. Uploads that attempts have left behind are
found by S3's own list of them, and aborted.

It does what OutputDirectory does on disks and in other stores; which of the two it is, `output_directory` says.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, BinaryIO

from ..errors import LostTransaction, UnusableOutput
from .locations import located
from .output_directory import OutputDirectory, Sealed

PART_BYTES = 8 << 20
"""Of the first parts. S3 wants at least 5 MiB of all but the last one, and takes at most 10,000."""

_PARTS_OF_A_SIZE = 1_000
"""After this number of parts, their size doubles."""


def output_directory(url: str, hidden: str) -> OutputDirectory | UploadDirectory:
    """The directory at a local path or URL."""
    fs, root = located(url)
    if "s3" in (fs.protocol if isinstance(fs.protocol, tuple) else (fs.protocol,)):
        return UploadDirectory(fs, root)
    return OutputDirectory(url, hidden)


class UploadDirectory:
    """Of an s3fs file system. The name of a file in progress is its final name, a blank, and the upload's id; before
    anything is written it is whatever its user likes.
    """

    def __init__(self, fs: Any, root: str) -> None:
        self.fs = fs
        self.root = root.rstrip("/")

    def create(self, _name: str, final: str) -> BinaryIO:
        """A new file in progress; the upload begins with its first part."""
        return _Upload(self, final)  # type: ignore[return-value]

    def seal(self, file: BinaryIO, _name: str) -> Sealed:
        """Upload the last part. Raises what S3 does."""
        assert isinstance(file, _Upload), "a file of this directory"
        return file.seal()

    def publish(self, name: str, final: str, parts: Sequence[str], *, size_bytes: int | None = None) -> None:
        """Complete the upload. Doing it twice is doing it once; whatever S3 says, one looks whether it is done. Raises
        LostTransaction.
        """
        _, upload_id = name.split(" ")
        listed = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(parts, 1)]
        try:
            self.call("complete_multipart_upload", final, UploadId=upload_id, MultipartUpload={"Parts": listed})
        except OSError as error:
            if self._is_there(final):
                return
            if name in self.in_progress(final):
                raise
            raise self._lost(final, upload_id) from error
        self.fs.invalidate_cache()

    def remove(self, name: str) -> None:
        """Abort an upload; one that is gone is fine, and so is a file that never began to be one."""
        final, _, upload_id = name.partition(" ")
        if not upload_id:
            return
        try:
            self.call("abort_multipart_upload", final, UploadId=upload_id)
        except FileNotFoundError:
            return

    def make_removals_last(self) -> None:
        """They do."""

    def in_progress(self, beginning: str) -> list[str]:
        """The names of all files in progress that begin so, of whichever subtask and attempt."""
        bucket, prefix, _ = self.fs.split_path(f"{self.root}/{beginning}")
        found: list[str] = []
        after: dict[str, str] = {}
        while True:
            page = self.fs.call_s3("list_multipart_uploads", Bucket=bucket, Prefix=prefix, **after)
            uploads = [each for each in page.get("Uploads", ()) if each["Key"].startswith(prefix)]
            found += [f"{each['Key'].rpartition('/')[2]} {each['UploadId']}" for each in uploads]
            if not page.get("IsTruncated"):
                return found
            after = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}

    def committed(self, beginning: str) -> list[str]:
        """The names of all visible files that begin so."""
        self.fs.invalidate_cache()
        paths = self.fs.find(self.root, prefix=beginning)
        return sorted(path.rpartition("/")[2] for path in paths if path.rpartition("/")[0] == self.root)

    def take_back(self, final: str) -> None:
        """Remove a visible file; an absent one is fine: S3 says the same of both."""
        self.call("delete_object", final)

    def remove_hidden_if_empty(self) -> None:
        """There is nothing hidden."""

    def call(self, request: str, final: str, **arguments: Any) -> Any:
        """A request about one file. s3fs tries again what S3 could not do for now, and limits the time of each try."""
        bucket, key, _ = self.fs.split_path(f"{self.root}/{final}")
        try:
            return self.fs.call_s3(request, Bucket=bucket, Key=key, **arguments)
        except PermissionError as error:
            raise UnusableOutput(
                f"cannot write to s3://{self.root}: {error}. Wanted: a bucket in which the credentials of each "
                "TaskManager may write, list and abort uploads, and delete. Put that right, or submit the job with "
                "another path"
            ) from error

    def _is_there(self, final: str) -> bool:
        self.fs.invalidate_cache()
        return bool(self.fs.exists(f"{self.root}/{final}"))

    def _lost(self, final: str, upload_id: str) -> LostTransaction:
        return LostTransaction(
            f"committed records of s3://{self.root} are lost: there is neither the upload {upload_id} nor the object "
            f"{final} that it was to become. Somebody has aborted or deleted it, or a lifecycle rule of the bucket "
            "aborts uploads that are younger than the time from a checkpoint to its completion after restarts. Submit "
            "the job afresh, with an output folder of its own, and give the rule more days"
        )


class _Upload(io.RawIOBase):
    """One file in progress. Closing it without sealing it aborts the upload."""

    def __init__(self, directory: UploadDirectory, final: str) -> None:
        self._directory, self._final = directory, final
        self._buffer = bytearray()
        self._position = 0
        self._upload_id = ""
        self._tags: list[str] = []

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def write(self, data: Any) -> int:
        """Uploads what is enough for a part, and blocks for that."""
        view = memoryview(data).cast("B")
        self._buffer += view
        self._position += len(view)
        while len(self._buffer) >= (size := PART_BYTES << len(self._tags) // _PARTS_OF_A_SIZE):
            self._send(bytes(self._buffer[:size]))
            del self._buffer[:size]
        return len(view)

    def seal(self) -> Sealed:
        """Everything is there; the upload waits to be completed."""
        if self._buffer or not self._tags:
            self._send(bytes(self._buffer))
        sealed = Sealed(f"{self._final} {self._upload_id}", self._final, self._tags)
        self._upload_id = ""
        self.close()
        return sealed

    def close(self) -> None:
        upload_id, self._upload_id = self._upload_id, ""
        super().close()
        if upload_id:
            self._directory.remove(f"{self._final} {upload_id}")

    def _send(self, part: bytes) -> None:
        call = self._directory.call
        if not self._upload_id:
            self._upload_id = call("create_multipart_upload", self._final)["UploadId"]
        number = len(self._tags) + 1
        sent = call("upload_part", self._final, UploadId=self._upload_id, PartNumber=number, Body=part)
        self._tags.append(sent["ETag"])
