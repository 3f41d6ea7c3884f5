"""What the system and the policy say of a file: whether commits to it last, and who can write it."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.model import Part, Row
from holdfast.conformance.fitness.sqlite.catalogue import Database
from holdfast.conformance.fitness.sqlite.judging import Judging

# Who can write a file, as far as the system shows: owner and mode of it, of what lies beside it and of its folders

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
ROOT = 0


@dataclass(frozen=True, slots=True)
class Hole:
    """A way in for a user who is not the writer; `row` shows it."""

    text: str
    row: Row


def open_to_others(database: Database, beside: list[Row]) -> Iterator[Hole]:
    """What groups or all users may write. A folder may be shared (sticky) only if the file does not lie in it."""
    for what, row in _all(database, beside):
        mode = int(str(row["mode"]), 8)
        above = row.get("height", 0) > 0
        if mode & _OTHERS and not (above and mode & stat.S_ISVTX):
            yield Hole(f"{what} may be written by others than its owner (mode {row['mode']})", row)


def of_somebody_else(database: Database, beside: list[Row], writer: int) -> Iterator[Hole]:
    """Files and folders that belong neither to the writer nor, for folders above, to root."""
    for what, row in _all(database, beside):
        allowed = {writer, ROOT} if row.get("height", 0) > 0 else {writer}
        if row["owner"] not in allowed:
            yield Hole(f"{what} belongs to the user {row['owner']}, not to {writer}", row)


def _all(database: Database, beside: list[Row]) -> Iterator[tuple[str, Row]]:
    yield "the file", database.file
    for row in beside:
        yield f"the {row['what'].removeprefix('-')} beside the file", row
    for row in database.folders:
        yield ("the folder of the file" if row["height"] == 0 else "a folder above the file"), row


# Nothing written here survives a power cut.
_VOLATILE = ("tmpfs", "ramfs")
# There another system keeps the promise of locks and syncs; SQLite's own documentation warns of it.
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "vboxsf", "fuse")
_DURABLE = ("full", "extra")
_JOURNALS = ("delete", "truncate", "persist", "wal")


def commits(judging: Judging, database: Database) -> None:
    """Whether what was acknowledged is there after a power cut, and one lock is one lock."""
    row = database.file
    judging.rows.append(row)
    if row["links"] != 1:
        text = f"the file has {row['links']} names, and each has a log of its own: sessions may not see each other"
        judging.refute(Code.FILE_LINKED, text, rows=(row,))
    kind = str(row["filesystem"])
    if kind in _VOLATILE:
        judging.refute(Code.NOT_DURABLE, f"the file lies on {kind}, which keeps nothing", rows=(row,))
    elif not kind or kind.split(".")[0] in _REMOTE:
        text = f"locks and syncs of the file system ({kind or 'unknown'}) cannot be relied upon"
        judging.unproven(Code.FILE_SYSTEM_UNPROVEN, text, rows=(row,))
    _connection(judging, database)


def _connection(judging: Judging, database: Database) -> None:
    declared = judging.policy.sqlite_connection
    synchronous, journal = declared.get("synchronous"), declared.get("journal_mode")
    if synchronous is None:
        text = (
            "whether a commit waits for the disk (synchronous) belongs to each connection, and no policy says what the "
            "registrar's connections set (`sqlite_connection`)"
        )
        judging.unproven(Code.CONNECTION_UNDECLARED, text)
    elif synchronous not in _DURABLE:
        text = f"the registrar's connections set synchronous={synchronous}: an acknowledged commit may be lost"
        judging.refute(Code.ASYNC_COMMIT, text)
    if journal is not None and journal not in _JOURNALS:
        text = f"the registrar's connections set journal_mode={journal}: a crash leaves half a transaction"
        judging.refute(Code.NOT_DURABLE, text)
    elif journal is None and not database.wal:
        text = "the file is not in WAL mode, so each connection chooses its journal, and no policy says which"
        judging.unproven(Code.CONNECTION_UNDECLARED, text)


def rights(judging: Judging, database: Database, beside: list[Row], which: Part | None) -> None:
    """Whether only the declared writer can write the file."""
    judging.rows += [database.file, *database.folders[:1]]
    for hole in open_to_others(database, beside):
        judging.refute(Code.OTHERS_MAY_WRITE, hole.text, which, rows=(hole.row,))
    writer = judging.policy.sqlite_writer_uid
    if writer is None:
        text = "SQLite knows no roles, and no policy says which user writes the file (`sqlite_writer_uid`)"
        judging.unproven(Code.WRITER_UNPROVEN, text, which)
        return
    if writer == ROOT:
        text = "the writer is root, who may write every file: nothing about this one shows who does"
        judging.refute(Code.WRITER_ATTRIBUTES, text, which)
    for hole in of_somebody_else(database, beside, writer):
        judging.refute(Code.OTHERS_MAY_WRITE, hole.text, which, rows=(hole.row,))
