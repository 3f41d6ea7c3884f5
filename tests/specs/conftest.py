"""A copy of the toy contract that a test may spoil."""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.specs import Contract
from holdfast.specs.loader import read_contract
from holdfast.specs.yamlfile import read_yaml

TOY = Path(__file__).resolve().parent.parent / "toycontract" / "toy"


class Spoilt:
    """The toy contract's files as data; `read` writes them out changed and loads the result."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "toy"
        shutil.copytree(TOY, self.folder)
        self.contract: dict[str, Any] = read_yaml(TOY / "contract.yaml")
        self.methods: dict[str, Any] = read_yaml(TOY / "methods.yaml")
        self.once: dict[str, Any] = read_yaml(TOY / "cases" / "once.yaml")
        self.hard: dict[str, Any] = read_yaml(TOY / "cases" / "hard.yaml")

    def case(self, words: str) -> dict[str, Any]:
        """The case whose id ends so."""
        found: dict[str, Any] = next(
            case for case in (*self.once["cases"], *self.hard["cases"]) if case["id"].endswith(words)
        )
        return found

    def clause(self, name: str) -> dict[str, Any]:
        """The clause of that id."""
        found: dict[str, Any] = next(clause for clause in self.contract["clauses"] if clause["id"] == name)
        return found

    def add(self, words: str, **changes: Any) -> dict[str, Any]:
        """Another case like the one whose id ends so."""
        made: dict[str, Any] = {**copy.deepcopy(self.case(words)), "id": "toy/once/another", **changes}
        self.once["cases"].append(made)
        return made

    def read(self) -> Contract:
        """The contract as it is now. Raises SpecError."""
        for name, data in (
            ("contract.yaml", self.contract),
            ("methods.yaml", self.methods),
            ("cases/once.yaml", self.once),
            ("cases/hard.yaml", self.hard),
        ):
            # JSON is YAML, and needs no second opinion on quoting.
            (self.folder / name).write_text(json.dumps(data, indent=1), encoding="utf-8")
        return read_contract(self.folder)


@pytest.fixture
def toy(tmp_path: Path) -> Spoilt:
    """The toy contract, to be spoilt."""
    return Spoilt(tmp_path)


Change = Callable[[Spoilt], object]
