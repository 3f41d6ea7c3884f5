"""The operators' command line, as a process of its own."""

from __future__ import annotations

from tests.m5_log.logs import Box


def test_a_store_is_made_once(box: Box) -> None:
    done = box.command("init")
    assert (done.returncode, done.stdout) == (1, "")
    assert "STORE_UNAVAILABLE" in done.stderr
    assert box.problems() == []


def test_a_wrong_command_line_is_a_status_of_its_own(box: Box) -> None:
    assert box.command("verify").returncode == 2
    assert box.command("op-append", str(box.root / "nothing")).returncode == 2
