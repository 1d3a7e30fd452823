"""URLs of Redis, checked where a source or sink is made: the client passes over what it does not understand, or fails
with it in a task. Nothing is connected. No text has a part of the URL that may be a secret.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from ....actors.setting_limits import MOST
from ....messages.known_names import meant
from ....messages.shown_url import url_shown
from .servers import is_cluster, nodes_of

SCHEMES: Final = ("redis", "rediss", "unix", "redis+cluster", "rediss+cluster")


@dataclass(frozen=True, slots=True)
class _Kind:
    wanted: str
    fits: Callable[[str], bool]


def _is_whole(text: str, least: int = 0) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 11 and least <= int(text) <= MOST


def _is_seconds(text: str) -> bool:
    try:
        return (seconds := float(text)) > 0 and math.isfinite(seconds) and seconds <= 86_400
    except ValueError:
        return False


_WHOLE = _Kind(f"a whole number from 0 to {MOST}", _is_whole)
_COUNT = _Kind(f"a whole number from 1 to {MOST}", lambda text: _is_whole(text, 1))
_SECONDS = _Kind("a number of seconds above 0, up to a day", _is_seconds)
_BOOL = _Kind("true or false", lambda text: text.lower() in ("true", "false", "yes", "no", "1", "0"))
_TEXT = _Kind("a text", bool)
_CERTIFICATES = _Kind("none, optional or required", lambda text: text in ("none", "optional", "required"))
_FLAGS = _Kind(
    "names of ssl.VerifyFlags with commas in between",
    lambda text: all(name.strip() in ssl.VerifyFlags.__members__ for name in text.strip("[]").split(",")),
)
_VERSION = _Kind(
    f"{int(ssl.TLSVersion.TLSv1_2)} (TLS 1.2) or {int(ssl.TLSVersion.TLSv1_3)} (TLS 1.3)",
    lambda text: text in (str(int(ssl.TLSVersion.TLSv1_2)), str(int(ssl.TLSVersion.TLSv1_3))),
)

_OPTIONS: Final[Mapping[str, _Kind]] = MappingProxyType(
    {
        "db": _WHOLE,
        "username": _TEXT,
        "password": _TEXT,
        "client_name": _TEXT,
        "socket_timeout": _SECONDS,
        "socket_connect_timeout": _SECONDS,
        "socket_keepalive": _BOOL,
        "socket_read_size": _COUNT,
        "health_check_interval": _WHOLE,
        "max_connections": _COUNT,
        "retry_on_timeout": _BOOL,
    }
)
_TLS_OPTIONS: Final[Mapping[str, _Kind]] = MappingProxyType(
    {
        "ssl_ca_certs": _TEXT,
        "ssl_ca_path": _TEXT,
        "ssl_ca_data": _TEXT,
        "ssl_certfile": _TEXT,
        "ssl_keyfile": _TEXT,
        "ssl_password": _TEXT,
        "ssl_cert_reqs": _CERTIFICATES,
        "ssl_check_hostname": _BOOL,
        "ssl_ciphers": _TEXT,
        "ssl_min_version": _VERSION,
        "ssl_include_verify_flags": _FLAGS,
        "ssl_exclude_verify_flags": _FLAGS,
    }
)
_SECRET = ("password", "ssl_password", "ssl_ca_data", "username")


def check_url(url: str, wanted_by: str) -> None:
    """Raises ValueError for what is no address of Redis, and for an option of it that nothing would read."""
    if not isinstance(url, str) or url.partition("://")[0] not in SCHEMES or "://" not in url:
        shown = url_shown(url) if isinstance(url, str) else url
        raise ValueError(
            f"{wanted_by}: url: wanted redis://host:6379/0, rediss://… or unix://…; for a Redis Cluster "
            f"redis+cluster://host:6379,host:6379 or rediss+cluster://…; found {shown!r:.300}"
        )
    try:
        parts = urlsplit(url)
        if is_cluster(url):
            nodes_of(url)
        _check_place(parts)
        _check_options(parts)
    except ValueError as error:
        raise ValueError(f"{wanted_by}: url: {error}; found {url_shown(url).partition('?')[0]!r}") from None


def _check_place(parts: SplitResult) -> None:
    """Host, port and number of the database; of a cluster `nodes_of` looks at them."""
    if parts.fragment:
        raise ValueError("a # ends a URL, and what stands behind it is lost: in a password write %23")
    if parts.scheme.endswith("+cluster"):
        return
    if parts.scheme == "unix":
        if len(parts.path) < 2:
            raise ValueError("wanted the path of a socket, as in unix:///run/redis.sock?db=0")
        return
    try:
        port = parts.port
    except ValueError:  # its text may have a part of a password that was not quoted
        port = 0
    if port == 0:
        raise ValueError(
            "wanted a port from 1 to 65535 behind the host; in a password / is written %2F, @ %40 and : %3A"
        )
    number = unquote(parts.path).removeprefix("/").removesuffix("/")
    if number and not _is_whole(number):
        raise ValueError(f"wanted the number of a database behind the host, as in /0, found {f'/{number}'!r:.80}")


def _check_options(parts: SplitResult) -> None:
    has_tls = parts.scheme.startswith("rediss")
    known = {**_OPTIONS, **_TLS_OPTIONS} if has_tls else dict(_OPTIONS)
    seen: set[str] = set()
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name in _TLS_OPTIONS and not has_tls:
            raise ValueError(f"option {name!r} is for TLS: wanted a URL that begins with rediss:// to use it")
        if name == "protocol" and value == "2":
            continue
        if name not in known:
            raise ValueError(f"no option {name!r:.80}{meant(name, known) or '.'} There are {', '.join(known)}")
        if name in seen:
            raise ValueError(f"option {name!r} stands there twice, and only the first would count")
        seen.add(name)
        if not known[name].fits(value):
            found = "" if name in _SECRET else f", found {value!r:.80}"
            raise ValueError(f"option {name!r}: wanted {known[name].wanted}{found}")
    _check_database(parts)


def _check_database(parts: SplitResult) -> None:
    """The option wins over the number behind the host."""
    options = dict(parse_qsl(parts.query))
    if "db" not in options:
        return
    if parts.scheme.endswith("+cluster") and int(options["db"]):
        raise ValueError("a Redis Cluster has one database: wanted no option 'db', or db=0")
    number = unquote(parts.path).strip("/")
    if parts.scheme != "unix" and number and int(number) != int(options["db"]):
        raise ValueError(f"wanted one number of a database, found /{int(number)} and db={int(options['db'])}")
