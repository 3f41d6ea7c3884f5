"""Modes, owners and times of the files in a state of the disk.

What of them a crash leaves is not modelled. So a state is rebuilt as the files were made, with the times at which they
were written; where a store breaks a promise on that, and keeps it once what it has set is there as well, it depends on
what no model answers for, and nothing is proven.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum, unique
from pathlib import Path

from conformance.faults.model import Candidate
from conformance.faults.recording import (
    ROOT,
    Changed,
    Mapped,
    Named,
    Names,
    Operation,
    Recording,
    Rights,
    Truncate,
    Type,
    Write,
)

# So many of the calls that set something are named.
_MOST_SHOWN = 3
# Apart in the other order, so that no clock takes two for one.
_STEP_NS = 10_000_000_000


@unique
class Given(StrEnum):
    """What the files of a state are given."""

    MADE = "modes and owners as the files were made with, times as they were written"
    BEFORE = "modes, owners and times as they were set when the disk first stood so"
    SET = "modes, owners and times as they were set when it last stood so"
    TURNED = "times in the opposite order"


@dataclass(frozen=True, slots=True)
class _Look:
    rights: Rights | None = None
    # Nanoseconds since 1970.
    modified: int | None = None


def write(candidate: Candidate, recording: Recording, folder: Path, given: Given = Given.MADE) -> None:
    """Put the tree of a state into an empty folder, its files with the metadata that is wanted. Raises OSError."""
    state, numbers = candidate.state, candidate.numbers
    state.write(folder)
    last = numbers[0] if given is Given.BEFORE else numbers[-1]
    looks, root = _looks(recording, last, given), os.fsencode(folder)
    if ROOT in looks:
        _apply(root, Type.DIRECTORY, looks[ROOT])
    # A directory that nobody may write to is closed last.
    for path, file, first in reversed(state.names.visible):
        kind = state.names.kinds[file][0]
        if path == first and file in looks and kind is not Type.LINK:
            _apply(os.path.join(root, path), kind, looks[file])


def was_set(recording: Recording) -> tuple[str, ...]:
    """The calls that set a mode, an owner or a time, in words, the last first; empty if none did."""
    paths: dict[int, bytes] = {}
    found: dict[tuple[int, str], str] = {}
    for entry in recording.snapshot:
        paths |= dict.fromkeys([entry.file], next(iter(entry.names), b""))
    for operation in recording.operations:
        action = operation.action
        if isinstance(action, Names):
            paths |= {one.file: one.path for one in action.changes if isinstance(one, Named)}
        elif isinstance(action, Changed):
            name = os.fsdecode(paths.get(action.file, b"")) or "the work directory"
            found.pop((action.file, operation.call), None)
            found[action.file, operation.call] = f"{operation.call} of {name} (operation {operation.number})"
    return tuple(reversed(found.values()))


def some(words: tuple[str, ...]) -> str:
    """The first of them, and how many there are."""
    more = f" and {len(words) - _MOST_SHOWN} more" if len(words) > _MOST_SHOWN else ""
    return f"{', '.join(words[:_MOST_SHOWN])}{more}"


def _looks(recording: Recording, last: int, given: Given) -> Mapping[int, _Look]:
    """Of each file, as it was after operation `last`."""
    since_boot = time.time_ns() - time.monotonic_ns()
    looks = {entry.file: _Look(entry.rights) for entry in recording.snapshot if entry.type is not Type.LINK}
    for operation in recording.operations[:last]:
        _follow(looks, operation, operation.at + since_boot, given)
    if given is Given.TURNED:
        written = sorted((look.modified, file) for file, look in looks.items() if look.modified is not None)
        oldest = since_boot + recording.operations[0].at if recording.operations else since_boot
        for place, (_, file) in enumerate(written):
            looks[file] = replace(looks[file], modified=oldest - place * _STEP_NS)
    return looks


def _follow(looks: dict[int, _Look], operation: Operation, now: int, given: Given) -> None:
    action = operation.action
    match action:
        case Names():
            for one in action.changes:
                if isinstance(one, Named) and one.file not in looks and one.type is not Type.LINK:
                    looks[one.file] = _Look(one.rights, now)
        case Write() | Mapped() | Truncate():
            looks[action.file] = replace(looks.get(action.file, _Look()), modified=now)
        case Changed() if given is not Given.MADE:
            before = looks.get(action.file, _Look())
            looks[action.file] = _Look(action.rights, action.modified or before.modified)
        case _:
            pass


def _apply(path: bytes, kind: Type, look: _Look) -> None:
    if look.rights is not None:
        # Who is not root owns what he writes.
        with contextlib.suppress(PermissionError):
            os.chown(path, look.rights.user, look.rights.group)
        os.chmod(path, look.rights.mode)
    if look.modified is not None and kind is Type.FILE:
        os.utime(path, ns=(look.modified, look.modified))
