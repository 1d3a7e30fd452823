"""What holds for all tests: Hypothesis asks for right answers, however long a busy machine takes to find them, and no
test leaves a serializer behind.

Tests in the folders below start real processes, and wait for them most of their time: the marker `processes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from understudy.messages import serializers

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

_HERE = Path(__file__).parent
_WITH_PROCESSES = (_HERE / "runtime" / "clusters", _HERE / "runtime" / "cli", _HERE / "mistakes")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in _WITH_PROCESSES):
            item.add_marker("processes")


@pytest.fixture(autouse=True)
def own_serializers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A registry of the test's own, with none in it."""
    monkeypatch.setattr(serializers, "_by_name", {})
    monkeypatch.setattr(serializers, "_by_type", {})
    serializers._serializer_for.cache_clear()
    yield
    serializers._serializer_for.cache_clear()
