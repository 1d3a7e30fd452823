"""HostSettings: what a cluster of processes that stand alone is set to. The table of all settings, and their values.

A field is a setting; its key in the file stands beside it. Where values come from, and in which order, stands in
`settings_sources`; `load_settings` there makes an instance.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ...actors.job_manager.job_manager_settings import (
    ADOPTION_TIMEOUT_MS,
    CANCEL_TIMEOUT_MS,
    HEARTBEAT_INTERVAL_MS,
    HEARTBEAT_TIMEOUT_MS,
    SLOT_TIMEOUT_MS,
    JobManagerSettings,
)
from ...messages import RestartStrategyConfig
from ...state.checkpoints.job_runs import LEASE_MS
from ...state.file_locations import is_url
from ..clusters.configuration import SAVEPOINT_BACKEND, SAVEPOINT_DIRECTORY, Configuration
from ..clusters.restart_settings import RESTART_KEYS, RESTART_OPTIONS, TYPE, TYPES
from ..clusters.setting_kinds import Folder, FolderOrUrl, Kind, Names, OneOf, Text, Whole
from ..high_availability.settings import (
    ACLS,
    AUTH_FILE,
    AUTH_SCHEME,
    AUTH_SCHEMES,
    CA_FILE,
    CERT_FILE,
    CLIENT_ACL,
    CLUSTER_ID,
    DEFAULT_TIMEOUT_MS,
    KEY_FILE,
    PATH_ROOT,
    QUORUM,
    RECOVERY_MODE,
    SESSION_TIMEOUT,
    STORAGE_DIR,
    TLS_KEY_FILE,
    TLS_PASSWORD_FILE,
    HighAvailabilitySettings,
    RecoveryMode,
)
from .errors import InvalidSettings

HOME = "~/.understudy"
DEFAULT_PORT = 7420
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
RECOVERY_MODES = tuple(mode.value for mode in RecoveryMode)
_YEAR_MS = 365 * 86_400_000


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table."""

    key: str
    kind: Kind
    default: Any
    text: str
    """What it means, in a line."""

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return "UNDERSTUDY_" + self.key.upper().replace(".", "_").replace("-", "_")


def _setting(key: str, kind: Kind, default: Any, text: str) -> Any:
    return field(default=default, metadata={"setting": Setting(key, kind, default, text)})


def _restart_setting(name: str) -> Any:
    option = RESTART_OPTIONS[f"restart-strategy.{name}"]
    return _setting(option.key, option.kind, option.default, option.text)


@dataclass(frozen=True, slots=True)
class HostSettings:
    """All settings, checked. Paths are absolute, or URLs."""

    jobmanager_host: str = _setting(
        "jobmanager.host", Text(), "127.0.0.1", "Name or address by which all hosts reach the JobManager."
    )
    jobmanager_port: int = _setting("jobmanager.port", Whole(1, 65535), DEFAULT_PORT, "Its port.")
    jobmanager_bind_host: str = _setting(
        "jobmanager.bind-host",
        Text(may_be_empty=True),
        "",
        "Interface it listens on; empty: jobmanager.host, and 0.0.0.0 is every one.",
    )
    taskmanager_host: str = _setting(
        "taskmanager.host",
        Text(may_be_empty=True),
        "",
        "Name or address by which others reach this host; empty: the one that routes to the JobManager.",
    )
    taskmanager_slots: int = _setting(
        "taskmanager.slots", Whole(1, 10_000), os.cpu_count() or 1, "Slots that each TaskManager process offers."
    )
    storage_dir: str = _setting(
        "storage.dir",
        FolderOrUrl(),
        f"{HOME}/storage",
        "Folder that all hosts share: code of jobs, checkpoints, savepoints.",
    )
    key_file: str = _setting(
        "security.key-file", Folder(), f"{HOME}/key", "The cluster's key, on each host; mode 0600."
    )
    encryption_keys: str = _setting(
        "encryption.keys",
        Folder(may_be_empty=True),
        "",
        "A file with keys, mode 0600, on each host: state is encrypted before it is written; empty: it is not.",
    )
    parallelism: int = _setting(
        "parallelism.default", Whole(1, 32_768), 1, "Of programs that are submitted without one of their own."
    )
    masters: tuple[str, ...] = _setting(
        "cluster.masters",
        Names(once="a host has one JobManager"),
        (),
        "Hosts of JobManagers; empty: the file masters beside this one, or this host.",
    )
    workers: tuple[str, ...] = _setting(
        "cluster.workers",
        Names(),
        (),
        "Hosts of TaskManagers (named twice: two of them); empty: the file workers beside this one, or this host.",
    )
    ssh: str = _setting(
        "cluster.ssh", Text(), "ssh -o BatchMode=yes -o ConnectTimeout=10", "How cluster start reaches other hosts."
    )
    command: str = _setting("cluster.command", Text(), "understudy", "The command understudy on other hosts.")
    recovery_mode: str = _setting(
        RECOVERY_MODE,
        OneOf(RECOVERY_MODES),
        "standalone",
        "Who takes over from a JobManager; standalone: nobody.",
    )
    cluster_id: str = _setting(CLUSTER_ID, Text(), "default", "JobManagers of one cluster-id compete to lead.")
    session_timeout_ms: int = _setting(
        SESSION_TIMEOUT, Whole(500, 600_000), DEFAULT_TIMEOUT_MS, "How long a leader may be silent."
    )
    tasks_alone_ms: int = _setting(
        "recovery.tasks-alone-ms",
        Whole(0, _YEAR_MS),
        30_000,
        "How long beyond the session timeout tasks run on while nobody leads; 0: they end with their JobManager.",
    )
    zookeeper_quorum: str = _setting(
        QUORUM, Text(may_be_empty=True), "", "host:port of each ZooKeeper server, with commas between."
    )
    zookeeper_root: str = _setting(PATH_ROOT, Text(), "/understudy", "Our nodes' path there.")
    zookeeper_auth: str = _setting(
        AUTH_FILE, Folder(may_be_empty=True), "", "A file with user:password, mode 0600: whose nodes they are."
    )
    zookeeper_scheme: str = _setting(AUTH_SCHEME, OneOf(AUTH_SCHEMES), "digest", "How that user is proven.")
    zookeeper_acl: str = _setting(
        CLIENT_ACL, OneOf(("", *ACLS)), "", "Who may use our nodes there; empty: creator with an auth-file, else open."
    )
    zookeeper_ca: str = _setting(
        CA_FILE, Folder(may_be_empty=True), "", "Certificates to trust: the connection to ZooKeeper is encrypted."
    )
    zookeeper_cert: str = _setting(CERT_FILE, Folder(may_be_empty=True), "", "Our certificate for ZooKeeper.")
    zookeeper_key: str = _setting(TLS_KEY_FILE, Folder(may_be_empty=True), "", "Its key.")
    zookeeper_key_password: str = _setting(
        TLS_PASSWORD_FILE,
        Folder(may_be_empty=True),
        "",
        "A file with that key's password, mode 0600; empty: it has none.",
    )
    heartbeat_interval_ms: int = _setting(
        "heartbeat.interval-ms",
        Whole(10, _YEAR_MS),
        HEARTBEAT_INTERVAL_MS,
        "How often JobManager and TaskManagers beat.",
    )
    heartbeat_timeout_ms: int = _setting(
        "heartbeat.timeout-ms",
        Whole(20, _YEAR_MS),
        HEARTBEAT_TIMEOUT_MS,
        "After this long without a beat the other side is lost.",
    )
    slot_timeout_ms: int = _setting(
        "jobs.slot-timeout-ms", Whole(1, _YEAR_MS), SLOT_TIMEOUT_MS, "How long a job waits for slots before it fails."
    )
    cancel_timeout_ms: int = _setting(
        "jobs.cancel-timeout-ms", Whole(1, _YEAR_MS), CANCEL_TIMEOUT_MS, "How long a task may take to stop."
    )
    restart_type: str = _setting(
        TYPE,
        OneOf(("", *TYPES)),
        "",
        "How jobs are restarted whose programs do not say; empty: with growing delay, if they have checkpoints.",
    )
    fixed_delay_attempts: int = _restart_setting("fixed-delay.attempts")
    fixed_delay_ms: int = _restart_setting("fixed-delay.delay-ms")
    failure_rate_failures: int = _restart_setting("failure-rate.max-failures-per-interval")
    failure_rate_interval_ms: int = _restart_setting("failure-rate.failure-rate-interval-ms")
    failure_rate_delay_ms: int = _restart_setting("failure-rate.delay-ms")
    backoff_initial_ms: int = _restart_setting("exponential-delay.initial-backoff-ms")
    backoff_max_ms: int = _restart_setting("exponential-delay.max-backoff-ms")
    backoff_multiplier: float = _restart_setting("exponential-delay.backoff-multiplier")
    backoff_reset_ms: int = _restart_setting("exponential-delay.reset-backoff-threshold-ms")
    backoff_jitter: float = _restart_setting("exponential-delay.jitter-factor")
    backoff_attempts: int = _restart_setting("exponential-delay.attempts-before-reset-backoff")
    name_lease_ms: int = _setting(
        "jobs.name-lease-ms", Whole(1, _YEAR_MS), LEASE_MS, "How long a job keeps its name after it was last renewed."
    )
    adoption_timeout_ms: int = _setting(
        "jobs.adoption-timeout-ms",
        Whole(1, _YEAR_MS),
        ADOPTION_TIMEOUT_MS,
        "How long a new leader waits for TaskManagers that still run a job, before it starts the job again.",
    )
    savepoint_backend: str = _setting(
        SAVEPOINT_BACKEND,
        OneOf(("", "filesystem", "jobmanager")),
        "",
        "Where pointers of savepoints are kept; empty: below each job's checkpoints.",
    )
    savepoint_dir: str = _setting(
        SAVEPOINT_DIRECTORY, FolderOrUrl(may_be_empty=True), "", "The folder of filesystem; empty: none."
    )
    log_dir: str = _setting("log.dir", Folder(), f"{HOME}/log", "Folder of the logs of this host's processes.")
    log_level: str = _setting("log.level", OneOf(LEVELS), "INFO", "Least level that is logged.")
    log_max_bytes: int = _setting(
        "log.max-bytes", Whole(10_000), 50_000_000, "Size at which a log file is put aside, and a new one begun."
    )
    log_files: int = _setting("log.files", Whole(1, 1_000), 5, "Log files that are kept of each process.")
    run_dir: str = _setting("run.dir", Folder(), f"{HOME}/run", "Folder of this host's pid files.")

    def __post_init__(self) -> None:
        """Each value fits its kind; what must hold between them is checked here. Raises InvalidSettings."""
        if self.heartbeat_timeout_ms <= self.heartbeat_interval_ms:
            raise InvalidSettings(
                f"heartbeat.timeout-ms ({self.heartbeat_timeout_ms}) must be longer than heartbeat.interval-ms "
                f"({self.heartbeat_interval_ms})"
            )
        try:
            Configuration.of(self.configuration)
            self.high_availability()
        except ValueError as error:
            raise InvalidSettings(str(error)) from error

    @property
    def jobmanager_address(self) -> str:
        """tcp://host:port of the JobManager, where recovery.mode is standalone."""
        host = f"[{self.jobmanager_host}]" if ":" in self.jobmanager_host else self.jobmanager_host
        return f"tcp://{host}:{self.jobmanager_port}"

    @property
    def has_successors(self) -> bool:
        """Whether another JobManager takes over from one that dies."""
        return self.recovery_mode != RecoveryMode.STANDALONE.value

    @property
    def checkpoint_dir(self) -> str:
        """Of programs that name none."""
        return f"{self.storage_dir.rstrip('/')}/checkpoints"

    @property
    def configuration(self) -> Mapping[str, str]:
        """The part that all kinds of clusters have. Where no restart strategy is chosen, settings of one that are
        not the usual ones are in it, to be refused.
        """
        pairs = {SAVEPOINT_BACKEND: self.savepoint_backend, SAVEPOINT_DIRECTORY: self.savepoint_dir}
        for key in RESTART_KEYS:
            value = getattr(self, FIELD_OF[key])
            if self.restart_type or value != SETTINGS[key].default:
                pairs[key] = str(value)
        return {key: value for key, value in pairs.items() if value}

    @property
    def restart(self) -> RestartStrategyConfig | None:
        """Of jobs whose programs name none; None: as their environments say."""
        return Configuration.of(self.configuration).restart

    def high_availability(self) -> HighAvailabilitySettings:
        """Raises ValueError where what is needed for the recovery.mode is not set."""
        if not self.has_successors:
            return HighAvailabilitySettings()
        pairs = {
            RECOVERY_MODE: self.recovery_mode,
            STORAGE_DIR: f"{self.storage_dir.rstrip('/')}/high-availability",
            KEY_FILE: self.key_file,
            CLUSTER_ID: self.cluster_id,
            SESSION_TIMEOUT: str(self.session_timeout_ms),
        }
        if self.recovery_mode == RecoveryMode.ZOOKEEPER.value:
            pairs |= {
                QUORUM: self.zookeeper_quorum,
                PATH_ROOT: self.zookeeper_root,
                AUTH_FILE: self.zookeeper_auth,
                AUTH_SCHEME: self.zookeeper_scheme if self.zookeeper_scheme != "digest" else "",
                CLIENT_ACL: self.zookeeper_acl,
                CA_FILE: self.zookeeper_ca,
                CERT_FILE: self.zookeeper_cert,
                TLS_KEY_FILE: self.zookeeper_key,
                TLS_PASSWORD_FILE: self.zookeeper_key_password,
            }
        return HighAvailabilitySettings.of({key: value for key, value in pairs.items() if value})

    @property
    def alone_ms(self) -> int:
        """How long tasks run on without a JobManager; 0: not at all."""
        return self.session_timeout_ms + self.tasks_alone_ms if self.has_successors and self.tasks_alone_ms else 0

    def job_manager_settings(self) -> JobManagerSettings:
        return JobManagerSettings(
            self.heartbeat_interval_ms,
            self.heartbeat_timeout_ms,
            self.slot_timeout_ms,
            self.cancel_timeout_ms,
            self.adoption_timeout_ms if self.alone_ms else 0,
        )

    def is_on_this_host(self) -> bool:
        """Whether all is: nobody else reaches the JobManager."""
        return not self.has_successors and self.jobmanager_host in ("127.0.0.1", "localhost", "::1")


SETTINGS: Mapping[str, Setting] = {
    each.metadata["setting"].key: each.metadata["setting"] for each in fields(HostSettings)
}
"""By key, in the order in which they are shown."""
FIELD_OF: Mapping[str, str] = {each.metadata["setting"].key: each.name for each in fields(HostSettings)}


def resolved(setting: Setting, value: Any, base: Path) -> Any:
    """A path without `~`, absolute from `base`; any other value as it is."""
    if not isinstance(setting.kind, Folder | FolderOrUrl) or not value or is_url(value):
        return value
    return os.path.normpath(base / Path(value).expanduser())
