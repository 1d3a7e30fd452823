"""How message classes are known, by the same tag in every process."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from understudy.messages import Heartbeat, decode, encode, message, register, registered_messages, tag_of


@message
class Mine:
    value: int


def test_own_messages_have_bare_names_and_those_of_users_full_ones() -> None:
    assert tag_of(Heartbeat("x", 1)) == "Heartbeat"
    assert tag_of(Mine(1)) == f"{__name__}.Mine"


def test_only_what_users_declared_is_shipped() -> None:
    shipped = registered_messages(own=False)
    assert shipped[f"{__name__}.Mine"] is Mine
    assert not any(cls.__module__.startswith("understudy") for cls in shipped.values())
    assert set(shipped) < set(registered_messages())


def test_a_tag_belongs_to_one_class() -> None:
    with pytest.raises(ValueError, match="message tag 'Heartbeat' belongs to understudy"):
        register(Mine, "Heartbeat")
    register(Heartbeat, "Heartbeat")


def test_a_class_that_is_declared_anew_takes_the_place_of_the_old() -> None:
    old = _declare()
    new = _declare()
    assert old is not new
    assert type(decode(encode(old(1)))) is new


def _declare() -> Any:
    @message
    class Reloaded:
        value: int

    return Reloaded


def test_a_script_is_main_also_where_multiprocessing_calls_it_otherwise() -> None:
    def declare(module: str) -> Any:
        return message(type("OfAScript", (), {"__module__": module, "__annotations__": {"value": int}}))

    main, spawned = declare("__main__"), declare("__mp_main__")
    assert tag_of(main(1)) == tag_of(spawned(1)) == "__main__.OfAScript"
    assert decode(encode(main(1))) == spawned(1)


@pytest.mark.slow
def test_the_processes_of_a_script_understand_each_other(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import multiprocessing
            from understudy.messages import decode, encode, message

            @message
            class Question:
                about: str

            def answer(pipe):
                asked = decode(pipe.recv_bytes())
                pipe.send_bytes(encode(Question(asked.about + "!")))

            if __name__ == "__main__":
                here, there = multiprocessing.Pipe()
                child = multiprocessing.get_context("spawn").Process(target=answer, args=(there,))
                child.start()
                here.send_bytes(encode(Question("hello")))
                assert decode(here.recv_bytes()) == Question("hello!")
                child.join()
            """
        )
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "spawn" in multiprocessing.get_all_start_methods()
