"""Text from the workers to the driver, over TCP, brought into order with bounded memory.

Spark's own ways back to the driver pass each byte through two JVMs and several copies; here a worker writes to the
driver's socket, which costs a copy on either side. A connection carries one partition: `_HEAD`, the text, and back one
byte once the driver has it all; without it the worker's task fails, and Spark may try again.

The token keeps strangers out. The data is public, so it is not encrypted. A partition whose connection ends early is
forgotten and may come again. This module does not decide whether the text is right.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import struct
import time
from collections.abc import Callable
from functools import partial
from typing import BinaryIO, Final, NamedTuple, Self

from holdfast.vectors.jcs.es6.stream import (
    BLOCK_BYTES,
    Checkpoint,
    Made,
    Partition,
    StreamBrokenError,
    StreamLostError,
    made,
)

# Big-endian: token, partition, lines made; of the end the candidates, the lines and the block; bytes of text.
_HEAD: Final = struct.Struct(f">{BLOCK_BYTES}sIQQQ{BLOCK_BYTES}sQ")
_ACKNOWLEDGED: Final = b"\x06"
# A worker says who it is as soon as it is connected: so long may all of that take.
_HELLO_S: Final = 10.0
# When nothing at all comes for this long, a worker hangs or the cluster has stalled.
_STALLED_S: Final = 300.0
# The most partitions, of 42 MB each, that may wait for earlier ones. Beyond this only the one that is due is read.
_WAITING: Final = 12


def _send(partition: Partition, address: tuple[str, int], token: bytes) -> None:
    """Make a partition and send it to the driver, in a worker. Raises OSError when it could not be delivered."""
    found = made(partition)
    end = found.end
    head = (token, partition.index, found.lines, end.candidates, end.lines, end.state, len(found.text))
    with socket.create_connection(address, timeout=_STALLED_S) as connection:
        connection.sendall(_HEAD.pack(*head))
        connection.sendall(found.text)
        if connection.recv(1) != _ACKNOWLEDGED:
            raise ConnectionError(f"expected the driver to acknowledge partition {partition.index}; it hung up")


def _head(connection: socket.socket) -> bytes:
    """What a connection begins with, as far as it comes in time. Raises OSError."""
    ends, head = time.monotonic() + _HELLO_S, b""
    while len(head) < _HEAD.size:
        # A stranger who sends a byte now and then gets no more time than one who is silent.
        connection.settimeout(max(ends - time.monotonic(), 0.001))
        piece = connection.recv(_HEAD.size - len(head))
        if not piece:
            break
        head += piece
    return head


class _Waiting(NamedTuple):
    """A partition that a worker offers: its connection, what comes of it without its text, and the bytes of that."""

    connection: socket.socket
    stream: BinaryIO
    made: Made
    size: int


class Collector:
    """The driver's end: listens, and gives each partition when it is asked for. A context manager."""

    def __init__(self, host: str, *, stalled_s: float = _STALLED_S, waiting: int = _WAITING) -> None:
        """Listens on an address of this machine at a free port. Raises OSError if there is no such address."""
        self._token = secrets.token_bytes(BLOCK_BYTES)
        self._server = socket.create_server((host, 0), backlog=128)
        self._server.settimeout(stalled_s)
        self._stalled_s = stalled_s
        self._most = waiting
        self._offered: dict[int, _Waiting] = {}
        self._arrived: dict[int, Made] = {}
        self._turn = 0
        self._current: socket.socket | None = None

    def sender(self, host: str) -> Callable[[Partition], None]:
        """The function that workers call; `host` is the name under which they reach this machine."""
        return partial(_send, address=(host, self._server.getsockname()[1]), token=self._token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Listen no more, from any thread; a caller that waits in `take` gets StreamLostError."""
        with contextlib.suppress(OSError):
            # Closing alone does not wake a thread that waits in accept.
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        with contextlib.suppress(OSError):
            if (current := self._current) is not None:
                current.shutdown(socket.SHUT_RDWR)
        for offered in list(self._offered.values()):
            offered.stream.close()
            offered.connection.close()

    def take(self, partition: Partition) -> Made:
        """A partition. They are asked for in order, each once. Raises StreamLostError when nothing comes any more."""
        self._turn = partition.index
        while self._turn not in self._arrived:
            if self._turn in self._offered:
                self._receive(self._turn)
            else:
                self._accept()
        return self._arrived.pop(self._turn)

    def _accept(self) -> None:
        """Let the next worker in; its partition is read at once, unless too many wait already."""
        try:
            connection, _ = self._server.accept()
        except TimeoutError as error:
            raise StreamLostError(
                f"expected partition {self._turn}; nothing came from any worker for {self._stalled_s:.0f} s: look at "
                "Spark's log, and whether the workers can reach the driver"
            ) from error
        except OSError as error:
            raise StreamLostError(
                f"expected partition {self._turn}; the workers were stopped before it came"
            ) from error
        stream = connection.makefile("rb")
        with contextlib.suppress(OSError, struct.error, StreamBrokenError):
            token, index, count, candidates, before, state, size = _HEAD.unpack(_head(connection))
            due = index >= self._turn and index not in self._arrived
            if hmac.compare_digest(token, self._token) and due:
                connection.settimeout(self._stalled_s)
                found = Made(b"", count, Checkpoint(candidates, before, state))
                # An earlier offer of the same is of a worker that died.
                if (dead := self._offered.pop(index, None)) is not None:
                    dead.stream.close()
                    dead.connection.close()
                self._offered[index] = _Waiting(connection, stream, found, size)
                if index == self._turn or len(self._arrived) < self._most:
                    self._receive(index)
                return
        stream.close()
        connection.close()

    def _receive(self, index: int) -> None:
        connection, stream, found, size = self._offered.pop(index)
        self._current = connection
        # Where it ends early the worker's task fails too, for want of an acknowledgement, and Spark knows why.
        with contextlib.suppress(OSError), connection, stream:
            text = stream.read(size)
            if len(text) == size:
                self._arrived[index] = Made(text, found.lines, found.end)
                connection.sendall(_ACKNOWLEDGED)
