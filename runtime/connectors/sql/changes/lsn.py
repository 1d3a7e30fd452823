"""Positions in PostgreSQL's log (LSN): a number in state and arithmetic, `16/B374D848` in SQL and in messages."""

from __future__ import annotations


def lsn_of(text: str) -> int:
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


def lsn_text(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
