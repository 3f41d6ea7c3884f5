"""What histories of hx-sync take for another file in the store."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from random import Random
from typing import Any, NoReturn, cast

import pytest

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.suites.hx_sync.fresh import drawn
from holdfast.conformance.suites.hx_sync.model import DeviceModel, State

_OBJECTS = "HXSync/vaults/6f1d2c3e-0a4b-4c5d-8e6f-7a8b9c0d1e2f/objects"


class _Listed:
    """A session whose store has these paths: folders end with a slash."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths = paths

    def tree(self, path: str) -> list[dict[str, Any]]:
        assert path == "HXSync"
        return [{"path": each.rstrip("/"), "kind": "folder" if each[-1] == "/" else "file"} for each in self._paths]


def looked(*paths: str, foreign: Sequence[str] = ()) -> tuple[DeviceModel, bool]:
    """Inspect a store in which no object is due, and these files have no place: whether it is as it is due."""
    session = cast("SuiteSession", _Listed([*paths, *foreign]))
    model = DeviceModel(session, {}, [])
    due = model.stored(State({}, foreign=frozenset(foreign)))
    assert due.read is not None
    return model, due.of(due.read(session)) == due.due


def test_folders_of_objects_that_the_harness_took_away_are_no_other_files() -> None:
    _, sound = looked(
        f"{_OBJECTS}/blobs/sha256/ab/", f"{_OBJECTS}/segments/a0a0/", "HXSync/vaults/x/tmp/objects/blobs/"
    )
    assert sound


def test_a_file_that_nobody_published_is_another_file() -> None:
    _, sound = looked(f"{_OBJECTS}/segments/left")
    assert not sound


def test_a_file_without_a_place_is_told_as_foreign_and_not_as_withheld() -> None:
    copy = f"{_OBJECTS}/segments/copy"
    model, sound = looked(foreign=[copy])
    assert sound
    assert model.misplaced({"foreign": [copy], "withheld": [f"{_OBJECTS}/segments/gone"]}) == []
    assert model.misplaced({"foreign": [], "withheld": [copy]}) == [copy]


# What must be random in objects of hx-sync: values that only look so are told from drawn ones.


class ReportedError(Exception):
    """What a bench reports."""


class Reporting:
    """A bench that only reports."""

    def fail(self, verdict: str, message: str, **more: object) -> NoReturn:
        raise ReportedError(f"{verdict} {message} {more}")


BENCH = cast("Bench", Reporting())


@pytest.mark.parametrize("count", [24, 60, 200, 700])
@pytest.mark.parametrize("size", [12, 24, 32])
def test_drawn_values_are_never_accused(count: int, size: int) -> None:
    dice = Random(f"{count} {size}")
    drawn(BENCH, [dice.randbytes(size) for _ in range(count)], "values")


@pytest.mark.parametrize(
    "made",
    [
        [hashlib.sha256(bytes([number])).digest()[:4] * 8 for number in range(100)],
        [(1 << 90 | number).to_bytes(24, "big") for number in range(100)],
        [time.time_ns().to_bytes(12, "big") for _ in range(100)],
        [bytes(20) + hashlib.sha256(bytes([number])).digest()[:4] for number in range(100)],
    ],
    ids=["four bytes repeated", "a counter", "a clock", "zeros in front"],
)
def test_values_of_fewer_bits_than_they_show_are_found(made: list[bytes]) -> None:
    with pytest.raises(ReportedError):
        drawn(BENCH, made, "values")
