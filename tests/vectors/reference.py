"""The reference behind frames, asked in one process."""

from __future__ import annotations

import struct
import subprocess
import sys

from holdfast.vectors.taxonomy import Profile


def framed(*documents: bytes) -> bytes:
    """Documents, each behind its length."""
    return b"".join(struct.pack(">I", len(document)) + document for document in documents)


def answers(stream: bytes) -> list[tuple[bytes, bytes]]:
    """The answers of a stream of frames: status and body."""
    found, place = [], 0
    while place < len(stream):
        (length,) = struct.unpack_from(">I", stream, place)
        found.append((stream[place + 4 : place + 5], stream[place + 5 : place + 5 + length]))
        place += 5 + length
    return found


def ask_reference(profile: Profile, documents: list[bytes]) -> list[tuple[bytes, bytes]]:
    """The reference's answers."""
    command = [sys.executable, "-P", "-m", "holdfast.reference_impl", "frames", "--profile", profile.value]
    return answers(subprocess.run(command, input=framed(*documents), stdout=subprocess.PIPE, check=True).stdout)
