"""Configuration: what is set by name, as text, the way Flink's configuration file and `-D key=value` have it.

    savepoints.state.backend          jobmanager | filesystem
    savepoints.state.backend.fs.dir   a path or fsspec URL

Those of `NUMBERS` may be given as numbers, too, as from Python.

Without the first, the second means filesystem. Without both, each job's savepoints are in files below its own
checkpoint_dir, and in memory if it has none.

Who takes over when the JobManager dies, and how: `runtime/high_availability/settings.py`. How jobs are restarted whose
programs do not say: `restart_settings`.

Flink: ConfigConstants.SAVEPOINT_STATE_BACKEND, SavepointStoreFactory.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ...messages import RestartStrategyConfig
from ...messages.known_names import meant
from ...state import CheckpointStorage
from ...state.checkpoints.savepoint_store import FilesystemSavepointStore, HeapSavepointStore, SavepointStore
from ...state.file_locations import absolute
from ..high_availability.settings import KEYS as HIGH_AVAILABILITY_KEYS
from ..high_availability.settings import SESSION_TIMEOUT, HighAvailabilitySettings
from .metric_reporters import OTEL_INTERVAL, PROMETHEUS_PORT, REPORTER_KEYS, reporter_problem
from .restart_settings import RESTART_KEYS, RESTART_OPTIONS, restart_strategy_of

log = logging.getLogger(__name__)

SAVEPOINT_BACKEND = "savepoints.state.backend"
SAVEPOINT_DIRECTORY = "savepoints.state.backend.fs.dir"
KEYS = (SAVEPOINT_BACKEND, SAVEPOINT_DIRECTORY, *RESTART_KEYS, *HIGH_AVAILABILITY_KEYS, *REPORTER_KEYS)
NUMBERS = (SESSION_TIMEOUT, PROMETHEUS_PORT, OTEL_INTERVAL, *RESTART_OPTIONS)
"""Keys whose values may be given as numbers."""


class InvalidConfiguration(ValueError):
    """A key or value that cannot be; says what was found and what was wanted."""


class SavepointBackend(Enum):
    """Where the pointers of savepoints are kept."""

    JOBMANAGER = "jobmanager"
    """In memory: lost with the JobManager's process."""
    FILESYSTEM = "filesystem"


@dataclass(frozen=True, slots=True)
class Configuration:
    """A cluster's, checked. `savepoint_directory` is absolute; only the filesystem backend uses it.

    `savepoint_backend` None: each job's own, as SavepointStores says.
    """

    savepoint_backend: SavepointBackend | None = None
    savepoint_directory: str | None = None
    high_availability: HighAvailabilitySettings = field(default_factory=HighAvailabilitySettings)
    restart: RestartStrategyConfig | None = None
    """Of jobs whose programs name none; None: as the environment says."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Configuration:
        """Raises InvalidConfiguration."""
        if not isinstance(given, Mapping):
            raise InvalidConfiguration(
                f"config: wanted settings, as in config={{'recovery.mode': 'zookeeper'}}, found {given!r:.80}"
            )
        settings = as_text(given)
        for key, value in settings.items():
            if key not in KEYS:
                hint = meant(key, KEYS) or f"; known are {', '.join(KEYS)}"
                raise InvalidConfiguration(f"unknown configuration key {key!r}{hint}")
            if not isinstance(value, str) or not value:
                number = "a number, or text of one" if key in RESTART_OPTIONS else "a whole number, or text of one"
                wanted = number if key in NUMBERS else "text that is not empty"
                raise InvalidConfiguration(f"{key} must be {wanted}, found {value!r}")
        if (problem := reporter_problem(settings)) is not None:
            raise InvalidConfiguration(problem)
        directory = settings.get(SAVEPOINT_DIRECTORY)
        backend = _backend(settings.get(SAVEPOINT_BACKEND), directory)
        if backend is SavepointBackend.FILESYSTEM and directory is None:
            raise InvalidConfiguration(f"{SAVEPOINT_BACKEND} is filesystem, so {SAVEPOINT_DIRECTORY} must be set")
        try:
            high_availability = HighAvailabilitySettings.of(settings)
            restart = restart_strategy_of(settings)
        except ValueError as error:
            raise InvalidConfiguration(str(error)) from error
        return cls(backend, None if directory is None else absolute(directory), high_availability, restart)

    def savepoint_store(
        self, open_storage: Callable[[str], CheckpointStorage], new_suffix: Callable[[], str] | None = None
    ) -> SavepointStore | None:
        """The store of all jobs, or None. Raises UnwritableRoot when its directory cannot be made or written,
        UnreachableRoot when it has to be there already.
        """
        if self.savepoint_backend is None:
            return None
        named: dict[str, Any] = {} if new_suffix is None else {"new_suffix": new_suffix}
        if self.savepoint_backend is SavepointBackend.JOBMANAGER or self.savepoint_directory is None:
            if self.savepoint_directory is not None:
                text = "%s is set, but not used, as %s is jobmanager: set that to filesystem, or leave the folder out"
                log.warning(text, SAVEPOINT_DIRECTORY, SAVEPOINT_BACKEND)
            return HeapSavepointStore(**named)
        store = FilesystemSavepointStore(open_storage(self.savepoint_directory), **named)
        store.check()
        return store


def as_text(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the numbers of keys that take them as text; all else as it is."""
    return {key: str(value) if _is_number(key, value) else value for key, value in settings.items()}


def _is_number(key: str, value: Any) -> bool:
    """Whether the value is a number, and the key takes one like it."""
    kinds = int | float if key in RESTART_OPTIONS else int
    return key in NUMBERS and isinstance(value, kinds) and not isinstance(value, bool)


def _backend(name: str | None, directory: str | None) -> SavepointBackend | None:
    if name is None:
        return None if directory is None else SavepointBackend.FILESYSTEM
    try:
        return SavepointBackend(name)
    except ValueError:
        known = " or ".join(repr(each.value) for each in SavepointBackend)
        raise InvalidConfiguration(f"{SAVEPOINT_BACKEND} must be {known}, found {name!r}") from None
