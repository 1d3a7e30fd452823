"""Plain technical English: README, docs, docstrings, comments and texts of the library hold no banned expression.

Names in code and in backticks are not read: an actor may have a method `tell`. Nor is quoted text in docs/decisions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from .parsed import parsed

ROOT = Path(__file__).resolve().parent.parent
FLOORS = ("messages", "state", "actors", "runtime")

_WORD = r"(?!(?:what|that|which|and|or|if|as|when|where|with|than|not)\b)[\w'-]+"
_IS = "is|are|was|were"
_GAP = r"(?:[ \t]+\n?[ \t]*|\n[ \t]*)"
"""Between words of one paragraph."""
BANNED = {
    r"\btold\b": "say who gets which message: 'gets', 'is notified', 'reports'; or 'distinguished'",
    r"\b(?:tell|tells|telling)\s+of\b": "say 'report', 'describe' or 'announce'",
    r"\bshall\b": "say 'must', 'will' or 'is to'",
    r"\bnobody's\b": "name the owner, or say 'no one owns it'",
    r"\bso\s+many\b": "say 'at most N', 'this many', 'the number of', or name the unit",
    r"\bfor\s+people\b": "say 'readable' or 'to show to users'",
    r"\b(?:is|are|was|were|be|been)\s+had\b": "use an active verb: 'get', 'reach', 'restore'",
    r"\b(?:a\s+wish|wishes)\b": "say 'request'",
    r"\bfor\s+good\b": "say 'permanently'",
    r"\banew\b": "say 'again' or 'from the beginning'",
    r"\b(?:in\s+silence|in\s+vain|befalls?|torments?|is\s+born|are\s+born)\b": "say what happens, without an image",
    r"\b(?:hear|hears)\s+(?:of|nothing|it)\b": "say 'is notified' or 'receives'",
    r"\b(?:thereby|thereof|therein|whereof|whence|hence|thus|upon|lest|ere)\b": "use a common word, or a new sentence",
    r"\b(?:towers?|lives\s+on)\b": "name the component and what it does",
    r"\b(?:the|our|whole)\s+house\b": "say 'the project' or 'the package'",
    rf"(?:\A|(?<=[.!?]\s)|(?<=\n\n))\W*What{_GAP}(?:[\w'-]+{_GAP}){{1,6}}?(?:{_IS})\b(?![^.]*\?)": (
        "begin with the subject: 'Returned rows are ...' in place of 'What is returned is ...'"
    ),
    rf"\bwhat{_GAP}(?:{_IS}|has|have|had|can|cannot|could){_GAP}(?:{_WORD}{_GAP}){{0,6}}?(?:{_IS})\b": (
        "name the thing: 'the rows found are ...' in place of 'what was found is ...'"
    ),
}
ALLOWED: dict[str, tuple[str, ...]] = {}
"""File -> lines, as they stand there, that may keep a banned expression. Empty is best."""


_ANY = re.compile(
    r"\b(?:" + "|".join(pattern.removeprefix(r"\b") for pattern in BANNED if pattern.startswith(r"\b")) + ")"
)
"""Whether a text in small letters has one of them: asked first, as most texts have none."""


class Found(NamedTuple):
    place: str
    text: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text!r}: {self.remedy}"


def banned_in(text: str, path: str, first_line: int = 1) -> list[Found]:
    if "What" not in text and not _ANY.search(text.lower()):
        return []
    return [
        Found(f"{path}:{first_line + text.count(chr(10), 0, match.end())}", " ".join(match.group().split()), remedy)
        for pattern, remedy in BANNED.items()
        for match in re.finditer(pattern, text, re.IGNORECASE if "What" not in pattern else 0)
    ]


def banned_in_page(page: str, path: str) -> list[Found]:
    """Markdown: without blocks of code, what stands in backticks, and in a decision without quotations."""
    unread = r"```.*?```|`[^`\n]*`" + (r"|\"[^\"]*\"|\*[^*\n]+\*" if "decisions" in path else "")
    blank = re.sub(unread, lambda each: re.sub(r"[^\n]", "_", each.group()), page, flags=re.DOTALL)
    return banned_in(re.sub(r"(?m)^(\W*)\|", r"\1 ", blank), path)


def banned_in_code(code: str, path: str) -> list[Found]:
    """Docstrings, other texts and comments; no names, no expressions within f-strings."""
    found = [each for line, text in (*_texts(code), *_comments(code)) for each in banned_in(text, path, line)]
    return sorted(found, key=lambda each: int(each.place.rpartition(":")[2]))


def _texts(code: str) -> Iterator[tuple[int, str]]:
    for line, text in parsed(code).texts:
        yield line, re.sub(r"`[^`\n]*`", "_", text)


_STRING_OR_COMMENT = re.compile(
    r"""(?s)\"{3}(?:\\.|.)*?\"{3}|'{3}(?:\\.|.)*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(#[^\n]*)"""
)


def _comments(code: str) -> Iterator[tuple[int, str]]:
    """Comment lines that follow each other are one text. In code that is valid, a `#` is a comment or in a string."""
    begun, lines, line, read = 0, [""], 1, 0
    for found in _STRING_OR_COMMENT.finditer(code):
        if found[1] is None:
            continue
        line, read = line + code.count("\n", read, found.start()), found.start()
        text = re.sub(r"`[^`\n]*`", "_", found[1].lstrip("# "))
        if line == begun + len(lines):
            lines.append(text)
        else:
            yield begun, "\n".join(lines)
            begun, lines = line, [text]
    yield begun, "\n".join(lines)


PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = [path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py"))]
MODULES += sorted((ROOT / "examples").glob("*.py"))


def _unallowed(found: list[Found], path: str, text: str) -> list[str]:
    lines = ["", *text.splitlines()]
    allowed = ALLOWED.get(path, ())
    return [str(each) for each in found if lines[int(each.place.rpartition(":")[2])].strip() not in allowed]


def test_the_pages_are_in_plain_english() -> None:
    problems = []
    for path in PAGES:
        name, text = str(path.relative_to(ROOT)), path.read_text()
        problems += _unallowed(banned_in_page(text, name), name, text)
    assert not problems, "\n" + "\n".join(problems)


def test_docstrings_comments_and_texts_of_the_library_are_in_plain_english() -> None:
    problems = []
    for path in MODULES:
        name, text = str(path.relative_to(ROOT)), path.read_text()
        problems += _unallowed(banned_in_code(text, name), name, text)
    assert not problems, "\n" + "\n".join(problems)


PLANTED = '''"""The task is told."""
told = 1

def tell(told):
    # a wish
    # of somebody
    return f"so
    many {told}"

class C:
    """One line.

    It says `told` in code. What it has found is lost. It may be had
    for good; and nobody's state, what was left over was.
    """
'''.replace("so\n    many", "so many")


def test_planted_code_is_found_with_its_line_and_names_are_not() -> None:
    found = [(each.place, each.text) for each in banned_in_code(PLANTED, "x.py")]
    assert found == [
        ("x.py:1", "told"),
        ("x.py:5", "a wish"),
        ("x.py:7", "so many"),
        ("x.py:12", "be had"),
        ("x.py:12", "What it has found is"),
        ("x.py:13", "nobody's"),
        ("x.py:13", "for good"),
        ("x.py:13", "what was left over was"),
    ]


@pytest.mark.parametrize("expression", ["told", "tells of", "shall", "nobody's", "so\nmany", "for people", "is had"])
def test_planted_text_on_a_page_is_found_and_code_is_not(expression: str) -> None:
    page = f"# Title\n\n```sh\n{expression}\n```\n\nA `told` word, {expression} here.\n"
    assert [each.text for each in banned_in_page(page, "docs/x.md")] == [" ".join(expression.split())]
    assert expression.split()[-1] in page.splitlines()[int(banned_in_page(page, "x.md")[0].place.split(":")[1]) - 1]


@pytest.mark.parametrize("pattern", BANNED)
def test_a_text_with_any_of_them_is_looked_at(pattern: str) -> None:
    assert pattern.startswith(r"\b") or "What" in pattern
    assert "|" not in re.sub(r"\((?:[^()]|\([^()]*\))*\)", "", pattern), "parts of its own would each want a \\b"


def test_quoted_text_of_a_decision_is_not_read() -> None:
    page = 'The error says "the user is told" and no more.\n'
    assert banned_in_page(page, "docs/decisions/0001-x.md") == []
    assert len(banned_in_page(page, "docs/x.md")) == 1


def test_a_question_may_begin_with_what() -> None:
    assert banned_in("What state is it in?", "x") == []


def test_every_allowed_line_is_still_there_and_needed() -> None:
    for name, lines in ALLOWED.items():
        text = (ROOT / name).read_text()
        found = banned_in_code(text, name) if name.endswith(".py") else banned_in_page(text, name)
        shown = {text.splitlines()[int(each.place.rpartition(":")[2]) - 1].strip() for each in found}
        assert set(lines) <= shown, name
