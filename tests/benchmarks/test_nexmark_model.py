"""The events of Nexmark: the same ones however they are divided, and by the rules of the public generator."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("benchmarks.contest", reason="run from the root of the checkout")

from benchmarks.nexmark import draws
from benchmarks.nexmark.model import EPOCH, FIRST_ID, PER_EPOCH, SCHEMAS, STREAMS, Model, Stream, price_of

MODEL = Model(3_000, group=7, late_share=0.1, late_ms=2_000)
streams = st.sampled_from(STREAMS)


def whole(model: Model, stream: Stream) -> pa.RecordBatch:
    return model.batch(stream, 0, model.rows(stream))


def column(batch: pa.RecordBatch, name: str) -> Any:
    return np.asarray(batch.column(name).cast(pa.int64()))


@given(streams, st.lists(st.integers(0, 2_760), max_size=8), st.randoms())
def test_any_division_gives_the_same_rows(stream: Stream, cuts: list[int], random: Any) -> None:
    rows = MODEL.rows(stream)
    edges = sorted({0, rows, *(cut for cut in cuts if cut < rows)})
    parts = list(pairwise(edges))
    random.shuffle(parts)
    made = {start: MODEL.batch(stream, start, end - start) for start, end in parts}
    assert pa.Table.from_batches([made[start] for start in sorted(made)]).equals(
        pa.Table.from_batches([whole(MODEL, stream)])
    )


@given(streams, st.data())
def test_a_column_is_the_same_whichever_others_are_asked_for(stream: Stream, data: Any) -> None:
    names = data.draw(st.lists(st.sampled_from(SCHEMAS[stream].names), min_size=1, unique=True))
    assert MODEL.batch(stream, 5, 20, names).equals(MODEL.batch(stream, 5, 20).select(names))


@given(st.integers(0, 500))
def test_the_streams_share_the_events_out(events: int) -> None:
    kinds = Counter(
        "person" if number % EPOCH == 0 else "auction" if number % EPOCH < 4 else "bid" for number in range(events)
    )
    assert {stream: Model(events).rows(stream) for stream in STREAMS} == {s: kinds[s] for s in STREAMS}


def test_another_seed_gives_other_events_at_the_same_times() -> None:
    one, other = whole(Model(3_000), "bid"), whole(Model(3_000, seed=2), "bid")
    assert one.column("date_time").equals(other.column("date_time"))
    assert (column(one, "price") != column(other, "price")).mean() > 0.99


def test_the_word_of_an_array_is_the_word_of_each_number() -> None:
    numbers = np.array([[0, 1], [2, 2**40]])
    found = draws.words(numbers, 7, 3)
    state = draws.word(draws.word(7) + 3)
    for at in np.ndindex(numbers.shape):
        mixed = (int(numbers[at]) * 0x9E3779B97F4A7C15 + state) % 2**64
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB % 2**64
        assert int(found[at]) == mixed ^ (mixed >> 31)


def test_hot_keys_are_as_frequent_as_the_rules_say() -> None:
    model = Model(500_000)
    bids, auctions = whole(model, "bid"), whole(model, "auction")
    epochs = np.arange(len(bids)) // PER_EPOCH["bid"]
    hot_auction = (epochs * 3 + 2) // 100 * 100 + FIRST_ID
    hot_bidder = epochs // 100 * 100 + 1 + FIRST_ID
    assert (column(bids, "auction") == hot_auction).mean() == pytest.approx(0.5, abs=0.01)
    assert (column(bids, "bidder") == hot_bidder).mean() == pytest.approx(0.75, abs=0.01)
    hot_seller = np.arange(len(auctions)) // 3 // 100 * 100 + FIRST_ID
    assert (column(auctions, "seller") == hot_seller).mean() == pytest.approx(0.75, abs=0.01)
    channels = Counter(bids.column("channel").to_pylist())
    assert channels["Google"] / len(bids) == pytest.approx(1 / 8, abs=0.01)
    assert sum(column(auctions, "category") == 10) / len(auctions) == pytest.approx(1 / 5, abs=0.02)


def test_ids_refer_to_what_there_is_or_soon_will_be() -> None:
    model = Model(100_000)
    bids, auctions = whole(model, "bid"), whole(model, "auction")
    epochs = np.arange(len(bids)) // PER_EPOCH["bid"]
    newest = FIRST_ID + epochs * 3 + 2
    assert (column(bids, "auction") >= np.maximum(newest - 199, FIRST_ID)).all()
    assert (column(bids, "auction") <= newest + 10).all()
    assert (column(bids, "bidder") >= FIRST_ID).all()
    assert (column(bids, "bidder") <= FIRST_ID + epochs + 10).all()
    assert (column(auctions, "id") == FIRST_ID + np.arange(len(auctions))).all()
    assert (column(auctions, "reserve") > column(auctions, "initial_bid")).all()
    lasts = column(auctions, "expires") - column(auctions, "date_time")
    assert lasts.min() >= 1
    assert lasts.max() <= 2 * 166


def test_the_mistake_of_the_original_adds_the_first_id_twice() -> None:
    fixed, original = (whole(Model(1_000, upstream_bidders=bug), "bid") for bug in (False, True))
    assert (column(original, "bidder") == column(fixed, "bidder") + FIRST_ID).all()


def test_prices_are_spread_evenly_over_six_powers_of_ten() -> None:
    prices = price_of(np.arange(0, 1 << 24, 97))
    assert prices.min() == 100
    assert prices.max() < 100_000_000
    for power in range(3, 9):
        assert (prices < 10**power).mean() == pytest.approx((power - 2) / 6, abs=0.001)


# -- times


def test_times_are_in_order_and_as_dense_as_the_rate() -> None:
    times = column(whole(Model(50_000, rate=1_000), "bid"), "date_time")
    assert (np.diff(times) >= 0).all()
    assert times[-1] - times[0] == pytest.approx(50_000, abs=10)


@given(st.integers(1, 60), st.integers(1, 10_000))
def test_a_group_has_its_own_times_in_another_order(group: int, rate: int) -> None:
    events = 600 // group * group
    shuffled, ordered = (Model(events, rate=rate, group=size) for size in (group, 1))
    of_all = [
        np.sort(np.concatenate([column(whole(model, stream), "date_time") for stream in STREAMS]))
        for model in (shuffled, ordered)
    ]
    assert np.array_equal(*of_all)
    times = column(whole(shuffled, "bid"), "date_time")
    assert (np.maximum.accumulate(times) - times).max(initial=0) <= shuffled.disorder_ms


def test_some_events_are_late_by_no_more_than_was_asked_for() -> None:
    model = Model(100_000, late_share=0.05, late_ms=3_000)
    late = column(whole(Model(100_000), "bid"), "date_time") - column(whole(model, "bid"), "date_time")
    assert (late > 0).mean() == pytest.approx(0.05, abs=0.005)
    assert late.min() == 0
    assert 2_900 < late.max() <= 3_000 <= model.disorder_ms


def test_what_makes_no_sense_is_refused() -> None:
    for wrong in ({"rate": 0}, {"group": 953}, {"late_share": 2.0}, {"late_ms": -1}):
        with pytest.raises(ValueError, match=r"wanted"):
            Model(100, **wrong)


def test_the_density_is_told() -> None:
    assert Model(2_000_000, rate=10_000).density == (
        "10,000 events per second of event time, 200.0 s in all, 20.0 windows of 10 s"
    )
