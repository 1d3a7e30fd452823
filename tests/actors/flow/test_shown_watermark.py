"""How an event time is shown: as a date where it is one."""

from __future__ import annotations

import pytest

from understudy.actors.flow.shown_watermark import shown_watermark
from understudy.messages import END_OF_TIME, NO_WATERMARK


@pytest.mark.parametrize(
    ("watermark_ms", "shown"),
    [
        (1_700_000_000_123, "2023-11-14 22:13:20.123"),
        (-2_208_988_800_000, "1900-01-01 00:00:00.000"),
        (365 * 86_400_000, "1971-01-01 00:00:00.000"),
        (3, "3"),
        (0, "0"),
        (-1, "-1"),
        (1_700_000_000, "1700000000"),
        (2**61, f"{2**61} ms"),
        (NO_WATERMARK, "no watermark yet"),
        (END_OF_TIME, "the end of the data"),
    ],
    ids=["a date", "before 1970", "the first date", "a round", "zero", "-1", "seconds", "no day", "none", "the end"],
)
def test_a_watermark_that_is_no_date_is_shown_as_its_number(watermark_ms: int, shown: str) -> None:
    assert shown_watermark(watermark_ms) == shown
