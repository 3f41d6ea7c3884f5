"""Modes, owners and times of the files in a state of the disk.

The model does not cover what a crash leaves of them. So a state is rebuilt with the metadata that the files had at
their making, and with the times of their writes. If a store breaks a promise on that state, and keeps it with the
metadata that it has set, then it depends on something that no model covers. Nothing is proven then.
"""

from __future__ import annotations

import contextlib
import os
import time
from array import array
from bisect import bisect_right
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum, unique
from pathlib import Path

from holdfast.conformance.faults.model.plan import Candidate
from holdfast.conformance.faults.recording import (
    ROOT,
    Changed,
    Mapped,
    Named,
    Names,
    Recording,
    Rights,
    Truncate,
    Type,
    Write,
)

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


@dataclass(slots=True)
class _History:
    """The metadata of a file, by numbers of operations. `made` are the rights that it had when it was made."""

    made: Rights | None = None
    written: array[int] = field(default_factory=lambda: array("Q"))
    # Nanoseconds since 1970, one for each of `written`.
    times: array[int] = field(default_factory=lambda: array("q"))
    changed: list[tuple[int, Changed]] = field(default_factory=list)
    # When it was written before the recording; None for a file that is made in it.
    before: int | None = None

    def write(self, number: int, now: int) -> None:
        """Its bytes were changed."""
        self.written.append(number)
        self.times.append(now)

    def look(self, last: int, given: Given) -> _Look:
        """Its metadata after operation `last`."""
        place = bisect_right(self.written, last)
        by, modified = (self.written[place - 1], self.times[place - 1]) if place else (0, self.before)
        look = _Look(self.made, modified)
        for number, action in self.changed if given is not Given.MADE else ():
            if number <= last:
                is_later = action.modified is not None and number > by
                look = _Look(action.rights, action.modified if is_later else look.modified)
        return look


class Metadata:
    """The metadata of a recording's files. Reads the recording once, and keeps 16 bytes of each write."""

    def __init__(self, recording: Recording) -> None:
        since_boot = time.time_ns() - time.monotonic_ns()
        self._files = {
            entry.file: _History(entry.rights) for entry in recording.snapshot if entry.type is not Type.LINK
        }
        self._begun: int | None = None
        paths = {entry.file: next(iter(entry.names), b"") for entry in recording.snapshot}
        calls: dict[tuple[int, str], str] = {}
        for operation in recording.operations:
            action, number, now = operation.action, operation.number, operation.at + since_boot
            self._begun = now if self._begun is None else self._begun
            match action:
                case Names():
                    self._named(action, number, now)
                    paths |= {one.file: one.path for one in action.changes if isinstance(one, Named)}
                case Write() | Mapped() | Truncate():
                    self._files.setdefault(action.file, _History()).write(number, now)
                case Changed():
                    self._files.setdefault(action.file, _History()).changed.append((number, action))
                    name = os.fsdecode(paths.get(action.file, b"")) or "the work directory"
                    calls.pop((action.file, operation.call), None)
                    calls[action.file, operation.call] = f"{operation.call} of {name} (operation {number})"
                case _:
                    pass
        # What was there before is older than all that is written, and not as new as the copy that a restart gets.
        for place, entry in enumerate(reversed(recording.snapshot), start=1):
            if entry.file in self._files:
                self._files[entry.file].before = (self._begun or 0) - place * _STEP_NS
        # The calls that set a mode, an owner or a time, in words, the last first; empty if none did.
        self.was_set = tuple(reversed(calls.values()))

    def write(self, candidate: Candidate, folder: Path, given: Given = Given.MADE) -> None:
        """Put the tree of a state into an empty folder, its files with the metadata that is wanted. Raises OSError."""
        state, numbers = candidate.state, candidate.numbers
        state.write(folder)
        last = numbers[0] if given is Given.BEFORE else numbers[-1]
        wanted = {ROOT, *(file for _, file, _ in state.names.visible)}
        looks, root = self._looks(wanted, last, given), os.fsencode(folder)
        if ROOT in looks:
            _apply(root, Type.DIRECTORY, looks[ROOT])
        # A directory that is read-only is closed last.
        for path, file, first in reversed(state.names.visible):
            kind = state.names.kinds[file][0]
            if path == first and file in looks and kind is not Type.LINK:
                _apply(os.path.join(root, path), kind, looks[file])

    def _named(self, action: Names, number: int, now: int) -> None:
        for one in action.changes:
            if isinstance(one, Named) and one.type is not Type.LINK:
                if one.file not in self._files:
                    self._files[one.file] = _History(one.rights)
                    self._files[one.file].write(number, now)
                elif self._files[one.file].made is None:
                    # It had bytes before it had a name.
                    self._files[one.file].made = one.rights

    def _looks(self, files: Collection[int], last: int, given: Given) -> Mapping[int, _Look]:
        """The metadata of each of these files after operation `last`."""
        looks = {file: self._files[file].look(last, given) for file in files if file in self._files}
        if given is Given.TURNED:
            written = sorted((look.modified, file) for file, look in looks.items() if look.modified is not None)
            for place, (_, file) in enumerate(written):
                looks[file] = replace(looks[file], modified=(self._begun or 0) - place * _STEP_NS)
        return looks


def _apply(path: bytes, kind: Type, look: _Look) -> None:
    if look.rights is not None:
        # A user other than root owns what it writes.
        with contextlib.suppress(PermissionError):
            os.chown(path, look.rights.user, look.rights.group)
        os.chmod(path, look.rights.mode)
    if look.modified is not None and kind is Type.FILE:
        os.utime(path, ns=(look.modified, look.modified))
