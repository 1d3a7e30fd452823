"""ScanPlan: which files a Spark DataFrame reads, if it does nothing but read Parquet files.

Such a DataFrame's optimised plan is a scan of files (LogicalRelation over HadoopFsRelation), with at most a choice,
another order or other names of its columns on top (Project). Whether that holds is read off Spark's own plan, in the
driver's JVM, and whatever is not known to mean the same without Spark is refused: the DataFrame is then read through
Spark as any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from ..errors import NotAScan

MOST_FILES = 10_000
"""The driver reads each file's footer before the job is submitted; with more files than this Spark had better do it."""

_PROJECT = "org.apache.spark.sql.catalyst.plans.logical.Project"
_RELATION = "org.apache.spark.sql.execution.datasources.LogicalRelation"
_FILES = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
_PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
_LISTED = "org.apache.spark.sql.execution.datasources.InMemoryFileIndex"
_ALIAS = "org.apache.spark.sql.catalyst.expressions.Alias"
_ATTRIBUTE = "org.apache.spark.sql.catalyst.expressions.AttributeReference"

_HARMLESS_OPTIONS = frozenset({"path", "paths", "basepath", "mergeschema", "pathglobfilter", "recursivefilelookup"})
"""They say which files there are and what their common schema is, both of which are looked at as they came out."""

_OFF = (
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.parquet.fieldId.read.enabled",
)
_REBASE = "spark.sql.parquet.datetimeRebaseModeInRead"


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """A scan. `columns`: of each column of the DataFrame, in its order, the name that it has in the files."""

    paths: tuple[str, ...]
    """Absolute, in ascending order; a file that is read twice is there twice."""
    columns: tuple[str, ...]
    size_bytes: int
    """Of all files together, when Spark listed them."""
    foreign_dates_as_written: bool
    """Whether days and times that no Spark has written are taken as they are, not moved to another calendar."""


def scan_plan(dataframe: Any) -> ScanPlan:
    """Raises NotAScan, with the reason."""
    java = getattr(dataframe, "_jdf", None)
    if java is None:
        raise NotAScan("it is not a DataFrame of a classic Spark session, which has its plan in this process's JVM")
    try:
        relation, columns = _relation(java.queryExecution().optimizedPlan())
        _check_relation(relation)
        _check_session(dataframe.sparkSession.conf)
        paths = tuple(sorted(_paths(dataframe.sparkSession, relation.location())))
        rebase = str(dataframe.sparkSession.conf.get(_REBASE))
        return ScanPlan(paths, columns, int(relation.location().sizeInBytes()), rebase.upper() == "CORRECTED")
    except NotAScan:
        raise
    except Exception as error:  # Spark's planner is asked by its internal names, which no version promises to keep
        raise NotAScan(f"its plan cannot be looked at: {type(error).__name__}: {error!s:.200}") from error


def _relation(plan: Any) -> tuple[Any, tuple[str, ...]]:
    """The relation that is scanned, and the names there of the plan's columns."""
    chosen = None
    if _class(plan) == _PROJECT:
        chosen = [_id_of_plain(each) for each in _each(plan.projectList())]
        plan = plan.child()
    if _class(plan) != _RELATION:
        raise NotAScan(f"its optimised plan has a {plan.nodeName()}")
    if plan.catalogTable().isDefined():
        raise NotAScan("it reads a table of the catalog")
    names = {each.exprId().toString(): str(each.name()) for each in _each(plan.output())}
    columns = tuple(names.values() if chosen is None else (names[each] for each in chosen))
    if not columns:
        raise NotAScan("it has no columns")
    return plan.relation(), columns


def _id_of_plain(expression: Any) -> str:
    """The id of the attribute that this passes on, maybe by another name."""
    inner = expression.child() if _class(expression) == _ALIAS else expression
    if _class(inner) != _ATTRIBUTE:
        raise NotAScan(f"its column {expression.name()!r} is computed")
    return str(inner.exprId().toString())


def _check_relation(relation: Any) -> None:
    for found, wanted in (
        (relation, _FILES),
        (relation.fileFormat(), _PARQUET),
        (relation.location(), _LISTED),
    ):
        if _class(found) != wanted:
            raise NotAScan(f"it reads a {_class(found)}, wanted a {wanted}")
    if relation.partitionSchema().length():
        raise NotAScan("its folders have partition columns")
    if relation.bucketSpec().isDefined():
        raise NotAScan("it has buckets")
    options = {name for name in str(relation.options().keys().mkString("\n")).split("\n") if name}
    if other := sorted(name for name in options if name.lower() not in _HARMLESS_OPTIONS):
        raise NotAScan(f"it has the option {', '.join(other)}")


def _check_session(conf: Any) -> None:
    for name in _OFF:
        if str(conf.get(name)).lower() != "false":
            raise NotAScan(f"{name} is set")


def _paths(session: Any, location: Any) -> Iterator[str]:
    """In one call, whatever their number: their URIs are encoded, so none has a line break in it."""
    joined = str(session._jvm.scala.Predef.genericWrapArray(location.inputFiles()).mkString("\n"))
    uris = [urlsplit(uri) for uri in joined.split("\n") if uri]
    if len(uris) > MOST_FILES:
        raise NotAScan(f"it has {len(uris)} files, more than {MOST_FILES}")
    for uri in uris:
        if uri.scheme != "file" or uri.netloc:
            raise NotAScan(f"{uri.geturl()} is not a file: of the local or a shared file system")
        yield unquote(uri.path)


def _class(java: Any) -> str:
    return str(java.getClass().getName())


def _each(sequence: Any) -> Iterator[Any]:
    """The elements of a Scala sequence."""
    return (sequence.apply(index) for index in range(sequence.size()))
