"""What is left in a folder, and whom it accuses."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.record import NonConformance
from holdfast.conformance.inspection import files
from holdfast.conformance.suites.calyx_replay import data_at_rest
from holdfast.reference_impl.calyx_replay import operate
from tests.harness.suite_play import bench_of


class Folder:
    """The inspections of a session, of a folder that really is there."""

    def __init__(self, workdir: Path) -> None:
        self._workdir = workdir

    def remains(self, path: str, canaries: Sequence[Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = files.remains(self._workdir, path, canaries)["files"]
        return found

    def file(self, path: str) -> dict[str, Any]:
        del path
        return {"ignored": True}

    def hex64(self, label: str) -> str:
        return label.encode().hex().rjust(64, "0")


def remaining(workdir: Path) -> data_at_rest.Remaining:
    bench = bench_of("calyx-replay", "remaining", lambda: lambda *_: {})
    return data_at_rest.Remaining(bench, cast(SuiteSession, Folder(workdir)))


def test_a_copy_of_the_kits_own_source_accuses_nobody(tmp_path: Path) -> None:
    shutil.copy(data_at_rest.__file__, tmp_path / "copied.py")
    (tmp_path / "copied.py").chmod(0o644)
    remaining(tmp_path).inspect()


def test_a_database_that_others_may_read_is_found_where_nothing_is_searched_for(tmp_path: Path) -> None:
    database = tmp_path / "runtime" / "mailbox" / "replay_state.db"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"")
    database.chmod(0o644)
    with pytest.raises(NonConformance, match="the mode of"):
        remaining(tmp_path).inspect()


# The operator's command line, as a process and from within a session.


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nothing"],
        ["prune"],
        ["receive", "--root", "."],
        ["prune", "--root", "/no/such/folder"],
        ["prune", "--root", ".", "--retention-hours", "x"],
        ["prune", "--root", ".", "--clock", "now"],
        ["receive", "/no/such/file", "--root", "."],
    ],
)
def test_a_wrong_command_line_is_said_to_be_one(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert operate.main(words) == 2
    assert "error: " in capsys.readouterr().err
