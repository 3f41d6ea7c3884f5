"""A launcher of an empty PostgreSQL server to throw away: `python -P -m holdfast.servers.postgres.bare`."""

from __future__ import annotations

from pathlib import Path

from holdfast.servers.errors import ServerError
from holdfast.servers.lines import LaunchRequest, Ready
from holdfast.servers.postgres.embedded import EmbeddedServer
from holdfast.servers.serving import Launched, run

# Every cluster has it.
_DATABASE = "postgres"


class BareServer(Launched):
    """A server with its superuser; the config of the request is its settings."""

    def __init__(self, request: LaunchRequest) -> None:
        """Start it. Raises ServerError."""
        self._server = EmbeddedServer(parent=Path(request.folder), settings=request.config)

    @property
    def ready(self) -> Ready:
        """See `Launched`. `dsn` is the superuser's, `programs` the folder of pg_dump and psql."""
        config = {"dsn": self._server.dsn(_DATABASE), "programs": str(self._server.programs)}
        return Ready(config, (self._server.pid,), (str(self._server.folder),))

    def stop(self) -> None:
        """See `Launched`."""
        self._server.stop()


def start(request: LaunchRequest) -> Launched:
    """What `serving.run` runs. Raises ServerError."""
    return BareServer(request)


if __name__ == "__main__":
    try:
        run(start)
    except (ServerError, ValueError, OSError) as error:
        raise SystemExit(f"error: {' '.join(str(error).split())}") from None
