"""The clear header of an object (source sections 3.1 to 3.4): what it must hold, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.reference_impl.hx_sync import instants
from holdfast.reference_impl.hx_sync.layout import HASH, UUID
from holdfast.reference_impl.hx_sync.terms import COMPRESSIONS, Kind
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import canonical, loads

MAGIC, VERSION = "HXOBJ", 0
_COMMON = ("magic", "version", "object_type", "vault_id", "crypto")
_OWN: Mapping[Kind, tuple[str, ...]] = {
    Kind.SEGMENT: ("node_id", "segment_id", "created_at"),
    Kind.BLOB: ("blob_hash", "byte_len_plain", "compression"),
    Kind.TOMBSTONE: ("tombstone_id", "created_at", "node_id"),
    Kind.MANIFEST: ("node_id", "created_at"),
}
_ID = {
    Kind.SEGMENT: "segment_id",
    Kind.BLOB: "blob_hash",
    Kind.TOMBSTONE: "tombstone_id",
    Kind.MANIFEST: "node_id",
}


class MalformedError(ValueError):
    """The bytes are no object of this format; the text says what was expected and what came."""


@dataclass(frozen=True, slots=True)
class Header:
    """A header that has been checked. `node_id` is the publisher, empty for a blob."""

    kind: Kind
    vault_id: str
    object_id: str
    node_id: str
    members: Mapping[str, Any]


def read(data: bytes, algorithm: str) -> Header:
    """The header that these bytes spell; `algorithm` is what the prelude names. Raises MalformedError."""
    members = _parsed(data)
    if members.get("magic") != MAGIC:
        raise MalformedError(f"header.magic: expected {MAGIC}")
    version = members.get("version")
    # false is not accepted for 0.
    if type(version) is not int or version != VERSION:
        raise MalformedError(f"header.version: expected the integer {VERSION}, got {str(version)[:20]!r}")
    try:
        kind = Kind(members.get("object_type"))
    except ValueError as error:
        raise MalformedError(f"header.object_type: {error}") from error
    expected = {*_COMMON, *_OWN[kind]}
    if members.keys() != expected:
        differ = ", ".join(sorted(members.keys() ^ expected))
        raise MalformedError(f"header of a {kind.value}: missing or unknown members: {differ[:200]}")
    if members["crypto"] != {"alg": algorithm}:
        raise MalformedError(f'header.crypto: expected {{"alg": "{algorithm}"}}, as the prelude says')
    for name in (*_OWN[kind], "vault_id"):
        if not _CHECKS.get(name, _is_uuid)(members[name]):
            raise MalformedError(f"header.{name}: expected another value, got {str(members[name])[:80]!r}")
    return Header(kind, members["vault_id"], members[_ID[kind]], members.get("node_id", ""), members)


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        members = loads(data)
    except StrictJsonError as error:
        raise MalformedError(f"expected I-JSON as header: {error}") from error
    if not isinstance(members, dict):
        raise MalformedError(f"expected an object as header, got {type(members).__name__}")
    return members


def _is_uuid(value: Any) -> bool:
    return isinstance(value, str) and UUID.fullmatch(value) is not None


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and HASH.fullmatch(value) is not None


def _is_length(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_compression(value: Any) -> bool:
    return value in COMPRESSIONS


def _is_instant(value: Any) -> bool:
    try:
        instants.read(value)
    except instants.InstantError:
        return False
    return True


_CHECKS: Mapping[str, Callable[[Any], bool]] = {
    "blob_hash": _is_hash,
    "byte_len_plain": _is_length,
    "compression": _is_compression,
    "created_at": _is_instant,
}


def write(kind: Kind, vault_id: str, algorithm: str, own: Mapping[str, Any]) -> bytes:
    """The RFC 8785 form of a header with these members of its type."""
    return canonical(
        {
            "magic": MAGIC,
            "version": VERSION,
            "object_type": kind.value,
            "vault_id": vault_id,
            "crypto": {"alg": algorithm},
            **own,
        }
    )
