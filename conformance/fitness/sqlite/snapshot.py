"""The catalogue of SQLite files, and the system's description of the files. Nothing is written."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from holdfast.conformance.fitness.errors import FitnessError
from holdfast.conformance.fitness.model import Dialect, Part, Row, Snapshot, Surface
from holdfast.conformance.fitness.policy import CONTRACT
from holdfast.conformance.fitness.server import IDENTITY, identity_of_file
from holdfast.conformance.fitness.sqlite.live import BESIDE, MAIN, in_wal_mode, read
from holdfast.servers.folders import filesystem_of
from holdfast.specs.yamlfile import read_yaml

# The prefix of the queries' names in a structure, for the file itself and for the audit's where that is another one.
AUDIT = "audit"
_QUERIES = f"{CONTRACT}/fitness/sqlite.yaml"


@cache
def queries() -> Mapping[str, str]:
    """The SQL of each query by its name, from the contract's folder."""
    data = read_yaml(Path(str(files("holdfast.specs").joinpath(_QUERIES))))
    return {name: str(query["sql"]) for name, query in data["queries"].items()}


def files_of(surface: Surface, path: Path) -> Mapping[str, Path]:
    """Where the parts of a surface lie: the live file, and the file of an audit that has its own."""
    audit = surface.parts.get(Part.AUDIT)
    found = {MAIN: path.resolve()}
    return found if audit is None or audit.schema == MAIN else {**found, AUDIT: Path(audit.schema).resolve()}


def take(path: Path, surface: Surface) -> Snapshot:
    """The catalogue of each file in one read transaction, and the files' owners and rights. Raises FitnessError."""
    if any(surface.parts[each].schema != MAIN for each in (Part.EFFECT, Part.NONCE) if each in surface.parts):
        raise FitnessError(
            "effect and nonce of a surface in SQLite lie in the file that is looked at: two files have no transaction "
            "together; only an audit may lie elsewhere"
        )
    structure: dict[str, tuple[Row, ...]] = {}
    beside: list[Row] = []
    broken: list[Row] = []
    found = files_of(surface, path)
    for name, file in found.items():
        # Before SQLite opens the file: run as root it gives what lies beside it the rights of the file.
        near = list(_beside(name, file))
        observed, unread = read(file, _catalogue)
        structure |= {f"{name}.{query}": rows for query, rows in observed.items()}
        broken += ({"file": name, "view": view, "error": error} for view, error in unread.items())
        structure[f"{name}.journal"] = ({"mode": "wal" if in_wal_mode(file) else "chosen by each connection"},)
        state = os.stat(file)
        place = {
            "links": state.st_nlink,
            "filesystem": filesystem_of(file),
            "is_main": os.path.samefile(file, found[MAIN]),
        }
        structure[f"{name}.file"] = ({**_rights(state), **place},)
        # A user who may rename a folder above can put another file in the place.
        folders = ({"height": height, **_rights(os.stat(folder))} for height, folder in enumerate(file.parents))
        structure[f"{name}.folders"] = tuple(folders)
        beside += near or _beside(name, file)
    circumstances = {
        "version": sqlite3.sqlite_version,
        "files": {name: str(file) for name, file in found.items()},
        IDENTITY: [identity_of_file(path)],
        "beside": beside,
        "broken": broken,
        "filesystems": {name: filesystem_of(file) for name, file in found.items()},
    }
    return Snapshot(Dialect.SQLITE, structure, circumstances)


def _catalogue(connection: sqlite3.Connection) -> tuple[dict[str, tuple[Row, ...]], dict[str, str]]:
    """The rows of each query by its name, and by the view's name why it cannot be read. Raises sqlite3.Error."""
    broken = dict(_broken(connection))
    connection.row_factory = sqlite3.Row
    given = {"broken": json.dumps(list(broken))}
    return {name: tuple(map(dict, connection.execute(sql, given))) for name, sql in queries().items()}, broken


def _broken(connection: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """Views that speak of what is not there any more. SQLite finds that out when it is asked for their columns."""
    views = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'view' ORDER BY name").fetchall()
    for (name,) in views:
        try:
            connection.execute("SELECT count(*) FROM pragma_table_xinfo(?)", (name,)).fetchone()
        except sqlite3.OperationalError as error:
            yield str(name), str(error)


def _rights(found: os.stat_result) -> dict[str, int | str]:
    return {"owner": found.st_uid, "group": found.st_gid, "mode": f"{stat.S_IMODE(found.st_mode):04o}"}


def _beside(name: str, file: Path) -> Iterator[Row]:
    """What SQLite keeps beside a file. It comes and goes, so no digest rests on it."""
    for ending in BESIDE:
        try:
            found = os.lstat(file.with_name(file.name + ending))
        except OSError:
            continue
        yield {"file": name, "what": ending, "regular": stat.S_ISREG(found.st_mode), **_rights(found)}
