"""WebsocketSource: messages of a websocket, as they come. A websocket cannot be asked for what it has sent.

At most once: what comes while the job is down, what waited in the source when its process died, and what was emitted
behind the checkpoint that a restart goes back to, is lost. The log says so when the source starts with checkpoints in
use, unless `resume` makes it replayable: a function of the last message, which gives the first message to send.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from ....actors.flow.elements import Batch
from ....actors.operators.patience import RETRY_MS
from ....actors.setting_limits import duration_setting
from ..errors import check_extra, require
from ..fed_source import FedSource, Feed
from ..reaching import LOOK_S, is_tls_mistake
from .asking import check_max_bytes, checked_url, place_of, refusals_named, refused, too_long
from .parsed import parsed

log = logging.getLogger("understudy.source")

OPEN_TIMEOUT_S = 20.0
_WAIT_S = 0.5
_MOST_AT_ONCE = 1_000


class WebsocketSource(FedSource):
    """A record is `parse(message)`; by default its JSON. `subscribe`: sent first, after each connect.

    `resume(last)`, if the server can send again from somewhere: what to send after a connect in place of `subscribe`,
    given the last record that is known to have been emitted. Then records come at least once, or exactly once if the
    server begins right behind it. A message has at most `max_bytes`. One subtask listens.
    """

    bounded = False
    _how_to_bound = ""
    most_ahead = 64

    def __init__(
        self,
        url: str,
        *,
        parse: Callable[[str | bytes], Any] | None = None,
        subscribe: str | Sequence[str] = (),
        resume: Callable[[Any], str] | None = None,
        headers: Mapping[str, str] | None = None,
        retry_ms: float = RETRY_MS,
        max_bytes: int = 16 << 20,
    ) -> None:
        check_extra("websockets", extra="http", wanted_by="WebsocketSource")
        self.url = checked_url(url, "ws", "wss")
        self.parse, self.resume, self.headers = parse or json.loads, resume, headers
        self.subscribe = (subscribe,) if isinstance(subscribe, str) else tuple(subscribe)
        self.retry_ms, self.max_bytes = duration_setting("retry_ms", retry_ms), check_max_bytes(max_bytes)

    def __repr__(self) -> str:
        return f"WebsocketSource({self.place()!r})"

    def place(self) -> str:
        return place_of(self.url)

    def look(self) -> Callable[[], None]:
        """Connects, says nothing, and closes."""
        require("websockets.sync.client", extra="http", wanted_by="WebsocketSource")

        def look() -> None:
            with self._connected(LOOK_S):
                pass

        return look

    def check_at_submit(self, on_this_machine: bool) -> None:
        if self.resume is None:
            log.warning(
                "WebsocketSource(%r) cannot be read again: after each restart, records are lost (at most once); "
                "resume= makes it replayable, if the server can send again from somewhere",
                self.place(),
            )
        super().check_at_submit(on_this_machine)

    def open(self) -> None:
        self._last: Any = None

    def offset(self) -> Any:
        return {"last": self._last if self.resume is not None else None}

    def seek(self, offset: Any) -> None:
        self._last = offset["last"]

    def rescale(self, offsets: Sequence[Any]) -> None:
        """Subtask 0 has always been the one that listens."""
        self.seek(offsets[0])

    def take(self, piece: list[Any]) -> Batch:
        self._last = piece[-1]
        return piece

    def may_pass(self, error: Exception) -> bool:
        websockets = require("websockets", extra="http", wanted_by="WebsocketSource")
        passing = isinstance(error, websockets.exceptions.WebSocketException | OSError)
        return passing and not is_tls_mistake(error)

    def listen(self, feed: Feed) -> None:
        if self.context.subtask_index:
            feed.closed.wait()
            return
        if not hasattr(self, "_brought"):
            self._brought = self._last
            """The thread's own; a second call goes on where the first was cut off."""
        with self._connected(OPEN_TIMEOUT_S) as connection:
            again = self.resume is not None and self._brought is not None
            for message in [self.resume(self._brought)] if again and self.resume else self.subscribe:
                connection.send(message)
            feed.works()
            while not feed.closed.is_set():
                self._bring(feed, self._received(connection))

    @contextmanager
    def _connected(self, timeout_s: float) -> Iterator[Any]:
        """Raises HttpRefused for an answer that will not change."""
        websockets = require("websockets", extra="http", wanted_by="WebsocketSource")
        client = require("websockets.sync.client", extra="http", wanted_by="WebsocketSource")
        with ExitStack() as opened:
            try:
                with refusals_named(self.url):
                    made = client.connect(
                        self.url,
                        open_timeout=timeout_s,
                        additional_headers=self.headers,
                        max_size=self.max_bytes,
                    )
                    connection = opened.enter_context(made)
            except websockets.exceptions.InvalidStatus as error:
                status: int = error.response.status_code
                if status == 429 or status >= 500:
                    raise
                raise refused(self.url, status, error.response.reason_phrase) from error
            yield connection

    def _received(self, connection: Any) -> list[str | bytes]:
        """What has come, and waited for a while if nothing has. Raises when the connection is over."""
        websockets = require("websockets", extra="http", wanted_by="WebsocketSource")
        messages: list[str | bytes] = []
        try:
            while len(messages) < _MOST_AT_ONCE:
                messages.append(connection.recv(timeout=0 if messages else _WAIT_S))
        except TimeoutError:
            pass
        except websockets.exceptions.ConnectionClosed as error:
            if not messages:  # else it is raised again when these have gone their way
                if error.sent is not None and error.sent.code == websockets.frames.CloseCode.MESSAGE_TOO_BIG:
                    raise too_long(f"{self!r}: a message", self.max_bytes) from error
                raise
        return messages

    def _bring(self, feed: Feed, messages: list[str | bytes]) -> None:
        """Raises UnreadableInput, behind what stands before the message."""
        records, problem = parsed(messages, self.parse, lambda message: f"{self!r}: message {message[:200]!r}")
        if records:
            feed.put(records)
            self._brought = records[-1]
        if problem is not None:
            raise problem
