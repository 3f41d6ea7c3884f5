"""Histories of a registrar: how each step is played against a session and the model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.explore import Candidate
from holdfast.conformance.attacks.histories import run_histories
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import shift
from holdfast.conformance.suites.rs4a_replay.candidates import Snapshot, TraceLog, offered
from holdfast.conformance.suites.rs4a_replay.checked_session import ModelCheckedSession
from holdfast.conformance.suites.rs4a_replay.generate import AGES, WORKERS, Step
from holdfast.conformance.suites.rs4a_replay.model import Model
from holdfast.conformance.suites.rs4a_replay.model_state import Call, Effect, ModelState
from holdfast.conformance.suites.rs4a_replay.requests import (
    DATED_S,
    MOVED,
    bits_of,
    bound,
    issuing,
    numbered,
    registration,
    request,
    tampered,
    window_of,
)
from holdfast.vectors.derive import derive

# A nonce of the shortest form that methods.yaml allows has 64. A letter that did not come by chance takes a little off.
_LEAST_BITS = 60
# Of fewer nonces the letters of each place say little.
_ASSESSED = 500
# Where a call is killed: at a failpoint, or at any moment.
KILLED_AT = ("", "after_nonce_consume", "before_commit", "after_commit")
_ABORTED_AT = ("after_nonce_consume", "after_registration", "before_commit")
_SUBMITTED = ("register", "compensate")
_MOMENTS, _MOMENT_S = 8, 0.004


class HistoryRunner:
    """Plays a history against a session and the model side by side. A `histories.ExploringRunner`."""

    def __init__(
        self, bench: Bench, session: SuiteSession, model: Model, *, horizon_s: int | None = None, surface: str = "ready"
    ) -> None:
        self._bench, self._session = bench, session
        self._beside, self._traces = ModelCheckedSession(bench, session, model, surface=surface), TraceLog()
        self._horizon_s = horizon_s
        self._tries = 0
        # The keys of requests by the number of the step that asked for them.
        self._keys: dict[int, str] = {}
        # The worker that broke something. It alone goes on, because what other processes notice of it is open.
        self._alone: int | None = None
        self._actions: Mapping[str, Callable[[Step], object]] = {
            "register": lambda step: self._submit(step, "register"),
            "compensate": lambda step: self._submit(step, "compensate"),
            "validate": lambda step: self._submit(step, "validate"),
            "forge": self._forge,
            "fail": lambda step: self._fail(self._submission(step, "register"), step.worker),
            "abort": lambda step: self._at_failpoint(step, _ABORTED_AT[step.number % 3], "abort"),
            "lose": lambda step: self._at_failpoint(step, KILLED_AT[2 + step.number % 2], "lose_answer"),
            "retry": self._retry,
            "race": self._race,
            "overtake": self._overtake,
            "interrupt": self._interrupt,
            "issue": lambda step: self._beside.ask(self._issuing(step), step.worker),
            "resolve": lambda step: self._beside.ask(self._resolving(step), step.worker),
            "maintain": self._maintain,
            "many": self._register_many,
            "rows": self._insert_many,
            "clock": lambda step: self._session.clock(f"{step.seconds:+f}s"),
            "restart": self._again_up,
            "kill": self._again_up,
            "mute": self._mute,
            "break": self._break,
            "look": lambda step: self._beside.look(step.worker),
        }

    def step(self, step: Step) -> None:
        """See `histories.HistoryRunner`."""
        step = step if self._alone is None else replace(step, worker=self._alone)
        self._actions[step.what](step)
        if self._beside.is_open:
            self._beside.look(step.worker)
        self._traces.note(step, self._around())

    def compare(self) -> None:
        """See `histories.HistoryRunner`."""
        if self._world.mute:
            self._mute(Step("mute", worker=self._alone or 0))
        for worker in range(self._session.workers) if self._alone is None else (self._alone,):
            self._maintain(Step("maintain", worker=worker))
            self._beside.look(worker)

    def offers(self, dice: Random) -> Sequence[Candidate[Step]]:
        """See `explore.Explorable`."""
        return offered(dice, self._around(), self._traces, self._bench.not_claimed)

    def _around(self) -> Snapshot:
        effects: dict[int, Effect | None] = {key: self._world.effects.get(name) for key, name in self._keys.items()}
        return Snapshot(effects, self._world, self._session.now, self._beside.nonces, self._horizon_s, self._alone)

    @property
    def _world(self) -> ModelState:
        return self._beside.world

    # Submissions

    def _submit(self, step: Step, method: str) -> None:
        call = self._submission(step, method)
        if step.how and method == "register":
            # The validator says the same of it, and keeps nothing of what it said.
            self._beside.ask(replace(call, method="validate"), step.worker)
        self._beside.ask(call, step.worker)
        if step.how == "too early":
            self._session.clock("+0.000001s")
            self._beside.ask(self._call("validate", call.args), step.worker)

    def _forge(self, step: Step) -> None:
        if self._beside.has("register_unvalidated") and self._world.surface == "ready":
            self._beside.ask(replace(self._submission(replace(step, how=""), "register"), forged=True), step.worker)

    def _fail(self, call: Call, worker: int) -> None:
        if self._beside.has("fail_verify") and self._beside.would_commit(call):
            self._session.provoke("fail_verify", worker=worker)
            call = replace(call, rejected=True)
        self._beside.ask(call, worker)

    def _at_failpoint(self, step: Step, point: str, fault: str) -> None:
        """One registration or compensation that meets a failpoint, where the adapter has them and it would commit."""
        call = self._submission(replace(step, how=""), step.how or "register")
        if self._beside.has("hold_at") and self._beside.would_commit(call):
            self._session.provoke("hold_at", {"point": point, "fault": fault}, step.worker)
            call = replace(call, point=point, fault=fault)
        self._beside.ask(call, step.worker)
        self._beside.look(step.worker)

    def _retry(self, step: Step) -> None:
        """What consumed a key once more: as it was sent then, or dated now, or as another attempt of another run."""
        method = "compensate" if step.number % 2 else "register"
        sent = self._beside.sent.get((method, self._request(step.key)["request"]["canonical_target"]))
        if sent is None:
            return
        self._tries += 1
        changed = {
            "dated now": {"issued_at": self._session.now},
            "stale": {"issued_at": shift(self._session.now, f"-{AGES['stale']}s")},
            "as another attempt": {"issued_at": self._session.now, "attempt_id": numbered(self._tries)},
        }.get(step.how, {})
        again = {**sent, "request": {**sent["request"], **changed}}
        self._beside.ask(self._call(method, again), step.worker)

    def _submission(self, step: Step, method: str) -> Call:
        nonce = self._nonce(step)
        self._tries += 1
        own = {"run_id": numbered(self._tries + 1), "attempt_id": numbered(self._tries)}
        age, _, flaw = step.how.partition(", ")
        old = AGES.get(age, DATED_S.get(step.nonce, 0))
        args = tampered(self._session, self._request(step.key, nonce=nonce, age_s=old, **own), flaw or age)
        return self._call(method, args)

    def _request(self, key: int, *, nonce: str = "", age_s: float = 0, **own: str) -> dict[str, Any]:
        """The submission of a key. Its logical key is remembered."""
        made = request(self._session, str(key), nonce=nonce, age_s=age_s, **own)
        if key not in self._keys:
            self._keys[key] = derive("rs4a.logical_request_key", made)
        return made

    # Nonces

    def _nonce(self, step: Step) -> str:
        """The nonce that a step presents; one is issued for it, unless it is an old one or none."""
        nonces = self._beside.nonces
        if step.nonce == "old" and nonces:
            return nonces[step.number % len(nonces)]
        if step.nonce == "free" or self._world.surface != "ready" or self._world.mute:
            return f"never-issued-{self._session.rand('free')}"
        args = self._request(step.key)
        binding = bound(self._session, args, step.nonce, step.number)
        window = window_of(step.nonce, self._session.now, self._longest_s)
        issued = self._call("issue_nonce", {"binding": binding, "window": window})
        nonce = str(self._beside.ask(issued, step.worker).value["nonce"])
        if step.nonce in MOVED:
            self._session.clock(MOVED[step.nonce])
        return nonce

    @property
    def _longest_s(self) -> Any:
        return self._bench.contract.parameters["nonce_window_seconds"].value

    def _issuing(self, step: Step) -> Call:
        """A nonce with a window that is as long as can be, longer, or the wrong way round; bound to nothing; again."""
        args = issuing(self._session, self._longest_s)
        if step.how == "for too long":
            args = issuing(self._session, f"{self._longest_s}.000001")
        elif step.how == "backwards":
            args["window"]["not_after"] = shift(self._session.now, "-0.000001s")
        elif step.how == "bound to nothing":
            args["binding"] = {}
        elif step.how == "again":
            args = self._beside.sent.get(("issue_nonce", ""), args)
        return self._call("issue_nonce", args)

    # Many keys, registered by all workers at once, or put into the store as rows, which takes less time

    def _register_many(self, step: Step) -> None:
        """As many new keys from `step.key` on, each with a nonce of its own, by all workers at once."""
        workers = range(self._session.workers)
        for number in range(0, step.number, len(workers)):
            self._at_once([self._call("issue_nonce", issuing(self._session, self._longest_s)) for _ in workers])
            keys = [step.key + number + worker for worker in workers]
            pairs = zip(keys, self._beside.nonces[-len(workers) :], strict=True)
            self._at_once([self._call("register", self._request(key, nonce=nonce)) for key, nonce in pairs])
        bits = bits_of(self._beside.nonces)
        if len(self._beside.nonces) >= _ASSESSED and bits < _LEAST_BITS:
            due = f"at least {_LEAST_BITS} bits that differ from nonce to nonce"
            self._beside.differs("fail_open", due, f"{bits:.0f} bits in {len(self._beside.nonces)} nonces")

    def _at_once(self, calls: Sequence[Call]) -> None:
        """One call at each worker, none of which minds the others."""
        handles = [self._session.start(call.method, call.args, worker) for worker, call in enumerate(calls)]
        for call, handle in zip(calls, handles, strict=True):
            self._beside.finish(call, handle)

    def _insert_many(self, step: Step) -> None:
        """Rows of as many other keys. A store that takes none gets registrations."""
        made: dict[str, Effect] = {}
        for key in range(step.key, step.key + step.number if self._beside.has("raw_insert") else 0):
            args = self._request(key, nonce=f"never-issued-{key}")
            row = registration(self._bench, self._session, args, f"row-{key}")
            args = {"relation": "registration", "row": row}
            if not self._session.provoke("raw_insert", args, len(made) % self._session.workers)["inserted"]:
                break
            made[row["logical_request_key"]] = Effect(row, id=row["decision_id"])
        # An implementation may keep only what has consumed a nonce.
        self._beside.narrow(
            lambda world: replace(world, effects={**world.effects, **made}, half=world.half | made.keys())
        )
        self._register_many(replace(step, key=step.key + len(made), number=step.number - len(made)))

    # Everything else

    def _call(self, method: str, args: Mapping[str, Any]) -> Call:
        return Call(method, args, self._session.now)

    def _any_call(self, step: Step, method: str) -> Call:
        """A call of any operation."""
        if method in _SUBMITTED:
            return self._submission(replace(step, how=""), method)
        if method == "resolve_status":
            return self._resolving(replace(step, how=""))
        return self._issuing(replace(step, how="")) if method == "issue_nonce" else self._call(method, {})

    def _race(self, step: Step) -> None:
        """Two calls at once, at workers 0 and 1."""
        assert step.rival is not None, "a race has two sides"
        if self._alone is not None:
            return
        first, second = self._any_call(step, step.how), self._any_call(step.rival, step.rival.how)
        if step.rival.nonce == "same":
            second.args["request"]["authorization_nonce"] = first.args["request"]["authorization_nonce"]
        # Each waits for the other only where both of them consume.
        contended = {first.method, second.method} - {*_SUBMITTED} != set()
        calls = [replace(call, now=self._session.now, contended=contended) for call in (first, second)]
        self._beside.race(calls)
        if self._world.half:
            self._maintain(step)

    def _overtake(self, step: Step) -> None:
        """A call is held behind its look at what is stored, and others come first: then it has to notice them.

        `how` is the call, the rivals are done one after the other by the other worker.
        """
        assert step.rival is not None, "a rival has to come first"
        call, other = self._submission(replace(step, how=""), step.how), 1 - step.worker
        if self._alone is not None or not self._beside.has("hold_at") or not self._beside.would_commit(call):
            self._beside.ask(call, step.worker)
            return
        first = self._before(step.rival, other, call)
        # What else was done meanwhile may make a transaction roll back.
        call = replace(call, contended=True)
        self._session.hold_at("before_consume", step.worker)
        handle = self._beside.start(call, step.worker)
        self._session.reached("before_consume")
        for each, prepared in first:
            if prepared is None:
                self._actions[each.what](each)
            else:
                (self._fail if each.what == "fail" else self._beside.ask)(prepared, other)
        # A refusal from here on changes nothing.
        self._beside.look(other)
        self._session.release("before_consume")
        self._beside.finish(replace(call, collides=True), handle)
        self._beside.look(step.worker)

    def _before(self, rival: Step | None, worker: int, held: Call) -> list[tuple[Step, Call | None]]:
        """The rivals, with the calls of those that bring a nonce of their own: nothing is issued while one is held."""
        found: list[tuple[Step, Call | None]] = []
        while rival is not None:
            step, call = replace(rival, worker=worker), None
            if rival.what in ("register", "compensate", "fail"):
                call = self._submission(step, "compensate" if rival.what == "compensate" else "register")
                if rival.nonce == "same":
                    call.args["request"]["authorization_nonce"] = held.args["request"]["authorization_nonce"]
            found.append((step, call))
            rival = rival.rival
        return found

    def _interrupt(self, step: Step) -> None:
        """The registrar is killed while it works, at a failpoint or at any moment; then the outcome is settled."""
        if self._alone is not None:
            return
        method = step.how or "register"
        call, point = self._any_call(step, method), KILLED_AT[step.number % len(KILLED_AT)]
        if method in _SUBMITTED and point and self._beside.has("hold_at") and self._beside.would_commit(call):
            self._session.hold_at(point, step.worker)
            call = replace(call, point=point, fault="hold")
        self._beside.start(call, step.worker)
        if call.fault:
            self._session.reached(point)
        else:
            time.sleep(step.number // len(KILLED_AT) % _MOMENTS * _MOMENT_S)
        self._session.begin_again("kill", step.worker)
        self._beside.died(call)
        # The holder of the key is waited for, so from here on it is certain. A job is done again at once.
        if method == "maintain":
            self._maintain(step)
        elif method in _SUBMITTED:
            self._beside.ask(self._resolving(replace(step, how="")), step.worker)
        self._beside.look(1 - step.worker)

    def _resolving(self, step: Step) -> Call:
        self._request(step.key)
        key = self._keys[step.key]
        args = {"logical_request_key": key.upper() if step.how == "in capitals" else key}
        if step.how == "with a stranger":
            args["force"] = "true"
        return self._call("resolve_status", args)

    def _maintain(self, step: Step) -> None:
        self._beside.ask(self._call("maintain", {}), step.worker)

    def _again_up(self, step: Step) -> None:
        if self._alone is None:
            self._session.begin_again(step.what, step.worker)

    def _mute(self, step: Step) -> None:
        """The audit refuses writes, or works again."""
        if not self._beside.has("break_audit") or self._world.surface != "ready":
            return
        mute = not self._world.mute
        self._session.provoke("break_audit", {"broken": mute}, step.worker)
        self._alone = step.worker if mute else None
        self._beside.changed(step.worker, mute=mute)

    def _break(self, step: Step) -> None:
        """The surface goes away, for good."""
        if not self._beside.has("break_surface") or self._world.surface != "ready":
            return
        self._session.provoke("break_surface", {"how": step.how}, step.worker)
        self._alone = step.worker
        lacking = step.how == "incomplete"
        gone = self._beside.changed(step.worker, readable=lacking, surface="lacking" if lacking else "broken")
        if lacking and not gone:
            self._bench.fail("not_reached", "break_surface incomplete left every relation in the catalogue")


@contextmanager
def playing(
    bench: Bench,
    *,
    horizon_s: int | None = None,
    isolation: str = "read_committed",
    surface: str = "ready",
    hurried: bool = True,
) -> Iterator[HistoryRunner]:
    """A history's session with two processes, and the model beside it.

    Not `hurried`: it may take as long as its calls take, each of which has a deadline.
    """
    config = {"isolation": isolation, **({} if horizon_s is None else {"horizon_seconds": str(horizon_s)})}
    with bench.session(workers=WORKERS, config=config, surface=surface, hurried=hurried) as session:
        model = Model(bench.contract, horizon_s=horizon_s)
        yield HistoryRunner(bench, session, model, horizon_s=horizon_s, surface=surface)


def scripted(bench: Bench, *steps: Step) -> None:
    """One history of these steps."""
    run_histories(bench, count=1, draw=lambda _: steps, begin=lambda: playing(bench), trials=0)
