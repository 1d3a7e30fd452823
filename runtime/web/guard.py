"""Guard: who may ask. Nobody from another machine without the token, and no page of another site with a user's browser.

    with a token       whoever has it, in `Authorization: Bearer` or in the cookie that a login has set
    without one        processes of this machine alone: the address, and what the request calls us, are loopback's
    trust_callers      everybody who comes: the service around the app has looked already

What a browser sends on behalf of another site (a foreign Origin) is refused in each case. The name by which we are
called is looked at because a page may have its own name resolved to 127.0.0.1.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Collection
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from urllib.parse import urlsplit

from .errors import HttpError
from .http import Request

COOKIE = "understudy"
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_OF_PROXIES = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
_HOW = "give the app a token, or trust_callers=True if the service around it has checked who asks"


class Guard:
    """`hosts`: names beside loopback's by which a request without a token may call us."""

    def __init__(self, token: str | None, hosts: Collection[str] = (), *, trust_callers: bool = False) -> None:
        self._token = token
        self._hosts = LOOPBACK_NAMES | {host.lower() for host in hosts}
        self._trust_callers = trust_callers

    def check(self, request: Request) -> None:
        """Raises HttpError for a request that is not to be answered."""
        self.check_origin(request)
        if self._trust_callers:
            return
        if self._token is not None:
            self._check_token(request)
        else:
            self._check_loopback(request)

    def check_origin(self, request: Request) -> None:
        """That no page of another site sends it."""
        origin, host = request.headers.get("origin"), request.headers.get("host", "")
        if origin is not None and _host_and_port(origin) != host.lower():
            raise HttpError(
                HTTPStatus.FORBIDDEN,
                f"refused: a page of {origin!r:.200} has sent this request: open the page of this server itself",
            )
        if request.headers.get("sec-fetch-site") in ("cross-site", "same-site") and request.method != "GET":
            raise HttpError(
                HTTPStatus.FORBIDDEN,
                "refused: a page of another site has sent this request: open the page of this server itself",
            )

    def cookie_for(self, request: Request) -> str:
        """What a browser that has shown the token is given; it cannot be read by scripts, or sent from other sites."""
        self._check_token(request)
        assert self._token is not None
        return f"{COOKIE}={_cookie_of(self._token)}; Path={request.root or ''}/; HttpOnly; SameSite=Strict"

    def _check_token(self, request: Request) -> None:
        kind, _, shown = request.headers.get("authorization", "").partition(" ")
        if self._token is None:
            raise HttpError(HTTPStatus.BAD_REQUEST, "this server has no token: open its page without one")
        if kind.lower() == "bearer" and _equal(shown.strip(), self._token):
            return
        if _equal(_cookie(request), _cookie_of(self._token)):
            return
        found = "a wrong one" if shown or _cookie(request) else "none"
        raise HttpError(
            HTTPStatus.UNAUTHORIZED,
            f"wanted a token, found {found}: send it as `Authorization: Bearer TOKEN`",
        )

    def _check_loopback(self, request: Request) -> None:
        if not _is_loopback(request.client):
            where = request.client or "an unknown address"
            raise HttpError(HTTPStatus.FORBIDDEN, f"without a token only this machine is answered, not {where}: {_HOW}")
        through = [name for name in _OF_PROXIES if name in request.headers]
        if through:
            raise HttpError(HTTPStatus.FORBIDDEN, f"this came through a proxy ({through[0]}): {_HOW}")
        called = _host_name(request.headers.get("host", ""))
        if called not in self._hosts:
            names = ", ".join(sorted(self._hosts))
            text = f"without a token the app is called one of {names}, not {called!r:.200}: add to hosts=, or {_HOW}"
            raise HttpError(HTTPStatus.FORBIDDEN, text)


def _cookie_of(token: str) -> str:
    return hashlib.sha256(f"understudy cookie {token}".encode()).hexdigest()


def _cookie(request: Request) -> str:
    try:
        found = SimpleCookie(request.headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _equal(shown: str, wanted: str) -> bool:
    return hmac.compare_digest(shown.encode("utf-8", "replace"), wanted.encode())


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _host_and_port(origin: str) -> str | None:
    """None for what is no address: it is no page of this server either."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _host_name(host: str) -> str:
    """Without the port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""
