"""url_shown: a URL as messages, logs and names of operators show it: without its secrets. Text only: whether a
URL is right, and what it leads to, is not at home here.
"""

from __future__ import annotations

import re

_HIDDEN = "***"
_PASSWORD = re.compile(r"(//[^/?#:@\s]*:)(?!\d*(?:[/?#]|$))(?:[^/?#\s]*|[^@\s]*)@")
"""Behind `user:`, unless that is host and port; a slash in it that should have been quoted does not end it."""
_PARAMETER = re.compile(
    r"([?&;][^=&;#\s]*(?:passw|pwd|passphrase|token|secret|credential|signature|auth|key)[^=&;#\s]*=|[?&;]sig=)"
    r"[^&#\s]*",
    re.IGNORECASE,
)


def url_shown(url: str) -> str:
    """`url` with *** for the password of its user, and for the values of parameters that are named like a secret
    (password, token, api_key, ...). Never raises: other text is treated in the same way.
    """
    return _PARAMETER.sub(rf"\g<1>{_HIDDEN}", _PASSWORD.sub(rf"\g<1>{_HIDDEN}@", url))


LONGEST_PATH = 500


def path_shown(path: str) -> str:
    """The same of a path, which may be anything that a user has given: of a long one, its two ends."""
    shown = url_shown(path)
    if len(shown) <= LONGEST_PATH:
        return shown
    end = LONGEST_PATH // 2
    return f"{shown[:end]}...({len(shown) - 2 * end} characters)...{shown[-end:]}"
