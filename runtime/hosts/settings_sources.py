"""Where settings come from: flags, before the environment, before a file, before the defaults.

    -D jobmanager.port=7421                     a flag
    UNDERSTUDY_JOBMANAGER_PORT=7421             the environment: the key in capitals, with underscores
    jobmanager: {port: 7421}                    understudy.yaml, nested
    jobmanager.port: 7421                       or flat

The file is the one of `--config`, or of UNDERSTUDY_CONFIG, or the first that there is of understudy.yaml in the working
directory, ~/.understudy/understudy.yaml and /etc/understudy/understudy.yaml. All that is wrong is said at once.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...state.keyring import VARIABLE
from ...state.root_mark import VARIABLE as MUST_EXIST
from ...state.store_requests import TIMEOUT_MS, TRIES
from ..clusters.setting_kinds import WrongValue
from .errors import InvalidSettings
from .settings import FIELD_OF, HOME, SETTINGS, HostSettings, Setting, resolved

FILE_NAME = "understudy.yaml"
FILE_VARIABLE = "UNDERSTUDY_CONFIG"
PREFIX = "UNDERSTUDY_"
_OTHER_VARIABLES = frozenset(
    {FILE_VARIABLE, "UNDERSTUDY_JOBMANAGER", "UNDERSTUDY_KEY_FILE", "UNDERSTUDY_LOG", TRIES, TIMEOUT_MS, MUST_EXIST}
)
"""Variables that are no settings of a cluster."""


@dataclass(frozen=True, slots=True)
class Found:
    """One setting's value, and where it stands."""

    value: Any
    origin: str
    """As in "understudy.yaml:3", "UNDERSTUDY_LOG_LEVEL", "-D log.level" or "default"."""


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """Settings, and how they came about."""

    settings: HostSettings
    found: Mapping[str, Found]
    """By key, all of them."""
    file: Path | None
    notes: tuple[str, ...] = ()
    """Perhaps mistakes, a line each."""

    @property
    def is_default(self) -> bool:
        """Nobody has set anything: no file, no variable, no flag."""
        return self.file is None and all(each.origin == "default" for each in self.found.values())


def load_settings(
    file: str | os.PathLike[str] | None = None,
    flags: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> LoadedSettings:
    """Raises InvalidSettings, with a line for each problem."""
    environment = os.environ if environment is None else environment
    path = find_file(file, environment)
    problems: list[str] = []
    found = {key: Found(resolved(each, each.default, Path.cwd()), "default") for key, each in SETTINGS.items()}
    if path is not None:
        found |= _of_file(path, problems)
        found |= _of_host_files(path.parent, found, problems)
    found |= _of_environment(environment, problems)
    found |= _of_flags(flags or {}, problems)
    if problems:
        raise InvalidSettings("\n".join(problems))
    settings = HostSettings(**{FIELD_OF[key]: each.value for key, each in found.items()})
    return LoadedSettings(settings, found, path, tuple(_misspelt(environment)))


def use_encryption_keys(settings: HostSettings) -> None:
    """From now on this process, and those that it starts, encrypt with the keys that the settings name, if any."""
    if settings.encryption_keys:
        os.environ[VARIABLE] = settings.encryption_keys


def find_file(file: str | os.PathLike[str] | None, environment: Mapping[str, str]) -> Path | None:
    """The file that counts, absolute; None where there is none. Raises InvalidSettings for a named one that is not."""
    named = os.fspath(file) if file is not None else environment.get(FILE_VARIABLE)
    if named is not None:
        path = Path(named).expanduser().absolute()
        if not path.is_file():
            by = "--config" if file is not None else FILE_VARIABLE
            raise InvalidSettings(f"{by}: no file {named!r}")
        return path
    places = (Path.cwd(), Path(HOME).expanduser(), Path("/etc/understudy"))
    found = next((place / FILE_NAME for place in places if (place / FILE_NAME).exists()), None)
    if found is not None and found.is_dir():
        raise InvalidSettings(f"{found} is a folder, and wanted is a file with settings: rename it, or name a file")
    return found


def no_file() -> str:
    """In words, without a verb, that there is none, and where it was looked for."""
    return f"no {FILE_NAME} in {Path.cwd()}, ~/.understudy or /etc/understudy"


# -- the file


def _of_file(path: Path, problems: list[str]) -> dict[str, Found]:
    import yaml

    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
        pairs = [] if root is None else list(_flattened(root, "", path.name))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings(f"{path} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise InvalidSettings(f"{path} is no YAML: {_one_line(error)}") from error
    except RecursionError:
        raise InvalidSettings(f"{path} cannot be read: it is nested too deep") from None
    except InvalidSettings as error:
        raise InvalidSettings(f"{path.parent}/{error}") from error
    found: dict[str, Found] = {}
    for key, node, line in pairs:
        where = f"{path.name}:{line}"
        if key in found:
            problems.append(f"{where}: {key} is set twice; the first is {found[key].origin}")
            continue
        if key not in SETTINGS:
            problems.append(f"{where}: {_unknown(key)}")
            continue
        try:
            value = _python_of(node)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            problems.append(f"{where}: {key}: YAML cannot make a value of this: {_one_line(error):.120}")
        else:
            found |= _checked(SETTINGS[key], value, where, path.parent, problems, is_text=False)
    return found


def _flattened(node: Any, prefix: str, name: str) -> Iterator[tuple[str, Any, int]]:
    """Dotted keys with their values' nodes and lines."""
    import yaml

    line = node.start_mark.line + 1
    if not isinstance(node, yaml.MappingNode):
        raise InvalidSettings(f"{name}:{line}: wanted settings as `key: value`, found {_kind_of(node)}")
    for key_node, value in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise InvalidSettings(f"{name}:{key_node.start_mark.line + 1}: wanted a key, found a list or mapping")
        key = f"{prefix}{key_node.value}"
        if isinstance(value, yaml.MappingNode) and key not in SETTINGS:
            yield from _flattened(value, f"{key}.", name)
        else:
            yield key, value, key_node.start_mark.line + 1


def _python_of(node: Any) -> Any:
    """The node's value, with YAML's own types only. Raises YAMLError, ValueError and RecursionError."""
    import yaml

    loader = yaml.SafeLoader("")
    try:
        return loader.construct_object(node, deep=True)
    finally:
        loader.dispose()


def _kind_of(node: Any) -> str:
    value = node.value
    return f"{value!r:.60}" if isinstance(value, str) else f"a {node.id} of {len(value)}"


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


def _of_host_files(folder: Path, found: Mapping[str, Found], problems: list[str]) -> dict[str, Found]:
    """The files `masters` and `workers` beside the settings, a host per line, where the settings name none."""
    made: dict[str, Found] = {}
    for name in ("masters", "workers"):
        key, file = f"cluster.{name}", folder / name
        if not found[key].value and file.is_file():
            lines = [line.partition("#")[0].strip() for line in file.read_text(encoding="utf-8").splitlines()]
            made |= _checked(
                SETTINGS[key], [line for line in lines if line], str(file), folder, problems, is_text=False
            )
    return made


# -- the environment, and flags


def _of_environment(environment: Mapping[str, str], problems: list[str]) -> dict[str, Found]:
    found: dict[str, Found] = {}
    for each in SETTINGS.values():
        if each.variable in environment:
            value = environment[each.variable]
            found |= _checked(each, value, each.variable, Path.cwd(), problems, is_text=True)
    return found


def _misspelt(environment: Mapping[str, str]) -> Iterator[str]:
    """Variables that are close to a setting's: others may have ours as a prefix, and so none is refused."""
    known = [each.variable for each in SETTINGS.values()]
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in known and name not in _OTHER_VARIABLES:
            close = difflib.get_close_matches(name, known, 1, cutoff=0.8)
            if close:
                yield f"{name} in the environment is no setting; did you mean {close[0]}?"


def _of_flags(flags: Mapping[str, str], problems: list[str]) -> dict[str, Found]:
    found: dict[str, Found] = {}
    for key, value in flags.items():
        if key in SETTINGS:
            found |= _checked(SETTINGS[key], value, f"-D {key}", Path.cwd(), problems, is_text=True)
        else:
            problems.append(f"-D {key}: {_unknown(key)}")
    return found


# -- one value


def _checked(
    setting: Setting, value: Any, where: str, base: Path, problems: list[str], *, is_text: bool
) -> dict[str, Found]:
    """The value, if it fits; else one more problem."""
    try:
        read = setting.kind.parse(value) if is_text else setting.kind.read(value)
        return {setting.key: Found(resolved(setting, read, base), where)}
    except WrongValue as error:
        found = "" if error.says_what_was_found else f", found {_shown(value)}"
        problems.append(f"{where}: {setting.key}: wanted {error}{found}")
    except RuntimeError:  # of Path.expanduser
        problems.append(f"{where}: {setting.key}: there is no user with a home folder such as in {value!r:.60}")
    return {}


def _shown(value: Any) -> str:
    kind = {bool: "a truth value", int: "an integer", float: "a number", dict: "a mapping", list: "a list"}
    kind |= {str: "text", type(None): "nothing"}
    name = kind.get(type(value), type(value).__name__)
    return name if value is None else f"{value!r:.60} ({name})"


def _unknown(key: str) -> str:
    if below := [each for each in SETTINGS if each.startswith(f"{key}.")]:
        return f"{key} is a section: wanted settings below it, such as {below[0]}"
    close = nearest(key, SETTINGS)
    return f"there is no setting {key!r}" + (f"; did you mean {close!r}?" if close else "; see `understudy config`")


def nearest(key: str, known: Iterable[str]) -> str | None:
    """The known key that looks most like it, or whose last part does."""
    known = list(known)
    close = difflib.get_close_matches(key, known, 1, cutoff=0.8)
    if not close:
        last = {each.rpartition(".")[2]: each for each in known}
        close = [last[name] for name in difflib.get_close_matches(key.rpartition(".")[2], list(last), 1, cutoff=0.8)]
    return close[0] if close else None
