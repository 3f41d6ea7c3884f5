"""The loop that `run` is measured against: the same frames, no sentinel, no check, no deadline, no second process."""

from __future__ import annotations

import contextlib
import struct
import subprocess
import threading
from collections.abc import Iterable, Mapping, Sequence

from holdfast.vectors.jcs.frames.process import PIPE_BYTES, end, start, widen


class Bare:
    """A thread that writes, a loop that reads. A runner that misbehaves hangs it or makes it raise; benches only."""

    def __init__(self, command: Sequence[str], *, env: Mapping[str, str] | None = None) -> None:
        """`env` as for `run`."""
        self._command = command
        self._env = env

    def feed(self, documents: Iterable[bytes]) -> int:
        """Feed everything, cut the answers apart and drop them; how many came. Raises StartError."""
        child = start(self._command, self._env, stderr=subprocess.DEVNULL)
        assert child.stdin is not None
        assert child.stdout is not None
        widen(child.stdin)
        widen(child.stdout)
        writer = threading.Thread(target=_write, args=(child, documents), daemon=True)
        answers = 0
        try:
            writer.start()
            # The pipe itself, not Popen's reader, whose buffer is small.
            with open(child.stdout.fileno(), "rb", buffering=PIPE_BYTES, closefd=False) as stream:
                read = stream.read
                while header := read(5):
                    read(struct.unpack(">IB", header)[0])
                    answers += 1
        finally:
            end(child)
            writer.join()
        return answers


def _write(child: subprocess.Popen[bytes], documents: Iterable[bytes]) -> None:
    assert child.stdin is not None
    with contextlib.suppress(OSError), open(child.stdin.fileno(), "wb", buffering=PIPE_BYTES, closefd=False) as stream:
        for document in documents:
            stream.write(struct.pack(">I", len(document)))
            stream.write(document)
    with contextlib.suppress(OSError):
        child.stdin.close()
