"""What holds for all tests: Hypothesis asks for right answers, however long a busy machine takes to find them.

Tests in the folders below start real processes, and wait for them most of their time: the marker `processes`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

_HERE = Path(__file__).parent
_WITH_PROCESSES = (_HERE / "runtime" / "clusters", _HERE / "runtime" / "cli", _HERE / "mistakes")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in _WITH_PROCESSES):
            item.add_marker("processes")
