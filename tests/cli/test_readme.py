"""The adapter of the README is one that the doctor finds nothing wrong with."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
MINE = """
import base64

import rfc8785

def canonicalise(args):
    document = args.get("document")
    if not isinstance(document, str) or set(document) - set("{alphabet}"):
        return {{"outcome": "refused", "reason": "REQUEST_MALFORMED"}}
    raw = base64.urlsafe_b64decode(document + "=" * (-len(document) % 4))
    text = base64.urlsafe_b64encode(rfc8785.dumps(__import__("json").loads(raw))).decode().rstrip("=")
    return {{"outcome": "accepted", "effect": "new", "value": {{"canonical": text}}}}
"""
ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def test_the_doctor_finds_nothing_wrong_with_the_adapter_of_the_readme(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "adapter.py").write_text(block, encoding="utf-8")
    (tmp_path / "mine.py").write_text(MINE.format(alphabet=ALPHABET), encoding="utf-8")
    words = ["doctor", "--contract", "jcs", "--", sys.executable, str(tmp_path / "adapter.py")]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "holdfast", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
