"""Bugs in the table replay_state, its keys and its indexes."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Answer, Refused
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.schema import Schema
from holdfast.reference_impl.calyx_replay.store import COLUMNS, Row, Store
from holdfast.reference_impl.calyx_replay.terms import Purpose, Reason
from holdfast.reference_impl.planting import Change, part

_ANOTHER_NAME = "seen_envelopes"


def _without(schema: type[Schema], *changes: tuple[str, str]) -> type[Schema]:
    """The schema whose statement of replay_state has each of these texts replaced."""

    class Changed(schema):  # type: ignore[misc, valid-type]
        def replay_state(self) -> str:
            text: str = super().replay_state()
            for old, new in changes:
                assert old in text, f"expected {old!r} in the statement"
                text = text.replace(old, new)
            return text

    return Changed


def _nullable(column: str, kind: str = "TEXT") -> type[Schema]:
    return _without(Schema, (f"  {column} {kind} NOT NULL", f"  {column} {kind}"))


# The table


class TableRenamed(Schema):
    def statements(self) -> tuple[str, ...]:
        return tuple(text.replace("replay_state", _ANOTHER_NAME) for text in super().statements())


class _Renaming(sqlite3.Connection):
    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        return super().execute(sql.replace("replay_state", _ANOTHER_NAME), parameters)


class StoreOfRenamed(Store):
    def connect(self, purpose: Purpose) -> sqlite3.Connection:
        uri = f"{self.location.database.as_uri()}?mode=rw"
        return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, factory=_Renaming)


class StoreWithoutRecipient(Store):
    def insert_statement(self) -> str:
        names = [name for name in COLUMNS if name != "recipient_fp"]
        places = [f"?{COLUMNS.index(name) + 1}" for name in names]
        return f"INSERT INTO replay_state ({', '.join(names)}) VALUES ({', '.join(places)})"

    def rows(self, connection: sqlite3.Connection) -> Sequence[dict[str, Any]]:
        names = [name for name in COLUMNS if name != "recipient_fp"]
        found = connection.execute(f"SELECT {', '.join(names)} FROM replay_state ORDER BY replay_key").fetchall()
        return [dict(zip(names, row, strict=True)) for row in found]


# Its indexes


class UniquePartial(_without(Schema, ("TEXT PRIMARY KEY NOT NULL", "TEXT NOT NULL"), (",\n  UNIQUE (replay_key)", ""))):  # type: ignore[misc]
    def indexes(self) -> tuple[str, ...]:
        where = "WHERE seen_at >= '2025-01-01'"
        return (*super().indexes(), f"CREATE UNIQUE INDEX idx_replay_key ON replay_state(replay_key) {where}")


class SeenAtIndexMissing(Schema):
    def indexes(self) -> tuple[str, ...]:
        return tuple(text for text in super().indexes() if "idx_seen_at" not in text)


class SeenAtUnique(Schema):
    def indexes(self) -> tuple[str, ...]:
        return tuple(
            text.replace("CREATE INDEX idx_seen_at", "CREATE UNIQUE INDEX idx_seen_at") for text in super().indexes()
        )


class MsgIdIndexMissing(Schema):
    def indexes(self) -> tuple[str, ...]:
        return tuple(text for text in super().indexes() if "idx_msg_id" not in text)


# Its key


class KeyNullable(_without(Schema, ("PRIMARY KEY NOT NULL", "PRIMARY KEY"))):  # type: ignore[misc]
    def key_check(self) -> str:
        return f"replay_key IS NULL OR {super().key_check()}"


class UndecodableRecorded(Mailbox):
    def receive(self, raw: bytes, *, now: datetime) -> Answer:
        answer = super().receive(raw, now=now)
        if isinstance(answer, Refused) and answer.reason == Reason.ENVELOPE_MALFORMED.value:
            row = dict.fromkeys(COLUMNS, "unknown") | {"seen_at": self._store.seen_at.write(now)}
            with self._store.writing(Purpose.RECEIVE) as connection:
                self._store.insert(connection, {**row, "replay_key": None})
        return answer


class KeyUnchecked(Schema):
    def key_check(self) -> str:
        return "TRUE"


class KeyLengthChecked(Schema):
    def key_check(self) -> str:
        return "length(replay_key) = 64"


class KeyUpToItsNul(Schema):
    def key_check(self) -> str:
        return "typeof(replay_key) = 'text' AND length(replay_key) = 64 AND replay_key NOT GLOB '*[^0-9a-f]*'"


class KeyTypeUnchecked(Schema):
    def key_check(self) -> str:
        return super().key_check().replace("typeof(replay_key) = 'text' AND ", "")


class KeyAsBlob(Store):
    def insert(self, connection: sqlite3.Connection, row: Row) -> None:
        super().insert(connection, {**row, "replay_key": str(row["replay_key"]).encode()})  # type: ignore[dict-item]


class InsertOrIgnore(Store):
    def insert_statement(self) -> str:
        return super().insert_statement().replace("INSERT INTO", "INSERT OR IGNORE INTO")


class LeftToInsert(Mailbox):
    def guard_duplicate(self, connection: sqlite3.Connection, key: str) -> None:
        pass


_RESOLVED = tuple(
    _without(
        Schema,
        ("PRIMARY KEY NOT NULL", f"PRIMARY KEY ON CONFLICT {how} NOT NULL"),
        ("UNIQUE (replay_key)", f"UNIQUE (replay_key) ON CONFLICT {how}"),
    )
    for how in ("REPLACE", "IGNORE")
)
_COMPOUND = tuple(
    _without(
        Schema,
        ("TEXT PRIMARY KEY NOT NULL", "TEXT NOT NULL"),
        ("UNIQUE (replay_key)", f"PRIMARY KEY (replay_key, {column})"),
    )
    for column in ("seen_at", "msg_id")
)


BUGS: Mapping[str, Change] = {
    "table-renamed": part(schema=TableRenamed, store=StoreOfRenamed),
    "recipient-column-left-out": part(
        schema=_without(Schema, ("  recipient_fp TEXT NOT NULL,\n", "")), store=StoreWithoutRecipient
    ),
    "primary-key-missing": part(schema=_without(Schema, ("TEXT PRIMARY KEY NOT NULL", "TEXT NOT NULL"))),
    "primary-key-with-seen-at": part(schema=_COMPOUND[0]),
    "msg-id-nullable": part(schema=_nullable("msg_id")),
    "sender-nullable": part(schema=_nullable("sender_fp")),
    "recipient-nullable": part(schema=_nullable("recipient_fp")),
    "seen-at-nullable": part(schema=_nullable("seen_at", "TIMESTAMP")),
    "timestamp-nullable": part(schema=_nullable("envelope_timestamp")),
    "unique-partial": part(schema=UniquePartial),
    "unique-with-msg-id": part(schema=_COMPOUND[1]),
    "seen-at-index-missing": part(schema=SeenAtIndexMissing),
    "seen-at-unique": part(schema=SeenAtUnique),
    "msg-id-index-missing": part(schema=MsgIdIndexMissing),
    "key-nullable": part(schema=KeyNullable),
    "undecodable-gets-null-key": part(schema=KeyNullable, mailbox=UndecodableRecorded),
    "key-form-unchecked": part(schema=KeyUnchecked),
    "key-checked-up-to-a-nul": part(schema=KeyUpToItsNul),
    "key-length-checked-only": part(schema=KeyLengthChecked),
    "key-bound-as-blob": part(schema=KeyTypeUnchecked, store=KeyAsBlob),
    "conflict-replace": part(schema=_RESOLVED[0]),
    "conflict-ignore": part(schema=_RESOLVED[1]),
    "insert-or-ignore": part(store=InsertOrIgnore, mailbox=LeftToInsert),
}
