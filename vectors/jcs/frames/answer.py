"""The answer to one document, kept as the frame in which it came."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

# An answer's frame begins with the length of the body and the status byte.
HEADER = struct.Struct(">IB")


class Status(StrEnum):
    """What came for one document. The last three are no verdict: they are never a pass and never a refusal."""

    CANONICAL = "canonical"
    REFUSED = "refused"
    CRASHED = "crashed"
    HUNG = "hung"
    GARBLED = "garbled"

    @property
    def byte(self) -> int:
        """The status byte of a frame. Runners send the first two; the kit writes the others in a runner's place."""
        return _BYTES[self]


class Answered(NamedTuple):
    """The answer to one document: canonical bytes, the runner's reason, or (no verdict) what happened, as UTF-8."""

    status: Status
    body: bytes


@dataclass(frozen=True, slots=True)
class Frames:
    """Answers in order, each with its header: `data[at[i] : at[i + 1]]`. `at` is one longer than there are answers."""

    data: bytes
    at: list[int]

    def __len__(self) -> int:
        return len(self.at) - 1

    def answers(self) -> list[Answered]:
        """Each answer on its own."""
        data, size = self.data, HEADER.size
        return [Answered(_STATUSES[data[begin + 4]], data[begin + size : end]) for begin, end in pairwise(self.at)]

    @classmethod
    def joined(cls, frames: Iterable[bytes]) -> Frames:
        """These frames, in order."""
        kept = list(frames)
        at = [0]
        for frame in kept:
            at.append(at[-1] + len(frame))
        return cls(b"".join(kept), at)


class StartError(Exception):
    """The runner's command cannot be started at all; the text says what was tried and what to do."""


class TroubleError(Exception):
    """A runner left the protocol; internal to the exchange, which turns it into a row without a verdict."""

    def __init__(self, status: Status, what: str) -> None:
        super().__init__(what)
        self.status = status

    def frame(self) -> bytes:
        """The row that this trouble makes."""
        return framed(self.status, str(self).encode("utf-8", "replace"))


def framed(status: Status, body: bytes) -> bytes:
    """One answer's frame."""
    return HEADER.pack(len(body), status.byte) + body


_BYTES = dict(zip(Status, b"CRXHG", strict=True))
_STATUSES = {byte: status for status, byte in _BYTES.items()}
CANONICAL, REFUSED = Status.CANONICAL.byte, Status.REFUSED.byte
