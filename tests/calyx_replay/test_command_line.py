"""The operator's command line, as a process and from within a session."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from holdfast.reference_impl.calyx_replay import operate
from tests.calyx_replay.conftest import Box, Opener, envelope, key_of, later

ROOT = Path(__file__).resolve().parents[2]


def run(*words: str, given: bytes = b"") -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "holdfast.reference_impl", "calyx", *words],
        input=given,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_a_mailbox_from_its_making_to_its_inspection(tmp_path: Path) -> None:
    root = ("--root", str(tmp_path))
    now = datetime.now(UTC)
    raw = envelope(at=now)
    status, _, complaint = run("receive", "-", *root, given=raw)
    assert status == 1
    assert "STORE_UNAVAILABLE" in complaint
    assert "calyx init" in complaint
    assert not (tmp_path / "runtime").exists()
    assert run("init", *root)[0] == 0
    assert run("init", *root)[0] == 1
    file = tmp_path / "mail"
    file.write_bytes(raw)
    status, out, _ = run("receive", str(file), *root)
    assert (status, out.split()[0], out.split()[-1]) == (0, "delivered", key_of(raw))
    status, out, complaint = run("receive", "-", *root, given=raw)
    assert (status, out) == (1, "")
    assert "REPLAY_DUPLICATE" in complaint
    stale = envelope(at=now - timedelta(hours=1))
    assert "TIMESTAMP_OUT_OF_WINDOW" in run("receive", "-", *root, given=stale)[2]
    assert run("prune", *root, "--retention-hours", "1")[1] == "removed 0, kept 1, unreadable 0\n"
    status, out, _ = run("inspect", *root)
    assert status == 0
    assert "records 1" in out
    assert "mode 0600 replay_state.db\n" in out


@pytest.mark.parametrize("hours", ["nan", "inf", "0", "-1", "0.1"])
def test_a_retention_that_is_too_short_is_refused(box: Box, hours: str, capsys: pytest.CaptureFixture[str]) -> None:
    box.put("1999-01-01")
    assert operate.main(["prune", "--root", str(box.workdir), f"--retention-hours={hours}"]) == 1
    assert "RETENTION_TOO_SHORT" in capsys.readouterr().err
    assert len(box.keys()) == 1


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
        ["inspect", "--root", ".", "--mutant", "none-of-this-name"],
        ["receive", "/no/such/file", "--root", "."],
    ],
)
def test_a_wrong_command_line_is_said_to_be_one(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert operate.main(words) == 2
    assert "error: " in capsys.readouterr().err


def test_help_and_the_names_of_all_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert operate.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in ("init", "receive", "prune", "migrate", "inspect"))
    assert operate.main(["prune", "--help"]) == 0
    assert "clock" not in capsys.readouterr().out


def test_a_session_runs_it_by_its_own_clock_and_config(opener: Opener) -> None:
    box = opener(retention_hours="2")
    assert box.outcome(envelope()) == "new"
    box.session.set_clock(later(hours=2, seconds=1))
    found = box.value("command_line", arguments=["prune"])
    assert found == {"status": 0, "output": "removed 1, kept 0, unreadable 0\n"}
    assert box.keys() == set()
    found = box.value("command_line", arguments=["migrate"])
    assert found["status"] == 1
    assert "NOTHING_TO_MIGRATE" in found["output"]
    assert "delivered 1" in box.value("command_line", arguments=["inspect"])["output"]
    box.database.unlink()
    assert box.value("command_line", arguments=["prune"])["status"] == 1
    assert not box.database.exists()
