"""What earlier releases say is understood, and what later ones say is, as far as that goes: a rolling upgrade.

`recorded/` has the vocabulary of each release. A JobManager of the next release takes over from one of this, with
TaskManagers and clients of both, so a message may gain a field that has a default, and lose one that nobody reads.
"""

from __future__ import annotations

import base64
import json
import typing
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgpack
import pytest

from understudy.messages import JobId, MalformedMessage, TriggerSavepoint, decode, encode

from .recorded_vocabulary import FOLDER, described, has_default, sample, type_text
from .strategies import vocabulary

RELEASES = sorted(FOLDER.glob("*.json"))
OF_RELEASES = pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.stem)
ADVICE = "(docs/upgrades.md: JobManagers, TaskManagers and clients of two releases talk to each other)"


def misfits(recorded: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What in a vocabulary is not understood, or not said as one of the other release understands it."""
    found = []
    for tag, entry in recorded["messages"].items():
        if tag not in now["messages"]:
            found.append(f"{tag} is gone: keep the class as long as that release may send it {ADVICE}")
            continue
        before, today = entry["fields"], now["messages"][tag]["fields"]
        for name, (kind, is_optional) in today.items():
            if name not in before:
                if not is_optional:
                    found.append(f"{tag}.{name} is new and has no default: give it one {ADVICE}")
            elif before[name][0] != kind:
                found.append(f"{tag}.{name} was {before[name][0]}, is {kind}: add a field instead {ADVICE}")
        for name, (_, was_optional) in before.items():
            if name not in today and not was_optional:
                found.append(f"{tag}.{name} is gone, and that release does not do without: keep it {ADVICE}")
    for name, values in recorded["enums"].items():
        if gone := [value for value in values if value not in now["enums"].get(name, [])]:
            found.append(f"{name} has lost {gone}: keep them as long as that release may send them {ADVICE}")
    return found


@OF_RELEASES
def test_the_vocabulary_has_only_grown(release: Path) -> None:
    assert misfits(json.loads(release.read_text()), described()) == []


@OF_RELEASES
def test_every_message_of_a_release_is_read(release: Path) -> None:
    for tag, entry in json.loads(release.read_text())["messages"].items():
        found, wanted = decode(base64.b64decode(entry["bytes"])), sample(vocabulary()[tag])
        for each in fields(wanted):
            if each.name in entry["fields"]:
                assert getattr(found, each.name) == getattr(wanted, each.name), f"{tag}.{each.name}"


def test_this_release_is_recorded() -> None:
    from understudy import __version__

    assert __version__.partition(".dev")[0] in {path.stem for path in RELEASES}, (
        "record its vocabulary: python -m tests.messages.recorded_vocabulary VERSION"
    )


WORDS: list[Any] = list(vocabulary().values())


def test_a_message_of_an_older_release_gets_the_defaults() -> None:
    for cls in WORDS:
        tag, values = msgpack.unpackb(encode(sample(cls)), strict_map_key=False)
        optional = [each for each in fields(cls) if has_default(each)]
        left = {name: value for name, value in values.items() if name not in {each.name for each in optional}}
        found = decode(msgpack.packb([tag, left]))
        blank = cls(**{name: getattr(found, name) for name in left})
        assert found == blank


def test_a_message_of_a_later_release_is_read_without_what_is_new() -> None:
    for cls in WORDS:
        wanted = sample(cls)
        tag, values = msgpack.unpackb(encode(wanted), strict_map_key=False)
        more = {"a_field_of_the_next_release": [1, {"of": "any shape"}], **values}
        assert decode(msgpack.packb([tag, more])) == wanted


def test_a_message_that_this_release_does_not_have_is_named() -> None:
    with pytest.raises(MalformedMessage, match="unknown message 'MessageOfTheNextRelease'"):
        decode(msgpack.packb(["MessageOfTheNextRelease", {}]))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda now: now["messages"].pop("StopJob"), "StopJob is gone"),
        (lambda now: now["messages"]["StopJob"]["fields"].pop("job_id"), "StopJob.job_id is gone"),
        (lambda now: now["messages"]["StopJob"]["fields"].update(why=["str", False]), "StopJob.why is new"),
        (lambda now: now["messages"]["StopJob"]["fields"].update(why=["str", True]), ""),
        (lambda now: now["messages"]["StopJob"]["fields"].update(job_id=["int", False]), "was str, is int"),
        (lambda now: now["enums"]["JobStatus"].remove("failed"), "JobStatus has lost ['failed']"),
        (lambda now: now["enums"]["JobStatus"].append("paused"), ""),
    ],
)
def test_what_an_older_release_would_not_understand_is_found(change: Any, says: str) -> None:
    now = described()
    change(now)
    found = misfits(described(), now)
    assert bool(found) is bool(says)
    assert says in "".join(found)


def test_types_are_what_the_wire_knows_of_them() -> None:
    hints = typing.get_type_hints(TriggerSavepoint)
    assert [type_text(hints[each.name]) for each in fields(TriggerSavepoint)] == ["str", "NoneType | str"]
    assert sample(TriggerSavepoint) == TriggerSavepoint(JobId("text"), "text")
