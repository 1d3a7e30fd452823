"""An Iceberg catalog that goes away: the error names it and may pass, and a sink goes on when it is back."""

from __future__ import annotations

import http.server
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from understudy.runtime.connectors.lakes.errors import LakeUnreachable
from understudy.runtime.connectors.lakes.iceberg_source import IcebergVersions
from understudy.runtime.connectors.lakes.iceberg_table import find_table, load_catalog, open_or_make, reached

from .lake import SCHEMA, IcebergLake


@pytest.fixture
def lake(tmp_path: Path) -> IcebergLake:
    return IcebergLake(tmp_path / "lake")


class Server(http.server.ThreadingHTTPServer):
    """A REST catalog that says what it is configured with, and to all else that it is down for repairs."""

    status = 503

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.uri = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()


class _Answers(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        is_config = self.path.startswith("/v1/config")
        error = {"message": "down for repairs", "type": "Repairs", "code": self.server.status}
        body = json.dumps({"defaults": {}, "overrides": {}} if is_config else {"error": error}).encode()
        self.send_response(200 if is_config else self.server.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """No lines in the test's output."""


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.stop()


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_rest_catalog_that_cannot_answer_now(server: Server, status: int) -> None:
    server.status = status
    catalog = load_catalog({"type": "rest", "uri": server.uri}, "IcebergSink")
    with pytest.raises(LakeUnreachable, match=f"sales.totals: its catalog does not answer: {server.uri}: .*repairs"):
        find_table(catalog, "sales.totals")


def test_a_rest_catalog_that_refuses_for_good_is_not_away(server: Server) -> None:
    server.status = 403
    catalog = load_catalog({"type": "rest", "uri": server.uri}, "IcebergSink")
    with pytest.raises(Exception, match="repairs") as raised:
        find_table(catalog, "sales.totals")
    assert not isinstance(raised.value, LakeUnreachable)


def test_a_rest_catalog_that_is_down(server: Server) -> None:
    catalog = load_catalog({"type": "rest", "uri": server.uri}, "IcebergSink")
    server.stop()
    with pytest.raises(LakeUnreachable, match=f"nothing listens at {server.uri}"):
        find_table(catalog, "sales.totals")
    with pytest.raises(LakeUnreachable, match=f"nothing listens at {server.uri}"):
        open_or_make(catalog, "sales.totals", SCHEMA, [])


def take_away(lake: IcebergLake) -> Any:
    """The database of the catalog is not there any more. Returns what puts it back."""
    path = lake.folder / "catalog.db"
    os.rename(path, lake.folder / "away.db")
    os.mkdir(path)

    def put_back() -> None:
        os.rmdir(path)
        os.rename(lake.folder / "away.db", path)

    return put_back


def test_a_source_that_follows_says_that_its_catalog_is_away(lake: IcebergLake) -> None:
    lake.make()
    lake.append([{"key": 1, "text": "a"}])
    versions = lake.source().versions()
    assert isinstance(versions, IcebergVersions)
    newest = lake.version()
    put_back = take_away(lake)
    versions._table.catalog.engine.dispose()
    with pytest.raises(
        LakeUnreachable, match=r"catalog does not answer: sqlite:.*unable to open database file"
    ) as raised:
        versions.after(newest)
    assert raised.value.may_pass
    assert "Background" not in str(raised.value)
    put_back()
    assert versions.after(newest) == []


def test_what_the_object_store_says_is_not_taken_for_the_catalog(lake: IcebergLake) -> None:
    lake.make()
    table = lake.table()
    remote = SimpleNamespace(catalog=table.catalog, location=lambda: "s3://lake/totals")
    with pytest.raises(LakeUnreachable, match="its object store, which has s3://lake/totals"), reached("t", remote):
        raise OSError("slow down")
    with pytest.raises(OSError, match="no space left"), reached("t", table):
        raise OSError("no space left")
