"""Connections to Redis: how they are made, which of their errors may pass, and how an address is shown."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from ....messages.shown_url import url_shown
from ..errors import RedisRefused, check_extra, require
from ..reaching import LOOK_S, in_the_way, is_tls_mistake, why_unreachable
from .servers import Servers, is_cluster
from .urls import check_url

log = logging.getLogger(__name__)

TIMEOUT_S = 10.0
"""Of one request."""

_NO_MASTER_ANY_MORE = "UNBLOCKED"
"""Said to who waits at a master that has become a replica."""
_NO_DATABASE = "DB index is out of range"
_PROBES = 16
"""Keys that are asked for, to see whether a server has all."""


def check_redis(url: str, wanted_by: str) -> None:
    """Raises MissingExtra, and ValueError as check_url does."""
    check_extra("redis", extra="redis", wanted_by=wanted_by)
    check_url(url, wanted_by)


def connected(url: str, wanted_by: str, timeout_s: float = TIMEOUT_S, **options: Any) -> Servers:
    """They are connected with the first request."""
    require("redis", extra="redis", wanted_by=wanted_by)
    return Servers(url, wanted_by, timeout_s, **options)


def place_of(url: str) -> str:
    return url_shown(url).partition("?")[0]


def may_pass(error: BaseException) -> bool:
    """Whether another try may succeed: the server is away, starts, or is full; or a slot's master is another now."""
    redis = require("redis", extra="redis", wanted_by="Redis")
    errors = redis.exceptions
    passing = (redis.ConnectionError, redis.TimeoutError, errors.OutOfMemoryError, redis.BusyLoadingError)
    moving = (errors.MovedError, errors.AskError, errors.TryAgainError, errors.ClusterDownError, errors.MasterDownError)
    refusing = (redis.AuthenticationError, errors.NoPermissionError)
    if isinstance(error, errors.RedisClusterException) or str(error).startswith(_NO_MASTER_ANY_MORE):
        return True
    return isinstance(error, (*passing, *moving, redis.ReadOnlyError)) and not isinstance(error, refusing)


@contextmanager
def explained(url: str) -> Iterator[None]:
    """What Redis will always refuse becomes a RedisRefused; so do a mistake in TLS, and one server's URL for a
    cluster.
    """
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
    except redis.exceptions.MovedError as error:
        if is_cluster(url):
            raise
        raise RedisRefused(
            f"{place_of(url)} is a node of a Redis Cluster, and has not all of its keys ({error}): give the cluster's "
            "URL, redis+cluster://host:port, or with several nodes redis+cluster://host:port,host:port"
        ) from error
    except redis.ResponseError as error:
        if _NO_DATABASE in str(error):
            raise RedisRefused(
                f"{place_of(url)}: the server has no database of this number ({error}): choose another, or raise "
                "`databases` in its configuration"
            ) from error
        if "WRONGTYPE" not in str(error):
            raise
        raise RedisRefused(f"{url_shown(url)}: {error}: give a key that is free, or of that type") from error


@contextmanager
def renewed(servers: Servers) -> Iterator[None]:
    """After an error the next request asks again who has what."""
    try:
        yield
    except Exception:
        servers.forget()
        raise


def check_answer(url: str, types: dict[str, str]) -> None:
    """Raises RedisRefused for credentials that do not do, and for a key of another type; `types`: by key, what is
    wanted. Raises the client's error, soon, if the server does not answer.
    """
    retry = require("redis.retry", extra="redis", wanted_by="Redis")
    pauses = require("redis.backoff", extra="redis", wanted_by="Redis")
    with explained(url), connected(url, "Redis", LOOK_S, retry=retry.Retry(pauses.NoBackoff(), 0)) as servers:
        servers.any().ping()
        for key, wanted in types.items():
            if (found := servers.of(key).type(key).decode()) not in (wanted, "none"):
                raise RedisRefused(
                    f"{url_shown(url)}: key {key!r} is a {found}, wanted a {wanted}: give a key that is free, or "
                    "of that type"
                )
        _check_has_all(servers)


def _check_has_all(servers: Servers) -> None:
    """Raises MovedError if one server is asked that has not all keys. Who may not ask for keys of others does not."""
    redis = require("redis", extra="redis", wanted_by="Redis")
    with suppress(redis.exceptions.NoPermissionError):
        for number in range(_PROBES):
            key = f"understudy:probe-{number}"
            servers.of(key).exists(key)


def check_for_sink(url: str, types: dict[str, str], who: object, retry_ms: float) -> None:
    """`check_answer`, but a server that does not answer is logged: it may do so elsewhere, or later."""
    require("redis", extra="redis", wanted_by="Redis")
    if why := in_the_way(lambda: check_answer(url, types), may_pass, place_of(url)):
        log.warning("%r: %s. The job starts, and tries for %.0f s", who, why, retry_ms / 1000)
