"""Histories of a registrar: how each step is played against a session and the model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from holdfast.conformance.cases.values import shift
from holdfast.conformance.session import Answer
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.histories import Worlds
from holdfast.conformance.suites.rs4a_replay.model import Call, Model, World, stored
from holdfast.conformance.suites.rs4a_replay.requests import principal, request, shown
from holdfast.conformance.suites.rs4a_replay.rows import same_rows
from holdfast.conformance.suites.rs4a_replay.steps import AGES, FIRST_OF_MANY, Step
from holdfast.conformance.suites.session import SuiteSession
from holdfast.vectors.derive import derive

# Members to which a nonce can be bound.
_BINDING = ("canonical_target", "principal", "owner_or_approval_binding", "artifact_hash")
# With fewer of many keys nothing is shown. More are registered for so long, of the 30 s that a session has.
FEWEST = 210
_MANY_S = 20.0
# The rows of more keys do not fit into one answer of the protocol.
_SEEN = 300
# How long a nonce can be presented whose window is soon to close.
_BRIEF_S = 60


class Play:
    """Plays a history against a session and the model side by side. A `histories.Player`."""

    def __init__(self, bench: Bench, session: SuiteSession, model: Model, *, surface: str = "ready") -> None:
        self._bench, self._session, self._model = bench, session, model
        self._worlds = Worlds(World(surface=surface))
        self._nonces: list[str] = []
        # What consumed a key last, for its exact retry.
        self._sent: dict[tuple[str, int], dict[str, Any]] = {}
        self._tries = 0
        # The worker that broke something. It alone goes on, because what other processes notice of it is open.
        self._alone: int | None = None
        # Names of the catalogue, which only a provocation may change.
        self._objects: frozenset[str] | None = self._catalogue(0)
        self._actions: Mapping[str, Callable[[Step], None]] = {
            "register": lambda step: self._submit(step, "register"),
            "compensate": lambda step: self._submit(step, "compensate"),
            "validate": lambda step: self._submit(step, "validate"),
            "forge": self._forge,
            "fail": self._fail,
            "abort": self._abort,
            "lose": self._lose,
            "retry": self._retry,
            "race": self._race,
            "interrupt": self._interrupt,
            "issue": self._issue,
            "resolve": self._resolve,
            "maintain": self._maintain,
            "many": self._many,
            "clock": lambda step: self._session.clock(f"{step.seconds:+f}s"),
            "restart": lambda step: self._again_up(step, self._session.restart),
            "kill": lambda step: self._again_up(step, self._kill),
            "mute": self._mute,
            "break": self._break,
            "look": lambda step: self._look(step.worker),
        }

    def step(self, step: Step) -> None:
        """See `Player`."""
        self._actions[step.what](step if self._alone is None else replace(step, worker=self._alone))

    def compare(self) -> None:
        """See `Player`."""
        if self._world.mute:
            self._mute(Step("mute", worker=self._alone or 0))
        for worker in range(self._session.workers) if self._alone is None else (self._alone,):
            self._look(worker)

    # Submissions

    def _submit(self, step: Step, method: str) -> None:
        self._ask(self._submission(step, method), step.worker)

    def _forge(self, step: Step) -> None:
        if "register_unvalidated" not in self._bench.not_claimed and self._world.surface == "ready":
            self._ask(replace(self._submission(replace(step, how=""), "register"), forged=True), step.worker)

    def _fail(self, step: Step) -> None:
        call = self._submission(step, "register")
        if self._would_commit(call):
            self._session.provoke("fail_verify", worker=step.worker)
            call = replace(call, rejected=True)
        self._ask(call, step.worker)

    def _abort(self, step: Step) -> None:
        self._at_failpoint(
            step, ("after_nonce_consume", "after_registration", "before_commit")[step.number % 3], "abort"
        )

    def _lose(self, step: Step) -> None:
        self._at_failpoint(step, ("before_commit", "after_commit")[step.number % 2], "lose_answer")

    def _at_failpoint(self, step: Step, point: str, fault: str) -> None:
        """One registration or compensation that meets a failpoint, where the adapter has them and it would commit."""
        call = self._submission(replace(step, how=""), step.how or "register")
        if "hold_at" not in self._bench.not_claimed and self._would_commit(call):
            self._session.provoke("hold_at", {"point": point, "fault": fault}, step.worker)
            call = replace(call, point=point, fault=fault)
        self._ask(call, step.worker)
        self._look(step.worker)

    def _retry(self, step: Step) -> None:
        """What consumed a key once more: as it was sent then, or dated now, or as another attempt of another run."""
        method = "compensate" if step.number % 2 else "register"
        sent = self._sent.get((method, step.key))
        if sent is None:
            return
        self._tries += 1
        changed = {
            "dated now": {"issued_at": self._session.now},
            "as another attempt": {"issued_at": self._session.now, "attempt_id": f"try-{self._tries}"},
        }.get(step.how, {})
        self._ask(self._call_of(method, {**sent, "request": {**sent["request"], **changed}}), step.worker)

    def _submission(self, step: Step, method: str) -> Call:
        nonce = self._nonce(step)
        self._tries += 1
        own = {"run_id": f"run-{self._tries}", "attempt_id": f"try-{self._tries}"}
        args = request(self._session, str(step.key), nonce=nonce, age_s=AGES.get(step.how, 0), **own)
        if step.how == "claiming another artifact":
            args["request"]["artifact_hash"] = self._session.hex64("forged")
        elif step.how == "deploying another artifact":
            args["request"]["deployed_artifact_hash"] = self._session.hex64("forged")
        elif step.how == "without an attempt":
            del args["request"]["attempt_id"]
        elif step.how == "with a stranger":
            args["request"]["force"] = "true"
        return self._call_of(method, args)

    def _call_of(self, method: str, args: Mapping[str, Any]) -> Call:
        return Call(method, args, self._session.now)

    # Nonces

    def _nonce(self, step: Step) -> str:
        """The nonce that a step presents; one is issued for it, unless it is an old one or none."""
        if step.nonce == "old" and self._nonces:
            return self._nonces[step.number % len(self._nonces)]
        if step.nonce == "free" or not self._can_issue:
            return f"never-issued-{self._session.rand('free')}"
        args = request(self._session, str(step.key), nonce="")
        bound = {**args["request"], **args["trusted_attested"]}
        names = _BINDING if step.nonce != "loose" else ("principal",)
        binding = {name: bound[name] for name in names}
        if step.nonce == "elsewhere":
            name = _BINDING[step.number % len(_BINDING)]
            binding[name] = self._session.hex64("other") if name == "artifact_hash" else f"{binding[name]}x"
        soon = step.nonce in ("closing", "closed", "opening", "early")
        opens = shift(self._session.now, "+1s") if step.nonce in ("opening", "early") else self._session.now
        closes = shift(opens, f"+{_BRIEF_S if soon else self._longest_s}s")
        nonce = self._issued({"binding": binding, "window": {"not_before": opens, "not_after": closes}}, step.worker)
        # Presented at the very instant at which the window opens or closes, or just outside.
        moved = {"closing": f"+{_BRIEF_S}s", "closed": f"+{_BRIEF_S}.000001s", "opening": "+1s", "early": "+0.999999s"}
        if step.nonce in moved:
            self._session.clock(moved[step.nonce])
        return nonce

    @property
    def _longest_s(self) -> Any:
        return self._bench.contract.parameters["nonce_window_seconds"].value

    @property
    def _can_issue(self) -> bool:
        return self._world.surface == "ready" and not self._world.mute

    def _issued(self, args: Mapping[str, Any], worker: int) -> str:
        answer = self._ask(self._call_of("issue_nonce", args), worker)
        return str(answer.value["nonce"])

    def _issue(self, step: Step) -> None:
        """A nonce with a window that is as long as can be, longer, or the wrong way round; or bound to nothing."""
        now, longest = self._session.now, self._longest_s
        window = {"not_before": now, "not_after": shift(now, f"+{longest}s")}
        if step.how == "for too long":
            window["not_after"] = shift(now, f"+{longest}.000001s")
        elif step.how == "backwards":
            window["not_after"] = shift(now, "-0.000001s")
        binding = {} if step.how == "bound to nothing" else {"principal": principal(self._session)}
        self._ask(self._call_of("issue_nonce", {"binding": binding, "window": window}), step.worker)

    # Everything else

    def _race(self, step: Step) -> None:
        """Two calls at once, at workers 0 and 1."""
        assert step.rival is not None, "a race has two sides"
        if self._alone is not None:
            return
        first = self._submission(step, step.how)
        second = self._submission(step.rival, step.rival.how)
        if step.rival.nonce == "same":
            second.args["request"]["authorization_nonce"] = first.args["request"]["authorization_nonce"]
        calls = [replace(call, now=self._session.now) for call in (first, second)]
        answers = self._session.race([(call.method, call.args) for call in calls])
        if not self._worlds.narrow(lambda world: self._model.race(world, calls, answers)):
            due = " and ".join(" or ".join(sorted(self._due(call))) for call in calls)
            more = sum(answer.effect == "new" for answer in answers) > 1
            got = " and ".join(map(shown, answers))
            self._differs("fail_open" if more else "wrong_reason", f"in any order what fits {due}", got)
        for call, answer in zip(calls, answers, strict=True):
            self._note(call, answer)

    def _interrupt(self, step: Step) -> None:
        """The registrar is killed while it decides; then it is asked what became of it."""
        if self._alone is not None:
            return
        call = self._submission(step, "register")
        self._session.start("register", call.args, step.worker)
        self._kill(step.worker)
        self._worlds.narrow(lambda world: self._model.after(world, call, None))
        self._sent[("register", step.key)] = dict(call.args)
        # The holder of the key is waited for, so from here on it is certain.
        self._resolve(step)

    def _resolve(self, step: Step) -> None:
        key = derive("rs4a.logical_request_key", request(self._session, str(step.key), nonce=""))
        args = {"logical_request_key": key.upper() if step.how == "in capitals" else key}
        self._ask(self._call_of("resolve_status", args), step.worker)

    def _maintain(self, step: Step) -> None:
        self._ask(self._call_of("maintain", {}), step.worker)

    def _many(self, step: Step) -> None:
        """Many new keys, each with a nonce of its own, by all workers at once.

        There are fewer where the adapter is slow, but never too few.
        """
        began = self._bench.records[-1].sent_us or 0
        workers = range(self._session.workers)
        for number in range(0, step.number, len(workers)):
            spent_s = ((self._bench.records[-1].received_us or 0) - began) / 1e6
            if number >= FEWEST and spent_s > _MANY_S:
                self._bench.note(f"{number} keys at once in the store; the time of a session was over")
                return
            binding = {"principal": principal(self._session)}
            window = {"not_before": self._session.now, "not_after": shift(self._session.now, f"+{self._longest_s}s")}
            issued = self._at_once(
                [self._call_of("issue_nonce", {"binding": binding, "window": window}) for _ in workers]
            )
            keys = [FIRST_OF_MANY + number + worker for worker in workers]
            nonces = [str(answer.value["nonce"]) for answer in issued]
            pairs = zip(keys, nonces, strict=True)
            self._at_once(
                [self._call_of("register", request(self._session, str(key), nonce=nonce)) for key, nonce in pairs]
            )

    def _at_once(self, calls: Sequence[Call]) -> list[Answer]:
        """One call at each worker, none of which minds the others."""
        handles = [self._session.start(call.method, call.args, worker) for worker, call in enumerate(calls)]
        answers = [self._session.finish(handle) for handle in handles]
        for call, answer in zip(calls, answers, strict=True):
            self._hold(call, answer)
        return answers

    def _kill(self, worker: int) -> None:
        self._session.kill(worker)
        self._session.reopen(worker)

    def _again_up(self, step: Step, again: Callable[[int], None]) -> None:
        if self._alone is None:
            again(step.worker)

    def _mute(self, step: Step) -> None:
        """The audit refuses writes, or works again."""
        if "break_audit" in self._bench.not_claimed or self._world.surface != "ready":
            return
        mute = not self._world.mute
        self._session.provoke("break_audit", {"broken": mute}, step.worker)
        self._alone = step.worker if mute else None
        self._worlds.narrow(lambda world: (replace(world, mute=mute),))
        self._objects = self._catalogue(step.worker)

    def _break(self, step: Step) -> None:
        """The surface goes away, for good."""
        if "break_surface" in self._bench.not_claimed or self._world.surface != "ready":
            return
        self._session.provoke("break_surface", {"how": step.how}, step.worker)
        self._alone = step.worker
        surface = "lacking" if step.how == "incomplete" else "broken"
        self._worlds.narrow(lambda world: (replace(world, surface=surface),))
        # Of a database that cannot be read nothing can be listed.
        self._objects = self._catalogue(step.worker) if step.how == "incomplete" else None

    # The model beside it

    @property
    def _world(self) -> World:
        return self._worlds.possible[0]

    def _due(self, call: Call) -> frozenset[str]:
        return frozenset().union(*(self._model.due(world, call) for world in self._worlds.possible))

    def _would_commit(self, call: Call) -> bool:
        return self._due(call) == {"new"}

    def _ask(self, call: Call, worker: int) -> Answer:
        answer = self._past(call, worker) if call.forged else self._session.call(call.method, call.args, worker)
        self._hold(call, answer)
        return answer

    def _hold(self, call: Call, answer: Answer) -> None:
        due = self._due(call)
        if not self._worlds.narrow(lambda world: self._model.after(world, call, answer)):
            if answer.outcome == "indeterminate" and "indeterminate" not in due:
                self._differs("indeterminate", " or ".join(sorted(due)), shown(answer))
            accepted = answer.outcome == "accepted"
            got = answer.effect if accepted else answer.reason
            if got in due:
                verdict = "lost_durability" if accepted else "wrong_reason"
                self._differs(verdict, f"{got}, and what is stored", f"{shown(answer)} {answer.value} {answer.data}")
            opened = accepted and (answer.effect == "new" or not due & {"new", "prior"})
            refused = not accepted and due & {"new", "prior"}
            verdict = "fail_open" if opened else "over_refusal" if refused else "wrong_reason"
            self._differs(verdict, " or ".join(sorted(due)), shown(answer))
        self._note(call, answer)

    def _past(self, call: Call, worker: int) -> Answer:
        """The answer to a registration that goes past the validator, in the form of any other."""
        value = self._session.provoke("register_unvalidated", call.args, worker)
        told = {"decision": value["decision"]} if "decision" in value else {}
        accepted = value["outcome"] == "accepted"
        return Answer(
            value["outcome"],
            value.get("effect"),
            value.get("reason"),
            told if accepted else None,
            None if accepted else told,
        )

    def _note(self, call: Call, answer: Answer) -> None:
        if answer.effect == "new" and call.method == "issue_nonce":
            self._nonces.append(answer.value["nonce"])
        elif answer.effect == "new" and call.method in ("register", "compensate"):
            # The label of the key stands in its target.
            label = re.match(r"dot://acme/(\d+)-", call.args["request"]["canonical_target"])
            assert label is not None, "every target of a history has its label"
            self._sent[(call.method, int(label[1]))] = dict(call.args)

    def _look(self, worker: int) -> None:
        """Every observation that shows what is stored, or how the registrar stands."""
        self._observed("gate", {}, worker)
        objects = None if self._objects is None else self._catalogue(worker)
        if objects is not None and self._objects is not None and objects != self._objects:
            made, gone = sorted(objects - self._objects), sorted(self._objects - objects)
            self._differs("fail_open", "an unchanged catalogue", f"made {made}, dropped {gone}")
        if self._world.surface != "ready":
            return
        unknown = "n" * 16
        self._observed("derive_keys", request(self._session, "0", nonce=unknown), worker)
        if len(self._world.effects) <= _SEEN:
            self._observed("state", {}, worker)
        if not self._world.mute:
            self._observed("audit", {}, worker)
        for nonce in (*self._nonces[:1], *self._nonces[-1:], unknown):
            self._observed("nonce_state", {"nonce": nonce}, worker)

    def _catalogue(self, worker: int) -> frozenset[str]:
        return frozenset(self._session.observe("catalogue", worker=worker)["objects"])

    def _observed(self, method: str, args: Mapping[str, Any], worker: int) -> None:
        value = self._session.observe(method, args, worker)
        if self._worlds.narrow(lambda world: self._model.observed(world, method, args, value)):
            return
        if method == "state":
            self._differs(*self._amiss(value))
        if method == "audit":
            due = [f"{row['method']} {row['code']}" for row in self._world.audit]
            found = [f"{row['method']} {row['code']}" for row in value["records"]]
            self._differs("state_leak", f"one record each of {due}", f"{found}, or records with other identities")
        self._differs(
            "fail_open" if method == "gate" else "lost_durability", "what the model shows", f"{method} {value}"
        )

    def _amiss(self, state: Mapping[str, Any]) -> tuple[str, str, str]:
        """The relation whose rows differ: the verdict, what was expected, what was received."""
        relations = stored(self._world).items()
        name, due = next(
            (name, rows)
            for name, rows in relations
            if not same_rows(self._bench.contract.relations[name], rows, state[name])
        )
        more = len(state[name]) - len(due)
        verdict = "fail_open" if more > 0 else "lost_durability" if more < 0 else "state_leak"
        return verdict, f"{len(due)} rows in {name}: {due[-3:]}", f"{len(state[name])} rows: {state[name][-3:]}"

    def _differs(self, verdict: str, expected: str, received: str) -> NoReturn:
        self._bench.fail(verdict, "the answer left the contract", expected=expected, received=received)
