"""The operator's command line: two shells on one folder, as the README of the reference has it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from nacl import pwhash

from holdfast.reference_impl.hx_sync import keys, operate
from holdfast.reference_impl.hx_sync.keys import KeyInvalidError
from tests.hx_sync.devices import KEY, uuid
from tests.pace import busy

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "reference_impl/hx_sync/README.md"


def run(*words: str | Path) -> int:
    return operate.main([str(word) for word in words])


def digest(text: str) -> str:
    found = re.search(r"^digest ([0-9a-f]{64})$", text, re.MULTILINE)
    assert found is not None, text
    return found[1]


def test_the_readme_can_be_followed(tmp_path: Path) -> None:
    """Every command of its two shells, in its order, word for word."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    python = shlex.quote(sys.executable)
    script = "\n".join(["set -e", f'python() {{ {python} "$@"; }}', *lines])
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=busy(60),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = re.findall(r"^digest ([0-9a-f]{64})$", done.stdout, re.MULTILINE)
    assert len(shown) == 4
    assert shown[0] == shown[1] != shown[2] == shown[3]


# Vault keys: 256 bits and nothing that is made to fit, from a file, a keyring or a passphrase.


class InMemory(KeyringBackend):
    """A keyring that lasts as long as a test."""

    priority = 1.0
    kept: dict[tuple[str, str], str]

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password


@pytest.fixture
def ring() -> Iterator[InMemory]:
    before, made = keyring.get_keyring(), InMemory()  # type: ignore[no-untyped-call]
    made.kept = {}
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


def test_a_key_file_is_read_and_has_to_be_private(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY.hex() + "\n", encoding="ascii")
    file.chmod(0o600)
    assert keys.from_file(file) == KEY.hex()

    file.chmod(0o640)
    with pytest.raises(KeyInvalidError, match="chmod 600"):
        keys.from_file(file)
    with pytest.raises(KeyInvalidError):
        keys.from_file(tmp_path / "none")
    file.write_text(KEY.hex() + "\n\n", encoding="ascii")
    file.chmod(0o600)
    with pytest.raises(KeyInvalidError):
        keys.from_file(file)


def test_a_keyring_keeps_one_key_for_each_vault(ring: InMemory) -> None:
    other = "ff" * 32
    with pytest.raises(KeyInvalidError):
        keys.from_keyring(uuid(1))

    keys.into_keyring(uuid(1), KEY.hex())
    keys.into_keyring(uuid(2), other)
    assert keys.from_keyring(uuid(1)) == KEY.hex()
    assert keys.from_keyring(uuid(2)) == other
    with pytest.raises(KeyInvalidError):
        keys.into_keyring(uuid(1), other)
    ring.set_password("holdfast hx vault", uuid(1), "short")
    with pytest.raises(KeyInvalidError):
        keys.from_keyring(uuid(1))


def test_a_passphrase_makes_one_key_for_each_vault(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (keys.OPERATIONS, keys.MEMORY) == (pwhash.argon2id.OPSLIMIT_MODERATE, pwhash.argon2id.MEMLIMIT_MODERATE)
    monkeypatch.setattr(keys, "OPERATIONS", pwhash.argon2id.OPSLIMIT_MIN)
    monkeypatch.setattr(keys, "MEMORY", pwhash.argon2id.MEMLIMIT_MIN)
    made = keys.from_passphrase(b"correct horse", uuid(1))

    assert len(keys.read(made)) == 32
    assert made == keys.from_passphrase(b"correct horse", uuid(1))
    assert made != keys.from_passphrase(b"correct horse", uuid(2))
    assert made != keys.from_passphrase(b"correct Horse", uuid(1))
    with pytest.raises(KeyInvalidError):
        keys.from_passphrase(b"", uuid(1))


def test_devices_share_a_key_in_the_keyring(ring: InMemory, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "store").mkdir()
    words = ["--store", str(tmp_path / "store"), "--vault", uuid(1)]
    assert operate.main(["init", "--home", str(tmp_path / "one"), *words, "--keyring"]) == 1
    assert "KEY_INVALID" in capsys.readouterr().err
    assert operate.main(["init", "--home", str(tmp_path / "one"), *words, "--new-keyring"]) == 0
    assert operate.main(["init", "--home", str(tmp_path / "two"), *words, "--keyring"]) == 0
    assert operate.main(["import", "--home", str(tmp_path / "two")]) == 0
    (key,) = ring.kept.values()
    assert not any(key in path.read_text() for path in tmp_path.rglob("hx.json"))
