"""m5-log: the files of trust and status. Each decision follows the file of the moment, if it has exactly its form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import base64url, from_base64url
from holdfast.conformance.suites.m5_log.generate import ISSUER, STRANGER, Issued, Made
from holdfast.conformance.suites.m5_log.log import COMMAND, STATUS, TRUST, must_be_done, must_be_refused, place_trust
from holdfast.vectors.derive import derive
from holdfast.vectors.neighbours import neighbours

# m5-log: what resembles a JSON object, and credentials whose header or claims do

_HEADER = {"alg": "EdDSA"}
# How many characters a name may have, and one of them.
_LENGTHS, _ROLE = frozenset(range(1, 256)), "reader"


def near_objects(right: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """Texts that are not the object `right`, of which each member has to be there, and no other."""
    whole = json.dumps(right)
    inner = whole[1:-1]
    for name, value in right.items():
        member, others = f'"{name}": {json.dumps(value)}', {key: each for key, each in right.items() if key != name}
        behind = "".join(f", {json.dumps(key)}: {json.dumps(each)}" for key, each in others.items())
        yield f"{name} twice", f'{{"{name}": {json.dumps(type(value)())}, {member}{behind}}}'.encode()
        yield f"{name} twice, the same", f"{{{member}, {member}{behind}}}".encode()
        yield f"no {name}", json.dumps(others).encode()
        for kind, near in (("in capitals", name.upper()), ("and a blank", f"{name} ")):
            yield f"{name} {kind}", json.dumps({**others, near: value}).encode()
        for kind, near_value in (
            ("null", None),
            ("a text", name),
            ("a number", 1),
            ("false", False),
            ("in a list", [value]),
        ):
            if type(near_value) is not type(value) or isinstance(value, list):
                yield f"{name} is {kind}", json.dumps({**right, name: near_value}).encode()
    yield "an unknown member", f'{{{inner}, "more": 1}}'.encode()
    yield "an unknown member before it", f'{{"": null, {inner}}}'.encode()
    yield "without its object", json.dumps(next(iter(right.values()))).encode()
    yield "in a list", f"[{whole}]".encode()
    yield "a byte order mark", b"\xef\xbb\xbf" + whole.encode()
    yield "UTF-16", whole.encode("utf-16")
    yield "a comma at its end", f"{{{inner},}}".encode()
    yield "single quotes", whole.replace('"', "'").encode()
    yield "a comment", f"{whole}//".encode()
    yield "a zero byte behind it", f"{whole}\0".encode()
    yield "twice", (whole + whole).encode()
    yield "empty", b""
    yield "a blank", b" "
    for size in (1, len(whole) // 2, len(whole) - 2, len(whole) - 1):
        yield f"cut to {size}", whole[:size].encode()


def _near_headers() -> Iterator[tuple[str, bytes]]:
    yield from near_objects(_HEADER)
    for near in ("eddsa", "EDDSA", "EdDSA ", "Ed25519\0", "ed25519", "Ed448", "ES256", "HS256", "none", ""):
        yield f"alg is {near!r}", json.dumps({"alg": near}).encode()
    # Each of them tells a library to understand more, or to take the key from the credential.
    for name, value in (
        ("crit", ["exp"]),
        ("crit", []),
        ("b64", False),
        ("jwk", {"kty": "OKP", "crv": "Ed25519"}),
        ("kid", ISSUER),
        ("cty", "JWT"),
        ("zip", "DEF"),
    ):
        yield f"{name} beside alg", json.dumps({**_HEADER, name: value}).encode()


def _near_claims(right: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    yield from near_objects(right)
    key = right["sub"]
    for kind, changed in (
        ("iss in capitals", {"iss": right["iss"].upper()}),
        ("iss with a blank", {"iss": f"{right['iss']} "}),
        ("iss with a zero byte", {"iss": f"{right['iss']}\0"}),
        ("an empty iss", {"iss": ""}),
        ("sub with padding", {"sub": f"{key}="}),
        ("sub in hexadecimal", {"sub": from_base64url(key).hex()}),
        ("sub of 31 bytes", {"sub": base64url(from_base64url(key)[:-1])}),
        ("sub of 33 bytes", {"sub": base64url(from_base64url(key) + b"\0")}),
        ("a number in scope", {"scope": ["t", 1]}),
        ("null in scope", {"scope": ["t", None]}),
        ("scope in an object", {"scope": {"t": True}}),
        ("scope as a text of tags", {"scope": "t u"}),
        ("nbf as text", {"nbf": "0"}),
        ("nbf with a fraction", {"nbf": 0.5}),
        ("nbf below 0", {"nbf": -1}),
        ("exp as text", {"exp": "9"}),
        ("exp with a fraction", {"exp": 8.5}),
        ("exp at nbf", {"exp": right["nbf"]}),
        ("another time besides", {"iat": 0}),
        ("an audience besides", {"aud": "log"}),
    ):
        yield kind, json.dumps({**right, **changed}).encode()


@clause("M5-CF-7", "M5-VC-2", "M5-EPO-1", provocations=(COMMAND,), whole=True, written=True)
def test_a_credential_that_is_nearly_right_verifies_nowhere(bench: Bench) -> None:
    """Header and claims that differ in one thing, signed by the issuer: none is noted, and none opens a grant.

    In other spellings of the same JSON it verifies. It opens no grant of nearly the role or the tag that it says.
    """
    _no_grant_of_a_near_name_holds(bench)
    with bench.session() as session:
        place_trust(session, [ISSUER])
        author, subject = f"alice {session.rand('nearly')}", f"bob {session.rand('nearly')}"
        key = derive("m5.public_key", subject)
        right = {
            "iss": ISSUER,
            "sub": base64url(bytes.fromhex(key)),
            "role": "editor",
            "scope": ["t"],
            "nbf": 0,
            "exp": 9,
        }
        header, claims = json.dumps(_HEADER).encode(), json.dumps(right).encode()
        tried = [
            ("another order", header, json.dumps(right, sort_keys=True, indent=1).encode(), True),
            ("a typ", json.dumps({"typ": "JWT", **_HEADER}, indent=1).encode(), claims, True),
            *((f"header: {kind}", near, claims, False) for kind, near in _near_headers()),
            *((f"claims: {kind}", header, near, False) for kind, near in _near_claims(right)),
        ]
        operations, asked = [], []
        for number, (what, head, said, verifies) in enumerate(tried):
            parts = {"header": base64url(head), "claims": base64url(said), "signer": ISSUER}
            raw = derive("m5.compact", parts)
            cred_hash = derive("m5.cred_hash", raw)
            stored = session.call("persist_vc", {"credential": raw})
            if not verifies and (stored.outcome, stored.reason) == ("refused", "CREDENTIAL_MALFORMED"):
                continue
            must_be_done(bench, stored, f"persist_vc, {what}")
            noted = session.call("persist_verified_vc", {"cred_hash": cred_hash})
            if verifies:
                must_be_done(bench, noted, f"persist_verified_vc, {what}")
            else:
                must_be_refused(bench, noted, "CREDENTIAL_INVALID", f"persist_verified_vc, {what}")
            role = {"subject": subject, "role": "editor", "tag": "t"}
            grant = {"key": author, "ms": 3 * number, "kind": "grant", "payload": {**role, "credential": cred_hash}}
            used = {"key": author, "ms": 3 * number + 1, "kind": "add", "payload": {"key": "c", "amount": 1}}
            end = {"key": author, "ms": 3 * number + 2, "kind": "revoke", "payload": role}
            operations += [Made.of(grant), Made.of(used), Made.of(end)]
            asked.append((what, operations[-2].op_id, verifies))
        _append(bench, session, operations)
        for what, op_id, verifies in asked:
            question = {"subject": key, "role": "editor", "tag": "t", "op_id": op_id}
            if (shown := session.observe("decide", question)["allowed"]) != verifies:
                bench.fail("fail_open" if shown else "over_refusal", f"a decision, {what}", received=str(shown))


def _append(bench: Bench, session: SuiteSession, operations: Sequence[Made]) -> None:
    session.place("grants", from_base64url(derive("m5.batch", [each.raw for each in operations])))
    must_be_done(bench, session.call(COMMAND, {"arguments": ["op-append", "grants"]}), "op-append of the grants")


def _near_names() -> Iterator[tuple[str, str, str]]:
    """Near misses of a role or a tag: a name that a credential has, and another one, each of which may be one."""
    for near in neighbours("text", _ROLE).values():
        if isinstance(near.value, str) and near.value != near.base and {len(near.base), len(near.value)} <= _LENGTHS:
            yield near.name, near.base, near.value


def _no_grant_of_a_near_name_holds(bench: Bench) -> None:
    """Each near miss of what a credential says is granted with it, and not allowed; what it says is allowed."""
    with bench.session(hurried=False) as session:
        place_trust(session, [ISSUER])
        subject, near = f"bob {session.rand('near names')}", list(_near_names())
        tags, key = [*dict.fromkeys(base for _, base, _ in near)], derive("m5.public_key", subject)
        made, asked = list[Made](), list[tuple[str, dict[str, str], bool]]()
        # Of one role there are the near misses of one name, and of tags those of all.
        for part, role, scope, right in (("role", _ROLE, ["t"], [_ROLE]), ("tag", "editor", tags, tags)):
            says = {"issuer": ISSUER, "subject": subject, "role": role, "scope": scope, "nbf": 0, "exp": 9}
            credential = Issued.of(says)
            must_be_done(bench, session.call("persist_vc", {"credential": credential.raw}), "persist_vc")
            others = [(kind, name) for kind, base, name in near if base in right]
            for kind, name in (*zip(right, right, strict=True), *others):
                target = {"role": role, "tag": "t", part: name}
                payload = {**target, "subject": subject, "credential": credential.cred_hash}
                made.append(Made.of({"key": subject, "ms": len(made), "kind": "grant", "payload": payload}))
                asked.append((f"{part}: {kind}", {**target, "subject": key}, name in right))
        last = {"key": subject, "ms": len(made), "kind": "add", "payload": {"key": "c", "amount": 1}}
        _append(bench, session, [*made, behind := Made.of(last)])
        for what, target, holds in asked:
            if (shown := session.observe("decide", {**target, "op_id": behind.op_id})["allowed"]) is not holds:
                bench.fail("fail_open" if shown else "over_refusal", f"a decision, {what}", received=str(shown))


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
