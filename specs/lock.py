"""`lock.json` of a contract: `holdfast lint specs --update` writes it. A person adds the cases of a cell of the matrix.

The file is outside the digests of a contract.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec

from holdfast.specs.entry import CaseId, CellName, ClauseId, ContractName, Digest, Entry, RowName
from holdfast.specs.errors import SpecError

FILE = "lock.json"


class Review(Entry, frozen=True):
    """The digest of a clause's text, and the cases that were reviewed with this text."""

    text: Digest
    cases: tuple[CaseId, ...]


Reviewed = Mapping[ClauseId, Review]


class Lock(Entry, frozen=True, omit_defaults=True):
    """`reviewed` by clause; `cells` by the row and the cell of the matrix: some of the cases that fill it."""

    contract: ContractName
    reviewed: Mapping[ClauseId, Review] = {}
    cells: Mapping[RowName, Mapping[CellName, tuple[CaseId, ...]]] = {}


def load_lock(folder: Path, name: str) -> Lock:
    """The lock of the contract `name` in `folder`; an empty one if there is no file. Raises SpecError."""
    path = folder / FILE
    if not path.exists():
        return Lock(name)
    try:
        lock = msgspec.json.decode(path.read_bytes(), type=Lock)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise SpecError(f"{path}: expected what `holdfast lint specs --update` writes, got {error}") from error
    if lock.contract != name:
        raise SpecError(f"{path}: expected the lock of {name}, got the one of {lock.contract}")
    return lock


def write_lock(folder: Path, lock: Lock) -> None:
    """Write the lock of the contract in `folder`, a line for each clause and each cell."""
    data = {"reviewed": {}, **msgspec.to_builtins(lock)}
    reviewed = _members({name: json.dumps(review) for name, review in data["reviewed"].items()}, 1)
    rows = {name: _members({cell: json.dumps(ids) for cell, ids in row.items()}, 2) for name, row in lock.cells.items()}
    members = {"contract": json.dumps(lock.contract), "reviewed": reviewed, "cells": _members(rows, 1)}
    (folder / FILE).write_text(_members(members, 0) + "\n", encoding="utf-8")


def _members(members: Mapping[str, str], depth: int) -> str:
    lines = [f"{' ' * (depth + 1)}{json.dumps(name)}: {value}" for name, value in members.items()]
    return "{\n" + ",\n".join(lines) + f"\n{' ' * depth}}}" if lines else "{}"
