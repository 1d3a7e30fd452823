"""Addresses: `tcp://host:port/name` for an actor of a bound system, `local://system/name` for one that is not bound."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ..errors import InvalidAddress

_NAME = re.compile(r"[^\s/]+(/[^\s/]+)*")
_BASE = re.compile(r"tcp://[^\s/]+:[0-9]{1,5}")
_ADDRESS = re.compile(r"(?P<base>(tcp|local)://[^\s/]+)/(?P<name>\S+)")
_REMEMBERED = 4096
"""Addresses whose reading is remembered: every message names one of a few, and a regex takes longer than a look-up."""


class Address(NamedTuple):
    """Which system (`base`), and which actor in it."""

    base: str
    name: str

    def __str__(self) -> str:
        return f"{self.base}/{self.name}"


def check_name(name: str) -> str:
    """`name`, when an actor can be called so: no blanks; slashes may part it, as in `job-1/worst-delay`."""
    if not _NAME.fullmatch(name):
        raise InvalidAddress(f"an actor cannot be called {name!r}: wanted a name without blanks, as in 'job-1/map'")
    return name


@lru_cache(maxsize=_REMEMBERED)
def is_reachable_base(text: str) -> bool:
    """Whether this is the base address of a system that another process may connect to."""
    return _BASE.fullmatch(text) is not None


@lru_cache(maxsize=_REMEMBERED)
def parse_address(text: str, own_base: str) -> Address:
    """The address in `text`; a bare name is an actor of the system at `own_base`."""
    if "://" not in text:
        return Address(own_base, check_name(text))
    found = _ADDRESS.fullmatch(text)
    if found is None:
        raise InvalidAddress(f"{text!r} is no address: wanted tcp://host:port/name, or the name of an actor here")
    return Address(found["base"], check_name(found["name"]))
