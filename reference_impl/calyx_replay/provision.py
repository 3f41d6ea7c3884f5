"""Makes a mailbox's database on request. Sessions never make one: they copy a template or use the one that is there."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

from holdfast.reference_impl.calyx_replay.location import Location
from holdfast.reference_impl.calyx_replay.schema import Schema


class ProvisionError(Exception):
    """The database cannot be made; the text says what was expected, what came, and what to do."""


class Provisioner:
    """Makes databases and copies them."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def make(self, location: Location) -> None:
        """Make the database of one mailbox where there is none. Raises ProvisionError."""
        try:
            self.build(location)
        except FileExistsError:
            raise ProvisionError(
                f"expected no database at {location.database}, got one; it is never overwritten, move it away first"
            ) from None
        except (OSError, sqlite3.Error) as error:
            raise ProvisionError(f"cannot make {location.database}: {error}") from error

    def build(self, location: Location) -> None:
        """As `make`. Raises ProvisionError, sqlite3.Error, OSError."""
        location.make_folder()
        location.make_file()
        location.make_ignored()
        with contextlib.closing(sqlite3.connect(location.database)) as connection:
            self.fill(connection)

    def fill(self, connection: sqlite3.Connection) -> None:
        """Put the database into WAL mode and make its tables. Raises ProvisionError, sqlite3.Error."""
        # SQLite answers with the mode that it has now. It raises no error if it could not change the mode.
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        if mode != "wal":
            raise ProvisionError(f"expected journal mode wal, got {mode}; this file system may not allow it")
        connection.executescript(";\n".join(("BEGIN", *self._schema.statements(), "COMMIT")))

    def copy(self, template: Path, location: Location) -> None:
        """A copy of the template in an empty place, which git is to ignore. Raises OSError."""
        source = template / location.database.relative_to(location.root.absolute())
        location.make_folder()
        # The copy keeps the file times of the template, so that a later write to the copy is visible, and its mode.
        shutil.copy2(source, location.database)
        location.make_ignored()
