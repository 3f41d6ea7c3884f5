"""What an answer of a mailbox means beside the answers that the model has for it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from holdfast.conformance.cases.session import Answer
from holdfast.conformance.suites.calyx_replay.model import Due, Outcome, State

# What the model says of one call in a state.
Operation = Callable[[State], Iterable[Outcome]]

EFFECTS = frozenset({"new", "prior"})
# A commit returns when the disk has it: FULL and EXTRA, as SQLite numbers them.
_WAITING = (2, 3)
_NUMBER = re.compile(r"(?<![0-9])[0-9]{1,9}(?![0-9])")


def ends(answer: Answer, operation: Operation, state: State, *, fails: bool) -> Iterator[State]:
    """What may be after an answer. What `fails` may also have done nothing, or leave open whether it did."""
    outcomes = list(operation(state))
    yield from (end for due, end in outcomes if due.fits(answer))
    if fails and (answer.reason == "STORE_UNAVAILABLE" or answer.outcome == "indeterminate"):
        yield state
    if fails and answer.outcome == "indeterminate":
        yield from (end for _, end in outcomes)


def printed(due: Due, told: Mapping[str, Any], *, counted: bool) -> bool:
    """Whether what a command printed says this. Of a refusal the contract does not say how it is printed.

    That version 0 left nothing may count as done (CALYX-OPS-1).
    """
    if due.said not in EFFECTS:
        return bool(told["status"]) or due.said == "NOTHING_TO_MIGRATE"
    least, most = due.counts.get("removed", (0, 0))
    numbers = [int(digits) for digits in _NUMBER.findall(told["output"])]
    return told["status"] == 0 and (not counted or any(least <= number <= most for number in numbers))


def unready(connections: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """What is wrong with connections of each purpose: the verdict, what is due, and what they answered."""
    for purpose, pragmas in connections.items():
        if purpose != "observe" and pragmas["synchronous"] not in _WAITING:
            yield "lost_durability", f"{purpose} waits for the disk", f"synchronous {pragmas}"
        if (pragmas["foreign_keys"], pragmas["journal_mode"]) != (1, "wal"):
            yield "state_leak", f"{purpose} with foreign keys and in WAL mode", f"{pragmas}"


def verdict_of(answers: Sequence[Answer], due: Sequence[Sequence[Due]]) -> str:
    """What it means that these answers are not due."""
    accepted = [answer for answer in answers if answer.outcome == "accepted"]
    keys = [answer.value["replay_key"] for answer in accepted if "replay_key" in answer.value]
    open_to = sum(any(each.said in EFFECTS for each in one) for one in due)
    if len(accepted) > open_to or len(set(keys)) < len(keys):
        return "fail_open"
    if any(answer.outcome == "indeterminate" for answer in answers):
        return "indeterminate"
    if not accepted and all({each.said for each in one} <= EFFECTS for one in due):
        return "over_refusal"
    return "wrong_reason"


def in_order(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows as text, in an order that no store decides."""
    return sorted(json.dumps(row, sort_keys=True) for row in rows)
