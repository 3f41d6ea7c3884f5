"""A launcher that provisions an empty PostgreSQL server and nothing in it, for whoever needs one to throw away."""

from __future__ import annotations

from holdfast.reference_impl.embedded import EmbeddedServer
from holdfast.reference_impl.launching import Launched, Ready, Wanted

# Every cluster has it.
_DATABASE = "postgres"


class BareServer:
    """Implements `launching.Launched`: a server with its superuser; the config that was asked for is its settings."""

    def __init__(self, wanted: Wanted) -> None:
        """Start it. Raises ServerError."""
        self._server = EmbeddedServer(parent=wanted.folder, settings=wanted.config)

    @property
    def ready(self) -> Ready:
        """See `Launched`. `dsn` is the superuser's, `programs` the folder of pg_dump and psql."""
        config = {"dsn": self._server.dsn(_DATABASE), "programs": str(self._server.programs)}
        return Ready(config, (self._server.pid,), (str(self._server.folder),))

    def sweep(self) -> None:
        """See `Launched`."""

    def stop(self) -> None:
        """See `Launched`."""
        self._server.stop()


def start(wanted: Wanted) -> Launched:
    """What `launching.run` runs. Raises ServerError."""
    return BareServer(wanted)
