"""Who can write a file, as far as the system shows: owner and mode of it, of what lies beside it and of its folders."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.conformance.fitness.model import Row
from holdfast.conformance.fitness.sqlite.catalogue import Database

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
