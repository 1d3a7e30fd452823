"""How a value's class looks in a text."""

from __future__ import annotations

import socket
from decimal import Decimal
from typing import Any

import pytest

from understudy.messages import one_of_kind


@pytest.mark.parametrize(
    ("value", "text"),
    [([], "a list"), (1, "an int"), (None, "None"), (Decimal(1), "a decimal.Decimal"), (ValueError(), "a ValueError")],
)
def test_one_of_a_kind(value: Any, text: str) -> None:
    assert one_of_kind(type(value)) == text


def test_a_class_of_a_module_is_named_with_it() -> None:
    assert one_of_kind(socket.socket) == "a socket.socket"
