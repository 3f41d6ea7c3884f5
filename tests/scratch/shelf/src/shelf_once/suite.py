"""shelf-once: what a script cannot say. Many names, each put by two processes at once."""

from __future__ import annotations

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench

_NAMES = 5


@clause("SHELF-1")
def test_of_two_processes_that_put_one_name_one_puts_it(bench: Bench) -> None:
    """Five names, each handed to both processes at once."""
    with bench.session(workers=2) as session:
        for number in range(_NAMES):
            answers = session.race([("put", {"name": f"name {number}"})] * 2)
            accepted = sum(answer.outcome == "accepted" for answer in answers)
            if accepted != 1:
                bench.fail(
                    "fail_open" if accepted else "over_refusal",
                    f"{accepted} of 2 processes put the same name",
                    expected="one accepted",
                    received=", ".join(answer.outcome for answer in answers),
                )
        if len(session.observe("state")["history"]) != _NAMES:
            bench.fail("state_leak", "a name that was put once stands there twice")
