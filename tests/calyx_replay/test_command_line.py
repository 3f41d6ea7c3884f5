"""The operator's command line, as a process and from within a session."""

from __future__ import annotations

import pytest

from holdfast.reference_impl.calyx_replay import operate


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
