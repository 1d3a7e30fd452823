"""Settings: where they come from, in which order, and what a mistake is answered with."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from understudy import InvalidSettings
from understudy.runtime.clusters.cluster_settings import ClusterSettings
from understudy.runtime.clusters.setting_kinds import OneOf
from understudy.runtime.high_availability.settings import ZOOKEEPER_KEYS
from understudy.runtime.hosts.settings import SETTINGS, HostSettings
from understudy.runtime.hosts.settings_sources import load_settings


def written(folder: Path, text: str) -> Path:
    path = folder / "understudy.yaml"
    path.write_text(text)
    return path


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(InvalidSettings) as raised:
        load_settings(written(folder, text), environment={})
    return str(raised.value)


def test_flags_come_before_the_environment_before_the_file_before_the_defaults(tmp_path: Path) -> None:
    file = written(tmp_path, "jobmanager: {port: 1}\nlog.level: error\nparallelism.default: 7")
    environment = {"UNDERSTUDY_JOBMANAGER_PORT": "2", "UNDERSTUDY_LOG_LEVEL": "debug"}
    loaded = load_settings(file, {"jobmanager.port": "3"}, environment)
    settings, found = loaded.settings, loaded.found
    assert (settings.jobmanager_port, settings.log_level, settings.parallelism) == (3, "DEBUG", 7)
    assert settings.jobmanager_host == "127.0.0.1"
    origins = [found[key].origin for key in ("jobmanager.port", "log.level", "parallelism.default", "jobmanager.host")]
    assert origins == ["-D jobmanager.port", "UNDERSTUDY_LOG_LEVEL", "understudy.yaml:3", "default"]


def test_keys_may_be_nested_or_flat(tmp_path: Path) -> None:
    nested = load_settings(written(tmp_path, "savepoints:\n  state:\n    backend: jobmanager\n"), environment={})
    flat = load_settings(written(tmp_path, "savepoints.state.backend: jobmanager\n"), environment={})
    assert nested.settings == flat.settings
    assert nested.found["savepoints.state.backend"].origin == "understudy.yaml:3"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "jobmanager.prot: 1",
            "understudy.yaml:1: there is no setting 'jobmanager.prot'; did you mean 'jobmanager.port'?",
        ),
        ("a: 1\nslots: 2", "understudy.yaml:2: there is no setting 'slots'; did you mean 'taskmanager.slots'?"),
        ("jobmanager: 5", "understudy.yaml:1: jobmanager is a section: wanted settings below it, such as jobmanager."),
        ("xyzzy: 1", "there is no setting 'xyzzy'; see `understudy config`"),
        ("task_mangers: 3", "there is no setting 'task_mangers'; see `understudy config`"),
        ("jobmanager: {port: many}", "jobmanager.port: wanted an integer from 1 to 65535, found 'many' (text)"),
        ("jobmanager.port: true", "wanted an integer from 1 to 65535, found True (a truth value)"),
        ("jobmanager.port: 70000", "wanted an integer from 1 to 65535, found 70000 (an integer)"),
        ("jobmanager.host:", "jobmanager.host: wanted text in one line, found nothing"),
        ("log.level: loud", "wanted DEBUG, INFO, WARNING or ERROR, found 'loud' (text)"),
        ("cluster.workers: node-1", "wanted a list of hosts, as in [node-1, node-2], found 'node-1' (text)"),
        (
            "a: 1\ncluster.masters: [node-1, node-2, Node-1]",
            "understudy.yaml:2: cluster.masters: wanted each host once, found 'Node-1' twice: a host has one J",
        ),
        ("cluster.workers: [-oProxyCommand=x]", "'-oProxyCommand=x' is no name of a host"),
        (
            "log.level: INFO\nlog: {level: DEBUG}",
            "understudy.yaml:2: log.level is set twice; the first is understudy.yaml:1",
        ),
        ("- a\n- b", "wanted settings as `key: value`, found a sequence of 2"),
        ("jobmanager: [", "is no YAML"),
        ("[" * 5000, "cannot be read: it is nested too deep"),
        (f"jobmanager.port: {'9' * 5000}", "understudy.yaml:1: jobmanager.port: YAML cannot make a value of this"),
        ("jobmanager.host: 2020-13-45", "jobmanager.host: YAML cannot make a value of this: month must be in 1..12"),
        ("jobmanager: &a {host: *a}", "jobmanager.host: YAML cannot make a value of this: found unconstructable"),
        ("log.dir: ~nobodyhere/x", "log.dir: there is no user with a home folder such as in '~nobodyhere/x'"),
        ('log.dir: "\\ud800"', "log.dir: wanted a path, that UTF-8 can write"),
        ("heartbeat: {interval-ms: 500, timeout-ms: 500}", "heartbeat.timeout-ms (500) must be longer than"),
        ("savepoints.state.backend: filesystem", "savepoints.state.backend.fs.dir must be set"),
    ],
)
def test_a_mistake_in_the_file_is_answered_with_where_it_is_and_what_was_wanted(
    tmp_path: Path, text: str, said: str
) -> None:
    assert said in refusal(tmp_path, text)


def test_all_mistakes_are_said_at_once(tmp_path: Path) -> None:
    file = written(tmp_path, "jobmanager.prot: 1\nlog.level: loud")
    with pytest.raises(InvalidSettings) as raised:
        load_settings(file, {"nosuch": "1"}, {"UNDERSTUDY_TASKMANAGER_SLOTS": "x"})
    assert [line.partition(":")[0] for line in str(raised.value).splitlines()] == [
        *("understudy.yaml", "understudy.yaml"),
        *("UNDERSTUDY_TASKMANAGER_SLOTS", "-D nosuch"),
    ]


def test_yaml_makes_no_objects(tmp_path: Path) -> None:
    text = 'jobmanager.host: !!python/object/apply:os.system ["touch made"]'
    assert "jobmanager.host: YAML cannot make a value of this" in refusal(tmp_path, text)
    assert not (tmp_path / "made").exists()


def test_paths_of_a_file_are_relative_to_it_and_urls_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    file = written(tmp_path, "log.dir: log\nstorage.dir: s3://bucket/folder\nrun.dir: ~/run")
    settings = load_settings(file, {"security.key-file": "key"}, {}).settings
    assert settings.log_dir == str(tmp_path / "log")
    assert settings.key_file == str(tmp_path / "elsewhere" / "key")
    assert settings.run_dir == str(Path.home() / "run")
    assert settings.checkpoint_dir == "s3://bucket/folder/checkpoints"


def test_the_file_is_the_named_one_or_the_first_that_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, home = tmp_path / "here", tmp_path / "home"
    for folder in (here, home / ".understudy"):
        folder.mkdir(parents=True)
        written(folder, "{}")
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(home))
    assert load_settings(environment={}).file == here / "understudy.yaml"
    (here / "understudy.yaml").unlink()
    assert load_settings(environment={}).file == home / ".understudy" / "understudy.yaml"
    (home / ".understudy" / "understudy.yaml").unlink()
    assert load_settings(environment={}).file is None
    (here / "understudy.yaml").mkdir()
    with pytest.raises(InvalidSettings, match=r"here/understudy\.yaml is a folder, and wanted is a file"):
        load_settings(environment={})
    with pytest.raises(InvalidSettings, match=r"UNDERSTUDY_CONFIG: no file 'nosuch\.yaml'"):
        load_settings(environment={"UNDERSTUDY_CONFIG": "nosuch.yaml"})
    with pytest.raises(InvalidSettings, match=r"--config: no file 'nosuch\.yaml'"):
        load_settings("nosuch.yaml", environment={})


def test_hosts_stand_in_the_settings_or_in_files_beside_them(tmp_path: Path) -> None:
    (tmp_path / "workers").write_text("node-1\n# the new one\nnode-2  # slow\n\n")
    (tmp_path / "masters").write_text("node-0\n")
    loaded = load_settings(written(tmp_path, "cluster.masters: [boss]"), environment={})
    assert (loaded.settings.masters, loaded.settings.workers) == (("boss",), ("node-1", "node-2"))
    assert loaded.found["cluster.workers"].origin == str(tmp_path / "workers")
    (tmp_path / "masters").write_text("node-0\nnode-0\n")
    with pytest.raises(InvalidSettings, match=r"/masters: cluster\.masters: wanted each host once, found 'node-0'"):
        load_settings(written(tmp_path, ""), environment={})
    (tmp_path / "masters").unlink()
    by_flag = load_settings(tmp_path / "understudy.yaml", {"cluster.workers": "a, b"}, {})
    assert by_flag.settings.workers == ("a", "b")


def test_a_variable_that_looks_like_a_setting_is_noted(tmp_path: Path) -> None:
    environment = {"UNDERSTUDY_JOBMANGER_PORT": "1", "UNDERSTUDY_SOMETHING_ELSE": "1", "UNDERSTUDY_LOG": "INFO"}
    loaded = load_settings(written(tmp_path, ""), environment=environment)
    assert loaded.notes == (
        "UNDERSTUDY_JOBMANGER_PORT in the environment is no setting; did you mean UNDERSTUDY_JOBMANAGER_PORT?",
    )


def test_each_default_fits_its_own_setting_as_a_value_and_as_text() -> None:
    for setting in SETTINGS.values():
        assert setting.kind.read(setting.default) == setting.default, setting.key
        text = ",".join(setting.default) if isinstance(setting.default, tuple) else str(setting.default)
        assert setting.kind.parse(text) == setting.default, setting.key


def test_what_holds_without_a_setting_is_the_same_on_hosts_and_in_one_process() -> None:
    here = {each.name: each.default for each in fields(ClusterSettings)}
    there = {each.name: each.default for each in fields(HostSettings)}
    both = {name for name in here.keys() & there.keys() if name.endswith("_ms")}
    assert both >= {"heartbeat_interval_ms", "heartbeat_timeout_ms", "slot_timeout_ms", "cancel_timeout_ms"}
    assert {name: here[name] for name in both} == {name: there[name] for name in both}


def test_an_ipv6_address_is_put_in_brackets() -> None:
    assert HostSettings(jobmanager_host="fd00::1", jobmanager_port=1).jobmanager_address == "tcp://[fd00::1]:1"


def test_keys_are_named_by_the_file_beside_it_and_by_the_variable_first(tmp_path: Path) -> None:
    file = written(tmp_path, "encryption.keys: keys\n")
    assert load_settings(file, environment={}).settings.encryption_keys == str(tmp_path / "keys")
    named = load_settings(file, environment={"UNDERSTUDY_ENCRYPTION_KEYS": "/other"})
    assert named.settings.encryption_keys == "/other"


def test_all_that_can_be_said_of_zookeeper_can_be_said_in_the_file(tmp_path: Path) -> None:
    assert set(ZOOKEEPER_KEYS) <= SETTINGS.keys()
    file = written(
        tmp_path,
        "recovery.mode: zookeeper\nsecurity.key-file: /k\nhigh-availability:\n  zookeeper:\n    quorum: one:2181\n"
        "    auth-file: /a\n    auth-scheme: sasl\n    client.acl: open\n"
        "    tls: {ca-file: /ca, cert-file: /c, key-file: /ck, key-password-file: /cp}\n",
    )
    found = load_settings(file, environment={}).settings.high_availability()
    assert (found.auth_file, found.auth_scheme) == ("/a", "sasl")
    assert (found.acl, found.tls_password_file) == ("open", "/cp")
    assert (found.ca_file, found.cert_file, found.tls_key_file) == ("/ca", "/c", "/ck")


def test_a_choice_that_may_be_empty_says_so_in_words() -> None:
    assert OneOf(("", "open", "creator")).wanted == "open, creator or nothing"
    assert OneOf(("digest", "sasl")).wanted == "digest or sasl"
