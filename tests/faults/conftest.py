"""The stores as subjects, each started the way a user would start it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.conformance.faults.lines import Lines
from tests.conftest import missing
from tests.faults.stores.catalogue import ENVIRONMENT, Store

_GO_STORE = Path(__file__).parent / "stores" / "gostore"


@pytest.fixture(scope="session")
def go_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store in Go, built once."""
    program = tmp_path_factory.mktemp("go") / "gostore"
    subprocess.run(["go", "build", "-o", program, "main.go"], cwd=_GO_STORE, check=True, timeout=120)
    return program


@pytest.fixture
def subject_of(request: pytest.FixtureRequest) -> Callable[[Store], Lines]:
    """A function from a store to its subject; its language has to be at hand."""

    def subject(store: Store) -> Lines:
        if store.family in ("node", "go") and shutil.which(store.family) is None:
            missing(store.family)
        program = request.getfixturevalue("go_store") if store.family == "go" else None
        return Lines(store.command(program), environment=ENVIRONMENT)

    return subject
