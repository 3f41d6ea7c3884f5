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

from holdfast.conformance.cases.record import Judgement, NonConformance
from holdfast.conformance.verdict import Verdict

_ROUTES = {
    "create": {"path": "/orders", "method": "POST", "key": "required"},
    "other": {"path": "/refunds", "method": "POST", "key": "required"},
    "look": {"path": "/orders", "method": "GET", "key": "ignored"},
}
# Which wire a provocation needs.
_NEEDED = {"instance": "process", "line": "proxy", "pass_time": "clock"}
_PROFILE = {
    "key_syntax": "opaque",
    "max_key_length": 255,
    "fingerprint": ["body", "query", "content_type"],
    "lifetime_s": 86_400,
    "lease_s": 60,
}


def encoded(body: bytes) -> str:
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Record:
    """What a guard keeps of a key."""

    payload: str
    made: float = 0.0
    answer: dict[str, Any] | None = None
    is_running: bool = False


@dataclass
class Held:
    """A request that was begun: its handler is held before or behind its effect, or it waits for another one."""

    request: Mapping[str, Any]
    told: dict[str, Any] | None = None
    record: Record | None = None
    when: str = ""


@dataclass
class Shape:
    """A guard that claims a key before the effect, and keeps the answer."""

    profile: dict[str, Any] = field(default_factory=lambda: dict(_PROFILE))
    wires: tuple[str, ...] = ("sink", "proxy", "process", "clock")
    faults: tuple[str, ...] = ()
    # Real time, and that of the instances.
    now: float = 0.0
    clock: float = 0.0
    fault: str = "none"
    records: dict[str, Record] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    # Effects that come later: when, and of which tag.
    late: list[tuple[float, str]] = field(default_factory=list)
    endings: dict[str, dict[str, Any]] = field(default_factory=dict)
    begun: dict[str, Held] = field(default_factory=dict)
    to_hold: dict[str, str] = field(default_factory=dict)

    def __call__(self, method: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a call of the protocol."""
        if method == "submit":
            told = self.asked(args)
            response = {name: value for name, value in told.items() if name not in ("outcome", "effect", "reason")}
            if told["outcome"] == "accepted":
                return {"outcome": "accepted", "effect": told["effect"], "value": response}
            return {"outcome": "refused", "reason": told["reason"], "data": response}
        is_behind = method in ("hold", "ending") and self.profile.get("handler") == "behind"
        if is_behind or _NEEDED.get(method, "sink") not in self.wires:
            raise NonConformance(Judgement(Verdict.UNSUPPORTED))
        value = getattr(self, f"do_{method}")(**args)
        return {"outcome": "ok"} if value is None else {"outcome": "ok", "value": value}

    # The wires

    def do_profile(self) -> dict[str, Any]:
        return {
            "profile": self.profile,
            "routes": _ROUTES,
            "principals": ["a", "b", "again", "refused"],
            "wires": list(self.wires),
            "faults": list(self.faults),
        }

    def do_pause(self, ms: int) -> None:
        self.now += ms / 1000
        if "clock" not in self.wires:
            self.clock = self.now

    def do_pass_time(self, ms: int) -> None:
        self.clock += ms / 1000

    def taken(self) -> Counter[str]:
        """The effects so far."""
        found = self.done.copy()
        found.update(tag for when, tag in self.late if when <= self.now)
        return found

    def do_seen(self, tag: str) -> dict[str, int]:
        count = self.taken()[tag]
        return {"effects": count, "attempts": count, "held": 0}

    def do_effects(self) -> dict[str, Any]:
        return {"tags": {tag: count for tag, count in self.taken().items() if count}}

    def do_burst(self, requests: list[dict[str, Any]]) -> dict[str, Any]:
        return {"answers": [self.asked(each) for each in requests]}

    def do_line(self, fault: str, delay_ms: int = 0) -> None:
        self.fault = "none" if fault == "slow" else fault

    def do_serve_store(self, do: str) -> None:
        self.fault = do if do in self.faults else "none"

    def do_instance(self, number: int, do: str, under: str = "") -> dict[str, bool]:
        """Its handlers die with it. What they sent to the sink is there."""
        for held in self.begun.values() if do in ("kill", "end") else ():
            if held.request.get("instance", 0) == number:
                held.record, held.told = None, lost("the instance is gone")
        return {"runs": True}

    def do_ending(self, tag: str, ending: dict[str, Any]) -> None:
        self.endings[tag] = ending

    def do_hold(self, tag: str, count: int, when: str) -> None:
        self.to_hold[tag] = when

    def do_begin(self, name: str, request: dict[str, Any]) -> dict[str, str]:
        held = self.begun[name] = Held(request)
        held.told = self.asked(request, held)
        if held.record is not None:
            return {"at": "sink"}
        if held.told["reason" if held.told["outcome"] == "refused" else "effect"] == "HANG":
            held.told = None
            return {"at": "nowhere"}
        return {"at": "answered"}

    def do_release(self, tag: str) -> None:
        self.to_hold.pop(tag, None)
        for held in self.begun.values():
            if held.request["tag"] == tag and held.when:
                self.done[tag] += held.when == "before"
                held.when = ""
                if held.record is not None:
                    held.told = self.ended(tag, self.place(held.request), held.record)

    def do_cut(self, name: str) -> None:
        """The client of a request is gone, which its handler does not learn."""

    def do_finish(self, name: str) -> dict[str, Any]:
        held = self.begun.pop(name)
        return held.told or self.asked(held.request)

    # The service

    def asked(self, request: Mapping[str, Any], held: Held | None = None) -> dict[str, Any]:
        """What comes of a request."""
        body = decoded(request["body"]).replace(b"%FILL%", b"x" * request.get("fill", 0))
        if request.get("half"):
            return lost("the client is gone")
        if request.get("route") == "look":
            return refused("OTHER", 200)
        if request.get("principal") in ("none", "refused"):
            return refused("UNAUTHENTICATED", 401)
        keys = [key.strip() for key in request["keys"]]
        if len(keys) != 1 or not 0 < len(keys[0]) <= self.profile["max_key_length"]:
            return refused("MALFORMED", 400)
        if self.fault != "none":
            return self.without_store(self.place(request), body, request["tag"])
        known = self.records.get(self.place(request))
        asked = (body, request.get("query", ""), request.get("content_type", ""))
        payload = hashlib.sha256(repr(asked).encode()).hexdigest()
        if known is not None and self.clock < known.made + self.profile["lifetime_s"]:
            if known.payload != payload and self.profile["fingerprint"]:
                return refused("MISMATCH", 422)
            known.is_running &= known.made <= self.clock <= known.made + self.profile["lease_s"]
            return self.meanwhile() if known.is_running else self.again(known)
        record = self.records[self.place(request)] = Record(payload, self.clock)
        return self.executed(request["tag"], self.place(request), record, held)

    def place(self, request: Mapping[str, Any]) -> str:
        """Scope and key, as they are stored."""
        principal = request.get("principal", "a").replace("again", "a")
        asked = {"principal": principal, "route": request.get("route", "create")}
        scope = [asked[each] for each in self.profile.get("scope", asked)]
        return " ".join((*scope, self.column(request["keys"][0].strip())))

    def column(self, key: str) -> str:
        """The key as it is stored."""
        return key

    def without_store(self, key: str, body: bytes, tag: str) -> dict[str, Any]:
        return refused("UNAVAILABLE", 503)

    def meanwhile(self) -> dict[str, Any]:
        """What a retry gets while the first is processed."""
        return refused("IN_PROGRESS", 409)

    def again(self, known: Record) -> dict[str, Any]:
        """What a retry gets."""
        return refused("UNKNOWN", 500) if known.answer is None else {**known.answer, "effect": "prior"}

    def executed(self, tag: str, key: str, record: Record, held: Held | None = None) -> dict[str, Any]:
        """The handler, and what is kept of it."""
        when = self.to_hold.get(tag, "") if held else ""
        self.done[tag] += when != "before" and self.endings.get(tag, {}).get("effect", True)
        if held and when:
            held.record, held.when, record.is_running = record, when, True
            return lost("it is held")
        return self.ended(tag, key, record)

    def ended(self, tag: str, key: str, record: Record) -> dict[str, Any]:
        """The answer of the handler, once it is kept."""
        record.is_running = False
        ending = self.endings.get(tag, {})
        if ending.get("throw") or ending.get("cut"):
            return refused("UNKNOWN", 500)
        body = decoded(ending["body"]) if "body" in ending else b'{"effect":%d}' % self.done.total()
        if "size" in ending:
            body = b"x" * ending["size"]
        status = ending.get("status", 201)
        return self.saved(record, accepted(status, b"" if status == 204 else body, ending.get("headers", {})))

    def saved(self, record: Record, answer: dict[str, Any]) -> dict[str, Any]:
        """The answer, once it is kept."""
        if self.fault != "none":
            return refused("UNKNOWN", 500)
        record.answer = {**answer, "headers": [pair for pair in answer["headers"] if pair[0] != "set-cookie"]}
        return answer


class Waits(Shape):
    """A retry waits for the first."""

    def __init__(self, **profile: Any) -> None:
        super().__init__()
        self.profile |= {"in_progress": "wait", **profile}

    def meanwhile(self) -> dict[str, Any]:
        return {**lost("hang"), "reason": "HANG"}


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

    def executed(self, tag: str, key: str, record: Record, held: Held | None = None) -> dict[str, Any]:
        del key, held
        self.late.append((self.now + self.later_s, tag))
        record.answer = accepted(202, b"taken", {})
        return record.answer

    def without_store(self, key: str, body: bytes, tag: str) -> dict[str, Any]:
        """The message comes to the queue, once, and its answer is lost."""
        if key not in self.records:
            asked = hashlib.sha256(repr((body, "", "")).encode()).hexdigest()
            self.executed(tag, key, self.records.setdefault(key, Record(asked, self.clock)))
        return refused("UNAVAILABLE", 503)


def _response(status: int, body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
    named = [[name.lower(), value] for name, value in headers.items()]
    return {
        "status": status,
        "headers": named,
        "body": encoded(body[:65_536]),
        "size": len(body),
        "marked": False,
        "lost": "",
    }


def accepted(status: int, body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
    return {"outcome": "accepted", "effect": "new", **_response(status, body, headers)}


def refused(reason: str, status: int) -> dict[str, Any]:
    return {
        "outcome": "refused",
        "reason": reason,
        **_response(status, reason.encode(), {"Content-Type": "application/problem+json"}),
    }


def lost(why: str) -> dict[str, Any]:
    return {"outcome": "refused", "reason": "NO_ANSWER", **_response(0, b"", {}), "lost": why}


Make = Callable[[], Shape]
