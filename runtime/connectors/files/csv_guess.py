"""What was guessed of the columns of CSV files, from their first megabyte, and what is likely to be wrong with it."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from ..errors import UnreadableInput
from .file_readers import READ_FORMATS, CsvForm

log = logging.getLogger(__name__)

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_YEAR = re.compile(r"(19|20)\d\d")


def csv_form(format: str, null_values: Sequence[str], delimiter: str, encoding: str) -> CsvForm:
    """Raises ValueError for a format that there is not, and for what other formats do not have."""
    if format not in READ_FORMATS:
        raise ValueError(f"format: wanted one of {', '.join(READ_FORMATS)}, found {format!r}")
    if format != "csv" and (delimiter, encoding) != (",", "utf8"):
        raise ValueError(f"delimiter and encoding are for CSV, found {format}")
    return CsvForm(tuple(null_values), delimiter, encoding)


def check_guess(path: str, format: str, schema: pa.Schema, form: CsvForm) -> None:
    """Of the columns that a file seems to have: of text in another encoding, which comes out as bytes, raises
    UnreadableInput; warns of a single column, in which another delimiter stands, and of a first line that looks like a
    row, as its values name the columns.
    """
    if format != "csv":
        return
    if others := [field.name for field in schema if pa.types.is_binary(field.type)]:
        raise UnreadableInput(
            f"{path}: column {others[0]!r} has text that is not UTF-8: say which it is, as in encoding='latin-1'; or "
            "with schema= that it is pa.binary()"
        )
    name = schema.names[0] if len(schema.names) == 1 else ""
    meant = next((each for each in ";\t|" if each in name), "")
    if meant and form.delimiter != meant:
        log.warning("%s has one column, %r: give delimiter=%r if there are more", path, name, meant)
    if _looks_like_a_row(schema.names):
        log.warning(
            "%s: its first line gives the columns their names, %s, and is no record: if it is one, put a line of names "
            "before it",
            *(path, ", ".join(map(repr, schema.names))),
        )


def _looks_like_a_row(names: Sequence[str]) -> bool:
    """Whether the first of the names is a number. Tables that have numbers for names have years, or 0, 1, 2, ...."""
    is_numbered = list(names) == [str(index) for index in range(len(names))]
    return bool(names and _NUMBER.fullmatch(names[0])) and not is_numbered and not _YEAR.fullmatch(names[0])


def as_text(schema: pa.Schema, names: Iterable[str]) -> pa.Schema:
    """The same columns; those of these names are text."""
    for name in names:
        if (position := schema.get_field_index(name)) >= 0:
            schema = schema.set(position, pa.field(name, pa.string()))
    return schema


def warn_of_texts(path: str, texts: Mapping[str, str], columns: Sequence[str] | None) -> None:
    """A line in the log for all columns that are text for their leading zeros, of those that are read."""
    read = {name: value for name, value in texts.items() if columns is None or name in columns}
    if read:
        name, value = next(iter(read.items()))
        log.warning(
            "%s: column %s is read as text, as a number would lose the zeros of %r; if it is a number, say so with "
            "schema=, or write int(record[%r])",
            *(path, ", ".join(map(repr, read)), value, name),
        )
