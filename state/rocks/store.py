"""RocksStore: one RocksDB in a folder of its own: rows in the order of their bytes. All that knows rocksdict.

It has no log: what is not in a checkpoint does not outlive the process, as nothing does that is. Its folder goes when
it is closed. `compacts`: RocksDB merges files on threads of its own; without, files are merged here when a checkpoint
is made, so that the same writes always give the same files, as the simulator wants it.

Whatever RocksDB raises becomes a LocalStateFailed, which names the folder. Owned by one thread at a time.
"""

from __future__ import annotations

import errno
import os
import shutil
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import count
from tempfile import mkdtemp
from typing import Any, Final

from ..errors import LocalStateFailed
from ..full_disk import advice_on
from .memory import RocksMemory
from .row_keys import end_of

_FILE_BYTES: Final = 16 * 1024 * 1024
"""Of a table file: what is fetched, checked and sent as one piece."""
_MANIFEST_BYTES: Final = 256 * 1024
_MOST_OVERLAPPING: Final = 16
"""Runs of files that overlap, beyond which some are merged: each merge is written by the next checkpoint once more, and
each run is one more that a read may have to look into."""
_WRITES_WAIT_AT: Final = 48
"""Runs: so far may merges lag behind before RocksDB slows writes down."""
_MOST_STALE_PERCENT: Final = 300
"""What newer runs may have, of the size of the oldest: beyond it all is merged. State that was loaded in several runs
has nothing stale, and counts here; runs that together are as large as the oldest are merged with it anyway."""
_BLOOM_BITS: Final = 10
_EVERYTHING: Final = b"\xff\xff\xff"
"""Behind all rows: there are at most 2**15 key groups."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class StoreOptions:
    """Of all stores of a process. `folder`: where they have their folders; it is there."""

    folder: str
    memory: RocksMemory
    compacts: bool = True
    _numbers: Iterator[int] = field(default_factory=partial(count, 1))

    @classmethod
    def temporary(cls, memory: RocksMemory, *, compacts: bool = True) -> StoreOptions:
        """With a folder that goes with the last store, or snapshot, that uses these options."""
        options = cls(mkdtemp(prefix="understudy-rocksdb-"), memory, compacts)
        weakref.finalize(options, shutil.rmtree, options.folder, ignore_errors=True)
        return options

    def new_path(self) -> str:
        """Of a folder that nobody has had; it is not made."""
        return os.path.join(self.folder, str(next(self._numbers)))


class RocksStore:
    """Opened at its first use; `path` need not be there, or holds the files of a checkpoint."""

    def __init__(self, path: str, options: StoreOptions) -> None:
        self.path = path
        self.options = options
        self._is_closed = False

    def get(self, row: bytes) -> bytes | None:
        try:
            return self._db.get(row)  # type: ignore[no-any-return]
        except Exception as error:
            raise self._as_ours(error) from error

    def get_many(self, rows: Sequence[bytes]) -> list[bytes | None]:
        with self._named():
            return self._db.get(rows)  # type: ignore[no-any-return]

    def write(self, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """All in one go; None removes a row."""
        from rocksdict import WriteBatch

        with self._named():
            batch = WriteBatch(raw_mode=True)
            put, delete = batch.put, batch.delete
            for row, value in changes:
                if value is None:
                    delete(row)
                else:
                    put(row, value)
            if len(batch):
                self._db.write(batch, self._unlogged)

    def items(self, prefix: bytes, start: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """All rows with a prefix, as they are now, from `start` on."""
        from rocksdict import ReadOptions

        with self._named():
            options = ReadOptions()
            options.set_iterate_upper_bound(end_of(prefix) if prefix else _EVERYTHING)
            rows = self._db.items(from_key=max(start, prefix), read_opt=options)
        while True:
            with self._named():
                item = next(rows, None)
            if item is None:
                return
            yield item

    def has_any(self, prefix: bytes) -> bool:
        return next(self.items(prefix), None) is not None

    def remove_range(self, start: bytes, end: bytes) -> None:
        """All rows from `start` to before `end`."""
        with self._named():
            self._db.delete_range(start, end, self._unlogged)

    def ingest(self, path: str, items: Iterable[tuple[bytes, bytes]]) -> None:
        """Take in rows, which come in order and lie where there are none, by a table file at this path."""
        from rocksdict import IngestExternalFileOptions, Options, SstFileWriter

        with self._named():
            writer, is_empty = SstFileWriter(Options(raw_mode=True)), True
            writer.open(path)
            for row, value in items:
                writer[row] = value
                is_empty = False
            if is_empty:
                return
            writer.finish()
            moving = IngestExternalFileOptions()
            moving.set_move_files(True)
            self._db.ingest_external_file([path], moving)

    def checkpoint(self, path: str) -> list[str]:
        """All rows as they are now, as files in a folder that is made: the names of the table files, and of the rest.
        The files are links to those of the store, which never change.
        """
        from rocksdict import Checkpoint

        with self._named():
            if not self.options.compacts and self._overlapping() > _MOST_OVERLAPPING:
                self._db.compact_range(None, None)
            Checkpoint(self._db).create_checkpoint(path)
            return sorted(name for name in os.listdir(path) if is_needed(name))

    def close(self) -> None:
        """And remove its folder. Checkpoints stay."""
        if not self._is_closed:
            self._is_closed = True
            if "_db" in self.__dict__:
                with suppress(Exception):  # rocksdict knows but one; what it does not close goes with the folder
                    self._db.close()
            shutil.rmtree(self.path, ignore_errors=True)

    def _overlapping(self) -> int:
        return sum(file["level"] == 0 for file in self._db.live_files())

    @cached_property
    def _db(self) -> Any:
        from rocksdict import Rdict

        assert not self._is_closed, f"the store at {self.path} is closed"
        return Rdict(self.path, self._opened_with())

    @cached_property
    def _unlogged(self) -> Any:
        from rocksdict import WriteOptions

        options = WriteOptions()
        options.disable_wal = True  # type: ignore[method-assign, assignment]
        return options

    def _opened_with(self) -> Any:
        from rocksdict import BlockBasedOptions, DBCompactionStyle, DBCompressionType, Options, UniversalCompactOptions

        options, tables, memory = Options(raw_mode=True), BlockBasedOptions(), self.options.memory
        cache, write_buffers = memory.shared()
        tables.set_block_cache(cache)
        tables.set_cache_index_and_filter_blocks(True)
        tables.set_pin_l0_filter_and_index_blocks_in_cache(True)
        tables.set_bloom_filter(_BLOOM_BITS, False)
        tables.set_format_version(5)
        options.create_if_missing(True)
        options.set_block_based_table_factory(tables)
        # Files are merged with others of their size, so that a small change does not rewrite what is large and old.
        merging = UniversalCompactOptions()
        merging.max_size_amplification_percent = _MOST_STALE_PERCENT
        options.set_compaction_style(DBCompactionStyle.universal())
        options.set_universal_compaction_options(merging)
        options.set_level_zero_file_num_compaction_trigger(_MOST_OVERLAPPING)
        options.set_level_zero_slowdown_writes_trigger(_WRITES_WAIT_AT)
        options.set_level_zero_stop_writes_trigger(2 * _WRITES_WAIT_AT)
        options.set_compression_type(DBCompressionType.lz4())
        options.set_write_buffer_manager(write_buffers)
        options.set_write_buffer_size(memory.write_buffer_bytes)
        options.set_target_file_size_base(_FILE_BYTES)
        options.set_max_manifest_file_size(_MANIFEST_BYTES)
        options.set_manifest_preallocation_size(4096)
        options.set_max_open_files(256)
        options.set_keep_log_file_num(1)
        options.set_stats_dump_period_sec(0)
        options.set_stats_persist_period_sec(0)
        options.set_disable_auto_compactions(not self.options.compacts)
        return options

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            ours = self._as_ours(error)
            if ours is error:
                raise
            raise ours from error

    def _as_ours(self, error: Exception) -> Exception:
        """rocksdict raises bare Exceptions, and of its own only that a store is closed."""
        is_theirs = type(error) is Exception or type(error).__module__ == "rocksdict"
        return failed(self.path, str(error)) if is_theirs else error


def failed(path: str, found: str) -> LocalStateFailed:
    """`found`: what RocksDB says of its folder. Of a full disk the error has what is left there."""
    is_full = os.strerror(errno.ENOSPC) in found
    advice = advice_on(OSError(errno.ENOSPC, found), path, is_local=True) if is_full else None
    return LocalStateFailed(path, found, f"{advice.found}: {advice.todo}, by state_dir" if advice else "")


def is_needed(name: str) -> bool:
    """Whether a store that is made of a checkpoint needs this file of it."""
    return is_table(name) or name in ("CURRENT", "rocksdict-config.json") or name.startswith("MANIFEST-")


def is_table(name: str) -> bool:
    """Whether a file holds rows, and so never changes."""
    return name.endswith(".sst")
