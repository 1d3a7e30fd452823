"""Machines: which processes a cluster has, where, and the very command that ssh is given."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from understudy import InvalidSettings, ProcessFailed
from understudy.runtime.hosts.machines import Found, Machines, Place, at_once, is_here
from understudy.runtime.hosts.settings_sources import load_settings

SSH = """#!{python}
import json, sys
open({log!r}, "a").write(json.dumps([*sys.argv[1:], sys.stdin.read()]) + "\\n")
host, command = sys.argv[-2:]
if host == "down":
    sys.exit("ssh: connect to host down port 22: No route to host")
if "--status" in command:
    print('[{{"role": "taskmanager", "name": "taskmanager-1", "pid": 7, "address": "tcp://far:1", "log_file": "l"}}]')
"""


class Ssh:
    """A program in the place of ssh, which keeps what it was given."""

    def __init__(self, folder: Path) -> None:
        self.path, self.log = folder / "ssh", folder / "log"
        self.path.write_text(SSH.format(python=sys.executable, log=str(self.log)))
        self.path.chmod(0o755)

    def given(self) -> list[list[str]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@pytest.fixture
def ssh(tmp_path: Path) -> Ssh:
    return Ssh(tmp_path)


def machines(folder: Path, ssh: Ssh, text: str, **environment: str) -> Machines:
    file = folder / "understudy.yaml"
    file.write_text(f"cluster.ssh: {ssh.path} -p 2222\n{text}")
    return Machines(load_settings(file, {"log.level": "DEBUG"}, environment))


def test_the_other_hosts_are_reached_with_the_same_settings(tmp_path: Path, ssh: Ssh) -> None:
    text = "cluster: {masters: [far], workers: [far, far], command: /opt/my understudy}"
    cluster = machines(tmp_path, ssh, text, UNDERSTUDY_PARALLELISM_DEFAULT="3")
    assert cluster.places() == [Place("jobmanager", "far"), Place("taskmanager", "far"), Place("taskmanager", "far")]
    assert cluster.hosts() == ["far"]
    outcomes = at_once(cluster.start, cluster.places()[:2])
    assert [each.is_done for each in outcomes] == [True, True]
    options = f"--config {tmp_path}/understudy.yaml -D parallelism.default=3 -D log.level=DEBUG"
    assert sorted(ssh.given()) == [
        ["-p", "2222", "far", f"/opt/my understudy jobmanager --detach {options} -D jobmanager.host=far", ""],
        ["-p", "2222", "far", f"/opt/my understudy taskmanager --detach {options}", ""],
    ]


def test_one_that_cannot_be_reached_is_said_and_the_others_go_on(tmp_path: Path, ssh: Ssh) -> None:
    cluster = machines(tmp_path, ssh, "cluster.workers: [down, far]")
    outcomes = at_once(cluster.stop, cluster.places()[1:])
    assert [(each.place.host, each.is_done) for each in outcomes] == [("down", False), ("far", True)]
    assert outcomes[0].text == "ssh: connect to host down port 22: No route to host"
    assert cluster.find("down", "taskmanager") == Found("down", "taskmanager", trouble=outcomes[0].text)
    assert [each.pid for each in cluster.find("far", "taskmanager").running] == [7]


def test_the_key_goes_through_ssh_and_no_command_line(tmp_path: Path, ssh: Ssh) -> None:
    (tmp_path / "key").write_text("secret")
    cluster = machines(tmp_path, ssh, f"security.key-file: {tmp_path}/key\ncluster.workers: [far]")
    assert cluster.send_key("far").is_done
    (given,) = ssh.given()
    assert given[-1] == "secret"
    assert not any("secret" in each for each in given[:-1])


def test_without_a_list_all_is_on_this_host(tmp_path: Path, ssh: Ssh) -> None:
    cluster = machines(tmp_path, ssh, "")
    assert [(each.role, is_here(each.host)) for each in cluster.places()] == [
        ("jobmanager", True),
        ("taskmanager", True),
    ]
    assert cluster.shares_folder()
    assert not machines(tmp_path, ssh, "cluster.workers: [far]").shares_folder()
    assert machines(tmp_path, ssh, "cluster.workers: [far]\nstorage.dir: /srv/shared").shares_folder()


def test_two_jobmanagers_of_which_none_takes_over_are_refused(tmp_path: Path, ssh: Ssh) -> None:
    with pytest.raises(InvalidSettings, match=r"recovery\.mode standalone has one JobManager"):
        machines(tmp_path, ssh, "cluster.masters: [a, b]").places()


def test_two_names_of_this_host_are_one_place(tmp_path: Path, ssh: Ssh) -> None:
    """Else the process that has one name is found for the other one, too."""
    cluster = machines(tmp_path, ssh, "cluster.workers: [127.0.0.1, far, localhost]")
    assert [each.host for each in cluster.places()] == ["127.0.0.1", "127.0.0.1", "far", "127.0.0.1"]
    twice = machines(tmp_path, ssh, "recovery.mode: storage\ncluster.masters: [127.0.0.1, far, localhost]")
    with pytest.raises(InvalidSettings, match=r"cluster\.masters names this host twice: 127\.0\.0\.1, localhost"):
        twice.places()


def test_an_ssh_that_is_not_there_is_said(tmp_path: Path, ssh: Ssh) -> None:
    cluster = machines(tmp_path, ssh, "")
    ssh.path.unlink()
    with pytest.raises(ProcessFailed, match=r"is not installed here: see cluster\.ssh"):
        cluster.run("far", ["list"])


def test_what_runs_already_is_not_started_again(tmp_path: Path, ssh: Ssh) -> None:
    """A TaskManager process runs on each of two hosts; one host wants two."""
    cluster = machines(tmp_path, ssh, "cluster: {masters: [down], workers: [far, far, other]}")
    running, missing = cluster.split(cluster.places())
    assert [(each.place.host, each.is_done) for each in running] == [("far", True), ("other", True)]
    assert running[0].text == "taskmanager-1, process 7 at tcp://far:1, not yet registered; its log is l: runs already"
    assert missing == [Place("jobmanager", "down"), Place("taskmanager", "far")]
