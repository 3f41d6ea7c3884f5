"""The reference behind frames, asked in one process."""

from __future__ import annotations

import struct
import subprocess
import sys

from holdfast.vectors.taxonomy import Profile


def ask_reference(profile: Profile, documents: list[bytes]) -> list[tuple[bytes, bytes]]:
    """The reference's answers: status and body."""
    given = b"".join(struct.pack(">I", len(document)) + document for document in documents)
    command = [sys.executable, "-P", "-m", "holdfast.reference_impl", "frames", "--profile", profile.value]
    out = subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True).stdout
    answers, place = [], 0
    while place < len(out):
        (length,) = struct.unpack_from(">I", out, place)
        answers.append((out[place + 4 : place + 5], out[place + 5 : place + 5 + length]))
        place += 5 + length
    return answers
