"""What suite tests have devices do, and how what these show is held against the model."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.checked import must_show
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.suites.hx_sync.model import shown_by, status_of
from holdfast.conformance.suites.hx_sync.permutations import Made, ObjectBuilder, due
from holdfast.conformance.suites.hx_sync.view import Row, View


def place(session: SuiteSession, made: Iterable[Made]) -> None:
    """Put objects into the store, as a synchronised folder would."""
    for each in made:
        session.place(each.key, each.data)


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
    bench: Bench, session: SuiteSession, nodes: Sequence[str], expected: View, told: str, worker: int = 0
) -> None:
    """Every one of these devices shows what is due, under the digest that follows from it."""
    state = session.observe("state", worker=worker)
    for node in nodes:
        must_show(bench, shown_by(node, expected), state, told)


def compare_status(bench: Bench, session: SuiteSession, node: str, expected: View, told: str) -> None:
    """What the status counts follows from the set as well."""
    must_show(bench, status_of(node, expected), session.observe("status", {"node": node}), told)


def unread(
    bench: Bench, session: SuiteSession, path: str, canaries: list[Any], told: str, *, but: str | None = None
) -> None:
    """None of these can be read anywhere below a folder, but in files whose names begin so."""
    found = [
        each
        for each in (session.search(path, canaries) if canaries else [])
        if but is None or not each["path"].rpartition("/")[2].startswith(but)
    ]
    if found:
        bench.fail("fail_open", f"below {path} can be read {told}", received=repr(found))


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
