"""A launcher provisions what the adapter needs (a server, a template) before any case, and takes it down at the end.

It reads one JSON line `{"contract", "dir", "config", "confined"}` on its standard input, provisions, answers with one
JSON line `{"config": {…}, "processes": […], "paths": […], "surface": {…}}`, waits for end of file, and cleans up. So it
ends with the kit, however the kit ends, and nothing secret stands on an argument list (docs/adapter-protocol.md,
Launchers).
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from msgspec import UNSET

from holdfast.servers.environment import adapter_environment
from holdfast.servers.errors import TOO_LITTLE, StartError
from holdfast.servers.janitor import LAUNCHER_GRACE_S, Janitor, KnownFolder
from holdfast.servers.serving import LaunchRequest, Ready, Stores, decode, encode

# A server's first start runs initdb; on a slow disk that alone takes several seconds.
READY_S = 60.0
# Folders of launchers that are not in the one that the kit gave them.
_PREFIX = "holdfast-"
_COMMON_FOLDERS = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - to find the owner of a folder; no file is made there


class Launcher:
    """A running launcher. `config` goes into every session; what the launcher says wins over what it was given."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        contract: str,
        folder: Path,
        config: Mapping[str, str],
        janitor: Janitor,
        passed: Sequence[str] = (),
        stores: Stores = Stores.ANYWHERE,
        patience: float = READY_S,
        slow: float = 1.0,
    ) -> None:
        """Start it for `contract`, let it use `folder`, and wait `patience` seconds until it is ready.

        `slow` is the factor on that and on how long it may take to clean up (the option --slow). Raises StartError.
        """
        self._janitor = janitor
        self._ready_s, self._grace_s = patience * slow, LAUNCHER_GRACE_S * slow
        self._folder = folder
        # Folders that are there already do not belong to the launcher.
        self._before = {found for temp in _temp_folders() for found in temp.glob(f"{_PREFIX}*")}
        # A file, because a launcher's server may write messages during the whole run, and no process reads a pipe.
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the launcher
        try:
            self._child = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                env=adapter_environment(passed, slow=slow),
                start_new_session=True,
            )
        except OSError as error:
            if error.errno in TOO_LITTLE:
                raise
            raise StartError(f"the launcher {command[0]!r} cannot be started: {error.strerror}") from error
        try:
            janitor.watch("launcher", self._child.pid)
            self._ask(LaunchRequest(contract, str(folder), config, confined=stores is Stores.CONFINED))
            ready = self._ready()
            # Where the stores of its sessions are, as surface.schema.json has it; None if it does not say.
            self.surface: Mapping[str, object] | None = None if ready.surface is UNSET else ready.surface
            self.config = {**config, **ready.config}
            self.processes = tuple(ready.processes)
        except BaseException:
            self.close()
            raise

    def _ask(self, request: LaunchRequest) -> None:
        assert self._child.stdin is not None
        # A launcher that is gone already will be noticed by its missing answer.
        with contextlib.suppress(OSError):
            self._child.stdin.write(encode(request))
            self._child.stdin.flush()

    def _ready(self) -> Ready:
        assert self._child.stdout is not None
        line = _first_line(self._child.stdout, timeout=self._ready_s)
        if not line.endswith(b"\n"):
            self._end_of_input()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(timeout=2)
            self._log.seek(0)
            said = self._log.read()[-2000:].decode("utf-8", "replace").strip()
            raise StartError(f"the launcher did not become ready: {said or 'it said nothing'}")
        try:
            ready = decode(line, Ready)
        except ValueError as error:
            raise StartError(
                f"expected one JSON line of launcher.schema.json from the launcher, got {line[:200]!r}: {error}"
            ) from error
        for process in ready.processes:
            self._janitor.watch("process", process)
        for path in ready.paths:
            place = self._own_place(Path(path))
            if place is not None:
                self._janitor.watch_folder(place)
        return ready

    def _own_place(self, path: Path) -> KnownFolder | None:
        """The folder that a launcher names as its own; None if it goes with the folder that the kit gave it.

        The kit removes what stands here, so a launcher must not be able to name any folder of the user. A server's
        socket needs a short path, so one that the launcher made in a temp folder counts as well: it is called
        holdfast-…, was not there when the launcher was started, and no link is on the way. Raises StartError.
        """
        where = "in the folder that it was given, or in a new one called holdfast-… in a temp folder"
        wrong = StartError(f"the launcher names {str(path)!r} to be removed; expected a folder {where}")
        if ".." in path.parts:
            raise wrong
        if path.resolve().is_relative_to(self._folder.resolve()):
            return None
        for temp in _temp_folders():
            if not path.is_relative_to(temp) or path == temp:
                continue
            made = temp / path.relative_to(temp).parts[0]
            if made.name.startswith(_PREFIX) and made not in self._before and path.resolve() == path:
                try:
                    mine = os.geteuid() in (0, made.lstat().st_uid)
                    if mine and path.is_dir():
                        return KnownFolder.of(path)
                except OSError as error:
                    raise wrong from error
        raise wrong

    def _end_of_input(self) -> None:
        if self._child.stdin is not None:
            with contextlib.suppress(OSError):
                self._child.stdin.close()

    def hurry(self) -> None:
        """The run was stopped early, so the clean-up gets no more time than without a factor."""
        self._grace_s = min(self._grace_s, LAUNCHER_GRACE_S)

    def close(self) -> None:
        """Close its input, wait, and only then kill it."""
        self._end_of_input()
        try:
            self._child.wait(timeout=self._grace_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
        else:
            self._janitor.forget("launcher", self._child.pid)
        if self._child.stdout is not None:
            self._child.stdout.close()
        self._log.close()


def _temp_folders() -> set[Path]:
    """Where launchers make folders: the temp folder, and those with a short path that all accounts can open."""
    return {folder.resolve() for folder in (Path(tempfile.gettempdir()), *_COMMON_FOLDERS) if folder.is_dir()}


def _first_line(stream: IO[bytes], *, timeout: float) -> bytes:
    deadline = time.monotonic() + timeout
    data = b""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while not data.endswith(b"\n") and len(data) < 65536:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                break
            chunk = os.read(stream.fileno(), 65536)
            if not chunk:
                break
            data += chunk
    return data
