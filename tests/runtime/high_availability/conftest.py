"""Candidates of one cluster by shared storage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .clusters import Candidates, config


@pytest.fixture
def candidates(tmp_path: Path) -> Iterator[Candidates]:
    made = Candidates(config(tmp_path))
    yield made
    made.close()


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Candidates]:
    """Each resigns, so nobody waits for the timeout; and no leader is lost on a machine that is slow."""
    made = Candidates(config(tmp_path, timeout_ms=600_000))
    yield made
    made.close()
