"""The parts of a simulated disk: files and folders, and the changes of names that a power cut may still undo."""

from __future__ import annotations

from random import Random


class File:
    """Content, of which the first `synced_bytes` last; `before` is what lasts instead if the file was emptied since."""

    __slots__ = ("before", "content", "is_linked", "is_lost", "modified", "synced_bytes")

    def __init__(self, modified: float) -> None:
        self.content = bytearray()
        self.synced_bytes = 0
        self.before: bytes | None = None
        self.is_linked = True
        self.is_lost = False
        self.modified = modified

    def empty(self) -> None:
        if self.before is None:
            self.before = bytes(self.content[: self.synced_bytes])
        self.content = bytearray()
        self.synced_bytes = 0

    def sync(self) -> None:
        self.before = None
        self.synced_bytes = len(self.content)

    def after_crash(self, random: Random) -> File:
        """Another file, since whoever has this one open is dead."""
        left = File(self.modified)
        if self.before is not None and random.random() < 0.5:
            left.content += self.before
        else:
            left.content += self.content[: self.synced_bytes + part(random, len(self.content) - self.synced_bytes)]
        left.sync()
        return left


class Folder:
    """Names as they are seen, names that last, and the changes that lie between, oldest first."""

    __slots__ = ("changes", "entries", "lasting")

    def __init__(self) -> None:
        self.entries: dict[str, File | Folder] = {}
        self.lasting: dict[str, File | Folder] = {}
        self.changes: list[Change] = []


class Change:
    """Names set (or taken away, by None) in one folder or two, all in one step."""

    __slots__ = ("is_done", "sets")

    def __init__(self, *sets: tuple[Folder, str, File | Folder | None]) -> None:
        self.sets = sets
        self.is_done = False


def part(random: Random, whole: int) -> int:
    """How many of this number survive: as likely none as all, or any number."""
    match random.randrange(3) if whole else 0:
        case 0:
            return 0
        case 1:
            return whole
        case _:
            return random.randint(0, whole)
