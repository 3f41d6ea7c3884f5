"""What the tests of idempotency-key share: requests by the profile of the service, and what came of them."""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NoReturn

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.record import Judgement, NonConformance
from holdfast.conformance.cases.session import START
from holdfast.conformance.cases.values import base64url, format_instant, from_base64url, parse_instant
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.servers.wires.profile import whole

# The reference has a store at an address on PostgreSQL; another service is asked with the store that it has.
ON_A_SERVER = {"store": "postgres"}
# Commands of service.toml with a meaning: one limits the store, one empties a broker's queue.
SMALL, PURGE = "small", "purge"
NO_FILES = "the store has no files here: {data} stands in no variable of [service.env]"
# A key that lives no longer may be over while a test runs, where no clock stands still.
_LIVES_S = 120.0
# What a finding says of a second effect that the profile declares. It does not conform all the same.
DECLARED = "broken by choice, as the profile says"
# A request whose handler is held is answered only behind its release.
_PATIENT_MS = 25_000
# A key of a published rule is looked for up to this length, in characters.
_LONGEST_KEY = 4096
# A longer time is not waited for.
_LONGEST_S = 75.0
# Behind so many requests without an answer a test ends: each of them is waited for.
_UNANSWERED = 3
# One request of the protocol waits no longer.
_PAUSE_MS = 20_000
# A shorter key may stand in a log by chance; of many the first and the last are looked for.
_SECRET, _SEARCHED = 16, 20
_YEAR_S = 31_536_000
# A sweep that runs once a minute has run behind this time.
_SWEPT_MS = 61_000
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
    lost: str

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
            told["lost"],
        )

    @property
    def silence(self) -> FailureMode | None:
        """Why there is no answer; None if there is one. No answer is neither a refusal nor a replay."""
        return {"HANG": FailureMode.HANG, "NO_ANSWER": FailureMode.EOF}.get(self.reason)

    def header(self, name: str) -> str | None:
        """The headers of that name, as one."""
        return ", ".join(value for known, value in self.headers if known == name.lower()) or None

    def has_body_of(self, other: Got) -> bool:
        """Whether it has the body of another answer, perhaps with another status."""
        return bool(other.body) and (self.size, self.body) == (other.size, other.body)

    def __str__(self) -> str:
        what = f"accepted ({self.effect})" if self.accepted else self.reason
        if self.silence is not None:
            return f"no answer ({self.lost})"
        return f"{what}, {self.sent}"

    @property
    def sent(self) -> str:
        """What a client sees of it."""
        return f"status {self.status}, body {self.body[:80]!r}"


class Service:
    """A service under test, and its profile."""

    def __init__(self, bench: Bench, session: SuiteSession) -> None:
        self.bench, self.session = bench, session
        said = whole(session.observe("profile"))
        self.profile: dict[str, Any] = said["profile"]
        self.routes: dict[str, Any] = said["routes"]
        self.principals: list[str] = said["principals"]
        self.names: dict[str, str] = said["names"]
        self.wires: list[str] = said["wires"]
        self.faults: list[str] = said["faults"]
        self._count = self._unanswered = 0
        # How far the clock of the service was moved.
        self._passed_s = 0.0
        # The most effects that each tag may have, and the answers to the requests with it.
        self._most: dict[str, int] = {}
        self._answers: dict[str, list[Got]] = {}
        self._begun: dict[str, str] = {}
        self._keys = dict[str, None]()
        # Where a request goes if it does not say so.
        self.route = "create"
        # The instances that have to run, when the last one began, and whether what was done since may end them.
        self._up, self._since, self.is_disturbed = set[int](), time.monotonic(), False

    # What is asked for

    def tag(self) -> str:
        """A tag that was not used before."""
        self._count += 1
        return f"hf-{self.session.rand(f'tag {self._count}')}"

    def key(self, text: str | None = None) -> str:
        """A key that was not used before, or one of a text, as it stands in the header."""
        self._count += 1
        digits = self.session.hex64(f"key {self._count}")
        uuid = f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"
        if self.profile["key_syntax"] == "uuid":
            return uuid
        if text is None:
            # The first that fits the published rule.
            forms = [digits[:length] for length in (24, 32, 16, 8)] + [uuid]
            forms += [form.upper() for form in forms] + [str(int(form, 16)) for form in forms[:4]]
            text = next(filter(self.is_key, forms), forms[0])
        return self.spelt(text)

    @property
    def longest_key(self) -> int | None:
        """The longest key that the published rule takes, in characters; None if there is no such rule."""
        longest: int | None = self.profile["max_key_length"]
        if self.profile["key_pattern"] is None:
            return longest
        most = longest or _LONGEST_KEY
        found = next((length for length in range(most, 0, -1) if self.is_key("x" * length)), None)
        return None if found == _LONGEST_KEY else found

    def long_key(self, length: int) -> str:
        """A key of that length that was not used before, or of the longest that may be."""
        length = min(length, self.longest_key or length)
        text = (self.session.hex64(f"long key {self._count}") * (length // 64 + 1))[:length]
        return self.key(text if self.is_key(text) else None)

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
        self._keys.update(dict.fromkeys(lines))
        sent = self.body(tag) if body is None else body
        self._most[tag] = max(1, self._most.get(tag, 1))
        self._up.add(more.get("instance", 0))
        where = {} if self.route == "create" else {"route": self.route}
        return {"tag": tag, "keys": lines, "body": base64url(sent), **where, **more}

    # What is done

    def submit(self, request: Mapping[str, Any]) -> Got:
        """Send a request and wait for its answer."""
        answer = self.session.call("submit", request)
        if answer.outcome == "accepted":
            return self._got(request["tag"], {"outcome": "accepted", "effect": answer.effect, **answer.value})
        return self._got(request["tag"], {"outcome": "refused", "reason": answer.reason, **(answer.data or {})})

    def _got(self, tag: str, told: Mapping[str, Any]) -> Got:
        got = Got.of(told)
        self._answers.setdefault(tag, []).append(got)
        return got

    def begin(self, name: str, request: Mapping[str, Any], *, at: str = "sink") -> None:
        """Send a request that has to come so far: to the sink, where its handler is held."""
        came = self.send(name, request)
        if came != at:
            got = f"; it was answered with {self.finish(name)}" if came == "answered" else ""
            self.not_reached(f"the request {name} came {came}, not to the {at}{got}")

    def send(self, name: str, request: Mapping[str, Any]) -> str:
        """Send a request, and say how far it came."""
        self._begun[name] = request["tag"]
        sent = {"name": name, "request": {"within_ms": _PATIENT_MS, **request}}
        came: str = self.session.provoke("begin", sent)["at"]
        return came

    def finish(self, name: str) -> Got:
        """The answer to a request that was begun."""
        return self._got(self._begun[name], self.session.provoke("finish", {"name": name}))

    def burst(self, requests: Sequence[Mapping[str, Any]]) -> list[Got]:
        """Requests at once, and what came of each."""
        told = self.session.provoke("burst", {"requests": list(requests)})["answers"]
        if len(told) != len(requests):
            self.not_reached(f"burst: expected an answer for each of {len(requests)} requests, got {len(told)}")
        return [self._got(asked["tag"], each) for asked, each in zip(requests, told, strict=True)]

    def hold(self, tag: str, *, count: int = 1, when: str = "before") -> None:
        """Hold the next handlers of a tag."""
        self.session.provoke("hold", {"tag": tag, "count": count, "when": when})

    def release(self, tag: str) -> None:
        """Let them go on."""
        self._most[tag] = max(1, self._most.get(tag, 1))
        self.session.provoke("release", {"tag": tag})

    def ending(self, tag: str, **ending: Any) -> None:
        """How the handlers of a tag end."""
        body = ending.pop("body", None)
        told = {**ending, **({} if body is None else {"body": base64url(body)})}
        self.session.provoke("ending", {"tag": tag, "ending": told})

    def line(self, fault: str, delay_ms: int = 0) -> None:
        """Let the line to the store fail, or no more."""
        self.is_disturbed = True
        self.session.provoke("line", {"fault": fault, "delay_ms": delay_ms})

    def instance(self, do: str, number: int = 0, *, under: str | None = None) -> bool:
        """Kill, end, start or look at an instance; whether it runs then. `under` is a command that starts it."""
        told: dict[str, Any] = {"number": number, "do": do}
        if under is not None:
            told["under"], self.is_disturbed = under, True
        runs: bool = self.session.provoke("instance", told)["runs"]
        if do != "look":
            (self._up.add if runs else self._up.discard)(number)
            self._since = time.monotonic()
        return runs

    def must_run(self) -> None:
        """End the test without a verdict where an instance has ended to which holdfast did nothing."""
        for number in sorted(self._up) if "process" in self.wires and not self.is_disturbed else ():
            if not self.instance("look", number):
                self.settle()
                said = f"instance {number} ended by itself: holdfast had done nothing to it"
                raise NonConformance(self.bench.gravest(Judgement(Verdict.NO_VERDICT, FailureMode.CRASH, said)))

    def must_run_undisturbed(self) -> None:
        """An instance that has ended when something was done: one to which nothing is done has to run for as long."""
        lasted, self.is_disturbed = time.monotonic() - self._since, False
        self.instance("start")
        self.rest(round(1000 * lasted))
        self.must_run()
        self.is_disturbed = True

    def begin_again(self, how: str = "kill", number: int = 0) -> None:
        """An instance dies or ends, and is started again; one that does not start ends the test as not reached."""
        self.instance(how, number)
        if not self.instance("start", number):
            self.not_reached("the instance does not start again")

    def pause(self, milliseconds: int) -> None:
        """Let real time pass."""
        self.session.provoke("pause", {"ms": milliseconds})

    def may_have(self, tag: str, effects: int) -> None:
        """Say that more than one effect of a tag is no second one: of several keys, routes or principals."""
        self._most[tag] = effects

    @property
    def settle_ms(self) -> int:
        """How long an effect may come behind the answer to its request. An adapter without `pause` answers later."""
        comes_late = self.profile["handler"] == "behind" and "pause" not in self.bench.not_claimed
        return round(1000 * self.profile["settle_s"]) if comes_late else 0

    def effects(self, tag: str, due: int = 0) -> int:
        """How many effects a tag had. One that is due, or promised by an answer, may come until `settle_s`."""
        due = max(due, any(got.accepted for got in self._answers.get(tag, ())))
        left = self.settle_ms
        while True:
            found: int = self.session.observe("seen", {"tag": tag})["effects"]
            if found >= due or left <= 0:
                return found
            self.pause(_STEP_MS)
            left -= _STEP_MS

    def settle(self) -> None:
        """Count the effects of every tag once none can come any more. An effect too many ends the test.

        It is done before a test ends in any other way, so that no finding stands before a second effect.
        """
        self.rest(self.settle_ms if self._most else 0)
        counted: Mapping[str, int] = self.session.observe("effects")["tags"] if self._most else {}
        for tag, most in self._most.items():
            found = counted.get(tag, 0)
            if found > most:
                self.bench.fail(
                    "fail_open", f"at the end of the test: the sink took {found} effects, {most} may be there"
                )

    def keep_secrets(self) -> None:
        """No log of an instance has a whole key, whatever became of its request and of the store."""
        keys = [key.strip('" ') for key in self._keys]
        secret = [key for key in keys if len(key) >= _SECRET and key.isascii()]
        if not (self.profile["secret"] and "process" in self.wires and secret):
            return
        found = self.session.search("logs", [*secret[:_SEARCHED], *secret[_SEARCHED:][-_SEARCHED:]])
        if logs := sorted({each["path"] for each in found if "/instance-" in each["path"]}):
            self.wrong("state_leak", f"the log has keys of this test: {', '.join(logs)}")

    def rest(self, milliseconds: int) -> None:
        """Let real time pass, in as many requests as it takes."""
        while milliseconds > 0:
            self.pause(min(milliseconds, _PAUSE_MS))
            milliseconds -= _PAUSE_MS

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
        found = self.effects(tag, due)
        self._most[tag] = due
        if found > due:
            self.fail("fail_open", f"{why}: the sink took {found} effects, {due} is due")
        if found < due:
            answers = self._answers.get(tag, [])
            acked = self.profile["duplicate"] == "ack" and any(self.means(got, ("DUPLICATE",)) for got in answers)
            # Where no answer said that it was done, nothing is lost.
            verdict = "lost_durability" if acked or any(got.accepted for got in answers) else "over_refusal"
            last = next((got for got in reversed(answers) if got.silence is None), answers[-1] if answers else None)
            self.wrong(verdict, f"{why}: the sink took {found} effects, {due} is due", last)

    def at_most_one(self, tag: str, why: str, *answers: Got) -> None:
        """One effect if one of these answers accepts; one or none if no answer says so."""
        if any(got.accepted for got in answers):
            self.one_effect(tag, why)
        elif (found := self.effects(tag)) > 1:
            self.fail("fail_open", f"{why}: the sink took {found} effects, and at most 1 may be there")

    def no_effect(self, tag: str, why: str) -> None:
        """Report an effect where none is due."""
        self.one_effect(tag, why, 0)

    def first(self, tag: str, key: str, **more: Any) -> Got:
        """A first request, which has to be executed and answered by its handler."""
        got = self.submit(self.request(tag, key, **more))
        if got.effect == "prior" or self.is_of_another(tag, got):
            self.fail("fail_open", f"a first request got the answer of another: {got}")
        if not got.accepted:
            self.fail("over_refusal", f"a first request got {got}", got)
        return got

    def is_of_another(self, tag: str, got: Got) -> bool:
        """Whether an answer is that of the handler of another tag, which names its effect."""
        others = (each for other, answers in self._answers.items() if other != tag for each in answers if each.accepted)
        mine = got.accepted or not got.body or not self.names_effects
        return not mine and any((each.status, each.body) == (got.status, got.body) for each in others)

    def retried(self, first: Got, got: Got, why: str) -> None:
        """Hold the answer to a retry against what the profile declares."""
        kind = self.profile["duplicate"]
        if kind == "replay":
            self.same(first, got, why)
        elif not got.accepted and not self.means(got, ("DUPLICATE",)):
            self.wrong("over_refusal", f"{why}: expected a duplicate to be told ({kind}), got {got}", got)

    def means(self, got: Got, reasons: Sequence[str]) -> bool:
        """Whether a refusal may be one of these: a profile may give several of them one status."""
        codes = self.profile["codes"]
        return not got.accepted and (
            got.reason in reasons or (got.status != 0 and got.status in [codes.get(each.lower()) for each in reasons])
        )

    def is_key(self, text: str) -> bool:
        """Whether a text fits the published rule of keys."""
        pattern, longest = self.profile["key_pattern"], self.profile["max_key_length"]
        return (longest is None or len(text) <= longest) and (pattern is None or bool(re.fullmatch(pattern, text)))

    def same(self, first: Got, got: Got, why: str) -> None:
        """The answer of the first request, byte for byte."""
        if got.accepted and got.effect == "new":
            self.fail("fail_open", f"{why}: it was executed again")
        if not got.accepted and got.status != first.status and not got.has_body_of(first):
            self.wrong("over_refusal", f"{why}: expected the first answer, got {got}", got)
        elif (got.status, got.size, got.body) != (first.status, first.size, first.body):
            self.wrong("wrong_reason", f"{why}: expected the first answer, {first.sent}; got {got}", got)

    @property
    def is_new(self) -> bool:
        """Whether the store is that of this session alone. A service at a URL may know keys from another run."""
        return "process" in self.wires or "sink" not in self.wires

    @property
    def instances(self) -> list[int]:
        """Through which instances a key is the same."""
        return [0, 1] if self.profile["shared"] and "process" in self.wires else [0]

    @property
    def names_effects(self) -> bool:
        """Whether an answer is the handler's own, which names its effect. A broker may answer all alike."""
        return bool(self.profile["handler"] == "inside")

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
            self.wrong("wrong_reason", f"{why}: expected {' or '.join(reasons)}, got {got}", got)

    def settles(self, request: Mapping[str, Any], wanted: Sequence[str], why: str) -> Got:
        """Ask again until an answer ends the matter: the result, or one of the reasons. Report a key that is stuck."""
        left = round(1000 * self.profile["settle_s"])
        while True:
            got = self.submit(request)
            told = self.means(got, ("DUPLICATE",)) and self.profile["duplicate"] == "ack"
            if told and not self.effects(request["tag"], 1):
                self.wrong("lost_durability", f"{why}: it is told that it was done, and there is no effect ({got})")
            known = (each for each in self._answers[request["tag"]] if each.accepted)
            if got.accepted or self.means(got, wanted) or any(map(got.has_body_of, known)):
                return got
            if left <= 0:
                said = f"{why}: after {self.profile['settle_s']:g} s the key still answers {got}"
                self.wrong("over_refusal", said, got)
                return got
            self.pause(_STEP_MS)
            left -= _STEP_MS if got.reason != "HANG" else round(1000 * self.profile["answer_s"])

    @property
    def unknown(self) -> tuple[str, ...]:
        """What may be told of a request whose claim was lost. A guard that keeps no answer knows claims alone."""
        return ("UNKNOWN",) if self.profile["duplicate"] == "replay" else ("UNKNOWN", "DUPLICATE")

    def stays(self, request: Mapping[str, Any], effects: int, why: str) -> None:
        """What ended is as it is for as long as its key lives: in other hours, and in an instance that starts then."""
        lifetime = self.profile["lifetime_s"] or 86_400
        steps = [step for step in (-3600.0, 5400.0, 0.8 * lifetime) if "clock" in self.wires and step < 0.9 * lifetime]
        for step in steps:
            self.pass_time(step)
            got = self.submit(request)
            self.one_effect(request["tag"], f"{why}, the clock {step:+g} s", effects)
            if got.reason == "IN_PROGRESS" and not self.means(got, ("DUPLICATE", "UNKNOWN")):
                self.wrong("over_refusal", f"{why}, the clock {step:+g} s: nothing runs, and the key answers {got}")
        if self.bench.thorough > 1:
            # Most sweeps go by real time.
            self.rest(_SWEPT_MS)
            self.submit(request)
            self.one_effect(request["tag"], f"{why}, {_SWEPT_MS / 1000:g} s later", effects)
        if "process" in self.wires and self.profile["durable"]:
            self.begin_again()
            self.submit(request)
            self.one_effect(request["tag"], f"{why}, in an instance that was started since", effects)
        if steps:
            self.pass_time(-sum(steps))

    def behind_the_lease(self, *asked: Mapping[str, Any]) -> None:
        """Let the lease of the profile end. Each of `asked` is sent meanwhile: who asks does not make it longer."""
        lease, lifetime = self.profile["lease_s"], self.profile["lifetime_s"]
        if lease is None:
            return
        if lifetime is not None and lifetime <= lease + 1:
            self.unsupported("a lease that lasts as long as its key cannot be waited for")
        for request in asked:
            self.pass_time(lease / (1 + len(asked)))
            self.submit(request)
        self.pass_time(lease / (1 + len(asked)) + 0.1)

    @property
    def outlasts_leases(self) -> bool:
        """Whether a lease can be waited for: by the clock of the service, or really."""
        lease, lifetime = self.profile["lease_s"], self.profile["lifetime_s"]
        is_over = lease is not None and (lifetime is None or lifetime > lease + 1)
        return is_over and ("clock" in self.wires or lease <= _LONGEST_S)

    def set_clock(self, moment: datetime) -> None:
        """Set the clock of the service, which can be set."""
        self.pass_time((moment - parse_instant(self.session.now)).total_seconds() - self._passed_s)

    def pass_time(self, seconds: float) -> None:
        """Let time pass, by the clock of the service if it can be set."""
        if "clock" in self.wires:
            self.is_disturbed = True
            self.session.provoke("pass_time", {"ms": round(1000 * seconds)})
            self._passed_s += seconds
            return
        if seconds > _LONGEST_S:
            self.unsupported(f"{seconds:g} s are too long to wait for, and no clock can be set")
        self.rest(round(1000 * seconds))

    def fail(self, verdict: str, message: str, got: Got | None = None) -> NoReturn:
        """Report a finding behind which nothing more can be found. See `wrong`."""
        if verdict != "fail_open":
            self._report(verdict, message, got)
            self.settle()
            raise NonConformance(self.bench.gravest(Judgement(Verdict.CONFORMS)))
        self.bench.fail(verdict, message)

    def wrong(self, verdict: str, message: str, got: Got | None = None) -> None:
        """Report a finding that ends nothing: an effect weighs more, and may come behind it.

        `got` is the answer that shows it. Where there was none it is `no_verdict`.
        """
        self._report(verdict, message, got)
        if got is not None and got.silence is not None:
            self._unanswered += 1
            if self._unanswered >= _UNANSWERED:
                self.settle()
                raise NonConformance(self.bench.gravest(Judgement(Verdict.CONFORMS)))

    def _report(self, verdict: str, message: str, got: Got | None) -> None:
        at = len(self.bench.records) - 1
        if verdict != "wrong_reason":
            self.must_run()
        silence = None if got is None else got.silence
        self.bench.report(verdict if silence is None else "no_verdict", message, at=at, silence=silence)

    def not_reached(self, why: str, advice: str = "") -> NoReturn:
        """End the test: what it is about was not reached."""
        self.must_run()
        raise NonConformance(Judgement(Verdict.NOT_REACHED, detail=why, advice=advice))

    def unsupported(self, why: str) -> NoReturn:
        """End the test: the service has no wire for it."""
        raise NonConformance(Judgement(Verdict.UNSUPPORTED, detail=why))

    def must_live(self) -> None:
        """End the test as unsupported where a key may be over while it runs."""
        lives = self.profile["lifetime_s"]
        if lives is not None and lives < _LIVES_S and "clock" not in self.wires:
            self.unsupported(f"keys live {lives:g} s, and may be over while this runs: {{clock}} would stand still")

    def must_promise(self, holds: object, why: str) -> None:
        """End the test as unsupported where the profile does not promise what it is about: nothing is shown then."""
        if not holds:
            self.unsupported(f"the profile does not promise it: {why}")


@contextmanager
def service(
    bench: Bench, config: Mapping[str, str] | None = None, *, short: bool = False, anywhere: bool = False
) -> Generator[Service, None, None]:
    """A session with a service, with a store of its own. `short`: the life of a key may be short.

    `anywhere`: the seed decides which of its routes with an effect the requests go to.
    """
    if "submit" in bench.not_claimed:
        raise NonConformance(Judgement(Verdict.UNSUPPORTED, detail=bench.not_claimed["submit"]))
    # No calendar turns at a moment that the seed decides.
    now = format_instant(parse_instant(START) + timedelta(seconds=bench.dice("now").randrange(0, _YEAR_S)))
    with bench.session(config=config, hurried=False, now=now) as session:
        found = Service(bench, session)
        if not short:
            found.must_live()
        if anywhere and found.routes.get("other", {}).get("key", "ignored") != "ignored":
            found.route = "create" if session.rand("route") < "8" else "other"
        try:
            yield found
        except NonConformance as finding:
            if finding.judgement.verdict in (Verdict.NOT_REACHED, Verdict.UNSUPPORTED):
                found.settle()
            raise
        found.settle()
        found.keep_secrets()
