"""What a reader of an outlet can meet.

ApiError
└── OutletError
    ├── InvalidCursor        no cursor, or that of another outlet
    ├── CursorExpired        what comes after it is not kept any more
    └── CursorForked         the job has gone back to before it: what was read after that counts no more

The last two say in `go_on_from` where the reader can go on.
"""

from __future__ import annotations

from ...messages import OutletRefusal
from ..api.errors import ApiError


class OutletError(ApiError):
    """An outlet cannot be read on from this cursor. `go_on_from`: a cursor from where it can; None: the beginning."""

    def __init__(self, text: str, cursor: str = "", go_on_from: str | None = None) -> None:
        super().__init__(text)
        self.cursor = cursor
        self.go_on_from = go_on_from


class InvalidCursor(OutletError, ValueError):
    """The text is no cursor of this outlet."""


class CursorExpired(OutletError):
    """Records after the cursor are gone, by retention: `go_on_from` is the oldest place there is, behind a gap."""


class CursorForked(OutletError):
    """The job was restored from an older state than what was read. Undo what came after `go_on_from`, and go on from
    there: it is the last place at which both agree, or, if that is not kept any more, the oldest there is.
    """


def refused(operator: str, cursor: str, refusal: OutletRefusal) -> OutletError:
    """The error for the JobManager's refusal."""
    head = f"outlet {operator!r} cannot be read on from cursor {cursor!r}: {refusal.text}"
    go_on_from = refusal.go_on_from or None
    match refusal.kind:
        case "expired":
            return CursorExpired(
                f"{head}. Go on from {go_on_from!r}, or keep more: to_outlet(retention_ms=...)", cursor, go_on_from
            )
        case "forked":
            return CursorForked(f"{head}. Undo that, and go on from {go_on_from!r}", cursor, go_on_from)
        case _:
            return InvalidCursor(f"{head}. Wanted what an OutletBatch of this outlet had as its cursor", cursor)
