"""The text of a job's modules: whoever submits says which one it is, and TaskManagers import no other one.

A TaskManager that takes the place of a lost one imports a module as it is then. If somebody has changed the file
meanwhile, one job would run two versions of its code. So digests of the files travel with the program, and a
TaskManager compares each module at the moment when it imports it, also one that a function imports when it is called.
What its process had imported before the job came, as Python's own modules, is not looked at.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import sysconfig
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from ...actors.errors import CannotLoad
from ...actors.tasks.job_program import JobProgram
from ...actors.tasks.module_source import ModuleSource
from .preload import uses_this_library
from .replaced_code import replaced_in
from .stale_code import has_stale_code

log = logging.getLogger(__name__)

_OURS = __name__.partition(".")[0]
_INSTALLED = ("site-packages", "dist-packages")
_PYTHONS_OWN = sysconfig.get_path("stdlib") + os.sep
_REMEDY = (
    "A job runs one version of its code: put it back as it was, or submit the job with the new code, from its last "
    "checkpoint or a savepoint"
)

_imported: dict[str, str] = {}
"""Modules that this process has imported for a job, and the digests of their files then. A Spark worker has several
jobs, one after another.
"""


_submitted: dict[str, tuple[ModuleSpec | None, str]] = {}
"""Of modules that jobs of this process were submitted with: how each was imported, and the digest of its file at the
first submit since. To import it again, by `importlib.reload` too, makes a new spec; autoreload may keep it.
"""

_digests: dict[tuple[str | None, type], tuple[tuple[int, ...], str | None]] = {}
"""Of files that jobs of this process were submitted with, by path and kind of loader: what `os.stat` said before the
file was read, and the digest.
"""
_SURELY_OLD_NS = 2_000_000_000
"""A file whose last change is younger may change again and keep its times: file systems count in steps."""


def with_sources(program: JobProgram) -> JobProgram:
    """When a job is submitted: with the files of its modules as they are now. Warns of each that has changed since an
    earlier submit where this process still runs the code of then, and of each that has other functions here than in its
    file.
    """
    sources = sources_of(program.modules)
    for name, source in sources.items():
        spec = _spec_of(sys.modules.get(name))
        if not _is_installed(source.path):
            _warn_of_replaced(name, source.path)
        before = _submitted.get(name)
        if before is None or before[0] is not spec:
            _submitted[name] = (spec, source.digest)
        elif (
            before[1] != source.digest and spec is not None and has_stale_code(sys.modules[name], _text_of(spec) or b"")
        ):
            log.warning(
                "%s has changed since an earlier submit, and this process still has module %r as it was; the job's "
                "processes import it as it is now: call importlib.reload, import again what was imported from it by "
                "name, and build the stream again",
                source.path,
                name,
            )
    return replace(program, sources=sources)


def _warn_of_replaced(name: str, path: str) -> None:
    module = sys.modules[name]
    if found := replaced_in(module, lambda: _text_of(_spec_of(module)) or b""):
        log.warning(
            "%s of module %r has been replaced in this process, as by monkeypatch or mock: the job's processes import "
            "%s, and run what it says there. In a test, LocalCluster(debug=True), assert_exactly_once and "
            "OperatorHarness stay in this process; or give it to the operator, as an argument of its class",
            ", ".join(found),
            name,
            path,
        )


def sources_of(named: Iterable[str]) -> dict[str, ModuleSource]:
    """Of the modules that operators name, and of what else this process has imported from their packages and folders.
    Of an installed package that does not use this library only those that are named. Without Python's own, this
    library's, and those that cannot be read.
    """
    wanted = {name for name in named if _is_of_the_user(name, _file_of(sys.modules.get(name)))}
    packages = {
        name.partition(".")[0]
        for name in wanted
        if not _is_installed(_file_of(sys.modules[name])) or uses_this_library(name)
    }
    folders = tuple({_root_of(name) for name in wanted if not _is_installed(_file_of(sys.modules[name]))})
    found: list[tuple[str, ModuleSource]] = []
    for name, module in sys.modules.copy().items():  # one step, in which no other thread imports anything
        is_named = name in wanted or name.partition(".")[0] in packages
        if not (is_named or folders):
            continue
        path = _file_of(module)
        if not (is_named or path.startswith(folders)) or not _is_of_the_user(name, path):
            continue
        is_installed = _is_installed(path)
        digest = None if is_installed and not is_named else _digest_now(_spec_of(module))
        if digest is not None:
            everywhere = name in wanted and path.endswith(".py") and not is_installed
            found.append((name, ModuleSource(path, digest, everywhere)))
    return dict(sorted(found))


class WatchedImports:
    """While it is entered, this process imports no other text of the modules that are watched."""

    def __init__(self) -> None:
        self._finder = _ComparingFinder()

    def __enter__(self) -> WatchedImports:
        sys.meta_path.insert(0, self._finder)
        return self

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self._finder)

    def watch(self, sources: Mapping[str, ModuleSource]) -> None:
        """From now on. Raises CannotLoad for a module that this process has imported, for an earlier job, as it was
        then.
        """
        for name, source in sources.items():
            if name in sys.modules and _imported.get(name, source.digest) != source.digest:
                raise CannotLoad(
                    f"this process imported module {name!r} for an earlier job, and {source.path} is not what it was "
                    "then: start the cluster again (of Spark: the SparkSession), and submit the job again"
                )
        self._finder.sources = sources


class _ComparingFinder(MetaPathFinder):
    """Finds modules as the other finders do, and looks at their files before they are run."""

    def __init__(self) -> None:
        self.sources: Mapping[str, ModuleSource] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raises CannotLoad."""
        source = self.sources.get(fullname)
        if source is None:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec: ModuleSpec | None = finder.find_spec(fullname, path, target)
            if spec is not None:
                _compare(fullname, spec, source)
                return spec
        return None


def _compare(name: str, spec: ModuleSpec, source: ModuleSource) -> None:
    digest, path = _digest(spec), spec.origin or ""
    if digest is None:
        return
    is_same_path = os.path.abspath(path) == os.path.abspath(source.path)
    is_compared = is_same_path or (source.everywhere and path.endswith(".py"))
    if digest == source.digest or not is_compared:
        _imported[name] = digest
    elif is_same_path:
        raise CannotLoad(
            f"{path} is not what it was when the job was submitted{_changed_at(spec)}: it is module {name!r} of the "
            f"job's code. {_REMEDY}"
        )
    else:
        raise CannotLoad(
            f"the driver imported {name!r} from {source.path}, this TaskManager from {path}, and the two files differ. "
            "Install the same version on all hosts, or ship it with the job (--py-files), and submit the job again"
        )


def _changed_at(spec: ModuleSpec) -> str:
    with suppress(OSError):
        changed = os.path.getmtime(getattr(spec.loader, "archive", spec.origin or ""))
        return f" (it was changed at {time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(changed))})"
    return ""


def _digest(spec: ModuleSpec | None) -> str | None:
    """Of a module's file, on a disk or in a zip file; None where that cannot be read."""
    data = _text_of(spec)
    return None if data is None else hashlib.sha256(data).hexdigest()


def _digest_now(spec: ModuleSpec | None) -> str | None:
    """As `_digest`, and a file is read again only if it has changed since: a test suite submits thousands of jobs, with
    hundreds of modules each.
    """
    try:
        stat = os.stat(spec.origin)  # type: ignore[union-attr,arg-type]
    except (OSError, TypeError, ValueError, AttributeError):  # no file of its own
        return _digest(spec)
    stamp = (stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    key = (spec.origin, type(spec.loader))  # type: ignore[union-attr]
    known = _digests.get(key)
    if known is not None and known[0] == stamp:
        return known[1]
    digest = _digest(spec)
    if time.time_ns() - max(stamp[2:]) > _SURELY_OLD_NS:
        _digests[key] = (stamp, digest)
    return digest


def _text_of(spec: ModuleSpec | None) -> bytes | None:
    try:
        return spec.loader.get_data(spec.origin)  # type: ignore[no-any-return,union-attr]  # many loaders have it
    except Exception:  # noqa: BLE001 - whatever a loader of somebody's raises, importing is its matter
        return None


def _spec_of(module: ModuleType | None) -> ModuleSpec | None:
    spec = getattr(module, "__dict__", {}).get("__spec__")  # to ask the module itself would import a lazy one
    return spec if isinstance(spec, ModuleSpec) else None


def _file_of(module: ModuleType | None) -> str:
    return getattr(_spec_of(module), "origin", None) or ""


@cache
def _is_of_the_user(name: str, path: str) -> bool:
    top = name.partition(".")[0]
    if not path or top in (_OURS, "__main__") or top in sys.stdlib_module_names:
        return False
    return _is_installed(path) or not path.startswith(_PYTHONS_OWN)


@cache
def _is_installed(path: str) -> bool:
    return any(part in _INSTALLED for part in path.split(os.sep))


def _root_of(name: str) -> str:
    """The folder that the module, or its topmost package, was found in, or the zip file."""
    path = _file_of(sys.modules[name])
    for _ in range(name.count(".") + (os.path.basename(path).partition(".")[0] == "__init__") + 1):
        path = os.path.dirname(path)
    return path + os.sep
