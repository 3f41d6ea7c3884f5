"""A recording's file says all that the recording is; one that is cut off or damaged is refused with the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.conformance.faults import fidelity, recording
from holdfast.conformance.faults.recording import (
    Ending,
    Entry,
    Named,
    Names,
    Operation,
    Recording,
    Type,
    Unnamed,
    Write,
)


def lines(whole: Recording) -> list[str]:
    return [
        recording.header_line(whole.command, whole.snapshot),
        *map(recording.operation_line, whole.operations),
        recording.ending_line(whole.ending, whole.refused),
    ]


SMALL = Recording(
    ("true",),
    (Entry(1, Type.FILE, (b"a", b"b"), b"12"),),
    (
        Operation(1, 1, 1, "write", Write(1, 1, b"345")),
        Operation(2, 2, 1, "rename", Names((Unnamed(b"a", 1), Named(b"c", 1)))),
        Operation(3, 3, 1, "symlink", Names((Named(b"l", 2, Type.LINK, b"c"),))),
        Operation(4, 4, 1, "mkdir", Names((Named(b"d", 3, Type.DIRECTORY),))),
    ),
    Ending(0),
)


def test_a_recording_that_is_cut_off_anywhere_is_refused(tmp_path: Path) -> None:
    file, text = tmp_path / "recording", "".join(lines(SMALL))
    for length in range(0, len(text), 7):
        file.write_text(text[:length], encoding="ascii")
        with pytest.raises(recording.RecordingError):
            recording.read(file)


@pytest.mark.parametrize(
    ("line", "instead", "reason"),
    [
        (0, "{}\n", "header"),
        (0, f'{{"recording":{recording.VERSION}}}\n', "expected command, snapshot and refusals"),
        (0, f'{{"recording":{recording.VERSION},"command":[],"snapshot":[1]}}\n', "snapshot of entries"),
        (1, "[]\n", "line 2"),
        (1, "", "expected operation 1, got 2"),
        (2, '{"is":"Operation","number":2,"at":1,"task":1,"call":"x","action":{"is":"no"}}\n', "line 3"),
        (1, '{"is":"Operation","number":1,"at":1,"task":1,"call":"x","action":{"is":"Sync","no":1}}\n', "line 2"),
        (5, '{"ending":{},"refused":[]}\n', "line 6"),
    ],
)
def test_a_damaged_recording_is_refused(line: int, instead: str, reason: str, tmp_path: Path) -> None:
    text = lines(SMALL)
    text[line] = instead
    (tmp_path / "recording").write_text("".join(text), encoding="ascii")
    with pytest.raises(recording.RecordingError, match=reason):
        recording.read(tmp_path / "recording")


@pytest.fixture
def real(tmp_path: Path) -> Path:
    """What SMALL must leave."""
    (tmp_path / "b").write_bytes(b"1345")
    (tmp_path / "c").hardlink_to(tmp_path / "b")
    (tmp_path / "l").symlink_to("c")
    (tmp_path / "d").mkdir()
    return tmp_path


def test_every_difference_is_told(real: Path) -> None:
    assert fidelity.differences(SMALL, real) == ()
    (real / "d/x").touch()
    (real / "l").unlink()
    assert fidelity.differences(SMALL, real) == ("d/x", "l")
    assert fidelity.differences(SMALL, real, ["d", "?"]) == ()
    assert fidelity.differences(SMALL, real, ["d/*"]) == ("l",)
    (real / "b").write_bytes(b"1346")
    assert fidelity.differences(SMALL, real, ["[dl]"]) == ("b", "c")


def test_a_copy_is_no_hard_link(real: Path) -> None:
    (real / "c").unlink()
    (real / "c").write_bytes(b"1345")
    assert fidelity.differences(SMALL, real) == ("b", "c")
