"""Makes a mailbox's database on request. Sessions never make one: they copy a template or use the one that is there."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path

from holdfast.reference_impl.calyx_replay.location import Location
from holdfast.reference_impl.calyx_replay.schema import statements
from holdfast.reference_impl.sqlite import StoreError, enter_wal


class ProvisionError(Exception):
    """The database cannot be made; the text says what was expected, what came, and what to do."""


def make(location: Location) -> None:
    """Make the database of one mailbox where there is none. Raises ProvisionError."""
    try:
        _build(location)
    except FileExistsError:
        raise ProvisionError(
            f"expected no database at {location.database}, got one; it is never overwritten, move it away first"
        ) from None
    except (OSError, sqlite3.Error, StoreError) as error:
        raise ProvisionError(f"cannot make {location.database}: {error}") from error


def _build(location: Location) -> None:
    location.make_folder()
    location.make_file()
    location.make_ignored()
    with contextlib.closing(sqlite3.connect(location.database)) as connection:
        enter_wal(connection)
        connection.executescript(";\n".join(("BEGIN", *statements(), "COMMIT")))


def copy(template: Path, location: Location) -> None:
    """A copy of the template in an empty place, which git is to ignore. Raises OSError."""
    source = template / location.database.relative_to(location.root.absolute())
    location.make_folder()
    # The copy keeps the file times of the template, so that a later write to the copy is visible, and its mode.
    shutil.copy2(source, location.database)
    location.make_ignored()
