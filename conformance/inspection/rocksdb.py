"""The rows of a RocksDB database. It runs in the helper process, and reads a copy that no other process uses.

Each column family is shown as a table with the columns `key` and `value`, both BLOBs. What a crash left of the
write-ahead log is read up to its first damaged record, as RocksDB does for a database that is opened again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.conformance.inspection.database import MAX_LOOK, MAX_OBJECTS, MAX_ROWS, LookError, cell, nothing

# Tables that are written here can be read by every RocksDB since 5.16; those of the newest format by few.
_FORMAT = 4
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
        options, families = _options(Rdict.list_cf(path))
        if family not in families:
            return {"error": f"it has no family {family}"}
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


def _put(rows: Any, key: str, value: str | None) -> None:
    from rocksdict import WriteOptions

    synced = WriteOptions()
    synced.sync = True
    if value is None:
        rows.delete(bytes.fromhex(key), synced)
    else:
        rows.put(bytes.fromhex(key), bytes.fromhex(value), synced)


def _options(names: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """Options of a database with these families, and of each family."""
    from rocksdict import BlockBasedOptions, DBRecoveryMode, Options

    options, table = Options(raw_mode=True), BlockBasedOptions()
    families = {name: Options(raw_mode=True) for name in names}
    table.set_format_version(_FORMAT)
    for each in (options, *families.values()):
        each.set_block_based_table_factory(table)
    options.create_if_missing(False)
    options.set_paranoid_checks(True)
    options.set_max_file_opening_threads(1)
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    return options, families


def _look(path: str) -> dict[str, Any]:
    from rocksdict import AccessType, Rdict, ReadOptions

    names = sorted(Rdict.list_cf(path))
    if len(names) > MAX_OBJECTS:
        raise LookError(f"it has more than {MAX_OBJECTS} column families")
    (options, families), reading = _options(names), ReadOptions()
    reading.set_verify_checksums(True)
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
    found: list[dict[str, Any]] = []
    iterator.seek_to_first()
    while iterator.valid():
        if len(found) == MAX_ROWS:
            raise LookError(f"{family} has more than {MAX_ROWS} rows")
        row = {"key": cell(bytes(iterator.key())), "value": cell(bytes(iterator.value()))}
        left -= len(json.dumps(row))
        if left < 0:
            raise LookError(f"its rows take more than {MAX_LOOK} bytes")
        found.append(row)
        iterator.next()
    # An iterator ends at a damaged block as it ends behind the last row.
    iterator.status()
    return found, left
