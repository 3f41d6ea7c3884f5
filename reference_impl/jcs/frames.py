"""The reference as a runner of frames: documents in, canonical bytes or refusals out (docs/sdk-runners.md).

In: a 32-bit big-endian length, then the document. Out: the length of the body, one status byte, the body: `C` and the
canonical bytes, or `R` and the reason with its offset. End of file between two frames ends it. Every other error ends
the process with a trace and a status that is not 0: an internal error must not be taken for a refusal.
"""

from __future__ import annotations

import struct
from typing import IO

from holdfast.reference_impl.jcs.canonicaliser import Canonicaliser
from holdfast.reference_impl.jcs.terms import Profile, Refusal

_LENGTH = struct.Struct(">I")


class FrameError(Exception):
    """The input ends inside a frame."""


def serve(profile: Profile, documents: IO[bytes], answers: IO[bytes]) -> None:
    """Answer every document, in order, until the end of file. Raises FrameError."""
    canonicaliser = Canonicaliser(profile)
    while header := documents.read(_LENGTH.size):
        document = _exactly(header, _LENGTH.size, documents)
        answered = canonicaliser.canonicalise(document)
        status, body = (b"R", str(answered).encode("ascii")) if isinstance(answered, Refusal) else (b"C", answered)
        answers.write(_LENGTH.pack(len(body)) + status + body)
        answers.flush()


def _exactly(header: bytes, size: int, documents: IO[bytes]) -> bytes:
    if len(header) != size:
        raise FrameError(f"expected a length of {size} bytes, the input ended after {len(header)}; send whole frames")
    (length,) = _LENGTH.unpack(header)
    document = documents.read(length)
    if len(document) != length:
        raise FrameError(f"expected a document of {length} bytes, the input ended after {len(document)}")
    return document
