"""The surface that the reference provisions in SQLite files."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.fitness.gather import Names, examine
from conformance.fitness.model import Standing, Status
from conformance.fitness.policy import Policy
from reference_impl.rs4a_replay.provision import provision_sqlite, sqlite_paths
from specs import load_terms
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

    found = examine(str(surface), Names(audit=f"{audit}:audit"), policy)

    assert found.judgement.status is Status.FIT, found.judgement.reasons


def test_without_a_declaration_neither_writer_nor_durability_is_proven_and_replace_erases(
    provisioned: tuple[Path, Path],
) -> None:
    surface, audit = provisioned

    judgement = examine(str(surface), Names(audit=f"{audit}:audit"), Policy()).judgement

    assert judgement.status is Status.NOT_FIT
    standings = {f.criterion.value: f.standing for f in judgement.findings if f.standing is not Standing.PROVEN}
    assert standings == {"e": Standing.UNPROVEN, "f": Standing.REFUTED, "g": Standing.REFUTED}
    assert {reason.code for reason in judgement.reasons} == {
        "CONNECTION_UNDECLARED",
        "WRITER_UNPROVEN",
        "CHANGE_ADMITTED",
    }
