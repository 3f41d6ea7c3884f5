"""The operator's command line: two shells on one folder, as the README of the reference has it."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.reference_impl.hx_sync import operate
from tests.hx_sync.devices import at, uuid

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "reference_impl/hx_sync/README.md"
VAULT = "0f4c2b6e-5d1a-4f7e-9b3c-8a2d1e6f7c90"


def run(*words: str | Path) -> int:
    return operate.main([str(word) for word in words])


def digest(text: str) -> str:
    found = re.search(r"^digest ([0-9a-f]{64})$", text, re.MULTILINE)
    assert found is not None, text
    return found[1]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    return folder


def init(home: Path, store: Path, *words: str | Path) -> int:
    return run("init", "--home", home, "--store", store, "--vault", VAULT, *words)


def batch(path: Path, *numbers: int) -> Path:
    events = [
        {"session_id": uuid(1), "seq": number, "ts": at(number), "kind": "note", "data": {"n": number}}
        for number in numbers
    ]
    path.write_text(json.dumps({"events": events}), encoding="utf-8")
    return path


def test_two_devices_converge_on_a_folder(tmp_path: Path, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two, key = tmp_path / "one", tmp_path / "two", tmp_path / "key"
    assert init(one, store, "--new-key-file", key) == 0
    assert key.stat().st_mode & 0o777 == 0o600
    assert init(two, store, "--key-file", key) == 0
    assert init(two, store, "--key-file", key) == 0
    assert run("publish", batch(tmp_path / "b", 1, 2), "--home", one, "--segment-id", uuid(7)) == 0
    assert run("publish", tmp_path / "b", "--home", one, "--segment-id", uuid(7)) == 0
    assert run("publish", batch(tmp_path / "c", 3), "--home", two) == 0
    assert run("publish", "--blob", tmp_path / "c", "--home", two) == 0
    assert run("publish", "--manifest", "--home", two) == 0
    for home in (one, two):
        assert run("import", "--home", home) == 0
    assert run("forget", "--since", at(2), "--home", one) == 0
    assert run("import", "--home", two) == 0
    shown = []
    capsys.readouterr()
    for home in (one, two):
        assert run("sync", "status", "--home", home) == 0
        shown.append(capsys.readouterr().out)
    assert digest(shown[0]) == digest(shown[1])
    assert "events 1\nforgotten 2\n" in shown[0]
    assert run("verify", "--home", two) == 0
    assert capsys.readouterr().out == "sound 5, rejected 0, foreign 0\n"
    # Neither the key nor what was published stands in the shared folder or beside the devices.
    digits = key.read_text(encoding="ascii").strip()
    for file in (
        path for path in tmp_path.rglob("*") if path.is_file() and path not in (key, tmp_path / "b", tmp_path / "c")
    ):
        data = file.read_bytes()
        assert digits.encode() not in data
        assert bytes.fromhex(digits) not in data
        if store in file.parents:
            assert b"note" not in data


def test_what_is_damaged_is_told_by_verify_and_import(
    tmp_path: Path, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "one"
    init(home, store, "--new-key-file", tmp_path / "key")
    run("publish", batch(tmp_path / "b", 1), "--home", home)
    (file,) = store.rglob("*.hxseg")
    file.write_bytes(file.read_bytes()[:-1])
    (file.parent / "copy of it.hxseg").write_bytes(b"")
    capsys.readouterr()

    assert run("verify", "--home", home) == 1
    out = capsys.readouterr().out
    assert "rejected OBJECT_UNAUTHENTIC" in out
    assert "foreign" in out
    assert run("import", "--home", home) == 0
    assert "rejected OBJECT_UNAUTHENTIC" in capsys.readouterr().out


def test_every_refusal_has_status_1_and_says_what_to_do(
    tmp_path: Path, store: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, key = tmp_path / "one", tmp_path / "key"
    init(home, store, "--new-key-file", key)
    run("publish", batch(tmp_path / "b", 1), "--home", home, "--segment-id", uuid(7))
    assert run("publish", batch(tmp_path / "b", 2), "--home", home, "--segment-id", uuid(7)) == 1
    assert "OBJECT_EXISTS" in capsys.readouterr().err
    assert run("forget", "--since", "2999-01-01T00:00:00Z", "--home", home) == 1
    assert "TOMBSTONE_MALFORMED" in capsys.readouterr().err
    key.chmod(0o644)
    assert run("import", "--home", home) == 1
    assert "KEY_INVALID" in capsys.readouterr().err
    key.chmod(0o600)
    (store / "HXSync").rename(store / "elsewhere")
    assert run("import", "--home", home) == 1
    assert "to do: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["sync"],
        ["import"],
        ["forget", "--home", "."],
        ["import", "--home", "nowhere"],
        ["init", "--home", "x", "--store", "nowhere", "--new-key-file", "k"],
        ["init", "--home", "x", "--store", "."],
    ],
)
def test_a_wrong_command_line_has_status_2(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOLDFAST_HX_HOME", raising=False)
    assert run(*words) == 2
    assert capsys.readouterr().err


def test_a_key_of_another_vault_opens_nothing(tmp_path: Path, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    init(one, store, "--new-key-file", tmp_path / "key")
    run("publish", batch(tmp_path / "b", 1), "--home", one)
    init(two, store, "--new-key-file", tmp_path / "other")
    capsys.readouterr()

    assert run("import", "--home", two) == 0
    assert "imported 0, skipped 0\nrejected OBJECT_UNAUTHENTIC" in capsys.readouterr().out


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
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = re.findall(r"^digest ([0-9a-f]{64})$", done.stdout, re.MULTILINE)
    assert len(shown) == 4
    assert shown[0] == shown[1] != shown[2] == shown[3]
