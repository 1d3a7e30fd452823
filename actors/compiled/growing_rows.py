"""GrowingRows: arrays that a kernel adds rows to. When they are full it calls back, and gets larger ones."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .input_columns import WorkTable, address_of

_Callback = ctypes.CFUNCTYPE(None)
LEAST_ROWS = 64


class GrowingRows:
    """Belongs to one work table. `rows`: the cells of number, capacity and growth; `cells`: of the columns' addresses,
    which are of these NumPy types.
    """

    def __init__(self, work: WorkTable, rows: int, cells: Sequence[int], kinds: Sequence[str]) -> None:
        self._work, self._cells, self._kinds = work, cells, kinds
        self._count, self._capacity, grow = range(rows, rows + 3)
        self._arrays: list[npt.NDArray[Any]] = []
        self._grow = _Callback(self._make_room)  # the kernel calls it by address, so it must live as long
        work[grow] = ctypes.cast(self._grow, ctypes.c_void_p).value or 0

    def begin(self, rows: int) -> None:
        """Have room for this number of rows, and none in it."""
        self._put([np.empty(rows, kind) for kind in self._kinds])
        self._work[self._count], self._work[self._capacity] = 0, rows

    def begin_again(self) -> None:
        """The same in the arrays that there are: nobody needs what they held."""
        if not self._arrays:
            self.begin(LEAST_ROWS)
        self._work[self._count] = 0

    @property
    def filled(self) -> list[npt.NDArray[Any]]:
        """The columns, as far as the kernel has filled them."""
        count = int(self._work[self._count])
        return [array[:count] for array in self._arrays]

    def let_go(self) -> None:
        """The arrays belong to who took them from here."""
        self._arrays = []

    def _make_room(self) -> None:
        """Called by the kernel. If it fails the kernel raises, as there is no more room than before."""
        before = int(self._work[self._capacity])
        rows = max(2 * before, LEAST_ROWS)
        try:
            larger = [np.empty(rows, array.dtype) for array in self._arrays]
        except MemoryError:
            return
        for new, old in zip(larger, self._arrays, strict=True):
            new[:before] = old
        self._put(larger)
        self._work[self._capacity] = rows

    def _put(self, arrays: list[npt.NDArray[Any]]) -> None:
        self._arrays = arrays
        for cell, array in zip(self._cells, arrays, strict=True):
            self._work[cell] = address_of(array)
