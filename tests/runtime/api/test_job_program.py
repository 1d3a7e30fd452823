"""The program's way to a TaskManager: everything arrives, and no two subtasks share an object."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from understudy.actors.tasks.job_program import JobProgram
from understudy.messages import VertexId
from understudy.runtime.api.environment import StreamEnvironment
from understudy.runtime.api.translation import Translation


@pytest.fixture
def translation(env: StreamEnvironment, program: Any) -> Translation:
    stream = env.from_collection([1], name="numbers").map(lambda n: n + 1, name="add")
    stream.key_by(lambda n: n % 2).process(program.Worst, name="worst").sink_to(program.Swallow, name="out")
    translated: Translation = program.translated(env)
    return translated


def test_a_round_trip_keeps_chains_selectors_and_settings(translation: Translation) -> None:
    arrived = JobProgram.loads(translation.program.dumps())
    kinds = {vertex: [type(one).__name__ for one in arrived.chain(vertex)] for vertex in arrived.chains}
    assert kinds == {"numbers": ["CollectionSource", "Map"], "worst": ["Worst", "Swallow"]}
    assert arrived.edge_selector(0) is not None
    assert arrived.edge_selector(1) is None
    assert arrived.max_parallelism == 128


def test_each_subtask_gets_objects_of_its_own(translation: Translation) -> None:
    first, second = (translation.program.chain(VertexId("worst")) for _ in range(2))
    assert first[0] is not second[0]
    assert first[0]._selectors[0] is not second[0]._selectors[0]  # type: ignore[attr-defined]


def test_the_users_own_objects_are_left_alone(env: StreamEnvironment, program: Any) -> None:
    operator = program.Worst()
    env.from_collection([1]).key_by(0).process(operator).sink_to(program.Swallow)
    program.translated(env)
    assert "_selectors" not in vars(operator)


def test_a_keyed_operator_knows_its_key_selector(translation: Translation) -> None:
    worst = translation.program.chain(VertexId("worst"))[0]
    assert list(worst._selectors[0].keys([1, 2, 3])) == [1, 0, 1]  # type: ignore[attr-defined]


def test_message_and_record_types_of_a_script_are_known_after_loading(tmp_path: Path) -> None:
    """What a script declares lives in `__main__` and travels by value; the other process has never seen the class."""
    made = subprocess.run([sys.executable, "-c", _MAKER, str(tmp_path)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    read = subprocess.run([sys.executable, "-c", _READER, str(tmp_path)], capture_output=True, text=True, check=False)
    expected = "Question origin True [Trade(side=<Side.BUY: 1>), Tick(n=2), Leg(origin='A'), Model(n=3)] red True"
    assert read.stdout.strip() == expected, read.stderr


_MAKER = """
import sys
import attrs
import pydantic
from pathlib import Path
from understudy import register_serializer
from understudy.actors.tasks.job_program import JobProgram, ProgramOperator
from understudy.actors.operators.operator import Operator
from understudy.messages import encode, message, pack_plain
from dataclasses import dataclass
from enum import Enum
from threading import Lock
from typing import NamedTuple

@message
class Question:
    about: str

class Side(Enum):
    BUY = 1

@dataclass
class Trade:
    side: Side

class Tick(NamedTuple):
    n: int

@attrs.define
class Leg:
    origin: str

class Model(pydantic.BaseModel):
    n: int

class Image:
    def __init__(self, colour):
        self.colour = colour

class Images:
    name, version, type = "image", 1, Image
    def serialize(self, value):
        return value.colour.encode()
    def deserialize(self, data, version):
        return Image(data.decode())

register_serializer(Images())

@dataclass
class Unpicklable:
    lock = Lock()

class Answerer(Operator):
    def on_receive(self, message):
        return isinstance(message, (Question, Trade))

program = JobProgram.of({"v": [ProgramOperator("a", Answerer())]}, {}, 128)
Path(sys.argv[1], "program").write_bytes(program.dumps())
Path(sys.argv[1], "message").write_bytes(encode(Question("origin")))
Path(sys.argv[1], "records").write_bytes(pack_plain([Trade(Side.BUY), Tick(2), Leg("A"), Model(n=3)]))
Path(sys.argv[1], "image").write_bytes(pack_plain(Image("red")))
"""

_READER = """
import sys
from pathlib import Path
from understudy.actors.tasks.job_program import JobProgram
from understudy.messages import decode, unpack_plain

program = JobProgram.loads(Path(sys.argv[1], "program").read_bytes())
question = decode(Path(sys.argv[1], "message").read_bytes())
records = unpack_plain(Path(sys.argv[1], "records").read_bytes())
answerer = program.chain("v")[0]
image = unpack_plain(Path(sys.argv[1], "image").read_bytes())
said = answerer.on_receive(question), records, image.colour, answerer.on_receive(records[0])
print(type(question).__name__, question.about, *said)
"""
