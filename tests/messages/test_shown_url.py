"""How paths are shown: whole, unless they are of no use whole."""

from understudy.messages.shown_url import LONGEST_PATH, path_shown


def test_a_long_path_is_cut_in_the_middle() -> None:
    found = path_shown("/first/" + "x" * 5_000 + "/last")
    assert len(found) < LONGEST_PATH + 30
    assert found.startswith("/first/x")
    assert found.endswith("x/last")
    assert "characters)..." in found


def test_others_are_whole() -> None:
    assert path_shown("/a" * 250) == "/a" * 250
    assert path_shown("s3://me:secret@bucket/a") == "s3://me:***@bucket/a"
