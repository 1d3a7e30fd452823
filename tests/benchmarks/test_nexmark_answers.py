"""How answers of Nexmark are compared: digests that all sides compute, Flink's rows, files, and the report."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("benchmarks.contest", reason="run from the root of the checkout")
pytest.importorskip("duckdb", reason="it computes the right answers")

from benchmarks.nexmark import comparison, flink_sql, oracle
from benchmarks.nexmark.answers import (
    MIXER,
    NULL,
    TEXT_MULTIPLIERS,
    Digest,
    answer_in,
    column_words,
    digest_of_table,
    multiplier,
    row_words,
    write_answer,
)
from benchmarks.nexmark.dataset import RAW_ROWS, READERS, dataset, raw_columns
from benchmarks.nexmark.model import SCHEMAS, STREAMS, Model
from benchmarks.nexmark.queries import QUERIES
from benchmarks.nexmark.sink import AnswerSink
from benchmarks.nexmark.window_latency import latencies_ms
from understudy.testing import OperatorHarness

texts = st.lists(st.none() | st.text(max_size=12), max_size=8)


def by_hand(text: str | None) -> int:
    """The word of a text as docs and Java have it."""
    if text is None:
        return NULL
    data = text.encode()
    first = int.from_bytes(data[:8], "little")
    last = int.from_bytes(data[-8:], "little")
    return sum(n * by for n, by in zip((len(data), first, last), TEXT_MULTIPLIERS, strict=True)) % 2**64


@given(texts, st.integers(0, 8), st.integers(0, 8))
def test_the_word_of_a_text_is_of_its_length_and_ends(values: Sequence[str | None], start: int, length: int) -> None:
    for kind in (pa.string(), pa.large_string()):
        column = pa.array(values, kind).slice(start, length)
        assert column_words(column).tolist() == [by_hand(text) for text in values[start : start + length]]
    assert column_words(pa.array(values, pa.string()).dictionary_encode()).tolist() == [by_hand(v) for v in values]


def test_numbers_times_and_decimals_are_their_own_words() -> None:
    assert column_words(pa.array([-1, None, 5])).tolist() == [2**64 - 1, NULL, 5]
    times = pa.array([1_500, 2_000], pa.timestamp("ms"))
    assert column_words(times).tolist() == column_words(times.cast(pa.timestamp("us"))).tolist() == [1_500, 2_000]
    prices = pa.array([Decimal("0.908"), Decimal("1816.000")], pa.decimal128(23, 3))
    assert column_words(prices).tolist() == [908, 1_816_000]
    with pytest.raises(TypeError, match="double"):
        column_words(pa.array([1.5]))


def test_a_row_is_mixed_of_all_its_columns_by_place() -> None:
    batch = pa.RecordBatch.from_pydict({"a": [3], "b": [5]})
    total = (3 * multiplier(0) + 5 * multiplier(1)) % 2**64
    total = (total ^ (total >> 32)) * MIXER % 2**64
    assert row_words(batch, ["a", "b"]).tolist() == [total ^ (total >> 29)]
    assert row_words(batch, ["b", "a"]).tolist() != row_words(batch, ["a", "b"]).tolist()


@given(st.lists(st.integers(0, 9), min_size=1), st.randoms())
def test_a_digest_is_of_a_multiset(values: list[int], random: Any) -> None:
    table = pa.table({"a": values, "b": [str(value) for value in values]})
    order = list(range(len(values)))
    random.shuffle(order)
    wanted = digest_of_table(table, ["a", "b"])
    assert digest_of_table(table.take(order), ["a", "b"]) == wanted
    assert digest_of_table(table.take([*order, 0]), ["a", "b"]) != wanted
    parts = [table.take(order[:1]), table.take(pa.array(order[1:], pa.int64()))]
    assert sum((digest_of_table(part, ["a", "b"]) for part in parts), Digest(0, 0)) == wanted


# -- the sink


def batch_of(*rows: tuple[int, int]) -> pa.RecordBatch:
    keys, values = zip(*rows, strict=True)
    return pa.RecordBatch.from_pydict({"key": keys, "value": values})


@pytest.mark.parametrize("key", [(), ("key",)])
def test_the_sink_counts_what_came_once_over_a_restore(tmp_path: Path, key: tuple[str, ...]) -> None:
    def sink() -> AnswerSink:
        return AnswerSink(tmp_path, ("key", "value"), key, durable=True)

    batches = [batch_of((1, 1), (2, 1)), batch_of((1, 2)), batch_of((3, 1), (1, 3))]
    with OperatorHarness(sink()) as first:
        first.process(batches[0])
        snapshot = first.snapshot()
        first.process(batches[1])  # lost
        first.crash()
    with first.restored(snapshot) as second:
        for batch in batches[1:]:
            second.process(batch)
        second.end()
    rows = batch_of((2, 1), (3, 1), (1, 3)) if key else pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
    assert answer_in(tmp_path) == digest_of_table(pa.Table.from_batches([rows]), ["key", "value"])


def test_no_answer_is_no_empty_answer(tmp_path: Path) -> None:
    assert answer_in(tmp_path) is None
    write_answer(tmp_path, Digest(0, 0))
    assert answer_in(tmp_path) == Digest(0, 0)


# -- rows for Flink


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dataset(tmp_path_factory.mktemp("cache"), Model(20_000))


@pytest.mark.parametrize("stream", STREAMS)
def test_raw_columns_are_the_same_rows(folder: Path, stream: Any) -> None:
    made = pa.concat_tables(
        table for path in sorted((raw_columns(folder) / stream).iterdir()) for table in blocks(path, SCHEMAS[stream])
    )
    stored = pq.read_table(folder / f"{stream}.parquet")
    first = SCHEMAS[stream].names[0]
    by_all = [(first, "ascending"), ("date_time", "ascending"), ("extra", "ascending")]
    assert made.sort_by(by_all).equals(stored.sort_by(by_all))
    assert len(list((raw_columns(folder) / stream).iterdir())) == READERS


def blocks(path: Path, schema: pa.Schema) -> list[pa.Table]:
    """Read as Columns.java reads them."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        rows, count = struct.unpack_from("<ii", data, at)
        assert 0 < rows <= RAW_ROWS
        assert count == len(schema)
        at += 8
        columns = []
        for field in schema:
            (size,) = struct.unpack_from("<i", data, at)
            content = data[at + 4 : at + 4 + size]
            at += 4 + size
            if field.type == pa.string():
                ends = np.frombuffer(content, "<i4", rows + 1)
                text = content[4 * (rows + 1) :]
                columns.append(pa.array([text[a:b].decode() for a, b in pairwise(ends)]))
            else:
                columns.append(pa.array(np.frombuffer(content, "<i8")).cast(field.type))
        found.append(pa.table(columns, schema=schema))
    return found


def test_flink_has_a_type_for_each_compared_column(folder: Path) -> None:
    for query in QUERIES.values():
        if query.name in flink_sql.SELECTS:
            keys, types = flink_sql.RESULTS[query.name]
            assert keys == len(query.key)
            assert len(types) >= len(query.compared)
            *_, insert = flink_sql.statements(query.name, folder, folder, len(query.compared))
            assert insert.startswith("INSERT INTO answer SELECT")
    assert set(oracle.ANSWERS) - set(flink_sql.SELECTS) == {"q6"}


# -- the comparison


def test_a_wrong_answer_is_noticed(folder: Path, tmp_path: Path) -> None:
    answers = comparison.Answers(folder)
    query = QUERIES["q2"]
    assert "no answer" in answers.compare(query, tmp_path)[0]
    right = answers.of(query)
    write_answer(tmp_path, right)
    assert answers.compare(query, tmp_path) == []
    write_answer(tmp_path, right, part=1)
    assert "wanted" in answers.compare(query, tmp_path)[0]


@pytest.mark.parametrize("colon", [":", "%3A"])
def test_files_are_compared_however_they_are_divided(folder: Path, tmp_path: Path, colon: str) -> None:
    """Ours have a line of names and all columns; Flink's have neither, and columns in the names of their folders."""
    query, answers = QUERIES["q10"], comparison.Answers(folder)
    with oracle.connect(folder) as connection:
        table = oracle.answer_of(connection, "q10", query.compared)
    ours, theirs = tmp_path / "ours" / "files", tmp_path / "theirs" / "files"
    ours.mkdir(parents=True)
    pa.csv.write_csv(table, ours / "part-0.csv")
    for minute in table["hm"].unique().to_pylist():
        rows = table.filter(pa.compute.equal(table["hm"], minute))
        place = theirs / f"c5={rows['dt'][0].as_py()}" / f"c6={minute.replace(':', colon)}"
        place.mkdir(parents=True)
        pa.csv.write_csv(rows.drop_columns(["dt", "hm"]), place / "part-0", pa.csv.WriteOptions(include_header=False))
    assert answers.compare(query, tmp_path / "ours") == []
    assert answers.compare(query, tmp_path / "theirs") == []


def test_a_report_compares_by_processor_seconds() -> None:
    peer = {"cpu_ratio": 4.0, "rows_per_cpu_s": 250_000}
    cases = [
        {"query": "q0", "rows_per_cpu_s": 1_000_000, "peers": {"flink": peer}},
        {"query": "q1", "rows_per_cpu_s": 2_000_000, "peers": {"flink": {**peer, "cpu_ratio": 1.0}}},
        {"query": "q6", "rows_per_cpu_s": 500_000},
    ]
    assert comparison.summary(cases) == {"flink": 2.0}
    lines = comparison.table_of(cases).splitlines()
    assert lines[1].split() == ["q0", "1000", "250", "4.0"]
    assert lines[3].split() == ["q6", "500"]


def test_queries_are_chosen_by_name() -> None:
    assert [query.name for query in comparison.chosen("q2, q0")] == ["q2", "q0"]
    assert len(comparison.chosen("")) == len(QUERIES)
    with pytest.raises(Exception, match="q99"):
        comparison.chosen("q99")


def test_a_window_takes_from_the_record_that_closes_it_to_its_result(tmp_path: Path) -> None:
    second = 1_000_000_000
    np.save(tmp_path / "emitted-bids-0.npy", np.array([[9_000, 9 * second], [14_000, 14 * second]]))
    np.save(tmp_path / "emitted-bids-1.npy", np.array([[13_000, 13 * second], [14_500, 15 * second]]))
    arrived = np.array([[10_000, 15 * second + 3_000_000], [20_000, 16 * second]])
    np.save(tmp_path / "arrived-0.npy", arrived)
    assert latencies_ms(tmp_path, 4_000).tolist() == [3.0]  # the second window was closed by the end of data
