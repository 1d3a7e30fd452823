"""Signatures: what is stored for a job, for processes of its cluster that run it, and for nobody else to change."""

from __future__ import annotations

import hashlib
import hmac

from ...messages import JobId

_SIZE = hashlib.sha256().digest_size


class Signatures:
    """HMAC-SHA256 with a key made of the cluster's `secret` for one `purpose`: it covers the job's id and all of the
    data, so that what was signed for one job or purpose does not pass for another's.
    """

    def __init__(self, secret: bytes, purpose: str) -> None:
        self._key = hmac.digest(secret, f"understudy: {purpose}".encode(), "sha256")

    def signed(self, job_id: JobId, data: bytes) -> bytes:
        """The data, with the signature before them."""
        return self._signature(job_id, data) + data

    def checked(self, job_id: JobId, signed: bytes) -> bytes | None:
        """The data; None if they were not signed so."""
        signature, data = signed[:_SIZE], signed[_SIZE:]
        return data if hmac.compare_digest(signature, self._signature(job_id, data)) else None

    def _signature(self, job_id: JobId, data: bytes) -> bytes:
        named = job_id.encode()
        return hmac.digest(self._key, len(named).to_bytes(4, "big") + named + data, "sha256")
