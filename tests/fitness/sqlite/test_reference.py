"""The surface that the reference provisions in SQLite files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.conformance.fitness.gather import Names, assess
from holdfast.conformance.fitness.model import Standing, Status
from holdfast.conformance.fitness.policy import Policy
from holdfast.reference_impl.rs4a_replay.provision import provision_sqlite, sqlite_paths
from holdfast.specs import load_terms
from tests.fitness.sqlite.files import FILE_MODE, FOLDER_MODE, OWNER, give
from tests.fitness.sqlite.schemas import DECLARED


@pytest.fixture
def provisioned(tmp_path: Path) -> tuple[Path, Path]:
    """The surface and its audit, given to an account of its own."""
    folder = tmp_path / "registrar"
    provision_sqlite(folder, load_terms("rs4a-replay").relations)
    surface, audit = sqlite_paths(folder)
    for file in (surface, audit):
        give(file, FILE_MODE)
        give(file.parent, FOLDER_MODE)
    give(folder, FOLDER_MODE)
    return surface, audit


def test_it_is_found_and_fit_for_a_declared_account_and_declared_connections(provisioned: tuple[Path, Path]) -> None:
    surface, audit = provisioned
    policy = Policy(sqlite_writer_uid=OWNER, sqlite_connection=DECLARED)
    found = assess(str(surface), Names(audit=f"{audit}:audit"), policy)
    assert found.judgement.status is Status.FIT, found.judgement.reasons


def test_without_a_declaration_neither_writer_nor_durability_is_proven_and_replace_erases(
    provisioned: tuple[Path, Path],
) -> None:
    surface, audit = provisioned
    judgement = assess(str(surface), Names(audit=f"{audit}:audit"), Policy()).judgement
    assert judgement.status is Status.NOT_FIT
    standings = {f.criterion.value: f.standing for f in judgement.findings if f.standing is not Standing.PROVEN}
    assert standings == {"e": Standing.UNPROVEN, "f": Standing.REFUTED, "g": Standing.REFUTED}
    assert {reason.code for reason in judgement.reasons} == {
        "CONNECTION_UNDECLARED",
        "WRITER_UNPROVEN",
        "CHANGE_ADMITTED",
    }


def test_no_copy_of_the_rows_outlives_a_look_that_was_killed(provisioned: tuple[Path, Path], tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words = [sys.executable, "-P", "-m", "holdfast.conformance.cli", "fitness", str(provisioned[0])]
    with subprocess.Popen(
        words, cwd=tmp_path, env={**os.environ, "TMPDIR": str(temporary)}, stdout=subprocess.DEVNULL
    ) as child:
        deadline = time.monotonic() + 60
        while not list(temporary.glob("*/*/*.sqlite3")) and time.monotonic() < deadline:
            time.sleep(0.005)
        copied = list(temporary.glob("*/*/*.sqlite3"))
        child.kill()
    assert copied
    deadline = time.monotonic() + 60
    while list(temporary.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert list(temporary.iterdir()) == []
