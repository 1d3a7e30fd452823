"""What the log says of a store that is away. What becomes of requests is tested on a real one: `test_storage_s3`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from understudy.state import RequestFailed, store_requests
from understudy.state.store_requests import StoreRequests


class Away:
    """A file system that never answers, and a clock that goes on meanwhile."""

    protocol = "s3"

    def __init__(self, try_s: float) -> None:
        self.now_s, self._try_s = 100.0, try_s

    def monotonic(self) -> float:
        return self.now_s

    def sleep(self, pause_s: float) -> None:
        self.now_s += pause_s

    def pipe_file(self, *_: Any, **__: Any) -> None:
        self.now_s += self._try_s
        raise ConnectionError("refused")

    def unstrip_protocol(self, path: str) -> str:
        return f"s3://{path}"


@pytest.mark.parametrize(
    ("try_s", "said"),
    [
        (3.0, ["s3://bucket/job/a: could not write this object for 3 s, in 1 of 3 tries: ConnectionError: refused"]),
        (1.0, ["s3://bucket/job/a: could not write this object for 2 s, in 2 of 3 tries: ConnectionError: refused"]),
        (0.1, []),
    ],
)
def test_a_store_that_is_away_is_named_once_while_it_is_waited_for(
    try_s: float, said: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing was said before the last try had failed, minutes later, and checkpoints stood still without a word."""
    monkeypatch.setenv("UNDERSTUDY_STORAGE_TRIES", "3")
    away: Any = Away(try_s)
    monkeypatch.setattr(store_requests, "time", SimpleNamespace(monotonic=away.monotonic, sleep=away.sleep))
    requests = StoreRequests(away)
    for _ in range(2):
        with pytest.raises(RequestFailed, match="in 3 tries"):
            requests.write("bucket/job/a", b"data")
    assert [record.getMessage().removesuffix(". What needs it waits") for record in caplog.records] == said
