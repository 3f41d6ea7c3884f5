"""RocksDB, as the contract wants it opened: raw bytes, eight families, checksums, one synced batch for each change.

RocksDB forgives silently: its iterators end at a bad block as at the last row, and its default recovery drops what lies
after a damaged record of the log. So every iterator is asked for its status, and recovery is chosen by the caller.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import Enum, unique
from pathlib import Path
from typing import TypeAlias

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    ChecksumType,
    DBRecoveryMode,
    Options,
    Rdict,
    RdictIter,
    ReadOptions,
    WriteBatch,
    WriteOptions,
)

from holdfast.reference_impl.m5_log.terms import Family, Key, StoreError, UncertainError

# A row to put, or to remove where the value is None.
Change: TypeAlias = tuple[Family, bytes, bytes | None]
_DEFAULT = "default"
_SECTION = re.compile(r'\[(DBOptions|(?:CFOptions|TableOptions/BlockBasedTable) "(.+)")\]')
# How many of RocksDB's own logs of events are kept; they hold no rows.
_EVENT_LOGS = 2


class DamagedError(StoreError):
    """RocksDB says that what it read is damaged."""


@unique
class Recovery(Enum):
    """What of the write-ahead log is needed to open: all of it, or what lies before the first damage."""

    ABSOLUTE = "absolute"
    POINT_IN_TIME = "point-in-time"


@unique
class Access(Enum):
    """`MAKE` makes a database where none is; `WRITE` takes its lock; `READ` changes nothing and takes none."""

    MAKE = "make"
    WRITE = "write"
    READ = "read"


@dataclass(frozen=True, slots=True)
class Tickers:
    """Counts since the database was opened."""

    wal_synced: int
    wal_writes: int


@contextlib.contextmanager
def _asked() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # rocksdict raises nothing more special
        text = f"{type(error).__name__}: {error}"
        raise (DamagedError if str(error).startswith("Corruption") else StoreError)(text) from error


class Database:
    """An open database. Keys and values are bytes; each method raises StoreError."""

    def __init__(
        self, path: Path, access: Access, recovery: Recovery = Recovery.ABSOLUTE, write_buffer_bytes: int | None = None
    ) -> None:
        self.path = path
        self._write_buffer_bytes = write_buffer_bytes
        self._options = self.options(access, recovery)
        with _asked():
            kind = AccessType.read_only(False) if access is Access.READ else AccessType.read_write()
            families = {name: self.family_options() for name in (_DEFAULT, *(family.value for family in Family))}
            self._rocks = Rdict(str(self.path), self._options, families, kind)
            self._families = {family: self._rocks.get_column_family(family.value) for family in Family}
            self._handles = {family: self._rocks.get_column_family_handle(family.value) for family in Family}

    def options(self, access: Access, recovery: Recovery) -> Options:
        """The options of the database."""
        options = Options(raw_mode=True)
        # Only the opening that makes a store: RocksDB would make a lost one anew, and empty.
        options.create_if_missing(access is Access.MAKE)
        options.create_missing_column_families(access is Access.MAKE)
        options.set_paranoid_checks(True)
        options.set_use_fsync(True)
        mode = DBRecoveryMode.absolute_consistency if recovery is Recovery.ABSOLUTE else DBRecoveryMode.point_in_time
        options.set_wal_recovery_mode(mode())
        options.set_keep_log_file_num(_EVENT_LOGS)
        options.set_stats_dump_period_sec(0)
        # Its default is 16 threads for each opening, which cost more than the opening itself.
        options.set_max_file_opening_threads(1)
        options.enable_statistics()
        return options

    def family_options(self) -> Options:
        """The options of each family, the unused default one too."""
        options, table = Options(raw_mode=True), BlockBasedOptions()
        table.set_checksum_type(ChecksumType.xxh3())
        options.set_block_based_table_factory(table)
        if self._write_buffer_bytes is not None:
            options.set_write_buffer_size(self._write_buffer_bytes)
        return options

    def read_options(self) -> ReadOptions:
        """The options of every read."""
        options = ReadOptions()
        options.set_verify_checksums(True)
        return options

    def write_options(self) -> WriteOptions:
        """The options of every batch: it is on the disk when the write returns."""
        options = WriteOptions()
        options.sync = True
        return options

    def get(self, family: Family, key: bytes) -> bytes | None:
        """The value of a row; None where there is none."""
        with _asked():
            value = self._families[family].get(key, None, self.read_options())
        return None if value is None else bytes(value)

    def rows(self, family: Family, first: Key = b"") -> Iterator[tuple[bytes, bytes]]:
        """The rows of a family from the key `first` on, in the order of their keys; all of them, or StoreError."""
        with _asked():
            iterator = self._families[family].iter(self.read_options())
            iterator.seek(first) if first else iterator.seek_to_first()
        while True:
            with _asked():
                row = self.row(iterator)
            if row is None:
                return
            yield row
            with _asked():
                iterator.next()

    def row(self, iterator: RdictIter) -> tuple[bytes, bytes] | None:
        """The row at which an iterator stands; None after the last, once RocksDB says that it was the last."""
        if iterator.valid():
            return bytes(iterator.key()), bytes(iterator.value())
        iterator.status()
        return None

    def write(self, changes: Sequence[Change]) -> None:
        """Make all changes in one synced batch. Raises UncertainError where that is unknown."""
        batch = WriteBatch(raw_mode=True)
        for family, key, value in changes:
            if value is None:
                batch.delete(key, self._handles[family])
            else:
                batch.put(key, value, self._handles[family])
        try:
            self._rocks.write(batch, self.write_options())
        except Exception as error:  # rocksdict raises nothing more special
            raise UncertainError(f"the batch may be written: {type(error).__name__}: {error}") from error

    def tables(self) -> Set[Path]:
        """The files of its tables."""
        with _asked():
            return {self.path / file["name"].removeprefix("/") for file in self._rocks.live_files()}

    def tickers(self) -> Tickers:
        """How often its log was written and synced."""
        text = self._options.get_statistics() or ""

        def count(name: str) -> int:
            found = re.search(rf"^rocksdb\.{name} COUNT : (\d+)$", text, re.MULTILINE)
            return 0 if found is None else int(found.group(1))

        return Tickers(wal_synced=count("wal.synced"), wal_writes=count("write.wal"))

    def close(self) -> None:
        """Give back the lock and the files. Never raises."""
        # A family keeps the database, and its lock, as long as it is open itself; and so does a handle.
        for opened in (*self._families.values(), self._rocks):
            with contextlib.suppress(Exception):
                opened.close()
        self._handles.clear()


def read_options_file(folder: Path) -> Mapping[str, Mapping[str, str]]:
    """The sections of the newest OPTIONS file: "" for the database, the name of a family for its own and its tables'.

    Raises OSError, ValueError.
    """
    newest = max(folder.glob("OPTIONS-*[0-9]"), key=lambda path: int(path.name.partition("-")[2]))
    found: dict[str, dict[str, str]] = {}
    into: dict[str, str] = {}
    for line in newest.read_text(encoding="utf-8").splitlines():
        section = _SECTION.fullmatch(line.strip())
        if section is not None:
            into = found.setdefault(section.group(2) or "", {})
        elif line.strip().startswith("["):
            into = {}
        elif "=" in line and not line.lstrip().startswith("#"):
            name, _, value = line.strip().partition("=")
            into[name] = value
    return found
