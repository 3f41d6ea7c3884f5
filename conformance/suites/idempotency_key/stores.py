"""A store that is out of reach, slow, or half there (IK-STORE, IK-LIVE)."""

from __future__ import annotations

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.idempotency_key.asking import DECLARED, Service, service

# The reference has a store at an address on PostgreSQL; another service is asked with the store that it has.
_ON_A_SERVER = {"store": "postgres"}
_FAULTS = ("refused", "reset", "silent", "cut", "one-way")
_NOTHING_DONE = ("UNAVAILABLE", "UNKNOWN", "OTHER", "NO_ANSWER")


def _without(s: Service, tag: str, key: str, fault: str, *, known: bool) -> tuple[str, str] | None:
    """One request while the store is away: nothing is executed. What is wrong with its answer alone is returned."""
    before = s.effects(tag)
    got = s.submit(s.request(tag, key))
    found = s.effects(tag)
    which = "a known key" if known else "a new key"
    if found > before:
        if s.profile["fail_open"]["lookup"]:
            s.fail("fail_open", f"{which} with the store {fault} was executed: {DECLARED}")
        s.fail("fail_open", f"{which} with the store {fault} was executed")
    if got.accepted and not known:
        s.fail("fail_open", f"{which} with the store {fault} got {got}")
    if got.accepted or s.means(got, (*_NOTHING_DONE, *(("DUPLICATE",) if known else ()))):
        return None
    verdict = "no_verdict" if got.reason == "HANG" else "wrong_reason"
    return verdict, f"{which} with the store {fault}: expected UNAVAILABLE, got {got}"


@clause("IK-STORE-1", "IK-STORE-6", "IK-LIVE-2", provocations=("line",))
def test_nothing_is_executed_while_the_store_is_out_of_reach(bench: Bench) -> None:
    """A known and a new key, with each fault of the line; then the line is back, and both are asked again."""
    with service(bench, _ON_A_SERVER) as s:
        # An effect weighs more than a wrong answer, and may come behind it.
        wrong: list[tuple[str, str] | None] = []
        for fault in _FAULTS:
            known, key = s.tag(), s.key()
            first = s.first(known, key)
            new, other = s.tag(), s.key()
            s.line(fault)
            for _ in range(2):
                wrong += [_without(s, known, key, fault, known=True), _without(s, new, other, fault, known=False)]
            s.line("none")
            got = s.settles(s.request(known, key), ("DUPLICATE",), f"a known key behind a store that was {fault}")
            s.retried(first, got, f"a known key behind a store that was {fault}")
            s.one_effect(known, f"a known key behind a store that was {fault}")
            # A claim may have come to the store although its answer was lost.
            s.behind_the_lease()
            got = s.settles(s.request(new, other), ("UNKNOWN",), f"a new key behind a store that was {fault}")
            s.one_effect(new, f"a new key behind a store that was {fault}", 1 if got.accepted else 0)
            if "process" in s.wires and not s.instance("look"):
                s.fail("over_refusal", f"the instance ended when its store was {fault}")
        for found in filter(None, wrong):
            s.fail(*found)


@clause("IK-STORE-2", "IK-LIVE-1", provocations=("line", "hold"))
def test_a_store_that_is_lost_before_the_record_does_not_make_the_retry_an_effect(bench: Bench) -> None:
    """The line fails while the handler is held, and is back behind it."""
    with service(bench, _ON_A_SERVER) as s:
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
    with service(bench, _ON_A_SERVER) as s:
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
    with service(bench, _ON_A_SERVER) as s:
        s.must_promise(s.faults, "[store.commands] has no fault and its end")
        wrong: list[tuple[str, str] | None] = []
        for fault in s.faults:
            known, key = s.tag(), s.key()
            first = s.first(known, key)
            new, other = s.tag(), s.key()
            s.session.provoke("serve_store", {"do": fault})
            for _ in range(2):
                # What can still be read is still right to replay.
                wrong += [_without(s, known, key, fault, known=True), _without(s, new, other, fault, known=False)]
            s.session.provoke("serve_store", {"do": f"{fault}-end"})
            got = s.settles(s.request(known, key), ("DUPLICATE",), f"a known key behind a store that was {fault}")
            s.retried(first, got, f"a known key behind a store that was {fault}")
            s.behind_the_lease()
            got = s.settles(s.request(new, other), ("UNKNOWN",), f"a new key behind a store that was {fault}")
            s.one_effect(new, f"a new key behind a store that was {fault}", 1 if got.accepted else 0)
            s.one_effect(known, f"a known key behind a store that was {fault}")
        for found in filter(None, wrong):
            s.fail(*found)


@clause("IK-STORE-4", provocations=("serve_store",))
def test_the_return_of_the_store_frees_no_key(bench: Bench) -> None:
    """The store's server is killed and started again."""
    with service(bench, _ON_A_SERVER) as s:
        s.must_promise(s.profile["durable"] and s.profile["store_durable"], "keys do not outlive the store's server")
        for how in ("restart", "kill-and-restart"):
            tag, key = s.tag(), s.key()
            first = s.first(tag, key)
            s.session.provoke("serve_store", {"do": how})
            got = s.settles(s.request(tag, key), ("DUPLICATE",), f"the store's server: {how}")
            s.one_effect(tag, f"a retry behind a {how} of the store's server")
            s.retried(first, got, f"a retry behind a {how} of the store's server")
