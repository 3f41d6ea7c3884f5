"""Surfaces in SQLite files that lie as a registrar's would: in a folder of an account that is not root."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from msgspec import structs

from holdfast.conformance.fitness.judge import judge
from holdfast.conformance.fitness.model import Evidence, FitnessJudgement, Part, Surface
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.sqlite.live import relation_name
from holdfast.conformance.fitness.sqlite.probes import gather_evidence
from tests.fitness.sqlite.schemas import Schema

# Root gives its files to the writer; other users own them already.
OWNER = 65_534 if os.geteuid() == 0 else os.geteuid()
FOLDER_MODE, FILE_MODE = 0o700, 0o600


@dataclass(frozen=True, slots=True)
class Files:
    """Where a surface and its audit lie."""

    live: Path
    audit: Path


def make(path: Path, sql: str, *, journal: str = "wal") -> None:
    """A database file with these statements, closed and given to the owner."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.executescript(sql)
    finally:
        connection.close()
    give(path, FILE_MODE)


def give(path: Path, mode: int) -> None:
    """Let the owner have it, with this mode."""
    path.chmod(mode)
    if os.geteuid() == 0:
        os.chown(path, OWNER, OWNER)


@contextmanager
def made(schema: Schema, home: Path) -> Iterator[Files]:
    """The files of a schema, in a folder of their own."""
    folder = home / "surface"
    folder.mkdir()
    files = Files(folder / "live.sqlite3", folder / "audit.sqlite3")
    make(files.live, schema.sql, journal=schema.journal)
    make(files.audit, schema.audit_sql, journal=schema.journal)
    if schema.linked:
        os.link(files.live, folder / "alias.sqlite3")
    give(folder, schema.modes.get("folder", FOLDER_MODE))
    for name, path in (("file", files.live), ("audit", files.audit)):
        path.chmod(schema.modes.get(name, FILE_MODE))
    if "-wal" in schema.modes:
        log = files.live.with_name(files.live.name + "-wal")
        log.touch()
        give(log, schema.modes["-wal"])
    yield files
    with suppress(FileNotFoundError):
        folder.chmod(FOLDER_MODE)


def policy_of(schema: Schema) -> Policy:
    """The policy of a schema, with what is declared of account and connections."""
    writers = {"declared": OWNER, "undeclared": None, "another": OWNER + 1, "root": 0}
    return structs.replace(schema.policy, sqlite_writer_uid=writers[schema.writer], sqlite_connection=schema.connection)


def surface_of(schema: Schema, files: Files) -> Surface:
    """The parts that a schema names."""
    named = {Part.EFFECT: schema.effect, Part.NONCE: schema.nonce, Part.AUDIT: schema.audit}
    parts = {
        part: relation_name(name.replace("FILE:", f"{files.audit}:"), files.live)
        for part, name in named.items()
        if name is not None
    }
    return Surface(schema.name, parts, None)


def judged(schema: Schema, home: Path) -> tuple[Evidence, FitnessJudgement]:
    """The files, made, inspected and judged."""
    with made(schema, home) as files:
        evidence = gather_evidence(files.live, surface_of(schema, files), policy_of(schema))
    return evidence, judge(evidence, policy_of(schema))
