"""Changes of one row that are dealt out to several subtasks: whoever submits the job is told."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Literal

import pytest

from understudy import END, Batch, DataStream, IdempotentSink, Source, SourceState, StreamEnvironment
from understudy.runtime.api.translation import translate

CHANGES = [{"kind": "+I", "id": 1, "n": 1}, {"kind": "+U", "id": 1, "n": 2}, {"kind": "-D", "id": 1, "n": 2}]


def same(row: Any) -> Any:
    return row


class Rows(IdempotentSink):
    key = "id"

    def upsert(self, batch: Batch) -> None: ...


class RowsThatGo(Rows):
    removes_rows = True


class OwnChanges(Source):
    gives_changes = True

    def poll(self) -> Batch | Literal[SourceState.END]:
        return END

    def offset(self) -> int:
        return 0

    def seek(self, offset: int) -> None:
        """There is nothing before it."""


def to_table(stream: DataStream, **options: Any) -> None:
    stream.to_sql("sqlite:///rows.db", "rows", key="id", name="copy", **options)


def said(caplog: pytest.LogCaptureFixture, build: Callable[[DataStream], Any]) -> str:
    env = StreamEnvironment()
    build(env.from_collection(CHANGES, name="changes"))
    return warnings_of(env, caplog)


def warnings_of(env: StreamEnvironment, caplog: pytest.LogCaptureFixture) -> str:
    with caplog.at_level(logging.WARNING):
        translate(env, default_parallelism=4, task_managers=2, work_dir="work")
    return caplog.text


@pytest.mark.parametrize(
    ("build", "operator"),
    [
        (lambda changes: to_table(changes.map(same, name="work", parallelism=2), kind="kind"), "work"),
        (lambda changes: to_table(changes.filter(same, name="work", parallelism=2).map(same), deleted="n"), "work"),
        (lambda changes: to_table(changes.rebalance().map(same, name="work"), kind="kind"), "work"),
        (lambda changes: to_table(changes.rebalance(), kind="kind"), "copy"),
        (lambda changes: to_table(changes.map(same, name="work", parallelism=2).key_by("id"), kind="kind"), "work"),
        (
            lambda changes: (
                changes.key_by("id")
                .top_n(1, by="n", name="changes-of-top")
                .map(same, name="work", parallelism=2)
                .sink_to(Rows(), name="copy")
            ),
            "work",
        ),
        (lambda changes: changes.map(same, name="work", parallelism=2).sink_to(RowsThatGo(), name="copy"), "work"),
    ],
)
def test_changes_of_a_row_that_are_dealt_out_are_a_warning(
    caplog: pytest.LogCaptureFixture, build: Callable[[DataStream], Any], operator: str
) -> None:
    text = said(caplog, build)
    assert text.count("may overtake each other") == 1
    assert f"operator {operator!r} has " in text
    assert "sink 'copy' then keeps an older value" in text
    assert f"Write .key_by(...) with the row's key (id) right before {operator!r}" in text


def test_a_source_of_ones_own_says_that_it_gives_changes(caplog: pytest.LogCaptureFixture) -> None:
    env = StreamEnvironment()
    changes = env.from_source(OwnChanges, name="changes", parallelism=1)
    changes.map(same, name="work", parallelism=2).sink_to(Rows(), name="copy")
    assert "the records of 'changes' are dealt out in turn" in warnings_of(env, caplog)


@pytest.mark.parametrize(
    "build",
    [
        lambda changes: to_table(changes.map(same), kind="kind"),
        lambda changes: to_table(changes, kind="kind", parallelism=2),
        lambda changes: to_table(changes.key_by("id").map(same, parallelism=2), kind="kind", parallelism=3),
        lambda changes: to_table(changes.map(same, parallelism=1), kind="kind"),
        lambda changes: to_table(changes.map(same, parallelism=2)),
        lambda changes: to_table(changes.map(same, parallelism=2).key_by("id").deduplicate(), kind="kind"),
        lambda changes: changes.map(same, parallelism=2).sink_to(Rows()),
        lambda changes: changes.map(same, parallelism=2).print(),
    ],
)
def test_where_order_holds_or_none_is_needed_nothing_is_said(
    caplog: pytest.LogCaptureFixture, build: Callable[[DataStream], Any]
) -> None:
    assert "overtake" not in said(caplog, build)
