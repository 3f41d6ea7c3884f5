"""The identity of the kit: a digest over every file that can move a verdict, and the versions of libraries."""

from __future__ import annotations

import hashlib
import tomllib
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

import pytest

from holdfast import DISTRIBUTION
from holdfast.conformance.run import kit
from tests.packaging.test_tree import ROOT, repository_files

JUDGING = ("conformance", "holdfast", "reports", "servers", "specs", "vectors")


@pytest.fixture(scope="module")
def code() -> dict[str, str]:
    """The files of the kit that runs these tests."""
    return kit.files_of(files("holdfast"))


@pytest.fixture(scope="module")
def libraries() -> dict[str, str]:
    """The libraries of the kit that runs these tests."""
    return kit.libraries_of(DISTRIBUTION)


def test_every_file_of_the_judging_packages_is_covered(code: dict[str, str]) -> None:
    tracked = {
        name.removeprefix("holdfast/"): hashlib.sha256((ROOT / name).read_bytes()).hexdigest()
        for name in repository_files()
        if name.split("/")[0] in JUDGING
    }
    assert tracked.items() <= code.items()
    assert {Path(name).suffix for name in code} >= {".j2", ".json", ".jsonl", ".mjs", ".py", ".rs", ".toml", ".yaml"}
    own = {name for name in tracked if "/" not in name}
    assert {name.split("/")[0] for name in code} == {*JUDGING, *own} - {"holdfast"}


def test_the_digest_of_the_kit_is_over_all_of_it(code: dict[str, str], libraries: dict[str, str]) -> None:
    assert (kit.installed_kit().digest, kit.installed_kit().libraries) == (kit.digest_of(code), libraries)


def test_one_byte_of_any_file_changes_the_digest(code: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a byte more")
    other = kit.files_of(tmp_path)["file"]
    changed = {kit.digest_of({**code, name: other}) for name in code}
    assert len(changed) == len(code)
    assert kit.digest_of(code) not in changed


def test_one_byte_in_a_tree_changes_the_digest_whatever_the_suffix_and_through_a_link(tmp_path: Path) -> None:
    beside, package = tmp_path / "beside" / "inner", tmp_path / "package"
    beside.mkdir(parents=True)
    package.mkdir()
    (package / "linked").symlink_to("../beside")
    for name in ("page.html.j2", "settings.toml", "query.sql", "runner.mjs", "LICENSE", ".hidden"):
        file = beside / name
        file.write_bytes(b"1")
        before = kit.digest_of(kit.files_of(package))
        file.write_bytes(b"2")
        assert kit.digest_of(kit.files_of(package)) != before


def test_the_reference_and_compiled_files_do_not_change_the_digest(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_bytes(b"1")
    before = kit.files_of(tmp_path)
    for name in ("reference_impl", "__pycache__"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "code.py").write_bytes(b"1")
    assert kit.files_of(tmp_path) == before


def test_every_required_library_stands_beside_the_digest(libraries: dict[str, str]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert len(libraries) == len(project["dependencies"])
    assert libraries["jsonschema-rs"] == version("jsonschema-rs")
