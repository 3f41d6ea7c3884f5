"""What histories of hx-sync take for another file in the store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.suites.hx_sync.model import State
from holdfast.conformance.suites.hx_sync.observations import Looking

_OBJECTS = "HXSync/vaults/6f1d2c3e-0a4b-4c5d-8e6f-7a8b9c0d1e2f/objects"


class AccusedError(Exception):
    """The store was accused."""


class _Listed:
    """A session whose store has these paths: folders end with a slash."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def tree(self, path: str) -> list[dict[str, Any]]:
        assert path == "HXSync"
        return [{"path": each.rstrip("/"), "kind": "folder" if each[-1] == "/" else "file"} for each in self._paths]


class _Bench:
    def fail(self, verdict: str, message: str, **said: str) -> None:
        raise AccusedError(verdict, message, said)

    weigh = fail


def looked(*paths: str, foreign: Sequence[str] = ()) -> Looking:
    """Inspect a store in which no object is due, and these files have no place."""
    looking = Looking(cast("Bench", _Bench()), cast("SuiteSession", _Listed([*paths, *foreign])))
    looking.store(State({}, foreign=frozenset(foreign)))
    return looking


def test_folders_of_objects_that_the_harness_took_away_are_no_other_files() -> None:
    looked(f"{_OBJECTS}/blobs/sha256/ab/", f"{_OBJECTS}/segments/a0a0/", "HXSync/vaults/x/tmp/objects/blobs/")


def test_a_file_that_nobody_published_is_another_file() -> None:
    with pytest.raises(AccusedError):
        looked(f"{_OBJECTS}/segments/left")


def test_a_file_without_a_place_is_told_as_foreign_and_not_as_withheld() -> None:
    copy = f"{_OBJECTS}/segments/copy"
    looking = looked(foreign=[copy])
    looking.placed({"foreign": [copy], "withheld": [f"{_OBJECTS}/segments/gone"]})
    with pytest.raises(AccusedError):
        looking.placed({"foreign": [], "withheld": [copy]})
