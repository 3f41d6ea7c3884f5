"""Attempts that really run at once, each with a session of its own on one store."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Indeterminate, Refused
from tests.rs4a_replay.conftest import Desk, Opener, submission

LEVELS = ("read_committed", "repeatable_read", "serializable")


def at_once(calls: Sequence[Callable[[], Answer]]) -> list[Answer]:
    """Run all calls behind one barrier; the answers in the order of the calls."""
    barrier = threading.Barrier(len(calls))
    answers: list[Answer | None] = [None] * len(calls)

    def run(number: int) -> None:
        barrier.wait()
        answers[number] = calls[number]()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [answer for answer in answers if answer is not None]


def tally(answers: Sequence[Answer]) -> Counter[str]:
    """What came out, by effect or reason."""
    return Counter(
        answer.effect.value if isinstance(answer, Accepted) else answer.reason if isinstance(answer, Refused) else "?"
        for answer in answers
    )


def race(desks: Sequence[Desk], sent: Sequence[dict[str, Any]]) -> list[Answer]:
    """One register from every desk at once."""
    return at_once([lambda d=d, s=s: d.call("register", s) for d, s in zip(desks, sent, strict=True)])  # type: ignore[misc]


@pytest.mark.parametrize("isolation", LEVELS)
def test_sixteen_attempts_have_one_effect_at_every_isolation_level(on_postgres: Opener, isolation: str) -> None:
    desks = [on_postgres(isolation=isolation) for _ in range(16)]
    for desk in desks:
        desk.observe("state")
    for number in range(3):
        nonces = [desks[0].nonce() for _ in desks]
        target = f"dot://acme/{isolation}/{number}"
        answers = race(desks, [submission(nonce, target=target, attempt=nonce[:8]) for nonce in nonces])
        counted = tally(answers)
        assert counted["new"] == 1
        assert counted["ATTEMPT_COLLISION"] + counted["REPLAY_DUPLICATE"] == 15
        (winner,) = [answer for answer in answers if isinstance(answer, Accepted)]
        for answer in answers:
            if isinstance(answer, Refused) and answer.reason == "ATTEMPT_COLLISION":
                assert answer.data == {"decision": winner.value["decision"]}
    assert desks[0].counts() == (3, 3)
    assert len(desks[0].codes()) == 45


def test_sixteen_attempts_have_one_effect_on_sqlite(sqlite: Any, tmp_path: Path) -> None:
    from tests.rs4a_replay.conftest import opening

    with opening(sqlite, tmp_path) as opener:
        desks = [opener() for _ in range(16)]
        nonces = [desks[0].nonce() for _ in desks]
        # Each session's connection belongs to the thread that first uses it, so each thread opens its own.
        answers = race(desks, [submission(nonce, attempt=nonce[:8]) for nonce in nonces])
    assert tally(answers)["new"] == 1
    assert set(tally(answers)) <= {"new", "ATTEMPT_COLLISION", "REPLAY_DUPLICATE"}


@pytest.mark.parametrize("isolation", LEVELS)
def test_one_nonce_pays_for_one_of_many_requests(on_postgres: Opener, isolation: str) -> None:
    desks = [on_postgres(isolation=isolation) for _ in range(8)]
    nonce = desks[0].nonce()
    answers = race(desks, [submission(nonce, target=f"dot://acme/{number}") for number in range(8)])
    assert tally(answers) == {"new": 1, "REPLAY_NONCE_CONSUMED": 7}
    assert desks[0].counts() == (1, 1)


@pytest.mark.parametrize("isolation", LEVELS)
@pytest.mark.parametrize("released", [True, False])
def test_a_collision_is_decided_only_after_the_first_ones_outcome(
    on_postgres: Opener, tmp_path: Path, isolation: str, *, released: bool
) -> None:
    first, second = on_postgres(isolation=isolation), on_postgres(isolation=isolation)
    sent = [submission(first.nonce(), attempt=f"try-{number}") for number in range(2)]
    first.call("hold_at", {"point": "before_commit", "fault": "hold"})
    answers: dict[str, Answer] = {}
    holder = threading.Thread(target=lambda: answers.update(first=first.call("register", sent[0])))
    holder.start()
    reached = tmp_path / "hold" / "before_commit.reached"
    while not reached.exists():
        time.sleep(0.01)
    waiter = threading.Thread(target=lambda: answers.update(second=second.call("register", sent[1])))
    waiter.start()
    time.sleep(0.2)
    assert answers == {}
    if not released:
        # The first one's transaction dies under it: the server ends its backend.
        store = first.session._parts.ports.store  # type: ignore[attr-defined]
        second.session._parts.operator._connection().execute(  # type: ignore[attr-defined]
            "SELECT pg_terminate_backend(%s)", (store._link.connection().info.backend_pid,)
        )
        waiter.join()
    (tmp_path / "hold" / "before_commit.release").touch()
    holder.join()
    waiter.join()
    winner, loser = ("first", "second") if released else ("second", "first")
    assert isinstance(answers[winner], Accepted)
    assert answers[winner].effect is Effect.NEW  # type: ignore[union-attr]
    lost = answers[loser]
    if released or not isinstance(lost, Indeterminate):
        assert isinstance(lost, Refused)
        assert lost.reason == ("ATTEMPT_COLLISION" if released else "COMMIT_FAILED")
    # Else the backend had let go of its locks and not yet of its socket: it took the COMMIT, and never answered.
    assert second.counts() == (1, 1)
