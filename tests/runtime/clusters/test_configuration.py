"""What is set by name. Flink: SavepointStoreFactoryTest."""

from __future__ import annotations

import logging
import math
import os
from pathlib import Path
from typing import Any

import pytest

from understudy import InvalidSetting, LocalCluster
from understudy.runtime.clusters.configuration import (
    KEYS,
    Configuration,
    InvalidConfiguration,
    SavepointBackend,
    as_text,
)
from understudy.state import CheckpointStorage, UnwritableRoot
from understudy.state.checkpoints.savepoint_store import FilesystemSavepointStore, HeapSavepointStore

BACKEND = "savepoints.state.backend"
DIRECTORY = "savepoints.state.backend.fs.dir"


@pytest.mark.parametrize(
    ("settings", "backend", "directory"),
    [
        ({}, None, None),
        ({BACKEND: "jobmanager"}, SavepointBackend.JOBMANAGER, None),
        ({DIRECTORY: "/savepoints"}, SavepointBackend.FILESYSTEM, "/savepoints"),
        ({BACKEND: "filesystem", DIRECTORY: "s3://bucket/a"}, SavepointBackend.FILESYSTEM, "s3://bucket/a"),
        ({DIRECTORY: "~/savepoints"}, SavepointBackend.FILESYSTEM, os.path.expanduser("~/savepoints")),
        ({DIRECTORY: "relative"}, SavepointBackend.FILESYSTEM, os.path.abspath("relative")),
        ({BACKEND: "jobmanager", DIRECTORY: "/savepoints"}, SavepointBackend.JOBMANAGER, "/savepoints"),
    ],
)
def test_savepoints_are_on_files_if_there_is_a_directory_unless_told_otherwise(
    settings: dict[str, str], backend: SavepointBackend | None, directory: str | None
) -> None:
    assert Configuration.of(settings) == Configuration(backend, directory)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"savepoint.dir": "/x"}, f"unknown configuration key 'savepoint.dir'; known are {', '.join(KEYS)}"),
        (
            {"recovery-mode": "storage"},
            "unknown configuration key 'recovery-mode'; did you mean 'recovery.mode'?",
        ),
        ({BACKEND: "rocksdb"}, f"{BACKEND} must be 'jobmanager' or 'filesystem', found 'rocksdb'"),
        ({BACKEND: "filesystem"}, f"{BACKEND} is filesystem, so {DIRECTORY} must be set"),
        ({DIRECTORY: ""}, f"{DIRECTORY} must be text that is not empty, found ''"),
        ({DIRECTORY: 7}, f"{DIRECTORY} must be text that is not empty, found 7"),
    ],
)
def test_what_cannot_be_is_told_before_anything_starts(settings: dict[str, Any], text: str) -> None:
    for make in (Configuration.of, lambda config: LocalCluster(1, config=config)):
        with pytest.raises(InvalidConfiguration) as error:
            make(settings)
        assert str(error.value) == text


def test_a_directory_that_is_not_used_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        store = Configuration.of({BACKEND: "jobmanager", DIRECTORY: "/savepoints"}).savepoint_store(CheckpointStorage)
    assert isinstance(store, HeapSavepointStore)
    assert f"{DIRECTORY} is set, but not used" in caplog.text


def test_each_backend_has_its_store(tmp_path: Path) -> None:
    assert Configuration.of({}).savepoint_store(CheckpointStorage) is None, "each job has its own"
    heap = Configuration.of({BACKEND: "jobmanager"}).savepoint_store(CheckpointStorage)
    assert isinstance(heap, HeapSavepointStore)
    files = Configuration.of({DIRECTORY: str(tmp_path / "new")}).savepoint_store(CheckpointStorage)
    assert isinstance(files, FilesystemSavepointStore)
    assert (tmp_path / "new").is_dir()


def test_a_directory_that_cannot_be_written_is_told_when_the_cluster_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with (
        pytest.raises(UnwritableRoot, match="savepoint directory"),
        LocalCluster(1, config={DIRECTORY: f"{tmp_path}/file/x"}),
    ):
        pass


@pytest.mark.parametrize(
    "settings",
    [
        {"task_managers": 1.5},
        {"task_managers": "2"},
        {"slots_per_task_manager": True},
        {"cancel_timeout_ms": "5"},
        {"cancel_timeout_ms": None},
        {"slot_timeout_ms": -1},
        {"heartbeat_interval_ms": math.nan},
        {"heartbeat_timeout_ms": math.inf},
        {"host": 5},
    ],
    ids=str,
)
def test_a_setting_of_a_cluster_is_refused_by_name(settings: dict[str, Any]) -> None:
    (name,) = settings
    with pytest.raises(InvalidSetting, match=rf"^{name}: wanted .*, found "):
        LocalCluster(**settings)


@pytest.mark.parametrize("value", [2000, "2000"])
def test_a_number_may_be_a_number(tmp_path: Path, value: Any) -> None:
    given = {
        "recovery.mode": "storage",
        "high-availability.storageDir": str(tmp_path),
        "high-availability.key-file": str(tmp_path / "key"),
        "high-availability.session-timeout-ms": value,
        "metrics.reporter.prom.port": 0,
    }
    assert Configuration.of(given).high_availability.session_timeout_ms == 2000
    assert as_text(given)["metrics.reporter.prom.port"] == "0"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("high-availability.session-timeout-ms", True),
        ("high-availability.session-timeout-ms", 2000.5),
        ("high-availability.cluster-id", 7),
        ("savepoints.state.backend.fs.dir", 1),
    ],
)
def test_another_value_that_is_no_text_is_refused(key: str, value: Any) -> None:
    with pytest.raises(InvalidConfiguration, match=f"{key} must be .*, found {value!r}"):
        Configuration.of({key: value})


def test_a_file_of_settings_is_refused_as_config() -> None:
    with pytest.raises(InvalidConfiguration, match=r"^config: wanted settings, as in config=\{'recovery.mode'.*found"):
        Configuration.of(Path("understudy.yaml"))  # type: ignore[arg-type]
