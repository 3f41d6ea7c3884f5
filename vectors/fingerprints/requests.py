"""Requests that are distinct or equal by construction: a base request, and changes of one field each.

A generated request is kept as its *fields*: the values that a key covers, in their normal form. Beside them stands one
spelling of the request. Which requests are equal is read from the fields alone, so it does not depend on any code that
normalises, canonicalises or hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from holdfast.vectors.spelling import encoded


class Draw:
    """Numbers from a seed and a place, the same on every machine and for every slicing."""

    def __init__(self, seed: int, place: int) -> None:
        self._state = hashlib.sha256(f"holdfast fingerprints {seed} {place}".encode()).digest()
        self._at = 0

    def below(self, bound: int) -> int:
        """A number from 0 to below `bound`, which is small against 2^32."""
        if self._at == len(self._state):
            self._state = hashlib.sha256(self._state).digest()
            self._at = 0
        self._at += 4
        return int.from_bytes(self._state[self._at - 4 : self._at], "big") % bound

    def one(self, of: tuple[str, ...]) -> str:
        """One of several texts."""
        return of[self.below(len(of))]

    def digest(self, label: str) -> str:
        """64 hexadecimal digits."""
        return hashlib.sha256(label.encode() + self.below(2**32).to_bytes(4, "big")).hexdigest()


# Texts with separators, escapes and borders, which a careless framing would confuse.
_TEXTS = (
    "a",
    "ab",
    "b",
    'a","b',
    "a\\",
    '"',
    "\x1f",
    "a\nb",
    "caf\u00e9",
    "\u2028",
    "\U0001f4a1",
    "null",
    "1",
    "|",
    "a:b",
)
_META = (
    "",
    '{"a":1}',
    '{"a":"1"}',
    '{"a":[1,2]}',
    '{"a":[2,1]}',
    '{"a":1,"b":2}',
    '{"a":null}',
    '{"a":{}}',
    '{"\u20ac":1}',
)
# The same objects, spelt otherwise.
_META_SPELT = {
    "": "{ }",
    '{"a":1}': '{ "a":1.0}',
    '{"a":"1"}': '{"\\u0061":"\\u0031"}',
    '{"a":[1,2]}': '{"a":[1e0,\n2]}',
    '{"a":[2,1]}': '{"a":[20e-1,1]}',
    '{"a":1,"b":2}': '{"b":2,"a":1}',
    '{"a":null}': '{"a" : null}',
    '{"a":{}}': '{"a":{ }}',
    '{"\u20ac":1}': '{"\\u20ac":1}',
}
_KINDS = ("topic", "dm", "queue")
# A public key may name a topic, but few names of topics are public keys.
_OTHER_KIND = {"topic": "queue", "queue": "topic", "dm": "topic"}
_PRIORITIES = ("now", "next", "low")
_TARGETS = ("lamp", "lump", "Lamp", "a%2Fb", "caf\u00e9", "x/y", "x/y/z")


def mesh_base(draw: Draw, number: int) -> dict[str, str]:
    """The fields of a request of a mesh. `number` makes bases distinct."""
    kind = draw.one(_KINDS)
    return {
        "envelope_version": str(1 + draw.below(12)),
        "destination_kind": kind,
        "destination_ref": draw.digest("peer") if kind == "dm" else f"{draw.one(_TEXTS)}{number}",
        "reply_to": "" if draw.below(2) else _uuid(draw),
        "priority": draw.one(_PRIORITIES),
        "meta": draw.one(_META),
        "body": f"{draw.one(_TEXTS)}{number}",
    }


def rs4a_base(draw: Draw, number: int) -> dict[str, str]:
    """The fields of a submission to a registrar."""
    artifact = draw.digest("artifact")
    return {
        "protocol_version": f"rs4a/0.{draw.below(4)}",
        "operation": f"{draw.one(_TEXTS)}{number}",
        "canonical_target": f"dot://acme{number}/{draw.one(_TARGETS)}",
        "artifact_hash": artifact,
        "deployed_artifact_hash": artifact,
        "owner_or_approval_binding": f"{draw.one(_TEXTS)}{number}",
        "run_id": f"{draw.one(_TEXTS)}{draw.below(3)}",
    }


def mesh_mutated(fields: Mapping[str, str], field: str, draw: Draw) -> dict[str, str]:
    """The fields with `field` changed to another value. A border `a/b` moves characters from one field to the next."""
    if field == "destination_ref/reply_to":
        return _moved_reply(fields, draw)
    value = fields[field]
    changed = {
        "envelope_version": lambda: value + "0",
        "destination_kind": lambda: _OTHER_KIND[value],
        "destination_ref": lambda: (
            _other_digit(value) if fields["destination_kind"] == "dm" else value + draw.one(_TEXTS)
        ),
        "reply_to": lambda: "" if value else _uuid(draw),
        "priority": lambda: _other(_PRIORITIES, value),
        "meta": lambda: _other(_META, value),
        "body": lambda: value + draw.one(_TEXTS),
    }[field]()
    return {**fields, field: changed}


def _moved_reply(fields: Mapping[str, str], draw: Draw) -> dict[str, str]:
    """A request that a framing without separators would take for the one with `reply_to` in its own place."""
    reply = fields["reply_to"] or _uuid(draw)
    if fields["destination_kind"] == "dm":
        return {**fields, "reply_to": "" if fields["reply_to"] else reply}
    if fields["reply_to"]:
        return {**fields, "destination_ref": fields["destination_ref"] + reply, "reply_to": ""}
    return {**fields, "reply_to": reply}


def rs4a_mutated(fields: Mapping[str, str], field: str, draw: Draw) -> dict[str, str]:
    """The fields with `field` changed, or with one character moved over the border `a/b`."""
    if "/" in field:
        left, right = field.split("/")
        return {**fields, left: fields[left][:-1], right: fields[left][-1:] + fields[right]}
    value = fields[field]
    if field in ("artifact_hash", "deployed_artifact_hash"):
        return {**fields, field: _other_digit(value)}
    if field == "canonical_target":
        return {**fields, field: value + draw.one(("x", "%20", "/x", "\u00e9", "?q"))}
    return {**fields, field: value + draw.one(_TEXTS)}


def mesh_spelt(fields: Mapping[str, str], way: int) -> dict[str, Any]:
    """A request with these fields. Ways from 1 on use another spelling of the fields that have several."""
    request: dict[str, Any] = {
        "envelope_version": int(fields["envelope_version"]),
        "destination_kind": fields["destination_kind"],
        "destination_ref": fields["destination_ref"],
        "body": encoded(fields["body"].encode()),
    }
    otherwise = way > 0
    if otherwise and fields["destination_kind"] == "dm":
        request["destination_ref"] = fields["destination_ref"].upper()
    if fields["reply_to"]:
        request["reply_to"] = fields["reply_to"].upper() if otherwise else fields["reply_to"]
    elif otherwise:
        request["reply_to"] = None if way % 2 else ""
    if fields["priority"] != "next" or otherwise:
        request["priority"] = fields["priority"]
    if otherwise:
        request["meta"] = encoded(_META_SPELT[fields["meta"]].encode())
    elif fields["meta"]:
        request["meta"] = encoded(fields["meta"].encode())
    return request


def rs4a_spelt(fields: Mapping[str, str], way: int) -> dict[str, Any]:
    """A submission with these fields. Members that no key covers differ from way to way as well."""
    target, artifact, deployed = fields["canonical_target"], fields["artifact_hash"], fields["deployed_artifact_hash"]
    if way > 0:
        scheme, _, rest = target.partition("://")
        authority, _, path = rest.partition("/")
        target = f"{scheme.upper()}://{authority.upper()}/./{path}/"
        artifact, deployed = artifact.upper(), deployed.upper()
    request = {name: fields[name] for name in ("protocol_version", "operation", "owner_or_approval_binding", "run_id")}
    request |= {"canonical_target": target, "deployed_artifact_hash": deployed}
    request |= {"attempt_id": f"try-{way}", "authorization_nonce": f"nonce-{way}", "principal": f"agent-{way}"}
    return {"request": request, "trusted_attested": {"artifact_hash": artifact}}


def identity(fields: Mapping[str, str], covered: tuple[str, ...]) -> bytes:
    """16 bytes that two requests share if and only if they are equal in the `covered` fields.

    The fields are framed by their lengths and hashed by another function than any key uses.
    """
    framed = hashlib.blake2b(digest_size=16)
    for name in covered:
        data = fields[name].encode("utf-8")
        framed.update(len(data).to_bytes(4, "big") + data)
    return framed.digest()


def _uuid(draw: Draw) -> str:
    return str(UUID(int=int(draw.digest("reply")[:32], 16)))


def _other(of: tuple[str, ...], value: str) -> str:
    return of[(of.index(value) + 1) % len(of)]


def _other_digit(value: str) -> str:
    return value[:-1] + ("0" if value[-1] != "0" else "1")
