"""What sources that ask by HTTP have in common: what an answer's status means, and how an address is shown."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ....actors.setting_limits import whole_setting
from ....messages.shown_url import url_shown
from ..errors import HttpRefused, UnreadableInput, require
from ..reaching import LOOK_S, is_tls_mistake, why_unreachable

Headers = Mapping[str, str] | Callable[[], Mapping[str, str]] | None
"""A function is called before each request: for tokens that expire."""

_ADVICE = {
    400: "check whether the port speaks HTTPS, and the parameters",
    401: "check the credentials in headers=",
    403: "check the rights of the credentials in headers=",
    404: "check the path of the URL",
    410: "check the path of the URL",
}
_SHOWN_BYTES = 1 << 16
"""Of the body of a refusal, at most."""
_TELLING = (401, 403, 404, 410, 429, 502, 503, 504)
"""Statuses that mean for a GET what they mean for a HEAD; servers that know no HEAD have others."""


class Busy(Exception):
    """The endpoint asks to come again; when, its answer may say."""

    def __init__(self, text: str, response: Any) -> None:
        super().__init__(text)
        self.response = response


def place_of(url: str) -> str:
    """For texts: parameters may hold tokens."""
    return url_shown(url).partition("?")[0]


def checked_url(url: Any, *schemes: str) -> str:
    """Raises ValueError for what is no URL of one of these."""
    if not isinstance(url, str) or not url.startswith(tuple(f"{each}://" for each in schemes)):
        found = url_shown(url) if isinstance(url, str) else url
        raise ValueError(f"url: wanted {' or '.join(f'{each}://…' for each in schemes)}, found {found!r:.80}")
    return url


def headers_of(headers: Headers) -> dict[str, str]:
    return dict((headers() if callable(headers) else headers) or {})


def check_max_bytes(value: int) -> int:
    """Raises ValueError."""
    return whole_setting("max_bytes", value, 1)


def too_long(what: str, max_bytes: int) -> UnreadableInput:
    return UnreadableInput(f"{what}: wanted at most {max_bytes:,} bytes (max_bytes), found more")


def body_of(answer: Any, max_bytes: int) -> bytes | None:
    """Of an answer that is still to be read, decompressed; None for a longer one, of which no more is read."""
    blocks: list[bytes] = []
    for block in answer.iter_bytes():
        blocks.append(block)
        max_bytes -= len(block)
        if max_bytes < 0:
            return None
    return b"".join(blocks)


def check_status(answer: Any, url: str) -> None:
    """Raises Busy for 429 and 5xx, and HttpRefused for anything else that is no success. The body is not read yet."""
    status: int = answer.status_code
    if status == 429 or status >= 500:
        raise Busy(f"{place_of(url)} answers {status} {answer.reason_phrase}", answer)
    if not answer.is_success:
        said = body_of(answer, _SHOWN_BYTES) or b""
        raise refused(url, status, answer.reason_phrase, said.decode(answer.charset_encoding or "utf-8", "replace"))


def refused(url: str, status: int, reason: str, body: str = "") -> HttpRefused:
    said = f": {body[:200]!r}" if body else ""
    advice = f" ({_ADVICE[status]})" if status in _ADVICE else ""
    return HttpRefused(f"{place_of(url)} answers {status} {reason}{advice}{said}")


@contextmanager
def refusals_named(url: str) -> Iterator[None]:
    """What no second try mends becomes an HttpRefused: a mistake in TLS, and redirects that go round in a circle."""
    try:
        yield
    except Exception as error:
        if (httpx := sys.modules.get("httpx")) is not None and isinstance(error, httpx.TooManyRedirects):
            raise HttpRefused(f"{place_of(url)} redirects again and again: check the URL") from error
        if is_tls_mistake(error):
            raise HttpRefused(why_unreachable(error, place_of(url))) from error
        raise


def look_at(url: str, headers: Headers, wanted_by: str) -> None:
    """Ask for the head alone, which takes no records away. Raises HttpRefused for a mistake in TLS. A status that is no
    success is Busy, whatever it says: some endpoints answer a GET and refuse a HEAD.
    """
    httpx = require("httpx", extra="http", wanted_by=wanted_by)
    with refusals_named(url):
        answer = httpx.head(url, headers=headers_of(headers), timeout=LOOK_S, follow_redirects=True)
    if answer.status_code in _TELLING:
        advice = f" ({_ADVICE[status]})" if (status := answer.status_code) in _ADVICE else ""
        raise Busy(f"{place_of(url)} answers {status} {answer.reason_phrase} to HEAD{advice}", answer)
