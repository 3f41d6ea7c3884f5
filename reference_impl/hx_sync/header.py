"""The clear header of an object (source sections 3.1 to 3.4): what it must hold, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.reference_impl.hx_sync import canonical
from holdfast.reference_impl.hx_sync.instants import InstantError, Instants
from holdfast.reference_impl.hx_sync.layout import HASH, UUID
from holdfast.reference_impl.hx_sync.terms import COMPRESSIONS, Kind
from holdfast.specs.errors import StrictJsonError

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


class Headers:
    """Checks headers and writes them."""

    def __init__(self, instants: Instants) -> None:
        self._instants = instants

    def read(self, data: bytes, algorithm: str) -> Header:
        """The header that these bytes spell; `algorithm` is what the prelude names. Raises MalformedError."""
        members = self.parse(data)
        kind = self.kind(members)
        self.check_members(members, kind)
        self.check_crypto(members["crypto"], algorithm)
        for name in (*_OWN[kind], "vault_id"):
            if not self._fits(name, members[name]):
                raise MalformedError(f"header.{name}: expected another value, got {str(members[name])[:80]!r}")
        return Header(kind, members["vault_id"], members[_ID[kind]], members.get("node_id", ""), members)

    def parse(self, data: bytes) -> dict[str, Any]:
        """The JSON object in the header. Raises MalformedError."""
        try:
            members = canonical.read(data)
        except StrictJsonError as error:
            raise MalformedError(f"expected I-JSON as header: {error}") from error
        if not isinstance(members, dict):
            raise MalformedError(f"expected an object as header, got {type(members).__name__}")
        return members

    def kind(self, members: Mapping[str, Any]) -> Kind:
        """The type of object. Raises MalformedError."""
        self.check_magic(members)
        self.check_version(members)
        try:
            return Kind(members.get("object_type"))
        except ValueError as error:
            raise MalformedError(f"header.object_type: {error}") from error

    def check_magic(self, members: Mapping[str, Any]) -> None:
        """Raises MalformedError."""
        if members.get("magic") != MAGIC:
            raise MalformedError(f"header.magic: expected {MAGIC}")

    def check_version(self, members: Mapping[str, Any]) -> None:
        """The version is the number 0; false is not accepted for it. Raises MalformedError."""
        version = members.get("version")
        if type(version) is not int or version != VERSION:
            raise MalformedError(f"header.version: expected the integer {VERSION}, got {str(version)[:20]!r}")

    def check_members(self, members: Mapping[str, Any], kind: Kind) -> None:
        """Exactly the members of this type. Raises MalformedError."""
        expected = {*_COMMON, *_OWN[kind]}
        if members.keys() != expected:
            differ = ", ".join(sorted(members.keys() ^ expected))
            raise MalformedError(f"header of a {kind.value}: missing or unknown members: {differ[:200]}")

    def check_crypto(self, crypto: Any, algorithm: str) -> None:
        """Names the algorithm of the prelude and nothing more. Raises MalformedError."""
        if crypto != {"alg": algorithm}:
            raise MalformedError(f'header.crypto: expected {{"alg": "{algorithm}"}}, as the prelude says')

    def check_created_at(self, value: Any) -> None:
        """Check that it is an instant; its value is not used. Raises InstantError."""
        self._instants.read(value)

    def _fits(self, name: str, value: Any) -> bool:
        checks: Mapping[str, Callable[[Any], bool]] = {
            "blob_hash": lambda text: isinstance(text, str) and HASH.fullmatch(text) is not None,
            "byte_len_plain": self.is_length,
            "compression": self.is_compression,
            "created_at": self._is_instant,
        }
        check = checks.get(name, lambda text: isinstance(text, str) and UUID.fullmatch(text) is not None)
        return check(value)

    def _is_instant(self, value: Any) -> bool:
        try:
            self.check_created_at(value)
        except InstantError:
            return False
        return True

    def is_length(self, value: Any) -> bool:
        """How many bytes there are."""
        return type(value) is int and value >= 0

    def is_compression(self, value: Any) -> bool:
        """How the bytes of a blob are packed."""
        return value in COMPRESSIONS

    def write(self, kind: Kind, vault_id: str, algorithm: str, own: Mapping[str, Any]) -> bytes:
        """The RFC 8785 form of a header with these members of its type."""
        return canonical.write(
            {
                "magic": MAGIC,
                "version": VERSION,
                "object_type": kind.value,
                "vault_id": vault_id,
                "crypto": {"alg": algorithm},
                **own,
            }
        )
