"""Bugs that spoil a part of what is sent: an id, a letter, a bound, a moment, the last bytes of a fingerprint."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import psycopg
from starlette.requests import Request
from starlette.responses import JSONResponse

from holdfast.reference_impl.answers import Accepted, Answer
from holdfast.reference_impl.instants import parse_instant
from holdfast.reference_impl.mesh_delivery.broker import Broker
from holdfast.reference_impl.mesh_delivery.broker_admin import Administrator
from holdfast.reference_impl.mesh_delivery.broker_http import BrokerHttp
from holdfast.reference_impl.mesh_delivery.broker_jobs import Jobs
from holdfast.reference_impl.mesh_delivery.broker_store import BrokerStore, Record, Send
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.postgres import Connection

_COMPARED = 4


class MetaAsJson(BrokerStore):
    """The meta of a queue's message is put into a column of JSON, which cannot hold U+0000."""

    def insert_message(
        self, connection: Connection, send: Send, message_id: str, now: datetime, *, client_message_id: str | None
    ) -> str:
        if send.destination_kind == "queue" and send.meta:
            connection.execute("SELECT %s::jsonb", (send.meta.decode(),))
        return super().insert_message(connection, send, message_id, now, client_message_id=client_message_id)


class FirstBytes(Broker):
    def must_match(self, send: Send, record: Record) -> None:
        if send.fingerprint[:_COMPARED] != record.fingerprint[:_COMPARED]:
            super().must_match(send, record)


class LastBytes(Broker):
    def must_match(self, send: Send, record: Record) -> None:
        if send.fingerprint[-_COMPARED:] != record.fingerprint[-_COMPARED:]:
            super().must_match(send, record)


class Milliseconds(Broker):
    def answer_retry(self, send: Send, record: Record) -> Answer:
        answer = super().answer_retry(send, record)
        assert isinstance(answer, Accepted)
        moment = parse_instant(answer.value["first_seen_at"])
        told = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
        return Accepted(answer.effect, {**answer.value, "first_seen_at": told.isoformat().replace("+00:00", "Z")})


class DecodedTwice(BrokerHttp):
    async def answered(self, body: bytes, path: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        once = {name.lower(): unquote(value) for name, value in headers.items()}
        return await super().answered(body, path, _AnyCase(once))


class _AnyCase(dict[str, str]):
    def get(self, name: str, default: Any = None) -> Any:
        return super().get(name.lower(), default)


class ChunksDecoded(BrokerHttp):
    async def over_http(self, request: Request) -> JSONResponse:
        text = ""
        async for chunk in request.stream():
            text += chunk.decode("utf-8", "replace")
        found = await self.answered(text.encode(), request.path_params, request.headers)
        return JSONResponse(found["body"], status_code=found["code"])


class MigratedOtherwise(Administrator):
    def migrate(self) -> None:
        super().migrate()
        found = self.connection().execute(
            "SELECT conname FROM pg_constraint WHERE conrelid = 'mesh.client_message_dedupe'::regclass "
            "AND contype = 'c' AND pg_get_constraintdef(oid) LIKE '%destination_kind%'"
        )
        for (name,) in found.fetchall():
            self.connection().execute(f"ALTER TABLE mesh.client_message_dedupe DROP CONSTRAINT {name}")


class LiveOrphans(Jobs):
    def orphans(self, connection: psycopg.Connection[Any]) -> list[dict[str, str]]:
        rows = connection.execute(
            "SELECT mesh_id::text, client_message_id FROM mesh.client_message_dedupe WHERE expires_at IS NOT NULL"
        ).fetchall()
        live = {tuple(row) for row in rows}
        return [each for each in super().orphans(connection) if (each["mesh_id"], each["client_message_id"]) in live]


BUGS: Mapping[str, Change] = {
    "meta-in-a-column-of-json": part(broker_store=MetaAsJson),
    "first-bytes-compared": part(broker=FirstBytes),
    "last-bytes-compared": part(broker=LastBytes),
    "retry-tells-milliseconds": part(broker=Milliseconds),
    "header-decoded-twice": part(broker_http=DecodedTwice),
    "chunks-decoded-one-by-one": part(broker_http=ChunksDecoded),
    "migrated-without-a-check": part(administrator=MigratedOtherwise),
    "no-orphan-without-an-end": part(jobs=LiveOrphans),
}
