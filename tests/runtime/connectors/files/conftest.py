"""The server of the tests on object stores."""

from __future__ import annotations

from ....systems.s3 import s3, s3_server

__all__ = ["s3", "s3_server"]
