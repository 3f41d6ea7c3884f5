"""The process that opens databases: it starts when needed, has a time limit, and is replaced when it dies."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from typing import Any

from holdfast.servers.pace import scaled

# The time limit of an operation. The whole content of an honest store is read in a fraction of a second.
LIMIT_S = 8.0
# The kit gives the process up so much later than the operation's own limit, which is before the process's own alarm.
_GRACE_S = 1.5


class HelperError(Exception):
    """The process died during a request, or did not answer it in time."""


class Helper:
    """One helper process for any number of requests, one after the other."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def ask(self, op: str, *, seconds: float = LIMIT_S, **arguments: Any) -> Any:
        """The answer of `conformance.inspection.process`, within `seconds`, scaled. Raises HelperError."""
        seconds = scaled(seconds)
        line = json.dumps({"op": op, **arguments, "seconds": seconds}).encode() + b"\n"
        with self._lock:
            process = self._running()
            try:
                assert process.stdin is not None
                process.stdin.write(line)
                process.stdin.flush()
                return json.loads(self._line(process, seconds + scaled(_GRACE_S)))
            except (OSError, ValueError) as error:
                status = self._end()
                raise HelperError(_how(status) if not isinstance(error, TimeoutError) else str(error)) from error
            except BaseException:
                # A late answer would be taken for the answer to the next request.
                self._end()
                raise

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._end()
            # -P: nothing must be imported from the adapter's folder, or the user's.
            argv = [sys.executable, "-P", "-m", "holdfast.conformance.inspection.process"]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(
                argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True
            )
        return self._process

    def _line(self, process: subprocess.Popen[bytes], seconds: float) -> bytes:
        assert process.stdout is not None
        ends = time.monotonic() + seconds
        read = b""
        pieces = [read]
        while not read.endswith(b"\n"):
            ready, _, _ = select.select([process.stdout], [], [], max(0.0, ends - time.monotonic()))
            if not ready:
                raise TimeoutError("it took too long")
            read = os.read(process.stdout.fileno(), 1 << 20)
            if not read:
                raise OSError("the helper ended")
            pieces.append(read)
        return b"".join(pieces)

    def _end(self) -> int:
        """End the process; returns how it ended. A signal of the kit does not hide one that ended it before."""
        process, self._process = self._process, None
        if process is None:
            return 0
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=0.2)
        if process.poll() is None:
            process.kill()
        status = process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        return status

    def close(self) -> None:
        """End the process, if there is one. It can be asked again."""
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                with contextlib.suppress(OSError):
                    self._process.stdin.close()
            self._end()


def _how(status: int) -> str:
    if status == -signal.SIGALRM:
        return "it took too long"
    how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
    return f"a process that opens it dies ({how})"


HELPER = Helper()
atexit.register(HELPER.close)
