"""m5-log: every operation and every command under the attacks of the engine, and two that are a log's own."""

from __future__ import annotations

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.checked import CheckedSession
from holdfast.conformance.attacks.interrupted import interrupted, killed_commands
from holdfast.conformance.attacks.model import attacked, is_done
from holdfast.conformance.attacks.race import race
from holdfast.conformance.attacks.retry import retry
from holdfast.conformance.attacks.store import lost_store
from holdfast.conformance.attacks.volume import volume
from holdfast.conformance.cases.values import from_base64url
from holdfast.conformance.suites.m5_log.log import COMMAND
from holdfast.conformance.suites.m5_log.model import LogModel
from holdfast.vectors.derive import derive

_FAMILIES = ("ops", "edges", "by_author", "meta", "vc_raw", "vc_verified", "policy_index", "checkpoints")
_ASIDE, _STORE = "aside", "m5"

TESTS = attacked(
    __name__,
    LogModel,
    test_every_operation_is_known_when_it_is_asked_for_again=(
        retry,
        ("M5-PUT-5", "M5-AC1", "M5-CKP-1", "M5-CLI-1"),
        (),
    ),
    test_every_operation_beside_itself_and_its_rivals_is_explained_by_some_order=(
        race,
        ("M5-OPEN-4", "M5-PUT-5", "M5-CKP-1", "M5-CLI-3"),
        (),
    ),
    test_every_operation_that_fails_or_is_killed_is_whole_or_not_at_all=(
        interrupted,
        ("M5-CRS-1", "M5-AC1", "M5-PUT-3", "M5-OPT-3"),
        ("hold_at",),
    ),
    test_a_command_that_is_killed_at_any_moment_has_done_all_or_nothing=(
        killed_commands,
        ("M5-CLI-1", "M5-CLI-3", "M5-CRS-1"),
        (COMMAND,),
    ),
    test_no_operation_and_no_command_takes_another_store_for_its_own=(
        lost_store,
        ("M5-OPEN-4", "M5-CLI-6", "M5-VER-7"),
        (),
    ),
    test_every_operation_is_done_on_many_operations=(
        volume,
        ("M5-CLI-1", "M5-CKP-5", "M5-REP-1", "M5-AC2"),
        (),
    ),
)


@clause("M5-OPEN-1", written=True)
def test_a_store_without_any_one_of_its_families_is_refused(bench: Bench) -> None:
    """With rows or without. The family is not made anew."""
    with bench.session() as session:
        play = CheckedSession(bench, session, LogModel(session))
        for row in ("put_op", "persist_verified_vc", "checkpoint_create"):
            play.ask(play.make(row))
        session.kill()
        session.copy(_STORE, _ASIDE)
        for family in _FAMILIES:
            session.drop(family)
            session.reopen()
            answer = session.call("put_op", play.make("put_op").args)
            if answer.reason != "STORE_UNAVAILABLE":
                verdict = "fail_open" if is_done(answer) else "wrong_reason"
                bench.weigh(
                    verdict, f"the store has no {family}", expected="STORE_UNAVAILABLE", received=answer.outcome
                )
            session.kill()
            if family in session.inspect()["tables"]:
                bench.fail("fail_open", f"{family} was made anew")
            session.copy(_ASIDE, _STORE)
        session.reopen()
        play.compare()


@clause("M5-CLI-1", "M5-CLI-5", written=True)
def test_a_command_that_is_refused_leaves_everything_as_it_was(bench: Bench) -> None:
    """Files that are missing, cut or no array of operations, words that are unknown, and what is nearly an id."""
    with bench.session() as session:
        play = CheckedSession(bench, session, LogModel(session))
        play.ask(play.make("put_op"))
        file = from_base64url(derive("m5.batch", [play.make("put_op").args["op"]]))
        session.place("cut", file[:-1])
        session.place("forged", file[:-1] + bytes([file[-1] ^ 1]))
        play.ask(play.make("checkpoint_create"))
        made = play.state.highest
        near = (
            f"{made + 1}",
            "x",
            "",
            f"{made}O",
            f"{made}.5",
            f"{made}x",
            f"{made}e0",
            f"{made},",
            f"-{made}",
            f"0x{made}",
        )
        wide = (str(made + 2**width) for width in (8, 16, 32, 53, 63, 64))
        before = session.inspect()["rows"]
        for words in (
            *(["checkpoint-load", each] for each in (*near, *wide)),
            ["op-append", "missing"],
            ["op-append", "cut"],
            ["op-append", "forged"],
            ["op-append"],
            ["replay-from-store", "--from", "nowhere"],
            ["checkpoint-create", "more"],
            ["checkpoint-list", "more"],
            ["verify-store", "more"],
            ["dump-state-json", "more"],
        ):
            if session.provoke(COMMAND, {"arguments": words})["status"] == 0:
                bench.fail("fail_open", f"{' '.join(words)} exits with 0")
        if session.inspect()["rows"] != before:
            bench.fail("state_leak", "a command that failed has changed the store")
