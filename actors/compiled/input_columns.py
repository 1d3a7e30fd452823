"""The columns of a batch as the kernel reads them: addresses of buffers, put into the work table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from .layout import Column

WorkTable = npt.NDArray[np.int64]


def address_of(array: npt.NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


def put_columns(work: WorkTable, columns: Iterable[tuple[Column, pa.Array]]) -> list[Any]:
    """Write where these columns lie. What is returned must be kept as long as the kernel runs."""
    kept: list[Any] = []
    for column, array in columns:
        if column.kind == "opaque" or not len(array):
            continue
        kept.append(array := array.cast(pa.uint8()) if column.kind == "bool" else array)
        _, data = array.buffers()
        work[column.cell] = data.address + array.offset * int(column.stored[1:])
        work[column.cell + 1] = 0
        if array.null_count:
            kept.append(valid := np.asarray(array.is_valid().cast(pa.uint8())))
            work[column.cell + 1] = address_of(valid)
    return kept
