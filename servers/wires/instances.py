"""The process side: instances of a service and its store's server, started, ended and killed by the kit."""

from __future__ import annotations

import contextlib
import http.client
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil

from holdfast.servers.pace import scaled

_POLL_S = 0.01
_QUIT_S = 3.0


class EndedError(Exception):
    """A program ended, or did not begin to listen in its time."""


class Running:
    """One started program, in the process group of the kit's adapter. `log` receives what it prints."""

    def __init__(self, name: str, command: str, *, folder: Path, env: Mapping[str, str], log: Path) -> None:
        self.name, self._log = name, log
        with log.open("ab") as out:
            try:
                self._child = subprocess.Popen(
                    shlex.split(command),
                    cwd=folder,
                    env=dict(env),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                )
            except OSError as error:
                raise EndedError(f"{name}: {command!r} cannot be started in {folder}: {error.strerror}") from error

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._child.poll() is None

    def await_port(self, address: str, seconds: float, ready: str | None = None) -> None:
        """Wait until it listens, and answers at `ready` if one is given. Raises EndedError."""
        until = time.monotonic() + scaled(seconds)
        while time.monotonic() < until:
            if not self.is_running:
                raise EndedError(f"{self.name} ended with status {self._child.returncode}: {self.last_words()}")
            # Whose port it is costs most, so it is asked last.
            if _listens(address) and (ready is None or _answers(address, ready)) and self._owns(address):
                return
            time.sleep(_POLL_S)
        raise EndedError(f"{self.name} does not listen at {address} after {seconds:g} s: {self.last_words()}")

    def _owns(self, address: str) -> bool:
        """Whether it is this program that listens at a port, and no other that was faster."""
        if address.startswith("unix:"):
            return True
        port = int(address.rpartition(":")[2])
        for process in self._family():
            with contextlib.suppress(psutil.Error):
                if any(end.laddr[1] == port for end in process.net_connections("tcp")):
                    return True
        return False

    def last_words(self) -> str:
        """The end of what it printed."""
        text = self._log.read_bytes()[-600:].decode("utf-8", "replace").strip()
        return text or "it printed nothing"

    def end(self, *, kill: bool = False) -> None:
        """End it in order, or with SIGKILL, with all that it started."""
        mine = list(self._family())
        if not kill and self.is_running:
            self._child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(_QUIT_S)
        for process in mine:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._child.wait()

    def _family(self) -> Iterator[psutil.Process]:
        """It, and then all that it started; to find those all processes are looked at."""
        with contextlib.suppress(psutil.NoSuchProcess):
            parent = psutil.Process(self._child.pid)
            yield parent
            yield from parent.children(recursive=True)


def free_port() -> int:
    """A port at which nobody listens now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def _listens(address: str) -> bool:
    if address.startswith("unix:"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            return probe.connect_ex(address.removeprefix("unix:")) == 0
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), 1.0):
            return True
    except OSError:
        return False


def _answers(address: str, path: str) -> bool:
    connection = http.client.HTTPConnection(address, timeout=2.0)
    try:
        connection.request("GET", path)
        return connection.getresponse().status < 400
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
