"""Binding: at which address a page may be served without a token."""

from __future__ import annotations

import ipaddress

from ..api.errors import InvalidSetting


def check_binding(host: str, token: str | None) -> None:
    """Raises InvalidSetting for an address that others can reach, without a token."""
    if token is not None and len(token) < 8:
        raise InvalidSetting(f"a token of {len(token)} characters can be guessed: wanted 8 at least")
    if token is None and not is_loopback(host):
        raise InvalidSetting(
            f"the page at {host} can be reached from other machines, and without a token by everybody: "
            "give web_token (--token), or leave the host at 127.0.0.1"
        )


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
