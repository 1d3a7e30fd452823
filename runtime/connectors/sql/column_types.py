"""Which Arrow type a column of a database has, and back. Others are text, as the database prints them.

A `numeric` without a precision is text too: no decimal of a fixed scale holds all of its values. How values are
converted is not at home here (`texts`, `readers`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from sqlalchemy.types import TypeEngine

MICROSECONDS = pa.timestamp("us")
UTC_MICROSECONDS = pa.timestamp("us", tz="UTC")
_LARGEST_PRECISION = 38

_OF_OIDS: dict[int, pa.DataType] = {
    16: pa.bool_(),
    17: pa.binary(),
    20: pa.int64(),
    21: pa.int16(),
    23: pa.int32(),
    26: pa.int64(),
    700: pa.float32(),
    701: pa.float64(),
    1082: pa.date32(),
    1083: pa.time64("us"),
    1114: MICROSECONDS,
    1184: UTC_MICROSECONDS,
}
NUMERIC_OID = 1700


def arrow_type_of_oid(oid: int, precision: int | None, scale: int | None) -> pa.DataType:
    """Of a column of PostgreSQL, by the oid of its type."""
    if oid == NUMERIC_OID:
        return _decimal(precision, scale)
    return _OF_OIDS.get(oid, pa.string())


def numeric_parts(type_modifier: int) -> tuple[int | None, int | None]:
    """Precision and scale of PostgreSQL's numeric, from `atttypmod`; None, None if it has none."""
    if type_modifier < 4:
        return None, None
    scale = (type_modifier - 4) & 0x7FF
    return (type_modifier - 4) >> 16, scale - 2048 if scale >= 1024 else scale


def arrow_type_of(kind: TypeEngine[Any], wide_integers: bool) -> pa.DataType:
    """By SQLAlchemy's type. `wide_integers`: INTEGER has 64 bits, as in SQLite."""
    from sqlalchemy import types

    if isinstance(kind, types.Boolean):
        return pa.bool_()
    if isinstance(kind, types.Integer):
        small = isinstance(kind, types.SmallInteger)
        narrow = pa.int16() if small else pa.int64() if isinstance(kind, types.BigInteger) else pa.int32()
        return pa.int64() if wide_integers else narrow
    if isinstance(kind, types.Float):
        return pa.float64()
    if isinstance(kind, types.Numeric):
        return pa.float64() if wide_integers and kind.precision is None else _decimal(kind.precision, kind.scale)
    if isinstance(kind, types.DateTime):
        return UTC_MICROSECONDS if kind.timezone else MICROSECONDS
    simple = ((types.Date, pa.date32()), (types.Time, pa.time64("us")), (types.LargeBinary, pa.binary()))
    return next((found for known, found in simple if isinstance(kind, known)), pa.string())


def sql_type_of(kind: pa.DataType) -> TypeEngine[Any]:
    """A type of SQLAlchemy that takes values of this Arrow type; for tables that we make, and for parameters."""
    from sqlalchemy import types

    if pa.types.is_boolean(kind):
        return types.Boolean()
    if pa.types.is_integer(kind):
        return types.BigInteger()
    if pa.types.is_floating(kind):
        return types.Double()
    if pa.types.is_decimal(kind):
        return types.Numeric(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return types.DateTime(timezone=kind.tz is not None)
    if pa.types.is_date(kind):
        return types.Date()
    if pa.types.is_time(kind):
        return types.Time()
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return types.LargeBinary()
    return types.Text()


def may_become(found: pa.DataType, wanted: pa.DataType, declared: str) -> bool:
    """Whether a column of ours of type `found` may be written into one of the database of type `wanted`.

    A database parses text, so text may become whatever has no Arrow type of its own (`wanted` is text then), and
    numbers may become wider ones. The values decide the rest: what does not fit is refused by the database.
    """
    if found.equals(wanted) or pa.types.is_null(found):
        return True
    families = (_is_number, pa.types.is_boolean, _is_text, _is_binary, _is_time_like)
    if _is_text(wanted):
        return (
            _is_text(found) or pa.types.is_nested(found) or not declared.upper().startswith(("TEXT", "VARCHAR", "CHAR"))
        )
    return any(family(found) and family(wanted) for family in families)


def _decimal(precision: int | None, scale: int | None) -> pa.DataType:
    if precision is None or precision > _LARGEST_PRECISION:
        return pa.string()
    return pa.decimal128(precision, scale or 0)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _is_time_like(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind))
