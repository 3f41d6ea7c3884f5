"""Operations, facts and recorded calls as a finding names them for a person. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from holdfast.conformance.faults.recording import (
    Changed,
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
    Write,
)
from holdfast.conformance.faults.subject import Facts, Op, Workload

# How many characters of a value or of an answer are printed; some more for an operation with its arguments.
_SHOWN_TEXT, _SHOWN_OP = 80, 200
# How many facts or operations are named before "and so on".
_SHOWN_FACTS = 3


def short(text: str, most: int = _SHOWN_TEXT) -> str:
    """A text, cut off where it is long."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def listed(parts: Iterable[str]) -> str:
    """A text with the first of them, and how many more there are."""
    every = list(parts)
    more = len(every) - _SHOWN_FACTS
    return "; ".join(every[:_SHOWN_FACTS]) + (f"; and {more} more" if more > 0 else "")


def some(parts: Sequence[str]) -> str:
    """The same for names, in one part of a sentence."""
    more = len(parts) - _SHOWN_FACTS
    return ", ".join(parts[:_SHOWN_FACTS]) + (f" and {more} more" if more > 0 else "")


def numbers(found: AbstractSet[int]) -> str:
    """Numbers as people write them: 1 to 3, 5."""
    runs: list[list[int]] = []
    for number in sorted(found):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in runs)


def named(op: Op) -> str:
    """An operation of a workload: its number, and how it was asked for."""
    return f"operation {op.number} ({short(op.text, _SHOWN_OP)})"


def gone(op: Op, found: Facts) -> str:
    """An operation that is lost, with the facts that are not there."""
    missing = listed(short(name) for name, value in op.facts.items() if found.get(name) != value)
    return f"{named(op)}, of which is missing: {missing}"


def differences(workload: Workload, wanted: Facts, found: Facts) -> str:
    """The difference between two sets of facts: each fact, the operation that sets it, the first byte that differs."""
    names = sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name))
    return listed(
        f"{short(name)} is {_value(found, name)}, not {_value(wanted, name)}{_apart(wanted, found, name)}"
        f"{_of(workload, name, wanted)}"
        for name in names
    )


def stranger(workload: Workload, fact: tuple[str, str]) -> str:
    """A fact that must not be there: its operation, or the fact that it resembles."""
    name, value = fact
    text = f"{short(name)} is {short(value)!r}"
    owner = next((op for op in workload.every if fact in op.facts.items()), None)
    if owner is not None:
        return f"{text}, of {named(owner)}, not sent yet or refused"
    meant = _setter(workload, name, value)
    if meant is None:
        return f"{text}, which no operation set"
    return f"{text}, which no operation set: {named(meant)} sets another{_apart(meant.facts, {name: value}, name)}"


def half(workload: Workload, fact: tuple[str, str]) -> str:
    """A fact that is only the beginning of one: how many of its bytes are there, and its operation."""
    name, value = fact
    text = f"{short(name)} is {short(value)!r}, cut off"
    meant = _setter(workload, name, value)
    if meant is None:
        return text
    return f"{text} after byte {len(_bytes(value))} of {len(_bytes(meant.facts[name]))}, of {named(meant)}"


def call(recording: Recording, number: int) -> str:
    """A recorded operation: the system call, the file and the bytes. Empty if no operation has that number."""
    names = {entry.file: entry.names[0] for entry in recording.snapshot if entry.names}
    for one in recording.operations:
        if isinstance(one.action, Names):
            names |= {change.file: change.path for change in one.action.changes if isinstance(change, Named)}
        if one.number == number:
            return _call(one, {file: os.fsdecode(path) for file, path in names.items()})
    return ""


def _call(operation: Operation, names: dict[int, str]) -> str:
    def place(file: int) -> str:
        return names.get(file, "a file without a name")

    match operation.action:
        case Write(file, offset, data) | Mapped(file, offset, data):
            return f"{operation.call}: {len(data)} bytes at byte {offset} of {place(file)}"
        case Truncate(file, size):
            return f"{operation.call}: {place(file)} to {size} bytes"
        case Sync(file) | Changed(file):
            return f"{operation.call} of {place(file)}"
        case Names(changes):
            return f"{operation.call} of {' and '.join(os.fsdecode(change.path) for change in changes)}"
        case Event(channel, size):
            return f"{operation.call}: {size} bytes to {channel}"
        case SyncAll() | Failed():
            return operation.call


def _setter(workload: Workload, name: str, value: str) -> Op | None:
    """The operation that sets this fact; of several the one whose value has most of these first bytes."""
    setters = (op for op in workload.every if name in op.facts)
    return max(setters, key=lambda op: _same(_bytes(op.facts[name]), _bytes(value)), default=None)


def _of(workload: Workload, name: str, wanted: Facts) -> str:
    """The operation of a fact, in a text for the place after the fact."""
    owner = next((op for op in workload.every if op.facts.get(name, object()) == wanted.get(name)), None)
    owner = owner or _setter(workload, name, wanted.get(name, ""))
    return "" if owner is None else f" (set by {named(owner)})"


def _value(facts: Facts, name: str) -> str:
    return repr(short(facts[name])) if name in facts else "absent"


def _apart(wanted: Facts, found: Facts, name: str) -> str:
    """The first byte at which two values of a fact differ, where both exist and are long enough to need it."""
    if name not in wanted or name not in found:
        return ""
    due, came = _bytes(wanted[name]), _bytes(found[name])
    return f" (another from byte {_same(due, came)} of {len(due)} on)"


def _same(one: bytes, other: bytes) -> int:
    """How many of their first bytes are equal."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")
