"""What the exchanges of a case send of a contract's matrix: each attack counts where it was made, and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.conformance.matrix.__main__ import filling_of, updated
from holdfast.conformance.matrix.count import counted, held_against
from holdfast.conformance.matrix.sent import sent
from holdfast.conformance.run.plan import Form, PlannedCase, plan_of
from holdfast.reports.evidence import Event, Exchange
from holdfast.specs import load_contract
from holdfast.specs.matrix import Attack, Hook, Matrix, Row
from holdfast.specs.mutants import Mutant, Mutants

CONTRACT = load_contract("rs4a-replay")
TEST = PlannedCase("rs4a-replay/suite/made-up", "rs4a-replay", ("RS4A-RP-01",), "made up", Form.SUITE, frozenset())
HOOKS = {
    "hold_at": Hook("fault", {"abort": Attack.FAILING_CALLS}, once=True),
    "break_surface": Hook("how", {"unreachable": Attack.MISSING_WHILE}),
    "alter_database": Hook("change", {"lacking": Attack.DAMAGED_WHILE}),
}
MATRIX = Matrix(
    "rs4a-replay",
    horizon="ttl_seconds",
    volume=9,
    store=("store/",),
    hooks=HOOKS,
    operations={"register": Row(rivals=("maintain",), parameters=("ttl_seconds",))},
)
NEW, REFUSED = {"outcome": "accepted", "effect": "new"}, {"outcome": "refused", "reason": "REPLAY_DUPLICATE"}
OK = {"outcome": "ok"}
KEYED = {"request": {"attempt_id": "one"}}


# A worker that opens what is there, and a call without an answer.
OPENED = {"op": "open", "state": "existing", "clock": "2026-01-01T00:00:00Z", "surface": "ready"}
LOST = {"op": "call", "method": "register", "args": KEYED}
MALFORMED = {"outcome": "refused", "reason": "REQUEST_MALFORMED"}
CALLS: dict[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]] = {
    "new": ("register", NEW, KEYED),
    "refused": ("register", REFUSED, KEYED),
    "another": ("register", NEW, {}),
    "another-refused": ("register", REFUSED, {}),
    "second": ("register", NEW, {"request": {"attempt_id": "two"}}),
    "malformed": ("register", MALFORMED, {"request": {"issued_at": "x"}}),
    "earliest": ("register", NEW, {"request": {"issued_at": "2025-12-31T23:55:00Z"}}),
    "too-early": ("register", REFUSED, {"request": {"issued_at": "2025-12-31T23:54:59.999Z"}}),
    "maintain": ("maintain", NEW, {}),
    "abort": ("hold_at", OK, {"point": "before_commit", "fault": "abort"}),
    "unreachable": ("break_surface", OK, {"how": "unreachable"}),
}


def told(steps: str) -> list[Exchange]:
    """The exchanges of a case on a fresh store, by its steps: `open 1; new; clock INSTANT; state ROWS; refused@1`.

    A call is a name of CALLS, and may have a worker and times of its own: `new@1 1005-1020`. All else the harness does.
    """
    made: list[Exchange] = []

    def put(action: str, worker: int, request: Any, answer: Any, event: Event | None = None, times: str = "") -> None:
        at = 10 * len(made)
        sent_us, received_us = map(int, times.split("-")) if times else (None, None) if event else (at, at + 5)
        made.append(Exchange(TEST.id, "main", len(made), action, worker, request, answer, event, sent_us, received_us))

    put("exchange", 0, {**OPENED, "state": "fresh"}, OK)
    for step in steps.split("; "):
        first, _, rest = step.partition(" ")
        name, _, worker = first.partition("@")
        if name in CALLS:
            method, answer, args = CALLS[name]
            put("exchange", int(worker or 0), {"op": "call", "method": method, "args": args}, answer, times=rest)
        elif name == "state":
            value: dict[str, Any] = {"registration": [{}] * int(rest or 0)}
            put("exchange", 0, {"op": "call", "method": "state", "args": {}}, {**OK, "value": value})
        elif name in ("open", "clock"):
            put("exchange", *(((int(rest), OPENED)) if name == "open" else (0, {"op": "clock", "now": rest})), OK)
        elif name == "lost":
            put("exchange", 0, LOST, None)
        else:
            put(step, 0, None, None, Event("done", ""))
    return made


INERT, GONE, FORWARD = "inert REPLAY_DUPLICATE", "store-missing-while-it-runs", "clock-forward"
AWAY_AND_BACK = "state; tamper store/file; refused; refused; place store/file; state"
LATE, BACK = "2026-01-01T00:05:01Z", "2025-12-31T00:00:00Z"
# What is sent of the row `register`.
SENT: dict[str, tuple[str, dict[str, int]]] = {
    "retry in one process": ("new; refused", {"retry-here": 1}),
    "retry through another worker": ("open 1; new; refused@1", {"retry-elsewhere": 1}),
    "retry in a process started since": ("new; kill 0; open 0; refused", {"kill": 1, "retry-restarted": 1}),
    "retry within the horizon": ("new; clock 2026-01-01T00:05:00Z; refused", {"retry-here": 1, FORWARD: 1}),
    "retry beyond it": (f"new; clock {LATE}; refused", {"retry-here": 1, "retry-later": 1, FORWARD: 1}),
    "no retry of what was refused": ("refused; new", {}),
    "calls that overlap": (
        "open 1; new 1000-1010; another@1 1005-1020; maintain 1015-1030; second@1 1040-1050",
        {"concurrent": 1, "beside maintain": 1},
    ),
    "no retry by a rival": ("open 1; new 1000-1010; refused@1 1005-1020", {"concurrent": 1}),
    "kill of a call under way": ("maintain; lost; kill 0", {"kill": 1}),
    "kill of a store that was left": ("restart 0: stop; open 0; new; kill 0", {"kill-in-a-second-session": 1}),
    "refusal between two observations": ("refused; state; refused; state", {INERT: 1}),
    "no refusal behind an acceptance": ("state; refused; state; new; refused; state", {INERT: 1, "retry-here": 1}),
    "refusal without a store": (AWAY_AND_BACK, {INERT: 2, GONE: 2}),
    "no refusal beside an acceptance": (
        f"{AWAY_AND_BACK}; tamper store/file; new; refused; place store/file; state",
        {INERT: 2, GONE: 4, "retry-here": 1},
    ),
    "store that is removed": ("tamper store/file; refused", {GONE: 1}),
    "store that was missing": ("tamper store/file; open 1; refused@1", {"store-missing": 1}),
    "store that came back": ("tamper store/file; place store/file; open 1; refused@1", {}),
    "store that is replaced": (
        "tamper store/file; place store/file; tamper store/log; place store/file; open 2; refused@2",
        {"store-replaced": 1},
    ),
    "no file beside the store": ("tamper other/file; refused", {}),
    "provocation of one call": ("abort; refused; another", {"failing-calls": 1}),
    "provocation that lasts": ("unreachable; refused; another-refused", {GONE: 2}),
    "database until it is whole": (
        "alter_database lacking registration.nonce; new; alter_database complete registration.nonce; second",
        {"store-damaged-while-it-runs": 1},
    ),
    "clock that was stepped": (f"new; clock {BACK}; another", {"clock-back": 1}),
    "call among many rows": ("state 9; new; state 10", {"volume": 1}),
    "no boundary from one side": ("earliest", {}),
    "boundary from both sides": ("earliest; too-early", {"boundary ttl_seconds": 2}),
    "value of a wrong form": ("malformed", {"format request.issued_at": 1}),
}


@pytest.mark.parametrize("what", SENT)
def test_an_attack_counts_where_it_was_made(what: str) -> None:
    steps, due = SENT[what]
    pairs = sent(CONTRACT, MATRIX, TEST, {"main": told(steps)})
    shown = {cell: count for (row, cell), count in pairs.items() if row == "register"}
    assert shown == due


def test_a_cell_of_a_run_counts_by_its_exchanges_alone() -> None:
    assert counted(CONTRACT, [TEST], {}) is not None
    empty = held_against(CONTRACT, MATRIX, {})
    full = held_against(CONTRACT, MATRIX, sent(CONTRACT, MATRIX, TEST, {"main": told("new; refused")}))
    assert (empty.filled, full.filled) == (0, 1)


def test_a_cell_that_only_a_generator_fills_is_open_until_a_bug_dies_by_it() -> None:
    history = next(case for case in plan_of(CONTRACT) if case.whole)
    filling = filling_of([{history.id: {("register", "retry-here"): 4}}])  # type: ignore[dict-item]
    bug = Mutant("forgets", "It forgets", {history.clauses[0]: "fail_open"})
    known = Mutants("rs4a-replay", mutants=(bug,))
    without = updated(CONTRACT, MATRIX, filling, known).operations["register"]
    named = Row(mutants={"retry-here": ("forgets",)})
    shown = updated(CONTRACT, Matrix("rs4a-replay", operations={"register": named}), filling, known)
    assert "retry-here" in without.left()
    assert shown.operations["register"].cells["retry-here"] == (history.id,)
