"""A number with its noun."""

from __future__ import annotations

import numpy as np
import pytest

from understudy.messages.counted import counted


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (1, "record", "1 record"),
        (0, "record", "0 records"),
        (1_000, "record", "1,000 records"),
        (1.0, "second", "1 second"),
        (0.5, "second", "0.5 seconds"),
        (2, "history", "2 histories"),
        (1, "recovery", "1 recovery"),
        (3, "key", "3 keys"),
        (2, "entry", "2 entries"),
        (2, "process", "2 processes"),
        (np.int64(5_000_000), "record", "5,000,000 records"),
        (np.int64(1), "record", "1 record"),
    ],
)
def test_one_is_single(number: float, noun: str, text: str) -> None:
    assert counted(number, noun) == text
