"""A number with its noun, as texts say it: "1 record", "2 records", "0.5 seconds"."""

from __future__ import annotations


def counted(number: float, noun: str) -> str:
    """`noun`: of one. Its plural ends in "s", or "ies"."""
    shown = f"{number:,}" if isinstance(number, int) else f"{number:g}"
    many = f"{noun[:-1]}ies" if noun.endswith(("ory", "ery")) else f"{noun}s"
    return f"{shown} {noun if number == 1 else many}"
