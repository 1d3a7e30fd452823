"""Programs: code in the shared folder is run only as this cluster's key has signed it, for this very job."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from understudy import CurveKeys, ProgramRefused, StateError
from understudy.messages import JobId, ProgramFile
from understudy.runtime.hosts.programs import Programs, ShippedProgram, files_to_ship, unpack
from understudy.state import CheckpointStorage

JOB = JobId("job-1")
KEYS = CurveKeys.generate()
SHIPPED = ShippedProgram(b"code", ("module:warm",), ("/a", "/b"), {"pkg/__init__.py": b"x = 1"})


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(str(tmp_path), KEYS)


def test_what_was_stored_is_loaded_until_it_is_deleted(programs: Programs) -> None:
    stored = programs.store(JOB, SHIPPED)
    assert programs.load(JOB, stored) == SHIPPED
    programs.delete(stored)
    programs.delete(stored)
    with pytest.raises(ProgramRefused, match=r"is not there: is storage\.dir the same folder on all hosts"):
        programs.load(JOB, stored)


def test_another_clusters_signature_is_refused(programs: Programs, tmp_path: Path) -> None:
    stored = Programs(str(tmp_path), CurveKeys.generate()).store(JOB, SHIPPED)
    with pytest.raises(ProgramRefused, match="not signed with this cluster's key"):
        programs.load(JOB, stored)


def test_one_jobs_code_is_not_anothers(programs: Programs) -> None:
    stored = programs.store(JOB, SHIPPED)
    with pytest.raises(ProgramRefused, match="not signed with this cluster's key"):
        programs.load(JobId("job-2"), stored)


def test_a_changed_byte_is_noticed_before_anything_is_looked_into(programs: Programs, tmp_path: Path) -> None:
    stored = programs.store(JOB, SHIPPED)
    storage = CheckpointStorage(str(tmp_path))
    whole = storage.read_sealed(stored.path)
    for place in range(0, len(whole), 9):
        storage.write_sealed(stored.path, whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :])
        with pytest.raises(ProgramRefused):
            programs.load(JOB, stored)


def test_a_pickle_in_its_place_is_not_unpickled(programs: Programs, tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return open, (str(tmp_path / "exploded"), "w")  # type: ignore[return-value]

    CheckpointStorage(str(tmp_path)).write_sealed("programs/bomb", pickle.dumps(Bomb()))
    with pytest.raises(ProgramRefused, match="is none"):
        programs.load(JOB, ProgramFile("programs/bomb"))
    assert not (tmp_path / "exploded").exists()


def test_a_path_that_leads_out_of_the_folder_is_refused(programs: Programs) -> None:
    with pytest.raises(StateError):
        programs.load(JOB, ProgramFile("../elsewhere"))


def test_files_and_packages_are_shipped_by_the_names_by_which_they_are_imported(tmp_path: Path) -> None:
    package = tmp_path / "source" / "pkg"
    (package / "inner" / "__pycache__").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "inner" / "part.py").write_text("part = 1")
    (package / "inner" / "__pycache__" / "part.pyc").write_text("no")
    (tmp_path / "job.py").write_text("job = 1")
    files = files_to_ship([package, tmp_path / "job.py"])
    assert sorted(files) == ["job.py", "pkg/__init__.py", "pkg/inner/part.py"]
    unpack(files, tmp_path / "target")
    assert (tmp_path / "target" / "pkg" / "inner" / "part.py").read_text() == "part = 1"
    with pytest.raises(FileNotFoundError, match="no file or folder 'nosuch' to ship"):
        files_to_ship(["nosuch"])
    with pytest.raises(ValueError, match=r"two of the files to ship are called 'job\.py'"):
        files_to_ship([tmp_path / "job.py", tmp_path / "job.py"])


@pytest.mark.parametrize("name", ["../escaped.py", "/escaped.py", "a/../../escaped.py"])
def test_a_shipped_file_stays_in_its_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(ProgramRefused, match="leads out of its folder"):
        unpack({name: b"x"}, tmp_path / "target")
    assert not (tmp_path / "escaped.py").exists()
