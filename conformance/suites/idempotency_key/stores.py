"""A store that is out of reach, slow, or half there (IK-STORE, IK-LIVE)."""

from __future__ import annotations

from dataclasses import dataclass, field

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.idempotency_key.client import (
    DECLARED,
    ON_A_SERVER,
    PURGE,
    SMALL,
    Got,
    Service,
    service,
)
from holdfast.servers.wires.profile import ENDS

# Number and size of the answers that fill a small store; number and length of the keys that do it in their place.
_FILLING, _LARGE = 200, 65_536
_AT_ONCE, _SAFE = 64, 120
_FAULTS = ("refused", "reset", "silent", "cut", "one-way")
_NOTHING_DONE = ("UNAVAILABLE", "UNKNOWN", "OTHER", "NO_ANSWER")


def _without(s: Service, tag: str, got: Got, fault: str, due: int, *, may_work: bool) -> None:
    """An answer while the store is away: nothing is executed, unless the store is what a consumer waits for."""
    which = f"{'a known key' if due else 'a new key'} with the store {fault}"
    if may_work and not due:
        s.at_most_one(tag, which, got)
    elif s.profile["handler"] == "behind":
        # A message may have come to the store although its answer was lost, and is consumed when the store is back.
        s.at_most_one(tag, which)
    elif s.effects(tag) > due:
        chosen = f": {DECLARED}" if s.profile["fail_open"]["lookup"] else ""
        s.fail("fail_open", f"{which} was executed{chosen}")
    elif got.accepted and not due:
        s.fail("fail_open", f"{which} got {got}")
    if not got.accepted and not s.means(got, (*_NOTHING_DONE, *(("DUPLICATE",) if due else s.unknown))):
        s.wrong("wrong_reason", f"{which}: expected UNAVAILABLE, got {got}", got)


@dataclass
class Outage:
    """A store that is away in one way: a known and a new key, then and behind it."""

    s: Service
    fault: str
    known: tuple[str, str]
    first: Got
    new: tuple[str, str]
    answers: list[Got] = field(default_factory=list)

    @classmethod
    def of(cls, s: Service, fault: str) -> Outage:
        """Before it begins: a key becomes known."""
        known, key = s.tag(), s.key()
        first = s.first(known, key)
        s.must_run()
        s.is_disturbed = True
        return cls(s, fault, (known, key), first, (s.tag(), s.key()))

    def asked(self, times: int = 2, *, may_work: bool = False) -> None:
        """While it lasts, both at once: what can be read is right to replay. `may_work`: it may take the new one."""
        for _ in range(times):
            found = self.s.burst([self.s.request(*self.known), self.s.request(*self.new)])
            self.answers.append(found[1])
            for (tag, _key), got, due in zip((self.known, self.new), found, (1, 0), strict=True):
                _without(self.s, tag, got, self.fault, due, may_work=may_work)

    def over(self) -> None:
        """Behind it: the known key has its answer. A claim may have come to the store although its answer was lost."""
        s, (tag, key), why = self.s, self.known, f"a known key behind a store that was {self.fault}"
        if "process" in s.wires and not s.instance("look"):
            s.must_run_undisturbed()
            s.wrong("over_refusal", f"the instance ended when its store was {self.fault}")
        s.retried(self.first, s.settles(s.request(tag, key), ("DUPLICATE",), why), why)
        s.one_effect(tag, why)
        s.behind_the_lease()
        (tag, key), why = self.new, f"a new key behind a store that was {self.fault}"
        # A store that worked on has taken it.
        taken = ("DUPLICATE",) if s.effects(tag) else ()
        s.at_most_one(tag, why, *self.answers, s.settles(s.request(tag, key), (*s.unknown, *taken), why))


@clause("IK-STORE-1", "IK-STORE-6", "IK-LIVE-2", provocations=("line",))
def test_nothing_is_executed_while_the_store_is_out_of_reach(bench: Bench) -> None:
    """A known and a new key, with each fault of the line; then the line is back, and both are asked again."""
    with service(bench, ON_A_SERVER) as s:
        for fault in _FAULTS:
            outage = Outage.of(s, fault)
            s.line(fault)
            outage.asked()
            s.line("none")
            outage.over()


@clause("IK-STORE-2", "IK-LIVE-1", provocations=("line", "hold"))
def test_a_store_that_is_lost_before_the_record_does_not_make_the_retry_an_effect(bench: Bench) -> None:
    """The line fails while the handler is held, and is back behind it."""
    with service(bench, ON_A_SERVER) as s:
        for fault in ("refused", "reset", "silent", "cut"):
            tag, key = s.tag(), s.key()
            s.hold(tag, when="after")
            s.begin("first", s.request(tag, key))
            s.line(fault)
            s.release(tag)
            first = s.finish("first")
            s.line("none")
            s.behind_the_lease()
            got = s.settles(s.request(tag, key), ("UNKNOWN", "DUPLICATE"), f"the store was {fault} at the save")
            chosen = f": {DECLARED}" if s.profile["abandoned"] == "reexecute" else ""
            s.one_effect(tag, f"a retry of a request whose save met a store that was {fault}{chosen}")
            saves = s.profile["duplicate"] == "replay" and not s.profile["fail_open"]["save"]
            if first.accepted and not got.accepted and saves:
                s.wrong("wrong_reason", f"a plain success was answered ({first}), although its save failed ({fault})")


@clause("IK-STORE-3", "IK-STORE-7", provocations=("line",))
def test_a_slow_store_is_not_taken_for_an_empty_one(bench: Bench) -> None:
    """Each piece of a reply comes late: a right answer that is late is right."""
    with service(bench, ON_A_SERVER) as s:
        for delay in (100, 1500):
            known, key = s.tag(), s.key()
            first = s.first(known, key)
            s.line("slow", delay)
            got = s.submit(s.request(known, key, within_ms=20_000))
            s.one_effect(known, f"a known key, with {delay} ms for each piece")
            if got.accepted or not s.means(got, _NOTHING_DONE):
                s.retried(first, got, "a known key with a slow store")
            new, other = s.tag(), s.key()
            got = s.submit(s.request(new, other, within_ms=20_000))
            s.line("none")
            s.behind_the_lease()
            again = s.settles(s.request(new, other), s.unknown, "a new key behind a slow store")
            s.at_most_one(new, "a new key with a slow store", got, again)


@clause("IK-STORE-3", "IK-STORE-7", provocations=("serve_store",))
def test_a_store_that_only_fails_in_part_is_not_taken_for_an_empty_one(bench: Bench) -> None:
    """Each fault that the store can make itself: read-only, full, a command that is forbidden."""
    with service(bench, ON_A_SERVER) as s:
        faults = [fault for fault in s.faults if fault not in (SMALL, PURGE)]
        s.must_promise(faults, "[store.commands] has no fault and its end")
        for fault in faults:
            outage = Outage.of(s, fault)
            s.session.provoke("serve_store", {"do": fault})
            outage.asked()
            s.session.provoke("serve_store", {"do": f"{fault}{ENDS}"})
            outage.over()


@clause("IK-STORE-5", provocations=("serve_store",))
def test_a_store_that_is_full_frees_no_key(bench: Bench) -> None:
    """The store is made small, and filled until a request is refused: with large answers, or with keys alone."""
    with service(bench, ON_A_SERVER) as s:
        s.must_promise(SMALL in s.faults, f"[store.commands] has no {SMALL} and {SMALL}{ENDS}")
        outage = Outage.of(s, "full")
        s.session.provoke("serve_store", {"do": SMALL})
        keeps = s.profile["duplicate"] == "replay" and s.names_effects
        fill, what = (_answers, f"{_FILLING} answers") if keeps else (_keys, f"{_FILLING} times {_AT_ONCE} keys")
        is_full = any(fill(s) for _ in range(_FILLING))
        s.submit(s.request(*outage.known))
        s.one_effect(outage.known[0], "a known key in a store that was filled")
        if not is_full:
            s.not_reached(f"the store took {what}; let {SMALL} give it less room")
        s.session.provoke("serve_store", {"do": f"{SMALL}{ENDS}"})
        outage.over()


def _answers(s: Service) -> bool:
    """One more large answer; whether it was refused."""
    tag = s.tag()
    s.ending(tag, size=min(_LARGE, s.profile["largest_answer"] or _LARGE))
    return not s.submit(s.request(tag, s.key())).accepted


def _keys(s: Service) -> bool:
    """Many more keys; whether one was refused. A guard that keeps no answers keeps only these."""
    asked = [s.request(s.tag(), s.long_key(_SAFE)) for _ in range(_AT_ONCE)]
    return not all(got.accepted for got in s.burst(asked))


@clause("IK-STORE-4", provocations=("serve_store",))
def test_the_return_of_the_store_frees_no_key(bench: Bench) -> None:
    """The store's server is killed and started again."""
    with service(bench, ON_A_SERVER) as s:
        s.must_promise(s.profile["durable"] and s.profile["store_durable"], "keys do not outlive the store's server")
        for how in ("restart", "kill-and-restart"):
            tag, key = s.tag(), s.key()
            first, s.is_disturbed = s.first(tag, key), True
            s.session.provoke("serve_store", {"do": how})
            got = s.settles(s.request(tag, key), ("DUPLICATE",), f"the store's server: {how}")
            s.one_effect(tag, f"a retry behind a {how} of the store's server")
            s.retried(first, got, f"a retry behind a {how} of the store's server")
