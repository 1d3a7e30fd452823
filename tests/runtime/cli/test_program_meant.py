"""A misspelt program gets the file that is meant."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from understudy.runtime.cli.program import load_program


@pytest.fixture
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "word_count.py").write_text("def build():\n    return None\n\n\ndef other():\n    return None\n")
    (tmp_path / "flights_per_day.py").write_text("def main():\n    return None\n")
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "delays.py").write_text("env: Any = StreamEnvironment()\n")


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("word_conut", "found 'word_conut'; did you mean word_count.py:build?"),
        ("word_count", "found 'word_count'; did you mean word_count.py:build?"),
        ("word_count.py", "found 'word_count.py'; did you mean word_count.py:build?"),
        ("flights_per_dya.py", "did you mean flights_per_day.py:main?"),
        ("word_conut.py:build", "no file word_conut.py .*; did you mean word_count.py:build?"),
        ("word_conut.py:other", "did you mean word_count.py:other?"),
        ("word_conut:other", "no module 'word_conut' .*; did you mean word_count.py:other?"),
        ("jobs/delay.py:env", "did you mean jobs/delays.py:env?"),
        ("jobs/delay", "did you mean jobs/delays.py:env?"),
    ],
)
def test_a_misspelt_program_gets_the_file_that_is_meant(spec: str, text: str) -> None:
    with pytest.raises(click.ClickException, match=text.replace("?", r"\?$")):
        load_program(spec)


@pytest.mark.usefixtures("_folder")
@pytest.mark.parametrize("spec", ["nosuch", "nosuch.py:build", "nosuch/word_count.py:build", "jobs"])
def test_another_one_gets_none(spec: str) -> None:
    with pytest.raises(click.ClickException) as raised:
        load_program(spec)
    assert "did you mean" not in raised.value.message
