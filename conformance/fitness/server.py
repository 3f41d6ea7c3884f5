"""The server of a surface: a proof names it, a gate expects it, and a registrar reads it again.

PostgreSQL says it itself (the query `identity`). A SQLite file has no identity of its own: its host, path and inode
stand for one.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

from holdfast.conformance.fitness.model import Dialect, Row, Snapshot
from holdfast.specs.typed import Form, Text, about

# The circumstance of a snapshot that says which server it is; for PostgreSQL the name of the query.
IDENTITY = "identity"
# The members that identify a server and its database. The others say how far it has come.
SAME = ("system_identifier", "database", "database_oid", "timeline", "replica")
# Clocks of machines in one installation differ by seconds; and an inspection takes time to begin.
_CLOCKS = timedelta(minutes=5)


class Server(Form, frozen=True):
    """A server and its database. `name` is what `--server` of the gate takes."""

    name: Annotated[Text, about("SYSTEM_IDENTIFIER/DATABASE, or sqlite:HOST:PATH.")]
    replica: bool
    facts: Annotated[Mapping[str, Any], about("All that was read of its identity and of how far it has come.")]

    def same_as(self, other: Server) -> bool:
        """Whether both are one database of one server in one history."""
        names = SAME if "system_identifier" in self.facts else ("host", "path", "inode", "device")
        return all(self.facts.get(name) == other.facts.get(name) for name in names)

    def clock_contradicts(self, made: datetime) -> bool:
        """Whether the server's own clock said something else than `made` when it was inspected."""
        text = self.facts.get("clock")
        if text is None:
            return False
        try:
            return abs(datetime.fromisoformat(str(text)).astimezone(UTC) - made) > _CLOCKS
        except (ValueError, OverflowError):
            return True


def server_of(snapshot: Snapshot) -> Server | None:
    """The server of a snapshot; None where it could not be read."""
    rows: Sequence[Row] = snapshot.circumstances.get(IDENTITY, ())
    if len(rows) != 1:
        return None
    (row,) = rows
    if snapshot.dialect is Dialect.SQLITE:
        return Server(f"sqlite:{row['host']}:{row['path']}", replica=False, facts=row)
    # The identifier is made of digits, so that a slash in the name of a database is no trouble.
    return Server(f"{row['system_identifier']}/{row['database']}", replica=row["replica"] is not False, facts=row)


def identity_of_file(path: Path) -> Mapping[str, str]:
    """The identity that is used for a SQLite file. Raises OSError."""
    found = os.stat(path)
    return {
        "host": platform.node(),
        "path": str(path.resolve()),
        "inode": str(found.st_ino),
        "device": str(found.st_dev),
    }


def unidentified(snapshot: Snapshot, again: Snapshot) -> str:
    """Why evidence proves nothing of one live server: it has no name, is a replica, or was another one in the end.

    `again` is the second reading, at the end. Empty if it is one server.
    """
    server = server_of(snapshot)
    if server is None:
        return (
            "which server this is could not be read (pg_control_system, pg_control_checkpoint, pg_walfile_name); a "
            "proof names its server: let this role EXECUTE them, as everybody may by default, and look again"
        )
    if server.replica:
        return "this server is a replica, and consumed keys are held by its primary; look at the primary"
    after = server_of(again)
    if after is None or not server.same_as(after):
        return f"another server answered in the end than {server.name} in the beginning; name one server and look again"
    return ""
