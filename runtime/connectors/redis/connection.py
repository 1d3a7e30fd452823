"""Connections to Redis: how they are made, which of their errors may pass, and how an address is shown."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from ....messages.shown_url import url_shown
from ..errors import RedisRefused, check_extra, require
from ..reaching import LOOK_S, in_the_way, is_tls_mistake, why_unreachable

log = logging.getLogger(__name__)

TIMEOUT_S = 10.0
"""Of one request."""


def check_redis(url: str, wanted_by: str) -> None:
    """Raises MissingExtra, and ValueError for what is no address."""
    check_extra("redis", extra="redis", wanted_by=wanted_by)
    if urlsplit(url).scheme not in ("redis", "rediss", "unix"):
        raise ValueError(
            f"{wanted_by}: url: wanted redis://host:6379/0, rediss://… or unix://…, found {url_shown(url)!r}"
        )


def connected(url: str, wanted_by: str, timeout_s: float = TIMEOUT_S, **options: Any) -> Any:
    """A client; it connects with the first request."""
    redis = require("redis", extra="redis", wanted_by=wanted_by)
    limits = {"socket_timeout": timeout_s, "socket_connect_timeout": timeout_s}
    return redis.Redis.from_url(url, protocol=2, **limits, **options)


def place_of(url: str) -> str:
    return url_shown(url).partition("?")[0]


def may_pass(error: BaseException) -> bool:
    """Whether another try may succeed: the server is away, starts, or is full."""
    redis = require("redis", extra="redis", wanted_by="Redis")
    passing = (redis.ConnectionError, redis.TimeoutError, redis.exceptions.OutOfMemoryError, redis.BusyLoadingError)
    refusing = (redis.AuthenticationError, redis.exceptions.NoPermissionError)
    return isinstance(error, (*passing, redis.ReadOnlyError)) and not isinstance(error, refusing)


@contextmanager
def explained(url: str) -> Iterator[None]:
    """What Redis will always refuse becomes a RedisRefused; so does a mistake in TLS."""
    redis = require("redis", extra="redis", wanted_by="Redis")
    try:
        yield
    except (redis.AuthenticationError, redis.exceptions.NoPermissionError) as error:
        raise RedisRefused(f"{url_shown(url)}: {error}. Wanted: a user and password that may do this") from error
    except redis.InvalidResponse as error:
        raise RedisRefused(f"{place_of(url)} answers, but not as Redis does: check the port ({error})") from error
    except redis.ConnectionError as error:
        if is_tls_mistake(error):
            raise RedisRefused(why_unreachable(error, place_of(url))) from error
        raise
    except redis.ResponseError as error:
        if "WRONGTYPE" not in str(error):
            raise
        raise RedisRefused(f"{url_shown(url)}: {error}: give a key that is free, or of that type") from error


def check_answer(url: str, types: dict[str, str]) -> None:
    """Raises RedisRefused for credentials that do not do, and for a key of another type; `types`: by key, what is
    wanted. Raises the client's error, soon, if the server does not answer.
    """
    retry = require("redis.retry", extra="redis", wanted_by="Redis")
    pauses = require("redis.backoff", extra="redis", wanted_by="Redis")
    with explained(url), connected(url, "Redis", LOOK_S, retry=retry.Retry(pauses.NoBackoff(), 0)) as client:
        client.ping()
        for key, wanted in types.items():
            if (found := client.type(key).decode()) not in (wanted, "none"):
                raise RedisRefused(
                    f"{url_shown(url)}: key {key!r} is a {found}, wanted a {wanted}: give a key that is free, or "
                    "of that type"
                )


def check_for_sink(url: str, types: dict[str, str], who: object, retry_ms: float) -> None:
    """`check_answer`, but a server that does not answer is logged: it may do so elsewhere, or later."""
    require("redis", extra="redis", wanted_by="Redis")
    if why := in_the_way(lambda: check_answer(url, types), may_pass, place_of(url)):
        log.warning("%r: %s. The job starts, and tries for %.0f s", who, why, retry_ms / 1000)
