"""NumPy arrays there and back, those that do not travel, and bytes that are no array."""

from __future__ import annotations

from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from understudy.messages import MalformedMessage, UnsupportedValue, pack_plain, unpack_plain

ARRAY = 14
DTYPES = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?"),
    hnp.complex_number_dtypes(endianness="?", sizes=(64, 128)),
    hnp.byte_string_dtypes(min_len=1),
    hnp.unicode_string_dtypes(min_len=1),
    hnp.datetime64_dtypes(),
    hnp.timedelta64_dtypes(),
).filter(lambda dtype: dtype.itemsize <= 16 or dtype.kind in "SU")


def sent(*parts: Any) -> Any:
    return unpack_plain(msgpack.packb(msgpack.ExtType(ARRAY, msgpack.packb(list(parts)))))


@given(hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)))
def test_an_array_comes_back_equal_writable_and_in_c_order(array: np.ndarray[Any, Any]) -> None:
    for given_array in (array, array.T, array[..., ::-1] if array.ndim else array):
        back = unpack_plain(pack_plain([given_array]))[0]
        assert type(back) is np.ndarray
        assert (back.dtype, back.shape) == (given_array.dtype, given_array.shape)
        assert back.tobytes() == given_array.tobytes()
        assert back.flags.writeable
        assert back.flags.c_contiguous


@pytest.mark.parametrize(
    ("array", "text"),
    [
        (np.array([object()]), "dtype object"),
        (np.zeros(2, [("a", "i4")]), r"dtype \[\('a'"),
        (np.zeros(2, np.longdouble), "dtype float128"),
        (np.zeros(2, np.clongdouble), "dtype complex256"),
        (np.ma.masked_array([1, 2], [True, False]), "MaskedArray.*lose what it adds"),
        (np.zeros(2, [("a", "i4")]).view(np.recarray), "recarray"),
    ],
    ids=["object", "structured", "longdouble", "clongdouble", "masked", "recarray"],
)
def test_an_array_that_would_not_come_back_is_refused(array: Any, text: str) -> None:
    with pytest.raises(UnsupportedValue, match=text):
        pack_plain({"array": array})


@pytest.mark.parametrize(
    "parts",
    [
        (),
        ("<i4",),
        ("<i4", [1], "text"),
        (5, [1], b"1234"),
        ("<i4", 1, b"1234"),
        ("<i4", [2], b"1234"),
        ("<i4", [-1, -1], b"1234"),
        ("<i4", [1.0], b"1234"),
        ("<i4", [True], b"1234"),
        ("<i4", [2**62, 2**62], b"1234"),
        ("<i4", [0, 2**62], b""),
        ("<i4", [1] * 33, b"1234"),
        ("i4", [1], b"1234"),
        ("|O", [1], b"12345678"),
        ("<f16", [1], b"0" * 16),
        ("|V4", [1], b"1234"),
        ("|S0", [2**60], b""),
        ("<i4,<i4", [1], b"12345678"),
        ("<M8[eons]", [1], b"12345678"),
        ("(2,)<i4", [1], b"12345678"),
        ("<i3", [1], b"123"),
        ("|b1", [2], b"\x01\x02"),
        ("<U1", [1], b"\xff\xff\xff\xff"),
        (">U1", [1], b"\xff\xff\xff\xff"),
    ],
    ids=repr,
)
def test_bytes_that_are_no_array_are_malformed(parts: tuple[Any, ...]) -> None:
    with pytest.raises(MalformedMessage):
        sent(*parts)


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        (np.float16(0.1), float(np.float16(0.1))),
        (np.complex64(1 + 2j), 1 + 2j),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bytes_(b"a"), b"a"),
        (np.datetime64("NaT", "ns"), None),
    ],
    ids=repr,
)
def test_a_scalar_becomes_the_python_value_that_it_holds(scalar: Any, value: Any) -> None:
    back = unpack_plain(pack_plain(scalar))
    assert (back, type(back)) == (value, type(value))


@pytest.mark.parametrize(
    ("scalar", "text"),
    [
        (np.longdouble(1), "numpy.longdouble cannot be sent or stored: make it a float"),
        (np.clongdouble(1), "numpy.clongdouble cannot be sent"),
        (np.datetime64(1, "ns"), r"numpy.datetime64 cannot be sent.*000000001 of datetime64\[ns\].*its range.*astype"),
        (np.timedelta64(1, "M"), r"timedelta64\[M\]"),
        (np.void(b"ab"), r"numpy.void cannot be sent or stored.*item\(\)"),
        (np.zeros(1, [("a", "i4")])[0], "numpy.void"),
    ],
    ids=repr,
)
def test_a_scalar_that_python_has_no_value_for_is_refused(scalar: Any, text: str) -> None:
    with pytest.raises(UnsupportedValue, match=text):
        pack_plain([scalar])
