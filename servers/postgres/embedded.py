"""An embedded PostgreSQL for a whole run: one folder, one process, nothing left behind.

`python -P -m holdfast.servers.postgres.embedded` is a launcher of one to throw away; the config is its settings.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from holdfast.servers.errors import ServerError
from holdfast.servers.postgres.cluster import (
    SOCKET_FOLDER_MAX,
    SUPERUSER,
    Ending,
    Programs,
    reachable_by_others,
    server_account,
)
from holdfast.servers.serving import Launched, LaunchRequest, Ready, run

# Every cluster has it.
_DATABASE = "postgres"
# The kit removes only folders that are called so.
_PREFIX = "holdfast-pg-"
# Folders that all accounts can open, if the requested folder is closed or its path is too long.
_COMMON_FOLDERS = ("/tmp", "/var/tmp")  # noqa: S108 - folders for a new folder of our own
_SETTINGS = {
    # 16 workers with three connections each, twice over for tests that run side by side.
    "max_connections": "200",
}


class EmbeddedServer(Launched):
    """A running server in a folder of its own. `folder` may be removed by others once `pid` is gone."""

    def __init__(self, *, parent: Path, settings: Mapping[str, str] | None = None) -> None:
        """Initialise and start it, in a new folder under `parent` if a server can live there. Raises ServerError.

        `settings` of PostgreSQL win over those that every server here has.
        """
        self.folder = new_home(parent)
        try:
            self._programs = Programs.within_reach(self.folder)
            self._programs.give(self.folder)
            self._programs.initialise(self.folder / "data")
            self._server = self._programs.start(
                self.folder / "data", self.folder, {**_SETTINGS, **({} if settings is None else settings)}
            )
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    @property
    def pid(self) -> int:
        """Process id of the postmaster."""
        return self._server.pid

    @property
    def ready(self) -> Ready:
        """See `Launched`. `dsn` is the superuser's, `programs` the folder of pg_dump and psql."""
        config = {"dsn": self.dsn(_DATABASE), "programs": str(self._programs.folder)}
        return Ready(config, (self.pid,), (str(self.folder),))

    def dsn(self, database: str, *, user: str = SUPERUSER) -> str:
        """DSN of a database on this server."""
        return self._server.dsn(database, user=user)

    def stop(self) -> None:
        """Stop at once and remove the folder. Never raises."""
        self._server.stop(Ending.AT_ONCE)
        shutil.rmtree(self.folder, ignore_errors=True)


def new_home(parent: Path) -> Path:
    """A new folder for a server: in `parent`, or where its account can get and a socket's path is short enough.

    Raises ServerError if there is no such place.
    """
    for place in (parent, Path(tempfile.gettempdir()), *map(Path, _COMMON_FOLDERS)):
        here = place.resolve()
        short = len(os.fsencode(here / f"{_PREFIX}12345678")) <= SOCKET_FOLDER_MAX
        reachable = server_account() is None or reachable_by_others(here)
        if here.is_dir() and short and reachable:
            return Path(tempfile.mkdtemp(prefix=_PREFIX, dir=here))
    raise ServerError(
        f"expected a folder for the server that its account can reach, with a short path; {parent} and "
        f"{', '.join(_COMMON_FOLDERS)} are none; set TMPDIR to one"
    )


def start(request: LaunchRequest) -> Launched:
    """What `serving.run` runs. Raises ServerError."""
    return EmbeddedServer(parent=Path(request.folder), settings=request.config)


if __name__ == "__main__":
    try:
        run(start)
    except (ServerError, ValueError, OSError) as error:
        raise SystemExit(f"error: {' '.join(str(error).split())}") from None
