"""Connections to Redis: how they are made, which of their errors may pass, and how an address is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from ....messages.shown_url import url_shown
from ..errors import RedisRefused, check_extra, require

TIMEOUT_S = 10.0
"""Of one request."""


def check_redis(url: str, wanted_by: str) -> None:
    """Raises MissingExtra, and ValueError for what is no address."""
    check_extra("redis", extra="redis", wanted_by=wanted_by)
    if urlsplit(url).scheme not in ("redis", "rediss", "unix"):
        raise ValueError(
            f"{wanted_by}: url: wanted redis://host:6379/0, rediss://… or unix://…, found {url_shown(url)!r}"
        )


def connected(url: str, wanted_by: str) -> Any:
    """A client; it connects with the first request."""
    redis = require("redis", extra="redis", wanted_by=wanted_by)
    return redis.Redis.from_url(url, protocol=2, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S)


def may_pass(error: BaseException) -> bool:
    """Whether another try may succeed: the server is away, starts, or is full."""
    redis = require("redis", extra="redis", wanted_by="Redis")
    passing = (redis.ConnectionError, redis.TimeoutError, redis.exceptions.OutOfMemoryError, redis.BusyLoadingError)
    refusing = (redis.AuthenticationError, redis.exceptions.NoPermissionError)
    return isinstance(error, (*passing, redis.ReadOnlyError)) and not isinstance(error, refusing)


@contextmanager
def explained(url: str) -> Iterator[None]:
    """What Redis will always refuse becomes a RedisRefused."""
    redis = require("redis", extra="redis", wanted_by="Redis")
    try:
        yield
    except (redis.AuthenticationError, redis.exceptions.NoPermissionError) as error:
        raise RedisRefused(f"{url_shown(url)}: {error}. Wanted: a user and password that may do this") from error
    except redis.ResponseError as error:
        if "WRONGTYPE" not in str(error):
            raise
        raise RedisRefused(f"{url_shown(url)}: {error}: give a key that is free, or of that type") from error


def check_answer(url: str, types: dict[str, str]) -> None:
    """Raises RedisRefused for credentials that do not do, and for a key of another type; `types`: by key, what is
    wanted. Whether the server answers is not asked.
    """
    redis = require("redis", extra="redis", wanted_by="Redis")
    try:
        with explained(url), connected(url, "Redis") as client:
            for key, wanted in types.items():
                if (found := client.type(key).decode()) not in (wanted, "none"):
                    raise RedisRefused(
                        f"{url_shown(url)}: key {key!r} is a {found}, wanted a {wanted}: give a key that is free, or "
                        "of that type"
                    )
    except (redis.ConnectionError, redis.TimeoutError) as error:
        if isinstance(error, redis.AuthenticationError):
            raise
