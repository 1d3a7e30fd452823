"""RedisStreamSource: entries of Redis streams, each once. Its offset is a position in each stream.

Each stream is a split; stream i in the order of names is read by subtask i mod p. Consumer groups are not used: what a
group has handed out, and to whom, is Redis' own state, which no checkpoint covers, so a restart would lose what was
acknowledged, or repeat what was not. A subtask that reads by id knows exactly what its checkpoint covers.

Entries and what Redis says of the stream are asked in one MULTI, so nothing can be trimmed in between: a loss of
unread entries is always noticed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ....actors.operators.patience import RETRY_MS
from ....actors.operators.source import FromSplit
from ....actors.setting_limits import duration_setting, whole_setting
from ....messages.shown_url import url_shown
from ..errors import StreamTrimmed, UnreadableInput, require
from ..fed_source import FedSource, Feed
from ..names import several_names
from . import connection
from .servers import Servers
from .stream_positions import EARLIEST, LATEST, Position, after_loss, first_position, problem

log = logging.getLogger("understudy.source")

_BLOCK_MS = 500
"""How long a wait for entries takes at most, and so the end of a task."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.005, 0.1
"""Between two looks at streams in several slots of a cluster, for which no request can wait at once."""

Entry = tuple[str, dict[str, Any]]
"""Id, fields."""


class RedisStreamSource(FedSource):
    """`streams`: their keys; one that is not there yet is waited for. `start`: "earliest" or "latest", where no
    checkpoint says it. Without a `schema` a record is a dict of "stream", "id" and "fields" (texts, or bytes where they
    are none); with one, rows of these columns: fields, cast from texts, `_id` and `_stream`; missing ones are null.

    `on_loss`: "fail" raises StreamTrimmed when entries were trimmed or deleted unread; "continue" logs it and goes on.
    """

    bounded = False
    _how_to_bound = ""

    def __init__(
        self,
        url: str,
        streams: str | Sequence[str],
        *,
        start: str = EARLIEST,
        schema: pa.Schema | None = None,
        on_loss: str = "fail",
        batch_rows: int = 1_000,
        retry_ms: float = RETRY_MS,
    ) -> None:
        connection.check_redis(url, "RedisStreamSource")
        self.url = url
        self.streams = tuple(sorted(several_names("streams", streams, "the key of a stream")))
        if start not in (EARLIEST, LATEST):
            raise ValueError(f"start: wanted {EARLIEST!r} or {LATEST!r}, found {start!r}")
        if on_loss not in ("fail", "continue"):
            raise ValueError(f'on_loss: wanted "fail" or "continue", found {on_loss!r}')
        self.begin_at, self.schema, self.on_loss = start, schema, on_loss
        self.batch_rows = whole_setting("batch_rows", batch_rows, 1)
        self.retry_ms = duration_setting("retry_ms", retry_ms)

    def __repr__(self) -> str:
        return f"RedisStreamSource({url_shown(self.url)!r}, {list(self.streams)!r})"

    def source_schema(self) -> pa.Schema | None:
        return self.schema

    def place(self) -> str:
        return connection.place_of(self.url)

    def look(self) -> Callable[[], None]:
        require("redis", extra="redis", wanted_by="RedisStreamSource")
        return lambda: connection.check_answer(self.url, dict.fromkeys(self.streams, "stream"))

    # -- state

    def open(self) -> None:
        self._positions: dict[str, Position] = {}
        own = range(self.context.subtask_index, len(self.streams), self.context.parallelism)
        self._own = [self.streams[index] for index in own]

    def current_splits(self) -> Sequence[str]:
        return self._own

    def offset(self) -> dict[str, list[Any]]:
        """By stream, what it has come to. A stream without a position is not begun."""
        return {name: list(position) for name, position in self._positions.items()}

    def seek(self, offset: dict[str, list[Any]]) -> None:
        self.rescale([offset])

    def rescale(self, offsets: Sequence[dict[str, list[Any]]]) -> None:
        """A change of `streams` may move a stream to another subtask, too."""
        known = {name: Position(*plain) for offset in offsets for name, plain in offset.items()}
        self._positions = {name: known[name] for name in self._own if name in known}

    # -- on the task's thread

    def take(self, piece: tuple[str, list[Entry], Position]) -> FromSplit | None:
        name, entries, self._positions[name] = piece
        if not entries:
            return None
        if self.schema is None:
            return FromSplit(name, [{"stream": name, "id": each, "fields": fields} for each, fields in entries])
        return FromSplit(name, _columns(name, entries, self.schema))

    # -- on the source's

    def may_pass(self, error: Exception) -> bool:
        return connection.may_pass(error)

    def listen(self, feed: Feed) -> None:
        if not self._own:
            feed.closed.wait()
            return
        if not hasattr(self, "_reached"):
            self._reached = dict(self._positions)
            """By stream; the thread's own. A second call goes on where the first was cut off."""
        with connection.explained(self.url), connection.connected(self.url, "RedisStreamSource") as servers:
            can_block, pause_s = servers.can_ask_at_once(self._own), _FIRST_PAUSE_S
            while not feed.closed.is_set():
                if self._read(servers, feed):
                    pause_s = _FIRST_PAUSE_S
                elif can_block:
                    at = {name: at.id for name, at in self._reached.items()}
                    servers.of(self._own[0]).xread(at, count=1, block=_BLOCK_MS)
                else:
                    feed.wait(pause_s)
                    pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _read(self, servers: Servers, feed: Feed) -> bool:
        """Whether anything has come, of any stream."""
        has_come = False
        for name in self._own:
            at = self._reached.get(name)
            with servers.of(name).pipeline(transaction=True) as pipeline:
                pipeline.xrange(name, f"({at.id}" if at else "-", count=self.batch_rows)
                pipeline.xinfo_stream(name)
                found, info = pipeline.execute(raise_on_error=False)
            if isinstance(info, Exception):
                if "no such key" not in str(info):
                    raise info
                info = None
            feed.works()
            if at is None:
                at = first_position(info, self.begin_at)
                found = [] if self.begin_at == LATEST else found
                self._bring(feed, name, [], at)
            elif (lost := problem(at, info)) is not None:
                left = self._lost(name, at, info, lost, has_more=bool(found))
                if left.id != at.id:
                    self._bring(feed, name, [], left)
                    return True
                at = left
            if found:
                entries = [(_text(each), _fields(fields)) for each, fields in found]
                self._bring(feed, name, entries, Position(entries[-1][0], at.added + len(entries)))
                has_come = True
        return has_come

    def _bring(self, feed: Feed, name: str, entries: list[Entry], at: Position) -> None:
        feed.put((name, entries, at))
        self._reached[name] = at

    def _lost(self, name: str, at: Position, info: Mapping[str, Any] | None, lost: str, *, has_more: bool) -> Position:
        message = f"stream {name!r} of {url_shown(self.url)}, read up to {at.id}: {lost}"
        if self.on_loss == "fail":
            raise StreamTrimmed(
                f"{message}. Let the stream keep more than the job needs after a restart; to go on with what is left, "
                'set on_loss="continue"'
            )
        log.warning("source %r: %s", self.context.name, message)
        return after_loss(at, info, has_more=has_more)


def _columns(stream: str, entries: list[Entry], schema: pa.Schema) -> pa.RecordBatch:
    """Raises UnreadableInput."""
    columns = []
    for field in schema:
        match field.name:
            case "_id":
                values: list[Any] = [entry_id for entry_id, _ in entries]
            case "_stream":
                values = [stream] * len(entries)
            case name:
                values = [fields.get(name) for _, fields in entries]
        try:
            columns.append(_cast(values, field.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, UnicodeDecodeError) as error:
            raise UnreadableInput(
                f"stream {stream!r}, entries {entries[0][0]} to {entries[-1][0]}: field {field.name!r} is no "
                f"{field.type}: {error}"
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([each.encode() if isinstance(each, str) else each for each in values], kind)
    return pa.array([each.decode() if isinstance(each, bytes) else each for each in values], pa.string()).cast(kind)


def _fields(fields: Mapping[bytes, bytes]) -> dict[str, Any]:
    return {_text(name): _text_or_bytes(value) for name, value in fields.items()}


def _text_or_bytes(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def _text(value: bytes) -> str:
    return value.decode(errors="backslashreplace")
