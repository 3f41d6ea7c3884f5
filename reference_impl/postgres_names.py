"""Names of databases. No driver is imported here, because most sessions of some contracts need no database."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TypeAlias

# How the names of databases begin that a launcher has made.
Template: TypeAlias = str


def session_database(template: Template, workdir: Path) -> str:
    """The session database's name: the same for every worker on one workdir."""
    return f"{template}_{hashlib.sha256(str(workdir.resolve()).encode()).hexdigest()[:16]}"


def pooled(template: str) -> str:
    """How the names of unused clones of a template begin."""
    return f"{template}_pool_"
