"""What the suite says of small services: the sound ones of every shape, and a bug of each kind beside its twin."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.conformance.cases.record import NonConformance
from holdfast.conformance.run.plan import suite_tests
from holdfast.conformance.suites.idempotency_key.responses import preflight
from holdfast.conformance.verdict import FailureMode
from holdfast.servers.pace import adopted
from tests.harness.suite_play import bench_of, played
from tests.idempotency_key.shapes import Broker, ClaimsAlone, Held, Make, Record, Shape, Waits, lost, refused

_LOST = "test_nothing_is_executed_while_the_store_is_out_of_reach"
_SAVE = "test_a_store_that_is_lost_before_the_record_does_not_make_the_retry_an_effect"
_RACE = "test_any_number_of_requests_at_once_have_one_effect"
_KEYS = "test_keys_that_differ_in_one_thing_are_two"
_COOKIE = "test_a_cookie_of_the_first_caller_is_not_replayed"
_RETRY = "test_the_first_request_is_executed_and_each_retry_gets_its_answer"
_FULL = "test_a_store_that_is_full_frees_no_key"
_MALFORMED = "test_a_malformed_key_never_leads_to_an_unprotected_execution"
_EVERY = (_LOST, _RACE, _KEYS, _RETRY, _MALFORMED)


def judged(test: str, make: Make) -> str:
    judgement, _ = played("idempotency-key", test, make)
    return judgement.verdict.value


class SmallClaims(ClaimsAlone):
    """Its store has room for so many keys, once it was made small."""

    room = 300

    def __init__(self) -> None:
        super().__init__()
        self.faults = ("small",)

    def without_store(self, key: str, body: bytes, tag: str) -> dict[str, Any]:
        if key in self.records:
            return self.again(self.records[key])
        if len(self.records) >= self.room:
            return refused("UNAVAILABLE", 503)
        record = self.records[key] = Record(hashlib.sha256(body).hexdigest(), self.clock)
        return self.executed(tag, key, record)


class Evicting(SmallClaims):
    """When there is no room, it forgets older keys."""

    def without_store(self, key: str, body: bytes, tag: str) -> dict[str, Any]:
        if len(self.records) >= self.room:
            self.records.clear()
            self.faults = ()
        return refused("UNAVAILABLE", 503) if not self.faults else super().without_store(key, body, tag)


class Profiled(Shape):
    """The same with another profile."""

    def __init__(self, wires: tuple[str, ...] | None = None, **profile: Any) -> None:
        super().__init__()
        self.profile |= profile
        self.wires = self.wires if wires is None else wires

    def column(self, key: str) -> str:
        return key.lower() if self.profile["key_syntax"] == "uuid" else key

    def asked(self, request: Mapping[str, Any], held: Held | None = None) -> dict[str, Any]:
        fits = request.get("route") == "look" or all(self.is_key(key.strip()) for key in request["keys"])
        return super().asked(request if fits else {**request, "keys": []}, held)

    def is_key(self, key: str) -> bool:
        if self.profile["key_syntax"] == "uuid":
            return re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", key) is not None
        return re.fullmatch(self.profile.get("key_pattern") or ".*", key) is not None


class OneConflict(Profiled):
    """One status for a key in progress and for one whose outcome is unknown. The wires read it as the first."""

    def again(self, known: Record) -> dict[str, Any]:
        return self.meanwhile() if known.answer is None else super().again(known)


# The sound ones of every shape.
SOUND: dict[str, Make] = {
    "answers": Shape,
    "waits": Waits,
    "claims": ClaimsAlone,
    "claims-422": lambda: ClaimsAlone(codes={"duplicate": 422}),
    "acks": lambda: ClaimsAlone(duplicate="ack", codes={"duplicate": 208}),
    "broker": Broker,
    "late-broker": lambda: Broker(later_s=9.0),
    "broker-rejects": lambda: Broker(duplicate="reject", codes={"duplicate": 409}),
    "uuid": lambda: Profiled(key_syntax="uuid"),
    "short-keys": lambda: Profiled(max_key_length=10, largest_answer=70_000),
    "numbers": lambda: Profiled(key_pattern="[0-9]{1,19}"),
    "capitals": lambda: Profiled(key_pattern="[A-Z0-9-]{4,40}", max_key_length=36),
    "url": lambda: Profiled(wires=("sink",)),
    "no-clock": lambda: Profiled(
        wires=("sink", "process"), lifetime_s=300, fingerprint=["body"], scope=["principal", "route"]
    ),
    "one-principal": lambda: Profiled(scope=["route"]),
    "one-conflict": lambda: OneConflict(codes={"unknown": 409}),
}


def judged_all(make: Make) -> dict[str, str]:
    """The verdict of each test. Bodies of 16 MiB take long, and are the same for each shape but a broker."""
    tests = [test.__name__ for test, _ in suite_tests("idempotency-key")]
    return {test: judged(test, make) for test in tests if "large_and_chunked" not in test or make is Broker}


@pytest.mark.parametrize("make", SOUND.values(), ids=SOUND.keys())
def test_a_sound_service_of_each_shape_is_accused_of_nothing(make: Make) -> None:
    found = judged_all(make)
    assert {test: verdict for test, verdict in found.items() if verdict not in ("conforms", "unsupported")} == {}
    assert list(found.values()).count("conforms") > 15


class GivesWhatIsNotKept(Shape):
    def saved(self, record: Record, answer: dict[str, Any]) -> dict[str, Any]:
        super().saved(record, answer)
        return answer


class FreesCookies(Shape):
    """Forgets a key whose answer it may not keep."""

    def executed(self, tag: str, key: str, record: Record, held: Held | None = None) -> dict[str, Any]:
        answer = super().executed(tag, key, record, held)
        if any(name == "set-cookie" for name, _ in answer["headers"]):
            del self.records[key]
        return answer


class Cut(Shape):
    """Publishes 255 characters, and its column has 190."""

    def __init__(self) -> None:
        super().__init__()
        self.profile |= {"max_key_length": 255, "fingerprint": []}

    def column(self, key: str) -> str:
        return key[:190]


class ConsumesTwice(Broker):
    """A message is consumed again, some seconds after the first time."""

    def executed(self, tag: str, key: str, record: Record, held: Held | None = None) -> dict[str, Any]:
        self.late.append((self.now + 8, tag))
        return super().executed(tag, key, record, held)


class MarksNothingAndRunsTheTenthAgain(Shape):
    """Two bugs: the mild one shows first."""

    count = 0

    def __init__(self) -> None:
        super().__init__()
        self.profile |= {"marker": "Replayed"}

    def again(self, known: Record) -> dict[str, Any]:
        self.count += 1
        if self.count == 10:
            self.done[next(iter(self.done))] += 1
        return super().again(known)


# Broken ones, each with a test that finds a second effect.
BROKEN: dict[str, tuple[Make, str]] = {
    "frees-cookies": (FreesCookies, _COOKIE),
    "cut": (Cut, _KEYS),
    "consumes-twice": (ConsumesTwice, _RETRY),
    "marks-nothing-and-runs-the-tenth-again": (MarksNothingAndRunsTheTenthAgain, _RETRY),
}


class CutsAnswers(Profiled):
    """Publishes that it keeps answers of 70,000 bytes, and its column has 65,536."""

    def saved(self, record: Record, answer: dict[str, Any]) -> dict[str, Any]:
        super().saved(record, answer)
        record.answer = {**answer, "size": min(answer["size"], 65_536)}
        return answer


class Gone(Shape):
    """Nothing listens any more, after so many requests."""

    def __init__(self, behind: int = 0) -> None:
        super().__init__()
        self.left = behind

    def asked(self, request: Mapping[str, Any], held: Held | None = None) -> dict[str, Any]:
        self.left -= 1
        return super().asked(request, held) if self.left >= 0 else lost("ConnectionRefusedError")


@pytest.mark.parametrize("behind", [0, 1, 2, 5])
@pytest.mark.parametrize("test", _EVERY)
def test_no_answer_is_never_a_refusal_and_nothing_that_was_lost(test: str, behind: int) -> None:
    assert judged(test, lambda: Gone(behind)) == "no_verdict"


class EndsByItself(Shape):
    """Its instance ends behind so many answers, or so long behind its start, and refuses its last request."""

    def __init__(self, answers: float = 1e9, seconds: float = 1e9) -> None:
        super().__init__(wires=("sink", "proxy", "process"))
        self.answers, self.seconds, self.started = answers, seconds, 0.0

    def do_instance(self, number: int, do: str, under: str = "") -> dict[str, bool]:
        if do == "start":
            self.answers, self.started = 1e9, self.now
        return {"runs": self.answers > 0 and self.now < self.started + self.seconds}

    def asked(self, request: Mapping[str, Any], held: Held | None = None) -> dict[str, Any]:
        self.answers -= 1
        return super().asked(request, held) if self.answers > 0 else refused("OTHER", 502)


@pytest.mark.parametrize("test", [_LOST, _RACE, _KEYS, _RETRY])
def test_an_instance_that_ends_by_itself_is_accused_of_nothing(test: str) -> None:
    judgement, _ = played("idempotency-key", test, lambda: EndsByItself(answers=1))
    assert (judgement.verdict.value, judgement.silence) == ("no_verdict", FailureMode.CRASH)


class EndsWithItsStore(EndsByItself):
    def do_line(self, fault: str, delay_ms: int = 0) -> None:
        super().do_line(fault, delay_ms)
        self.answers = 1 if fault == "refused" else self.answers


class EndsSoon(EndsWithItsStore):
    """It ends as soon when it is left alone."""

    def do_instance(self, number: int, do: str, under: str = "") -> dict[str, bool]:
        found = super().do_instance(number, do, under)
        self.answers = 0 if do == "start" else self.answers
        return found


@pytest.mark.parametrize("make", [lambda: EndsByItself(seconds=1), lambda: EndsByItself(answers=2)])
def test_preflight_looks_whether_the_instances_stay(make: Make) -> None:
    with pytest.raises(NonConformance, match="ended by itself"):
        preflight(bench_of("idempotency-key", "preflight", make))


def test_preflight_looks_for_longer_on_a_slower_machine() -> None:
    shape = EndsByItself(seconds=1.5)
    with adopted(3.0), pytest.raises(NonConformance, match="ended by itself"):
        preflight(bench_of("idempotency-key", "preflight", lambda: shape))


class StartsLate(Shape):
    """An instance starts when it is asked first, and its start lasts longer than a lease."""

    def __init__(self) -> None:
        super().__init__(wires=("sink", "proxy", "process"))
        self.profile |= {"lease_s": 2}
        self.running: set[int] = set()

    def do_instance(self, number: int, do: str, under: str = "") -> dict[str, bool]:
        if number not in self.running:
            self.running.add(number)
            self.do_pause(3000)
        return super().do_instance(number, do, under)

    def asked(self, request: Mapping[str, Any], held: Held | None = None) -> dict[str, Any]:
        self.do_instance(request.get("instance", 0), "look")
        return super().asked(request, held)


class Lowers(Shape):
    """Keys are compared in small letters."""

    def column(self, key: str) -> str:
        return key.lower()


class LowersForOnePayload(Lowers):
    """The key as it was sent is a part of the payload that it compares."""

    def asked(self, request: Mapping[str, Any], held: Held | None = None) -> dict[str, Any]:
        return super().asked({**request, "query": "".join(request["keys"])}, held)


class LowersClaims(ClaimsAlone):
    def __init__(self) -> None:
        super().__init__(fingerprint=[])

    def column(self, key: str) -> str:
        return key.lower()


@pytest.mark.parametrize(
    ("make", "verdict", "said"),
    [
        (Lowers, "fail_open", "with the payload of another"),
        (LowersForOnePayload, "over_refusal", "refused as MISMATCH"),
        (LowersClaims, "fail_open", "as if that with another key"),
        (Cut, "fail_open", "as if that with another key"),
    ],
)
def test_a_key_that_is_taken_for_another_is_open_only_where_an_answer_or_an_effect_shows_it(
    make: Make, verdict: str, said: str
) -> None:
    judgement, _ = played("idempotency-key", _KEYS, make)
    assert judgement.verdict.value == verdict
    assert said in judgement.detail


class ReplaysOk(Shape):
    """A replay has the body of the first answer and the status 200."""

    def again(self, known: Record) -> dict[str, Any]:
        found = super().again(known)
        is_own = found["outcome"] == "refused" or found["status"] == 200
        return found if is_own else {**found, "outcome": "refused", "reason": "OTHER", "status": 200}


class ForgetsOne(Shape):
    def do_burst(self, requests: list[dict[str, Any]]) -> dict[str, Any]:
        return super().do_burst(requests[1:])


class LosesMessages(Broker):
    """A message whose answer said that it was taken is never consumed."""

    def __init__(self) -> None:
        super().__init__(later_s=1e9)


_LARGE = "test_an_answer_that_is_too_large_to_store_does_not_free_the_key"
# What each makes of a test, and why.
VERDICTS: list[tuple[str, str, str, Make]] = [
    ("keeps no answer, and has none to lose", _SAVE, "conforms", Shape),
    ("keeps claims alone", _SAVE, "conforms", ClaimsAlone),
    ("acknowledges", _SAVE, "conforms", lambda: ClaimsAlone(duplicate="ack", codes={"duplicate": 208})),
    ("was to keep an answer and did not", _SAVE, "wrong_reason", GivesWhatIsNotKept),
    ("is filled with keys", _FULL, "conforms", SmallClaims),
    ("is filled with keys and forgets some", _FULL, "fail_open", Evicting),
    # A second effect is the verdict, whatever else is wrong.
    *((name, test, "fail_open", make) for name, (make, test) in BROKEN.items()),
    ("keeps an answer of the published size whole", _LARGE, "conforms", lambda: Profiled(largest_answer=70_000)),
    ("cuts an answer of the published size", _LARGE, "wrong_reason", lambda: CutsAnswers(largest_answer=70_000)),
    # Only an end that no undisturbed instance has is that of its store.
    ("ends with its store", _LOST, "over_refusal", EndsWithItsStore),
    ("ends as soon when it is left alone", _LOST, "no_verdict", EndsSoon),
    # The start of an instance does not use up the lease of a request.
    ("starts late", "test_a_retry_while_the_first_is_processed_has_no_effect", "conforms", StartsLate),
    # Another status is a wrong answer and no refusal.
    ("replays with another status", _RETRY, "wrong_reason", ReplaysOk),
    ("replays with another status without its store", _LOST, "wrong_reason", ReplaysOk),
    ("replays so elsewhere", "test_a_retry_is_recognised_through_every_instance", "wrong_reason", ReplaysOk),
    # An answer for each request of a burst is the adapter's to give.
    ("forgets one of a burst", _RACE, "not_reached", ForgetsOne),
    ("takes a message that never has its effect", _RETRY, "lost_durability", LosesMessages),
    ("takes messages that never have an effect", _RACE, "lost_durability", LosesMessages),
    # A key in progress with nothing running is stuck where an unknown outcome has a status of its own.
    ("is stuck", "test_an_outcome_that_nobody_knows_is_not_executed_again", "over_refusal", OneConflict),
]


@pytest.mark.parametrize(("test", "due", "make"), [row[1:] for row in VERDICTS], ids=[row[0] for row in VERDICTS])
def test_a_service_that(test: str, due: str, make: Make) -> None:
    assert judged(test, make) == due
