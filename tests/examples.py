"""How many examples a property gets: what its author says, times what the run is for.

`make test` tries a part of them, other ones in each run; `make slow` tries them all ten times over
(--hypothesis-profile=deep); what runs once more in small pieces tries few (--hypothesis-profile=few). A property that
has to find a planted mistake says its own number, as hypothesis takes it.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings

USUAL = 50
"""Of a property that says no number, before the profile is applied."""
SHARES = {"few": 0.1, "patient": 0.4, "deep": 10.0}
"""By profile: tests/conftest.py registers them."""


def examples(count: int, **options: Any) -> settings:
    """`settings` with about `count` examples, as the profile of this run has it; `options` are hypothesis' own."""
    share = settings.default.max_examples / USUAL if settings.default is not None else 1.0
    return settings(max_examples=max(1, round(count * share)), deadline=None, **options)
