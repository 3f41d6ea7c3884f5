"""The files that a store keeps its data in, and what can become of them behind its back."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

# How many files are taken away alone, half of them the largest, half of them chosen at random.
_ALONE = 8
# How much of a file's beginning becomes garbage, in bytes: the first page of any database, and every header.
_GARBAGE = 4096
# A file of another format is at least as long as the file that it replaces, up to this number of bytes: a store that
# works in pages does not read less than one page.
_FOREIGN_MOST = 1 << 20
_SECTOR = 512
# What a disk of memory gives to a file at a time, in bytes.
PAGE = 4096
# How many damages are there to try.
_DAMAGES = 100
# What every database of SQLite begins with.
SQLITE = b"SQLite format 3\0"

# What becomes of the bytes of a file; None: it is gone.
Change = Callable[[bytes], bytes | None]


@dataclass(frozen=True, slots=True)
class Variant:
    """Something that becomes of these files, names relative to the work directory, in words."""

    text: str
    files: tuple[str, ...]
    change: Change

    def apply(self, folder: Path) -> None:
        """Do it in a copy of the folder. Raises OSError."""
        for name in self.files:
            path = folder / name
            changed = self.change(path.read_bytes())
            if changed is None:
                path.unlink()
            else:
                # In place: the name, the rights and the owner stay.
                path.write_bytes(changed)

    def is_there(self, folder: Path) -> bool:
        """Whether the folder has all of these files."""
        return all((folder / name).is_file() for name in self.files)

    def is_as_left(self, folder: Path, original: Path) -> bool:
        """Whether the files in the folder are as this has left them: nothing was written to them since."""
        return all(
            (folder / name).is_file() and (folder / name).read_bytes() == self.change((original / name).read_bytes())
            for name in self.files
        )

    def undo(self, folder: Path, original: Path) -> None:
        """Put the files back as they were. Raises OSError."""
        for name in self.files:
            path, whole = folder / name, original / name
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(whole, path)
            if not os.geteuid():
                # The store may run as another user.
                os.chown(path, whole.stat().st_uid, whole.stat().st_gid)

    def empties(self, folder: Path, base: Path | None) -> bool:
        """Whether it empties a file that had bytes before any work."""
        return base is not None and any(
            self.change((folder / name).read_bytes()) == b""
            and (base / name).is_file()
            and (base / name).stat().st_size > 0
            for name in self.files
        )

    def changes(self, folder: Path) -> bool:
        """Whether it changes anything in a folder; zeros do not become zeros."""
        return any(self.change(data) != data for data in ((folder / name).read_bytes() for name in self.files))


@dataclass(frozen=True, slots=True)
class Stored:
    """The store's files in `folder` by name, each with its size. `chosen` are those that are worth taking away alone:
    with data, and changed or made by the work."""

    folder: Path
    sizes: dict[str, int]
    chosen: tuple[str, ...]

    def empty_without(self, variant: Variant) -> bool:
        """Whether no file has any byte left, as before a first start."""
        return all(
            not size or (name in variant.files and not variant.change((self.folder / name).read_bytes()))
            for name, size in self.sizes.items()
        )


def stored(folder: Path, base: Path | None, scratch: Sequence[str], seed: int) -> Stored:
    """What a run has left in a folder that began as a copy of `base`. Raises OSError."""
    sizes = {name: (folder / name).stat().st_size for name in _names(folder, scratch)}
    before = set() if base is None else set(_names(base, scratch))
    worked = [
        name
        for name, size in sizes.items()
        if size and (name not in before or base is None or (base / name).read_bytes() != (folder / name).read_bytes())
    ]
    # What the work did not touch is worth as much as there is room for.
    rest = sorted((name for name, size in sizes.items() if size and name not in worked), key=lambda name: -sizes[name])
    worked.sort(key=lambda name: -sizes[name])
    largest, others = worked[: _ALONE // 2], worked[_ALONE // 2 :]
    drawn = random.Random(seed)  # noqa: S311  generated anew from the same seed, nothing to guard
    chosen = [*largest, *drawn.sample(others, min(len(others), _ALONE - len(largest))), *rest][:_ALONE]
    return Stored(folder, sizes, tuple(chosen))


def _names(folder: Path, scratch: Sequence[str]) -> Iterator[str]:
    """Regular files, sorted; a pattern for a folder covers what is in it."""
    for inside, folders, files in os.walk(folder):
        folders.sort()
        for file in sorted(files):
            path = Path(inside, file)
            relative = path.relative_to(folder)
            covered = [str(one) for one in (relative, *relative.parents)]
            if any(fnmatchcase(one, pattern) for one in covered for pattern in scratch):
                continue
            if path.is_file() and not path.is_symlink():
                yield str(relative)


def _groups(of: Stored) -> Iterator[tuple[str, ...]]:
    """All files at once, then all that have one name, as one database of each user has, then each alone."""
    every = tuple(name for name, size in of.sizes.items() if size)
    yield every
    for alike in sorted({Path(name).name for name in of.chosen}):
        group = tuple(name for name in every if Path(name).name == alike)
        if 1 < len(group) < len(every):
            yield group
    if len(every) > 1:
        yield from ((name,) for name in of.chosen)


def _were(files: Sequence[str]) -> str:
    if len(files) == 1:
        return f"{files[0]} was"
    alike = {Path(name).name for name in files}
    return f"all {len(files)} files {f'{alike.pop()} ' if len(alike) == 1 else ''}of the store were"


def missing(of: Stored) -> Iterator[Variant]:
    """Unlinked."""
    for files in _groups(of):
        yield Variant(f"{_were(files)} unlinked", files, lambda _: None)


def truncated(of: Stored) -> Iterator[Variant]:
    """Cut to nothing, and to half."""
    for files in _groups(of):
        yield Variant(f"{_were(files)} cut to 0 bytes", files, lambda _: b"")
        yield Variant(f"{_were(files)} cut to half", files, lambda data: data[: len(data) // 2])


def corrupt(of: Stored, seed: int) -> Iterator[Variant]:
    """Garbage in the place of the first bytes."""

    def garbage(data: bytes) -> bytes:
        size = min(len(data), _GARBAGE)
        return random.Random(seed).randbytes(size) + data[size:]  # noqa: S311  generated anew from the same seed

    for files in _groups(of):
        yield Variant(f"{_were(files)} given garbage for the first {_GARBAGE} bytes", files, garbage)


def foreign(of: Stored) -> Iterator[Variant]:
    """Files of another format: another database for one of SQLite, text for anything else."""
    other = _other_database()

    def replaced(data: bytes) -> bytes:
        if data.startswith(SQLITE):
            return other
        text = b"This file belongs to something else altogether.\n"
        size = max(len(text), min(len(data), _FOREIGN_MOST))
        return (text * (size // len(text) + 1))[:size]

    for files in _groups(of):
        yield Variant(f"{_were(files)} replaced by what is of another format", files, replaced)


def _other_database() -> bytes:
    with tempfile.TemporaryDirectory(prefix="holdfast-foreign-") as folder:
        path = Path(folder, "other.db")
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE measurement (at TEXT, celsius REAL)")
            db.execute("INSERT INTO measurement VALUES ('2026-01-01T00:00:00Z', 21.5)")
        db.close()
        return path.read_bytes()


def damages(of: Stored, seed: int) -> Iterator[Variant]:
    """Bits that turned, sectors that became zeros, tails that are gone, in a randomised order."""
    drawn = random.Random(seed)  # noqa: S311  generated anew from the same seed, nothing to guard
    for number in range(_DAMAGES):
        if not of.chosen:
            return
        # By turns any file, and any byte of them all.
        weights = [1 if number % 2 else of.sizes[name] for name in of.chosen]
        (name,) = drawn.choices(of.chosen, weights)
        yield _damage(drawn, number, name, of.sizes[name])


def _damage(drawn: random.Random, number: int, name: str, size: int) -> Variant:
    kind = number // 2 % 3
    if kind == 0:
        at, bit = drawn.randrange(size), drawn.randrange(8)
        turn = lambda data: data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]  # noqa: E731
        return Variant(f"bit {bit} of byte {at} of {name} has turned", (name,), turn)
    if kind == 1:
        start = drawn.randrange(size) // _SECTOR * _SECTOR
        end = min(start + _SECTOR, size)
        zeroed = lambda data: data[:start] + bytes(end - start) + data[end:]  # noqa: E731
        return Variant(f"bytes {start} to {end - 1} of {name} became zeros", (name,), zeroed)
    cut = drawn.randrange(size)
    return Variant(f"{name} was cut from {size} to {cut} bytes", (name,), lambda data: data[:cut])


def pages(folder: Path) -> int:
    """How many pages of a disk of memory the files of a folder need."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(-(-path.stat().st_size // PAGE) for path in files)
