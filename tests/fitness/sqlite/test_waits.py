"""A wait for a locked file, or for a trigger that never ends, is limited."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.conformance.fitness.errors import FitnessError
from holdfast.conformance.fitness.sqlite import live, probes
from tests.pace import busy

_HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""
_ENDLESS = """
CREATE TABLE consumed (n INTEGER);
CREATE TRIGGER endless BEFORE INSERT ON consumed BEGIN
  SELECT count(*) FROM (WITH RECURSIVE up (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM up) SELECT n FROM up);
END;
"""


def test_a_file_that_somebody_keeps_locked_is_not_waited_for_and_his_process_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "_BUSY_S", 0.2)
    path = tmp_path / "surface.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE consumed (n INTEGER)")
    holder = subprocess.Popen(
        [sys.executable, "-I", "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        began = time.monotonic()
        with pytest.raises(FitnessError, match=f"process {holder.pid} .* holds a lock on surface.sqlite3"):
            probes._copied(path, tmp_path / "copy.sqlite3")
        assert time.monotonic() - began < busy(10)
        holder.kill()


def test_a_trigger_that_never_ends_does_not_keep_the_process_that_is_to_be_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "_PATIENCE_S", 0.5)
    path = tmp_path / "copy.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(_ENDLESS)
    began = time.monotonic()
    answers = probes.kill_before_commit(path, {}, [("BEGIN IMMEDIATE", ()), ("INSERT INTO consumed VALUES (1)", ())])
    assert time.monotonic() - began < busy(10)
    assert [answer.sqlstate is None for answer in answers] == [True, False]
