"""A number with its noun, as texts say it: "1 record", "2 records", "0.5 seconds"."""

from __future__ import annotations

import numbers


def counted(number: float | numbers.Integral, noun: str) -> str:
    """`noun`: of one."""
    shown = f"{int(number):,}" if isinstance(number, numbers.Integral) else f"{number:g}"
    return f"{shown} {noun if number == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """It ends in "s"; in "es" behind an "s"; or in "ies" where a consonant stands before a "y"."""
    if noun.endswith("s"):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2:-1] not in "aeiou" else f"{noun}s"
