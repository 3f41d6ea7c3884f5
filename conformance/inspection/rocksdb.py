"""The rows of a RocksDB database. It runs in the helper process, and reads a copy that no other process uses.

Each column family is shown as a table with the columns `key` and `value`, both BLOBs. What a crash left of the
write-ahead log is read up to its first damaged record, as RocksDB does for a database that is opened again.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.conformance.inspection.database import MAX_LOOK, MAX_OBJECTS, MAX_ROWS, LookError, cell, nothing

# RocksDB writes the options of a database into it at each opening; the newest have the highest number.
_OPTIONS = "OPTIONS-*"
# rocksdict leaves this file in every database that it opens.
_LEFT = "rocksdict-config.json"
_COLUMNS = [
    {"name": name, "type": "BLOB", "notnull": True, "pk": pk, "hidden": 0} for name, pk in (("key", 1), ("value", 0))
]


def inspect(path: str) -> dict[str, Any]:
    """Every row of every column family of the database in the folder `path`. Nothing is written but RocksDB's log."""
    try:
        return _look(path)
    except Exception as error:  # rocksdict raises nothing more special
        return nothing(exists=True, error=(str(error) or type(error).__name__)[:500])


def alter(path: str, family: str, change: Mapping[str, Any]) -> dict[str, Any]:
    """Change a family of the database in the folder `path`: {key, value} puts a row, or removes it where the value is
    None, both in hexadecimal; {drop: true} drops the family, {drop: false} only opens and closes the database.

    `error` says why it could not be done: another process has the database open, there is no such family.
    """
    from rocksdict import AccessType, Rdict

    try:
        names = Rdict.list_cf(path)
        if family not in names:
            return {"error": f"it has no family {family}"}
        options, families = _own(path, names) or _plain(names)
        for each in families.values():
            each.set_disable_auto_compactions(True)
        with _options_kept(Path(path), dropped=family if change.get("drop") else None):
            database = Rdict(path, options, families, AccessType.read_write())
            try:
                if "key" in change:
                    _put(database.get_column_family(family), **change)
                elif change["drop"]:
                    database.drop_column_family(family)
            finally:
                database.close()
    except Exception as error:  # rocksdict raises nothing more special
        return {"error": (str(error) or type(error).__name__)[:500]}
    return {"error": None}


@contextlib.contextmanager
def _options_kept(folder: Path, *, dropped: str | None) -> Iterator[None]:
    """The owner of the database finds the options of before, without those of a family that was dropped."""
    before, left = _newest(folder), (folder / _LEFT).exists()
    text = before.read_text() if before else None
    try:
        yield
    finally:
        after = _newest(folder)
        if after and text is not None and after != before:
            if dropped is not None:
                text = re.sub(rf'(?ms)^\[[^"\]]* "{re.escape(dropped)}"\]$.*?(?=^\[|\Z)', "", text)
            after.write_text(text)
        if not left:
            (folder / _LEFT).unlink(missing_ok=True)


def _newest(folder: Path) -> Path | None:
    return max(folder.glob(_OPTIONS), key=lambda file: int(file.name.rpartition("-")[2]), default=None)


def _put(rows: Any, key: str, value: str | None) -> None:
    from rocksdict import WriteOptions

    synced = WriteOptions()
    synced.sync = True
    if value is None:
        rows.delete(bytes.fromhex(key), synced)
    else:
        rows.put(bytes.fromhex(key), bytes.fromhex(value), synced)


def _own(path: str, names: Sequence[str]) -> tuple[Any, dict[str, Any]] | None:
    """The options that the database itself states, of it and of each of its families; None if it states none."""
    from rocksdict import Options

    if _newest(Path(path)) is None:
        return None
    options, stated = Options.load_latest(path, ignore_unknown_options=True)
    _guarded(options)
    return options, {name: stated[name] if name in stated else Options(raw_mode=True) for name in names}


def _plain(names: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """The options of a database that states none."""
    from rocksdict import Options

    options = Options(raw_mode=True)
    _guarded(options)
    return options, {name: Options(raw_mode=True) for name in names}


def _guarded(options: Any) -> None:
    """Nothing is made where it is missing, and nothing is written outside of the database."""
    options.create_if_missing(False)
    options.create_missing_column_families(False)
    options.set_error_if_exists(False)
    options.set_paranoid_checks(True)
    options.set_db_log_dir("")
    options.set_max_file_opening_threads(1)


def _look(path: str) -> dict[str, Any]:
    from rocksdict import AccessType, DBRecoveryMode, Rdict, ReadOptions

    names = sorted(Rdict.list_cf(path))
    if len(names) > MAX_OBJECTS:
        raise LookError(f"it has more than {MAX_OBJECTS} column families")
    try:
        options, families = _own(path, names) or _plain(names)
    except Exception:  # rocksdict raises nothing more special; options that cannot be read hide no row
        options, families = _plain(names)
    # The copy has the tables and the log in one folder.
    options.set_wal_dir(path)
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    reading = ReadOptions()
    reading.set_verify_checksums(True)
    reading.set_total_order_seek(True)
    database = Rdict(path, options, families, AccessType.read_only(False))
    found = nothing(exists=True, error=None)
    # RocksDB has a write-ahead log always; every block that was read had the checksum that was written with it.
    found["journal_mode"], found["integrity"] = "wal", "ok"
    left = MAX_LOOK
    try:
        for name in names:
            rows, left = _rows(name, database.get_column_family(name).iter(reading), left)
            # Every database has a family of this name, whether its owner uses it or not.
            if name != "default" or rows:
                found["rows"][name] = rows
                found["tables"][name] = {
                    "columns": _COLUMNS,
                    "strict": False,
                    "without_rowid": True,
                    "indexes": [],
                    "sql": "",
                }
    finally:
        database.close()
    return found


def _rows(family: str, iterator: Any, left: int) -> tuple[list[dict[str, Any]], int]:
    """The rows in the order of their keys, and how many bytes are left for other families."""
    found: list[tuple[bytes, dict[str, Any]]] = []
    iterator.seek_to_first()
    while iterator.valid():
        if len(found) == MAX_ROWS:
            raise LookError(f"{family} has more than {MAX_ROWS} rows")
        row = {"key": cell(bytes(iterator.key())), "value": cell(bytes(iterator.value()))}
        left -= len(json.dumps(row))
        if left < 0:
            raise LookError(f"its rows take more than {MAX_LOOK} bytes")
        found.append((bytes(iterator.key()), row))
        iterator.next()
    # An iterator ends at a damaged block as it ends after the last row.
    iterator.status()
    # A database may keep its keys in another order than that of their bytes.
    return [row for _, row in sorted(found, key=lambda each: each[0])], left
