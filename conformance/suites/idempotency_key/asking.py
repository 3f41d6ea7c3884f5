"""What the tests of idempotency-key share: requests by the profile of the service, and what came of them."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

from holdfast.conformance.cases.record import Finding, Judgement
from holdfast.conformance.cases.values import base64url, from_base64url
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.session import SuiteSession
from holdfast.conformance.verdict import Verdict
from holdfast.servers.wires.profile import whole

# The reference has a store at an address on PostgreSQL; another service is asked with the store that it has.
ON_A_SERVER = {"store": "postgres"}
# Commands of service.toml with a meaning: one limits the store, one empties a broker's queue.
SMALL, PURGE = "small", "purge"
NO_FILES = "the store has no files here: {data} stands in no variable of [service.env]"
# How long an effect that is not due is waited for, where effects come behind the answers.
_LATE_MS = 2000
# A key that lives no longer may be over while a test runs, where no clock stands still.
_LIVES_S = 120.0
# What a finding says of a second effect that the profile declares. It does not conform all the same.
DECLARED = "broken by choice, as the profile says"
# A request whose handler is held is answered only behind its release.
_PATIENT_MS = 25_000
# A longer time is not waited for.
_LONGEST_S = 75.0
# One request of the protocol waits no longer.
_PAUSE_MS = 20_000
# Between two looks at something that has to come to an end.
_STEP_MS = 250


@dataclass(frozen=True, slots=True)
class Got:
    """What came of a request. `effect` is `new` if its own handler made it."""

    accepted: bool
    effect: str
    reason: str
    status: int
    body: bytes
    headers: Sequence[tuple[str, str]]
    marked: bool
    size: int

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Got:
        """Out of an answer as `begin` and `burst` have it."""
        return cls(
            told["outcome"] == "accepted",
            told.get("effect", ""),
            told.get("reason", ""),
            told["status"],
            from_base64url(told["body"]),
            [(name, value) for name, value in told["headers"]],
            told["marked"],
            told["size"],
        )

    def header(self, name: str) -> str | None:
        """The headers of that name, as one."""
        return ", ".join(value for known, value in self.headers if known == name.lower()) or None

    def __str__(self) -> str:
        what = f"accepted ({self.effect})" if self.accepted else self.reason
        return f"{what}, status {self.status}, body {self.body[:80]!r}"


class Service:
    """A service under test, and its profile."""

    def __init__(self, bench: Bench, session: SuiteSession) -> None:
        self.bench, self.session = bench, session
        said = whole(session.observe("profile"))
        self.profile: dict[str, Any] = said["profile"]
        self.routes: dict[str, Any] = said["routes"]
        self.principals: list[str] = said["principals"]
        self.wires: list[str] = said["wires"]
        self.faults: list[str] = said["faults"]
        self._count = 0
        # The effects of each tag for which nothing was sent since they were looked at.
        self._looked: dict[str, int] = {}

    # What is asked for

    def tag(self) -> str:
        """A tag that was not used before."""
        self._count += 1
        return f"hf-{self.session.rand(f'tag {self._count}')}"

    def key(self, text: str | None = None) -> str:
        """A key that was not used before, or one of a text, as it stands in the header."""
        self._count += 1
        digits = self.session.hex64(f"key {self._count}")
        if self.profile["key_syntax"] == "uuid":
            return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"
        return self.spelt(digits[:24] if text is None else text)

    def spelt(self, text: str) -> str:
        """A text as the value of the header, by the syntax of the profile."""
        if self.profile["key_syntax"] != "sf":
            return text
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'

    def body(self, tag: str, amount: str = "100") -> bytes:
        """A payload that names a tag."""
        return b'{"tag":"%s","amount":%s}' % (tag.encode(), amount.encode())

    def request(
        self, tag: str, key: str | Sequence[str] | None, body: bytes | None = None, **more: Any
    ) -> dict[str, Any]:
        """A request; `key` may be several lines of the header, or none."""
        lines = [] if key is None else [key] if isinstance(key, str) else list(key)
        sent = self.body(tag) if body is None else body
        self._looked.pop(tag, None)
        return {"tag": tag, "keys": lines, "body": base64url(sent), **more}

    # What is done

    def submit(self, request: Mapping[str, Any]) -> Got:
        """Send a request and wait for its answer."""
        answer = self.session.call("submit", request)
        if answer.outcome == "accepted":
            return Got.of({"outcome": "accepted", "effect": answer.effect, **answer.value})
        return Got.of({"outcome": "refused", "reason": answer.reason, **(answer.data or {})})

    def begin(self, name: str, request: Mapping[str, Any], *, at: str = "sink") -> None:
        """Send a request that has to come so far: to the sink, where its handler is held."""
        came = self.session.provoke("begin", {"name": name, "request": {"within_ms": _PATIENT_MS, **request}})["at"]
        if came != at:
            got = f"; it was answered with {self.finish(name)}" if came == "answered" else ""
            self.not_reached(f"the request {name} came {came}, not to the {at}{got}")

    def send(self, name: str, request: Mapping[str, Any]) -> str:
        """Send a request, and say how far it came."""
        came: str = self.session.provoke("begin", {"name": name, "request": {"within_ms": _PATIENT_MS, **request}})[
            "at"
        ]
        return came

    def finish(self, name: str) -> Got:
        """The answer to a request that was begun."""
        return Got.of(self.session.provoke("finish", {"name": name}))

    def burst(self, requests: Sequence[Mapping[str, Any]]) -> list[Got]:
        """Requests at once, and what came of each."""
        told = self.session.provoke("burst", {"requests": list(requests)})
        return [Got.of(each) for each in told["answers"]]

    def hold(self, tag: str, *, count: int = 1, when: str = "before") -> None:
        """Hold the next handlers of a tag."""
        self.session.provoke("hold", {"tag": tag, "count": count, "when": when})

    def release(self, tag: str) -> None:
        """Let them go on."""
        self.session.provoke("release", {"tag": tag})

    def ending(self, tag: str, **ending: Any) -> None:
        """How the handlers of a tag end."""
        body = ending.pop("body", None)
        told = {**ending, **({} if body is None else {"body": base64url(body)})}
        self.session.provoke("ending", {"tag": tag, "ending": told})

    def line(self, fault: str, delay_ms: int = 0) -> None:
        """Let the line to the store fail, or no more."""
        self.session.provoke("line", {"fault": fault, "delay_ms": delay_ms})

    def instance(self, do: str, number: int = 0, *, under: str | None = None) -> bool:
        """Kill, end, start or look at an instance; whether it runs then. `under` is a command that starts it."""
        told: dict[str, Any] = {"number": number, "do": do}
        if under is not None:
            told["under"] = under
        runs: bool = self.session.provoke("instance", told)["runs"]
        return runs

    def begin_again(self, how: str = "kill", number: int = 0) -> None:
        """An instance dies or ends, and is started again; one that does not start ends the test as not reached."""
        self.instance(how, number)
        if not self.instance("start", number):
            self.not_reached("the instance does not start again")

    def pause(self, milliseconds: int) -> None:
        """Let real time pass."""
        self.session.provoke("pause", {"ms": milliseconds})

    def effects(self, tag: str) -> int:
        """How many effects a tag had."""
        found: int = self.session.observe("seen", {"tag": tag})["effects"]
        self._looked[tag] = found
        return found

    def no_late_effect(self) -> None:
        """Report an effect that came behind the last look at its tag, where nothing was sent since."""
        if self.profile["handler"] == "behind":
            self.pause(_LATE_MS)
        for tag, before in list(self._looked.items()):
            found = self.effects(tag)
            if found > before:
                self.fail("fail_open", f"an effect came late: the sink took {found} effects, and {before} before")

    def must_have_lost(self, got: Got) -> None:
        """End the test as not reached if a key is known without the files: no fault of a file meets it."""
        if (got.accepted and got.effect == "prior") or got.reason == "DUPLICATE":
            self.not_reached("keys are kept elsewhere than in {data}, where no fault of a file meets them")

    def lose_files(self) -> None:
        """Remove every file of {data}, while no instance runs."""
        for found in self.session.tree("data"):
            if found["kind"] == "file":
                self.session.remove(found["path"])

    # What is judged

    def one_effect(self, tag: str, why: str, due: int = 1) -> None:
        """Report an effect too many, or one that was promised and is missing."""
        found = self.effects(tag)
        if found > due:
            self.fail("fail_open", f"{why}: the sink took {found} effects, {due} is due")
        if found < due:
            self.fail("lost_durability", f"{why}: the sink took {found} effects, {due} is due")

    def no_effect(self, tag: str, why: str) -> None:
        """Report an effect where none is due."""
        self.one_effect(tag, why, 0)

    def first(self, tag: str, key: str, **more: Any) -> Got:
        """A first request, which has to be executed and answered by its handler."""
        got = self.submit(self.request(tag, key, **more))
        if not got.accepted:
            self.fail("over_refusal", f"a first request got {got}")
        if got.effect != "new":
            self.fail("fail_open", "a first request got the answer of another")
        return got

    def retried(self, first: Got, got: Got, why: str) -> None:
        """Hold the answer to a retry against what the profile declares."""
        kind = self.profile["duplicate"]
        if kind == "replay":
            self.same(first, got, why)
            return
        self.not_silent(got, why)
        if not got.accepted and not self.means(got, ("DUPLICATE",)):
            self.fail("over_refusal", f"{why}: expected a duplicate to be told ({kind}), got {got}")

    def not_silent(self, got: Got, why: str) -> None:
        """No answer in time is no answer: neither a refusal nor a replay."""
        if got.reason == "HANG":
            self.fail("no_verdict", f"{why}: no answer came in the declared time")

    def means(self, got: Got, reasons: Sequence[str]) -> bool:
        """Whether a refusal may be one of these: a profile may give several of them one status."""
        codes = self.profile["codes"]
        return not got.accepted and (
            got.reason in reasons or (got.status != 0 and got.status in [codes.get(each.lower()) for each in reasons])
        )

    def is_key(self, text: str) -> bool:
        """Whether a text fits the published rule of keys."""
        pattern = self.profile["key_pattern"]
        return pattern is None or re.fullmatch(pattern, text) is not None

    def same(self, first: Got, got: Got, why: str) -> None:
        """The answer of the first request, byte for byte."""
        if got.accepted and got.effect == "new":
            self.fail("fail_open", f"{why}: it was executed again")
        self.not_silent(got, why)
        if not got.accepted and got.status != first.status:
            self.fail("over_refusal", f"{why}: expected the first answer, got {got}")
        if (got.status, got.body) != (first.status, first.body):
            self.fail("wrong_reason", f"{why}: expected {first}, got {got}")

    @property
    def choice(self) -> str:
        """What a finding about payloads says where the profile compares no body."""
        return "" if "body" in self.profile["fingerprint"] else f": {DECLARED}"

    def refused(self, got: Got, reasons: Sequence[str], why: str) -> None:
        """A refusal for one of these reasons; what was executed is judged by the sink."""
        if got.accepted and got.effect == "prior":
            self.fail("fail_open", f"{why}: it got the answer to another request")
        if got.accepted:
            self.fail("fail_open", f"{why}: it was executed")
        if not self.means(got, reasons):
            verdict = "no_verdict" if got.reason == "HANG" else "wrong_reason"
            self.fail(verdict, f"{why}: expected {' or '.join(reasons)}, got {got}")

    def settles(self, request: Mapping[str, Any], wanted: Sequence[str], why: str) -> Got:
        """Ask again until an answer ends the matter: the result, or one of the reasons. Report a key that is stuck."""
        left = round(1000 * self.profile["settle_s"])
        while True:
            got = self.submit(request)
            told = self.means(got, ("DUPLICATE",)) and self.profile["duplicate"] == "ack"
            if told and not self.effects(request["tag"]):
                self.fail("lost_durability", f"{why}: it is told that it was done, and there is no effect ({got})")
            if got.accepted or self.means(got, wanted):
                return got
            if left <= 0:
                self.fail("over_refusal", f"{why}: after {self.profile['settle_s']:g} s the key still answers {got}")
            self.pause(_STEP_MS)
            left -= _STEP_MS

    def stays(self, request: Mapping[str, Any], effects: int, why: str) -> None:
        """What ended is as it is for as long as its key lives: in other hours, and in an instance that starts then."""
        lifetime = self.profile["lifetime_s"] or 86_400
        steps = [step for step in (-3600.0, 5400.0, 0.8 * lifetime) if "clock" in self.wires and step < 0.9 * lifetime]
        for step in steps:
            self.pass_time(step)
            got = self.submit(request)
            self.one_effect(request["tag"], f"{why}, the clock {step:+g} s", effects)
            if got.reason == "IN_PROGRESS" and not self.means(got, ("DUPLICATE", "UNKNOWN")):
                self.fail("over_refusal", f"{why}, the clock {step:+g} s: nothing runs, and the key answers {got}")
        if "process" in self.wires and self.profile["durable"]:
            self.begin_again()
            self.submit(request)
            self.one_effect(request["tag"], f"{why}, in an instance that was started since", effects)
        if steps:
            self.pass_time(-sum(steps))

    def behind_the_lease(self) -> None:
        """Let the lease of the profile end."""
        lease, lifetime = self.profile["lease_s"], self.profile["lifetime_s"]
        if lease is None:
            return
        if lifetime is not None and lifetime <= lease + 1:
            self.unsupported("a lease that lasts as long as its key cannot be waited for")
        self.pass_time(lease + 0.1)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, by the clock of the service if it can be set."""
        if "clock" in self.wires:
            self.session.provoke("pass_time", {"ms": round(1000 * seconds)})
            return
        if seconds > _LONGEST_S:
            self.unsupported(f"{seconds:g} s are too long to wait for, and no clock can be set")
        left = round(1000 * seconds)
        while left > 0:
            self.pause(min(left, _PAUSE_MS))
            left -= _PAUSE_MS

    def fail(self, verdict: str, message: str) -> NoReturn:
        """Report a finding."""
        self.bench.fail(verdict, message)

    def not_reached(self, why: str) -> NoReturn:
        """End the test: what it is about was not reached."""
        raise Finding(Judgement(Verdict.NOT_REACHED, detail=why))

    def unsupported(self, why: str) -> NoReturn:
        """End the test: the service has no wire for it."""
        raise Finding(Judgement(Verdict.UNSUPPORTED, detail=why))

    def must_promise(self, holds: object, why: str) -> None:
        """End the test as unsupported where the profile does not promise what it is about: nothing is shown then."""
        if not holds:
            self.unsupported(f"the profile does not promise it: {why}")


@contextmanager
def service(
    bench: Bench, config: Mapping[str, str] | None = None, *, short: bool = False
) -> Generator[Service, None, None]:
    """A session with a service, with a store of its own. `short`: the life of a key may be short."""
    if "submit" in bench.not_claimed:
        raise Finding(Judgement(Verdict.UNSUPPORTED, detail=bench.not_claimed["submit"]))
    with bench.session(config=config, hurried=False) as session:
        found = Service(bench, session)
        lives = found.profile["lifetime_s"]
        if lives is not None and lives < _LIVES_S and "clock" not in found.wires and not short:
            found.unsupported(f"keys live {lives:g} s, and may be over while this runs: {{clock}} would stand still")
        yield found
        found.no_late_effect()
