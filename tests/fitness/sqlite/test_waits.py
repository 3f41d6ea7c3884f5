"""A wait for a locked file, or for a trigger that never ends, is limited."""

from __future__ import annotations

import itertools
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.fitness.errors import FitnessError
from holdfast.conformance.fitness.model import ProbeAnswer, Standing, Statement
from holdfast.conformance.fitness.sqlite import live, probes
from tests.fitness.sqlite.files import judged
from tests.fitness.sqlite.misses import GUARDS
from tests.pace import busy

_HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""
# One way of REPLACE takes the place of a row, the others are refused.
_REPLACED = next(each for each in GUARDS if each.name == "replace-by-an-index-over-some-rows")
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


@pytest.mark.parametrize("lost", [0, 1])
def test_a_replace_whose_rows_were_not_counted_in_time_shows_nothing(
    lost: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = itertools.count()
    send = probes.FileSession.send

    def late(session: probes.FileSession, text: str, parameters: Sequence[Any] = ()) -> tuple[Statement, ProbeAnswer]:
        # Before and after it rows are counted.
        is_lost = "total_changes()" in text and next(numbers) % 2 == lost
        statement, answer = send(session, text, parameters)
        return statement, ProbeAnswer("57014", "SQLITE_INTERRUPT: interrupted") if is_lost else answer

    monkeypatch.setattr(probes.FileSession, "send", late)
    _, judgement = judged(_REPLACED, tmp_path)
    found = [each for each in judgement.findings if "writer-replace" in each.probes]
    assert [each.standing for each in found] == [Standing.UNPROVEN], judgement
