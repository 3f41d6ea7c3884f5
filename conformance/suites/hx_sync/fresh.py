"""No two objects have a key or a nonce in common, of any type and in any store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.conformance.cases.values import base64url
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.hx_sync.history import World, at
from holdfast.conformance.suites.session import SuiteSession
from holdfast.vectors.derive import derive


@dataclass(frozen=True, slots=True)
class _Published:
    """An object as it lies in the store: what it is, for words, its type, and its bytes as base64url."""

    what: str
    type: str
    data: str


def apart(bench: Bench, algorithm: str) -> None:
    """Two sessions publish alike; of all objects no two share anything that must be random for each."""
    found: list[_Published] = []
    for store in ("one store", "another store"):
        with bench.session(workers=2, config={"algorithm": algorithm}) as session:
            found += _all_types(bench, session, store)
    for each in found:
        wrong = derive("hx.published", {"object": each.data, "type": each.type})
        if wrong:
            bench.fail("wrong_reason", f"{each.what} is not as the contract has it", received=", ".join(wrong))
        parts = derive("hx.parts", each.data)
        if parts["algorithm"] != algorithm:
            received = str(parts["algorithm"])
            bench.fail("wrong_reason", f"{each.what} has another algorithm", expected=algorithm, received=received)
    if derive("hx.common", [each.data for each in found]):
        _tell(bench, found)


def _tell(bench: Bench, found: list[_Published]) -> None:
    """Fail with the first two that have something in common."""
    for number, each in enumerate(found):
        for other in found[: number + 1]:
            # Of one alone: whether a nonce stands in it twice, or its key is that of the vault.
            common = derive("hx.common", [each.data] if other is each else [other.data, each.data])
            if common:
                received = ", ".join(common)
                bench.fail("fail_open", f"{other.what} and {each.what} have something in common", received=received)
    bench.fail("fail_open", "objects have something in common")


def _all_types(bench: Bench, session: SuiteSession, store: str) -> Iterator[_Published]:
    """Every type several times: of equal content where that makes another object, and by two processes."""
    world = World(bench, session, "apart")
    window = {"start_ts": at(0), "end_ts": at(1)}
    for round_ in range(2):
        for node in ("a", "b"):
            label = f"{node} {round_}"
            batch = {"events": [world.event(node, "s1", 0, at(100))]}
            calls: dict[str, tuple[str, dict[str, Any]]] = {
                "segment": ("publish", {"segment_id": world.uuid(f"segment {label}"), "batch": batch}),
                "blob": ("publish_blob", {"bytes": base64url(label.encode())}),
                "tombstone": ("forget", {"tombstone_id": world.uuid(f"tombstone {label}"), **window}),
                "manifest": ("publish_manifest", {}),
            }
            for kind, (method, args) in calls.items():
                answer = session.call(method, {"node": node, **args}, round_)
                what = f"a {kind} of {node} in {store}"
                if (answer.outcome, answer.effect) != ("accepted", "new"):
                    received = f"{answer.outcome} {answer.effect or answer.reason}"
                    bench.fail("over_refusal", f"{what} was not published", expected="new", received=received)
                data = session.file(answer.value["key"])["bytes"]
                if data is None:
                    bench.fail("lost_durability", f"{what} does not lie at {answer.value['key']}")
                yield _Published(what, kind, data)
