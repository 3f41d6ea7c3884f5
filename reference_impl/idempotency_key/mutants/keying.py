"""Bugs of keys, scopes and fingerprints."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace

from holdfast.reference_impl.idempotency_key.guard import Fingerprints, Guard, Request
from holdfast.reference_impl.idempotency_key.keys import Keys
from holdfast.reference_impl.idempotency_key.records import Records, Row, Transaction
from holdfast.reference_impl.idempotency_key.terms import Answer, Reason, RefusedError
from holdfast.reference_impl.planting import part


class RawHeader(Keys):
    def read(self, line: bytes) -> str:
        super().read(line)
        return line.decode("latin-1")


class FirstLine(Keys):
    def of(self, lines: Sequence[bytes]) -> str:
        return super().of(lines[:1])


class LowerCased(Keys):
    def read(self, line: bytes) -> str:
        return super().read(line).lower()


class CutAt64(Keys):
    def read(self, line: bytes) -> str:
        return super().read(line)[:64]


class LongKeysCut(Keys):
    def check_length(self, key: str) -> None:
        if not key:
            super().check_length(key)


class EmptyKey(Keys):
    def check_length(self, key: str) -> None:
        super().check_length(key or "none")


class BehindTheColon(Keys):
    def read(self, line: bytes) -> str:
        return super().read(line).rpartition(":")[2] or "none"


class KeyQuoted(Keys):
    def of(self, lines: Sequence[bytes]) -> str:
        try:
            return super().of(lines)
        except RefusedError as error:
            raise RefusedError(error.reason, b", ".join(lines).decode("latin-1")) from error


class MalformedExecuted(Guard):
    def refused(self, error: RefusedError, request: Request, handler: Callable[[bytes], Answer]) -> Answer:
        if error.reason is Reason.MALFORMED and request.keys and request.body:
            return self.run(request, handler)
        return super().refused(error, request, handler)


class MissingExecuted(Guard):
    def refused(self, error: RefusedError, request: Request, handler: Callable[[bytes], Answer]) -> Answer:
        if not request.keys:
            return self.run(request, handler)
        return super().refused(error, request, handler)


class WithoutPrincipal(Guard):
    def scope(self, request: Request) -> str:
        return request.path


class WithoutPath(Guard):
    def scope(self, request: Request) -> str:
        return request.principal


class BodyAlone(Fingerprints):
    def fields(self, request: Request) -> list[bytes]:
        return [request.body]


class WithoutQuery(Fingerprints):
    def fields(self, request: Request) -> list[bytes]:
        return super().fields(replace(request, query=""))


class Joined(Fingerprints):
    def fields(self, request: Request) -> list[bytes]:
        return [b"".join(super().fields(request))]


class TheBeginning(Fingerprints):
    def fields(self, request: Request) -> list[bytes]:
        return super().fields(replace(request, body=request.body[:1000]))


class FirstMegabyte(Fingerprints):
    def fields(self, request: Request) -> list[bytes]:
        return super().fields(replace(request, body=request.body[: 1 << 20]))


class Checksum(Fingerprints):
    def of(self, request: Request) -> str:
        return f"{zlib.crc32(b'|'.join(self.fields(request))):08x}"


class TheParsedBody(Fingerprints):
    def fields(self, request: Request) -> list[bytes]:
        try:
            parsed = json.loads(request.body, parse_int=float)
        except ValueError:
            return super().fields(request)
        return super().fields(replace(request, body=json.dumps(parsed).encode()))


class KeyAsPattern(Records):
    def insert(self, change: Transaction, row: Row) -> bool:
        like = "SELECT name FROM records WHERE scope = ? AND name LIKE ?"
        return not change.execute(like, (row.scope, row.name)) and super().insert(change, row)


BUGS = {
    "raw-header-is-the-key": part(keys=RawHeader),
    "first-line-of-two": part(keys=FirstLine),
    "keys-in-small-letters": part(keys=LowerCased),
    "keys-cut-at-64": part(keys=CutAt64),
    "long-keys-not-refused": part(keys=LongKeysCut),
    "empty-key-is-a-key": part(keys=EmptyKey),
    "key-behind-its-colon": part(keys=BehindTheColon),
    "refusal-quotes-the-key": part(keys=KeyQuoted),
    "malformed-key-unprotected": part(guard=MalformedExecuted),
    "missing-key-unprotected": part(guard=MissingExecuted),
    "keys-of-all-principals": part(guard=WithoutPrincipal),
    "one-namespace-for-all-routes": part(guard=WithoutPath, fingerprints=BodyAlone),
    "query-not-in-the-fingerprint": part(fingerprints=WithoutQuery),
    "fields-joined-in-the-fingerprint": part(fingerprints=Joined),
    "fingerprint-of-the-beginning": part(fingerprints=TheBeginning),
    "fingerprint-of-a-megabyte": part(fingerprints=FirstMegabyte),
    "fingerprint-is-a-checksum": part(fingerprints=Checksum),
    "fingerprint-of-the-parsed-body": part(fingerprints=TheParsedBody),
    "key-is-a-pattern": part(records=KeyAsPattern),
}
