"""The tutorial is done as it is written: its commands are run, its changes are made, and what it says comes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.hostile.verify import environment
from tests.pace import busy

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
# What a block is for beside being read stands in a comment before it, which no renderer shows.
BLOCK = re.compile(r"^(?:<!-- (?:file|expect)=(\S+) -->\n\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LIMIT_S = 120.0
# The installation is that of these tests.
INSTALLED = ("python3 -m venv .venv\n", ".venv/bin/pip install .\n")


def changed(text: str, diff: str) -> str:
    """The text with the lines of a diff; what it takes away stands there exactly once."""
    lines = diff.splitlines()
    old = "".join(f"{line[1:]}\n" for line in lines if line[:1] in (" ", "-"))
    new = "".join(f"{line[1:]}\n" for line in lines if line[:1] in (" ", "+"))
    assert text.count(old) == 1, diff
    return text.replace(old, new)


def test_the_tutorial_ends_with_a_guard_that_the_gate_lets_pass(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    shutil.copytree(ROOT / "docs" / "tutorial", tmp_path / "docs" / "tutorial")
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parents[1])
    variables = {**environment(tmp_path), "HOLDFAST_SPECS": str(tmp_path / "guard" / "contracts")}
    said = ""
    for option, kind, body in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if kind == "diff":
            path = tmp_path / option
            path.write_text(changed(path.read_text(encoding="utf-8"), body), encoding="utf-8")
        elif kind == "sh":
            for line in INSTALLED:
                body = body.replace(line, "")
            due = int(option or 0)
            ended = subprocess.run(
                ["sh", "-e", "-c", body],
                cwd=tmp_path,
                env=variables,
                capture_output=True,
                text=True,
                timeout=busy(LIMIT_S),
            )
            assert ended.returncode == due, f"{body}\n{ended.stdout[-2000:]}\n{ended.stderr[-2000:]}"
            said = ended.stdout
            if due == 10:
                assert_verdicts(said)
    assert "CAN_PROCEED = YES" in said


def assert_verdicts(said: str) -> None:
    """Those of the table of the page."""
    table = re.findall(r"^\| `([a-z-]+)` \| `([a-z_]+)` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(table) == 5
    for case, verdict in table:
        assert re.search(rf"^{verdict}  once/\w+/{case}$", said, re.MULTILINE), (case, verdict)
