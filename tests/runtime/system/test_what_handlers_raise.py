"""Whatever a handler raises, whichever dispatcher drives it: who asked is told, and the actor fails or is well."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest

from understudy.actors.errors import ActorError
from understudy.runtime.system import ActorDead, ActorSystem

WAIT_S = 10


class Refused(ActorError):
    """Said by name to the one who asked."""


@pytest.fixture
def raising(idler: type[Any]) -> type[Any]:
    class Raising(idler):  # type: ignore[misc]
        """Raises what it is told, and repeats the rest."""

        def on_receive(self, message: Any) -> Any:
            if isinstance(message, BaseException):
                raise message
            return message

    return Raising


@pytest.mark.parametrize(
    ("raised", "told", "fails"),
    [
        (ValueError("x"), ValueError, True),
        (SystemExit(3), SystemExit, True),
        (StopIteration(1), RuntimeError, True),
        (asyncio.CancelledError(), RuntimeError, True),
        (Refused("no"), Refused, False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_it_reaches_the_one_who_asked_and_ends_the_actor_unless_it_refuses(
    system: ActorSystem, dispatcher: str, raising: type[Any], raised: BaseException, told: type[Exception], fails: bool
) -> None:
    ref = system.spawn(raising(), dispatcher=dispatcher)
    assert ref.ask("well?").result(timeout=WAIT_S) == "well?"
    with pytest.raises(told):
        ref.ask(raised).result(timeout=WAIT_S)
    with pytest.raises(ActorDead) if fails else nullcontext():
        assert ref.ask("well?").result(timeout=WAIT_S) == "well?"
