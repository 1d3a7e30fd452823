"""No text of a connector holds a password, wherever in the URL it stands."""

from __future__ import annotations

import pytest

from understudy.messages.shown_url import url_shown
from understudy.runtime.connectors.redis.redis_stream_source import RedisStreamSource
from understudy.runtime.connectors.sql.database import Database
from understudy.runtime.connectors.web.http_source import HttpSource
from understudy.runtime.connectors.web.websocket_source import WebsocketSource


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://host:6379/0", "redis://host:6379/0"),
        ("redis://host:6379", "redis://host:6379"),
        ("http://host:80/x?mail=a@b", "http://host:80/x?mail=a@b"),
        ("redis://ann@host/0", "redis://ann@host/0"),
        ("unix:///tmp/redis.sock?db=1", "unix:///tmp/redis.sock?db=1"),
        ("redis://ann:hunter2@host/0", "redis://ann:***@host/0"),
        ("redis://:hunter%402@host/0", "redis://:***@host/0"),
        ("redis://:hunter@2@host/0?a=b@c", "redis://:***@host/0?a=b@c"),
        ("postgresql://ann:hun/ter2@host/db", "postgresql://ann:***@host/db"),
        ("redis://host:6379/0?db=1&password=hunter2", "redis://host:6379/0?db=1&password=***"),
        ("https://host/x?api_key=hunter2&page=1#end", "https://host/x?api_key=***&page=1#end"),
        ("https://host/x?Access_Token=hunter2", "https://host/x?Access_Token=***"),
        ("https://host/x?se=1&sig=hunter2", "https://host/x?se=1&sig=***"),
        ("no URL: //a:hunter2@b", "no URL: //a:***@b"),
    ],
)
def test_what_is_secret_in_a_url_is_not_shown(url: str, shown: str) -> None:
    assert url_shown(url) == shown


def test_no_source_shows_its_password() -> None:
    named = [
        HttpSource("http://ann:hunter2@host/x?token=hunter2"),
        WebsocketSource("ws://ann:hunter2@host/x"),
        RedisStreamSource("redis://host:6379/0?password=hunter2", "orders"),
        Database("sqlite:///:memory:?password=hunter2&uri=true"),
    ]
    for each in named:
        assert "hunter2" not in repr(each), repr(each)[:10]


def test_a_port_that_is_no_number_is_refused_without_the_password() -> None:
    with pytest.raises(ValueError, match="url: wanted one like postgresql://") as refused:
        Database("postgresql://ann:hunter2@host:port/db")
    assert "hunter2" not in str(refused.value)


def test_a_url_of_another_kind_is_refused_without_its_password() -> None:
    for made in (HttpSource, WebsocketSource):
        with pytest.raises(ValueError, match=r"found 'nosuch://ann:\*\*\*@host'"):
            made("nosuch://ann:hunter2@host")
