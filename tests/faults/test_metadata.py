"""What a store keeps in modes, owners and times: no model says what a crash leaves of those, so nothing is proven."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from holdfast.conformance.faults.lines import puts
from holdfast.conformance.faults.metadata import Given, Metadata
from holdfast.conformance.faults.model.plan import Plan
from holdfast.conformance.faults.oracle import CrashClass
from holdfast.conformance.faults.recording import Changed, Named, Names, Rights
from holdfast.conformance.faults.report import Layer
from tests.faults.model.script import Script, told
from tests.faults.stores.catalogue import swept

MINE = (os.geteuid(), os.getegid())


@pytest.mark.usefixtures("tracer")
@pytest.mark.parametrize(
    ("variant", "call", "lost"),
    [
        # One that depends on modes or times is not proven and not accused; one that loses bytes is accused.
        ("mode", "fchmod", set()),
        ("time", "utimensat", set()),
        ("newest", "times of its files", set()),
        ("unsynced", "", {CrashClass.LOST}),
    ],
)
def test_a_store_whose_files_count_by_what_they_are_given_is_accused_of_lost_bytes_alone(
    variant: str, call: str, lost: set[CrashClass], tmp_path: Path
) -> None:
    words = (sys.executable, "-S", "-m", "tests.faults.stores.seals", variant)
    with swept(words, puts(3), parent=tmp_path) as sweep:
        report = sweep.trial(Layer.POWER).report(0)
    assert {one.verdict.kind for one in report.findings} == lost
    assert not report.clean
    assert lost or [text for text in report.unproven if call in text]


def test_a_file_is_rebuilt_as_it_was_made_and_as_it_was_set(tmp_path: Path) -> None:
    script = Script()
    script.mkdir("d")
    script.create("d/a")
    named = Named(b"d/a", 2, rights=Rights(0o640, *MINE))
    script.operations[-1] = script.operations[-1]._replace(action=Names((named,)))
    script.append("d/a", b"1")
    script.add(Changed(2, Rights(0o400, *MINE), 5_000_000_000), "fchmod")
    script.add(Changed(1, Rights(0o500, *MINE)), "chmod")
    script.ack()
    last = Plan(script.recording).everything()
    for given, mode, folder_mode in ((Given.MADE, 0o640, 0o700), (Given.SET, 0o400, 0o500)):
        folder = tmp_path / given.name
        folder.mkdir()
        Metadata(script.recording).write(last, folder, given)
        found = (folder / "d" / "a").stat()
        assert found.st_mode & 0o777 == mode
        assert (found.st_mtime == 5) is (given is Given.SET)
        assert (folder / "d").stat().st_mode & 0o777 == folder_mode
        (folder / "d").chmod(0o700)
    assert Metadata(script.recording).was_set == ("chmod of d (operation 5)", "fchmod of d/a (operation 4)")


def test_files_are_rebuilt_with_times_in_the_order_in_which_they_were_written(tmp_path: Path) -> None:
    script = told("create b; append b 1; create a; append a 1; append b 2")
    last = Plan(script.recording).everything()
    for given, order in ((Given.MADE, "ab"), (Given.TURNED, "ba")):
        folder = tmp_path / given.name
        folder.mkdir()
        Metadata(script.recording).write(last, folder, given)
        assert "".join(sorted("ab", key=lambda name: (folder / name).stat().st_mtime_ns)) == order
