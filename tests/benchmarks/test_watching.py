"""What it costs to be looked at: a slice is compared with those beside it, by the job's own marks."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.watching import Slice, shares, slice_of


def test_a_slice_is_what_the_marks_say_between_its_two_moments() -> None:
    moments = np.array([[0, 0, 0], [1_000_000_000, 1_000, 500_000_000], [3_000_000_000, 2_000, 900_000_000]])
    found = slice_of("alone", moments, 500_000_000, 1_000_000_000)
    assert (found.records_per_s, found.cpu_us) == pytest.approx((1_000, 500))


def test_it_is_compared_with_those_beside_it_in_which_nobody_looked() -> None:
    slices = [
        Slice(what, cpu_us, 1.0)
        for what, cpu_us in (("alone", 10), ("sampled", 11), ("alone", 10), ("watched", 12), ("alone", 14))
    ]
    assert shares(slices, "sampled") == pytest.approx([10])
    assert shares(slices, "watched") == pytest.approx([0])
    assert shares(slices[:2], "sampled") == []
