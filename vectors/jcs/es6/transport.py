"""Text from the workers to the driver, over TCP, brought into order with bounded memory.

Spark's own ways back to the driver pass each byte through two JVMs and several copies; here a worker writes to the
driver's socket, which costs a copy on either side. A connection carries one partition:

    worker: token (32 bytes), partition (u32), then any number of pieces (u32 length, bytes), u32 0,
            then what `Delivery` says: lines made (u64), and its end: candidates (u64), lines (u64), block (32 bytes)
    driver: one byte once it has it all; without it the worker's task fails, and Spark may try again

Numbers are big-endian. The token keeps strangers out. The data is public, so it is not encrypted. A partition
whose connection ends early is forgotten and may come again. This module does not decide whether the text is right.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Self

from holdfast.vectors.jcs.es6.digest import Delivery
from holdfast.vectors.jcs.es6.stream import (
    BLOCK_BYTES,
    Checkpoint,
    Partition,
    PartitionLines,
    StreamBrokenError,
    StreamLostError,
)

_HELLO: Final = struct.Struct(f">{BLOCK_BYTES}sI")
_LENGTH: Final = struct.Struct(">I")
_DELIVERY: Final = struct.Struct(f">QQQ{BLOCK_BYTES}s")
_ACKNOWLEDGED: Final = b"\x06"

# A piece is 1.3 MB. A message with a greater length does not come from our workers.
_LONGEST_PIECE: Final = 1 << 26
# A worker says who it is as soon as it is connected.
_HELLO_S: Final = 30.0
# A piece takes 5 ms to make. When nothing at all comes for this long, a worker hangs or the cluster has stalled.
_STALLED_S: Final = 300.0
# The most bytes that may wait, over all partitions. Beyond this only the partition that is due is read.
_WAITING_BYTES: Final = 512 << 20


@dataclass(frozen=True, slots=True)
class Sender:
    """Makes a partition and sends it to the driver. Runs in the workers, so it must stay small and picklable."""

    host: str
    port: int
    token: bytes

    def __call__(self, partition: Partition) -> int:
        """The partition's index, when the driver has all of it. Raises OSError when it could not be delivered."""
        made = PartitionLines(partition)
        with socket.create_connection((self.host, self.port), timeout=_STALLED_S) as connection:
            connection.sendall(_HELLO.pack(self.token, partition.index))
            for piece in made:
                if piece:
                    connection.sendall(_LENGTH.pack(len(piece)))
                    connection.sendall(piece)
            assert made.end is not None
            end = made.end
            connection.sendall(_LENGTH.pack(0) + _DELIVERY.pack(made.made, end.candidates, end.lines, end.state))
            if connection.recv(1) != _ACKNOWLEDGED:
                raise ConnectionError(f"expected the driver to acknowledge partition {partition.index}; it hung up")
        return partition.index


@dataclass(slots=True)
class _Inbox:
    """The pieces of one partition from one connection that are not taken yet."""

    pieces: deque[bytearray] = field(default_factory=deque)
    delivery: Delivery | None = None
    broken: bool = False


class Collector:
    """The driver's end: listens, and gives the pieces of each partition in order. A context manager."""

    def __init__(self, host: str, *, stalled_s: float = _STALLED_S, waiting_bytes: int = _WAITING_BYTES) -> None:
        """Listens on an address of this machine at a free port. Raises OSError if there is no such address."""
        self._token = secrets.token_bytes(BLOCK_BYTES)
        self._server = socket.create_server((host, 0), backlog=128)
        self._stalled_s = stalled_s
        self._waiting_bytes = waiting_bytes
        self._changed = threading.Condition()
        self._inboxes: dict[int, _Inbox] = {}
        self._open: set[socket.socket] = set()
        self._turn = 0
        self._waiting = 0
        self._arrived = 0
        self._closed = False
        threading.Thread(target=self._accept, name="es6-accept", daemon=True).start()

    def sender(self, host: str) -> Sender:
        """The function that workers call; `host` is the name under which they reach this machine."""
        return Sender(host, self._server.getsockname()[1], self._token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every connection; a caller that waits in `pieces` gets StreamLostError."""
        with self._changed:
            self._closed = True
            connections = list(self._open)
            self._changed.notify_all()
        with contextlib.suppress(OSError):
            # Closing alone does not wake a thread that waits in accept.
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def pieces(self, index: int) -> Iterator[bytearray | Delivery | None]:
        """All pieces of a partition, then its `Delivery`. None: forget what came of it, it starts from the beginning.

        Partitions are asked for in order, each once. Raises StreamLostError when nothing comes any more.
        """
        with self._changed:
            self._turn = index
            self._changed.notify_all()
        while True:
            inbox = self._inbox(index)
            while (piece := self._taken(inbox)) is not None:
                yield piece
                if isinstance(piece, Delivery):
                    with self._changed:
                        # Kept, so that a second attempt at it is turned away.
                        inbox.pieces.clear()
                    return
            yield None

    def _inbox(self, index: int) -> _Inbox:
        with self._changed:
            self._wait_until_arrived(lambda: index in self._inboxes, index)
            return self._inboxes[index]

    def _taken(self, inbox: _Inbox) -> bytearray | Delivery | None:
        """The next piece, the delivery when there are no more, or None when the connection broke."""
        with self._changed:
            self._wait_until_arrived(lambda: bool(inbox.pieces or inbox.delivery or inbox.broken), self._turn)
            if inbox.broken:
                if self._inboxes.get(self._turn) is inbox:
                    del self._inboxes[self._turn]
                return None
            if not inbox.pieces:
                return inbox.delivery
            piece = inbox.pieces.popleft()
            self._waiting -= len(piece)
            self._changed.notify_all()
            return piece

    def _wait_until_arrived(self, there: Callable[[], bool], index: int) -> None:
        """Wait, with the lock held. Other partitions still arriving is not a standstill."""
        while not there():
            if self._closed:
                raise StreamLostError(f"expected partition {index}; the workers were stopped before it came")
            before = self._arrived
            if not self._changed.wait(self._stalled_s) and self._arrived == before and not there():
                raise StreamLostError(
                    f"expected partition {index}; nothing came from any worker for {self._stalled_s:.0f} s: look at "
                    "Spark's log, and whether the workers can reach the driver"
                )

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), name="es6-receive", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            with self._changed:
                if self._closed:
                    return
                self._open.add(connection)
            inbox: _Inbox | None = None
            try:
                connection.settimeout(_HELLO_S)
                token, index = _HELLO.unpack(_exactly(connection, _HELLO.size))
                if not hmac.compare_digest(token, self._token):
                    return
                connection.settimeout(self._stalled_s)
                inbox = self._opened(index)
                if inbox is not None:
                    self._receive(connection, index, inbox)
            except (OSError, struct.error, StreamBrokenError):
                pass  # the worker's task fails too, for want of an acknowledgement, and Spark knows why
            finally:
                with self._changed:
                    self._open.discard(connection)
                    if inbox is not None and inbox.delivery is None:
                        self._forgotten(inbox)
                    self._changed.notify_all()

    def _opened(self, index: int) -> _Inbox | None:
        """A new inbox, or None if the partition is there already or on its way."""
        with self._changed:
            present = self._inboxes.get(index)
            if index < self._turn or (present is not None and not present.broken):
                return None
            self._inboxes[index] = inbox = _Inbox()
            self._changed.notify_all()
            return inbox

    def _forgotten(self, inbox: _Inbox) -> None:
        inbox.broken = True
        self._waiting -= sum(map(len, inbox.pieces))
        inbox.pieces.clear()

    def _receive(self, connection: socket.socket, index: int, inbox: _Inbox) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closed or index <= self._turn or self._waiting < self._waiting_bytes
                )
                if self._closed:
                    return
            (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
            if length > _LONGEST_PIECE:
                raise StreamBrokenError(f"expected a piece of at most {_LONGEST_PIECE} bytes; got {length}")
            if not length:
                break
            piece = _exactly(connection, length)
            with self._changed:
                inbox.pieces.append(piece)
                self._waiting += length
                self._arrived += length
                self._changed.notify_all()
        made, candidates, lines_before, state = _DELIVERY.unpack(_exactly(connection, _DELIVERY.size))
        delivery = Delivery(made, Checkpoint(candidates, lines_before, state))
        connection.sendall(_ACKNOWLEDGED)
        with self._changed:
            inbox.delivery = delivery
            self._arrived += 1
            self._changed.notify_all()


def _exactly(connection: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        got = connection.recv_into(view)
        if not got:
            raise ConnectionError(f"expected {size} bytes; the connection ended {len(view)} short")
        view = view[got:]
    return data
