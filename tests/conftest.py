"""What holds for all tests: Hypothesis asks for right answers, however long a busy machine takes to find them, and no
test leaves a serializer behind.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from understudy.messages import serializers

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(autouse=True)
def own_serializers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A registry of the test's own, with none in it."""
    monkeypatch.setattr(serializers, "_by_name", {})
    monkeypatch.setattr(serializers, "_by_type", {})
    serializers._serializer_for.cache_clear()
    yield
    serializers._serializer_for.cache_clear()
