"""AskingSource: what HttpSource and SseSource have in common: one endpoint, which one subtask asks by HTTP."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....actors.setting_limits import duration_setting
from ..errors import check_extra, require
from ..fed_source import FedSource, Feed
from ..reaching import is_tls_mistake
from .asking import Busy, Headers, check_max_bytes, checked_url, look_at, place_of


class AskingSource(FedSource):
    """A subclass defines `ask`, and what moves its offset."""

    bounded = False
    _how_to_bound = ""

    def __init__(self, url: str, headers: Headers, retry_ms: float, max_bytes: int) -> None:
        check_extra("httpx", extra="http", wanted_by=type(self).__name__)
        self.url, self.headers = checked_url(url, "http", "https"), headers
        self.retry_ms = duration_setting("retry_ms", retry_ms)
        self.max_bytes = check_max_bytes(max_bytes)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.place()!r})"

    def place(self) -> str:
        return place_of(self.url)

    def look(self) -> Callable[[], None]:
        self._httpx()
        return lambda: look_at(self.url, self.headers, type(self).__name__)

    def rescale(self, offsets: Sequence[Any]) -> None:
        """Subtask 0 has always been the one that asks."""
        self.seek(offsets[0])

    def may_pass(self, error: Exception) -> bool:
        return isinstance(error, self._httpx().TransportError | Busy) and not is_tls_mistake(error)

    # -- on the source's thread

    def listen(self, feed: Feed) -> None:
        if self.context.subtask_index:
            feed.closed.wait()
            return
        with self._httpx().Client(timeout=self._timeout(), follow_redirects=True) as client:
            self._listen(client, feed)

    def _listen(self, client: Any, feed: Feed) -> None:
        """As `listen`, with an `httpx.Client`."""
        raise NotImplementedError

    def _timeout(self) -> Any:
        """Of the client's requests."""
        raise NotImplementedError

    def _httpx(self) -> Any:
        return require("httpx", extra="http", wanted_by=type(self).__name__)
