"""Sinks into Redis: RedisStreamSink and RedisListSink append, exactly once by a ledger; RedisUpsertSink sets hashes.

An append and its marker are one Lua script, which Redis runs as a whole: it checks the marker, the type of the key and
what the user may do before it writes anything, as Redis undoes nothing. The markers of a key are a hash beside it,
`understudy:{key}`, whose name hashes to the same slot of a cluster: one master has both, and the script is one act
there, too. There, hashes of RedisUpsertSink lie in any slots: each is replaced by a script of its own. Data lasts as
Redis is configured to keep it: see docs/connectors/redis.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime, time
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ....actors.errors import MarkerMoved
from ....actors.flow.cut_times import refuse_cut_times
from ....actors.flow.elements import Batch
from ....actors.flow.map_columns import with_dicts
from ....actors.flow.records import RecordMismatch, mapping_of
from ....actors.operators.idempotent_sink import IdempotentSink, KeyOfRecord
from ....actors.operators.ledger_sink import LedgerSink
from ....actors.operators.marker import Marker
from ....actors.operators.patience import RETRY_MS
from ....actors.setting_limits import duration_setting, whole_setting
from ....messages.shown_url import url_shown
from ....state import pack_batch, unpack_batch
from ..errors import RedisRefused
from ..json_texts import json_text
from ..names import one_name
from ..removals import Removals
from . import connection
from .servers import has_slot_for_markers, is_cluster, markers_of

_GUARD = """
local found = redis.call('TYPE', KEYS[1]).ok
if found ~= 'none' and found ~= ARGV[1] then
  return redis.error_reply('WRONGTYPE the key is a ' .. found .. ', wanted a ' .. ARGV[1])
end
if (redis.call('HGET', KEYS[2], ARGV[2]) or '0') ~= ARGV[3] then return 0 end
if redis.acl_check_cmd and not redis.acl_check_cmd('HSET', KEYS[2], ARGV[2], ARGV[4]) then
  return redis.error_reply('NOPERM this user may not run HSET on ' .. KEYS[2])
end
"""
_STREAM = f"""{_GUARD}
local at, most = 6, tonumber(ARGV[5])
while at <= #ARGV do
  local count, entry = 2 * tonumber(ARGV[at]), {{'XADD', KEYS[1]}}
  if most > 0 then entry[3], entry[4], entry[5] = 'MAXLEN', '~', most end
  entry[#entry + 1] = '*'
  for i = at + 1, at + count do entry[#entry + 1] = ARGV[i] end
  redis.call(unpack(entry))
  at = at + count + 1
end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[4])
return 1
"""
_MOST_FIELDS = 3_900
"""Of an entry, which has at least one: a call within a script takes less than 8,000 arguments, and a script that fails
there has added the entries before.
"""
_LIST = f"""{_GUARD}
for at = 6, #ARGV do redis.call('RPUSH', KEYS[1], ARGV[at]) end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[4])
return 1
"""
_HASH = """
local found = redis.call('TYPE', KEYS[1]).ok
if found ~= 'none' and found ~= 'hash' then
  return redis.error_reply("WRONGTYPE key '" .. KEYS[1] .. "' is a " .. found .. ', wanted a hash')
end
redis.call('DEL', KEYS[1])
for at = 2, #ARGV, 2 do redis.call('HSET', KEYS[1], ARGV[at], ARGV[at + 1]) end
if tonumber(ARGV[1]) > 0 and #ARGV > 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
"""


class _AppendSink(LedgerSink):
    """`key`: what is appended to. All subtasks append to it."""

    _type: ClassVar[str]
    _script: ClassVar[str]

    def __init__(self, url: str, key: str, *, retry_ms: float = RETRY_MS) -> None:
        connection.check_redis(url, type(self).__name__)
        one_name("key", key, f"the key of a {self._type}")
        if is_cluster(url) and not has_slot_for_markers(key):
            raise ValueError(
                f"key: in a Redis Cluster its markers must lie in its slot: wanted a key without braces, or with one "
                f"hash tag, as {{orders}}:out; found {key!r}"
            )
        self.url, self.key, self.retry_ms = url, key, duration_setting("retry_ms", retry_ms)
        self._most = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({url_shown(self.url)!r}, {self.key!r})"

    @property
    def _writes_to(self) -> str:
        return f"{self._type} {self.key!r} of {url_shown(self.url)}"

    def check_at_submit(self, on_this_machine: bool) -> None:
        """Raises RedisRefused. A server that does not answer from here may do so elsewhere, or later."""
        connection.check_for_sink(self.url, {self.key: self._type, self._markers: "hash"}, self, self.retry_ms)

    def open(self) -> None:
        self._servers = connection.connected(self.url, type(self).__name__)

    def close(self) -> None:
        if hasattr(self, "_servers"):
            self._servers.forget()

    def write(self, batch: Batch) -> None:
        """Records are kept as Redis gets them. Raises RecordMismatch for what cannot be written: when it is applied its
        checkpoint is complete, and the job could never leave it behind.
        """
        if isinstance(batch, pa.RecordBatch):
            for column in batch.columns:
                refuse_cut_times(column)
            super().write(batch)
            return
        try:
            super().write([self._made(mapping_of(record)) for record in batch])
        except (TypeError, UnicodeEncodeError) as error:
            raise RecordMismatch(f"a record cannot be written to Redis: {error}") from error

    def apply(self, batches: list[Batch], marker: Marker) -> None:
        arguments = [self._type, marker.writer, marker.after, marker.sequence, self._most]
        for batch in batches:
            arguments += self._arguments(batch)
        with connection.explained(self.url), connection.renewed(self._servers):
            done = self._servers.of(self.key).eval(self._script, 2, self.key, self._markers, *arguments)
        if not done:
            raise MarkerMoved(marker.writer, marker.after)

    def last_marker(self, writer: str) -> int | None:
        with connection.explained(self.url), connection.renewed(self._servers):
            found = self._servers.of(self._markers).hget(self._markers, writer)
        return None if found is None else int(found)

    @property
    def _markers(self) -> str:
        return markers_of(self.key)

    def _made(self, record: dict[str, Any]) -> Any:
        """What is kept of a record."""
        raise NotImplementedError  # abstract

    def _arguments(self, batch: Batch) -> list[Any]:
        """For the script, of what was kept."""
        raise NotImplementedError  # abstract


class RedisStreamSink(_AppendSink):
    """Each record is an entry: a field for each column whose value is not None, as text. `most_entries`: the stream is
    trimmed to about this length.
    """

    _type, _script = "stream", _STREAM

    def __init__(self, url: str, key: str, *, most_entries: int | None = None, retry_ms: float = RETRY_MS) -> None:
        super().__init__(url, key, retry_ms=retry_ms)
        if most_entries is not None and most_entries < 1:
            raise ValueError(f"most_entries: wanted at least 1, or None, found {most_entries!r}")
        self._most = most_entries or 0

    def write(self, batch: Batch) -> None:
        """Raises RecordMismatch for a record without any value, of which no entry can be made, and for one with too
        many.
        """
        is_short = isinstance(batch, pa.RecordBatch) and all(column.null_count for column in batch.columns)
        if isinstance(batch, pa.RecordBatch) and batch.num_rows and (is_short or batch.num_columns > _MOST_FIELDS):
            fields = _values_of_rows(batch)
            self._check(int(fields.min()))
            self._check(int(fields.max()))
        super().write(batch)

    def _check(self, fields: int) -> None:
        if not fields:
            raise RecordMismatch(
                "an entry of a Redis stream needs a field: wanted a record with a value that is not None"
            )
        if fields > _MOST_FIELDS:
            raise RecordMismatch(
                f"an entry of a Redis stream takes at most {_MOST_FIELDS:,} fields here, found {fields:,}: write "
                "several values as one (a list, a dict), or to_redis_list, where a record is one JSON text"
            )

    def _made(self, record: dict[str, Any]) -> dict[str, bytes]:
        texts = _texts(record)
        self._check(len(texts))
        return {name: text.encode() if isinstance(text, str) else text for name, text in texts.items()}

    def _arguments(self, batch: Batch) -> list[Any]:
        """An earlier version has kept records as they came, which gives the same."""
        arguments: list[Any] = []
        for record in _mappings(batch):
            texts = _texts(record)
            arguments.append(len(texts))
            for name, text in texts.items():
                arguments += (name, text)
        return arguments


class RedisListSink(_AppendSink):
    """Each record is an element at the list's end: its JSON."""

    _type, _script = "list", _LIST

    def _made(self, record: dict[str, Any]) -> bytes:
        return json_text(record).encode()

    def stage(self, batches: list[Any]) -> Any:
        return [pack_batch(each) if isinstance(each, pa.RecordBatch) else each for each in batches] or None

    def unstage(self, handle: Any) -> list[Any]:
        return [self._unstaged(unpack_batch(each)) if isinstance(each, bytes) else each for each in handle]

    def _unstaged(self, batch: Batch) -> Batch:
        """Records are of an earlier version."""
        return batch if isinstance(batch, pa.RecordBatch) else [self._made(mapping_of(record)) for record in batch]

    def _arguments(self, batch: Batch) -> list[Any]:
        return list(map(json_text, _mappings(batch))) if isinstance(batch, pa.RecordBatch) else batch


class RedisUpsertSink(IdempotentSink):
    """Each record is the hash at `prefix` and its key: a field for each column whose value is not None, as text; it
    takes the place of the hash that was there. `expire_ms`: the hash goes this long after its last record. `deleted`: a
    column that is true where the hash is to be removed; `kind`: the column of a changelog, which says so by "-D" and
    "-U". The column itself is no field.
    """

    def __init__(
        self,
        url: str,
        *,
        key: KeyOfRecord | Sequence[KeyOfRecord],
        prefix: str = "",
        expire_ms: int | None = None,
        kind: str | None = None,
        deleted: str | None = None,
        retry_ms: float = RETRY_MS,
    ) -> None:
        connection.check_redis(url, "RedisUpsertSink")
        self._removals = Removals(kind, deleted)
        self.removes_rows = self._removals.column is not None
        if key is None:
            raise ValueError("key: wanted a column, a position or a function of a record, or several, found None")
        self.url, self.key, self.prefix = url, key, prefix
        self.expire_ms = None if expire_ms is None else whole_setting("expire_ms", expire_ms, 1)
        self.retry_ms = duration_setting("retry_ms", retry_ms)

    def __repr__(self) -> str:
        return f"RedisUpsertSink({url_shown(self.url)!r}, key={self.key!r}, prefix={self.prefix!r})"

    @property
    def _writes_to(self) -> str:
        return f"hashes of {url_shown(self.url)}"

    def check_at_submit(self, on_this_machine: bool) -> None:
        """Raises RedisRefused. A server that does not answer from here may do so elsewhere, or later."""
        connection.check_for_sink(self.url, {}, self, self.retry_ms)

    def open(self) -> None:
        self._servers = connection.connected(self.url, "RedisUpsertSink")

    def close(self) -> None:
        if hasattr(self, "_servers"):
            self._servers.forget()

    def upsert(self, batch: Batch) -> None:
        """Each hash is replaced as a whole; those of one server go there together."""
        assert self._selector is not None, "it has a key"
        with connection.explained(self.url), connection.renewed(self._servers):
            pipelines: dict[int, Any] = {}
            names = [
                self.prefix + (":".join(map(str, key)) if isinstance(key, tuple) else str(key))
                for key in self._selector.keys(batch)
            ]
            if not is_cluster(self.url):
                self._check_types(names)
            for name, record in zip(names, self._fields(batch), strict=True):
                client = self._servers.of(name)
                if id(client) not in pipelines:
                    pipelines[id(client)] = client.pipeline(transaction=not is_cluster(self.url))
                self._replace(pipelines[id(client)], name, _texts(record))
            for pipeline in pipelines.values():
                pipeline.execute()

    def _fields(self, batch: Batch) -> list[dict[str, Any]]:
        """Of each record; none of one that is gone."""
        records, column = _mappings(batch), self._removals.column
        if column is None:
            return records
        if (lacking := next((record for record in records if column not in record), None)) is not None:
            raise RecordMismatch(f"a record has no column {column!r}: it has {', '.join(map(str, lacking)) or 'none'}")
        said = pa.array([record[column] for record in records])
        self._removals.check(said)
        return [
            {} if is_gone else {name: value for name, value in record.items() if name != column}
            for record, is_gone in zip(records, self._removals.of(said).to_pylist(), strict=True)
        ]

    def _check_types(self, names: list[str]) -> None:
        """A key of another type belongs to somebody else: raises RedisRefused. In a cluster the script looks."""
        pipeline, different = self._servers.any().pipeline(transaction=False), dict.fromkeys(names)
        for name in different:
            pipeline.type(name)
        for name, kind in zip(different, pipeline.execute(), strict=True):
            if (found := kind.decode()) not in ("hash", "none"):
                raise RedisRefused(
                    f"{url_shown(self.url)}: key {name!r} is a {found}, wanted a hash: give the sink a prefix= of its "
                    "own, or remove that key"
                )

    def _replace(self, pipeline: Any, name: str, texts: dict[str, Any]) -> None:
        """In a cluster by a script, as a MULTI there has one slot; elsewhere without, which is faster."""
        if is_cluster(self.url):
            pipeline.eval(_HASH, 1, name, self.expire_ms or 0, *(part for field in texts.items() for part in field))
            return
        pipeline.delete(name)
        if texts:
            pipeline.hset(name, mapping=texts)
            if self.expire_ms is not None:
                pipeline.pexpire(name, self.expire_ms)


def _mappings(batch: Batch) -> list[dict[str, Any]]:
    return with_dicts(batch) if isinstance(batch, pa.RecordBatch) else [mapping_of(record) for record in batch]


def _values_of_rows(batch: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """How many each row has."""
    found = np.zeros(batch.num_rows, np.int64)
    for column in batch.columns:
        found += column.is_valid().to_numpy(zero_copy_only=False)
    return found


def _texts(record: dict[str, Any]) -> dict[str, Any]:
    return {str(name): _text(value) for name, value in record.items() if value is not None}


def _text(value: Any) -> str | bytes:
    match value:
        case str() | bytes():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case datetime() | date() | time():
            return value.isoformat()
    text = json_text(value)
    return json.loads(text) if text.startswith('"') else text
