"""The library keeps to its rooms (docs/architecture.md): imports between rooms run one way, no modules import each
other in a circle, the two sides do not import each other; and what breaks these rules is found.
"""

from __future__ import annotations

import pytest

from .house import ROOMS, room_of, sources, violations
from .parsed import parsed


def planted(module: str, line: str) -> list[str]:
    """What is wrong with the house once this line stands at the end of that module."""
    changed = dict(sources())
    changed[module] += f"\n\n{line}\n"
    return violations(changed)


def test_the_library_keeps_to_its_rooms() -> None:
    assert violations(sources()) == []


@pytest.mark.parametrize("room", [room for room in ROOMS if any(room_of(name) == room for name in sources())])
def test_every_room_says_what_is_at_home_there(room: str) -> None:
    text = sources().get(f"{room}.") or sources()[room]
    assert parsed(text).docstring


def test_every_room_has_modules() -> None:
    lived_in = {room_of(name) for name in sources() if not name.endswith(".")}
    assert [room for room in ROOMS if room not in lived_in] == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("state.keys.key_hash", "from ..backends.backend import NO_KEY"),
        ("actors.flow.elements", "def late() -> None:\n    from ..tasks.task import Task"),
        ("actors.restore.restore_points", "if TYPE_CHECKING:\n    from ..jobs import execution_graph"),
        ("messages.ids", "import understudy.actors.actor"),
        ("runtime.api.stream", "from ..clusters.local_cluster import LocalCluster"),
        ("state.errors", "from understudy.runtime.system import ActorSystem"),
    ],
)
def test_an_import_that_runs_up_is_found(module: str, line: str) -> None:
    """Relative or not, in a function, for types only, of a module, and through a face."""
    assert any(each.startswith(f"{module}:") and "stands below" in each for each in planted(module, line))


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("runtime.clusters.cluster", "import understudy"),
        ("actors.tasks.task", "def version() -> str:\n    import understudy\n    return understudy.__version__"),
        ("runtime.cli.run", "from understudy import LocalCluster"),
    ],
)
def test_an_import_of_the_face_is_found(module: str, line: str) -> None:
    assert any(each.startswith(f"{module}:") and "the face above all rooms" in each for each in planted(module, line))


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("actors.jobs.job_master", "from ..tasks.task import Task"),
        (
            "actors.checkpoints.pending_checkpoint",
            "from understudy.actors.barriers.barrier_handler import BarrierHandler",
        ),
        ("actors.tasks.task_manager", "def late() -> None:\n    from ..checkpoints import checkpoint_plan"),
    ],
)
def test_an_import_from_one_tower_into_the_other_is_found(module: str, line: str) -> None:
    assert any(each.startswith(f"{module}:") and "from one side" in each for each in planted(module, line))


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("actors.flow.elements", "from .outputs import TaskOutputs"),
        ("state.errors", "def late() -> None:\n    from .storage import CheckpointStorage"),
    ],
)
def test_a_circle_of_modules_is_found(module: str, line: str) -> None:
    assert any(each.startswith("circle: ") and module in each for each in planted(module, line))


def test_a_module_without_a_room_is_found() -> None:
    changed = dict(sources()) | {"actors.attic.": '"""An attic."""', "actors.attic.box": "x = 1"}
    assert violations(changed) == ["no room: actors.attic.box lies in actors.attic"]
