"""What suite tests have devices do, and how what these show is held against the model."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.suites.hx_sync.model import LISTS, Model, Row
from holdfast.conformance.suites.hx_sync.permutations import Made, ObjectBuilder, due


def place(session: SuiteSession, made: Iterable[Made]) -> None:
    """Put objects into the store, as a synchronised folder would."""
    for each in made:
        session.place(each.key, each.data)


def shown(state: Row, node: str) -> dict[str, list[Row]]:
    """What one device shows, without its name."""
    return {
        name: [{part: row[part] for part in row if part != "at"} for row in state[name] if row["at"] == node]
        for name in LISTS
    }


def published(bench: Bench, session: SuiteSession, made: Iterable[Made], worker: int = 0) -> None:
    """Have devices publish the same objects themselves; each reports the key that is due."""
    for each in made:
        value = bench.must_be(session.call(each.method, each.args, worker), "accepted", f"{each.method} was refused")
        bench.same(value["key"], each.key, "wrong_reason", "another key")


def import_all(bench: Bench, session: SuiteSession, node: str, worker: int = 0) -> Row:
    """Import everything; it must be accepted."""
    answer = session.call("import", {"node": node}, worker)
    value: Row = bench.must_be(answer, "accepted", f"import by {node} was refused")
    return value


def import_one(bench: Bench, session: SuiteSession, node: str, key: str, worker: int = 0) -> None:
    """Import an object, which must be accepted."""
    answer = session.call("import_object", {"node": node, "key": key}, worker)
    bench.must_be(answer, "accepted", f"{key} was not imported by {node}")


def compare(
    bench: Bench, session: SuiteSession, nodes: Sequence[str], expected: Model, told: str, worker: int = 0
) -> None:
    """Every one of these devices shows what the model has, under the digest that follows from it."""
    state = session.observe("state", worker=worker)
    for node in nodes:
        held(bench, state, node, expected, told)


def held(bench: Bench, state: Row, node: str, expected: Model, told: str) -> None:
    """In this state a device shows what the model has."""
    digests = {row["at"]: row["digest"] for row in state["digests"]}
    found = shown(state, node)
    for name in LISTS:
        _hold(bench, name, expected.state[name], found[name], f"{told}: {node}")
    bench.same(
        digests.get(node), expected.digest, "wrong_reason", f"{told}: {node} shows the right rows under another digest"
    )


def compare_status(bench: Bench, session: SuiteSession, node: str, expected: Model, told: str, worker: int = 0) -> Row:
    """What the status counts follows from the set as well; the status."""
    status: Row = session.observe("status", {"node": node}, worker)
    found = {
        "forgotten": status["forgotten"],
        "events": status["events"],
        "tombstones": status["tombstones"],
        "conflicts": {row["event_key"]: row["contents"] for row in status["conflicts"]},
    }
    want = {
        "forgotten": len(expected.forgotten),
        "events": len(expected.state["events"]),
        "tombstones": len(expected.state["tombstones"]),
        "conflicts": expected.conflicts,
    }
    bench.same(found, want, "state_leak", f"{told}: the status of {node} is another")
    return status


def _hold(bench: Bench, name: str, expected: Sequence[Row], found: Sequence[Row], told: str) -> None:
    if list(found) == list(expected):
        return
    missing = [row for row in expected if row not in found]
    surplus = [row for row in found if row not in expected]
    if surplus:
        # What is shown though it was forgotten, or was never said, is the worse of the two.
        bench.fail("fail_open", f"{told} shows {name} that it must not", expected="none", received=repr(surplus[:3]))
    if missing:
        bench.fail("lost_durability", f"{told} lacks {name}", expected=repr(missing[:3]), received=repr(found)[:300])
    verdict = bench.verdict_on("state", {name: list(expected)}, {name: list(found)})
    bench.weigh(verdict, f"{told} shows {name} twice or in another order", received=repr(found)[:300])


def enroll(bench: Bench, session: SuiteSession, node: str, worker: int = 0) -> None:
    """One more device, with an id of its own."""
    node_id = ObjectBuilder(bench, session, "nodes").node_id(node)
    session.accepted("enroll", {"node": node, "node_id": node_id}, worker)


def all_orders(bench: Bench, session: SuiteSession, made: Sequence[Made], first: Sequence[Made] = ()) -> None:
    """Each order on a device of its own, behind `first`. All show what the model has.

    Every second one has imported each object alone, so nothing else can have mended what that left.
    """
    place(session, (*first, *made))
    expected, nodes = due([*first, *made]), []
    for number, order in enumerate(itertools.permutations(made)):
        nodes.append(f"p{number}")
        enroll(bench, session, nodes[-1])
        for each in (*first, *order):
            import_one(bench, session, nodes[-1], each.key)
        if number % 2:
            import_all(bench, session, nodes[-1])
    compare(bench, session, nodes, expected, "after one of all orders")
    for node in (nodes[0], nodes[-1]):
        compare_status(bench, session, node, expected, "after one of all orders")


def in_some_order(bench: Bench, session: SuiteSession, node: str, made: Sequence[Made], dice: random.Random) -> None:
    """Import them one by one in a random order, some again, by either worker; then all that is left."""
    order = dice.sample(list(made), len(made))
    for each in order + dice.sample(order, len(order) // 3):
        import_one(bench, session, node, each.key, worker=dice.randrange(2))
    import_all(bench, session, node, worker=dice.randrange(2))


def publish(
    bench: Bench, session: SuiteSession, node: str, segment_id: str, batch: dict[str, Any], worker: int = 0
) -> str:
    """Have a device publish a segment; its key."""
    answer = session.call("publish", {"node": node, "segment_id": segment_id, "batch": batch}, worker)
    key: str = bench.must_be(answer, "accepted", "publish was refused")["key"]
    return key


def must_show(bench: Bench, session: SuiteSession, nodes: Sequence[str], left: Sequence[int], told: str) -> None:
    """Every one of these devices shows events of these numbers, and no pins of others."""
    state = session.observe("state")
    for node in nodes:
        found = sorted(row["seq"] for row in state["events"] if row["at"] == node)
        if found != list(left):
            verdict = "fail_open" if set(found) - set(left) else "lost_durability"
            bench.fail(verdict, f"{told}, {node} shows other events", expected=repr(left), received=repr(found))
        pins = [row["seq"] for row in state["pins"] if row["at"] == node and row["seq"] not in left]
        if pins:
            bench.fail("fail_open", f"{told}, {node} shows pins of what is forgotten", received=repr(pins))
