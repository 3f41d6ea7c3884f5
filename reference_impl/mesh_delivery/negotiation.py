"""The start of a daemon against what a broker advertises (sections 4.9, 15.1 and 15.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeGuard

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Refused
from holdfast.reference_impl.mesh_delivery.fingerprint import decoded
from holdfast.reference_impl.mesh_delivery.terms import Mode, Reason
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import loads

DEDUPE = "client_message_id_dedupe"
# The argument that holds the bytes that the broker sent.
HANDSHAKE = "handshake"
# Versions that compare no fingerprint, so that the feature is not there (section 15.1).
_WITHOUT_FINGERPRINT = (0, 1)
_DEDUPE_VERSION, _OTHER_VERSION = 2, 1
MIN_RETENTION_DAYS = 3
_POLICIES = ("prefer_newest", "prefer_oldest", "allow_concurrent")
_LEAST_BYTES = 1024
# Hours: the least max age, the least safety margin, and in mode permanent the default and the cap.
FLOOR, LEAST_MARGIN, PERMANENT_DEFAULT, PERMANENT_CAP = 72, 24, 168, 720

# What the WebSocket is closed with.
_CODES = {
    Reason.FEATURE_UNAVAILABLE: 4010,
    Reason.FEATURE_PARAM_INVALID: 4011,
    Reason.FEATURE_PARAM_BELOW_FLOOR: 4012,
}
# The gravest first: a feature that is missing says most.
_ORDER = tuple(_CODES)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why the daemon does not start."""

    reason: Enum
    feature: str


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One line of the daemon's log. `payload` is what a broker sent, byte for byte."""

    level: str
    text: str
    payload: str | None = None


class Negotiator:
    """Decides whether the daemon starts. One method for each guard."""

    def __init__(self) -> None:
        self.log: list[LogRecord] = []

    def start(self, args: Mapping[str, Any]) -> Answer:
        """Start against a handshake, or refuse to, and log why."""
        supported = self.read(args[HANDSHAKE])
        required = [DEDUPE, *(name for name in args.get("required", ()) if name != DEDUPE)]
        faults = [Fault(Reason.FEATURE_PARAM_INVALID, "")] if supported is None else self.faults(supported, required)
        if faults:
            first = self.first(faults)
            self.warn(f"{first.reason.value} {first.feature}", args[HANDSHAKE])
            data = {
                "close_code": _CODES[first.reason],
                **({"feature": first.feature} if first.feature else {}),
            }
            return Refused(first.reason.value, data)
        assert supported is not None
        return self.with_max_age(supported[DEDUPE], args)

    def read(self, handshake: str) -> Mapping[str, Any] | None:
        """The features by name; None for what is no handshake."""
        try:
            payload = loads(decoded(handshake))
        except StrictJsonError:
            return None
        supported = payload.get("supported") if isinstance(payload, dict) else None
        return supported if isinstance(supported, dict) else None

    # Features

    def faults(self, supported: Mapping[str, Any], required: Sequence[str]) -> list[Fault]:
        """All that is wrong with what is required."""
        found = []
        for name in required:
            if self.is_missing(name, supported):
                found.append(Fault(Reason.FEATURE_UNAVAILABLE, name))
            else:
                found += [Fault(reason, name) for reason in self.problems(name, supported[name])]
        return found

    def is_missing(self, name: str, supported: Mapping[str, Any]) -> bool:
        """Whether a feature is not there, or in a version that does not do what it is for."""
        if name not in supported:
            return True
        params = supported[name]
        return name == DEDUPE and isinstance(params, dict) and self.is_too_old(params.get("version"))

    def is_too_old(self, version: object) -> bool:
        """A version of the deduplication that compares no fingerprint."""
        return self.is_integer(version) and version in _WITHOUT_FINGERPRINT

    def problems(self, name: str, params: Any) -> list[Enum]:
        """What is wrong with the parameters of a feature."""
        checks: Mapping[str, Callable[[Mapping[str, Any]], list[Enum]]] = {
            DEDUPE: self.of_dedupe,
            "concurrent_connection_policy": self.of_policy,
            "member_keypair_rotated_event": lambda _: [],
            "key_epoch": self.of_epochs,
            "max_payload": self.of_payload,
        }
        if not isinstance(params, dict) or name not in checks:
            return [Reason.FEATURE_PARAM_INVALID]
        known = self.known_version(name, params.get("version"))
        return [*([] if known else [Reason.FEATURE_PARAM_INVALID]), *checks[name](params)]

    def known_version(self, name: str, version: object) -> bool:
        """Whether it is the one version that this daemon knows."""
        return self.is_integer(version) and version == (_DEDUPE_VERSION if name == DEDUPE else _OTHER_VERSION)

    def of_dedupe(self, params: Mapping[str, Any]) -> list[Enum]:
        """Mode, retention, fingerprints and the optional window."""
        found = []
        mode = params.get("mode")
        if mode not in [each.value for each in Mode]:
            found.append(Reason.FEATURE_PARAM_INVALID)
        if mode == Mode.RETENTION_SCOPED.value:
            found += self.of_retention(params.get("dedupe_retention_days"))
        if params.get("request_fingerprint") is not True:
            found.append(Reason.FEATURE_PARAM_INVALID)
        window = "tombstone_history_pruned_window_days"
        if window in params and not self.is_integer(params[window]):
            found.append(Reason.FEATURE_PARAM_INVALID)
        return found

    def of_retention(self, days: object) -> list[Enum]:
        """An integer, and not below the floor."""
        if not self.is_integer(days):
            return [Reason.FEATURE_PARAM_INVALID]
        assert isinstance(days, int)
        return [] if days >= MIN_RETENTION_DAYS else [Reason.FEATURE_PARAM_BELOW_FLOOR]

    def of_policy(self, params: Mapping[str, Any]) -> list[Enum]:
        """No parameter is required; the optional one is of a closed list."""
        policy = params.get("default_policy", _POLICIES[0])
        return [] if policy in _POLICIES else [Reason.FEATURE_PARAM_INVALID]

    def of_epochs(self, params: Mapping[str, Any]) -> list[Enum]:
        """At least one."""
        return self.at_least(params.get("max_concurrent_epochs"), 1)

    def of_payload(self, params: Mapping[str, Any]) -> list[Enum]:
        """Both sizes."""
        return [
            reason
            for name in ("inline_bytes", "blob_bytes")
            for reason in self.at_least(params.get(name), _LEAST_BYTES)
        ]

    def at_least(self, value: object, least: int) -> list[Enum]:
        """An integer within its bounds."""
        fits = self.is_integer(value) and value >= least
        return [] if fits else [Reason.FEATURE_PARAM_INVALID]

    def is_integer(self, value: object) -> TypeGuard[int]:
        """An integer; true and false are none."""
        return isinstance(value, int) and not isinstance(value, bool)

    def first(self, faults: Sequence[Fault]) -> Fault:
        """The gravest of all faults, whatever the order of the features."""
        return min(faults, key=lambda fault: _ORDER.index(fault.reason))

    # The max age

    def with_max_age(self, params: Mapping[str, Any], args: Mapping[str, Any]) -> Answer:
        """Start with a max age, derived or overridden."""
        days = None if params.get("mode") == Mode.PERMANENT.value else params.get("dedupe_retention_days")
        if "override" not in args:
            hours = self.derived(days)
            if days is not None and hours > self.bound(days):
                self.warn(f"the max age of {hours} h leaves no margin to the retention of {days} days")
            return self.started(hours)
        override = args["override"]
        if not self.is_override(override):
            self.warn(f"max_age_hours_override is no number of hours: {override!r}")
            return Refused(Reason.CONFIG_INVALID.value)
        if override > self.bound(days):
            self.warn(f"max_age_hours_override {override} is above the dedupe window")
            return Refused(Reason.OUTBOX_MAX_AGE_ABOVE_DEDUPE_WINDOW.value)
        # The operator's own: a shorter outbox is what it is for.
        return self.started(int(override))

    def is_override(self, value: object) -> bool:
        """A whole number of hours above nought."""
        return self.is_integer(value) and value > 0

    def derived(self, days: int | None) -> int:
        """The max age in hours for a retention; None is for ever."""
        if days is None:
            return PERMANENT_DEFAULT
        return max(FLOOR, days * 24 - self.margin(days))

    def margin(self, days: int) -> int:
        """A tenth of the window in hours, rounded up in integers, and at least a day."""
        return max(LEAST_MARGIN, (24 * days + 9) // 10)

    def bound(self, days: int | None) -> int:
        """The most that an override may be."""
        return PERMANENT_CAP if days is None else days * 24 - 1

    def started(self, hours: int) -> Answer:
        """The daemon starts."""
        return Accepted(Effect.NEW, {"max_age_hours": hours})

    def warn(self, text: str, payload: str | None = None) -> None:
        """Log at WARN."""
        self.log.append(LogRecord("WARN", text, payload))

    def shown(self) -> list[dict[str, str | None]]:
        """The log so far."""
        return [{"level": each.level, "text": each.text, "payload": each.payload} for each in self.log]
