"""m5-log: what becomes of a store of which one byte, or one row, was changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.checked import CheckedSession
from holdfast.conformance.attacks.damage import damaged_files, must_be_shown, nothing_is_new
from holdfast.conformance.attacks.model import attacked, is_done
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import base64url, from_base64url
from holdfast.conformance.suites.m5_log.generate import ISSUER, Issued, Made, clock_of, drawn
from holdfast.conformance.suites.m5_log.log import COMMAND, alter, must_be_done, place_trust
from holdfast.conformance.suites.m5_log.log import put as put_all
from holdfast.conformance.suites.m5_log.model import Log, LogModel, put
from holdfast.vectors.derive import derive

_STORE, _KEPT = "m5", "kept"
_PLACES = 6
_BYTES_OF_CHECKPOINT = 24
# How many of these the commands are asked for as well.
_BY_COMMAND = 4
_SIZE = 12
_NEVER_USED = ("CHECKPOINT_DAMAGED", "CHECKPOINT_STALE", "STORE_UNAVAILABLE")


def _flipped(dice: Random, data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]


def _rows(value: Mapping[str, Any], family: str) -> Mapping[str, bytes]:
    return {row["key"]: from_base64url(row["value"]) for row in value[family]}


TESTS = attacked(
    __name__,
    LogModel,
    test_a_changed_byte_of_any_file_is_found_or_changes_nothing=(damaged_files, ("M5-VER-4", "M5-OPEN-4"), ()),
)


@clause("M5-CKP-7", "M5-CLI-5", "M5-CLI-6", provocations=(COMMAND,))
def test_a_checkpoint_of_which_any_byte_was_changed_is_never_used(bench: Bench) -> None:
    """It is refused, or loads as the state that it was made of; a replay ends in the right state all the same."""
    with bench.session() as session:
        dice = session.dice("damage")
        operations = drawn(dice, [f"alice {session.rand('alice')}"], _SIZE).operations
        put_all(bench, session, *operations)
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
        dice = session.dice("damage")
        first, other = drawn(dice, [f"alice {session.rand('alice')}"], _SIZE).operations[:2]
        put_all(bench, session, first, other)
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


# A store in which one row is gone, is another, or is one too many


_MISSING = "0f" * 32


@dataclass(frozen=True, slots=True)
class _Change:
    """What is done to a row: what it was and what it becomes, None for no row; the operation it speaks of."""

    what: str
    family: str
    key: bytes
    was: bytes | None
    becomes: bytes | None
    op_id: str


class _Stored(CheckedSession[Log]):
    """A store with two operations in a row, one beside them, and one that waits."""

    def __init__(self, bench: Bench, session: SuiteSession) -> None:
        self.log = LogModel(session)
        super().__init__(bench, session, self.log)
        author = f"alice {session.rand('rows')}"
        first = self._made(author, 1, [])
        others: Sequence[Sequence[str]] = ([first.op_id], [], [first.op_id, _MISSING])
        self.made = (first, *(self._made(author, number, parents) for number, parents in enumerate(others, 2)))
        self.calls = [put(each) for each in self.made]
        for call in self.calls:
            self.ask(call)

    @staticmethod
    def _made(author: str, number: int, parents: Sequence[str]) -> Made:
        said = {"kind": "add", "payload": {"key": "c", "amount": number}}
        return Made.of({"key": author, "ms": 1000 * number, "parents": parents, **said})

    def changes(self) -> Iterator[_Change]:
        """Each row of each operation is gone, and is another; and there is one too many."""
        for made in self.made:
            op_id = bytes.fromhex(made.op_id)
            author = derive("m5.public_key", made.draft["key"])
            placed = bytes.fromhex(author + clock_of(made)) + op_id
            edges = b"".join(bytes.fromhex(each) for each in made.parents)
            raw = from_base64url(made.raw)
            near = op_id[:-1] + bytes([op_id[-1] ^ 1])
            yield _Change("its bytes are gone", "ops", op_id, raw, None, made.op_id)
            yield _Change("its bytes are cut", "ops", op_id, raw, raw[:-1], made.op_id)
            yield _Change("its bytes stand under another id too", "ops", near, None, raw, near.hex())
            yield _Change("its edges are gone", "edges", op_id, edges, None, made.op_id)
            yield _Change("its edges are too many", "edges", op_id, edges, edges + near, made.op_id)
            yield _Change("its edges are no ids", "edges", op_id, edges, edges + b"\0", made.op_id)
            yield _Change("there are edges of no operation", "edges", near, None, edges, near.hex())
            yield _Change("its row of by_author is gone", "by_author", placed, b"", None, made.op_id)
            yield _Change("its row of by_author has a value", "by_author", placed, b"", b"\1", made.op_id)
            other = placed[:-33] + bytes([placed[-33] ^ 1]) + op_id
            yield _Change("by_author has it with another clock too", "by_author", other, None, b"", made.op_id)
            unknown = placed[:-32] + near
            yield _Change("by_author has one that is not stored", "by_author", unknown, None, b"", near.hex())

    def must_be_noticed(self, change: _Change) -> None:
        """verify-store names it, and what is answered is what was stored, or nothing."""
        report = self.session.observe("verify_store")
        named = {each["key"] for each in report["problems"]}
        if report["whole"] or not named & {change.key.hex(), change.op_id}:
            self.bench.fail(
                "fail_open",
                f"verify_store does not name an operation: {change.what}",
                expected=f"{change.key.hex()} or {change.op_id}",
                received=str(sorted(named))[:400],
            )
        told = f"of an operation {change.what}"
        # No clause says that a scan finds a row of by_author out: verify-store does.
        must_be_shown(self, told, but=["scan"])
        for each in self.made:
            found = self.session.sample("get_op", {"op_id": each.op_id})
            self._is_answered("get_op", {"has": True, "op": each.raw}, found, told)
        applied = self.session.call("apply_incremental", {"from_index": 1, "to_index": 3, "source": "store"})
        due = {"state": self.log.state_at(self.state)}
        self._is_answered("apply_incremental", due, None if applied.outcome == "refused" else applied.value, told)

    def _is_answered(self, method: str, due: Any, shown: Any, told: str) -> None:
        if shown is not None and shown != due:
            expected, received = f"{due} or a fault"[:400], str(shown)[:400]
            self.bench.fail("fail_open", f"{method} answers; {told}", expected=expected, received=received)

    def must_not_be_new(self, change: _Change) -> None:
        """What was acknowledged is not appended as if new, and what is said to be there is there."""
        nothing_is_new(self, self.calls, change.what)
        for each, call in zip(self.made, self.calls, strict=True):
            if is_done(self.session.call(call.method, call.args)):
                rows = {row["key"]: row["value"] for row in self.session.observe("store")["ops"]}
                if rows.get(base64url(bytes.fromhex(each.op_id))) != each.raw:
                    told = f"an operation is said to be stored, and its bytes are not: {change.what}"
                    self.bench.fail("fail_open", told)


@clause("M5-DAG-1", "M5-VER-6", "M5-GET-1", "M5-VER-2", "M5-AC3")
def test_a_row_of_an_operation_that_is_gone_or_another_is_named_and_decides_nothing(bench: Bench) -> None:
    """Of its bytes, its edges and its place in by_author; and one too many of each."""
    with bench.session() as session:
        stored = _Stored(bench, session)
        for change in stored.changes():
            alter(session, change.family, base64url(change.key), _value(change.becomes))
            stored.must_be_noticed(change)
            stored.must_not_be_new(change)
            alter(session, change.family, base64url(change.key), _value(change.was))
        if not session.observe("verify_store")["whole"]:
            bench.fail("not_reached", "the store is not whole although each row is again as it was")


@clause("M5-VC-2", "M5-VER-5")
def test_a_credential_that_stands_under_the_hash_of_another_is_never_used(bench: Bench) -> None:
    """It is a good one, and says more."""
    with bench.session() as session:
        place_trust(session, [ISSUER])
        subject = f"bob {session.rand('rows')}"
        says = {"issuer": ISSUER, "subject": subject, "nbf": 1, "exp": 9}
        small = Issued.of({**says, "role": "reader", "scope": ["t"]})
        large = Issued.of({**says, "role": "editor", "scope": ["t", "u"]})
        must_be_done(bench, session.call("persist_vc", {"credential": small.raw}), "a credential")
        alter(session, "vc_raw", base64url(bytes.fromhex(small.cred_hash)), large.raw)
        answer = session.call("persist_verified_vc", {"cred_hash": small.cred_hash})
        if answer.outcome == "accepted":
            bench.fail("fail_open", "a credential was verified under the hash of another", received=str(answer.value))
        told = session.observe("verify_store")
        if small.cred_hash not in {each["key"] for each in told["problems"]}:
            bench.fail("fail_open", "verify_store does not name a credential that stands under the hash of another")


@clause("M5-CKP-1", "M5-VER-7", "M5-OPEN-2")
def test_a_row_of_meta_that_is_gone_or_cut_takes_nothing_back(bench: Bench) -> None:
    """Each row in turn. No id of a checkpoint comes twice, and what is answered is what was stored."""
    with bench.session() as session:
        stored = _Stored(bench, session)
        for _ in range(2):
            stored.ask(stored.make("checkpoint_create"))
        rows = session.observe("store")["meta"]
        session.kill()
        session.copy(_STORE, _KEPT)
        for row in rows:
            value = from_base64url(row["value"])
            for what, becomes in (("is gone", None), ("is cut", value[:-1]), ("is empty", b"")):
                session.alter("meta", row["key"], _value(becomes))
                session.reopen()
                told = f"a row of meta {what}: {row['key']}"
                must_be_shown(stored, told)
                session.sample("verify_store")
                answer = session.call("checkpoint_create")
                if answer.outcome == "accepted" and answer.value["checkpoint_id"] <= stored.state.highest:
                    bench.fail("fail_open", f"an id of a checkpoint comes twice; {told}", received=str(answer.value))
                nothing_is_new(stored, stored.calls, told)
                session.kill()
                session.copy(_KEPT, _STORE)
        session.reopen()


def _value(data: bytes | None) -> str | None:
    return None if data is None else base64url(data)
