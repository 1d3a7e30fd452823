"""The cluster's keys, their file, and who is let in."""

from __future__ import annotations

import os

import pytest
import zmq
from zmq.utils import z85

from understudy.runtime.system import ActorSystem, CurveKeys, InsecureKeyFile
from understudy.runtime.system.remote.curve import zap_reply


def test_a_key_file_is_its_owners_alone(tmp_path):
    keys, path = CurveKeys.generate(), tmp_path / "key"
    keys.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert CurveKeys.load(path) == keys


def test_a_key_file_is_never_overwritten(tmp_path):
    path = tmp_path / "key"
    CurveKeys.generate().save(path)
    with pytest.raises(FileExistsError):
        CurveKeys.generate().save(path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_file_that_others_can_read_is_refused(tmp_path, mode):
    path = tmp_path / "key"
    CurveKeys.generate().save(path)
    path.chmod(mode)
    with pytest.raises(InsecureKeyFile, match=f"{mode:04o}"):
        CurveKeys.load(path)


def test_a_file_without_keys_is_refused(tmp_path):
    path = tmp_path / "key"
    path.write_text("secret")
    path.chmod(0o600)
    with pytest.raises(InsecureKeyFile, match="holds no key pair"):
        CurveKeys.load(path)


def test_the_secret_is_not_shown():
    keys = CurveKeys.generate()
    assert keys.secret.decode() not in repr(keys)


def test_zap_lets_in_exactly_the_clusters_key():
    keys, other = CurveKeys.generate(), CurveKeys.generate()

    def status(*, domain=b"understudy", mechanism=b"CURVE", credentials=None):
        credentials = (z85.decode(keys.public),) if credentials is None else credentials
        return zap_reply([b"1.0", b"1", domain, b"127.0.0.1", b"", mechanism, *credentials], keys)[2]

    assert status() == b"200"
    assert status(credentials=(z85.decode(other.public),)) == b"400"
    assert status(mechanism=b"NULL", credentials=()) == b"400"
    assert status(mechanism=b"PLAIN", credentials=(b"user", b"password")) == b"400"
    assert status(domain=b"elsewhere") == b"400"
    assert status(credentials=(b"short",)) == b"400"
    assert zap_reply([b"1.0"], keys)[2] == b"500"


@pytest.mark.parametrize("bind", ["tcp://0.0.0.0:0", "tcp://*:0", "tcp://10.0.0.1:0", "tcp://[::]:0"])
def test_an_exposed_port_takes_keys(bind):
    with pytest.raises(ValueError, match="CurveKeys"):
        ActorSystem("open", bind=bind, advertised_host="stage")


def test_a_port_on_all_interfaces_takes_a_host_to_be_found_by():
    keys = CurveKeys.generate()
    with pytest.raises(ValueError, match="advertised_host"):
        ActorSystem("open", bind="tcp://0.0.0.0:0", curve=keys)
    with ActorSystem("open", bind="tcp://0.0.0.0:0", curve=keys, advertised_host="localhost") as system:
        assert system.address.startswith("tcp://localhost:")


def test_curve_is_there():
    assert zmq.has("curve")


@pytest.mark.parametrize("lines", [b"x" * 40 + b"\n" + b"y" * 40, b'"' * 40 + b"\n" + b'"' * 40])
def test_two_lines_that_are_no_pair_are_refused(tmp_path, lines):
    path = tmp_path / "key"
    path.write_bytes(lines)
    path.chmod(0o600)
    with pytest.raises(InsecureKeyFile, match="holds no key pair: its lines do not belong together"):
        CurveKeys.load(path)


def test_a_pipe_in_place_of_a_key_file_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(path := tmp_path / "key", 0o600)
    with pytest.raises(InsecureKeyFile, match="is no plain file"):
        CurveKeys.load(path)
