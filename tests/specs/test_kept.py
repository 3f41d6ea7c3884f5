"""What is kept of a contract's files is what they say, and never stands in for a file that has changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.specs.errors import SpecError
from holdfast.specs.loader import kept
from holdfast.specs.registry import contract_names, folder_of
from holdfast.specs.yamlfile import read_yaml


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = tmp_path / "contract.yaml"
    path.write_text("name: a\nnumbers: [1, 2.5, null, true]\n", encoding="utf-8")
    return path


def _not_read(_path: Path) -> object:
    raise AssertionError("the file was read, although what it says was kept")


@pytest.mark.parametrize("name", contract_names())
def test_a_file_is_read_once_and_then_taken_from_what_was_kept(name: str, file: Path) -> None:
    for source in ("contract.yaml", "methods.yaml"):
        file.write_bytes((folder_of(name) / source).read_bytes())
        assert kept(file, read_yaml) == kept(file, _not_read) == read_yaml(file)


def test_a_file_that_has_changed_is_read_again(file: Path) -> None:
    kept(file, read_yaml)
    file.write_text("name: b\n", encoding="utf-8")
    assert kept(file, read_yaml) == {"name": "b"}
    assert kept(file, _not_read) == {"name": "b"}


@pytest.mark.parametrize("damage", [b"", b"[]", b"{}", b"\xff", b'{"source": 1}'])
def test_damage_to_what_was_kept_does_no_harm(damage: bytes, file: Path) -> None:
    first = kept(file, read_yaml)
    (place,) = (file.parent / "__pycache__").iterdir()
    place.write_bytes(damage)
    assert kept(file, read_yaml) == first
    assert kept(file, _not_read) == first


def test_nothing_is_kept_where_python_keeps_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    kept(file, read_yaml)
    assert list(file.parent.iterdir()) == [file]


def test_what_cannot_be_read_is_not_kept(file: Path) -> None:
    file.write_text("name: a\nname: b\n", encoding="utf-8")
    with pytest.raises(SpecError):
        kept(file, read_yaml)
    assert list(file.parent.iterdir()) == [file]


def test_an_implementation_that_is_started_again_parses_no_yaml() -> None:
    ask = "import sys; from holdfast.specs import kept_terms; kept_terms('calyx-replay'); print('yaml' in sys.modules)"
    started = [
        subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, env={}).stdout
        for _ in range(2)
    ]
    assert started[1].strip() == "False"
