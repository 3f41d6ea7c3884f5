"""Bugs in which a near miss passes for a value."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Answer
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.admission import Attempt, Refusal, decision_of
from holdfast.reference_impl.rs4a_replay.authority import Authority
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.keys import Keys
from holdfast.reference_impl.rs4a_replay.reading import Reader
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.service import Service
from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteStore
from holdfast.reference_impl.rs4a_replay.store import Row
from holdfast.reference_impl.rs4a_replay.terms import DerivedKeys, Submission
from holdfast.reference_impl.rs4a_replay.validator import Validator
from holdfast.specs.strictjson import loads


class NonceWithoutCase(SqliteStore):
    def _row(self, connection: sqlite3.Connection, relation: str, column: str, value: str | None) -> Row | None:
        stored = _stored(connection, relation, column, value, "= ? COLLATE NOCASE")
        return super()._row(connection, relation, column, stored)


class KeyByItsFirstDigits(SqliteStore):
    def _row(self, connection: sqlite3.Connection, relation: str, column: str, value: str | None) -> Row | None:
        if value is not None and relation == "registration" and column == "logical_request_key":
            begins = (f"{value[:8]}%",)
            found = connection.execute(f"SELECT {column} FROM {relation} WHERE {column} LIKE ?", begins).fetchone()
            value = value if found is None else str(found[0])
        return super()._row(connection, relation, column, value)


class VersionInSixteenBits(Keys):
    def derive(self, submission: Submission) -> DerivedKeys:
        version = re.sub("[0-9]+", lambda found: str(int(found[0]) % 65536), submission.protocol_version)
        return super().derive(replace(submission, protocol_version=version))


class FractionIsMicroseconds(Reader):
    def instant(self, text: str) -> datetime:
        return super().instant(re.sub(r"\.([0-9]+)", lambda found: f".{found[1].zfill(6)}", text))


class NonceByLike(SqliteStore):
    def _row(self, connection: sqlite3.Connection, relation: str, column: str, value: str | None) -> Row | None:
        stored = _stored(connection, relation, column, value, "LIKE ?")
        return super()._row(connection, relation, column, stored)


def _stored(connection: sqlite3.Connection, relation: str, column: str, value: str | None, how: str) -> str | None:
    """The stored nonce that is found for a presented one."""
    if value is None or column != "authorization_nonce":
        return value
    found = connection.execute(f"SELECT {column} FROM {relation} WHERE {column} {how}", (value,)).fetchone()
    return value if found is None else str(found[0])


class TargetCut(Keys):
    def normal_target(self, target: str) -> str:
        return super().normal_target(target)[:255]


class HashesHalfCompared(Validator):
    def artifacts_disagree(self, submission: Submission) -> bool:
        claimed = submission.claimed_artifact_hash or submission.attested_artifact_hash
        hashes = {submission.deployed_artifact_hash[:16], claimed[:16], submission.attested_artifact_hash[:16]}
        return len(hashes) > 1


class StatusOfPrefix(Custody):
    def status_of(self, attempt: Attempt, key: str) -> dict[str, Any]:
        for row in self.store.untombstoned():
            found = str(row["logical_request_key"])
            if found[:16] == key[:16]:
                return {"status": "COMMITTED", "decision": decision_of(self.look(found, None))}
        return super().status_of(attempt, key)


class InstantsOfLenientParsers(Reader):
    def read(self, args: Any) -> Submission:
        if isinstance(args, dict) and isinstance(args.get("request"), dict):
            text = str(args["request"].get("issued_at"))
            # Java reads hour 24, Go a single digit.
            text = re.sub("T([0-9]):", r"T0\1:", text.replace("T24:", "T00:"))
            args = {**args, "request": {**args["request"], "issued_at": text}}
        return super().read(args)


class OwnerWithoutCase(Reader):
    def read(self, args: Any) -> Submission:
        if self.fits_schema(args):
            owner = args["request"]["owner_or_approval_binding"].lower()
            args = {**args, "request": {**args["request"], "owner_or_approval_binding": owner}}
        return super().read(args)


class UnknownMembersAccepted(Reader):
    def fits_schema(self, args: Any) -> bool:
        if not isinstance(args, dict) or not isinstance(args.get("request"), dict):
            return super().fits_schema(args)
        request = {name: part for name, part in args["request"].items() if name not in ("unknown", "__proto__")}
        return super().fits_schema({**args, "request": request})


class BindingByPrefix(Registrar):
    def guard_nonce_binding(self, attempt: Attempt) -> Refusal | None:
        refusal, submission = super().guard_nonce_binding(attempt), attempt.verdict.submission
        if refusal is None or attempt.sight.issue is None or submission is None:
            return refusal
        bound = loads(str(attempt.sight.issue["binding"]))
        return None if submission.principal.startswith(bound.get("principal", "\0")) else refusal


class HashOfAnyLetters(Reader):
    def read(self, args: Any) -> Submission:
        if isinstance(args, dict) and isinstance(args.get("request"), dict):
            text = str(args["request"].get("deployed_artifact_hash"))
            if len(text) == 64:
                request = {**args["request"], "deployed_artifact_hash": re.sub("[^0-9a-fA-F]", "0", text)}
                args = {**args, "request": request}
        return super().read(args)


class IssueWithUnknownMembers(Authority):
    def issue_nonce(self, args: Any, *, now: datetime) -> Answer:
        if isinstance(args, dict):
            args = {name: part for name, part in args.items() if name in ("binding", "window")}
        return super().issue_nonce(args, now=now)


class StatusWithoutCase(Custody):
    def resolve_status(self, args: Any, *, now: datetime) -> Answer:
        if isinstance(args, dict) and "logical_request_key" in args:
            args = {**args, "logical_request_key": str(args["logical_request_key"]).lower()}
        return super().resolve_status(args, now=now)


class CompensationUnknownMembers(Service):
    def compensate(self, args: Any) -> Answer:
        if isinstance(args, dict) and isinstance(args.get("request"), dict):
            request = {name: part for name, part in args["request"].items() if name not in ("unknown", "__proto__")}
            args = {**args, "request": request}
        return super().compensate(args)


BUGS: Mapping[str, Change] = {
    "nonce-without-case": part(sqlite_store=NonceWithoutCase),
    "key-by-its-first-digits": part(sqlite_store=KeyByItsFirstDigits),
    "version-in-sixteen-bits": part(keys=VersionInSixteenBits),
    "fraction-is-microseconds": part(reader=FractionIsMicroseconds),
    "nonce-by-like": part(sqlite_store=NonceByLike),
    "target-cut-at-255": part(keys=TargetCut),
    "hashes-half-compared": part(validator=HashesHalfCompared),
    "status-of-prefix": part(custody=StatusOfPrefix),
    "instants-of-lenient-parsers": part(reader=InstantsOfLenientParsers),
    "owner-without-case": part(reader=OwnerWithoutCase),
    "unknown-members-accepted": part(reader=UnknownMembersAccepted),
    "binding-by-prefix": part(registrar=BindingByPrefix),
    "hash-of-any-letters": part(reader=HashOfAnyLetters),
    "issue-with-unknown-members": part(authority=IssueWithUnknownMembers),
    "status-without-case": part(custody=StatusWithoutCase),
    "compensation-with-unknown-members": part(service=CompensationUnknownMembers),
}
