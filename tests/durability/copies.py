"""Copies of a contract with one thing changed."""

from __future__ import annotations

import shutil
from pathlib import Path


def changed(contract: Path, into: Path, name: str, old: str, new: str) -> Path:
    """A copy of the contract's folder, in one file of which `old` is `new` where it stands first."""
    copy = into / contract.name
    shutil.copytree(contract, copy)
    text = (copy / name).read_text(encoding="utf-8")
    assert old in text, f"{old!r} is not in {name}"
    (copy / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    return copy
