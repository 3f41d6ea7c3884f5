"""Bugs in what is asked of a header, and in what it is compared with (HX-SEG-1 to -8)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from holdfast.reference_impl.answers import Answer
from holdfast.reference_impl.hx_sync import canonical
from holdfast.reference_impl.hx_sync.envelope import MAGIC, VERSION, Envelope
from holdfast.reference_impl.hx_sync.header import Header, Headers
from holdfast.reference_impl.hx_sync.instants import InstantError, Instants
from holdfast.reference_impl.hx_sync.layout import Place
from holdfast.reference_impl.hx_sync.objects import Objects
from holdfast.reference_impl.hx_sync.records import Contents
from holdfast.reference_impl.hx_sync.service import Service
from holdfast.reference_impl.hx_sync.terms import Kind, Reason, RefusedError
from holdfast.reference_impl.planting import Change, part

_SEGMENT, _SOME_TIME = "segment", "1970-01-01T00:00:00Z"

# Magic and version


class PreludeMagicUnchecked(Envelope):
    def check_prelude(self, magic: bytes, version: int) -> None:
        super().check_prelude(MAGIC, version)


class HeaderMagicUnchecked(Headers):
    def check_magic(self, members: Mapping[str, Any]) -> None:
        pass


class PreludeVersionUnchecked(Envelope):
    def check_prelude(self, magic: bytes, version: int) -> None:
        super().check_prelude(magic, VERSION)


class HeaderVersionUnchecked(Headers):
    def check_version(self, members: Mapping[str, Any]) -> None:
        pass


class VersionAsText(Headers):
    def check_version(self, members: Mapping[str, Any]) -> None:
        if members.get("version") != str(VERSION):
            super().check_version(members)


# Against the key


class TypeByExtension(Objects):
    def check_kind(self, place: Place, header: Header) -> None:
        pass


class VaultUnchecked(Objects):
    def check_vault(self, place: Place, header: Header) -> None:
        pass


class HeaderNodeUnchecked(Objects):
    def check_owner(self, place: Place, header: Header) -> None:
        if place.kind is not Kind.SEGMENT:
            super().check_owner(place, header)


class HeaderSegmentUnchecked(Objects):
    def check_id(self, place: Place, header: Header) -> None:
        if place.kind is not Kind.SEGMENT:
            super().check_id(place, header)


# The publisher's clock


class NewestCreatedWins(Contents):
    """The lowest digest is shown: that of the event whose segment was created last."""

    def digest(self, record: Mapping[str, Any], header: Header | None) -> str:
        digest = super().digest(record, header)
        if header is None or "kind" not in record:
            return digest
        created = Instants().read(header.members["created_at"])
        return f"{(1 << 63) - created:016x}{digest[:48]}"


class CreatedAtUnchecked(Headers):
    def parse(self, data: bytes) -> dict[str, Any]:
        members = super().parse(data)
        if members.get("object_type") != _SEGMENT:
            return members
        try:
            Instants().read(members.get("created_at"))
        except InstantError:
            members["created_at"] = _SOME_TIME
        return members


class CreatedAtHeldToClock(Service):
    def import_object(self, args: Any) -> Answer:
        master, _ = self._begun(args)
        found = self._parts.objects.fetch(args["key"], master)
        created = found.header.members.get("created_at", _SOME_TIME)
        if Instants().read(created) > Instants().of(self._now + timedelta(days=1)):
            raise RefusedError(Reason.OBJECT_MALFORMED, "created in the future", key=args["key"])
        return super().import_object(args)


# The algorithm


class CryptoDefaulted(Headers):
    def read(self, data: bytes, algorithm: str) -> Header:
        members = self.parse(data)
        if "crypto" not in members and members.get("object_type") == _SEGMENT:
            data = canonical.write({**members, "crypto": {"alg": algorithm}})
        return super().read(data, algorithm)


class CryptoDisagreementUnseen(Headers):
    def check_crypto(self, crypto: Any, algorithm: str) -> None:
        if crypto not in ({"alg": "xchacha20-poly1305"}, {"alg": "aes-256-gcm"}):
            super().check_crypto(crypto, algorithm)


BUGS: Mapping[str, Change] = {
    "newest-created-wins": part(contents=NewestCreatedWins),
}
