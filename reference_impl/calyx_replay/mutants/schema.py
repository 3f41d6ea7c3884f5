"""Bugs in the table replay_state, its keys and its indexes."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Answer, Refused
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.mutants.keys import STORED_OTHERWISE
from holdfast.reference_impl.calyx_replay.mutants.planting import mutant
from holdfast.reference_impl.calyx_replay.schema import Schema
from holdfast.reference_impl.calyx_replay.store import COLUMNS, Row, Store
from holdfast.reference_impl.calyx_replay.terms import Purpose, Reason
from holdfast.reference_impl.mutants.planting import EVERYTHING, also, part

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


_NO_SUCH_ROW = "its cases look for the row, or put one there, and the table is another"
_PUT_WITH_RECIPIENT = "its cases put rows with a recipient there, or look for one"
_NO_PRIMARY_KEY = "its case looks for the primary key, or puts a second row with one key there"
_ONE_MOMENT = "two of its envelopes, or of its rows, are of one moment"
_COPY_ACCEPTED = "a copy comes in one of its cases, and is accepted"

MUTANTS = (
    mutant(
        "table-renamed",
        "The table is called seen_envelopes",
        part(schema=TableRenamed, store=StoreOfRenamed),
        {"SCH-1": "wrong_reason"},
        {EVERYTHING: _NO_SUCH_ROW},
    ),
    mutant(
        "recipient-column-left-out",
        "The table has no recipient_fp: all its mail has one recipient",
        part(schema=_without(Schema, ("  recipient_fp TEXT NOT NULL,\n", "")), store=StoreWithoutRecipient),
        {"SCH-1": "wrong_reason"},
        {
            **also(
                _PUT_WITH_RECIPIENT,
                "LOC-1 MIG-2 PRN-1 PRN-2 PRN-3 PRN-4 PRN-5 PRN-6a PRN-6b PRN-7 PRN-8 PRN-9 PRN-10 PRN-11",
            ),
            **also(
                _PUT_WITH_RECIPIENT,
                "SCH-2 SCH-3 SCH-4 SCH-5 SCH-6 SCH-7 SCH-8 SCH-9 SCH-10 SCH-11 SCH-12 SCH-13 SCH-14 SCH-15",
            ),
        },
    ),
    mutant(
        "primary-key-missing",
        "The table has no primary key, only a UNIQUE",
        part(schema=_without(Schema, ("TEXT PRIMARY KEY NOT NULL", "TEXT NOT NULL"))),
        {"SCH-2": "wrong_reason"},
        also(_NO_PRIMARY_KEY, "SCH-13"),
    ),
    mutant(
        "primary-key-with-seen-at",
        "The primary key is the key and the time, and there is no other UNIQUE",
        part(schema=_COMPOUND[0]),
        {"SCH-2": "fail_open"},
        also(_NO_PRIMARY_KEY, "SCH-8 SCH-13"),
    ),
    mutant("msg-id-nullable", "msg_id may be NULL", part(schema=_nullable("msg_id")), {"SCH-3": "fail_open"}),
    mutant("sender-nullable", "sender_fp may be NULL", part(schema=_nullable("sender_fp")), {"SCH-4": "fail_open"}),
    mutant(
        "recipient-nullable", "recipient_fp may be NULL", part(schema=_nullable("recipient_fp")), {"SCH-5": "fail_open"}
    ),
    mutant(
        "seen-at-nullable",
        "seen_at may be NULL",
        part(schema=_nullable("seen_at", "TIMESTAMP")),
        {"SCH-6": "fail_open"},
    ),
    mutant(
        "timestamp-nullable",
        "envelope_timestamp may be NULL",
        part(schema=_nullable("envelope_timestamp")),
        {"SCH-7": "fail_open"},
    ),
    mutant(
        "unique-partial",
        "The unique index on the key leaves out rows of former years",
        part(schema=UniquePartial),
        {"SCH-8": "fail_open"},
        also(_NO_PRIMARY_KEY, "SCH-2 SCH-13"),
    ),
    mutant(
        "unique-with-msg-id",
        "The key is unique together with the message id",
        part(schema=_COMPOUND[1]),
        {"SCH-8": "fail_open"},
        also(_NO_PRIMARY_KEY, "SCH-2 SCH-13"),
    ),
    mutant(
        "seen-at-index-missing",
        "There is no index on seen_at",
        part(schema=SeenAtIndexMissing),
        {"SCH-9": "wrong_reason"},
    ),
    mutant(
        "seen-at-unique",
        "The index on seen_at is unique",
        part(schema=SeenAtUnique),
        {"SCH-9": "over_refusal"},
        {
            **also(_ONE_MOMENT, "ALG-2 ALG-3 ALG-4 ALG-5 ALG-6 ALG-7 ALG-8 ALG-10 ALG-11 ALG-12 HARD-3 HARD-5 HARD-6"),
            **also(_ONE_MOMENT, "HARD-7 KEY-1 KEY-2 KEY-3 KEY-4b KEY-6 KEY-7 KEY-8 KEY-9 LOC-3 MIG-1 MIG-2 MIG-4"),
            **also(_ONE_MOMENT, "MIG-5 MIG-6 PRN-4 PRN-6a PRN-6c PRN-10 PRN-11 SCH-7 SCH-12 SCH-14 SCH-15"),
        },
    ),
    mutant(
        "msg-id-index-missing",
        "There is no index on msg_id",
        part(schema=MsgIdIndexMissing),
        {"SCH-10": "wrong_reason"},
    ),
    mutant(
        "key-nullable",
        "The key is TEXT PRIMARY KEY without NOT NULL, as the source writes it",
        part(schema=KeyNullable),
        {"SCH-11": "fail_open"},
    ),
    mutant(
        "undecodable-gets-null-key",
        "What cannot be decoded is recorded without a key",
        part(schema=KeyNullable, mailbox=UndecodableRecorded),
        {"SCH-11": "state_leak"},
        also("bytes that are no envelope come in one of its cases", "ALG-9 ALG-10 KEY-3 KEY-4a KEY-6 KEY-8 SCH-14"),
    ),
    mutant(
        "key-form-unchecked",
        "Nothing checks what is stored as a key",
        part(schema=KeyUnchecked),
        {"SCH-12": "fail_open"},
    ),
    mutant(
        "key-length-checked-only",
        "Of a key only the length is checked",
        part(schema=KeyLengthChecked),
        {"SCH-12": "fail_open"},
    ),
    mutant(
        "key-bound-as-blob",
        "The key is stored as a BLOB",
        part(schema=KeyTypeUnchecked, store=KeyAsBlob),
        {"SCH-12": "fail_open"},
        STORED_OTHERWISE | also("its case looks for the key in a row", "KEY-2"),
    ),
    mutant(
        "conflict-replace",
        "The table says ON CONFLICT REPLACE",
        part(schema=_RESOLVED[0]),
        {"SCH-13": "fail_open"},
        also("its case puts a second row with one key there", "SCH-2 SCH-8"),
    ),
    mutant(
        "conflict-ignore",
        "The table says ON CONFLICT IGNORE",
        part(schema=_RESOLVED[1]),
        {"SCH-13": "fail_open"},
        also("its case puts a second row with one key there", "SCH-2 SCH-8"),
    ),
    mutant(
        "insert-or-ignore",
        "Rows are written with INSERT OR IGNORE and without a look before",
        part(store=InsertOrIgnore, mailbox=LeftToInsert),
        {"SCH-13": "fail_open"},
        {
            **also(_COPY_ACCEPTED, "ALG-2 ALG-3 ALG-5 ALG-8 ALG-11 ALG-12 HARD-3 HARD-4 HARD-5 HARD-6 HARD-7 KEY-3"),
            **also(_COPY_ACCEPTED, "HARD-2 KEY-5 KEY-8 KEY-9 MIG-6 PRN-7 PRN-11 SCH-12"),
        },
    ),
)
