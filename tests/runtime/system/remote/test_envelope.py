"""Frames between actor systems: the quick way to make the most frequent one."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from understudy.messages import MAX_MESSAGE_BYTES, MessageTooLarge, encode
from understudy.runtime.system.remote.envelope import Envelope, tell_frame


@given(st.text(max_size=40) | st.just("job-1/\udcff"), st.binary(max_size=300))
@example("a", b"\xc4\x00")
@example("\xc4\x00", b"")
@example("a", bytes(70_000))
def test_the_quick_frame_is_the_envelope_encoded(target: str, payload: bytes) -> None:
    assert tell_frame(target, payload) == encode(Envelope(target, "", payload))


def test_a_frame_that_is_too_large_is_refused() -> None:
    with pytest.raises(MessageTooLarge, match=r"Envelope has .* bytes"):
        tell_frame("a", bytes(MAX_MESSAGE_BYTES))
