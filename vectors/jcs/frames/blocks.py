"""Documents grouped for the pipe, and the sentinel that shows that answers and documents are still in step."""

from __future__ import annotations

import secrets
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from holdfast.vectors.jcs.frames.answer import CANONICAL, HEADER

# A block is written, held back and checked at once. It is small enough that four of them keep memory flat. It is large
# enough that its own work (one system call, one sentinel) is small beside that of its documents.
BLOCK_DOCUMENTS = 1024
BLOCK_BYTES = 256 * 1024

LENGTH = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class Block:
    """Some documents on their way: how many, all their frames, the sentinel's frame, and each document again.

    Answers carry no number, so a runner that answers a document twice would shift all later answers by one, and a
    refusal could be counted for a document that was accepted. The sentinel is a document with a fresh random text
    that every canonicaliser has to give back; answers before it are believed when it comes back in its place.
    """

    count: int
    frames: bytes | memoryview
    nonce: bytes
    sentinel: bytes
    document: Callable[[int], bytes]

    @classmethod
    def of(cls, count: int, frames: bytes | memoryview, document: Callable[[int], bytes]) -> Block:
        """A block with a sentinel of its own."""
        nonce = secrets.token_hex(8).encode()
        sentinel = b'{"holdfast":"' + nonce + b'"}'
        return cls(count, frames, nonce, LENGTH.pack(len(sentinel)) + sentinel, document)

    def echoed_by(self, frame: bytes) -> bool:
        """Whether this answer is the sentinel's, however the runner spells text."""
        return frame[4] == CANONICAL and self.nonce in frame[HEADER.size :].lower()


def block_of(documents: Sequence[bytes]) -> Block:
    """The block of these documents, none of them of 4 GiB or more."""
    pack = LENGTH.pack
    frames = b"".join([part for document in documents for part in (pack(len(document)), document)])
    return Block.of(len(documents), frames, documents.__getitem__)


def blocks(documents: Iterable[bytes]) -> Iterator[Block]:
    """The documents in order, in blocks; no more is read from `documents` than the block asked for needs."""
    held: list[bytes] = []
    size = 0
    for document in documents:
        held.append(document)
        size += len(document)
        if size >= BLOCK_BYTES or len(held) >= BLOCK_DOCUMENTS:
            yield block_of(held)
            held, size = [], 0
    if held:
        yield block_of(held)
