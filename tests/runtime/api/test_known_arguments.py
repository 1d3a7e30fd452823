"""Names that there are not: of arguments, and of methods of a stream."""

from __future__ import annotations

from typing import Any

import pytest

from understudy import StreamEnvironment


def test_a_misspelt_setting_of_an_environment_gets_the_nearest_one() -> None:
    text = "^StreamEnvironment has no argument 'checkpoint_interval'; did you mean 'checkpoint_interval_ms'. There are "
    with pytest.raises(TypeError, match=text + "parallelism, "):
        StreamEnvironment(checkpoint_interval=500)  # type: ignore[call-arg]


def test_a_misspelt_option_of_an_operator_gets_the_nearest_one() -> None:
    text = "^an operator has no argument 'paralellism'; did you mean 'parallelism'. There are name, parallelism, "
    with pytest.raises(TypeError, match=text):
        StreamEnvironment().from_collection([1]).map(str, paralellism=2)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("proces", "a DataStream has no 'proces'; did you mean 'process'"),
        ("window", "window needs a keyed stream: call key_by"),
        ("xyzzy", "a DataStream has no 'xyzzy'$"),
    ],
)
def test_a_misspelt_method_of_a_stream_gets_the_nearest_one(name: str, said: str) -> None:
    stream: Any = StreamEnvironment().from_collection([1])
    with pytest.raises(AttributeError, match=said):
        getattr(stream, name)
