"""Bugs in the fold, in decisions, and in what credentials count for."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.reference_impl.m5_log import cbor
from holdfast.reference_impl.m5_log.authority import StoredAuthority
from holdfast.reference_impl.m5_log.cbor import Map
from holdfast.reference_impl.m5_log.credentials import Compact, TrustFiles, Verifier, key_of
from holdfast.reference_impl.m5_log.operations import Operation
from holdfast.reference_impl.m5_log.state import Fold, State, Verified
from holdfast.reference_impl.planting import part

_LONG_S = 10**10
_LARGE_BYTES = 16_384


class WallClock(Fold):
    def in_time(self, said: Verified, at: Operation) -> bool:
        return said.nbf <= time.time() < said.exp + _LONG_S


class RevokedForEver(Fold):
    def grant(self, state: State, operation: Operation) -> None:
        super().grant(state, operation)
        *before, last = state.grants
        target = (last.subject, last.role, last.tag)
        if any(each.until is not None and (each.subject, each.role, each.tag) == target for each in before):
            state.grants[-1] = replace(last, until=last.begins)


class CacheBelieved(StoredAuthority):
    def verified(self, raw: bytes, row: bytes | None) -> Verified:
        if row is None:
            return super().verified(raw, row)
        value = cbor.decode(row, max_depth=4)
        members = value.members() if isinstance(value, Map) else {}
        said = self._verifier.claims(self._verifier.compact(raw))
        exp = members.get("exp")
        return replace(said, exp=exp if isinstance(exp, int) else said.exp)


class StatusIgnored(TrustFiles):
    def revoked(self) -> frozenset[bytes] | None:
        return frozenset()


class WrongEntriesLeftOut(TrustFiles):
    def entry(self, text: Any) -> bytes:
        try:
            return super().entry(text)
        except ValueError:
            return b""


class PaddedKeys(TrustFiles):
    def issuers(self) -> Mapping[str, bytes]:
        try:
            found = self.member("issuers", self._trust.read_bytes())
            return {name: key_of(text.rstrip("=")) for name, text in found.items()}
        except (OSError, ValueError, AttributeError):
            return {}


class LargeRefused(Verifier):
    def compact(self, raw: bytes) -> Compact:
        return super().compact(raw if len(raw) <= _LARGE_BYTES else b"")


BUGS = {
    "validity-by-the-wall-clock": part(fold=WallClock),
    "revoked-for-ever": part(fold=RevokedForEver),
    "cached-end-believed": part(authority=CacheBelieved),
    "status-file-ignored": part(trust=StatusIgnored),
    "wrong-entries-of-status-left-out": part(trust=WrongEntriesLeftOut),
    "padded-keys-trusted": part(trust=PaddedKeys),
    "large-credentials-refused": part(verifier=LargeRefused),
}
