"""Bugs in the fold, in decisions, and in what credentials count for."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.reference_impl.m5_log import cbor
from holdfast.reference_impl.m5_log.authority import StoredAuthority
from holdfast.reference_impl.m5_log.cbor import Map
from holdfast.reference_impl.m5_log.credentials import Compact, Trust, TrustFiles, Verifier, cred_hash_of, key_of
from holdfast.reference_impl.m5_log.log import Log
from holdfast.reference_impl.m5_log.opening import Opened
from holdfast.reference_impl.m5_log.operations import Operation
from holdfast.reference_impl.m5_log.state import Fold, Grant, Snapshots, State, Verified
from holdfast.reference_impl.m5_log.terms import Family
from holdfast.reference_impl.planting import part
from holdfast.specs.strictjson import loads

_LONG_S = 10**10
_LARGE_BYTES = 16_384


class WallClock(Fold):
    def in_time(self, said: Verified, at: Operation) -> bool:
        return said.nbf <= time.time() < said.exp + _LONG_S


class EndIncluded(Fold):
    def in_time(self, said: Verified, at: Operation) -> bool:
        return said.nbf * 1000 <= at.milliseconds <= said.exp * 1000


class MissingAllows(Fold):
    def in_force(self, state: State, grant: Grant, at: Operation, *, index: int | None = None) -> bool:
        if state.judged.get(grant.credential) is None:
            return grant.holds_at(state.applied if index is None else index)
        return super().in_force(state, grant, at, index=index)


class AnyoneRevokes(Fold):
    def revoke(self, state: State, operation: Operation) -> None:
        target = tuple(operation.payload[name] for name in ("subject", "role", "tag"))
        for at, grant in enumerate(state.grants):
            if grant.until is None and (grant.subject, grant.role, grant.tag) == target:
                state.grants[at] = replace(grant, until=state.applied)


class RevokedForEver(Fold):
    def grant(self, state: State, operation: Operation) -> None:
        super().grant(state, operation)
        *before, last = state.grants
        target = (last.subject, last.role, last.tag)
        if any(each.until is not None and (each.subject, each.role, each.tag) == target for each in before):
            state.grants[-1] = replace(last, until=last.begins)


class AnyRole(Fold):
    def allowed(self, state: State, subject: bytes, role: str, tag: str, at: Operation, index: int) -> bool:
        return any(self.in_force(state, grant, at, index=index) for grant in state.of(subject, tag))


class AnyTagOfScope(Fold):
    def allowed(self, state: State, subject: bytes, role: str, tag: str, at: Operation, index: int) -> bool:
        return any(
            grant.role == role and tag in said.scope and self.in_force(state, grant, at, index=index)
            for grant in state.grants
            if grant.subject == subject and (said := state.judged.get(grant.credential)) is not None
        )


class IndexRead(StoredAuthority):
    def judge(self, cred_hash: bytes) -> Verified | None:
        said = super().judge(cred_hash)
        for _ in self._database.rows(Family.POLICY_INDEX):
            return None
        return said


class CacheBelieved(StoredAuthority):
    def verified(self, raw: bytes, row: bytes | None) -> Verified:
        if row is None:
            return super().verified(raw, row)
        value = cbor.decode(row, max_depth=4)
        members = value.members() if isinstance(value, Map) else {}
        said = self._verifier.claims(self._verifier.compact(raw))
        exp = members.get("exp")
        return replace(said, exp=exp if isinstance(exp, int) else said.exp)


class CachedForEver(StoredAuthority):
    def verified(self, raw: bytes, row: bytes | None) -> Verified:
        if row is not None:
            return self._verifier.claims(self._verifier.compact(raw))
        return super().verified(raw, row)


class CacheRequired(StoredAuthority):
    def verified(self, raw: bytes, row: bytes | None) -> Verified:
        return super().verified(raw, b"" if row is None else row)


class PaddingRemoved(Verifier):
    def compact(self, raw: bytes) -> Compact:
        return super().compact(raw.replace(b"=", b"").strip())


class FurtherHeader(Verifier):
    def object(self, name: str, raw: bytes) -> dict[str, Any]:
        return {key: value for key, value in super().object(name, raw).items() if name != "header" or key == "alg"}


class OddStatusMissing(TrustFiles):
    def revoked(self) -> frozenset[bytes] | None:
        return super().revoked() if self._status.is_file() else frozenset()


class StatusIgnored(TrustFiles):
    def revoked(self) -> frozenset[bytes] | None:
        return frozenset()


class FurtherMembers(TrustFiles):
    def member(self, name: str, raw: bytes) -> Any:
        value = loads(raw)
        return super().member(name, raw) if not isinstance(value, dict) else value.get(name)


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


class KeptForASecond(TrustFiles):
    kept: tuple[Any, Trust] | None = None

    def read(self) -> Trust:
        files = [path.stat() for path in (self._trust, self._status) if path.exists()]
        seen = [(each.st_size, int(each.st_mtime)) for each in files]
        if self.kept is None or self.kept[0] != seen:
            self.kept = (seen, super().read())
        return self.kept[1]


class CachedUnderAnyKey(StoredAuthority):
    def verified(self, raw: bytes, row: bytes | None) -> Verified:
        if row is None:
            return super().verified(raw, row)
        said = self._verifier.claims(self._verifier.compact(raw))
        self._verifier.check_standing(said, cred_hash_of(raw), self._trust)
        self._verifier.check_row(said, row)
        return said


class LargeRefused(Verifier):
    def compact(self, raw: bytes) -> Compact:
        return super().compact(raw if len(raw) <= _LARGE_BYTES else b"")


class Unverified(Log):
    def verified(self, raw: bytes, cred_hash: bytes) -> Verified:
        return self._verifier.claims(self._verifier.compact(raw))


class FirstDenied(Log):
    def decide(self, opened: Opened, subject: bytes, role: str, tag: str, op_id: bytes) -> bool:
        first = self._state is None
        return super().decide(opened, subject, role, tag, op_id) and not first


class Stamped(Snapshots):
    def json(self, state: State) -> str:
        return f'{super().json(state)[:-1]},"written":"{time.time_ns()}"}}'


BUGS = {
    "validity-by-the-wall-clock": part(fold=WallClock),
    "end-of-credential-included": part(fold=EndIncluded),
    "missing-credential-allows": part(fold=MissingAllows),
    "anyone-revokes": part(fold=AnyoneRevokes),
    "revoked-for-ever": part(fold=RevokedForEver),
    "any-role-allows": part(fold=AnyRole),
    "any-tag-of-the-scope": part(fold=AnyTagOfScope),
    "policy-index-believed": part(authority=IndexRead),
    "cached-end-believed": part(authority=CacheBelieved),
    "cached-is-never-revoked": part(authority=CachedForEver),
    "cache-is-required": part(authority=CacheRequired),
    "padding-of-credential-removed": part(verifier=PaddingRemoved),
    "further-members-of-header-ignored": part(verifier=FurtherHeader),
    "status-that-is-no-file-is-missing": part(trust=OddStatusMissing),
    "status-file-ignored": part(trust=StatusIgnored),
    "further-members-of-trust-ignored": part(trust=FurtherMembers),
    "wrong-entries-of-status-left-out": part(trust=WrongEntriesLeftOut),
    "padded-keys-trusted": part(trust=PaddedKeys),
    "trust-kept-for-a-second": part(trust=KeptForASecond),
    "cached-under-any-key": part(authority=CachedUnderAnyKey),
    "large-credentials-refused": part(verifier=LargeRefused),
    "credential-unverified": part(log=Unverified),
    "first-decision-denied": part(log=FirstDenied),
    "state-with-its-time": part(snapshots=Stamped),
}
