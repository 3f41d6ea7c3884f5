"""Describes the lost pending operations: bytes of which file and operations, and when they were synced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from holdfast.conformance.faults.model.contents import EMPTY
from holdfast.conformance.faults.model.disk import Point
from holdfast.conformance.faults.model.pending import PAGE, Data, Moved, OfFile, Pending
from holdfast.conformance.faults.recording import Named

# How many changes of names are described one by one.
SHOWN_NAMES = 4


def losses(point: Point, lost: Sequence[Pending]) -> tuple[str, ...]:
    """The losses, the file with most of them first. What a failed sync gave up is lost in each state but one."""
    return (*_bytes_lost(point, lost), *_given_up(point), *_names_lost(lost))


def path_of(point: Point, file: int) -> str:
    """The name of a file for a person."""
    return point.paths.get(file, b"a file without a name").decode("utf-8", "backslashreplace")


def _operations(numbers: Iterable[int]) -> str:
    found = sorted(set(numbers))
    if len(found) == 1:
        return f"op {found[0]}"
    return f"ops {found[0]}\N{EN DASH}{found[-1]}"


def _bytes_lost(point: Point, lost: Sequence[Pending]) -> Iterator[str]:
    files: dict[int, list[OfFile]] = {}
    for unit in lost:
        if not isinstance(unit, Moved):
            files.setdefault(unit.file, []).append(unit)
    counts = {
        file: sum(unit.end - unit.begin for unit in units if isinstance(unit, Data)) for file, units in files.items()
    }
    for file in sorted(files, key=lambda file: counts[file], reverse=True):
        what = f"{counts[file]:,} unsynced bytes" if counts[file] else "an unsynced size"
        synced = point.synced.get(file)
        when = "never synced" if synced is None else f"last sync at op {synced}"
        ops = _operations(unit.operation for unit in files[file])
        yield f"{path_of(point, file)} had {what} ({ops}, {when})"


def _given_up(point: Point) -> Iterator[str]:
    for file, pages in point.doomed.items():
        size = point.live.get(file, EMPTY).size
        if pages:
            count = sum(min(page * PAGE + PAGE, size) - page * PAGE for page in pages)
            by = _operations(pages.values())
            yield f"{path_of(point, file)} had {count:,} bytes that the failed sync of {by} gave up"


def _names_lost(lost: Sequence[Pending]) -> Iterator[str]:
    moves = [move for move in lost if isinstance(move, Moved)]
    told = []
    for move in moves[:SHOWN_NAMES]:
        changes = [
            ("+" if isinstance(one, Named) else "-") + one.path.decode("utf-8", "backslashreplace")
            for one in move.changes[:SHOWN_NAMES]
        ]
        more = " …" if len(move.changes) > SHOWN_NAMES else ""
        told.append(f"op {move.operation} {' '.join(changes)}{more}")
    if told:
        more = ", …" if len(moves) > SHOWN_NAMES else ""
        count = "a change" if len(moves) == 1 else f"{len(moves)} changes"
        yield f"{count} of names had not been synced ({', '.join(told)}{more})"
