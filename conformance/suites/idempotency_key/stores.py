"""A store that is out of reach, slow, or half there (IK-STORE, IK-LIVE)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.idempotency_key.asking import (
    DECLARED,
    ON_A_SERVER,
    PURGE,
    SMALL,
    Got,
    Service,
    service,
)
from holdfast.servers.wires.profile import ENDS

# Number and size of the answers that fill a small store.
_FILLING, _LARGE = 200, 65_536
_FAULTS = ("refused", "reset", "silent", "cut", "one-way")
_NOTHING_DONE = ("UNAVAILABLE", "UNKNOWN", "OTHER", "NO_ANSWER")


def _without(s: Service, tag: str, got: Got, fault: str, due: int, *, may_work: bool) -> tuple[str, str] | None:
    """An answer while the store is away: nothing is executed. What is wrong with the answer alone is returned."""
    which = "a known key" if due else "a new key"
    if may_work and not due and got.accepted:
        s.one_effect(tag, f"{which} with the store {fault}")
        return None
    if s.effects(tag) > due:
        chosen = f": {DECLARED}" if s.profile["fail_open"]["lookup"] else ""
        s.fail("fail_open", f"{which} with the store {fault} was executed{chosen}")
    if got.accepted and not due:
        s.fail("fail_open", f"{which} with the store {fault} got {got}")
    if got.accepted or s.means(got, (*_NOTHING_DONE, *(("DUPLICATE",) if due else ()))):
        return None
    verdict = "no_verdict" if got.reason == "HANG" else "wrong_reason"
    return verdict, f"{which} with the store {fault}: expected UNAVAILABLE, got {got}"


@dataclass
class Outage:
    """A store that is away in one way: a known and a new key, then and behind it."""

    s: Service
    fault: str
    known: tuple[str, str]
    first: Got
    new: tuple[str, str]
    # An effect weighs more than a wrong answer, and may come behind it.
    wrong: list[tuple[str, str] | None] = field(default_factory=list)

    @classmethod
    def of(cls, s: Service, fault: str) -> Outage:
        """Before it begins: a key becomes known."""
        known, key = s.tag(), s.key()
        return cls(s, fault, (known, key), s.first(known, key), (s.tag(), s.key()))

    def asked(self, times: int = 2, *, may_work: bool = False) -> None:
        """While it lasts, both at once: what can be read is right to replay. `may_work`: it may take the new one."""
        for _ in range(times):
            found = self.s.burst([self.s.request(*self.known), self.s.request(*self.new)])
            for (tag, _key), got, due in zip((self.known, self.new), found, (1, 0), strict=True):
                self.wrong.append(_without(self.s, tag, got, self.fault, due, may_work=may_work))

    def over(self) -> None:
        """Behind it: the known key has its answer. A claim may have come to the store although its answer was lost."""
        s, (tag, key), why = self.s, self.known, f"a known key behind a store that was {self.fault}"
        s.retried(self.first, s.settles(s.request(tag, key), ("DUPLICATE",), why), why)
        s.one_effect(tag, why)
        s.behind_the_lease()
        (tag, key), why = self.new, f"a new key behind a store that was {self.fault}"
        # A store that worked on has taken it.
        taken = s.effects(tag)
        got = s.settles(s.request(tag, key), ("UNKNOWN", *(("DUPLICATE",) if taken else ())), why)
        s.one_effect(tag, why, 1 if got.accepted else taken)


def conclude(s: Service, outages: Sequence[Outage]) -> None:
    """Report the first answer that was wrong."""
    for found in (each for outage in outages for each in outage.wrong if each is not None):
        s.fail(*found)


@clause("IK-STORE-1", "IK-STORE-6", "IK-LIVE-2", provocations=("line",))
def test_nothing_is_executed_while_the_store_is_out_of_reach(bench: Bench) -> None:
    """A known and a new key, with each fault of the line; then the line is back, and both are asked again."""
    with service(bench, ON_A_SERVER) as s:
        outages = []
        for fault in _FAULTS:
            outage = Outage.of(s, fault)
            outages.append(outage)
            s.line(fault)
            outage.asked()
            s.line("none")
            outage.over()
            if "process" in s.wires and not s.instance("look"):
                s.fail("over_refusal", f"the instance ended when its store was {fault}")
        conclude(s, outages)


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
            if first.accepted and not got.accepted and not s.profile["fail_open"]["save"]:
                s.fail("wrong_reason", f"a plain success was answered ({first}), although its save failed ({fault})")


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
            again = s.settles(s.request(new, other), ("UNKNOWN",), "a new key behind a slow store")
            s.one_effect(new, "a new key with a slow store", 1 if got.accepted or again.accepted else 0)


@clause("IK-STORE-3", "IK-STORE-7", provocations=("serve_store",))
def test_a_store_that_only_fails_in_part_is_not_taken_for_an_empty_one(bench: Bench) -> None:
    """Each fault that the store can make itself: read-only, full, a command that is forbidden."""
    with service(bench, ON_A_SERVER) as s:
        faults = [fault for fault in s.faults if fault not in (SMALL, PURGE)]
        s.must_promise(faults, "[store.commands] has no fault and its end")
        outages = []
        for fault in faults:
            outage = Outage.of(s, fault)
            outages.append(outage)
            s.session.provoke("serve_store", {"do": fault})
            outage.asked()
            s.session.provoke("serve_store", {"do": f"{fault}{ENDS}"})
            outage.over()
        conclude(s, outages)


@clause("IK-STORE-5", provocations=("serve_store",))
def test_a_store_that_is_full_frees_no_key(bench: Bench) -> None:
    """The store is made small, and filled with large answers until one is refused."""
    with service(bench, ON_A_SERVER) as s:
        s.must_promise(SMALL in s.faults, f"[store.commands] has no {SMALL} and {SMALL}{ENDS}")
        outage = Outage.of(s, "full")
        s.session.provoke("serve_store", {"do": SMALL})
        size = min(_LARGE, s.profile["largest_answer"] or _LARGE)
        for _ in range(_FILLING):
            tag = s.tag()
            s.ending(tag, size=size)
            is_full = not s.submit(s.request(tag, s.key())).accepted
            if is_full:
                break
        s.submit(s.request(*outage.known))
        s.one_effect(outage.known[0], "a known key in a store that was filled")
        if not is_full:
            s.not_reached(f"the store took {_FILLING} answers of {size} bytes; let {SMALL} give it less room")
        s.session.provoke("serve_store", {"do": f"{SMALL}{ENDS}"})
        outage.over()


@clause("IK-STORE-4", provocations=("serve_store",))
def test_the_return_of_the_store_frees_no_key(bench: Bench) -> None:
    """The store's server is killed and started again."""
    with service(bench, ON_A_SERVER) as s:
        s.must_promise(s.profile["durable"] and s.profile["store_durable"], "keys do not outlive the store's server")
        for how in ("restart", "kill-and-restart"):
            tag, key = s.tag(), s.key()
            first = s.first(tag, key)
            s.session.provoke("serve_store", {"do": how})
            got = s.settles(s.request(tag, key), ("DUPLICATE",), f"the store's server: {how}")
            s.one_effect(tag, f"a retry behind a {how} of the store's server")
            s.retried(first, got, f"a retry behind a {how} of the store's server")
