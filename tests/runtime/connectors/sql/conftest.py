"""The server of these tests, and how sources are driven without a cluster."""

from __future__ import annotations

from ....systems.postgresql import pg_url, postgresql

__all__ = ["pg_url", "postgresql"]
