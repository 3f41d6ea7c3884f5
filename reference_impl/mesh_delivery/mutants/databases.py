"""Bugs of a broker's database that show only when something goes wrong: a power loss, files that are gone, a clock."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import ClassVar

from holdfast.reference_impl.mesh_delivery.broker_store import BrokerStore, Send
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.postgres import Connection
from holdfast.servers.errors import ServerError
from holdfast.servers.postgres.confined import ConfinedServer


class CommitUnsynced(BrokerStore):
    synchronous_commit = "off"


class NothingSynced(ConfinedServer):
    settings: ClassVar[Mapping[str, str]] = {**ConfinedServer.settings, "fsync": "off"}


class MadeAnew(ConfinedServer):
    """A database that cannot be opened is made anew, elsewhere if need be."""

    def __init__(self, folder: Path, template: Path) -> None:
        super().__init__(folder, template)
        self.template = template

    def open_existing(self) -> None:
        try:
            super().open_existing()
            return
        except (ServerError, OSError):
            self.close()
        try:
            self.open_fresh()
        except (ServerError, OSError):
            self.close()
            elsewhere = Path(tempfile.mkdtemp(prefix="db"))
            elsewhere.chmod(0o755)
            super().__init__(elsewhere, self.template)
            self.open_fresh()


class KnownByTime(BrokerStore):
    """A record of a time that has not come yet gives way."""

    def insert_record(
        self, connection: Connection, send: Send, message_id: str, now: datetime, expires: datetime | None
    ) -> bool:
        connection.execute(
            "DELETE FROM mesh.client_message_dedupe WHERE mesh_id = %s AND client_message_id = %s "
            "AND first_seen_at > %s",
            (send.mesh_id, send.client_message_id, now),
        )
        return super().insert_record(connection, send, message_id, now, expires)


BUGS: Mapping[str, Change] = {
    "accept-commit-unsynced": part(broker_store=CommitUnsynced),
    "database-without-sync": part(confined_server=NothingSynced),
    "database-made-anew": part(confined_server=MadeAnew),
    "record-known-by-its-time": part(broker_store=KnownByTime),
}
