"""What a leader writes of itself for those who look for it, and what is believed of it."""

from __future__ import annotations

import logging

from ...messages import LeaderSessionId, MalformedMessage, decode, encode, message
from ..system.remote.address import is_reachable_base
from .leader import Leader

log = logging.getLogger(__name__)


@message
class LeaderNode:
    """A JobManager that leads."""

    address: str
    leader_session_id: LeaderSessionId
    key_id: str = ""


def leader_bytes(leader: Leader) -> bytes:
    return encode(LeaderNode(leader.address, leader.session, leader.key_id))


def read_leader(data: bytes, place: str) -> Leader | None:
    """None for one that has not published its address yet, and for what is none: nobody is sent there."""
    if not data:
        return None
    try:
        found = decode(data)
    except MalformedMessage as error:
        found = error
    if isinstance(found, LeaderNode) and is_reachable_base(found.address):
        return Leader(found.address, found.leader_session_id, found.key_id)
    log.warning("%s: wanted the address of a leader, found %.80r: no client follows it", place, found)
    return None
