"""`holdfast vectors show` with a runner that answers and fails all the same."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holdfast.conformance.cli.commands import app

# Gives its sentinels back, gives its second argument as the answer to the document, and ends in disorder.
RUNNER = """
import struct, sys
status, body = sys.argv[1][:1].encode(), sys.argv[1][1:].encode()
while len(head := sys.stdin.buffer.read(4)) == 4:
    document = sys.stdin.buffer.read(struct.unpack(">I", head)[0])
    answer = b"C" + document if document != b"[]" else status + body
    sys.stdout.buffer.write(struct.pack(">I", len(answer) - 1) + answer)
    sys.stdout.buffer.flush()
sys.exit(3)
"""


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        ("C[]", 12, "no verdict (core)"),
        ("Rwill not", 12, "over refusal (core)"),
        ("C[0]", 12, "wrong bytes (core)"),
    ],
)
def test_a_process_that_failed_is_told_and_is_no_pass(tmp_path: Path, answer: str, status: int, said: str) -> None:
    program = tmp_path / "runner.py"
    program.write_text(RUNNER)
    done = CliRunner().invoke(app, ["vectors", "show", "hex:5b5d", "--", sys.executable, str(program), answer])
    assert done.exit_code == status, done.output
    assert said in done.output
    assert "exited with status 3" in done.output
