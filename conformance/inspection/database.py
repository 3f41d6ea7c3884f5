"""Work on an SQLite database of an implementation: it is inspected, or a row is put into it. Standard library only.

A cell is text, a number or null as JSON has it. What JSON cannot say, or only at length, is an object: {"blob": hex},
{"text": hex} (not UTF-8), {"integer": digits} (beyond 2^53), {"real": repr} (a whole number, or infinite),
{"blob_sha256": hex, "bytes": n} and {"text_sha256": hex, "bytes": n} (longer than MAX_CELL bytes).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

MAX_ROWS = 10_000
MAX_OBJECTS = 1_000
# Bytes of a cell that are shown unchanged.
MAX_CELL = 8192
# Bytes of one inspection in all; with its quotes escaped it still fits into a line of evidence.
MAX_LOOK = 1_900_000
_MAX_VALUE = 64 * 1024 * 1024
_MAX_SAFE = 2**53 - 1
# How many instructions of SQLite's machine go by between two readings of the clock.
_INSTRUCTIONS = 10_000


class LookError(Exception):
    """There is more in the database than a look takes in."""


class _Text(bytes):
    """Bytes that SQLite calls text."""


def nothing(*, exists: bool, error: str | None, digest: str | None = None) -> dict[str, Any]:
    """What an inspection shows without a database: it is not there, or `error` says why it cannot be read."""
    return {
        "exists": exists,
        "error": error,
        "digest": digest,
        "journal_mode": None,
        "integrity": None,
        "tables": {},
        "triggers": [],
        "rows": {},
    }


@contextlib.contextmanager
def _opened(path: str, seconds: float, busy: float) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(f"{Path(path).as_uri()}?mode=rw", uri=True, timeout=busy, isolation_level=None)
    try:
        ends = time.monotonic() + seconds
        connection.set_progress_handler(lambda: time.monotonic() > ends, _INSTRUCTIONS)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.setlimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 50)
        connection.text_factory = _Text
        # Functions in a schema may have side effects or be replaced; only built-in, harmless functions run.
        connection.execute("PRAGMA trusted_schema=OFF")
        yield connection
    finally:
        connection.close()


def _name(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value or "")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def cell(value: Any) -> Any:
    """A stored value as JSON."""
    if isinstance(value, int):
        return value if abs(value) <= _MAX_SAFE else {"integer": str(value)}
    if isinstance(value, float):
        # JSON does not distinguish 1.0 from 1, and has no infinity.
        return {"real": repr(value)} if math.isinf(value) or value == int(value) else value
    if isinstance(value, bytes):
        kind = "text" if isinstance(value, _Text) else "blob"
        if len(value) > MAX_CELL:
            return {f"{kind}_sha256": hashlib.sha256(value).hexdigest(), "bytes": len(value)}
        if isinstance(value, _Text):
            with contextlib.suppress(UnicodeDecodeError):
                return value.decode("utf-8")
        return {kind: value.hex()}
    return None


def _stored(given: Any) -> tuple[str, Any]:
    """The place and the value of a cell in a statement. Raises ValueError."""
    if isinstance(given, Mapping):
        ((kind, text),) = given.items()
        if kind == "blob":
            return "?", bytes.fromhex(text)
        if kind == "text":
            return "CAST(? AS TEXT)", bytes.fromhex(text)
        if kind == "integer":
            return "?", int(text)
        if kind == "real":
            return "?", float(text)
        raise ValueError(f"expected blob, text, integer or real, got {kind}")
    return "?", given


def inspect(path: str, seconds: float) -> dict[str, Any]:
    """The whole content of the database at `path`, a copy that no other process uses."""
    try:
        with _opened(path, seconds, busy=0.0) as connection:
            # Its log goes into it when it is closed, and a copy need not be on the disk.
            connection.execute("PRAGMA synchronous=OFF")
            return _look(connection)
    except (sqlite3.Error, LookError, MemoryError, OverflowError) as error:
        return nothing(exists=True, error=_words(error))


def _words(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    return "it took too long" if text == "interrupted" else text[:500]


def _look(connection: sqlite3.Connection) -> dict[str, Any]:
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    objects = connection.execute(
        f"SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name LIMIT {MAX_OBJECTS + 1}"  # noqa: S608
    ).fetchall()
    if len(objects) > MAX_OBJECTS:
        raise LookError(f"it has more than {MAX_OBJECTS} tables, indexes, views and triggers")
    sql = {_name(name): _name(text) for kind, name, _, text in objects if _name(kind) == "table"}
    found = nothing(exists=True, error=None)
    found["journal_mode"] = _name(mode)
    found["integrity"] = _integrity(connection)
    found["triggers"] = [
        {"name": _name(name), "table": _name(table), "sql": _name(text)}
        for kind, name, table, text in objects
        if _name(kind) == "trigger"
    ]
    listed = connection.execute("PRAGMA main.table_list").fetchall()
    left = MAX_LOOK
    for _, raw, kind, _, without_rowid, strict in sorted(listed):
        name = _name(raw)
        if _name(kind) == "view" or name.startswith("sqlite_"):
            continue
        found["tables"][name] = {
            "columns": _columns(connection, name),
            "strict": bool(strict),
            "without_rowid": bool(without_rowid),
            "indexes": _indexes(connection, name),
            "sql": sql.get(name, ""),
        }
        if _name(kind) != "virtual":
            found["rows"][name], left = _rows(connection, name, found["tables"][name]["columns"], left)
    return found


def _integrity(connection: sqlite3.Connection) -> str:
    try:
        return "\n".join(_name(line) for (line,) in connection.execute("PRAGMA integrity_check(20)"))[:4000]
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            raise
        # A constraint may call a function that only its owner has.
        return f"not checked: {_words(error)}"


def _columns(connection: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    return [
        {"name": _name(name), "type": _name(kind), "notnull": bool(notnull), "pk": pk, "hidden": hidden}
        for _, name, kind, notnull, _, pk, hidden in connection.execute(f"PRAGMA main.table_xinfo({_quoted(table)})")
    ]


def _indexes(connection: sqlite3.Connection, table: str) -> list[dict[str, Any]]:
    found = []
    for _, raw, unique, origin, partial in connection.execute(f"PRAGMA main.index_list({_quoted(table)})").fetchall():
        name = _name(raw)
        parts = connection.execute(f"PRAGMA main.index_xinfo({_quoted(name)})").fetchall()
        # Sequence, column, name, descending, collation, whether it belongs to the key.
        columns = [None if part[2] is None else _name(part[2]) for part in parts if part[5]]
        found.append(
            {
                "name": name,
                "unique": bool(unique),
                "partial": bool(partial),
                "origin": _name(origin),
                "columns": columns,
                "expressions": any(part[1] == -2 for part in parts if part[5]),
            }
        )
    return sorted(found, key=lambda index: str(index["name"]))


def _rows(
    connection: sqlite3.Connection, table: str, columns: Sequence[Mapping[str, Any]], left: int
) -> tuple[list[dict[str, Any]], int]:
    """The rows in the order of their text, because a table has none; and how many bytes are left for other tables."""
    names = [column["name"] for column in columns if column["hidden"] != 1]
    wanted = ", ".join(map(_quoted, names))
    found: list[tuple[str, dict[str, Any]]] = []
    for values in connection.execute(f"SELECT {wanted} FROM main.{_quoted(table)}"):  # noqa: S608 - its own names
        if len(found) == MAX_ROWS:
            raise LookError(f"{table} has more than {MAX_ROWS} rows")
        row = dict(zip(names, map(cell, values), strict=True))
        text = json.dumps(row, sort_keys=True)
        left -= len(text)
        if left < 0:
            raise LookError(f"its rows take more than {MAX_LOOK} bytes")
        found.append((text, row))
    return [row for _, row in sorted(found, key=lambda pair: pair[0])], left


def add(
    path: str,
    table: str,
    rows: Sequence[Mapping[str, Any]],
    or_replace: bool,  # noqa: FBT001 - a member of a request
    seconds: float,
) -> dict[str, Any]:
    """Put rows into a table, all or none. `inserted` is false if a constraint refused one, null for any other error.

    Foreign keys are enforced, and triggers run.
    """
    verb = "INSERT OR REPLACE" if or_replace else "INSERT"
    into = f"{verb} INTO main.{{table}} ({{names}}) VALUES ({{marks}})"
    return _tried(path, (_statement(into, table, row, {}) for row in rows), seconds, unless=None)


def _statement(text: str, table: str, row: Mapping[str, Any], to: Mapping[str, Any]) -> tuple[str, list[Any]]:
    """A statement about a row and what becomes of it, and its values. Raises ValueError."""
    cells = {name: _stored(value) for name, value in row.items()}
    changed = {name: _stored(value) for name, value in to.items()}
    statement = text.format(
        table=_quoted(table),
        names=", ".join(map(_quoted, cells)),
        marks=", ".join(place for place, _ in cells.values()),
        set=", ".join(f"{_quoted(name)} = {place}" for name, (place, _) in changed.items()),
        where=" AND ".join(f"{_quoted(name)} IS {place}" for name, (place, _) in cells.items()),
    )
    before, after = ([value for _, value in each.values()] for each in (cells, changed))
    return statement, [*before, *after] if text.startswith("INSERT") else [*after, *before]


def _tried(
    path: str, statements: Iterable[tuple[str, list[Any]]], seconds: float, *, unless: bool | None
) -> dict[str, Any]:
    """What came of statements about one row each: {inserted, error}. `unless` is for a row that is passed over."""
    try:
        with _opened(path, seconds, busy=min(2.0, seconds)) as connection:
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute("BEGIN IMMEDIATE")
            for text, values in statements:
                connection.execute(text, values)
                if connection.execute("SELECT changes()").fetchone() != (1,):
                    return {"inserted": unless, "error": "no constraint refused the row, and yet it was not stored"}
            connection.execute("COMMIT")
    except sqlite3.IntegrityError as error:
        return {"inserted": False, "error": _words(error)}
    except (sqlite3.Error, ValueError, OverflowError, MemoryError) as error:
        return {"inserted": None, "error": _words(error)}
    return {"inserted": True, "error": None}


# How a row that is there is changed: by UPDATE, with a resolution of conflicts, or by an insert that meets it.
_CHANGES = {
    "update": "UPDATE main.{table} SET {set} WHERE {where}",
    "update or replace": "UPDATE OR REPLACE main.{table} SET {set} WHERE {where}",
    "upsert": "INSERT INTO main.{table} ({names}) VALUES ({marks}) ON CONFLICT DO UPDATE SET {set}",
}


def alter(
    path: str, table: str, row: Mapping[str, Any], to: Mapping[str, Any], how: str, seconds: float
) -> dict[str, Any]:
    """Put a row into a table, and then change it in the way `how`. The answer is that of `add`, about the change.

    One that is passed over without an error is not stored either.
    """
    first = add(path, table, [row], or_replace=False, seconds=seconds)
    if not first["inserted"]:
        return {"inserted": None, "error": f"the row that was to be changed: {first['error']}"}
    change = (_statement(text, table, row, to) for text in (_CHANGES[how],))
    return _tried(path, change, seconds, unless=False)


def switch(path: str, journal_mode: str, seconds: float) -> dict[str, Any]:
    """Put a database that no process has open into the journal mode `wal` or `delete`; `error` says why it failed."""
    try:
        with _opened(path, seconds, busy=min(2.0, seconds)) as connection:
            (found,) = connection.execute(f"PRAGMA journal_mode={_quoted(journal_mode)}").fetchone()
    except sqlite3.Error as error:
        return {"error": _words(error)}
    # SQLite answers with its present mode, and raises no error where it kept the old one.
    return {"error": None if _name(found) == journal_mode else f"the journal mode stays {_name(found)}"}


def loosen(path: str, holding: str, seconds: float) -> dict[str, Any]:
    """Rebuild each table without its constraints and its unique indexes, as a tool does that copies the rows alone.

    Rows, triggers and other indexes stay. `tables` names those that lost something, all or none; `error` says why none.
    `holding`: only tables with this text in a row. Their columns stay NOT NULL, and in the place of each unique index
    come three that let every row in.
    """
    lost: list[str] = []
    try:
        with _opened(path, seconds, busy=min(2.0, seconds)) as connection:
            connection.text_factory = str
            connection.execute("PRAGMA legacy_alter_table=ON")
            connection.execute("BEGIN IMMEDIATE")
            tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite~_%' ESCAPE '~'"
            for (name,) in connection.execute(tables).fetchall():
                uniques = {row[1] for row in connection.execute(f"PRAGMA index_list({_quoted(name)})") if row[2]}
                if not uniques or (holding and not _holds(connection, name, holding)):
                    continue
                kept = connection.execute(
                    "SELECT name, sql FROM sqlite_schema WHERE tbl_name = ? AND type <> 'table' AND sql NOTNULL",
                    (name,),
                ).fetchall()
                hollows = list(_hollows(connection, name, uniques)) if holding else []
                rows = f"CREATE TABLE holdfast_rows AS SELECT * FROM {_quoted(name)}"  # noqa: S608 - quoted
                if holding:
                    columns = [
                        f"{_quoted(each['name'])} {each['type']}{' NOT NULL' if each['notnull'] else ''}"
                        for each in _columns(connection, name)
                    ]
                    connection.execute(f"CREATE TABLE holdfast_rows ({', '.join(columns)})")
                    rows = f"INSERT INTO holdfast_rows SELECT * FROM {_quoted(name)}"  # noqa: S608 - quoted
                connection.execute(rows)
                connection.execute(f"DROP TABLE {_quoted(name)}")
                connection.execute(f"ALTER TABLE holdfast_rows RENAME TO {_quoted(name)}")
                for sql in (*(sql for index, sql in kept if index not in uniques), *hollows):
                    connection.execute(sql)
                lost.append(name)
            connection.execute("COMMIT")
    except (sqlite3.Error, MemoryError) as error:
        return {"tables": [], "error": _words(error)}
    return {"tables": lost, "error": None}


def _holds(connection: sqlite3.Connection, table: str, text: str) -> bool:
    names = ", ".join(_quoted(column["name"]) for column in _columns(connection, table))
    asked = f"SELECT 1 FROM {_quoted(table)} WHERE ? IN ({names}) LIMIT 1"  # noqa: S608 - its own names
    return connection.execute(asked, (text,)).fetchone() is not None


def _hollows(connection: sqlite3.Connection, table: str, uniques: Collection[str]) -> Iterator[str]:
    """For each unique index of columns one that is not unique, one of no row, and one of what no two rows share."""
    whole = " || ".join(f"quote({_quoted(column['name'])})" for column in _columns(connection, table))
    for index in _indexes(connection, table):
        if index["name"] in uniques and None not in index["columns"]:
            keys, name = list(map(_quoted, index["columns"])), f"holdfast_{index['name'].removeprefix('sqlite_')}"
            into = f"ON {_quoted(table)}"
            yield f"CREATE INDEX {_quoted(name + '_of_any')} {into} ({', '.join(keys)})"
            yield f"CREATE UNIQUE INDEX {_quoted(name + '_of_none')} {into} ({', '.join(keys)}) WHERE {keys[0]} IS NULL"
            yield f"CREATE UNIQUE INDEX {_quoted(name + '_of_all')} {into} ({', '.join([whole, *keys[1:]])})"


def ignored(path: str, folder: bool, rules: Mapping[str, str]) -> bool:  # noqa: FBT001 - a member of a request
    """Whether git would ignore `path`. `rules` are the .gitignore texts by the folder they lie in ("" for the top).

    As in git: what lies in an ignored folder is ignored; of several files the one nearest to the path decides.
    """
    from pathspec import GitIgnoreSpec

    specs = {where: GitIgnoreSpec.from_lines(text.splitlines()) for where, text in rules.items()}
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        tail = "/" if depth < len(parts) or folder else ""
        for height in range(depth - 1, -1, -1):
            spec = specs.get("/".join(parts[:height]))
            said = None if spec is None else spec.check_file("/".join(parts[height:depth]) + tail).include
            if said is not None:
                if said:
                    return True
                break
    return False
