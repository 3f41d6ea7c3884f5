"""Recordings made by hand: a script does what a program would, and numbers the files as a tracer would."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from holdfast.conformance.faults.model.contents import Content
from holdfast.conformance.faults.model.disk import Point, moments
from holdfast.conformance.faults.model.states import State, StateRule, states
from holdfast.conformance.faults.recording import (
    ROOT,
    Action,
    Change,
    Ending,
    Entry,
    Event,
    Failed,
    Mapped,
    Named,
    Names,
    Operation,
    Recording,
    Sync,
    SyncAll,
    Truncate,
    Type,
    Unnamed,
    Write,
)


class Script:
    """Starts with these files, durable. Each method adds one operation and gives its number."""

    def __init__(self, **files: bytes) -> None:
        self.names: dict[bytes, int] = {}
        self.bytes: dict[int, bytes] = {}
        self.operations: list[Operation] = []
        self.snapshot = [Entry(ROOT, Type.DIRECTORY, (b"",))]
        for number, (name, data) in enumerate(files.items(), start=1):
            self.names[name.encode()] = number
            self.bytes[number] = data
            self.snapshot.append(Entry(number, Type.FILE, (name.encode(),), data))
        self.next = len(files) + 1

    @property
    def recording(self) -> Recording:
        return Recording(("x",), tuple(self.snapshot), tuple(self.operations), Ending(0))

    def add(self, action: Action, call: str = "call") -> int:
        number = len(self.operations) + 1
        self.operations.append(Operation(number, number, 1, call, action))
        return number

    def _fresh(self, name: str, kind: Type, data: bytes = b"") -> int:
        file, self.next = self.next, self.next + 1
        self.names[name.encode()] = file
        self.bytes[file] = b""
        return self.add(Names((Named(name.encode(), file, kind, data),)))

    def create(self, name: str) -> int:
        return self._fresh(name, Type.FILE)

    def mkdir(self, name: str) -> int:
        return self._fresh(name, Type.DIRECTORY)

    def symlink(self, target: str, name: str) -> int:
        return self._fresh(name, Type.LINK, target.encode())

    def socket(self, name: str) -> int:
        return self._fresh(name, Type.OTHER)

    def link(self, old: str, new: str) -> int:
        self.names[new.encode()] = self.names[old.encode()]
        return self.add(Names((Named(new.encode(), self.names[old.encode()]),)))

    def unlink(self, name: str) -> int:
        return self.add(Names((Unnamed(name.encode(), self.names.pop(name.encode())),)))

    def rename(self, old: str, new: str) -> int:
        """As the tracer has it: of a directory with all names in it."""
        changes: list[Change] = []
        one, two = old.encode(), new.encode()
        if two in self.names:
            changes.append(Unnamed(two, self.names.pop(two)))
        for path in sorted(self.names):
            if path == one or path.startswith(one + b"/"):
                file = self.names.pop(path)
                self.names[two + path[len(one) :]] = file
                changes += [Unnamed(path, file), Named(two + path[len(one) :], file)]
        return self.add(Names(tuple(changes)))

    def write(self, name: str, data: bytes, offset: int = 0, *, durable: bool = False) -> int:
        file = self.names[name.encode()]
        old = self.bytes[file].ljust(offset, b"\0")
        self.bytes[file] = old[:offset] + data + old[offset + len(data) :]
        return self.add(Write(file, offset, data, durable))

    def append(self, name: str, data: bytes, *, durable: bool = False) -> int:
        return self.write(name, data, len(self.bytes[self.names[name.encode()]]), durable=durable)

    def mapped(self, name: str, data: bytes, offset: int = 0) -> int:
        self.write(name, data, offset)
        self.operations.pop()
        return self.add(Mapped(self.names[name.encode()], offset, data))

    def truncate(self, name: str, size: int) -> int:
        file = self.names[name.encode()]
        self.bytes[file] = self.bytes[file][:size].ljust(size, b"\0")
        return self.add(Truncate(file, size))

    def fsync(self, name: str = "", *, data_only: bool = False, error: int = 0) -> int:
        """Of a file or a directory; by default of the work directory."""
        return self.add(Sync(self.names[name.encode()] if name else ROOT, data_only=data_only, error=error))

    def msync(self, name: str, begin: int, end: int) -> int:
        return self.add(Sync(self.names[name.encode()], data_only=True, begin=begin, end=end), "msync")

    def sync(self) -> int:
        return self.add(SyncAll())

    def ack(self) -> int:
        return self.add(Event("pipe:1", 3))

    def failed(self) -> int:
        return self.add(Failed(28))

    def points(self, number: int | None = None, idle: Collection[int] = ()) -> Sequence[Point]:
        wanted = len(self.operations) if number is None else number
        return [one for one in moments(self.recording, idle) if wanted in one[0].numbers][-1]

    def point(self, number: int | None = None) -> Point:
        """Where file systems differ, that of ext4 and xfs."""
        return self.points(number)[0]

    def minima(self, idle: Collection[int] = ()) -> dict[str, dict[str, bytes | None]]:
        """What is left at least, by the systems that leave that; of all by the empty name."""
        found = {one.systems: next(iter(states(one, kinds=[StateRule.MINIMUM]))) for one in self.points(idle=idle)}
        return {systems: tree(state) for systems, state in found.items()}

    def state(self, kind: StateRule, number: int | None = None) -> dict[str, bytes | None]:
        """The only state of a kind at a point, as its tree."""
        (state,) = states(self.point(number), kinds=[kind])
        return tree(state)

    def minimum(self, number: int | None = None) -> dict[str, bytes | None]:
        return self.state(StateRule.MINIMUM, number)

    def trees(self, *kinds: StateRule) -> list[dict[str, bytes | None]]:
        return [tree(state) for state in states(self.point(), kinds=kinds)]

    def texts(self, *kinds: StateRule) -> list[str]:
        return [state.text for state in states(self.point(), kinds=kinds)]


def told(steps: str) -> Script:
    """A script by its steps, of which the first say what it `has`: `has log old; append log 1*100; fsync! log`.

    `N*COUNT` are so many bytes. A sync with `!` fails, an append with `!` syncs by itself, and `range` is
    sync_file_range.
    """

    def data(text: str) -> bytes:
        byte, star, count = text.partition("*")
        return byte.encode() * int(count) if star else text.encode()

    words = [step.split() for step in steps.split(";")]
    there = [rest for kind, *rest in words if kind == "has"]
    script = Script(**{name: data(*text) if text else b"" for name, *text in there})
    for kind, *rest in words[len(there) :]:
        match kind, rest:
            case (("write" | "append" | "mapped"), [name, text, *offset]):
                getattr(script, kind)(name, data(text), *map(int, offset))
            case "append!", [name, text]:
                script.append(name, data(text), durable=True)
            case "range", [name]:
                script.add(Sync(script.names[name.encode()], data_only=True), "sync_file_range")
            case (("truncate" | "msync"), [name, *numbers]):
                getattr(script, kind)(name, *map(int, numbers))
            case (("fsync" | "fdatasync" | "fsync!"), names):
                script.fsync(*names, data_only=kind == "fdatasync", error=5 * kind.endswith("!"))
            case _:
                getattr(script, kind)(*rest)
    return script


def tree(state: State) -> dict[str, bytes | None]:
    """Names and bytes; of a link its target, of a directory None."""
    return {
        path.decode(): one.read(0, one.size) if isinstance(one, Content) else one for path, one in state.tree.items()
    }
