"""A session of a registrar with the model beside it: every answer and every observation is held against both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.histories import PossibleStates
from holdfast.conformance.attacks.session import Handle, SuiteSession
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.suites.rs4a_replay.model import Model
from holdfast.conformance.suites.rs4a_replay.model_state import DECIDED, Call, ModelState, same_rows, stored
from holdfast.conformance.suites.rs4a_replay.requests import request

# The rows of more keys do not fit into one answer of the protocol.
_LEFT = "the answer left the contract"
_SEEN = 300
# A shorter text may stand in a sentence by chance.
_LONG = 8


class ModelCheckedSession:
    """What is asked and observed in one session, held against the model. Each method raises NonConformance."""

    def __init__(self, bench: Bench, session: SuiteSession, model: Model, *, surface: str) -> None:
        self._bench, self._session, self._model = bench, session, model
        self._worlds = PossibleStates(ModelState(surface=surface))
        # Nonces that were issued, in order.
        self.nonces: list[str] = []
        # What was issued or consumed a key last, for its exact retry: by the method and the key's target.
        self.sent: dict[tuple[str, str], dict[str, Any]] = {}
        # Names of the catalogue, which only a provocation may change.
        self._objects: frozenset[str] | None = self._catalogue(0)

    @property
    def world(self) -> ModelState:
        """The world, or one of those that are possible."""
        return self._worlds.possible[0]

    @property
    def is_open(self) -> bool:
        """Whether the answers leave open what is stored."""
        return len(self._worlds.possible) > 1

    def due(self, call: Call) -> frozenset[str]:
        """What the model says of a call now."""
        return frozenset().union(*(self._model.due(world, call) for world in self._worlds.possible))

    def would_commit(self, call: Call) -> bool:
        """Whether the call is sure to come to the transaction."""
        return self.due(call) == {"new"}

    def has(self, provocation: str) -> bool:
        """Whether the adapter claims it."""
        return provocation not in self._bench.not_claimed

    # What is asked

    def ask(self, call: Call, worker: int) -> Answer:
        """Ask, and hold the answer against the model."""
        answer = self._past(call, worker) if call.forged else self._session.call(call.method, call.args, worker)
        self.hold(call, answer)
        return answer

    def start(self, call: Call, worker: int) -> Handle:
        """Send a call, and do not wait."""
        return self._session.start(call.method, call.args, worker)

    def finish(self, call: Call, handle: Handle) -> None:
        """The answer of a call that was started."""
        self.hold(call, self._session.finish(handle))

    def hold(self, call: Call, answer: Answer) -> None:
        """Hold an answer against the model."""
        due = self.due(call)
        if not self._worlds.narrow(lambda world: self._model.after(world, call, answer)):
            if answer.outcome == "indeterminate" and "indeterminate" not in due:
                self.differs("indeterminate", " or ".join(sorted(due)), answer.words)
            accepted = answer.outcome == "accepted"
            got = answer.effect if accepted else answer.reason
            if got in due:
                verdict = "lost_durability" if accepted else "wrong_reason"
                self.weigh(verdict, f"{got}, and what is stored", f"{answer.words} {answer.value} {answer.data}")
            else:
                opened = accepted and (answer.effect == "new" or not due & {"new", "prior"})
                refused = not accepted and due & {"new", "prior"}
                verdict = "fail_open" if opened else "over_refusal" if refused else "wrong_reason"
                self.weigh(verdict, " or ".join(sorted(due)), answer.words)
        self._note(call, answer)

    def died(self, call: Call) -> None:
        """The process was killed while it worked on this call."""
        self._remember(call)
        self._worlds.narrow(lambda world: self._model.after(world, call, None))

    def race(self, calls: Sequence[Call]) -> None:
        """One call of each worker at once. In some order they fit the model."""
        answers = self._session.race([(call.method, call.args) for call in calls])
        if not self._worlds.narrow(lambda world: self._model.race(world, calls, answers)):
            due = " and ".join(" or ".join(sorted(self.due(call))) for call in calls)
            more = sum(
                answer.effect == "new" and call.method in DECIDED for call, answer in zip(calls, answers, strict=True)
            )
            verdict = "fail_open" if more > 1 else "wrong_reason"
            self.differs(verdict, f"in any order what fits {due}", " and ".join(answer.words for answer in answers))
        for call, answer in zip(calls, answers, strict=True):
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
        if answer.outcome == "refused" and answer.detail:
            self._tells_nothing(call, answer)
        if answer.effect == "new" and call.method == "issue_nonce":
            self.nonces.append(answer.value["nonce"])
        if answer.effect == "new":
            self._remember(call)

    def _tells_nothing(self, call: Call, answer: Answer) -> None:
        """`detail` names no nonce and no decision beside those of request and `data`, nor what a nonce is bound to."""
        shown = list(_texts([call.args, answer.data]))
        kept = [*self.nonces, *(each.id for each in self.world.effects.values() if each.id)]
        if answer.reason == "NONCE_UNBOUND":
            grant = self.world.issued.get(call.args["request"]["authorization_nonce"], {})
            kept += _texts(grant.get("binding"))
        kept = [text for text in kept if len(text) >= _LONG and not any(text in each for each in shown)]
        told = [text for text in kept if text in answer.detail]
        if told:
            self.weigh("wrong_reason", f"{answer.reason} that tells nothing of another's", f"it tells {told[0]}")

    def _remember(self, call: Call) -> None:
        if call.method in DECIDED:
            self.sent[(call.method, call.args["request"]["canonical_target"])] = dict(call.args)
        else:
            # The oldest, so that it is asked for again after a while.
            self.sent.setdefault((call.method, ""), dict(call.args))

    # What is observed

    def look(self, worker: int) -> None:
        """Every observation that shows what is stored, or how the registrar stands."""
        self._observed("gate", {}, worker)
        objects = None if self._objects is None else self._catalogue(worker)
        if objects is not None and self._objects is not None and objects != self._objects:
            made, gone = sorted(objects - self._objects), sorted(self._objects - objects)
            self.differs("fail_open", "an unchanged catalogue", f"made {made}, dropped {gone}")
        if self.world.surface != "ready":
            return
        unknown = "n" * 16
        self._observed("derive_keys", request(self._session, "0", nonce=unknown), worker)
        if len(self.world.effects) <= _SEEN:
            self._observed("state", {}, worker)
        if not self.world.mute:
            self._observed("audit", {}, worker)
        for nonce in (*self.nonces[:1], *self.nonces[-1:], unknown):
            self._observed("nonce_state", {"nonce": nonce}, worker)

    def narrow(self, after: Callable[[ModelState], ModelState]) -> None:
        """Something that is no operation changed the world."""
        self._worlds.narrow(lambda world: (after(world),))

    def changed(self, worker: int, *, readable: bool = True, **members: Any) -> frozenset[str]:
        """A provocation changed the world: what it took out of the catalogue. An unreadable database lists nothing."""
        self.narrow(lambda world: replace(world, **members))
        before, self._objects = self._objects, self._catalogue(worker) if readable else None
        return (before or frozenset()) - (self._objects or frozenset())

    def _catalogue(self, worker: int) -> frozenset[str]:
        return frozenset(self._session.observe("catalogue", worker=worker)["objects"])

    def _observed(self, method: str, args: Mapping[str, Any], worker: int) -> None:
        value = self._session.observe(method, args, worker)
        if self._worlds.narrow(lambda world: self._model.observed(world, method, args, value)):
            return
        if method == "state":
            self.differs(*self._amiss(value))
        if method == "audit":
            due = [f"{row['method']} {row['code']}" for row in self.world.audit]
            found = [f"{row['method']} {row['code']}" for row in value["records"]]
            self.differs("state_leak", f"one record each of {due}", f"{found}, or records with other identities")
        self.differs(
            "fail_open" if method == "gate" else "lost_durability", "what the model shows", f"{method} {value}"
        )

    def _amiss(self, state: Mapping[str, Any]) -> tuple[str, str, str]:
        """The relation whose rows differ: the verdict, what was expected, what was received."""
        relations = stored(self.world).items()
        name, due = next(
            (
                (name, rows)
                for name, rows in relations
                if not same_rows(self._bench.contract.relations[name], rows, state[name])
            ),
            ("nonce_issue", []),
        )
        more = len(state[name]) - len(due)
        verdict = "fail_open" if more > 0 else "lost_durability" if more < 0 else "state_leak"
        return verdict, f"{len(due)} rows in {name}: {due[-3:]}", f"{len(state[name])} rows: {state[name][-3:]}"

    def differs(self, verdict: str, expected: str, received: str) -> NoReturn:
        """Report what left the contract."""
        self._bench.fail(verdict, _LEFT, expected=expected, received=received)

    def weigh(self, verdict: str, expected: str, received: str) -> None:
        """The same, unless it is a wrong answer only, behind which the history goes on."""
        self._bench.weigh(verdict, _LEFT, expected=expected, received=received)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for each in value.values() for text in _texts(each))
    elif isinstance(value, list):
        yield from (text for each in value for text in _texts(each))
