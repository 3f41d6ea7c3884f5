"""The changes of an implementation in its work directory and its outputs, in one order, as values and as a file.

A recording is a snapshot of the work directory and a list of operations, numbered from 1 over all threads and
processes. It is self-contained: states of the disk can be built from it, and a later model can judge them again,
without the implementation.

Files are named by number, never by path: a number is one file for its whole life, under any names, and is not used
again when its inode is. Paths are relative to the work directory, in the file system's own bytes (`os.fsencode`).

The records are named tuples because the tracer, which makes them, is started for each point of a sweep: `dataclasses`
takes longer to import and to generate them than the tracer takes for the rest of its start.
"""

from __future__ import annotations

import binascii
import json
import os
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum, unique
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Generic, NamedTuple, TypeAlias, TypeVar, overload

# The items of a file's lines, read from the file each time: memory does not grow with the file

_Item = TypeVar("_Item")


class Filed(Sequence[_Item], Generic[_Item]):
    """A sequence that stays in its file, one item in each line."""

    def __init__(self, path: Path, parse: Callable[[bytes], _Item], check: Callable[[], None] = lambda: None) -> None:
        """`check` is called before each reading, and may raise to end it. Raises OSError.

        The file stays open as long as this object lives: it may lose its name before that.
        """
        self._parse, self._check = parse, check
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._file)
        # The offset at which each line begins, and at which the last one ends.
        self._places = array("Q")

    def add(self, begin: int) -> None:
        """Note one more line that begins there; at last note the end of the last line."""
        self._places.append(begin)

    def __len__(self) -> int:
        return max(0, len(self._places) - 1)

    @overload
    def __getitem__(self, place: int) -> _Item: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[_Item]: ...
    def __getitem__(self, place: int | slice) -> _Item | Sequence[_Item]:
        wanted = range(len(self))[place]
        return self._at(wanted) if isinstance(wanted, int) else [self._at(one) for one in wanted]

    def __iter__(self) -> Iterator[_Item]:
        return map(self._at, range(len(self)))

    def _at(self, place: int) -> _Item:
        self._check()
        begin, end = self._places[place : place + 2]
        return self._parse(os.pread(self._file, end - begin, begin))


VERSION = 4
# The work directory itself, as a file number.
ROOT = 0


class RecordingError(Exception):
    """A file is no recording, or is cut off; the text says where and what came."""


@unique
class Type(StrEnum):
    """What a file is. Others (sockets, pipes, devices) come and go as names, have no bytes and survive nothing."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


class Rights(NamedTuple):
    """Permission bits of a file, and the numbers of its user and group."""

    mode: int
    user: int
    group: int


class Entry(NamedTuple):
    """A file of the snapshot: its number, its names, and its bytes (of a symbolic link: its target)."""

    file: int
    type: Type
    names: tuple[bytes, ...]
    data: bytes = b""
    rights: Rights | None = None


class Named(NamedTuple):
    """A name that stands there now. The first one of a number makes the file; `data` is the target of a link.

    Bytes of a file may come before its first name: it was opened without one, or came from outside with them. `rights`
    are those that the file has then.
    """

    path: bytes
    file: int
    type: Type = Type.FILE
    data: bytes = b""
    rights: Rights | None = None


class Unnamed(NamedTuple):
    """A name that is gone, of file `file`. A file without names is gone when the last process has closed it."""

    path: bytes
    file: int


Change: TypeAlias = "Named | Unnamed"


class Names(NamedTuple):
    """One system call's changes of names, which a file system makes as one: a rename is an `Unnamed` and a `Named`.

    A name that is replaced comes as `Unnamed` of the old file and `Named` of the new one.
    """

    changes: tuple[Change, ...]


class Write(NamedTuple):
    """Bytes of a file, as they stood there when the call had returned. `durable`: the call itself synced (O_DSYNC)."""

    file: int
    offset: int
    data: bytes
    durable: bool = False


class Mapped(NamedTuple):
    """Bytes that a shared writable mapping has changed since they were last inspected. When exactly is not known."""

    file: int
    offset: int
    data: bytes


class Truncate(NamedTuple):
    """A file has this length now; what is new is zero."""

    file: int
    size: int


class Sync(NamedTuple):
    """fsync, fdatasync, msync or sync_file_range with all its flags, of a file or a directory, that has returned.

    `error` is the number that it returned, or 0; a sync that failed leaves the file's unsynced bytes doomed. `begin`
    and `end` bound what was synced (msync); `end` is None for the whole file.
    """

    file: int
    data_only: bool = False
    error: int = 0
    begin: int = 0
    end: int | None = None


class SyncAll(NamedTuple):
    """sync or syncfs: everything written before it is durable."""

    def __bool__(self) -> bool:
        """True, although it reports nothing: an empty tuple would be false."""
        return True


class Changed(NamedTuple):
    """A mode, an owner or a time of a file was set, and stood so when the call had returned.

    `modified` is the time of the last change of bytes, in nanoseconds since 1970, None if the call was about others.
    """

    file: int
    rights: Rights
    modified: int | None = None


class Event(NamedTuple):
    """Something left for the outside: a write to a pipe or a socket. `size` is what the call asked to send."""

    channel: str
    size: int


class Failed(NamedTuple):
    """A call on the work directory that an error was injected into, so that it did nothing, or less than asked."""

    error: int


Action: TypeAlias = "Names | Write | Mapped | Truncate | Sync | SyncAll | Changed | Event | Failed"


class Operation(NamedTuple):
    """One operation: its number, the task that did it, the system call by name, and what came of it.

    `at` is CLOCK_MONOTONIC in nanoseconds: of an `Event` just before the bytes left, of anything else when the call had
    returned. What a process that is not traced did comes as the call `unseen` of task 0.
    """

    number: int
    at: int
    task: int
    call: str
    action: Action


class OutsideFile(NamedTuple):
    """A file outside of the work directory: its device and inode, and its path if that is known."""

    device: int
    inode: int
    path: str


class Life(NamedTuple):
    """A process beside the command itself: from when until when, CLOCK_MONOTONIC in nanoseconds."""

    process: int
    born: int
    died: int


class Ending(NamedTuple):
    """How it ended: the exit status of the command (negative: the signal), and whether a planned fault was reached.

    `untraced` names what of the implementation could not be observed; with any of it a recording proves nothing.
    `written` are the files outside of the work directory that it has written and that exist at its end. `read` are the
    watched files that it opened so that they can be read. `strangers` names the processes that it did not start and has
    spoken with. `beside` are the processes that it had beside itself.
    """

    status: int
    fired: bool = False
    untraced: tuple[str, ...] = ()
    written: tuple[OutsideFile, ...] = ()
    read: tuple[OutsideFile, ...] = ()
    strangers: tuple[str, ...] = ()
    beside: tuple[Life, ...] = ()


class Recording(NamedTuple):
    """A whole recording. `refused` names the calls that were refused so that programs use ones that can be observed."""

    command: tuple[str, ...]
    snapshot: tuple[Entry, ...]
    operations: Sequence[Operation]
    ending: Ending
    refused: tuple[str, ...] = ()


def replay(action: Write | Mapped | Truncate, data: bytearray) -> None:
    """Apply an action to the bytes of a file; a gap before the written bytes is zero."""
    if isinstance(action, Truncate):
        del data[action.size :]
        data.extend(bytes(action.size - len(data)))
    else:
        data.extend(bytes(max(0, action.offset - len(data))))
        data[action.offset : action.offset + len(action.data)] = action.data


# What a line holds, by the name that its objects have in `is`.
_KINDS: Mapping[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        *(Rights, Entry, Named, Unnamed, Names, Write, Mapped, Truncate, Sync, SyncAll, Changed, Event, Failed),
        *(Operation, OutsideFile, Life, Ending),
    )
}


def header_line(command: Iterable[str], snapshot: Iterable[Entry]) -> str:
    """The first line of a recording's file."""
    return _line({"recording": VERSION, "command": list(command), "snapshot": _json(tuple(snapshot))})


def operation_line(operation: Operation) -> str:
    """The line of one operation. It is written at once: what was recorded before a crash of the tracer is not lost."""
    return _line(_json(operation))


def ending_line(ending: Ending, refused: Iterable[str] = ()) -> str:
    """The last line. Without it a file is cut off and is no recording."""
    return _line({"ending": _json(ending), "refused": list(refused)})


def read(path: Path, check: Callable[[], None] = lambda: None) -> Recording:
    """The recording in a file, whose operations stay there. Raises RecordingError, and what `check` raises.

    `check` is called for each operation, now and each time that they are read.
    """
    try:
        with path.open("rb") as stream:
            operations = Filed(path, partial(json.loads, object_hook=_made), check)
            return _read(stream, operations, check)
    except OSError as error:
        raise RecordingError(f"{path}: expected a recording, got {error}") from error
    except RecordingError as error:
        raise RecordingError(f"{path}: {error}") from error


def _read(stream: BinaryIO, operations: Filed[Operation], check: Callable[[], None]) -> Recording:
    lines = _objects(stream)
    header = next(lines, None)
    if not isinstance(header, dict) or header.get("recording") != VERSION:
        raise RecordingError(f"expected the header of recording version {VERSION} in line 1")
    operations.add(stream.tell())
    for number, raw in enumerate(lines, start=2):
        check()
        if isinstance(raw, dict) and isinstance(raw.get("ending"), Ending):
            if next(lines, None) is not None:
                raise RecordingError(f"line {number + 1}: expected nothing after the ending")
            try:
                told = header["command"], header["snapshot"], raw["refused"]
                command, snapshot, refused = map(tuple, told)
            except (KeyError, TypeError) as error:
                raise RecordingError(f"expected command, snapshot and refusals, got {error!r}") from error
            if not all(isinstance(entry, Entry) for entry in snapshot):
                raise RecordingError("line 1: expected a snapshot of entries")
            return Recording(command, snapshot, operations, raw["ending"], refused)
        if not isinstance(raw, Operation) or not isinstance(raw.action, tuple):
            raise RecordingError(f"line {number}: expected an operation")
        if raw.number != number - 1:
            raise RecordingError(f"line {number}: expected operation {number - 1}, got {raw.number}")
        operations.add(stream.tell())
    raise RecordingError("expected an ending, got the end of the file: the tracer did not finish")


def _objects(stream: BinaryIO) -> Iterator[Any]:
    for number, line in enumerate(stream, start=1):
        try:
            raw = json.loads(line.decode("ascii"), object_hook=_made)
        except (KeyError, TypeError, ValueError) as error:
            raise RecordingError(f"line {number}: expected a JSON object, got {error!r}") from error
        if not line.endswith(b"\n"):
            raise RecordingError(f"line {number}: expected a whole JSON object")
        yield raw


def _json(value: Any) -> Any:
    if isinstance(value, bytes):
        return {"bytes": binascii.b2a_base64(value, newline=False).decode("ascii")}
    if hasattr(value, "_fields"):
        return {"is": type(value).__name__, **{name: _json(one) for name, one in value._asdict().items()}}
    return [_json(one) for one in value] if isinstance(value, tuple) else value


def _made(raw: dict[str, Any]) -> Any:
    """The value of an object. Raises KeyError, TypeError, ValueError."""
    if "bytes" in raw:
        return binascii.a2b_base64(raw["bytes"], strict_mode=True)
    if "is" not in raw:
        return raw
    values = {name: tuple(one) if isinstance(one, list) else one for name, one in raw.items() if name != "is"}
    if "type" in values:
        values["type"] = Type(raw["type"])
    return _KINDS[raw["is"]](**values)


def _line(raw: Mapping[str, Any]) -> str:
    return json.dumps(raw, separators=(",", ":")) + "\n"
