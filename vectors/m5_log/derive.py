"""Operations, credentials and forgeries of `m5-log`, computed from the contract (methods.yaml, `$defs`).

Bytes travel as base64url without padding, hashes and keys as hexadecimal. An author or issuer is named by a label; its
Ed25519 seed is the SHA-256 of that label.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from holdfast.vectors.m5_log import curve, encoding
from holdfast.vectors.m5_log.curve import L
from holdfast.vectors.m5_log.oracle import Credential, Entry, expected_order, expected_state
from holdfast.vectors.spelling import decoded, encoded, known

# The neutral element, as a key and as R: with S = 0 it "signs" everything for who does not refuse it.
_NEUTRAL = b"\x01" + bytes(31)
_HEX_MEMBERS = frozenset({"subject"})
_DRAFT = frozenset("key signer ms logical kind payload parents members drop tail body_tail".split())
_CLAIMS = frozenset({"issuer", "signer", "subject", "role", "scope", "nbf", "exp", "header", "claims", "drop"})


@lru_cache(maxsize=1024)
def _private(label: str) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(label.encode("utf-8")).digest())


def key_of(label: str) -> bytes:
    """The public key of a label."""
    return _private(label).public_key().public_bytes_raw()


def public_key(label: str) -> str:
    """The public key of a label, 64 hex digits."""
    return key_of(label).hex()


def _payload(kind: str, payload: Mapping[str, Any]) -> bytes:
    """A payload: `subject` is a label; `credential` is a hash in a grant, and else base64url bytes."""
    parts: dict[str, bytes] = {}
    for name, item in payload.items():
        if name in _HEX_MEMBERS and isinstance(item, str):
            parts[name] = encoding.binary(key_of(item))
        elif name == "credential" and isinstance(item, str):
            parts[name] = encoding.binary(decoded(item) if kind == "credential" else bytes.fromhex(item))
        else:
            parts[name] = encoding.value(item)
    return encoding.members(parts)


def hlc(ms: int, logical: int = 0) -> bytes:
    """A clock: 8 bytes of milliseconds, 4 of a counter, big-endian."""
    return ms.to_bytes(8, "big") + logical.to_bytes(4, "big")


def _body(draft: Mapping[str, Any]) -> bytes:
    kind = draft.get("kind", "set")
    parts = {
        "author": encoding.binary(key_of(draft["key"])),
        "format": encoding.text("ecac:v1"),
        "hlc": encoding.binary(hlc(draft["ms"], draft.get("logical", 0))),
        "kind": encoding.text(kind),
        "parents": encoding.head(4, len(draft.get("parents", ())))
        + b"".join(encoding.binary(bytes.fromhex(parent)) for parent in draft.get("parents", ())),
        "payload": _payload(kind, draft["payload"]),
        **{name: encoding.value(item) for name, item in draft.get("members", {}).items()},
    }
    for name in draft.get("drop", ()):
        del parts[name]
    return encoding.members(parts) + bytes.fromhex(draft.get("body_tail", ""))


def _joined(body: bytes, signature: bytes) -> bytes:
    return encoding.head(4, 2) + encoding.binary(body) + encoding.binary(signature)


def op(draft: Mapping[str, Any]) -> str:
    """The bytes of an operation that is signed: {key, ms, logical?, kind?, payload, parents?, …}.

    `signer` is the label of who signs in place of the author. `members` replaces or adds members of the body, `drop`
    lists those to leave out, `body_tail` is appended to the body before it is signed, `tail` to the whole.
    """
    known(draft, _DRAFT, "an operation")
    body = _body(draft)
    signature = _private(draft.get("signer", draft["key"])).sign(body)
    return encoded(_joined(body, signature) + bytes.fromhex(draft.get("tail", "")))


def op_id(spelt: str) -> str:
    """The id of an operation: SHA-256 over its bytes."""
    return hashlib.sha256(decoded(spelt)).hexdigest()


def _split(spelt: str) -> tuple[bytes, bytes]:
    """Body and signature of an operation that `op` made."""
    raw = decoded(spelt)
    return raw[:-66], raw[-64:]


def sorted_ids(ops: list[str]) -> list[str]:
    """The ids of operations in the order of their bytes."""
    return sorted(map(op_id, ops))


def malleated(spelt: str) -> str:
    """The same operation with the order of the group added to S: another signature that a lenient check accepts."""
    raw = decoded(spelt)
    scalar = int.from_bytes(raw[-32:], "little") + L
    return encoded(raw[:-32] + scalar.to_bytes(32, "little"))


def _body_of(draft: Mapping[str, Any], key: bytes) -> bytes:
    """The body of a draft with another author."""
    return _body({**draft, "members": {"author": {"cbor": encoding.binary(key).hex()}}})


def small_order(draft: Mapping[str, Any]) -> str:
    """An operation of the neutral element as author, with R the same and S = 0."""
    return encoded(_joined(_body_of(draft, _NEUTRAL), _NEUTRAL + bytes(32)))


def edge(asked: Mapping[str, Any]) -> str:
    """The operation {op} with a signature at the edge {name} of `curve.NAMES`, and an author to whom that belongs."""
    draft = asked["op"]
    seed = hashlib.sha256(draft["key"].encode("utf-8")).digest()
    signed = curve.edge(asked["name"], seed, lambda key: _body_of(draft, key))
    return encoded(_joined(signed.body, signed.signature))


def unsigned(spelt: str) -> str:
    """The operation with an empty signature."""
    return encoded(_split(spelt)[0] + encoding.binary(b""))


def flipped(asked: Mapping[str, Any]) -> str:
    """The same bytes with the lowest bit of the byte at `at` changed; negative numbers count from the end."""
    raw = bytearray(decoded(asked["bytes"]))
    raw[asked["at"]] ^= 1
    return encoded(bytes(raw))


def batch(ops: list[str]) -> str:
    """A file of op-append."""
    return encoded(encoding.head(4, len(ops)) + b"".join(encoding.binary(decoded(each)) for each in ops))


def batch_of(drafts: list[Mapping[str, Any]]) -> str:
    """A file of op-append, of operations that are yet to be made."""
    return batch([op(draft) for draft in drafts])


def many(asked: Mapping[str, Any]) -> str:
    """A file of `count` operations of the author `key`, one for each millisecond: {key, count, parents?, value?}.

    They add to counters, or set registers to `value`.
    """
    made = {"key": asked["key"], "kind": "set" if "value" in asked else "add", "parents": asked.get("parents", [])}
    changes = [{"value": asked["value"]} if "value" in asked else {"amount": at} for at in range(asked["count"])]
    payloads = ({"key": f"c{number % 7}", **change} for number, change in enumerate(changes))
    return batch_of([{**made, "ms": number, "payload": payload} for number, payload in enumerate(payloads)])


def row(asked: Mapping[str, Any]) -> str:
    """Bytes of keys and values of rows, joined: each part is {hex}, {base64url}, {text}, {number} or {hlc: [ms, n]}."""
    makers: Mapping[str, Callable[[Any], bytes]] = {
        "hex": bytes.fromhex,
        "base64url": decoded,
        "text": lambda found: str(found).encode("utf-8"),
        "number": lambda found: int(found).to_bytes(8, "big"),
        "hlc": lambda found: hlc(*found),
    }
    return encoded(b"".join(makers[kind](found) for part in asked["parts"] for kind, found in part.items()))


def value_in(asked: Mapping[str, Any]) -> str:
    """The value of the row with this key among `rows`, as `store` shows them."""
    (found,) = (each["value"] for each in asked["rows"] if each["key"] == asked["key"])
    return str(found)


def successor(number: int) -> int:
    """The next number."""
    return number + 1


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode("ascii")


def _claims(draft: Mapping[str, Any]) -> dict[str, Any]:
    found = {
        "iss": draft["issuer"],
        "sub": encoded(key_of(draft["subject"])),
        "role": draft["role"],
        "scope": draft["scope"],
        "nbf": draft["nbf"],
        "exp": draft["exp"],
        **draft.get("claims", {}),
    }
    return {name: item for name, item in found.items() if name not in draft.get("drop", ())}


def credential(draft: Mapping[str, Any]) -> str:
    """The bytes of a credential: {issuer, subject, role, scope, nbf, exp, signer?, header?, claims?, drop?}."""
    known(draft, _CLAIMS, "a credential")
    header, claims = _json(draft.get("header", {"alg": "EdDSA"})), _json(_claims(draft))
    return _compact(header, claims, draft.get("signer", draft["issuer"]))


def _compact(header: bytes, claims: bytes, signer: str) -> str:
    signed = f"{encoded(header)}.{encoded(claims)}"
    signature = _private(signer).sign(signed.encode("ascii"))
    return encoded(f"{signed}.{encoded(signature)}".encode("ascii"))


def compact(asked: Mapping[str, str]) -> str:
    """The bytes of a credential whose {header} and {claims} are any base64url bytes, signed by {signer}."""
    return _compact(decoded(asked["header"]), decoded(asked["claims"]), asked["signer"])


def respelt(asked: Mapping[str, Any]) -> str:
    """The same credential in another spelling: `how` is the name of one that stands below."""
    header, claims, signature = decoded(asked["credential"]).decode("ascii").split(".")
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    # A signature of 64 bytes ends in a character of which four bits are spare.
    spare = signature[:-1] + alphabet[alphabet.index(signature[-1]) + 1]
    spellings = {
        "padded": f"{header}.{claims}.{signature}==",
        "spare-bits": f"{header}.{claims}.{spare}",
        "blank": f"{header}.{claims}.{signature} ",
        "newline": f"{header}.{claims}.{signature}\n",
        "four-parts": f"{header}.{claims}.{signature}.",
        "two-parts": f"{header}.{claims}",
    }
    return encoded(spellings[asked["how"]].encode("ascii"))


def verified_row(draft: Mapping[str, Any]) -> str:
    """The value of the row in vc_verified of a credential of this draft."""
    return encoded(encoding.value({name: draft[name] for name in ("issuer", "role", "scope", "nbf", "exp")}))


def cred_hash(spelt: str) -> str:
    """The hash of a credential: SHA-256 over its bytes."""
    return hashlib.sha256(decoded(spelt)).hexdigest()


def trust(issuers: list[str] | Mapping[str, str]) -> str:
    """The bytes of a trust file that names these labels, each with its own key, or with that of another label."""
    keys = issuers if isinstance(issuers, Mapping) else dict(zip(issuers, issuers, strict=True))
    return encoded(_json({"issuers": {name: encoded(key_of(label)) for name, label in keys.items()}}))


def status(revoked: list[str]) -> str:
    """The bytes of a status file that revokes these hashes."""
    return encoded(_json({"revoked": revoked}))


def entry_of(draft: Mapping[str, Any]) -> Entry:
    """The operation of a draft, as the oracle reads it."""
    payload = dict(draft["payload"])
    if "subject" in payload:
        payload["subject"] = public_key(payload["subject"])
    return Entry(
        op_id=op_id(op(draft)),
        author=public_key(draft["key"]),
        ms=draft["ms"],
        logical=draft.get("logical", 0),
        kind=draft.get("kind", "set"),
        parents=tuple(draft.get("parents", ())),
        payload=payload,
        value=encoding.value(payload["value"]).hex() if "value" in payload else "",
    )


def credential_of(draft: Mapping[str, Any]) -> Credential:
    """The credential of a draft, as the oracle reads it."""
    return Credential(
        cred_hash=cred_hash(credential(draft)),
        issuer=draft["issuer"],
        subject=public_key(draft["subject"]),
        role=draft["role"],
        scope=tuple(draft["scope"]),
        nbf=draft["nbf"],
        exp=draft["exp"],
    )


def order(drafts: list[Mapping[str, Any]]) -> list[str]:
    """The topological order of these operations; those that wait are not in it."""
    return [entry.op_id for entry in expected_order([entry_of(draft) for draft in drafts])]


def state(asked: Mapping[str, Any]) -> str:
    """The state of a log of these operations: {ops, credentials?, issuers?}; credentials are drafts that verify."""
    return expected_state(
        [entry_of(draft) for draft in asked["ops"]],
        [credential_of(draft) for draft in asked.get("credentials", ())],
        [public_key(label) for label in asked.get("issuers", ())],
    )


def binary(text: str) -> str:
    """The normal form of bytes: base64url without padding and without spare bits. Raises ValueError for others."""
    data = decoded(text)
    if encoded(data) != text:
        raise ValueError("expected base64url without padding and spare bits")
    return data.hex()


DERIVATIONS: Mapping[str, Callable[[Any], Any]] = {
    "binary": binary,
    "public_key": public_key,
    "op": op,
    "op_id": op_id,
    "sorted_ids": sorted_ids,
    "malleated": malleated,
    "small_order": small_order,
    "edge": edge,
    "unsigned": unsigned,
    "flipped": flipped,
    "batch": batch,
    "batch_of": batch_of,
    "many": many,
    "row": row,
    "value_in": value_in,
    "successor": successor,
    "credential": credential,
    "compact": compact,
    "respelt": respelt,
    "cred_hash": cred_hash,
    "verified_row": verified_row,
    "trust": trust,
    "status": status,
    "order": order,
    "state": state,
}
