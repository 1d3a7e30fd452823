"""A type of Arrow of a user's own."""

from __future__ import annotations

import pyarrow as pa


class Code(pa.ExtensionType):  # type: ignore[misc]
    """It has no hash."""

    def __init__(self) -> None:
        super().__init__(pa.string(), "tests.code")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Code:
        return cls()
