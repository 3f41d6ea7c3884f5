"""Bugs of the start of a daemon: what it takes from a broker, and how long its outbox may try."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from holdfast.reference_impl.mesh_delivery.negotiation import (
    FLOOR,
    LEAST_MARGIN,
    PERMANENT_CAP,
    Fault,
    Negotiator,
)
from holdfast.reference_impl.mesh_delivery.terms import Reason
from holdfast.reference_impl.planting import Change, part


class AnyRetention(Negotiator):
    def of_retention(self, days: object) -> list[Reason]:
        return [] if self.is_integer(days) else [Reason.FEATURE_PARAM_INVALID]


class ClosedAsEver(Negotiator):
    def closing(self, code: int) -> int:
        del code
        return 1000


class OneCode(Negotiator):
    def close_code(self, reason: Reason) -> int:
        return 4010


class CodeOfParams(Negotiator):
    def close_code(self, reason: Reason) -> int:
        return 4011 if reason is Reason.FEATURE_PARAM_BELOW_FLOOR else super().close_code(reason)


class BelowIsInvalid(Negotiator):
    def of_retention(self, days: object) -> list[Reason]:
        return [Reason.FEATURE_PARAM_INVALID for _ in super().of_retention(days)]


class NoCap(Negotiator):
    def bound(self, days: int | None) -> int:
        return 10**9 if days is None else super().bound(days)


class Capped(Negotiator):
    def overridden(self, hours: int) -> int:
        return min(hours, PERMANENT_CAP)


class WeekIsMonth(Negotiator):
    def derived(self, days: int | None) -> int:
        return PERMANENT_CAP if days is None else super().derived(days)


class InFloats(Negotiator):
    def margin(self, days: int) -> int:
        return max(LEAST_MARGIN, math.ceil(24 * 0.1 * days))


class Rounded(Negotiator):
    def margin(self, days: int) -> int:
        return max(LEAST_MARGIN, round(days * 2.4))


class RoundedDown(Negotiator):
    def margin(self, days: int) -> int:
        return max(LEAST_MARGIN, 24 * days // 10)


class OneDay(Negotiator):
    def margin(self, days: int) -> int:
        return LEAST_MARGIN


class NoFloor(Negotiator):
    def derived(self, days: int | None) -> int:
        return super().derived(days) if days is None else days * 24 - self.margin(days)


class OneMore(Negotiator):
    def bound(self, days: int | None) -> int:
        return super().bound(days) if days is None else days * 24


class Silent(Negotiator):
    def warn(self, text: str, payload: str | None = None) -> None:
        if payload is not None:
            super().warn(text, payload)


class Lenient(Negotiator):
    def is_override(self, value: object) -> bool:
        return isinstance(value, int) and value > 0


class AnyOverride(Negotiator):
    def is_override(self, value: object) -> bool:
        return self.is_integer(value)


class Floored(Negotiator):
    def overridden(self, hours: int) -> int:
        return max(FLOOR, hours)


class AnyVersion(Negotiator):
    def is_too_old(self, version: object) -> bool:
        return False


class Later(Negotiator):
    def known_version(self, name: str, version: object) -> bool:
        return self.is_integer(version) and version >= 1


class AnyMode(Negotiator):
    def is_mode(self, mode: object) -> bool:
        return mode is None or super().is_mode(mode)


class AnyCase(Negotiator):
    def is_mode(self, mode: object) -> bool:
        return isinstance(mode, str) and super().is_mode(mode.strip().lower())


class DefaultDays(Negotiator):
    def of_retention(self, days: object) -> list[Reason]:
        return [] if days is None else super().of_retention(days)


class Numbers(Negotiator):
    def is_integer(self, value: object) -> TypeGuard[int]:
        return isinstance(value, int)


class Truthy(Negotiator):
    def is_true(self, value: object) -> bool:
        return bool(value)


class WindowNeeded(Negotiator):
    def of_dedupe(self, params: Mapping[str, Any]) -> list[Reason]:
        window = params.get("tombstone_history_pruned_window_days")
        return [*super().of_dedupe(params), *([Reason.FEATURE_PARAM_INVALID] if window is None else [])]


class AnyPolicy(Negotiator):
    def of_policy(self, params: Mapping[str, Any]) -> list[Reason]:
        return []


class PolicyNeeded(Negotiator):
    def of_policy(self, params: Mapping[str, Any]) -> list[Reason]:
        return super().of_policy({"default_policy": None, **params})


class NothingMore(Negotiator):
    def problems(self, name: str, params: Any) -> list[Reason]:
        more = name == "member_keypair_rotated_event" and isinstance(params, dict) and len(params) > 1
        return [Reason.FEATURE_PARAM_INVALID] if more else super().problems(name, params)


class NoEpoch(Negotiator):
    def of_epochs(self, params: Mapping[str, Any]) -> list[Reason]:
        return self.at_least(params.get("max_concurrent_epochs"), 0)


class SmallPayload(Negotiator):
    def of_payload(self, params: Mapping[str, Any]) -> list[Reason]:
        return self.at_least(params.get("inline_bytes"), 1)


class Unlogged(Negotiator):
    def warn(self, text: str, payload: str | None = None) -> None:
        super().warn(text)


class Reread(Negotiator):
    def read(self, handshake: str) -> Mapping[str, Any] | None:
        found = super().read(handshake)
        return {} if found is None else found


class FirstComes(Negotiator):
    def first(self, faults: Sequence[Fault]) -> Fault:
        return faults[0]


BUGS: Mapping[str, Change] = {
    "any-retention-taken": part(negotiator=AnyRetention),
    "one-close-code": part(negotiator=OneCode),
    "floor-has-the-code-of-parameters": part(negotiator=CodeOfParams),
    "below-the-floor-is-invalid": part(negotiator=BelowIsInvalid),
    "permanent-without-cap": part(negotiator=NoCap),
    "override-cut-to-the-cap": part(negotiator=Capped),
    "permanent-is-a-month": part(negotiator=WeekIsMonth),
    "margin-in-floats": part(negotiator=InFloats),
    "margin-rounded": part(negotiator=Rounded),
    "margin-rounded-down": part(negotiator=RoundedDown),
    "margin-of-one-day": part(negotiator=OneDay),
    "max-age-without-floor": part(negotiator=NoFloor),
    "override-of-the-whole-window": part(negotiator=OneMore),
    "no-margin-unsaid": part(negotiator=Silent),
    "truth-is-one-hour": part(negotiator=Lenient),
    "any-number-of-hours": part(negotiator=AnyOverride),
    "override-with-floor": part(negotiator=Floored),
    "older-version-is-invalid": part(negotiator=AnyVersion),
    "any-later-version": part(negotiator=Later),
    "mode-assumed": part(negotiator=AnyMode),
    "mode-in-any-case": part(negotiator=AnyCase),
    "days-assumed": part(negotiator=DefaultDays),
    "truth-is-a-number": part(negotiator=Numbers),
    "fingerprint-if-truthy": part(negotiator=Truthy),
    "window-needed": part(negotiator=WindowNeeded),
    "any-policy-taken": part(negotiator=AnyPolicy),
    "policy-needed": part(negotiator=PolicyNeeded),
    "more-parameters-refused": part(negotiator=NothingMore),
    "no-epoch-needed": part(negotiator=NoEpoch),
    "small-payload-taken": part(negotiator=SmallPayload),
    "handshake-not-logged": part(negotiator=Unlogged),
    "no-handshake-is-an-empty-one": part(negotiator=Reread),
    "first-fault-answered": part(negotiator=FirstComes),
    "socket-closed-as-ever": part(negotiator=ClosedAsEver),
}
