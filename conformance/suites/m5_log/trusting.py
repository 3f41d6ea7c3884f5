"""m5-log: the files of trust and status. Each decision follows the file of the moment, if it has exactly its form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from holdfast.conformance.cases.values import base64url, from_base64url
from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.m5_log.graphs import ISSUER, STRANGER, Issued, Made
from holdfast.conformance.suites.m5_log.objects import near_objects
from holdfast.conformance.suites.m5_log.world import STATUS, TRUST, must_be_done, must_be_refused, place_trust
from holdfast.conformance.suites.session import SuiteSession
from holdfast.vectors.derive import derive

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
# How often a file is replaced in a row, so that most of it happens within one second.
_TIMES = 4
# The neutral element as a key, and a signature that the library's equation takes from it for every message: B and 1.
_NEUTRAL = bytes([1]) + bytes(31)
_FOR_EVERYTHING = bytes([0x58]) + bytes([0x66]) * 31 + bytes([1]) + bytes(31)


def _text(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _near_status(entry: str) -> Iterator[tuple[str, bytes]]:
    for kind, near in (
        ("in capitals", entry.upper()),
        ("in one capital", entry.replace("a", "A", 1)),
        ("with a blank behind it", f"{entry} "),
        ("with a blank before it", f" {entry}"),
        ("with a line break", f"{entry}\n"),
        ("of 63 digits", entry[:-1]),
        ("of 65 digits", f"{entry}0"),
        ("of 31 bytes", entry[:-2]),
        ("of 33 bytes", f"{entry}00"),
        ("with a letter that is no digit", f"{entry[:-1]}g"),
        ("with a digit of another script", f"{entry[:-1]}\u0661"),
        ("with a prefix", f"0x{entry[2:]}"),
        ("in base64url", base64url(bytes.fromhex(entry))),
        ("empty", ""),
        ("that is a number", 7),
        ("that is null", None),
        ("that is a list", [entry]),
        ("that is an object", {entry: True}),
    ):
        yield f"an entry {kind}", _text({"revoked": [near]})
        yield f"beside others an entry {kind}", _text({"revoked": [entry, near, entry]})
    yield "a comma behind an entry", f'{{"revoked":["{entry}",]}}'.encode()
    yield "revoked is an object", _text({"revoked": {entry: True}})
    yield "bytes that are no UTF-8", b'{"revoked":["\xff"]}'
    yield from near_objects({"revoked": [entry]})


def _near_trust(key: str) -> Iterator[tuple[str, bytes]]:
    data = from_base64url(key)
    for kind, near in (
        ("with padding", f"{key}="),
        ("with spare bits", key[:-1] + _ALPHABET[_ALPHABET.index(key[-1]) + 1]),
        ("of 31 bytes", base64url(data[:-1])),
        ("of 33 bytes", base64url(data + b"\0")),
        ("with a character more", f"{key}A"),
        ("with a blank", f"{key} "),
        ("with a line break", f"{key}\n"),
        ("with a full stop", f"{key}."),
        ("in hexadecimal", data.hex()),
        ("empty", ""),
        ("that is null", None),
        ("that is a number", 1),
        ("that is a list", [key]),
    ):
        yield f"a key {kind}", _text({"issuers": {ISSUER: near}})
        yield f"beside others a key {kind}", _text({"issuers": {ISSUER: key, "other": near}})
    yield "a name twice", f'{{"issuers":{{"{ISSUER}":"{key}","{ISSUER}":"{key}"}}}}'.encode()
    yield "a comma behind a key", f'{{"issuers":{{"{ISSUER}":"{key}",}}}}'.encode()
    yield "bytes that are no UTF-8", _text({"issuers": {ISSUER: key, "?": key}}).replace(b"?", b"\xff")
    yield from near_objects({"issuers": {ISSUER: key}})


class _Rights:
    """A subject with two grants, each of a credential of its own. The first credential is noted as verified.

    For each tag there is an operation of the subject, which the state denies where the grant does not hold.
    """

    def __init__(self, bench: Bench, session: SuiteSession) -> None:
        self._bench, self._session = bench, session
        subject, author = f"bob {session.rand('rights')}", f"alice {session.rand('rights')}"
        place_trust(session, [ISSUER])
        says = {"issuer": ISSUER, "subject": subject, "role": "editor", "nbf": 0, "exp": 9}
        credentials = [Issued.of({**says, "scope": [tag]}) for tag in ("t", "u")]
        self.hashes = [each.cred_hash for each in credentials]
        self._asked = []
        for number, tag in enumerate(("t", "u")):
            granted = {"subject": subject, "role": "editor", "tag": tag, "credential": self.hashes[number]}
            grant = {"key": author, "ms": 1 + number, "kind": "grant", "payload": granted}
            payload = {"key": "c", "amount": 1, "tag": tag}
            used = Made.of({"key": subject, "ms": 3 + number, "kind": "add", "payload": payload})
            self._done("persist_vc", {"credential": credentials[number].raw})
            for each in (Made.of(grant), used):
                self._done("put_op", {"op": each.raw})
            key = derive("m5.public_key", subject)
            self._asked.append({"subject": key, "role": "editor", "tag": tag, "op_id": used.op_id})
        self._done("persist_verified_vc", {"cred_hash": self.hashes[0]})

    def _done(self, method: str, args: Any) -> None:
        must_be_done(self._bench, self._session.call(method, args), method)

    def hold(self, due: list[bool], what: str, worker: int = 0) -> None:
        """Decisions and a replay are these."""
        session = self._session
        shown = [session.observe("decide", asked, worker)["allowed"] for asked in self._asked]
        if shown != due:
            is_open = any(found and not allowed for found, allowed in zip(shown, due, strict=True))
            verdict = "fail_open" if is_open else "over_refusal"
            self._bench.fail(verdict, f"a decision with {what}", expected=str(due), received=str(shown))
        state = session.observe("dump", {"from": "genesis"}, worker)["state"]
        if (denied := json.loads(state)["denied"]) != due.count(False):
            verdict = "fail_open" if denied < due.count(False) else "over_refusal"
            self._bench.fail(verdict, f"a replay with {what}", expected=str(due.count(False)), received=str(denied))

    def verify(self, what: str) -> None:
        """The one that is noted still verifies."""
        answer = self._session.call("persist_verified_vc", {"cred_hash": self.hashes[0]})
        must_be_done(self._bench, answer, f"persist_verified_vc with {what}")

    def none_verifies(self, what: str) -> None:
        """Neither the one that is noted nor the other."""
        for cred_hash in self.hashes:
            answer = self._session.call("persist_verified_vc", {"cred_hash": cred_hash})
            must_be_refused(self._bench, answer, "CREDENTIAL_INVALID", f"persist_verified_vc with {what}")

    def sweep(self, path: str, right: Any, near: Iterator[tuple[str, bytes]]) -> None:
        """Nothing is allowed with any near miss of a file, and everything is with the right one behind it."""
        spelt = (_text(right), json.dumps(right, indent=1).encode() + b"\n")
        for number, (kind, data) in enumerate(near):
            self._session.place(path, data)
            self._denied(f"{path}: {kind}")
            self._session.place(path, spelt[number % 2])
            self._allowed(f"{path}: {kind}")

    def no_file(self, path: str) -> None:
        """Nothing is allowed while something stands there that is no file, and everything is behind it."""
        kept = f"{path}.kept"
        self._session.move(path, kept)
        self._session.place(f"{path}/file", b"")
        self._denied(f"{path}: a folder")
        self._session.move(path, f"{path}.folder")
        self._session.link(path, PurePosixPath(path).name)
        self._denied(f"{path}: a link that leads to itself")
        self._session.move(kept, path)
        self._allowed(f"{path}: no file")

    def _denied(self, what: str) -> None:
        self.hold([False, False], what)
        self.none_verifies(what)

    def _allowed(self, what: str) -> None:
        self.hold([True, True], f"the right file behind {what}")
        self.verify(f"the right file behind {what}")


@clause("M5-EPO-2", "M5-CF-7", whole=True, written=True)
def test_a_status_file_that_is_nearly_right_revokes_everything(bench: Bench) -> None:
    """Entries, members and bytes that differ in one thing. Behind each the right file counts again."""
    with bench.session() as session:
        rights, entry = _Rights(bench, session), f"a{session.hex64('entry')[1:]}"
        rights.sweep(STATUS, {"revoked": [entry]}, _near_status(entry))
        rights.no_file(STATUS)


@clause("M5-EPO-2", "M5-CF-7", whole=True, written=True)
def test_a_trust_file_that_is_nearly_right_trusts_nobody(bench: Bench) -> None:
    """Keys, members and bytes that differ in one thing. Behind each the right file counts again."""
    with bench.session() as session:
        rights, key = _Rights(bench, session), base64url(bytes.fromhex(derive("m5.public_key", ISSUER)))
        rights.sweep(TRUST, {"issuers": {ISSUER: key}}, _near_trust(key))
        rights.no_file(TRUST)


@clause("M5-EPO-2", "M5-CF-7", whole=True, written=True)
def test_a_file_of_the_same_size_within_the_same_second_counts_at_once(bench: Bench) -> None:
    """A status that revokes another credential, and a trust file with another key: in two processes."""
    with bench.session(workers=2) as session:
        rights = _Rights(bench, session)
        keys = [base64url(bytes.fromhex(derive("m5.public_key", name))) for name in (ISSUER, STRANGER)]
        both = [True, True]
        files = (
            (STATUS, _text({"revoked": [rights.hashes[0]]}), [False, True]),
            (STATUS, _text({"revoked": [rights.hashes[1]]}), [True, False]),
            (STATUS, _text({"revoked": ["0" * 64]}), both),
            (TRUST, _text({"issuers": {ISSUER: keys[1]}}), [False, False]),
            (TRUST, _text({"issuers": {ISSUER: keys[0]}}), both),
        )
        for _ in range(_TIMES):
            for path, data, due in files:
                session.place(path, data)
                for worker in range(2):
                    rights.hold(due, f"a file of the same size in the place of {path}", worker)


@clause("M5-EPO-2", "M5-VC-2")
def test_a_trusted_key_of_small_order_signs_nothing(bench: Bench) -> None:
    """Ed25519 without the strict criteria takes one signature of such a key for every message."""
    with bench.session() as session:
        session.place(TRUST, _text({"issuers": {ISSUER: base64url(_NEUTRAL)}}))
        says = {"issuer": ISSUER, "subject": f"bob {session.rand('small')}", "role": "editor", "scope": ["t"]}
        signed = from_base64url(Issued.of({**says, "nbf": 0, "exp": 9}).raw).rpartition(b".")[0]
        forged = base64url(signed + b"." + base64url(_FOR_EVERYTHING).encode("ascii"))
        stored = session.accepted("persist_vc", {"credential": forged})
        answer = session.call("persist_verified_vc", stored)
        must_be_refused(bench, answer, "CREDENTIAL_INVALID", "a credential that a key of small order signed")
