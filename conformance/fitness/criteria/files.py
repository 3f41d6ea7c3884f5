"""What only SQLite files can be asked: whose they are, what each connection sets, and what a schema does in silence."""

from __future__ import annotations

import stat
from collections.abc import Iterator

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.judging import Judging
from holdfast.conformance.fitness.model import Part, RelationName, Row
from holdfast.conformance.fitness.postgres.catalogue import UnreadError, name_of
from holdfast.conformance.fitness.sqlite.live import AUDIT, MAIN

# Nothing written here survives a power cut.
_VOLATILE = ("tmpfs", "ramfs")
# There another system keeps the promise of locks and syncs; SQLite's own documentation warns of it.
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "vboxsf", "fuse")
_DURABLE = ("full", "extra")
_JOURNALS = ("delete", "truncate", "persist", "wal")
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
ROOT = 0
# Conflict clauses that a table must not have, both of which hide the error: the code, and what they do.
_SWALLOWED = {
    "IGNORE": (Code.SILENTLY_IGNORED, "drops the new row"),
    "REPLACE": (Code.CHANGE_ADMITTED, "deletes the stored row, or writes the default in the place of NULL,"),
}


def _place(part: Part) -> str:
    return AUDIT if part is Part.AUDIT else MAIN


def _file(judging: Judging, part: Part) -> Row:
    rows = judging.catalogue.rows(f"{_place(part)}.file")
    if len(rows) != 1:
        raise UnreadError("file", f"expected one row, got {len(rows)}")
    return rows[0]


def commits(judging: Judging, part: Part = Part.EFFECT) -> None:
    """Whether what was acknowledged is there after a power cut, and one lock is one lock."""
    row, declared = _file(judging, part), judging.policy.sqlite_connection
    judging.rest_on(row)
    if row["links"] != 1:
        text = f"the file has {row['links']} names, and each has a log of its own: sessions may not see each other"
        judging.refute(Code.FILE_LINKED, text, rows=(row,))
    kind = str(row["filesystem"])
    if kind in _VOLATILE:
        judging.refute(Code.NOT_DURABLE, f"the file lies on {kind}, which keeps nothing", rows=(row,))
    elif not kind or kind.split(".")[0] in _REMOTE:
        text = f"locks and syncs of the file system ({kind or 'unknown'}) cannot be relied upon"
        judging.unproven(Code.FILE_SYSTEM_UNPROVEN, text, rows=(row,))
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
    elif journal is None and judging.catalogue.rows(f"{_place(part)}.journal")[0]["mode"] != "wal":
        text = "the file is not in WAL mode, so each connection chooses its journal, and no policy says which"
        judging.unproven(Code.CONNECTION_UNDECLARED, text)


def rights(judging: Judging, part: Part) -> None:
    """Whether only the declared writer can write the file, as far as owner and mode show: of the file, of what lies
    beside it, and of its folders.
    """
    writer, places = judging.policy.sqlite_writer_uid, list(_places(judging, part))
    judging.rest_on(*(row for _, row in places if not row.get("height")))
    about = part if part is Part.AUDIT else None
    for what, row in places:
        mode, above = int(str(row["mode"]), 8), row.get("height", 0) > 0
        # A folder may be shared (sticky) only if the file does not lie in it.
        if mode & _OTHERS and not (above and mode & stat.S_ISVTX):
            text = f"{what} may be written by others than its owner (mode {row['mode']})"
            judging.refute(Code.OTHERS_MAY_WRITE, text, about, rows=(row,))
    if writer is None:
        text = "SQLite knows no roles, and no policy says which user writes the file (`sqlite_writer_uid`)"
        judging.unproven(Code.WRITER_UNPROVEN, text, about)
        return
    if writer == ROOT:
        text = "the writer is root, who may write every file: nothing about this one shows who does"
        judging.refute(Code.WRITER_ATTRIBUTES, text, about)
    for what, row in places:
        # Folders above may belong to root.
        if row["owner"] != writer and not (row["owner"] == ROOT and row.get("height", 0) > 0):
            text = f"{what} belongs to the user {row['owner']}, not to {writer}"
            judging.refute(Code.OTHERS_MAY_WRITE, text, about, rows=(row,))


def _places(judging: Judging, part: Part) -> Iterator[tuple[str, Row]]:
    place = _place(part)
    yield "the file", _file(judging, part)
    for row in judging.catalogue.rows("beside"):
        if row["file"] == place:
            yield f"the {row['what'].removeprefix('-')} beside the file", row
    for row in judging.catalogue.rows(f"{place}.folders"):
        yield f"{'a' if row['height'] else 'the'} folder {'above' if row['height'] else 'of'} the file", row


def in_its_own_file(judging: Judging) -> None:
    """The audit's file is another one, and as good."""
    part = Part.AUDIT
    relation = judging.part(part)
    if relation is None or judging.catalogue.relation(relation) is None:
        return
    if relation.schema == MAIN or _file(judging, part)["is_main"]:
        text = (
            "the audit lies in the file of the effect: one write lock covers both, so no record can be written outside "
            "the transaction of which it speaks while that is open"
        )
        judging.refute(Code.AUDIT_NOT_SEPARATE, text, part)
        return
    commits(judging, part)
    rights(judging, part)
    sound(judging, part)


def sound(judging: Judging, part: Part) -> None:
    """The content of a file fits its schema: an index that lacks entries admits keys that it does not know."""
    name = "integrity-audit" if part is Part.AUDIT else "integrity"
    for probe, answer in judging.tried(name):
        said = [str(row["integrity_check"]) for row in answer.rows]
        if said != ["ok"]:
            text = f"the file is not sound: {'; '.join(said) or answer.message}"
            judging.refute(Code.CORRUPT, text, part, probes=(probe.name,))


def loud(judging: Judging, part: Part) -> None:
    """No constraint drops or replaces a row without an error."""
    row = judging.relation(part)
    for clause in () if row is None else dict.fromkeys(row["conflict_clauses"]):
        if clause in _SWALLOWED:
            code, what = _SWALLOWED[clause]
            text = f"{judging.part(part)} has a constraint with ON CONFLICT {clause}: it {what} and says nothing"
            judging.refute(code, text, part, rows=(row,) if row else ())


def housekeeping(judging: Judging, part: Part, relation: RelationName) -> None:
    """No trigger of any relation deletes or changes rows of this one."""
    for row in judging.catalogue.rows("triggers"):
        if row["schema"] == relation.schema and relation.name in row["takes"]:
            text = f"the trigger {row['name']} on {name_of(row)} deletes or changes rows of {relation}"
            judging.refute(Code.HOUSEKEEPING, text, part, rows=(row,))
