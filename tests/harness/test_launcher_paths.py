"""A launcher may name folders to be removed, and only its own: the kit removes them with the rights of its user."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.servers.errors import StartError
from holdfast.servers.folders import remove_tree
from holdfast.servers.janitor import Janitor
from holdfast.servers.launcher import Launcher

# Reads the request, makes `path` as the test says, names it, and leaves everything as it is when it ends.
SCRIPT = """
import json, os, sys, tempfile
folder = json.loads(sys.stdin.readline())["dir"]
{make}
print(json.dumps({{"config": {{}}, "paths": [path]}}), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temp folder of the kit and of its launchers."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture
def victim(temp: Path) -> Path:
    """A folder of the user, beside those of launchers."""
    folder = temp / "victim"
    folder.mkdir()
    (folder / "work").write_text("of years", encoding="utf-8")
    return folder


@contextmanager
def launched(make: str) -> Iterator[Launcher]:
    """A launcher that does what `make` says, in a run that ends in order."""
    with Janitor() as janitor:
        command = (sys.executable, "-c", SCRIPT.format(make=make))
        launcher = Launcher(command, contract="toy", folder=janitor.make_folder(), config={}, janitor=janitor)
        try:
            yield launcher
        finally:
            launcher.close()


@pytest.mark.parametrize(
    "make",
    [
        "path = tempfile.mkdtemp(prefix='holdfast-')",
        "path = tempfile.mkdtemp(prefix='holdfast-pg-') + '/data'; os.mkdir(path)",
        "path = folder + '/template'; os.mkdir(path)",
        "path = folder",
    ],
    ids=["temp", "inside-temp", "given", "given-itself"],
)
def test_a_folder_that_the_launcher_made_goes_with_the_run(make: str, temp: Path) -> None:
    with launched(make):
        there = {path.name for path in temp.rglob("*")}
    left = {path.name for path in temp.rglob("*")}
    assert there - left
    # Of a folder that it did not name, the part that it did name is gone.
    assert all(name.startswith("holdfast-pg-") for name in left)


@pytest.mark.parametrize(
    "make",
    [
        "os.mkdir(os.environ['TMPDIR'] + '/holdfast-x'); path = os.environ['TMPDIR'] + '/holdfast-x/../victim'",
        "path = os.environ['TMPDIR'] + '/holdfast-x'; os.symlink('victim', path)",
        "os.mkdir(os.environ['TMPDIR'] + '/holdfast-x'); path = os.environ['TMPDIR'] + '/holdfast-x/y'; "
        "os.symlink('../victim', path)",
        "path = os.environ['TMPDIR'] + '/victim'",
        "path = folder + '/link'; os.symlink('../../victim', path)",
        "path = os.environ['TMPDIR'] + '/victim/holdfast-x'; os.mkdir(path)",
        "path = os.environ['TMPDIR'] + '/holdfast-of-another-run'",
        "path = os.environ['TMPDIR']",
        "path = '/'",
        "path = os.environ['TMPDIR'] + '/holdfast-none'",
    ],
    ids=[
        "dots", "link", "link-inside", "other-name", "link-from-given", "deeper", "made-before", "temp-itself", "root",
        "none",
    ],
)  # fmt: skip
def test_any_other_folder_is_refused_and_left_alone(make: str, temp: Path, victim: Path) -> None:
    (temp / "holdfast-of-another-run" / "session-1").mkdir(parents=True)
    with pytest.raises(StartError, match="to be removed"), launched(make):
        pass
    assert (victim / "work").exists()
    assert (temp / "holdfast-of-another-run" / "session-1").exists()


def test_a_link_that_takes_the_place_of_a_folder_later_is_not_followed(temp: Path, victim: Path) -> None:
    with launched("path = tempfile.mkdtemp(prefix='holdfast-mine-')"):
        made = next(temp.glob("holdfast-mine-*"))
        made.rmdir()
        made.symlink_to(victim)
    assert (victim / "work").exists()


def test_another_folder_that_takes_the_place_later_is_left_alone(temp: Path, victim: Path) -> None:
    with launched("path = tempfile.mkdtemp(prefix='holdfast-mine-')"):
        made = next(temp.glob("holdfast-mine-*"))
        made.rename(temp / "aside")
        victim.rename(made)
    assert (made / "work").exists()


def test_removing_a_tree_never_goes_through_a_link(tmp_path: Path, victim: Path) -> None:
    mode = victim.stat().st_mode
    (tmp_path / "link").symlink_to(victim)
    remove_tree(tmp_path / "link")
    assert not (tmp_path / "link").is_symlink()
    assert (victim / "work").exists()
    assert victim.stat().st_mode == mode
