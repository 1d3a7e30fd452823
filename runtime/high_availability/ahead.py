"""Ahead: whom a candidate waits for. It is logged, once for each leader; one of another cluster is refused."""

from __future__ import annotations

import logging
from collections.abc import Callable

from .errors import AnotherCluster
from .leader import Leader
from .settings import HighAvailabilitySettings

log = logging.getLogger("understudy.job")


class Ahead:
    """Of one candidate, whose cluster's key has the id `key_id`. `place`: where leaders are elected. `known` is called
    with each leader of this cluster that is seen.
    """

    def __init__(
        self, settings: HighAvailabilitySettings, key_id: str, place: str, known: Callable[[], None] = lambda: None
    ) -> None:
        self._settings = settings
        self._key_id = key_id
        self._place = place
        self._known = known
        self._logged: Leader | None = None
        self.is_known = False
        """Whether it was seen, and is of this cluster: one of an earlier version does not say whose it is."""

    def seen(self, leader: Leader | None, *, lives: bool) -> None:
        """`lives`: it is no leader that has died, and is followed soon. Raises AnotherCluster."""
        if leader is None or not leader.address:
            return
        self.is_known = leader.key_id in ("", self._key_id)
        if lives and not self.is_known:
            settings = self._settings
            raise AnotherCluster(settings.cluster_id, self._place, leader.address, settings.key_file)
        if leader != self._logged:
            self._logged = leader
            log.info("cluster %r: the JobManager at %s leads", self._settings.cluster_id, leader.address)
        if self.is_known:
            self._known()
