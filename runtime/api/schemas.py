"""Which columns a stream has, as far as it is known before the job runs, and whether they fit what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from ...actors.compiled import NumbaMissing, emitted_schema
from ...actors.operators.keyed_operator import KeyedOperator
from ...actors.operators.operator import Operator
from ...messages import those_there_are
from ...messages.shown import columns_shown, one_of_kind
from ..connectors.frames import other_reader
from .errors import InvalidProgram, InvalidSetting, SchemaMismatch, UnknownColumn
from .hook_checks import check_function
from .no_keys import how_to_name, why_no_key

_WANTED = "wanted column names, positions or one function"


def check_keys(keys: Sequence[Any], schema: pa.Schema | None) -> None:
    """`key_by` takes one function, or column names and positions, which must exist when the schema is known."""
    if not keys:
        raise InvalidProgram("key_by: wanted column names, positions or a function, found nothing")
    if len(keys) == 1 and callable(keys[0]):
        if why := why_no_key(keys[0]):
            raise InvalidProgram(f"key_by: found {why}: {_WANTED}, such as key_by('origin')")
        check_function("key_by", keys[0])
        return
    for key in keys:
        if isinstance(key, bool) or not isinstance(key, str | int):
            raise InvalidProgram(f"key_by: {how_to_name(key, len(keys) - 1) or f'{_WANTED}, found {key!r:.80}'}")
        if schema is not None:
            _check_column("key_by", key, schema)


def key_columns(keys: Sequence[Any], schema: pa.Schema | None) -> tuple[str, ...]:
    """The names of the key columns, for an operator that takes whole columns."""
    names = [schema.names[key] if isinstance(key, int) and schema is not None else key for key in keys]
    for key in names:
        if not isinstance(key, str):
            raise InvalidProgram(
                f"aggregate: wanted a stream that is keyed by column names, found the key {key!r:.80}: write "
                "key_by('column') behind records that have it, as Rows and dicts do (.map(lambda word: {'word': "
                "word}) makes some); or reduce(...) or process(...), which take any key"
            )
    return tuple(names)


def _check_column(where: str, column: str | int, schema: pa.Schema) -> None:
    known = column in schema.names if isinstance(column, str) else -len(schema.names) <= column < len(schema.names)
    if not known:
        what = f"column {column!r}" if isinstance(column, str) else f"column number {column}"
        raise UnknownColumn(
            f"{where}: there is no {what}; {_of_a_struct(where, column, schema) or _there(column, schema)}"
        )
    found = schema.types[schema.names.index(column) if isinstance(column, str) else column]
    if pt.is_nested(found):
        take = "row[...]['field']" if pt.is_struct(found) else "tuple(row[...])"
        raise InvalidProgram(
            f"{where}: column {column!r} is of type {found}, whose values can be changed and are no keys: give a "
            f"function, as {where}(lambda row: {take.replace('...', repr(column))})"
        )


def _there(column: str | int, schema: pa.Schema) -> str:
    return f"the stream has {those_there_are(column, schema.names)}"


def _of_a_struct(where: str, column: str | int, schema: pa.Schema) -> str:
    """What to write for "place.city"; empty where there is no such struct."""
    outer, _, inner = str(column).partition(".")
    if not inner or outer not in schema.names or not pt.is_struct(schema.field(outer).type):
        return ""
    return f"a part of the column {outer!r} is given by a function: {where}(lambda row: row[{outer!r}][{inner!r}])"


def output_schema(name: str, operator: Operator, inputs: Sequence[pa.Schema | None]) -> pa.Schema | None:
    """The schema of what the operator emits. Raises SchemaMismatch when the inputs do not fit it; NumbaMissing."""
    try:
        return foreseen_schema(operator, inputs)
    except NumbaMissing:
        raise
    except (ValueError, KeyError, TypeError) as error:
        raise SchemaMismatch(
            f"operator {name!r} ({type(operator).__name__}) does not fit its input: {error}"
        ) from error


def foreseen_schema(operator: Operator, inputs: Sequence[pa.Schema | None]) -> pa.Schema | None:
    """The same, raising what the operator raises; a compiled one learns which columns it will be given."""
    declared = operator.output_schema(*inputs)
    if isinstance(operator, KeyedOperator) and operator.compiled:
        emitted = emitted_schema(operator, inputs[0])
        return emitted if declared is None else declared
    return declared


def common_schema(name: str, schemas: Sequence[pa.Schema | None]) -> pa.Schema | None:
    """The one schema of streams that become one input; None when any is unknown. Field metadata does not count."""
    known = [schema for schema in schemas if schema is not None]
    if len(known) < len(schemas):
        return None
    for other in known[1:]:
        if not other.equals(known[0]):
            raise SchemaMismatch(
                f"{name}: the streams have different columns: {columns_shown(known[0])}; and {columns_shown(other)}"
            )
    return known[0]


def declared_schema(schema: Any) -> pa.Schema | None:
    if schema is not None and not isinstance(schema, pa.Schema):
        raise InvalidSetting(
            "schema: wanted a pyarrow.Schema, as in pa.schema([('id', pa.int64()), ('name', pa.string())]), found a "
            f"{type(schema).__name__}"
        )
    return schema


def dataframe_schema(dataframe: Any) -> pa.Schema:
    """The Arrow schema of a Spark DataFrame's batches. PySpark is imported only for what looks like a DataFrame."""
    schema = _spark_schema(dataframe, "from_dataframe")
    if getattr(dataframe, "isStreaming", False) is True:
        raise InvalidSetting(
            "from_dataframe: wanted a batch DataFrame, found a streaming one: read it with from_spark_stream"
        )
    names = schema.fieldNames()
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidSetting(
            f"from_dataframe: two columns have the name {twice!r}, as after a join; there are {', '.join(names)}: drop "
            f"or rename one, or join with on={twice!r}, which keeps one of them"
        )
    return _to_arrow(schema, dataframe, "from_dataframe")


def streaming_schema(dataframe: Any) -> pa.Schema:
    """The same of a streaming DataFrame. Raises InvalidSetting for one that cannot be spooled."""
    schema, who = _spark_schema(dataframe, "from_spark_stream"), "from_spark_stream"
    if getattr(dataframe, "isStreaming", False) is not True:
        raise InvalidSetting(
            f"{who}: wanted a streaming DataFrame (spark.readStream), found a batch one: from_dataframe"
        )
    if getattr(dataframe, "_jdf", None) is None:
        raise InvalidSetting(f"{who}: wanted a DataFrame of a classic Spark session, found one of Spark Connect")
    names = [name.lower() for name in schema.fieldNames()]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidSetting(f"{who}: two columns have the name {twice[0]!r}, whatever its case: rename one")
    return _to_arrow(schema, dataframe, who)


def _spark_schema(dataframe: Any, method: str) -> Any:
    is_polars = type(dataframe).__module__.partition(".")[0] == "polars"  # a lazy one finds its schema out
    schema: Any = None if is_polars else getattr(dataframe, "schema", None)
    if not hasattr(schema, "fieldNames"):
        raise InvalidSetting(
            f"{method}: wanted a PySpark DataFrame, found {one_of_kind(type(dataframe))}{other_reader(dataframe)}"
        )
    return schema


def _to_arrow(schema: Any, dataframe: Any, method: str) -> pa.Schema:
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import to_arrow_schema

    zone = _session_timezone(dataframe)
    for field in schema.fields:
        if _holds_variant(field.dataType):
            raise InvalidSetting(
                f"{method}: column {field.name!r} is of a type that Arrow has not, {field.dataType}: make it text, as "
                f"with .withColumn({field.name!r}, to_json({field.name!r})), or read what is wanted of it with "
                "variant_get(...), or leave it out"
            )
    try:
        return to_arrow_schema(schema, timezone=zone)
    except PySparkTypeError as error:
        for field in schema.fields:
            try:
                to_arrow_schema(type(schema)([field]), timezone=zone)
            except PySparkTypeError:
                raise InvalidSetting(
                    f"{method}: column {field.name!r} is of a type that Arrow has not, {field.dataType}: cast it, as "
                    f"with .withColumn({field.name!r}, col({field.name!r}).cast('string')), or leave it out"
                ) from error
        raise


def _holds_variant(kind: Any) -> bool:
    """Whether a type of Spark is VARIANT, or has one in it: Spark would give the bytes in which it stores them."""
    parts = [getattr(kind, name) for name in ("elementType", "keyType", "valueType") if hasattr(kind, name)]
    parts += [field.dataType for field in getattr(kind, "fields", ())]
    return kind.typeName() == "variant" or any(map(_holds_variant, parts))


def _session_timezone(dataframe: Any) -> str:
    session = getattr(dataframe, "sparkSession", None)
    return "UTC" if session is None else str(session.conf.get("spark.sql.session.timeZone"))
