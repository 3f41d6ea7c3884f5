"""Small services of several shapes, in this process, with a clock of their own: sound ones that a profile permits.

A subclass changes one thing. The wires answer as those of `holdfast.servers.wires` do.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

_ROUTE = {"path": "/orders", "method": "POST", "key": "required"}


def encoded(body: bytes) -> str:
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Record:
    """What a guard keeps of a key."""

    payload: str
    answer: dict[str, Any] | None = None


@dataclass
class Held:
    """A request whose handler is held behind its effect."""

    record: Record
    answer: dict[str, Any]


@dataclass
class Shape:
    """A guard that claims a key before the effect, and keeps the answer."""

    profile: dict[str, Any] = field(default_factory=lambda: {"key_syntax": "opaque", "lifetime_s": 86_400})
    wires: tuple[str, ...] = ("sink", "proxy", "process", "clock")
    faults: tuple[str, ...] = ()
    now: float = 0.0
    fault: str = "none"
    records: dict[str, Record] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    # Effects that come later: when, and of which tag.
    late: list[tuple[float, str]] = field(default_factory=list)
    endings: dict[str, dict[str, Any]] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)
    to_hold: set[str] = field(default_factory=set)

    def __call__(self, method: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a call of the protocol."""
        if method == "submit":
            told = self.asked(args)
            told = {name: value for name, value in told.items() if name != "held"}
            response = {name: value for name, value in told.items() if name not in ("outcome", "effect", "reason")}
            if told["outcome"] == "accepted":
                return {"outcome": "accepted", "effect": told["effect"], "value": response}
            return {"outcome": "refused", "reason": told["reason"], "data": response}
        value = getattr(self, f"do_{method}")(**args)
        return {"outcome": "ok"} if value is None else {"outcome": "ok", "value": value}

    # The wires

    def do_profile(self) -> dict[str, Any]:
        return {
            "profile": self.profile,
            "routes": {"create": _ROUTE},
            "principals": [],
            "wires": list(self.wires),
            "faults": list(self.faults),
        }

    def do_pause(self, ms: int) -> None:
        self.now += ms / 1000

    def do_pass_time(self, ms: int) -> None:
        """The clock of a session is that of the instances: nothing comes earlier for it."""

    def taken(self) -> Counter[str]:
        """The effects so far."""
        found = self.done.copy()
        found.update(tag for when, tag in self.late if when <= self.now)
        return found

    def do_seen(self, tag: str) -> dict[str, int]:
        count = self.taken()[tag]
        return {"effects": count, "attempts": count, "held": 0}

    def do_effects(self) -> dict[str, Any]:
        return {"tags": dict(self.taken())}

    def do_burst(self, requests: list[dict[str, Any]]) -> dict[str, Any]:
        return {"answers": [self.asked(each) for each in requests]}

    def do_line(self, fault: str, delay_ms: int = 0) -> None:
        self.fault = fault

    def do_serve_store(self, do: str) -> None:
        self.fault = "none" if do.endswith("-end") else do

    def do_instance(self, number: int, do: str) -> dict[str, bool]:
        return {"runs": True}

    def do_ending(self, tag: str, ending: dict[str, Any]) -> None:
        self.endings[tag] = ending

    def do_hold(self, tag: str, count: int, when: str) -> None:
        assert (count, when) == (1, "after")
        self.to_hold.add(tag)

    def do_begin(self, name: str, request: dict[str, Any]) -> dict[str, str]:
        told = self.asked(request)
        self.held[name] = told.pop("held")
        return {"at": "sink"}

    def do_release(self, tag: str) -> None:
        self.to_hold.discard(tag)

    def do_finish(self, name: str) -> dict[str, Any]:
        held = self.held.pop(name)
        return self.saved(held.record, held.answer)

    # The service

    def asked(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What comes of a request."""
        body, tag = decoded(request["body"]), request["tag"]
        keys = [key.strip() for key in request["keys"]]
        if len(keys) != 1 or not keys[0]:
            return refused("MALFORMED", 400)
        if self.fault != "none":
            return self.without_store(self.column(keys[0]), body, tag)
        known = self.records.get(self.column(keys[0]))
        payload = hashlib.sha256(body).hexdigest()
        if known is not None:
            return refused("MISMATCH", 422) if known.payload != payload else self.again(known)
        record = self.records[self.column(keys[0])] = Record(payload)
        return self.executed(tag, self.column(keys[0]), record)

    def column(self, key: str) -> str:
        """The key as it is stored."""
        return key

    def without_store(self, key: str, body: bytes, tag: str) -> dict[str, Any]:
        return refused("UNAVAILABLE", 503)

    def again(self, known: Record) -> dict[str, Any]:
        """What a retry gets."""
        return refused("UNKNOWN", 500) if known.answer is None else {**known.answer, "effect": "prior"}

    def executed(self, tag: str, key: str, record: Record) -> dict[str, Any]:
        """The handler, and what is kept of it."""
        self.done[tag] += 1
        answer = accepted(201, b'{"effect":%d}' % self.done.total(), self.endings.get(tag, {}).get("headers", {}))
        if tag in self.to_hold:
            return {**answer, "held": Held(record, answer)}
        return self.saved(record, answer)

    def saved(self, record: Record, answer: dict[str, Any]) -> dict[str, Any]:
        """The answer, once it is kept."""
        if self.fault != "none":
            return refused("UNKNOWN", 500)
        record.answer = {**answer, "headers": [pair for pair in answer["headers"] if pair[0] != "set-cookie"]}
        return answer


class ClaimsAlone(Shape):
    """Keeps no answer: a claim is made before the effect, and a duplicate is refused."""

    def __init__(self, **profile: Any) -> None:
        super().__init__()
        self.profile |= {"duplicate": "reject", "codes": {"duplicate": 409}, **profile}

    def again(self, known: Record) -> dict[str, Any]:
        del known
        return refused("DUPLICATE", 409)

    def saved(self, record: Record, answer: dict[str, Any]) -> dict[str, Any]:
        del record
        return answer


class Broker(Shape):
    """Answers that the message was taken. A consumer makes its effect later, by so many seconds."""

    def __init__(self, later_s: float = 1.0, **profile: Any) -> None:
        super().__init__()
        self.later_s = later_s
        self.profile |= {"handler": "behind", **profile}

    def executed(self, tag: str, key: str, record: Record) -> dict[str, Any]:
        del key
        self.late.append((self.now + self.later_s, tag))
        record.answer = accepted(202, b"taken", {})
        return record.answer

    def without_store(self, key: str, body: bytes, tag: str) -> dict[str, Any]:
        """The message comes to the queue, once, and its answer is lost."""
        if key not in self.records:
            self.executed(tag, key, self.records.setdefault(key, Record(hashlib.sha256(body).hexdigest())))
        return refused("UNAVAILABLE", 503)


def _response(status: int, body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
    named = [[name.lower(), value] for name, value in headers.items()]
    return {
        "status": status,
        "headers": named,
        "body": encoded(body),
        "size": len(body),
        "marked": False,
        "lost": "",
    }


def accepted(status: int, body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
    return {"outcome": "accepted", "effect": "new", **_response(status, body, headers)}


def refused(reason: str, status: int, lost: str = "") -> dict[str, Any]:
    problem = {"Content-Type": "application/problem+json"}
    return {"outcome": "refused", "reason": reason, **_response(status, reason.encode(), problem), "lost": lost}


Make = Callable[[], Shape]
