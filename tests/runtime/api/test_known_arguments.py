"""Names that there are not: of arguments, and of methods of a stream."""

from __future__ import annotations

import re
from typing import Any

import pytest

from understudy import StreamEnvironment
from understudy.runtime.api.elsewhere import OF_ENVIRONMENTS, OF_STREAMS


def test_a_misspelt_setting_of_an_environment_gets_the_nearest_one() -> None:
    text = "^StreamEnvironment has no argument 'checkpoint_interval'; did you mean 'checkpoint_interval_ms'. There are "
    with pytest.raises(TypeError, match=text + "parallelism, "):
        StreamEnvironment(checkpoint_interval=500)  # type: ignore[call-arg]


def test_a_misspelt_option_of_an_operator_gets_the_nearest_one() -> None:
    text = "^map has no argument 'paralellism'; did you mean 'parallelism'. There are function, name, parallelism, "
    with pytest.raises(TypeError, match=text):
        StreamEnvironment().from_collection([1]).map(str, paralellism=2)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("proces", "a DataStream has no 'proces'; did you mean 'process'"),
        ("window", "window needs a keyed stream: call key_by"),
        ("xyzzy", "a DataStream has no 'xyzzy'$"),
        ("iterate", "a DataStream has no 'iterate': iterations are not there yet$"),
        ("sum", r"has no 'sum': write key_by\(...\).aggregate\(sum=Sum\(\"column\"\)\)"),
        ("add_sink", r"has no 'add_sink': write sink_to\(...\)"),
    ],
)
def test_a_misspelt_method_of_a_stream_gets_the_nearest_one(name: str, said: str) -> None:
    stream: Any = StreamEnvironment().from_collection([1])
    with pytest.raises(AttributeError, match=said):
        getattr(stream, name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("execute", r"a StreamEnvironment has no 'execute': write `with LocalCluster\(\) as cluster: cluster.submit"),
        ("enable_checkpointing", r"write StreamEnvironment\(checkpoint_interval_ms="),
        ("read_csv", r"write from_csv\(\.\.\.\) in its place"),
        ("from_colection", "did you mean 'from_collection'"),
        ("xyzzy", "a StreamEnvironment has no 'xyzzy'$"),
    ],
)
def test_a_name_of_flink_or_spark_on_an_environment_gets_what_is_written_here(name: str, said: str) -> None:
    env: Any = StreamEnvironment()
    with pytest.raises(AttributeError, match=said):
        getattr(env, name)


def test_what_stands_in_place_of_a_name_of_elsewhere_is_there_and_the_name_is_not() -> None:
    env = StreamEnvironment()
    keyed = env.from_collection([{"a": 1}]).key_by("a")
    for thing, elsewhere in ((env, OF_ENVIRONMENTS), (keyed, OF_STREAMS)):
        for name, text in elsewhere.items():
            assert name not in dir(thing), name
            for called in re.findall(r"write (\w+)\(", text):
                assert called in dir(thing) or called == "StreamEnvironment", text
