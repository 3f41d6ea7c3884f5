"""Every table is readable on a narrow terminal: no line is too long, and ids are broken at their joints alone."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from rich.table import Table

from holdfast.conformance.cli.console import PlainConsole
from holdfast.conformance.cli.gate import print_decision
from holdfast.conformance.cli.verify.summary import print_clauses
from holdfast.conformance.gate.model import GateDecision, GateReason, ReasonCode
from holdfast.conformance.run.baselines import load_baseline
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.run.summary import summarise
from holdfast.conformance.verdict import Exit
from holdfast.reports.evidence import read_evidence
from holdfast.specs import load_contract
from tests import warm
from tests.hostile.verify import LIMIT_S, environment
from tests.pace import busy

WIDTHS = (80, 100, 120)
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# Each command, and what must stand in its output whole but for a line break at a joint.
COMMANDS: Mapping[tuple[str, ...], Sequence[str]] = {
    ("list", "cases", "--contract", "hx-sync"): [case.id for case in plan_of(load_contract("hx-sync"))],
    ("explain", "jcs", "--matrix"): ("canonicalise", "jcs/suite/answers-do-not-depend-on-what-was-asked-before"),
    ("explain", "IK-FP-1"): ("IK-FP-1", "idempotency-key"),
    ("gallery", "list"): ("camel-idempotent-consumer", "fastapi-asgi-idempotency-header", "Valkey 9.1.2"),
    ("selfcheck", "--contract", "jcs", "--mutant", "mark-skipped"): ("mark-skipped", "JCS-BOM-01"),
    ("vectors", "sdk", "list"): ("reference-i-json-strict", "cpp-nlohmann", "runs here"),
}


def is_readable(text: str, width: int, ids: Iterable[str]) -> None:
    """No line is longer than the terminal is wide, and each id stands there, broken behind a joint at most."""
    text = CONTROL.sub("", text)
    assert text.strip()
    assert max(map(len, text.splitlines())) <= width
    for each in ids:
        parts = re.split("(?<=[/-])", each)
        assert re.search(r"(?:[ │]*\n[ │]*)?".join(map(re.escape, parts)), text), (each, text)


# What works for seconds before it prints meets the narrowest terminal alone; the tables themselves, below, meet all.
LONG = ("selfcheck", "vectors")


@pytest.mark.parametrize(
    ("words", "width"),
    [
        pytest.param(words, width, id=f"{' '.join(words)}-{width}")
        for words in COMMANDS
        for width in (WIDTHS[:1] if words[0] in LONG else WIDTHS)
    ],
)
def test_what_a_command_prints_is_readable_at_any_width(words: tuple[str, ...], width: int, tmp_path: Path) -> None:
    terminal = {"COLUMNS": str(width), "FORCE_COLOR": "1", "TERM": "xterm"}
    done = warm.run([*words], cwd=tmp_path, env={**environment(tmp_path), **terminal}, limit=LIMIT_S)
    is_readable(done.stdout, width, COMMANDS[words])


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["jcs", "mesh-delivery"])
def test_the_table_of_a_run_has_every_clause_at_any_width(
    name: str, width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    contract = load_contract(name)
    summary = summarise([contract], plan_of(contract), [], narrowed=False, baselines={name: load_baseline(contract)})
    print_clauses(PlainConsole(width=width), contract, summary.rows, narrowed=False)
    is_readable(capsys.readouterr().out, width, [*contract.clauses, "accept-all", "refuse-all"])


@pytest.mark.parametrize("width", WIDTHS)
def test_a_decision_of_the_gate_breaks_no_id(width: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    contract = load_contract("hx-sync")
    ids = [case.id for case in plan_of(contract)][-12:]
    reason = GateReason(ReasonCode.FAIL_OPEN, f"cases are [open] ({', '.join(ids)})", Exit.FAIL_OPEN)
    empty = tmp_path / "run.jsonl"
    empty.write_text("", encoding="utf-8")
    decision = GateDecision("NO", Exit.FAIL_OPEN, (reason,), (), ())
    print_decision(PlainConsole(width=width), decision, read_evidence(empty), [], path=empty)
    is_readable(capsys.readouterr().out, width, [*ids, "[open]"])


@pytest.mark.parametrize("width", [12, *WIDTHS])
def test_what_has_no_room_beside_a_row_stands_below_it_and_nothing_is_lost(
    width: int, capsys: pytest.CaptureFixture[str]
) -> None:
    table = Table("case", "found", "count", title="[bold]a table[/]")
    rows = [(f"a-contract/a-file/a-case-with-a-long-name-{number}", "word " * 40, str(number)) for number in range(3)]
    for row in rows:
        table.add_row(*row)
    PlainConsole(width=width).print_table(table)
    text = capsys.readouterr().out
    is_readable(text, width, [row[0] for row in rows])
    assert text.count("word") == 120


@pytest.mark.parametrize("width", WIDTHS)
def test_the_width_is_that_of_the_terminal(width: int, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "holdfast.conformance.cli", "list", "clauses", "--contract", "jcs"],
        cwd=tmp_path, env={**environment(tmp_path), "TERM": "xterm", "COLUMNS": ""}, stdin=theirs, stdout=theirs,
    )  # fmt: skip
    os.close(theirs)
    text = b""
    try:
        while part := os.read(ours, 65536):
            text += part
    except OSError:
        # The other side is closed.
        pass
    os.close(ours)
    assert child.wait(busy(LIMIT_S)) == 0
    is_readable(text.decode().replace("\r\n", "\n"), width, load_contract("jcs").clauses)
