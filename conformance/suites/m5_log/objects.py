"""m5-log: what resembles a JSON object, and credentials whose header or claims do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.conformance.cases.values import base64url, from_base64url
from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.m5_log.graphs import ISSUER, Made
from holdfast.conformance.suites.m5_log.world import COMMAND, must_be_done, must_be_refused, place_trust
from holdfast.vectors.derive import derive

_HEADER = {"alg": "EdDSA"}


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

    In other spellings of the same JSON it verifies.
    """
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
        session.place("grants", from_base64url(derive("m5.batch", [each.raw for each in operations])))
        must_be_done(bench, session.call(COMMAND, {"arguments": ["op-append", "grants"]}), "op-append of the grants")
        for what, op_id, verifies in asked:
            question = {"subject": key, "role": "editor", "tag": "t", "op_id": op_id}
            if (shown := session.observe("decide", question)["allowed"]) != verifies:
                bench.fail("fail_open" if shown else "over_refusal", f"a decision, {what}", received=str(shown))
