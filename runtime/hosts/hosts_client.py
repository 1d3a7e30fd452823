"""HostsClient: the JobManager that an understudy.yaml names, as whoever looks at its jobs and hosts holds it. It loads
nothing of what submitting a job takes, which `understudy list` would wait for.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Self

from ...messages import HostList, JobId, ListHosts
from ..clusters.async_twin import async_twin
from ..clusters.leader_line import LeaderLine
from ..clusters.remote_cluster import RemoteCluster, expect
from .keys import load_keys
from .leaders import first_address, leaders_of
from .resource_manager import NAME as RESOURCE_MANAGER
from .settings import HostSettings
from .settings_sources import load_settings, use_encryption_keys
from .slots import why_waiting


class HostsClient(RemoteCluster):
    """Where the JobManager may have successors, it follows whoever leads. The arguments are those of a
    StandaloneCluster. Raises InvalidSettings, NoKeyFile.
    """

    def __init__(
        self,
        settings: HostSettings | str | os.PathLike[str] | None = None,
        *,
        flags: Mapping[str, str] | None = None,
        **timeouts: float,
    ) -> None:
        loaded = settings if isinstance(settings, HostSettings) else load_settings(settings, flags).settings
        self.settings = loaded
        use_encryption_keys(loaded)
        self._cluster_keys = load_keys(loaded)
        super().__init__(loaded.jobmanager_address, self._cluster_keys, **timeouts)

    def start(self) -> Self:
        """Open this side. Raises NoJobManager when it cannot connect to the address, and when nobody leads."""
        return self._start_following() if self.settings.has_successors else super().start()

    def _start_following(self) -> Self:
        """Speak to whoever leads."""
        leaders = leaders_of(self.settings)
        try:
            self.address = first_address(leaders, self.settings, self._answer_timeout_ms / 1000)
            super().start()
        except BaseException:
            leaders.close()
            raise
        system, _ = self._reached()
        self._line = LeaderLine(system, leaders, self.settings.cluster_id, self._led_by)
        return self

    def _led_by(self, address: str) -> None:
        self.address = address

    def hosts(self) -> HostList:
        """The TaskManager processes that are registered, with their slots, and what waits for slots."""
        return self._ask(ListHosts(), expect(HostList), actor=RESOURCE_MANAGER).result()

    hosts_async = async_twin(hosts)

    def why_waiting(self, job_id: JobId) -> str:
        """Which slots the job waits for, who holds them, and what to do, in one line; empty: it waits for none."""
        names = {each.job_id: each.name for each in self.jobs()}
        return why_waiting(job_id, self.hosts(), names, len(self.settings.workers))

    why_waiting_async = async_twin(why_waiting)
