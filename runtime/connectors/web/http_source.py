"""HttpSource: records of an HTTP endpoint that answers with JSON, asked again and again with a cursor.

    GET url?cursor=…   ->   records, and the cursor of what comes behind them

The cursor is the offset: a restart asks again from the last cursor whose records a checkpoint covers. So records come
exactly once if the endpoint answers a cursor with the same records each time, or with these and more; without a cursor
in the answers each poll gives what there is now, and a restart leaves out what was there in between: at most once.
One subtask asks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ....actors.flow.elements import Batch
from ....actors.operators.patience import RETRY_MS
from ....actors.setting_limits import duration_setting
from ....messages import shown
from ..errors import UnreadableInput
from ..fed_source import Feed
from .asking import Headers, body_of, check_status, headers_of, refusals_named, too_long
from .asking_source import AskingSource

TIMEOUT_S = 30.0

Page = tuple[Sequence[Any], Any]
"""Records, and the next cursor; None: the endpoint names none."""


class HttpSource(AskingSource):
    """`parse(body)`, of the decoded JSON, gives (records, cursor of what comes next); by default the body is a list of
    records, or `{"records": [...], "cursor": ...}`. The cursor goes into the parameter `cursor_parameter` of the next
    request; there is none in the first, unless `start` is given. A page without records is asked for again after
    `poll_ms`; one with records at once, if its cursor moves. A page has at most `max_bytes`.

    429 and 5xx, and connections that fail, are tried again for `retry_ms`, not before `Retry-After`; other answers that
    are no success raise HttpRefused. `headers` may be a function, for tokens: it is called before each request.
    """

    most_ahead = 2

    def __init__(
        self,
        url: str,
        *,
        parse: Callable[[Any], Page] | None = None,
        cursor_parameter: str = "cursor",
        start: Any = None,
        headers: Headers = None,
        poll_ms: float = 1_000,
        retry_ms: float = RETRY_MS,
        max_bytes: int = 64 << 20,
    ) -> None:
        super().__init__(url, headers, retry_ms, max_bytes)
        self.parse, self.cursor_parameter, self.first = parse or _page, cursor_parameter, start
        self.poll_ms = duration_setting("poll_ms", poll_ms)

    def open(self) -> None:
        self._cursor = self.first

    def offset(self) -> Any:
        return {"cursor": self._cursor}

    def seek(self, offset: Any) -> None:
        self._cursor = offset["cursor"]

    def take(self, piece: Page) -> Batch | None:
        records, self._cursor = piece
        return list(records) or None

    def _timeout(self) -> float:
        return TIMEOUT_S

    def _listen(self, client: Any, feed: Feed) -> None:
        if not hasattr(self, "_next"):
            self._next = self._cursor
            """The thread's own; a second call goes on where the first was cut off."""
        while True:
            records, cursor = self._ask(client)
            feed.works()
            moves = cursor is not None and cursor != self._next
            if records or moves:
                self._next = cursor if moves else self._next
                feed.put((records, self._next))
            if not (records and moves):
                feed.wait(self.poll_ms / 1000)

    def _ask(self, client: Any) -> Page:
        parameters = {} if self._next is None else {self.cursor_parameter: self._next}
        headers = headers_of(self.headers)
        with (
            refusals_named(self.url),
            client.stream("GET", self.url, params=parameters or None, headers=headers) as answer,
        ):
            check_status(answer, self.url)
            body = body_of(answer, self.max_bytes)
        if body is None:
            raise too_long(f"{self.place()}, cursor {self._next!r}", self.max_bytes)
        try:
            found = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise UnreadableInput(f"{self.place()}: wanted JSON, found {body[:200]!r}") from error
        records, cursor = self.parse(found)
        return records, cursor


def _page(body: Any) -> Page:
    if isinstance(body, list):
        return body, None
    if isinstance(body, dict) and isinstance(body.get("records"), list):
        return body["records"], body.get("cursor")
    raise UnreadableInput(
        f'wanted a list of records, or {{"records": [...], "cursor": ...}}, found {shown(body)}: give HttpSource a '
        "parse function that returns (records, cursor)"
    )
