"""CSV files as a source: guessed types, leading zeros, encodings and delimiters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from understudy.runtime.connectors import (
    FileSource,
    NoInput,
    UnreadableInput,
    WatchedFileSource,
)

from .reading import FileContract, all_rows


class TestCsvSource(FileContract):
    format = "csv"

    @classmethod
    def write(cls, rows: pa.Table, path: Path) -> None:
        pa.csv.write_csv(rows, path)


def test_empty_text_files_are_no_input(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    with pytest.raises(NoInput, match="empty"):
        FileSource(str(tmp_path), "csv")
    (tmp_path / "b.csv").write_text("n\n1\n")
    assert all_rows(FileSource(str(tmp_path), "csv")) == [{"n": 1}]


def test_guessed_types_of_several_files_are_widened(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("n,s\n1,a\n")
    (tmp_path / "2.csv").write_text("n,s\n1.5,\n")
    source = FileSource(str(tmp_path), "csv")
    assert source.source_schema() == pa.schema([("n", pa.float64()), ("s", pa.string())])
    assert all_rows(source) == [{"n": 1.0, "s": "a"}, {"n": 1.5, "s": None}]


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,n,n\n1,2,3\n")
    with pytest.raises(UnreadableInput, match=r"1\.csv has 2 columns 'n': give each a name of its own"):
        FileSource(str(tmp_path), "csv")


def test_numbers_with_leading_zeros_stay_text_and_a_warning_names_the_column(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "1.csv").write_text("n,zip,share\n1,99999,0.5\n2,10001,-0.25\n")
    (tmp_path / "2.csv").write_text("n,zip,share\n0,01234,0\n")
    zips = [
        {"n": 1, "zip": "99999", "share": 0.5},
        {"n": 2, "zip": "10001", "share": -0.25},
        {"n": 0, "zip": "01234", "share": 0.0},
    ]
    assert all_rows(FileSource(str(tmp_path), "csv")) == zips
    assert "column 'zip' is read as text, as a number would lose the zeros of '01234'" in caplog.text
    caplog.clear()
    schema = pa.schema([("n", pa.int64()), ("zip", pa.int64()), ("share", pa.float64())])
    assert all_rows(FileSource(str(tmp_path), "csv", schema=schema))[2]["zip"] == 1234
    assert WatchedFileSource(str(tmp_path / "2.csv"), "csv").source_schema().field("zip").type == pa.string()
    assert FileSource(str(tmp_path), "csv", columns=["n"]).source_schema() == pa.schema([("n", pa.int64())])
    assert caplog.text.count("is read as text") == 1


LATE = 15_000


LONG = 100 * "a"


@pytest.mark.parametrize("late", ["01234,x", " 01234,x", '"01234",x', "-007,x", "00.5,x"])
def test_leading_zeros_that_first_come_after_the_types_were_guessed_are_no_number(late: str, tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text("n,zip,name\n" + f"1,99999,{LONG}\n" * LATE + f"2,{late}\n" + "3,10001,b\n" * 9)
    for source in (
        FileSource(str(path), "csv"),
        FileSource(str(path), "csv", columns=["zip"]),
        FileSource(str(path), "csv").for_columns(["zip"]),
    ):
        with pytest.raises(
            UnreadableInput, match=r"late\.csv .*column 'zip' .* it has '.*0.*', whose zeros .* schema="
        ):
            all_rows(source)
    assert all_rows(FileSource(str(path), "csv", columns=["n"]))[-1] == {"n": 3}
    whole = pa.schema([("n", pa.int64()), ("zip", pa.string()), ("name", pa.string())])
    found = all_rows(FileSource(str(path), "csv", schema=whole))[LATE]["zip"]
    assert found.strip() == late.partition(",")[0].strip(' "')


@pytest.mark.parametrize(
    "late", ["5,a,01/02/2024", "5,0123,x", '5,"a\n01,02",x', "0,a,0", "0.5,00:00:01,007", '5,"x,01",-01']
)
def test_zeros_in_columns_of_text_are_no_matter(late: str, tmp_path: Path) -> None:
    (tmp_path / "late.csv").write_text("n,name,day\n" + f"1.5,{LONG},b\n" * LATE + f"{late}\n" * 2 * LATE)
    assert len(all_rows(FileSource(str(tmp_path / "late.csv"), "csv"))) == 3 * LATE


def test_a_value_that_does_not_fit_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("n\n1\nx\n")
    source = FileSource(str(tmp_path), "csv", schema=pa.schema([("n", pa.int64())]))
    with pytest.raises(UnreadableInput, match=r"1\.csv cannot be read as csv"):
        all_rows(source)


def test_a_value_that_does_not_fit_a_guessed_type_asks_for_a_schema(tmp_path: Path) -> None:
    (tmp_path / "late.csv").write_text("id,name\n" + f"1,{LONG}\n" * LATE + "x7,b\n")
    with pytest.raises(UnreadableInput, match=r"invalid value 'x7'; types were guessed .*: say them with schema="):
        all_rows(FileSource(str(tmp_path / "late.csv"), "csv"))
    declared = FileSource(str(tmp_path / "late.csv"), "csv", schema=pa.schema({"id": pa.int64(), "name": pa.string()}))
    with pytest.raises(UnreadableInput, match=r"invalid value 'x7'$"):
        all_rows(declared)


@pytest.mark.parametrize(
    ("line", "is_suspect"),
    [
        ("1,ann,2.5", True),
        ("17,-3", True),
        ("2026-03-29,7", False),  # a date may be a name, as of a table with a column for each day
        ("country,2024,2025", False),
        ("2024,2025", False),
        ("0,1,2", False),  # as pandas names columns that have no names
        ("id,amount", False),
    ],
)
def test_a_first_line_that_looks_like_a_row_is_warned_of(
    tmp_path: Path, line: str, is_suspect: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """It names the columns, so that its values would be missing without a word."""
    columns = range(line.count(",") + 1)
    (tmp_path / "a.csv").write_text(f"{line}\n" + ",".join(map(str, columns)) + "\n")
    FileSource(str(tmp_path / "a.csv"), "csv")
    assert ("put a line of names before it" in caplog.text) == is_suspect


def test_csv_in_another_encoding_is_refused_until_it_is_named(tmp_path: Path) -> None:
    """Guessed, its column would be one of bytes, which are equal to no text."""
    (tmp_path / "a.csv").write_bytes("id,name\n1,J\u00fcrgen\n".encode("latin-1"))
    with pytest.raises(
        UnreadableInput, match=r"a\.csv: column 'name' has text that is not UTF-8: .*encoding='latin-1'"
    ):
        FileSource(str(tmp_path / "a.csv"), "csv")
    assert all_rows(FileSource(str(tmp_path / "a.csv"), "csv", encoding="latin-1")) == [
        {"id": 1, "name": "J\u00fcrgen"}
    ]
    schema = pa.schema([("id", pa.int64()), ("name", pa.binary())])
    assert all_rows(FileSource(str(tmp_path / "a.csv"), "csv", schema=schema))[0]["name"] == b"J\xfcrgen"


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_csv_with_another_delimiter_is_asked_for_it(
    tmp_path: Path, delimiter: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "a.csv").write_text(f"id{delimiter}amount\n1{delimiter}2,5\n")
    with pytest.raises(UnreadableInput, match="is its delimiter no comma"):
        FileSource(str(tmp_path / "a.csv"), "csv")
    (tmp_path / "a.csv").write_text(f"id{delimiter}amount\n1{delimiter}25\n")
    FileSource(str(tmp_path / "a.csv"), "csv")
    assert f"give delimiter={delimiter!r} if there are more" in caplog.text
    found = all_rows(FileSource(str(tmp_path / "a.csv"), "csv", delimiter=delimiter))
    assert found == [{"id": 1, "amount": 25}]


def test_late_zeros_are_found_behind_another_delimiter_too(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id;zip\n" + "1;12345\n" * 200_000 + "2;01234\n")
    with pytest.raises(UnreadableInput, match="column 'zip' was taken for numbers, and later it has '01234'"):
        all_rows(FileSource(str(tmp_path / "a.csv"), "csv", delimiter=";"))


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"delimiter": ";;"}, "delimiter: wanted one character, such as ';' or a tab, found ';;'"),
        ({"delimiter": '"'}, "delimiter: wanted one character"),
        ({"encoding": "utf-16"}, "encoding: wanted one that Python knows, and in which digits"),
        ({"encoding": "nosuch"}, "encoding: wanted one that Python knows"),
    ],
)
def test_a_form_that_no_csv_has_is_refused(tmp_path: Path, form: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        FileSource(str(tmp_path / "a.csv"), "csv", **form)
    with pytest.raises(ValueError, match="delimiter and encoding are for CSV, found jsonl"):
        FileSource(str(tmp_path / "a.jsonl"), "jsonl", delimiter=";")


def test_a_row_that_is_too_large_is_said_with_the_limit(tmp_path: Path) -> None:
    """Arrow says "try to increase block size?", and there is no such setting here."""
    file = tmp_path / "large.csv"
    file.write_text(f"id,text\n1,{'x' * 2 * 1024 * 1024}\n2,y\n")
    said = r"a row has more than 1,048,576 bytes, .* quotation mark missing\? Else write such rows as jsonl or parquet"
    with pytest.raises(UnreadableInput, match=said):
        FileSource(str(file), "csv")
