"""A misspelt program, or one without `:build`: which file of that folder is meant. Nothing is imported."""

from __future__ import annotations

import re
from difflib import get_close_matches
from pathlib import Path

_FUNCTION = re.compile(r"^(?:def|async def) ([A-Za-z]\w*)\(", re.MULTILINE)
_ENVIRONMENT = re.compile(r"^(\w+)(?::[^=\n]+)? = StreamEnvironment\(", re.MULTILINE)


def program_meant(written: str, attribute: str = "") -> str:
    """The end of a text; empty if no Python file has a name like it. `written`: a path or a module."""
    where = Path(written)
    if not where.suffix and not where.is_dir():
        where = where.with_suffix(".py")
    files = sorted(each.name for each in where.parent.glob("*.py") if not each.name.startswith("_"))
    close = get_close_matches(where.name, files, 1, 0.75)
    if not close:
        return ""
    found = where.with_name(close[0])
    return f"; did you mean {found}:{attribute or _build_of(found)}?"


def _build_of(file: Path) -> str:
    """The function of the file that builds its stream: `build`, or the only one, or an environment; as far as its text
    shows it."""
    try:
        text = file.read_text(errors="replace")
    except OSError:
        return "build"
    names = [*_FUNCTION.findall(text), *_ENVIRONMENT.findall(text)]
    return names[0] if len(names) == 1 else "build"
