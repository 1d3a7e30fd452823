"""What errors say about too many calls: look-alikes of those of httpx, aiohttp and others. RFC 9110, 10.2.3."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from understudy.actors.async_calls.retry_after import MAX_CAUSES, MAX_MS, is_throttled, retry_after_ms

NOW_MS = 784_111_777_000
"""Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110."""


class Headers(Mapping[str, str]):
    """Names without case, as those of httpx and aiohttp are."""

    def __init__(self, **headers: str) -> None:
        self._headers = {name.replace("_", "-").lower(): value for name, value in headers.items()}

    def __getitem__(self, name: str) -> str:
        return self._headers[name.lower()]

    def __iter__(self) -> Any:
        return iter(self._headers)

    def __len__(self) -> int:
        return len(self._headers)


class Response:
    def __init__(self, status_code: int, headers: Any) -> None:
        self.status_code = status_code
        self.headers = headers


class HTTPStatusError(Exception):
    """As httpx has it: the status and the headers are the response's."""

    def __init__(self, status: int, headers: Any = None) -> None:
        super().__init__("Client error '429 Too Many Requests' for url 'http://h/'")
        self.response = Response(status, Headers() if headers is None else headers)

    @property
    def request(self) -> Any:
        raise RuntimeError("The .request property has not been set.")


class ClientResponseError(Exception):
    """As aiohttp has it: they are its own; there may be no headers."""

    def __init__(self, status: int, headers: Any = None) -> None:
        super().__init__("429, message='Too Many Requests'")
        self.status = status
        self.headers = headers


class With(Exception):
    def __init__(self, **attributes: Any) -> None:
        super().__init__()
        self.__dict__.update(attributes)


class Broken(Exception):
    """All that is asked of it raises."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__"):
            return super().__getattribute__(name)
        raise RuntimeError(f"{name} is not there yet")


def caused_by(cause: BaseException, times: int) -> BaseException:
    for _ in range(times):
        error = RuntimeError("could not fetch")
        error.__cause__ = cause
        cause = error
    return cause


@pytest.mark.parametrize("kind", [HTTPStatusError, ClientResponseError])
@pytest.mark.parametrize(
    ("said", "wanted_ms"),
    [
        ("120", 120_000),
        ("0", 0),
        ("1.5", 1500),
        ("Sun, 06 Nov 1994 08:49:47 GMT", 10_000),
        ("Sun, 06 Nov 1994 08:49:47", 10_000),
        ("Sun, 06 Nov 1994 10:49:47 +0200", 10_000),
        ("Sun, 06 Nov 1994 08:49:27 GMT", 0),
        ("Sun, 06 Nov 2094 08:49:27 GMT", MAX_MS),
        ("1e12", MAX_MS),
    ],
)
def test_the_header_is_seconds_or_a_date(kind: Any, said: str, wanted_ms: float) -> None:
    assert retry_after_ms(kind(429, Headers(Retry_After=said)), NOW_MS) == wanted_ms
    assert retry_after_ms(kind(503, {"retry-after": said}), NOW_MS) == wanted_ms, "a plain dict, too"


def test_a_date_without_a_zone_is_one_of_greenwich_wherever_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        error = ClientResponseError(429, {"Retry-After": "Sun, 06 Nov 1994 08:49:47"})
        assert retry_after_ms(error, NOW_MS) == 10_000
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("garbage", ["", "soon", "-1", "nan", "inf", "Sun, 99 Nov 1994 08:49:37 GMT", None, b"3", [3]])
def test_garbage_says_nothing(garbage: Any) -> None:
    assert retry_after_ms(ClientResponseError(429, {"Retry-After": garbage}), NOW_MS) is None
    assert retry_after_ms(With(retry_after=garbage), NOW_MS) is None


@given(st.text() | st.integers() | st.floats() | st.none() | st.binary() | st.lists(st.integers()))
def test_whatever_is_there_gives_a_time_to_wait_or_none(said: Any) -> None:
    for error in (
        With(retry_after=said),
        With(retry_after_ms=said),
        With(headers=said, response=said, status=said),
        ClientResponseError(429, {"Retry-After": said}),
        ClientResponseError(429, {said if isinstance(said, str) else "Retry-After": "Retry-After"}),
    ):
        found = retry_after_ms(error, NOW_MS)
        assert found is None or 0 <= found <= MAX_MS
        assert is_throttled(error) in (True, False)


def test_attributes_come_before_the_header_unless_they_are_garbage() -> None:
    headers = {"Retry-After": "9"}
    assert retry_after_ms(With(retry_after=2, headers=headers), NOW_MS) == 2000
    assert retry_after_ms(With(retry_after_ms=250, retry_after=2), NOW_MS) == 250
    assert retry_after_ms(With(retry_after=None, headers=headers), NOW_MS) == 9000
    assert retry_after_ms(With(retry_after=True, headers=headers), NOW_MS) == 9000


@pytest.mark.parametrize(
    ("error", "is_so"),
    [
        pytest.param(HTTPStatusError(429), True, id="httpx 429"),
        pytest.param(HTTPStatusError(503), True, id="httpx 503"),
        pytest.param(HTTPStatusError(500, {"Retry-After": "3"}), False, id="httpx 500"),
        pytest.param(ClientResponseError(429), True, id="aiohttp 429"),
        pytest.param(ClientResponseError(404), False, id="aiohttp 404"),
        pytest.param(With(status_code=429), True, id="status_code"),
        pytest.param(With(response=With(status=429)), True, id="response.status"),
        pytest.param(With(status="RESOURCE_EXHAUSTED"), False, id="a status in words"),
        pytest.param(With(retry_after=3), True, id="retry_after alone"),
        pytest.param(With(retry_after=3, status=404), False, id="retry_after with 404"),
        pytest.param(With(status=True), False, id="a status that is a bool"),
        pytest.param(ValueError("429"), False, id="no status"),
        pytest.param(Broken(), False, id="cannot be asked"),
    ],
)
def test_who_is_throttled(error: Exception, is_so: bool) -> None:
    assert is_throttled(error) is is_so


def test_an_error_that_was_raised_from_another_one_says_what_that_says_but_not_from_too_deep() -> None:
    thrown = HTTPStatusError(429, {"Retry-After": "3"})
    for depth in range(MAX_CAUSES + 2):
        error = caused_by(thrown, depth)
        assert is_throttled(error) is (depth < MAX_CAUSES)
        assert retry_after_ms(error, NOW_MS) == (3000 if depth < MAX_CAUSES else None)


def test_what_cannot_be_asked_says_nothing() -> None:
    assert retry_after_ms(Broken(), NOW_MS) is None
    assert retry_after_ms(caused_by(HTTPStatusError(429), 1), NOW_MS) is None
