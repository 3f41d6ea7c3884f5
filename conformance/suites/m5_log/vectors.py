"""m5-log: encodings of RFC 8949, signatures at the edges of RFC 8032, each in an operation that is sound otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.m5_log.generate import Made, state_of
from holdfast.conformance.suites.m5_log.log import must_be_refused
from holdfast.conformance.suites.session import SuiteSession
from holdfast.vectors.derive import derive
from holdfast.vectors.m5_log.committed import encodings
from holdfast.vectors.m5_log.edges import NAMES, SOUND


def _draft(session: SuiteSession, number: int, value: Any) -> Mapping[str, Any]:
    payload = {"key": f"k {number}", "value": value}
    return {
        "key": f"alice {session.rand('alice')}",
        "ms": 1000 + number,
        "kind": "set",
        "parents": [],
        "payload": payload,
    }


def _accepted(bench: Bench, session: SuiteSession, op: str, what: str) -> None:
    answer = session.call("put_op", {"op": op})
    received = f"{answer.outcome} {answer.reason or answer.effect}"
    if answer.outcome != "accepted":
        bench.fail("over_refusal", f"{what} is to be accepted", expected="accepted new", received=received)
    if answer.effect != "new":
        bench.fail("lost_durability", f"{what} is new", expected="accepted new", received=received)


def _refused(bench: Bench, session: SuiteSession, op: str, what: str, reason: str) -> None:
    must_be_refused(bench, session.call("put_op", {"op": op}), reason, what)


@clause("M5-PUT-6", "M5-PUT-7")
def test_encodings_of_the_rfc_are_read_or_refused_as_the_contract_says(bench: Bench) -> None:
    """Appendix A with what an operation may hold and what not, Appendix F, and other spellings of what it may hold."""
    with bench.session(hurried=False) as session:
        stored = []
        for number, record in enumerate(encodings()):
            draft = _draft(session, number, {"cbor": record["cbor"]})
            op = derive("m5.op", draft)
            if "value" in record:
                _accepted(bench, session, op, f"a value with the encoding {record['cbor']}")
                stored.append(Made(draft, op, derive("m5.op_id", op)))
            else:
                _refused(bench, session, op, f"{record['cbor']} ({record['why']})", "NON_CANONICAL")
        due, dumped = state_of(stored, []), session.observe("dump", {"from": "genesis"})["state"]
        if dumped != due:
            verdict = bench.verdict_on("dump", {"state": due}, {"state": dumped})
            bench.fail(verdict, "the state is not that of what was accepted", expected=due, received=dumped)


@clause("M5-PUT-1")
def test_signatures_at_the_edges_of_the_curve_are_none(bench: Bench) -> None:
    """Keys, R and S that satisfy the equation, or do with a cofactor; and one of mixed order, which is a signature."""
    with bench.session(hurried=False) as session:
        for number, name in enumerate(NAMES):
            draft = _draft(session, number, number)
            if name != SOUND:
                # Its twin: the same operation with a signature of its author, who is another one then.
                _accepted(bench, session, derive("m5.op", draft), f"the operation {number} with an ordinary signature")
                edge = derive("m5.edge", {"op": draft, "name": name})
                _refused(bench, session, edge, f"a signature at an edge ({name})", "SIGNATURE_INVALID")
            else:
                _accepted(bench, session, derive("m5.edge", {"op": draft, "name": name}), f"a signature ({name})")
        found = session.observe("topo_iter")["op_ids"]
        if len(found) != len(NAMES):
            bench.fail("fail_open", "other operations are stored than were accepted", received=", ".join(found))
