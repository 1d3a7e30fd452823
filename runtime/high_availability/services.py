"""HighAvailabilityServices: all of it for one cluster, as its settings say. Flink: HighAvailabilityServices."""

from __future__ import annotations

from ...state import CheckpointStorage
from ..system import CurveKeys
from .errors import HighAvailabilityError, UnusableFile
from .kept_jobs import KeptJobs
from .leader import LeaderRetrieval
from .leadership import Election, Leadership
from .settings import KEY_FILE, HighAvailabilitySettings, RecoveryMode
from .submissions import Submissions


class HighAvailabilityServices:
    """Of a cluster that has a successor. Making it asks nobody yet but for the key's file.

    Raises InsecureKeyFile and UnusableFile for a key file that cannot be used.
    """

    def __init__(self, settings: HighAvailabilitySettings) -> None:
        if settings.mode is RecoveryMode.STANDALONE:
            raise HighAvailabilityError(
                "recovery.mode is standalone, which elects no leader: wanted zookeeper or storage"
            )
        self.settings = settings
        self.keys = _load(settings.key_file)
        """The cluster's: of its leaders, TaskManagers and clients."""

    @property
    def storage(self) -> CheckpointStorage:
        """The cluster's own folder in shared storage."""
        return CheckpointStorage(f"{self.settings.storage_dir}/{self.settings.cluster_id}")

    def election(self) -> Election:
        if self.settings.mode is RecoveryMode.STORAGE:
            from .storage_election import StorageElection

            return StorageElection(self.settings, self.storage, key_id=self.keys.key_id)
        from .zookeeper_election import ZooKeeperElection

        return ZooKeeperElection(self.settings, key_id=self.keys.key_id)

    def retrieval(self) -> LeaderRetrieval:
        """To be closed by its user. Raises NotReachable, NotOurs."""
        if self.settings.mode is RecoveryMode.STORAGE:
            from .storage_election import StorageRetrieval

            return StorageRetrieval(self.settings, self.storage)
        from .zookeeper_retrieval import ZooKeeperRetrieval

        return ZooKeeperRetrieval(self.settings)

    def kept_jobs(self, leadership: Leadership) -> KeptJobs:
        """What this leader finds and keeps. Blocks. Raises LostLeadership, NotReachable, OSError."""
        return KeptJobs(leadership, Submissions(self.storage, self.keys.secret), CheckpointStorage)


def _load(key_file: str) -> CurveKeys:
    try:
        return CurveKeys.load(key_file)
    except OSError as error:
        raise UnusableFile(
            f"{KEY_FILE}: {key_file} cannot be read: {error.strerror or error}. Make one with `understudy key FILE`, "
            "and put the same file on the machine of every JobManager"
        ) from error
