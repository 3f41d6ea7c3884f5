"""What a database shows that the harness alters is not proven by one that it may not alter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from holdfast.conformance.cli.target import REFERENCE

CASE = "mesh-delivery/suite/a-column-that-is-lost-in-use-lets-no-send-be-taken-without-its-record"
# It hands on all that the reference's launcher says, but for where its databases are.
SILENT = f"""
import json, subprocess, sys
child = subprocess.Popen({[*REFERENCE, "launch"]!r}, stdout=subprocess.PIPE)
for line in child.stdout:
    said = json.loads(line)
    said.pop("surface", None)
    print(json.dumps(said), flush=True)
sys.exit(child.wait())
"""


def test_a_clause_that_only_an_altered_database_shows_is_not_proven_without_one(tmp_path: Path) -> None:
    launcher = tmp_path / "launcher.py"
    launcher.write_text(SILENT, encoding="utf-8")
    verify = [sys.executable, "-P", "-m", "holdfast.conformance.cli", "verify", "--contract", "mesh-delivery"]
    done = subprocess.run(
        [*verify, "--case", CASE, "--launcher", f"{sys.executable} {launcher}", "--", *REFERENCE, "adapter"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 12, done.stdout + done.stderr
    assert "1 not_reached" in done.stdout
