"""The operator's command line: two shells on one folder, as the README of the reference has it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from holdfast.reference_impl.hx_sync import operate
from tests.pace import busy

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "reference_impl/hx_sync/README.md"


def run(*words: str | Path) -> int:
    return operate.main([str(word) for word in words])


def digest(text: str) -> str:
    found = re.search(r"^digest ([0-9a-f]{64})$", text, re.MULTILINE)
    assert found is not None, text
    return found[1]


def test_the_readme_can_be_followed(tmp_path: Path) -> None:
    """Every command of its two shells, in its order, word for word."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    python = shlex.quote(sys.executable)
    script = "\n".join(["set -e", f'python() {{ {python} "$@"; }}', *lines])
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=busy(60),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = re.findall(r"^digest ([0-9a-f]{64})$", done.stdout, re.MULTILINE)
    assert len(shown) == 4
    assert shown[0] == shown[1] != shown[2] == shown[3]
