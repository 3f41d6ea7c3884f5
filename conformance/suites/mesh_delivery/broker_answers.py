"""What the broker that holdfast plays may say to one attempt, and what each answer makes of a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto, unique
from typing import Any

_ID, _CAPITALS = "{client_message_id}", "{CLIENT_MESSAGE_ID}"
# In the place of the message that an answer is about.
_MESSAGE = "{message}"
_FIRST: Mapping[str, Any] = {
    "broker_message_id": _MESSAGE,
    "client_message_id": _ID,
    "history_id": "7",
    "duplicate": False,
}
_KNOWN = {**_FIRST, "duplicate": True, "history_available": True, "first_seen_at": "2026-01-01T00:00:00Z"}
_CONFLICT = {
    "client_message_id": _ID,
    "conflict": "request_fingerprint_mismatch",
    "broker_fingerprint_prefix": "0123456789abcdef",
}


@unique
class Fate(Enum):
    """What an answer makes of a row (docs/contracts/mesh-delivery.md)."""

    DONE = auto()
    DEAD = auto()
    AGAIN = auto()
    # Tried again or dead, as the daemon likes.
    UNDONE = auto()


@dataclass(frozen=True, slots=True)
class Said:
    """One answer as the peer has it, and its fates. `weight` is how often it is drawn."""

    script: Mapping[str, Any]
    fates: tuple[Fate, ...]
    weight: int = 1

    def of(self, message_id: str) -> dict[str, Any]:
        """The answer about a message."""
        body = self.script.get("body")
        if not isinstance(body, Mapping) or body.get("broker_message_id") != _MESSAGE:
            return dict(self.script)
        return {**self.script, "body": {**body, "broker_message_id": message_id}}


def _without(body: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in names}


def _said(fate: Fate, status: int, weight: int = 1, **more: Any) -> Said:
    return Said({"status": status, **more}, (fate,), weight)


_DONE, _DEAD, _AGAIN, _UNDONE = Fate.DONE, Fate.DEAD, Fate.AGAIN, Fate.UNDONE
ANSWERS: Mapping[str, Said] = {
    "first": _said(_DONE, 201, 12, body=_FIRST),
    "first-with-a-long-place": _said(_DONE, 201, 4, body={**_FIRST, "history_id": "7" * 6000}),
    "retry": _said(_DONE, 200, 8, body=_KNOWN),
    "retry-within-a-second": _said(_DONE, 200, 2, body={**_KNOWN, "first_seen_at": "2026-01-01T00:00:00.123456Z"}),
    "gone": _said(_DONE, 200, 5, body={**_KNOWN, "history_available": False, "history_id": None}),
    "conflict": _said(_DEAD, 409, 20, body=_CONFLICT),
    "conflict-of-senders": _said(_DEAD, 409, 2, body={"client_message_id": _ID, "conflict": "sender_mismatch"}),
    "unavailable": _said(_AGAIN, 503, 10, body={"error": "BROKER_UNAVAILABLE"}),
    "unavailable-for-a-year": _said(_AGAIN, 503, 2, headers={"Retry-After": "31536000"}),
    "error": _said(_AGAIN, 500, raw="<html>"),
    "gateway": _said(_AGAIN, 502, body=_FIRST),
    "undecided": _said(_AGAIN, 504),
    "drop": Said({"how": "drop"}, (_AGAIN,), 4),
    "cut": _said(_AGAIN, 201, 4, body=_FIRST, how="cut"),
    "cut-retry": _said(_AGAIN, 200, body=_KNOWN, how="cut"),
    "cut-conflict": _said(_AGAIN, 409, body=_CONFLICT, how="cut"),
    "late": _said(_AGAIN, 201, body=_FIRST, how="late"),
    # Byte by byte, and for longer than anybody waits.
    "drip": _said(_AGAIN, 201, body=_FIRST, how="drip"),
    # A client may throw all away where more comes than was said.
    "twice": Said({"status": 201, "body": _FIRST, "how": "twice"}, (_DONE, _AGAIN), 3),
    "conflict-twice": Said({"status": 409, "body": _CONFLICT, "how": "twice"}, (_DEAD, _AGAIN)),
    # What no version of the protocol means as an answer to this attempt.
    "first-of-another": _said(_UNDONE, 201, 3, body={**_FIRST, "client_message_id": "another"}),
    "first-of-another-in-capitals": _said(_UNDONE, 201, 3, body={**_FIRST, "client_message_id": _CAPITALS}),
    "first-of-another-with-a-blank": _said(_UNDONE, 201, 2, body={**_FIRST, "client_message_id": f"{_ID} "}),
    "retry-of-another-in-capitals": _said(_UNDONE, 200, body={**_KNOWN, "client_message_id": _CAPITALS}),
    "conflict-of-another-in-capitals": _said(_UNDONE, 409, body={**_CONFLICT, "client_message_id": _CAPITALS}),
    "retry-of-another": _said(_UNDONE, 200, 2, body={**_KNOWN, "client_message_id": "another"}),
    "conflict-of-another": _said(_UNDONE, 409, 3, body={**_CONFLICT, "client_message_id": "another"}),
    "another-conflict": _said(_UNDONE, 409, 2, body={"client_message_id": _ID, "conflict": "locked"}),
    "bare-conflict": _said(_UNDONE, 409),
    "retry-as-first": _said(_UNDONE, 201, body=_KNOWN),
    "first-as-retry": _said(_UNDONE, 200, body=_FIRST),
    "another-success": _said(_UNDONE, 202, 2, body=_FIRST),
    "nothing-said": _said(_UNDONE, 204),
    "no-body": _said(_UNDONE, 201),
    "no-json": _said(_UNDONE, 201, raw="created"),
    "listed": _said(_UNDONE, 201, body=[_FIRST]),
    "elsewhere": _said(_UNDONE, 302, 2, body=_FIRST),
    "no-message": _said(_UNDONE, 201, body={**_FIRST, "broker_message_id": None}),
    "empty-message": _said(_UNDONE, 201, 2, body={**_FIRST, "broker_message_id": ""}),
    "number-for-truth": _said(_UNDONE, 201, body={**_FIRST, "duplicate": 0}),
    "text-for-truth": _said(_UNDONE, 200, body={**_KNOWN, "history_available": "true"}),
    "malformed": _said(_UNDONE, 400, 2, body={"error": "REQUEST_MALFORMED"}),
    "stranger": _said(_UNDONE, 401, body={"error": "AUTH_MISSING"}),
    "nowhere": _said(_UNDONE, 404, body={"error": "DESTINATION_NOT_FOUND"}),
    "too-large": _said(_UNDONE, 413, body={"error": "PAYLOAD_TOO_LARGE"}),
    "too-many": _said(_UNDONE, 429),
    # Brokers of an older version: no history, no time of the first send.
    "older-first": _said(_UNDONE, 201, 2, body=_without(_FIRST, "history_id")),
    "older-retry": _said(_UNDONE, 200, 2, body=_without(_KNOWN, "history_available", "first_seen_at")),
}
# What is said where nothing is left (`adapter/fake_broker.py`).
UNSAID = ANSWERS["unavailable"]
# Of these a round has one at most: a daemon waits for a second, and has two for a round.
SLOW = frozenset({"late", "drip"})
