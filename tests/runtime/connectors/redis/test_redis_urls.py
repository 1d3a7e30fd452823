"""URLs of Redis: what nothing would read, or would be read in another way, is refused when a source or sink is made."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import RedisListSink, RedisRefused, RedisStreamSource
from understudy.runtime.connectors.redis.connection import check_redis

from ....systems.redis import RedisServer

pytestmark = pytest.mark.every_run


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://h/0?socket_timeot=3", r"no option 'socket_timeot'; did you mean 'socket_timeout'\? There are db, us"),
        ("redis://h/0?decode_responses=true", "no option 'decode_responses'"),
        ("redis://h/0?protocol=3", "no option 'protocol'"),
        ("redis://h/0?Db=3", r"no option 'Db'\. There are db, username"),
        ("redis://h/0?db=x", "option 'db': wanted a whole number from 0 to 2147483647, found 'x'"),
        ("redis://h/0?db=-1", "option 'db': wanted a whole number from 0 .*, found '-1'"),
        ("redis://h?db=", "option 'db': wanted a whole number from 0 .*, found ''"),
        ("redis://h?db=1&db=2", "option 'db' stands there twice, and only the first would count"),
        ("redis://h/1?db=2", "wanted one number of a database, found /1 and db=2"),
        ("redis://h/zero", "wanted the number of a database behind the host, as in /0, found '/zero'"),
        ("redis://h/-1", "wanted the number of a database behind the host, as in /0, found '/-1'"),
        ("redis://h/0/1", "wanted the number of a database behind the host, as in /0, found '/0/1'"),
        ("redis://h/99999999999999999999", "wanted the number of a database behind the host"),
        ("redis://h/0?socket_timeout=soon", "option 'socket_timeout': wanted a number of seconds above 0, .* 'soon'"),
        ("redis://h/0?socket_timeout=-1", "option 'socket_timeout': wanted a number of seconds above 0, up to a day"),
        ("redis://h/0?socket_timeout=inf", "option 'socket_timeout': wanted a number of seconds above 0, up to a day"),
        ("redis://h/0?socket_keepalive=maybe", "option 'socket_keepalive': wanted true or false, found 'maybe'"),
        ("redis://h/0?ssl_ca_certs=/ca.crt", "option 'ssl_ca_certs' is for TLS: wanted a URL .* rediss://"),
        ("rediss://h/0?ssl_ca_cert=/ca.crt", r"no option 'ssl_ca_cert'; did you mean 'ssl_ca_certs'\?"),
        (
            "rediss://h/0?ssl_cert_reqs=maybe",
            "option 'ssl_cert_reqs': wanted none, optional or required, found",
        ),
        ("rediss://h/0?ssl_min_version=1.2", r"option 'ssl_min_version': wanted 771 \(TLS 1.2\) or 772 \(TLS 1.3\)"),
        ("redis://h:0/0", "wanted a port from 1 to 65535"),
        ("redis://h:70000/0", "wanted a port from 1 to 65535"),
        ("redis://h:port/0", "wanted a port from 1 to 65535"),
        ("unix://", "wanted the path of a socket, as in unix:///run/redis.sock"),
        ("unix:///run/redis.sock?dbb=1", r"no option 'dbb'; did you mean 'db'\?"),
        ("REDIS://h/0", "wanted redis://host:6379/0"),
        ("redis:/h/0", "wanted redis://host:6379/0"),
        ("http://h", "wanted redis://host:6379/0"),
        ("", "wanted redis://host:6379/0"),
        (None, "wanted redis://host:6379/0, .*; found None"),
        ("redis+cluster://a:1,b:2?db=1", "a Redis Cluster has one database: wanted no option 'db', or db=0"),
        ("redis+cluster://a:1,b:2?retries=1", "no option 'retries'"),
    ],
)
def test_what_is_wrong_in_a_url_is_named(url: Any, said: str) -> None:
    with pytest.raises(ValueError, match=f"^RedisListSink: url: .*{said}|^RedisListSink: url: {said}"):
        RedisListSink(url, "out")


@pytest.mark.parametrize(
    "url",
    [
        "redis://h",
        "redis://h:6379",
        "redis://h/",
        "redis://h/15",
        "redis:///3",
        "redis://user:p%40ss%23%2F@h:6379/0?socket_timeout=2.5&client_name=me&protocol=2",
        "redis://[::1]:6379/0",
        "redis://h/1?db=1",
        "rediss://h/0?ssl_cert_reqs=none&ssl_check_hostname=false&ssl_min_version=771",
        "unix:///run/redis.sock?db=2&password=x",
        "redis+cluster://a:1,b:2/0?socket_timeout=3",
        "rediss+cluster://a:1?ssl_ca_certs=/ca.crt",
    ],
)
def test_what_the_client_understands_is_taken(url: str) -> None:
    check_redis(url, "test")


@pytest.mark.parametrize(
    "url",
    [
        "redis://:hidden#it@h:6379/0",
        "redis://:hidden/it@h:6379/0",
        "redis://h/0?pasword=hidden",
        "redis://:hidden@h/0?socket_timeot=3",
        "rediss://h/0?password=&token=hidden",
    ],
)
def test_no_text_has_a_part_of_a_password(url: str) -> None:
    with pytest.raises(ValueError, match="RedisStreamSource: url: ") as refused:
        RedisStreamSource(url, "in")
    assert "hidden" not in str(refused.value)


def test_a_database_that_the_server_has_not_is_refused_at_submit(redis: RedisServer) -> None:
    url = redis.url.replace("/0", "/4711")
    for made in (RedisListSink(url, "out"), RedisStreamSource(url, "in")):
        with pytest.raises(RedisRefused, match=r"/4711: .*has no database of this number.*`databases`"):
            made.check_at_submit(on_this_machine=True)


def test_a_password_that_the_server_does_not_want_is_refused_at_submit(redis: RedisServer) -> None:
    url = redis.url.replace("://", "://:hidden@")
    for made in (RedisListSink(url, "out"), RedisStreamSource(url, "in")):
        with pytest.raises(RedisRefused, match=r"Wanted: a user and password that may do this") as refused:
            made.check_at_submit(on_this_machine=True)
        assert "hidden" not in str(refused.value)
