"""A suite's verdict is taken as written only beside the exchanges of a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.cases.record import Record
from conformance.gate_suites import doubt_of_suite
from specs.loader import read_contract

TOY = read_contract(Path(__file__).parents[1] / "toycontract" / "toy")
ENTRY = {"key": "key-1", "nonce": "nonce-1"}
OK = {"outcome": "ok"}
PUT = {"op": "call", "method": "put", "args": ENTRY}
ACCEPTED = {"outcome": "accepted", "effect": "new", "value": {"entry": ENTRY}}
OPEN = {"op": "open", "state": "fresh"}

Told = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]
# A session in which one put was called, one started and finished, and one started and killed.
TOLD: tuple[Told, ...] = (
    (OPEN, OK),
    (PUT, ACCEPTED),
    (PUT, None),
    (None, ACCEPTED),
    (PUT, None),
    ({"op": "open", "state": "existing"}, OK),
    (PUT, None),
    (None, ACCEPTED),
    ({"op": "close"}, OK),
)


def records(told: tuple[Told, ...] = TOLD) -> list[Record]:
    return [Record(n, "", 0, request, answer, None, n, n) for n, (request, answer) in enumerate(told)]


def changed(at: int, **parts: Any) -> list[Record]:
    made = records()
    made[at] = replace(made[at], **parts)
    return made


def test_a_whole_session_leaves_no_doubt() -> None:
    assert doubt_of_suite(TOY, records(), {}) is None


@pytest.mark.parametrize(
    ("made", "doubt"),
    [
        (list, "0 sessions"),
        (lambda: records(((OPEN, OK), ({"op": "close"}, OK))), "0 answered calls"),
        (lambda: records(TOLD[1:]), "0 sessions"),
        (lambda: records(TOLD[:-1]), "0 sessions"),
        (lambda: changed(0, answer={"outcome": "refused", "reason": "DUPLICATE"}), "0 sessions"),
        (lambda: changed(1, answer={**ACCEPTED, "value": {"entry": {"key": "key-1"}}}), "does not fit the contract"),
        (lambda: changed(1, answer={"outcome": "shrug"}), "does not fit the protocol"),
        (lambda: changed(1, answer={"outcome": "refused", "reason": "MADE_UP"}), "does not fit the contract"),
        (lambda: changed(1, request={**PUT, "method": "take"}), "no such method"),
        (lambda: changed(2, event={"kind": "hang", "detail": ""}), "a silence"),
        (lambda: changed(3, answer={"outcome": "refused", "reason": "MADE_UP"}), "does not fit the contract"),
        (lambda: records((*TOLD[:6], *TOLD[7:])), "asked nothing"),
    ],
)
def test_what_no_conforming_test_leaves_behind_is_doubted(made: Callable[[], list[Record]], doubt: str) -> None:
    assert doubt in str(doubt_of_suite(TOY, made(), {}))
