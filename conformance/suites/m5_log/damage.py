"""m5-log: what becomes of a store of which one byte was changed, in its files, in a checkpoint, in an operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from random import Random
from typing import Any

from holdfast.conformance.cases.record import NonConformance
from holdfast.conformance.cases.values import base64url, from_base64url
from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.m5_log.generate import Made, drawn
from holdfast.conformance.suites.m5_log.log import COMMAND, alter, must_be_done
from holdfast.conformance.suites.session import SuiteSession
from holdfast.conformance.verdict import FailureMode

_DATABASE, _STORE, _KEPT = "m5/db", "m5", "kept"
# The files that hold rows, and those that say which files do.
_KINDS = ("*.sst", "*.log", "MANIFEST-*", "CURRENT")
_PLACES = 6
_BYTES_OF_CHECKPOINT = 24
# How many of these the commands are asked for as well.
_BY_COMMAND = 4
_SIZE = 12
_NEVER_USED = ("CHECKPOINT_DAMAGED", "CHECKPOINT_STALE", "STORE_UNAVAILABLE")


def _dice(session: SuiteSession) -> Random:
    return Random(session.hex64("damage"))  # noqa: S311 - nothing is kept secret with it


def _put(bench: Bench, session: SuiteSession, operations: Sequence[Made]) -> None:
    for each in operations:
        answer = session.call("put_op", {"op": each.raw})
        must_be_done(bench, answer, "an append")


def _flipped(dice: Random, data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]


def _rows(value: Mapping[str, Any], family: str) -> Mapping[str, bytes]:
    return {row["key"]: from_base64url(row["value"]) for row in value[family]}


@clause("M5-VER-4", "M5-OPEN-4")
def test_a_changed_byte_of_any_file_is_found_or_changes_nothing(bench: Bench) -> None:
    """Tables, logs, the MANIFEST and CURRENT. Where nothing fails, every acknowledged operation is as it was."""
    with bench.session() as session:
        dice = _dice(session)
        operations = drawn(dice, [f"alice {session.rand('alice')}"], _SIZE).operations
        half = len(operations) // 2
        _put(bench, session, operations[:half])
        # What an opening finds in its log, RocksDB writes into tables.
        session.restart()
        _put(bench, session, operations[half:])
        session.kill()
        session.copy(_STORE, _KEPT)
        tried = 0
        for kind in _KINDS:
            files = [each for each in session.tree(_DATABASE) if fnmatchcase(each["path"].rpartition("/")[2], kind)]
            files = [each for each in files if each["size"]]
            for _ in range(round(_PLACES * bench.thorough) if files else 0):
                path = dice.choice(files)["path"]
                data = from_base64url(session.file(path)["bytes"] or "")
                if not data:
                    continue
                at = dice.randrange(len(data))
                session.place(path, _flipped(dice, data, at))
                if _started_again(session):
                    _must_notice(bench, session, operations, f"byte {at} of {path}")
                tried += 1
                session.kill()
                session.copy(_KEPT, _STORE)
        session.reopen()
        if not tried:
            bench.fail("not_reached", "the database has no file of a kind that is known, or all are too long")


def _started_again(session: SuiteSession) -> bool:
    """Whether the process starts on what is there; one that refuses has noticed."""
    try:
        session.reopen()
    except NonConformance as finding:
        if finding.judgement.silence is not FailureMode.FAULT:
            raise
        return False
    return True


def _must_notice(bench: Bench, session: SuiteSession, operations: Sequence[Made], what: str) -> None:
    report = session.sample("verify_store")
    if report is not None and report["whole"]:
        shown = [session.sample("get_op", {"op_id": each.op_id}) for each in operations]
        if shown != [{"has": True, "op": each.raw} for each in operations]:
            bench.fail("fail_open", f"verify-store passes a store that lost an operation with {what}")
    for each in operations:
        answer = session.call("put_op", {"op": each.raw})
        if answer.outcome == "accepted" and answer.effect == "new":
            bench.fail("fail_open", f"an acknowledged operation was taken for new after a change of {what}")


@clause("M5-CKP-7", "M5-CLI-5", "M5-CLI-6", provocations=(COMMAND,))
def test_a_checkpoint_of_which_any_byte_was_changed_is_never_used(bench: Bench) -> None:
    """It is refused, or loads as the state that it was made of; a replay ends in the right state all the same."""
    with bench.session() as session:
        dice = _dice(session)
        operations = drawn(dice, [f"alice {session.rand('alice')}"], _SIZE).operations
        _put(bench, session, operations)
        made = session.call("checkpoint_create")
        must_be_done(bench, made, "a checkpoint")
        asked = {"checkpoint_id": made.value["checkpoint_id"]}
        state = session.accepted("checkpoint_load", asked)["state"]
        ((key, value),) = _rows(session.observe("store"), "checkpoints").items()
        count = min(len(value), round(_BYTES_OF_CHECKPOINT * bench.thorough))
        places = sorted(dice.sample(range(len(value)), count))
        asked_by_command = dice.sample(places, _BY_COMMAND)
        for at in places:
            changed = base64url(_flipped(dice, value, at))
            alter(session, "checkpoints", key, changed)
            answer, what = session.call("checkpoint_load", asked), f"byte {at} of a checkpoint was changed"
            if answer.outcome == "refused" and answer.reason not in _NEVER_USED:
                bench.report("wrong_reason", what, expected=" or ".join(_NEVER_USED), received=str(answer.reason))
            if answer.outcome == "accepted" and answer.value["state"] != state:
                bench.fail("fail_open", what, expected=state, received=answer.value["state"])
            dumped = session.sample("dump", {"from": "latest"})
            if dumped is not None and dumped["state"] != state:
                bench.fail("fail_open", f"{what}, and a replay used it", expected=state, received=dumped["state"])
            report = session.sample("verify_store")
            passes = report is not None and report["whole"]
            if answer.outcome == "refused" and passes:
                bench.fail("fail_open", f"{what}, and verify_store passes the store")
            if at in asked_by_command:
                commands = {
                    "verify-store": passes,
                    f"checkpoint-load {asked['checkpoint_id']}": answer.outcome == "accepted",
                }
                for command, is_good in commands.items():
                    status = session.provoke(COMMAND, {"arguments": command.split()})["status"]
                    if status == 0 and not is_good:
                        bench.fail("fail_open", f"{what}, and {command} exits with 0")


@clause("M5-GET-1")
def test_an_operation_of_which_a_byte_was_changed_is_an_error_and_never_none(bench: Bench) -> None:
    """Any byte, and all of them: those of another operation."""
    with bench.session() as session:
        dice = _dice(session)
        first, other = drawn(dice, [f"alice {session.rand('alice')}"], _SIZE).operations[:2]
        _put(bench, session, [first, other])
        rows = _rows(session.observe("store"), "ops")
        key = base64url(bytes.fromhex(first.op_id))
        data = rows.get(key, b"")
        if data != from_base64url(first.raw):
            bench.fail("lost_durability", "an operation is not stored as it came")
        places = dice.sample(range(len(data)), round(_PLACES * bench.thorough))
        for changed in (*(_flipped(dice, data, at) for at in places), from_base64url(other.raw), b""):
            alter(session, "ops", key, base64url(changed))
            found = session.sample("get_op", {"op_id": first.op_id})
            if found is not None:
                bench.fail("fail_open", "a damaged operation was read", expected="an error", received=str(found)[:200])
