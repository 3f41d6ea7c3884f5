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


class Told:
    """The exchanges of a case, as they are told one after the other."""

    def __init__(self) -> None:
        self.exchanges: list[Exchange] = []
        self._at = 0
        self.asks({"op": "open", "state": "fresh", "clock": "2026-01-01T00:00:00Z", "surface": "ready"}, OK)

    def asks(self, request: Mapping[str, Any], answer: Mapping[str, Any] | None, worker: int = 0, **times: int) -> None:
        """One request with its answer, after all others unless `times` say otherwise."""
        self._at += 10
        made = {"sent_us": self._at, "received_us": self._at + 5, **times}
        self._put("exchange", worker, request, answer, None, **made)

    def calls(self, method: str, answer: Mapping[str, Any], worker: int = 0, **more: Any) -> None:
        """A call; `args` among `more`."""
        self.asks({"op": "call", "method": method, "args": more.pop("args", KEYED)}, answer, worker, **more)

    def does(self, note: str, worker: int = 0, detail: str = "") -> None:
        """An act of the harness itself."""
        self._put(note, worker, None, None, Event("done", detail))

    def opens(self, worker: int) -> None:
        """A worker that opens what is there."""
        self.asks({"op": "open", "state": "existing", "clock": "2026-01-01T00:00:00Z", "surface": "ready"}, OK, worker)

    def clock(self, now: str) -> None:
        """The time is set."""
        self.asks({"op": "clock", "now": now}, OK)

    def state(self, rows: int = 0) -> None:
        """The state is observed."""
        self.calls("state", {**OK, "value": {"registration": [{}] * rows}}, args={})

    def _put(
        self,
        action: str,
        worker: int,
        request: Mapping[str, Any] | None,
        answer: Mapping[str, Any] | None,
        event: Event | None,
        sent_us: int | None = None,
        received_us: int | None = None,
    ) -> None:
        number = len(self.exchanges)
        self.exchanges.append(
            Exchange(TEST.id, "main", number, action, worker, request, answer, event, sent_us, received_us)
        )

    def shows(self) -> dict[str, int]:
        """What was sent of the row `register`."""
        pairs = sent(CONTRACT, MATRIX, TEST, {"main": self.exchanges})
        return {cell: count for (row, cell), count in pairs.items() if row == "register"}


@pytest.fixture
def told() -> Told:
    """A session on a fresh store."""
    return Told()


def test_a_retry_in_the_same_process_is_no_retry_in_another_one(told: Told) -> None:
    told.calls("register", NEW)
    told.calls("register", REFUSED)
    assert told.shows() == {"retry-here": 1}


def test_a_retry_through_another_worker_is_one_elsewhere(told: Told) -> None:
    told.opens(1)
    told.calls("register", NEW)
    told.calls("register", REFUSED, 1)
    assert told.shows() == {"retry-elsewhere": 1}


def test_a_retry_in_a_process_that_was_started_since_is_one_after_a_restart(told: Told) -> None:
    told.calls("register", NEW)
    told.does("kill 0")
    told.opens(0)
    told.calls("register", REFUSED)
    assert told.shows() == {"kill": 1, "retry-restarted": 1}


def test_a_retry_is_late_only_beyond_the_horizon(told: Told) -> None:
    told.calls("register", NEW)
    told.clock("2026-01-01T00:05:00Z")
    told.calls("register", REFUSED)
    assert "retry-later" not in told.shows()
    told.clock("2026-01-01T00:05:01Z")
    told.calls("register", REFUSED)
    assert told.shows()["retry-later"] == 1


def test_what_was_refused_before_is_not_retried(told: Told) -> None:
    told.calls("register", REFUSED)
    told.calls("register", NEW)
    assert "retry-here" not in told.shows()


def test_calls_are_concurrent_only_where_they_overlap(told: Told) -> None:
    told.opens(1)
    told.calls("register", NEW, 0, sent_us=1000, received_us=1010)
    told.calls("register", NEW, 1, sent_us=1005, received_us=1020, args={})
    told.calls("maintain", NEW, 0, sent_us=1015, received_us=1030, args={})
    told.calls("register", NEW, 1, sent_us=1040, received_us=1050, args={"other": 1})
    assert told.shows() == {"concurrent": 1, "beside maintain": 1}


def test_a_rival_with_the_same_arguments_is_no_retry(told: Told) -> None:
    told.opens(1)
    told.calls("register", NEW, 0, sent_us=1000, received_us=1010)
    told.calls("register", REFUSED, 1, sent_us=1005, received_us=1020)
    assert told.shows() == {"concurrent": 1}


def test_a_kill_while_a_call_is_under_way_is_one_of_that_call(told: Told) -> None:
    told.calls("maintain", NEW, args={})
    told.asks({"op": "call", "method": "register", "args": KEYED}, None)
    told.does("kill 0")
    assert told.shows() == {"kill": 1}


def test_a_kill_of_a_store_that_a_process_has_left_before_is_one_in_a_second_session(told: Told) -> None:
    told.does("restart 0: stop")
    told.opens(0)
    told.calls("register", NEW)
    told.does("kill 0")
    assert told.shows() == {"kill-in-a-second-session": 1}


def test_a_refusal_counts_as_inert_only_between_two_observations_with_nothing_accepted_between(told: Told) -> None:
    told.calls("register", REFUSED)
    told.state()
    told.calls("register", REFUSED)
    told.state()
    assert told.shows() == {"inert REPLAY_DUPLICATE": 1}
    told.calls("register", NEW)
    told.calls("register", REFUSED)
    told.state()
    assert told.shows()["inert REPLAY_DUPLICATE"] == 1


def test_a_refusal_is_inert_too_where_the_store_was_away_and_is_back(told: Told) -> None:
    told.state()
    told.does("tamper store/file")
    told.calls("register", REFUSED)
    told.calls("register", REFUSED)
    told.does("place store/file")
    told.state()
    assert told.shows()["inert REPLAY_DUPLICATE"] == 2
    told.does("tamper store/file")
    told.calls("register", NEW)
    told.calls("register", REFUSED)
    told.does("place store/file")
    told.state()
    assert told.shows()["inert REPLAY_DUPLICATE"] == 2


def test_a_store_that_is_removed_under_a_process_is_not_one_that_was_missing_before(told: Told) -> None:
    told.does("tamper store/file")
    told.calls("register", REFUSED)
    assert told.shows() == {"store-missing-while-it-runs": 1}
    told.opens(1)
    told.calls("register", REFUSED, 1)
    assert told.shows()["store-missing"] == 1


def test_a_store_that_was_lost_and_came_back_can_be_replaced_later(told: Told) -> None:
    for note in ("tamper store/file", "place store/file"):
        told.does(note)
    told.opens(1)
    told.calls("register", REFUSED, 1)
    assert told.shows() == {}
    for note in ("tamper store/log", "place store/file"):
        told.does(note)
    told.opens(2)
    told.calls("register", REFUSED, 2)
    assert told.shows()["store-replaced"] == 1


def test_a_file_beside_the_store_is_none_of_it(told: Told) -> None:
    told.does("tamper other/file")
    told.calls("register", REFUSED)
    assert told.shows() == {}


def test_a_provocation_for_one_call_attacks_the_next_call_of_its_worker(told: Told) -> None:
    told.calls("hold_at", OK, args={"point": "before_commit", "fault": "abort"})
    told.calls("register", REFUSED)
    told.calls("register", NEW, args={})
    assert told.shows() == {"failing-calls": 1}


def test_a_provocation_that_lasts_attacks_every_call_after_it(told: Told) -> None:
    told.calls("break_surface", OK, args={"how": "unreachable"})
    told.calls("register", REFUSED)
    told.calls("register", REFUSED, args={})
    assert told.shows() == {"store-missing-while-it-runs": 2}


def test_a_database_that_the_harness_altered_attacks_every_call_until_it_is_whole_again(told: Told) -> None:
    told.does("alter_database lacking registration.nonce")
    told.calls("register", NEW)
    told.does("alter_database complete registration.nonce")
    told.calls("register", NEW, args={"request": {"attempt_id": "two"}})
    assert told.shows() == {"store-damaged-while-it-runs": 1}


def test_a_clock_that_was_stepped_counts_against_the_calls_before(told: Told) -> None:
    told.calls("register", NEW)
    told.clock("2025-12-31T00:00:00Z")
    told.calls("register", NEW, args={})
    assert told.shows() == {"clock-back": 1}


def test_a_call_counts_as_one_among_many_rows_where_an_observation_shows_them(told: Told) -> None:
    told.state(9)
    told.calls("register", NEW)
    told.state(10)
    assert told.shows() == {"volume": 1}


def test_a_boundary_is_drawn_only_from_both_sides(told: Told) -> None:
    told.calls("register", NEW, args={"request": {"issued_at": "2025-12-31T23:55:00Z"}})
    assert told.shows() == {}
    told.calls("register", REFUSED, args={"request": {"issued_at": "2025-12-31T23:54:59.999Z"}})
    assert told.shows() == {"boundary ttl_seconds": 2}


def test_a_refused_value_of_a_wrong_form_counts_for_its_leaf(told: Told) -> None:
    told.calls("register", {"outcome": "refused", "reason": "REQUEST_MALFORMED"}, args={"request": {"issued_at": "x"}})
    assert told.shows() == {"format request.issued_at": 1}


def test_a_cell_of_a_run_counts_by_its_exchanges_alone(told: Told) -> None:
    assert counted(CONTRACT, [TEST], {}) is not None
    empty = held_against(CONTRACT, MATRIX, {})
    told.calls("register", NEW)
    told.calls("register", REFUSED)
    full = held_against(CONTRACT, MATRIX, sent(CONTRACT, MATRIX, TEST, {"main": told.exchanges}))
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
