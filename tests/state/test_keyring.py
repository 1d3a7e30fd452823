"""Encryption at rest: sealed files give back what was written, in any pieces, and nothing else, ever."""

from __future__ import annotations

import base64
from pathlib import Path
from uuid import uuid4

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from understudy.messages import CheckpointId, ExecutionAttemptId, JobId, StateHandle, SubtaskIndex, VertexId
from understudy.state import CorruptState, InvalidEncryptionKeys, MissingState, WrongEncryptionKey
from understudy.state.backends.backend import SnapshotTarget
from understudy.state.checkpoints.local_copies import LocalCopies
from understudy.state.keyring import CHUNK_BYTES, HEAD_BYTES, VARIABLE, Keyring, add_key, key_id, opened, plain_size
from understudy.state.record_log import RecordLog
from understudy.state.storage import CheckpointStorage

KEY = bytes(range(32))
OTHER = bytes(32)
SIZES = st.one_of(
    st.integers(0, 100),
    st.builds(lambda count, more: max(0, count * CHUNK_BYTES + more), st.integers(0, 3), st.integers(-2, 2)),
)


def sealed(data: bytes, key: bytes = KEY, salt: bytes = bytes(16)) -> bytes:
    return b"".join(Keyring([key], new_salt=lambda: salt).sealed([data]))


def some(size: int) -> bytes:
    return (b"state" * (size // 5 + 1))[:size]


def keys_in(path: Path, *keys: bytes) -> str:
    path.write_bytes(b"".join(base64.b64encode(key) + b"\n" for key in keys))
    path.chmod(0o600)
    return str(path)


@pytest.fixture
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Named by the environment; one key."""
    path = tmp_path / "keys"
    monkeypatch.setenv(VARIABLE, keys_in(path, KEY))
    return path


class TestFormat:
    @given(st.lists(SIZES, max_size=4))
    def test_what_was_sealed_in_any_parts_is_opened(self, sizes: list[int]) -> None:
        parts = [some(size) for size in sizes]
        data = b"".join(Keyring([KEY]).sealed(parts))
        assert opened(Keyring([OTHER, KEY]), "file", data) == b"".join(parts)
        assert plain_size(len(data)) == sum(sizes)

    @given(SIZES)
    @pytest.mark.usual_sizes
    def test_it_is_the_one_that_the_docstring_describes(self, size: int) -> None:
        """Opened by hand, with the primitives."""
        data = sealed(some(size), salt=b"sixteen bytes ..")
        head, body = data[:32], data[32:]
        assert head == b"\x89USE1\r\n\x1a" + bytes.fromhex(key_id(KEY)) + b"sixteen bytes .."
        own = HKDF(SHA256(), 32, head[16:], b"understudy state at rest 1").derive(KEY)
        chunks = [body[start : start + 65_552] for start in range(0, len(body), 65_552)]
        found = [
            AESGCM(own).decrypt(bytes(3) + number.to_bytes(8, "big") + bytes([number == len(chunks) - 1]), chunk, head)
            for number, chunk in enumerate(chunks)
        ]
        assert b"".join(found) == some(size)

    def test_each_changed_byte_and_each_truncation_is_noticed(self) -> None:
        data = sealed(b"small")
        for place in range(len(data)):
            changed = bytearray(data)
            changed[place] ^= 1
            with pytest.raises((CorruptState, WrongEncryptionKey)):
                opened(Keyring([KEY]), "file", bytes(changed))
        for size in range(len(data)):
            with pytest.raises(CorruptState, match="file: "):
                opened(Keyring([KEY]), "file", data[:size])

    def test_chunks_left_out_cut_off_or_in_another_order_are_noticed(self) -> None:
        data = sealed(some(3 * CHUNK_BYTES))
        head, size = data[:HEAD_BYTES], CHUNK_BYTES + 16
        one, two, three = (data[HEAD_BYTES + at * size :][:size] for at in range(3))
        for body in (one + two, two + three, two + one + three, one + two + three + three, three, b""):
            with pytest.raises(CorruptState):
                opened(Keyring([KEY]), "file", head + body)
        with pytest.raises(CorruptState):
            opened(Keyring([KEY]), "file", sealed(b"", salt=bytes(15) + b"1")[:HEAD_BYTES] + one + two + three)

    def test_the_same_bytes_are_sealed_differently_each_time(self) -> None:
        keys = Keyring([KEY])
        assert b"".join(keys.sealed([b"same"])) != b"".join(keys.sealed([b"same"]))


class TestStorage:
    @pytest.fixture(params=["path", "memory"])
    def url(self, request: pytest.FixtureRequest, tmp_path: Path) -> str:
        return f"memory://keyring-{uuid4().hex}" if request.param == "memory" else f"{tmp_path}/checkpoints"

    def raw(self, storage: CheckpointStorage, path: str) -> bytes:
        return bytes(storage._fs.cat_file(f"{storage.root}/{path}"))

    def test_files_are_sealed_and_sizes_and_checksums_are_of_what_they_hold(self, url: str, key_file: Path) -> None:
        storage = CheckpointStorage(url)
        handle = storage.write("job-1/chk-1/a", [b"secret", b"secret"])
        assert handle.size_bytes == 12
        assert storage.read(handle) == b"secretsecret"
        storage.check_there(handle)
        storage.verify(handle)
        storage.write_sealed("job-1/b", b"secret too")
        storage.create_sealed("job-1/c", b"secret too")
        assert storage.read_sealed("job-1/b") == storage.read_sealed("job-1/c") == b"secret too"
        assert not any(b"secret" in self.raw(storage, path) for path in storage.list_files())

    @given(SIZES, SIZES, SIZES)
    def test_any_part_is_read(self, size: int, offset: int, length: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("understudy.state.state_files.Keyring.of", lambda _: Keyring([KEY]))
            storage = CheckpointStorage("memory://keyring-parts")
        data = bytes(place % 251 for place in range(size))
        handle = storage.write("part", data)
        assert storage.read_part(handle, offset, length) == data[offset : offset + length]
        assert len(self.raw(storage, "part")) > size

    def test_what_was_written_before_there_were_keys_is_read(
        self, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = CheckpointStorage(url)
        data = some(3 * CHUNK_BYTES)
        handle = before.write("job-1/a", data)
        before.write_sealed("job-1/b", b"plain")
        monkeypatch.setenv(VARIABLE, keys_in(tmp_path / "keys", KEY))
        storage = CheckpointStorage(url)
        assert storage.read(handle) == data
        assert storage.read_part(handle, 2 * CHUNK_BYTES, 7) == data[2 * CHUNK_BYTES :][:7]
        assert storage.read_sealed("job-1/b") == b"plain"
        storage.verify(handle)

    def test_without_the_key_it_is_named_and_nothing_counts_as_damaged(
        self, url: str, key_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        storage = CheckpointStorage(url)
        handle = storage.write("job-1/a", some(100_000))
        storage.write_sealed("job-1/b", b"secret")
        monkeypatch.delenv(VARIABLE)
        without = CheckpointStorage(url)
        monkeypatch.setenv(VARIABLE, keys_in(key_file, OTHER))
        with_another = CheckpointStorage(url)
        wanted = f"is encrypted with key {key_id(KEY)}"
        for ask in (
            lambda one: one.read(handle),
            lambda one: one.verify(handle),
            lambda one: one.read_sealed("job-1/b"),
            lambda one: one.read_part(handle, 0, 10),
        ):
            with pytest.raises(WrongEncryptionKey, match=f"{wanted}, and this process has no keys; name the file"):
                ask(without)
            with pytest.raises(WrongEncryptionKey, match=f"{wanted}, and this process has {key_id(OTHER)} of .*keys;"):
                ask(with_another)

    def test_a_new_key_reads_what_the_old_one_wrote(self, url: str, key_file: Path) -> None:
        handle = CheckpointStorage(url).write("job-1/a", b"old")
        current, *others = add_key(str(key_file))
        assert others == [key_id(KEY)]
        storage = CheckpointStorage(url)
        assert storage.read(handle) == b"old"
        storage.write("job-1/b", b"new")
        assert bytes.fromhex(current) in self.raw(storage, "job-1/b")[:HEAD_BYTES]

    def test_what_a_job_wants_is_checked(self, url: str, key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        storage = CheckpointStorage(url)
        storage.check_encryption("")
        storage.check_encryption(key_id(KEY))
        with pytest.raises(WrongEncryptionKey, match=f"with key {key_id(OTHER)}, and this process has {key_id(KEY)}"):
            storage.check_encryption(key_id(OTHER))
        monkeypatch.delenv(VARIABLE)
        with pytest.raises(WrongEncryptionKey, match="has no keys"):
            CheckpointStorage(url).check_encryption(key_id(KEY))

    def test_the_log_of_an_inlet_is_sealed(self, url: str, key_file: Path) -> None:
        log = CheckpointStorage(url).log("job-1/inlets/a/0")
        assert isinstance(log, RecordLog)
        writer = log.writer("00000001-a", head=[b"secret head"])
        writer.append([b"secret", b""])
        place = writer.segment, writer.length
        writer.append([b"secret again"])
        writer.close()
        segments = log.segments()
        found = [payload for each in segments for payload in log.read(each)[0]]
        assert [each for each in found if each != b"secret head"] == [b"secret", b"", b"secret again"]
        later = log.read(*place)[0] + [p for each in segments if each > place[0] for p in log.read(each)[0]]
        assert later[-1] == b"secret again"
        assert b"secret" not in later[:-1]
        storage = CheckpointStorage(url)
        assert not any(b"secret" in self.raw(storage, path) for path in storage.list_files())

    def test_a_log_that_was_begun_without_keys_is_read_with_them(
        self, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        writer = CheckpointStorage(url).log("logs").writer("00000001-a")
        writer.append([b"before"])
        writer.close()
        monkeypatch.setenv(VARIABLE, keys_in(tmp_path / "keys", KEY))
        log = CheckpointStorage(url).log("logs")
        writer = log.writer("00000002-b")
        writer.append([b"after"])
        writer.close()
        assert [payload for each in log.segments() for payload in log.read(each)[0]] == [b"before", b"after"]
        monkeypatch.delenv(VARIABLE)
        with pytest.raises(WrongEncryptionKey, match="has no keys"):
            CheckpointStorage(url).log("logs").read(log.segments()[1])


def test_copies_on_the_machines_own_disk_are_sealed(tmp_path: Path, key_file: Path) -> None:
    storage = CheckpointStorage(str(tmp_path / "checkpoints"))
    copies = LocalCopies(str(tmp_path / "copies"), VertexId("v"), SubtaskIndex(0), storage.keys)
    where = (JobId("job-1"), CheckpointId(1), VertexId("v"), SubtaskIndex(0), ExecutionAttemptId("a"))
    target = SnapshotTarget(storage, *where, copies=copies)
    source = tmp_path / "sst"
    source.write_bytes(b"secret of RocksDB")
    handles = [
        target.write(target.path, [b"secret"]),
        target.write(target.shared_path("1"), source.read_bytes(), source=str(source)),
    ]
    on_disk = [path for path in (tmp_path / "copies").rglob("*") if path.is_file()]
    assert len(on_disk) == 2
    assert not any(b"secret" in path.read_bytes() for path in on_disk)
    for path in (tmp_path / "checkpoints").rglob("*"):
        if path.is_file():
            path.unlink()
    read = copies.reader(storage)
    assert [read(handle) for handle in handles] == [b"secret", b"secret of RocksDB"]
    without = LocalCopies(str(tmp_path / "copies"), VertexId("v"), SubtaskIndex(0))
    with pytest.raises(MissingState):  # a copy that cannot be opened is passed over
        without.reader(storage)(handles[0])


class TestKeyFile:
    def test_a_new_one_is_for_its_owner_only_and_keeps_what_stood_there(self, tmp_path: Path) -> None:
        path = tmp_path / "keys"
        (first,) = add_key(str(path))
        path.write_text(f"# of last year\n{path.read_text()}")
        assert add_key(str(path))[1:] == (first,)
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.read_text().splitlines()[1] == "# of last year"
        assert Keyring.of({VARIABLE: str(path)}).ids[1:] == (first,)  # type: ignore[union-attr]
        assert [each.name for each in tmp_path.iterdir()] == ["keys"]

    def test_a_comment_may_stand_behind_a_key_and_be_indented(self, tmp_path: Path) -> None:
        path = tmp_path / "keys"
        one, two = (base64.b64encode(key).decode() for key in (KEY, OTHER))
        path.write_text(f"\ufeff{one}  # of this year\n  # of last year:\n\t{two}# it goes in May\n", encoding="utf-8")
        path.chmod(0o600)
        ring = Keyring.of({VARIABLE: str(path)})
        assert ring is not None
        assert ring.ids == (key_id(KEY), key_id(OTHER))

    def test_none_is_named(self) -> None:
        assert Keyring.of({}) is None
        assert Keyring.of({VARIABLE: ""}) is None

    @pytest.mark.parametrize(
        ("text", "match"),
        [
            ("", "wanted a key of 32 bytes in base64 in each line, found none"),
            ("# nothing\n\n", "found none"),
            ("hello world", "line 1: wanted 32 bytes in base64, found what is no base64"),
            ("\nYWJj", "line 2: wanted 32 bytes in base64, found 3 bytes"),
            (2 * (base64.b64encode(KEY).decode() + "\n"), "a key stands in it twice"),
        ],
    )
    def test_what_is_no_key_is_refused_and_stays(self, tmp_path: Path, text: str, match: str) -> None:
        path = tmp_path / "keys"
        path.write_text(text)
        path.chmod(0o600)
        for use in (lambda: Keyring.of({VARIABLE: str(path)}), lambda: add_key(str(path))):
            with pytest.raises(InvalidEncryptionKeys, match=match):
                use()
        assert path.read_text() == text

    def test_one_that_others_can_read_and_one_that_is_not_there_are_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "keys"
        add_key(str(path))
        path.chmod(0o644)
        with pytest.raises(InvalidEncryptionKeys, match=r"others can read it: wanted mode 0600, found 0644; chmod 600"):
            Keyring.of({VARIABLE: str(path)})
        with pytest.raises(InvalidEncryptionKeys, match="cannot be read: No such file"):
            Keyring.of({VARIABLE: str(tmp_path / "nosuch")})
        with pytest.raises(InvalidEncryptionKeys, match="cannot be written: No such file"):
            add_key(str(tmp_path / "nosuch" / "keys"))


def test_a_handle_of_another_file_is_noticed(tmp_path: Path, key_file: Path) -> None:
    """Encryption does not bind a file to its name: the checksum of the handle does."""
    storage = CheckpointStorage(str(tmp_path / "checkpoints"))
    first, second = storage.write("job-1/a", b"first."), storage.write("job-1/b", b"second")
    root = Path(storage.root)
    (root / "job-1/b").replace(root / "job-1/a")
    with pytest.raises(CorruptState, match="CRC-32"):
        storage.read(StateHandle("job-1/a", None, first.size_bytes, first.checksum))
    assert storage.read(StateHandle("job-1/a", None, second.size_bytes, second.checksum)) == b"second"
