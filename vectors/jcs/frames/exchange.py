"""Sends documents and reads answers: pipelined without errors, one at a time after an error.

Blocks of documents travel several deep. When a runner crashes, hangs, sends garbage or falls out of step, the block
that is not proven yet goes to a fresh process one document at a time, each followed by a sentinel; its answers so far
are asked for again, because only a sentinel shows that they belonged to their documents. A document that is not
answered there is tried once more as the first one of another fresh process, and only then has no verdict: so a failing
process does not count against other documents. An answer that came before the process died is kept.

A sentinel closes each block of documents: it shows that answers and documents are still in step.
"""

from __future__ import annotations

import contextlib
import secrets
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from holdfast.vectors.jcs.frames.answer import CANONICAL, HEADER, REFUSED, Answered, Frames, Status, TroubleError
from holdfast.vectors.jcs.frames.process import Runner

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


# Seconds for a process to come up and answer its first frame: a JVM on a busy machine.
START_S = 30.0
# Blocks in flight: one being answered, one in each pipe, one being compared.
WINDOW = 4
# Canonical bytes may be longer than the document (`1e20` becomes 21 digits), a refusal quotes some of it. A greater
# length is an error: four bytes of readable text are above this.
BODY_BYTES = 16 * 1024 * 1024
BODY_FACTOR = 8
# Processes that in a row did not even answer a sentinel before the runner is given up.
FAILED_STARTS = 3
# A runner is given up, and the rest has no verdict, after `DEAD_IN_A_ROW` documents without a verdict in a row. It is
# also given up when, after `DEAD_IN_ALL`, more than `DEAD_SHARE` had none: each costs up to three starts.
DEAD_IN_A_ROW = 32
DEAD_IN_ALL = 1000
DEAD_SHARE = 0.05
# The time that a runner has after the end of its input for its last output and its end.
QUIT_S = 10.0
# The longest delay between the end of a runner and its last output; also the wait between two checks for the end.
LATE_S = 1.0
LISTEN_S = 0.2

_VERDICTS = frozenset((CANONICAL, REFUSED))

# Called with the error when a process left the protocol and every document was answered by others afterwards, and
# when the last one, all of whose documents are answered, ended by a signal or with a status other than 0.
Listener = Callable[[str], None]


def unheard(what: str) -> None:
    """The default: ignores the report."""


class Exchange:
    """One runner after the other for one command. Use as a context manager; not thread-safe."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        deadline: float,
        start: float = START_S,
        env: Mapping[str, str] | None = None,
        unexplained: Listener = unheard,
    ) -> None:
        """Seconds for an answer, seconds for the first one of a process. Nothing is started yet."""
        self._unexplained = unexplained
        # How often it was called.
        self._told = 0
        self._command = list(command)
        self._env = env
        self._deadline = deadline
        self._start = start
        self._runner: Runner | None = None
        # Whether the runner has answered no document yet.
        self._fresh = True
        # The received bytes that were not handed on, and the positions of the answers in them; the last position ends
        # the last answer.
        self._data = bytearray()
        self._at = [0]
        # The largest block in flight, by which absurd lengths are known.
        self._longest = 0
        # Seconds waited since the last complete answer, and how many are granted.
        self._waited = 0.0
        self._patience = start
        self._echoes = True
        self._dead_in_a_row = 0
        self._given_up: TroubleError | None = None

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill what still runs. Idempotent."""
        if self._runner is not None:
            self._runner.kill()
            self._runner = None

    def checked(self, source: Iterator[Block]) -> Iterator[Frames]:
        """The answers in order, one for each document; the last row pays for what a runner says after it.

        Raises StartError.
        """
        held: Frames | None = None
        for frames in self._stream(source):
            if held is not None:
                yield held
            held = frames
        # Found only after the runner's input has ended.
        trouble = self._finish()
        if held is None:
            return
        if trouble is not None:
            *before, last = _each(held)
            held = Frames.joined([*before, last if last[4] not in _VERDICTS else trouble.frame()])
        yield held

    def _stream(self, source: Iterator[Block]) -> Iterator[Frames]:
        flying: deque[Block] = deque()
        done = dead = 0
        more = True
        while self._ready():
            while more and len(flying) < WINDOW:
                block = next(source, None)
                more = block is not None
                if block is not None:
                    self._send(block)
                    flying.append(block)
            if not flying:
                return
            block = flying.popleft()
            done += block.count
            try:
                frames = self._settle(block)
                self._dead_in_a_row = 0
            except TroubleError as trouble:
                self.close()
                told = self._told
                frames = Frames.joined(self._one_by_one(block))
                blamed = sum(frame[4] not in _VERDICTS for frame in _each(frames))
                if not blamed and told == self._told:
                    self._tell(trouble)
                dead += blamed
                if self._given_up is None and dead > DEAD_IN_ALL and dead > DEAD_SHARE * done:
                    what = f"not tried: {dead} of the first {done} documents got no verdict"
                    self._given_up = TroubleError(Status.CRASHED, what)
                if flying and self._ready():
                    for waiting in flying:
                        self._send(waiting)
            yield frames
        assert self._given_up is not None
        left = self._given_up.frame()
        for block in chain(flying, source):
            yield Frames.joined([left] * block.count)

    def _one_by_one(self, block: Block) -> Iterator[bytes]:
        for row in range(block.count):
            frame = self._given_up.frame() if self._given_up is not None else self._alone(block.document(row))
            yield frame
            if self._given_up is None and self._dead_in_a_row >= DEAD_IN_A_ROW:
                what = f"not tried: {DEAD_IN_A_ROW} documents in a row before it got no verdict"
                self._given_up = TroubleError(Frames(frame, [0, len(frame)]).answers()[0].status, what)

    def ask(self, document: bytes) -> Answered:
        """The answer to one document; a runner that died is replaced for the next one. Raises StartError."""
        frame = self._alone(document)
        return Frames(frame, [0, len(frame)]).answers()[0]

    def _tell(self, trouble: TroubleError) -> None:
        self._told += 1
        self._unexplained(str(trouble))

    def _alone(self, document: bytes) -> bytes:
        # What happened to a process that had answered other documents before this one.
        tired: TroubleError | None = None
        while self._ready():
            block = block_of([document])
            fresh = self._fresh
            self._send(block)
            try:
                frame = self._settle(block).data
            except TroubleError as trouble:
                early = self._early(block, trouble)
                self.close()
                if early is not None:
                    frame = early
                    tired = trouble
                elif fresh:
                    self._dead_in_a_row += 1
                    return trouble.frame()
                else:
                    tired = trouble
                    continue
            if tired is not None:
                self._tell(tired)
            self._dead_in_a_row = 0
            return frame
        assert self._given_up is not None
        return self._given_up.frame()

    def _early(self, block: Block, trouble: TroubleError) -> bytes | None:
        """The answer to the only document in flight, if that is what came before the trouble."""
        if len(self._at) == 1 or trouble.status is Status.GARBLED:
            return None
        frame = bytes(self._data[: self._at[1]])
        # With the sentinel's text it is not the document's, which then had none.
        return None if block.nonce in frame.lower() else frame

    def _finish(self) -> TroubleError | None:
        """End the input and read to the end: None if nothing more came. A bad end that no row shows is reported."""
        if self._runner is None:
            return None
        said = len(self._data)
        failure: str | None = None
        self._runner.close_input()
        ends = time.monotonic() + QUIT_S
        try:
            with contextlib.suppress(TroubleError):
                # The trouble is the end of its output, which is what is waited for.
                while not said and (left := ends - time.monotonic()) > 0:
                    said += len(self._runner.step(min(left, LISTEN_S)))
                    if self._runner.has_left:
                        # Something that it started holds its output open.
                        ends = min(ends, time.monotonic() + LATE_S)
            if not said:
                failure = self._runner.failure_at_end(ends)
        finally:
            self.close()
        if not said:
            if failure is not None:
                self._tell(TroubleError(Status.CRASHED, failure))
            return None
        what = "the runner went on talking after its last answer; expected exactly one answer for each document"
        return TroubleError(Status.GARBLED, what)

    def _ready(self) -> bool:
        """Whether there is a runner that answered its first sentinel; False if this runner is given up."""
        if self._given_up is not None:
            return False
        for attempt in range(FAILED_STARTS):
            if self._runner is not None:
                break
            trouble = self._begin()
            if trouble is not None and attempt == FAILED_STARTS - 1:
                what = f"{FAILED_STARTS} processes in a row failed before the first document; the last one: {trouble}"
                self._given_up = TroubleError(trouble.status, what)
                return False
        return True

    def _begin(self) -> TroubleError | None:
        """Start a process and greet it with sentinels alone, so that no document pays for a bad start."""
        self._data, self._at = bytearray(), [0]
        self._waited, self._patience, self._longest = 0.0, self._start, 0
        self._fresh = True
        self._runner = Runner(self._command, self._env)
        # Two, because one answer too many (a greeting of the runner's own) shows only from the second on.
        greetings = (block_of([]), block_of([]))
        for greeting in greetings:
            self._send(greeting)
        try:
            self._await(len(greetings))
            # A runner may refuse everything: then its sentinels come back refused, in their places.
            self._echoes = self._data[4] != REFUSED
            for greeting in greetings:
                self._settle(greeting)
        except TroubleError as trouble:
            self.close()
            return trouble
        self._patience = self._deadline
        self._fresh = True
        return None

    def _send(self, block: Block) -> None:
        assert self._runner is not None
        self._longest = max(self._longest, len(block.frames))
        self._runner.send(block.frames)
        self._runner.send(block.sentinel)

    def _settle(self, block: Block) -> Frames:
        """The answers to the oldest block in flight. Raises TroubleError; what came early is left where it was."""
        self._await(block.count + 1)
        at = self._at[: block.count + 1]
        end = self._at[block.count + 1]
        self._check(block, bytes(self._data[at[-1] : end]))
        data = bytes(self._data[: at[-1]])
        del self._data[:end]
        self._at = [position - end for position in self._at[block.count + 1 :]]
        self._fresh = False
        return Frames(data, at)

    def _await(self, count: int) -> None:
        while len(self._at) <= count:
            self._pump()

    def _check(self, block: Block, frame: bytes) -> None:
        """Whether the sentinel of the block came back in its place."""
        if block.echoed_by(frame) if self._echoes else frame[4] == REFUSED:
            return
        raise TroubleError(
            Status.GARBLED,
            "answers and documents are out of step: expected the text of a sentinel document back, came "
            f"{frame[4:84]!r}; exactly one answer for each document, in order, is needed",
        )

    def _pump(self) -> None:
        """Wait for something to come. Raises TroubleError."""
        assert self._runner is not None
        began = time.monotonic()
        came = self._runner.step(self._patience - self._waited)
        self._waited += time.monotonic() - began
        if came:
            before = len(self._at)
            self._data += came
            self._cut()
            if len(self._at) > before:
                self._waited = 0.0
                return
        if self._waited >= self._patience:
            what = f"no complete answer within {self._patience:g} s"
            raise TroubleError(Status.HUNG, what + self._runner.last_words())

    def _cut(self) -> None:
        """Find the answers in what came. Raises TroubleError (GARBLED)."""
        data, found = self._data, self._at
        at, size, header = found[-1], len(data), HEADER.size
        read, verdicts = HEADER.unpack_from, _VERDICTS
        while size - at >= header:
            length, status = read(data, at)
            if status not in verdicts:
                raise _nonsense(data[at : at + 40], f"status byte {status:#04x}")
            end = at + header + length
            if end > size:
                # Judged by its header alone, without a wait for the end of an invalid frame.
                if length > max(BODY_BYTES, BODY_FACTOR * self._longest):
                    raise _nonsense(data[at : at + 40], f"a body of {length} bytes")
                return
            found.append(end)
            at = end


def _each(frames: Frames) -> list[bytes]:
    return [frames.data[begin:end] for begin, end in pairwise(frames.at)]


def _nonsense(start: bytearray, what: str) -> TroubleError:
    return TroubleError(
        Status.GARBLED,
        f"not a frame: {what}, from {bytes(start)!r}; expected u32 big-endian length, one byte C or R, then the body "
        "(nothing else may be written to standard output)",
    )
