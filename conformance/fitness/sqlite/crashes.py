"""A process that holds an open transaction on the copy, and is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.conformance.fitness.model import Answer, Statement
from holdfast.conformance.fitness.sqlite.rows import Sql
from holdfast.conformance.fitness.sqlite.session import DEFAULTS, ROLE, Transcript

_PATIENCE_S = 10.0
# The process itself interrupts a trigger that never ends: it may outlive the reader of its lines.
_INSTRUCTIONS = 100_000
# The process has nothing of ours: what it needs it reads. It says one line for each statement, then waits to be killed.
_PROGRAM = """
import json, sqlite3, sys, time
told = json.loads(sys.stdin.readline())
connection = sqlite3.connect(told["file"], isolation_level=None)
for pragma, value in told["settings"].items():
    connection.execute(f"PRAGMA {pragma} = {value}")
ends = time.monotonic() + told["patience"]
connection.set_progress_handler(lambda: int(time.monotonic() > ends), told["instructions"])
for sql, parameters in told["statements"]:
    try:
        print(json.dumps([None, "", max(connection.execute(sql, parameters).rowcount, 0)]), flush=True)
    except sqlite3.Error as error:
        print(json.dumps([type(error).__name__, str(error), None]), flush=True)
sys.stdin.read()
"""


def kill_before_commit(file: Path, settings: Mapping[str, str], inserts: Sequence[Sql], transcript: Transcript) -> str:
    """Run the inserts in a transaction of another process and kill that. Why it could not be done, else empty."""
    statements = [Sql("BEGIN IMMEDIATE"), *inserts]
    described = {
        "file": str(file),
        "settings": {**DEFAULTS, **settings},
        "patience": _PATIENCE_S,
        "instructions": _INSTRUCTIONS,
        "statements": [[sql.text, sql.parameters] for sql in statements],
    }
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        if process.stdin is None or process.stdout is None:
            return "no process could be talked to"
        process.stdin.write(json.dumps(described) + "\n")
        process.stdin.flush()
        for sql in statements:
            line = process.stdout.readline()
            if not line:
                return "the process that was to be killed ended by itself"
            state, message, affected = json.loads(line)
            transcript.statements.append(Statement("killed", ROLE, sql.text, sql.parameters))
            transcript.answers.append(Answer(state, message, affected))
        return ""
    except OSError as error:
        return f"the process that was to be killed cannot be talked to: {error.strerror}"
    finally:
        process.kill()
        process.communicate(timeout=_PATIENCE_S)
