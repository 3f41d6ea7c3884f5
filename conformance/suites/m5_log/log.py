"""A log of which everything is known, and every operation and command that can be asked of it.

One author puts operations in the order of their clocks, so that no checkpoint is ever stale. What is due for a request
follows from what was done before; the state is that of the oracle.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import from_base64url
from holdfast.conformance.suites.m5_log.generate import ISSUER, Issued, Made, clock_of, state_of
from holdfast.vectors.derive import derive

COMMAND = "command_line"
TRUST, STATUS = "m5/trust.json", "m5/status.json"
WRITING = ("put_op", "persist_vc", "persist_verified_vc", "checkpoint_create", "checkpoint_delete")
OPERATIONS = (*WRITING, "checkpoint_load", "apply_incremental")
COMMANDS = tuple(
    f"{COMMAND} {name}"
    for name in (
        "op-append",
        "checkpoint-create",
        "checkpoint-list",
        "checkpoint-load",
        "replay-from-store",
        "verify-store",
        "dump-state-json",
    )
)
_OF_A_POINT = ("checkpoint_load", "checkpoint_delete")
_UNKNOWN, _UNAVAILABLE = "CHECKPOINT_UNKNOWN", "STORE_UNAVAILABLE"
_TOLD = ("op_id", "cred_hash", "topo_index", "state", "issuer", "role", "scope", "nbf", "exp")


@dataclass(frozen=True, slots=True)
class Log:
    """What a log holds: operations, hashes of credentials, and checkpoints with the index of each."""

    stored: tuple[Made, ...] = ()
    credentials: frozenset[str] = frozenset()
    verified: frozenset[str] = frozenset()
    points: tuple[tuple[int, int], ...] = ()
    highest: int = 0

    def with_point(self, checkpoint_id: int) -> Log:
        """The same with a checkpoint of the whole order."""
        return replace(self, points=(*self.points, (checkpoint_id, len(self.stored))), highest=checkpoint_id)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request by its row of the matrix, and what it is about: operations, a credential, a checkpoint."""

    row: str
    method: str
    args: Mapping[str, Any]
    about: Any = None


def is_done(answer: Answer) -> bool:
    """Whether an operation was accepted, or a command exited with 0."""
    return answer.outcome == "accepted" or (answer.outcome == "ok" and answer.value["status"] == 0)


def is_unavailable(answer: Answer) -> bool:
    """Whether it says that the store cannot be asked; a command says that it failed, and nothing more."""
    return answer.reason == _UNAVAILABLE or (answer.outcome == "ok" and not is_done(answer))


def must_be_done(bench: Bench, answer: Answer, what: str) -> None:
    """Fail unless it was accepted, or exited with 0."""
    if not is_done(answer):
        received = f"{answer.outcome} {answer.reason or ''}"
        bench.fail(answer.judged("over_refusal"), f"{what} was not done", expected="accepted", received=received)


def put(bench: Bench, session: SuiteSession, *operations: Made, what: str = "an append") -> None:
    """Append operations, each of which must be accepted."""
    for each in operations:
        must_be_done(bench, session.call("put_op", {"op": each.raw}), what)


def must_be_refused(bench: Bench, answer: Answer, reason: str, what: str) -> None:
    """Fail unless it was refused; another reason is reported."""
    bench.must_be(answer, f"refused {reason}", f"{what} was not refused with {reason}")


def must_have_rows(bench: Bench, session: SuiteSession, stored: Iterable[Made]) -> None:
    """Fail unless edges and by_author have the rows of these operations, byte for byte, and no others."""
    due: dict[str, dict[str, str]] = {"edges": {}, "by_author": {}}
    for each in stored:
        due["edges"][each.op_id] = "".join(each.parents)
        due["by_author"][derive("m5.public_key", each.draft["key"]) + clock_of(each) + each.op_id] = ""
    rows = session.inspect()["rows"]
    for family, wanted in due.items():
        found = {row["key"]["blob"]: row["value"]["blob"] for row in rows[family]}
        if found != wanted:
            key = next(key for key in sorted(wanted.keys() | found.keys()) if found.get(key) != wanted.get(key))
            verdict, there = "lost_durability" if key in wanted else "state_leak", str(found.get(key))
            bench.fail(verdict, f"the row {key} of {family}", expected=str(wanted.get(key))[:400], received=there[:400])


def place_trust(session: SuiteSession, trusted: Sequence[str] | Mapping[str, str]) -> None:
    """Write the trust file: names, each with its own key or with that of another label."""
    session.place(TRUST, from_base64url(derive("m5.trust", trusted)))


def place_status(session: SuiteSession, revoked: Sequence[str]) -> None:
    """Write the status file, which revokes these hashes."""
    session.place(STATUS, from_base64url(derive("m5.status", list(revoked))))


def alter(session: SuiteSession, family: str, key: str, value: str | None) -> None:
    """Put a row into the store, in base64url, or take it out, while no process has it open."""
    session.kill()
    session.alter(family, key, value)
    session.reopen()


class LogUnderTest:
    """A session with one log in it."""

    def __init__(self, bench: Bench, session: SuiteSession, label: str) -> None:
        self.session, self.log = session, Log()
        self._bench = bench
        self._author, self._file = f"alice {session.rand(label)}", f"ops-{session.rand(label)}"
        self._number = itertools.count(1)
        self._texts: dict[int, str] = {}
        place_trust(session, [ISSUER])

    # Requests

    def made(self) -> Made:
        """A new operation, later than all before it."""
        number = next(self._number)
        kind = {"kind": "add", "payload": {"key": f"c{number % 3}", "amount": number}}
        draft = {"key": self._author, "ms": 1000 * number, "parents": (), **kind}
        return Made.of(draft)

    def asked(self, row: str) -> Asked:
        """A request of this row that is due to be done. What it needs is done first."""
        if row == "put_op":
            made = self.made()
            return Asked(row, row, {"op": made.raw}, (made,))
        if row in ("persist_vc", "persist_verified_vc"):
            return self._about_a_credential(row)
        if row == "apply_incremental":
            return Asked(row, row, {"from_index": 1, "to_index": len(self.log.stored), "source": "store"})
        if row == "checkpoint_create":
            return Asked(row, row, {})
        name = row.partition(" ")[2]
        if name == "op-append":
            return self.file([self.made(), self.made()])
        checkpoint_id = self._point() if row.startswith("checkpoint_") or name == "checkpoint-load" else 0
        if not name:
            return Asked(row, row, {"checkpoint_id": checkpoint_id}, checkpoint_id)
        words = {"checkpoint-load": [str(checkpoint_id)], "replay-from-store": ["--from", "latest"]}.get(name, [])
        return Asked(row, COMMAND, {"arguments": [name, *words]}, checkpoint_id)

    def file(self, operations: Sequence[Made]) -> Asked:
        """A file that is to be appended."""
        name = f"{self._file}-{next(self._number)}"
        self.session.place(name, from_base64url(derive("m5.batch", [each.raw for each in operations])))
        return Asked(f"{COMMAND} op-append", COMMAND, {"arguments": ["op-append", name]}, tuple(operations))

    def _about_a_credential(self, row: str) -> Asked:
        said = {"role": f"r{next(self._number)}", "scope": ["t"], "nbf": 1, "exp": 9}
        issued = Issued.of({"issuer": ISSUER, "subject": self._author, **said})
        hashed = {"cred_hash": issued.cred_hash}
        stored = Asked("persist_vc", "persist_vc", {"credential": issued.raw}, hashed)
        if row == stored.row:
            return stored
        self.ask(stored)
        return Asked(row, row, hashed, {**hashed, "issuer": ISSUER, **said})

    def _point(self) -> int:
        if not self.log.points:
            self.ask(self.asked("checkpoint_create"))
        return self.log.points[-1][0]

    def ask(self, asked: Asked, worker: int = 0, *, lost: bool = False) -> Answer:
        """Ask, and judge the answer. `lost`: the store may not be available."""
        answer = self.session.call(asked.method, asked.args, worker)
        self.settle([(asked, answer)], lost=lost)
        return answer

    # What is due

    def settle(self, answered: Sequence[tuple[Asked, Answer]], *, lost: bool) -> None:
        """Some order of requests that overlapped has to explain all answers."""
        for order in itertools.permutations(answered):
            if (log := self._behind(order, lost=lost)) is not None:
                self.log = log
                return
        told = "; ".join(f"{asked.row} {asked.args}: {answer.outcome}" for asked, answer in answered)
        shown = "; ".join(f"{answer.reason or ''} {answer.effect or ''} {answer.value}" for _, answer in answered)
        verdict = "wrong_reason" if all(is_done(answer) for _, answer in answered) else "over_refusal"
        if all(self._opens(order) for order in itertools.permutations(answered)):
            verdict = "fail_open"
        self._bench.fail(verdict, told[:400], expected="what follows from all that was done", received=shown[:600])

    def ask_again(self, asked: Asked) -> None:
        """Ask once more. The process knows the order from before, and is asked for it again."""
        self.must_be_in_order("before a retry")
        self.ask(asked)
        self.must_be_in_order("behind a retry")

    def must_be_in_order(self, when: str) -> None:
        """Fail unless everything stands in the order, once."""
        due = {"op_ids": [each.op_id for each in self.log.stored]}
        found = self.session.observe("topo_iter")
        if found != due:
            verdict = self._bench.verdict_on("topo_iter", due, found, "lost_durability")
            self._bench.fail(verdict, f"the order {when} differs", expected=str(due), received=str(found))

    def _behind(self, order: Iterable[tuple[Asked, Answer]], *, lost: bool) -> Log | None:
        """The log behind these requests, one after the other; None if an answer is wrong then."""
        log = self.log
        for asked, answer in order:
            end = self._end(log, asked, answer)
            if end is not None:
                log = end
            elif not (lost and is_unavailable(answer)):
                return None
        return log

    def _opens(self, order: Iterable[tuple[Asked, Answer]]) -> bool:
        """Whether an answer has an effect that is no more due then, or where a refusal is."""
        log = self.log
        for asked, answer in order:
            known = asked.method not in _OF_A_POINT or asked.about in dict(log.points)
            end = (self._done(log, asked, log.highest + 1) or log) if known else log
            if is_done(answer) and (not known or (answer.effect == "new" and self._effect(log, end, asked) == "prior")):
                return True
            log = end if is_done(answer) else log
        return False

    def _end(self, log: Log, asked: Asked, answer: Answer) -> Log | None:
        """The log behind an answer that is right; None for any other."""
        if asked.method in _OF_A_POINT and asked.about not in dict(log.points):
            return log if answer.reason == _UNKNOWN else None
        if not is_done(answer):
            return None
        value, found = answer.value, 0
        if asked.row.endswith("create"):
            made = value["output"].strip() if asked.method == COMMAND else str(value["checkpoint_id"])
            found = int(made) if made.isdecimal() else 0
        end = self._done(log, asked, found)
        told = value["output"] if asked.method == COMMAND else {name: value[name] for name in _TOLD if name in value}
        is_right = told == self._due(log, asked, answer) and answer.effect in (None, self._effect(log, end, asked))
        return end if is_right else None

    def _done(self, log: Log, asked: Asked, newest: int) -> Log | None:
        """The log behind a request that was done; None if it made a checkpoint with this id, which is no new one."""
        if asked.row in ("put_op", f"{COMMAND} op-append"):
            # One that stands twice in a file is there once.
            there = {each.op_id: each for each in (*log.stored, *asked.about)}
            return replace(log, stored=tuple(there.values()))
        if asked.row in ("persist_vc", "persist_verified_vc"):
            name = "credentials" if asked.row == "persist_vc" else "verified"
            return replace(log, **{name: getattr(log, name) | {asked.about["cred_hash"]}})
        if asked.row == "checkpoint_delete":
            return replace(log, points=tuple(each for each in log.points if each[0] != asked.about))
        if asked.row.endswith("create"):
            # Ids increase, and may leave some out.
            return log.with_point(newest) if newest > log.highest else None
        return log

    def _effect(self, log: Log, end: Log | None, asked: Asked) -> str:
        return "prior" if end == log or asked.row in ("checkpoint_load", "apply_incremental") else "new"

    def _due(self, log: Log, asked: Asked, answer: Answer) -> Any:
        """What it has to say. Of a command whose output is free, what it said."""
        index = dict(log.points).get(asked.about, 0) if isinstance(asked.about, int) else 0
        due: Mapping[str, Callable[[], Any]] = {
            "put_op": lambda: {"op_id": asked.about[0].op_id},
            "persist_vc": lambda: asked.about,
            "persist_verified_vc": lambda: {
                name: asked.about[name] for name in _TOLD if name in asked.about and name != "cred_hash"
            },
            "checkpoint_create": lambda: {"topo_index": len(log.stored)},
            "checkpoint_load": lambda: {"topo_index": index, "state": self._text(log.stored[:index])},
            "checkpoint_delete": dict,
            "apply_incremental": lambda: {"state": self._text(log.stored[: asked.args["to_index"]])},
            f"{COMMAND} checkpoint-load": lambda: f"{self._text(log.stored[:index])}\n",
            f"{COMMAND} replay-from-store": lambda: f"{self._text(log.stored)}\n",
            f"{COMMAND} dump-state-json": lambda: f"{self._text(log.stored)}\n",
        }
        if asked.row == f"{COMMAND} checkpoint-list":
            listed = [line.split()[:1] for line in answer.value["output"].splitlines()]
            return answer.value["output"] if listed == [[str(each)] for each, _ in log.points] else None
        return due.get(asked.row, lambda: answer.value["output"])()

    def _text(self, stored: Sequence[Made]) -> str:
        # The order is that in which operations were stored, so their number says which they are.
        if len(stored) not in self._texts:
            self._texts[len(stored)] = state_of(stored, [])
        return self._texts[len(stored)]

    # What is there

    def compare(self, *unanswered: Asked) -> None:
        """What the log shows is what is known, with one of `unanswered` or with none, which is known from then on."""
        session = self.session
        rows, points = session.observe("store"), session.observe("checkpoints")
        shown = {
            "operations": {row["value"] for row in rows["ops"]},
            "rows": [len(rows[name]) for name in ("ops", "edges", "by_author")],
            "credentials": _keys(rows["vc_raw"]),
            "verified": _keys(rows["vc_verified"]),
            "checkpoints": [(each["checkpoint_id"], each["topo_index"]) for each in points["checkpoints"]],
            "latest": points["latest"],
            "states": {session.observe("dump", {"from": origin})["state"] for origin in ("genesis", "latest")},
            "whole": session.observe("verify_store")["whole"],
        }
        newest = max((found for found, _ in shown["checkpoints"]), default=0)
        behind = [self._done(self.log, asked, newest) for asked in unanswered]
        due = [(log, self._shown(log)) for log in (self.log, *behind) if log is not None]
        self.log = next((log for log, each in due if each == shown), self.log)
        (_, first), *_ = due
        if all(each != shown for _, each in due):
            names = [name for name, found in shown.items() if found != first[name]]
            received = {name: shown[name] for name in names}
            self._bench.fail("lost_durability", f"{', '.join(names)} differ", received=str(received)[:600])

    def _shown(self, log: Log) -> dict[str, Any]:
        return {
            "operations": {each.raw for each in log.stored},
            "rows": [len(log.stored)] * 3,
            "credentials": log.credentials,
            "verified": log.verified,
            "checkpoints": list(log.points),
            "latest": max(dict(log.points), default=None),
            "states": {self._text(log.stored)},
            "whole": True,
        }


def _keys(rows: Iterable[Mapping[str, str]]) -> set[str]:
    return {from_base64url(row["key"]).hex() for row in rows}
