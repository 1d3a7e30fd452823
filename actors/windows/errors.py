"""What is refused of windows.

InvalidWindow       a size, an offset, a gap, a trigger, or a combination of them that makes no sense
"""

from __future__ import annotations

from ..errors import ActorError


class InvalidWindow(ActorError, ValueError):
    """What describes a window makes no sense; the text says what was found, what was wanted, and what to do."""
