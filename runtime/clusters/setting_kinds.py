"""Kinds of settings: what a value may be, as a YAML file has it and as text of the environment or of a flag.

Each kind reads a value and returns it, or raises WrongValue with what it wanted. Which settings there are stands in
`HostSettings` and `restart_settings`, where a value comes from in `settings_sources`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class WrongValue(ValueError):
    """The text says what was wanted; and what was found, if it `says_what_was_found`."""

    def __init__(self, text: str, *, says_what_was_found: bool = False) -> None:
        super().__init__(text)
        self.says_what_was_found = says_what_was_found


class Kind(Protocol):
    """Reads one setting's value."""

    @property
    def wanted(self) -> str:
        """In words, as in "an integer from 0 to 65535"."""
        ...

    def read(self, value: Any) -> Any:
        """From what YAML made of it. Raises WrongValue."""
        ...

    def parse(self, text: str) -> Any:
        """From text. Raises WrongValue."""
        ...


@dataclass(frozen=True, slots=True)
class Text:
    """Any text in one line; empty only where that says something."""

    may_be_empty: bool = False
    wanted: str = "text in one line"

    def read(self, value: Any) -> str:
        if isinstance(value, int | float) and not isinstance(value, bool):
            value = str(value)  # YAML reads a host called 10 as a number
        is_text = isinstance(value, str) and (value.strip() or self.may_be_empty)
        if not is_text or any(character in value for character in "\n\r\0"):
            raise WrongValue(self.wanted)
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise WrongValue(f"{self.wanted}, that UTF-8 can write")
        return str(value)

    parse = read


@dataclass(frozen=True, slots=True)
class Folder(Text):
    """A path, with `~`. In a file a relative one is relative to the file."""

    wanted: str = "a path"


@dataclass(frozen=True, slots=True)
class FolderOrUrl(Text):
    """The same, or a URL that fsspec knows."""

    wanted: str = "a path or a URL such as s3://bucket/folder"


@dataclass(frozen=True, slots=True)
class Whole:
    """An integer between two bounds, both included."""

    least: int
    most: int = 2**53

    @property
    def wanted(self) -> str:
        return f"an integer from {self.least} to {self.most}" if self.most < 2**53 else f"an integer from {self.least}"

    def read(self, value: Any) -> int:
        if type(value) is not int or not self.least <= value <= self.most:
            raise WrongValue(self.wanted)
        return value

    def parse(self, text: str) -> int:
        try:
            return self.read(int(text.strip()))
        except ValueError:
            raise WrongValue(self.wanted) from None


@dataclass(frozen=True, slots=True)
class Number:
    """A number between two bounds. Both are allowed, unless `is_above`: then it must be greater than `least`."""

    least: float
    most: float
    is_above: bool = False

    @property
    def wanted(self) -> str:
        return f"a number {'above' if self.is_above else 'from'} {self.least:g} {'up ' * self.is_above}to {self.most:g}"

    def read(self, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.least <= value <= self.most:
            raise WrongValue(self.wanted)
        if self.is_above and value == self.least:
            raise WrongValue(self.wanted)
        return float(value)

    def parse(self, text: str) -> float:
        try:
            return self.read(float(text.strip()))
        except ValueError:
            raise WrongValue(self.wanted) from None


@dataclass(frozen=True, slots=True)
class OneOf:
    """One of a few words; an empty one stands for nothing."""

    words: tuple[str, ...]

    @property
    def wanted(self) -> str:
        words = [*filter(None, self.words), *["nothing"] * ("" in self.words)]
        return f"{', '.join(words[:-1])} or {words[-1]}"

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or value.lower() not in map(str.lower, self.words):
            raise WrongValue(self.wanted)
        return next(word for word in self.words if word.lower() == value.lower())

    parse = read


@dataclass(frozen=True, slots=True)
class Names:
    """A list of hosts; as text, with commas or blanks between them. `once`: why none may be there twice."""

    wanted: str = "a list of hosts, as in [node-1, node-2]"
    once: str = ""

    def read(self, value: Any) -> tuple[str, ...]:
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise WrongValue(self.wanted)
        names = tuple(self._name(each) for each in value)
        seen = set[str]()
        for name in names if self.once else ():
            if name.lower() in seen:
                raise WrongValue(f"each host once, found {name!r} twice: {self.once}", says_what_was_found=True)
            seen.add(name.lower())
        return names

    def parse(self, text: str) -> tuple[str, ...]:
        return self.read(text.replace(",", " ").split())

    def _name(self, value: Any) -> str:
        name = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
        if not name or name.startswith("-") or len(name.split()) != 1:
            raise WrongValue(f"{self.wanted}; {value!r:.60} is no name of a host")
        return name
