"""Numbers beyond all limits are refused where they are written, with the limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from understudy import (
    AsyncSettings,
    HttpSource,
    InvalidSetting,
    InvalidState,
    LocalCluster,
    RedisListSink,
    RedisStreamSource,
    RedisUpsertSink,
    Retry,
    StreamEnvironment,
    Ttl,
    exponential_delay,
    failure_rate,
    fixed_delay,
    session,
    tumbling,
)
from understudy.actors.setting_limits import MOST_MS

HUGE = 10**30
URL = "redis://127.0.0.1:6379/0"
HUNDRED_YEARS = r"to 3162240000000 \(100 years\), found 10+$"


@pytest.mark.parametrize(
    "name",
    [
        "checkpoint_interval_ms",
        "checkpoint_timeout_ms",
        "min_pause_ms",
        "alignment_timeout_ms",
        "scrub_interval_ms",
        "buffer_timeout_ms",
        "slow_step_ms",
        "watermark_warn_ms",
    ],
)
def test_durations_of_a_program_have_a_limit(name: str) -> None:
    with pytest.raises(InvalidSetting, match=rf"^{name}: wanted an integer from [01] {HUNDRED_YEARS}"):
        StreamEnvironment(**{name: HUGE})  # type: ignore[arg-type]
    StreamEnvironment(**{name: MOST_MS})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("parallelism", 2**31 - 1),
        ("max_parallelism", 32_768),
        ("batch_rows", 2**31 - 1),
        ("state_memory_mb", 2**31 - 1),
        ("max_same_failures", 2**31 - 1),
        ("retained_checkpoints", 2**31 - 1),
        ("max_concurrent_checkpoints", 2**31 - 1),
        ("tolerable_checkpoint_failures", 2**31 - 1),
    ],
)
def test_counts_of_a_program_have_a_limit(name: str, most: int) -> None:
    with pytest.raises(InvalidSetting, match=rf"^{name}: wanted an integer from \d to {most}, found 10+$"):
        StreamEnvironment(**{name: HUGE})  # type: ignore[arg-type]
    StreamEnvironment(**{name: most})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda: fixed_delay(3, delay_ms=HUGE),
        lambda: failure_rate(3, interval_ms=HUGE),
        lambda: exponential_delay(max_ms=HUGE),
        lambda: LocalCluster(heartbeat_timeout_ms=HUGE),
        lambda: AsyncSettings(timeout_ms=HUGE),
        lambda: Retry(max_delay_ms=HUGE),
        lambda: HttpSource("http://127.0.0.1", poll_ms=HUGE),
        lambda: RedisListSink(URL, "out", retry_ms=HUGE),
        lambda: RedisUpsertSink(URL, key="n", expire_ms=HUGE),
        lambda: RedisStreamSource(URL, "in", retry_ms=HUGE),
    ],
)
def test_durations_elsewhere_have_one_too(make: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"(100 years|to a year).*found 10{20}"):
        make()


@pytest.mark.parametrize("make", [lambda: tumbling(HUGE), lambda: session(days=HUGE), lambda: Ttl(HUGE)])
def test_event_time_reaches_as_far_as_its_64_bits(make: Callable[[], Any]) -> None:
    with pytest.raises((ValueError, InvalidState), match=r"wanted a duration of at most 2\*\*60 ms, found 10{20}"):
        make()


@pytest.mark.parametrize("rate", [HUGE, float("inf")])
def test_a_rate_beyond_all_limits_is_refused(rate: float) -> None:
    with pytest.raises(InvalidSetting, match=r"records_per_second: wanted a number above 0, and up to 10{12}, found"):
        StreamEnvironment().generate(lambda n: n, records_per_second=rate)
