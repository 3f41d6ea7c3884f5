"""Any history of rs4a-replay beside a small model that knows the contract and nothing of stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from holdfast.conformance.cases.values import shift
from holdfast.conformance.session import Answer
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.session import SuiteSession
from holdfast.vectors.derive import derive


def window_end(bench: Bench, session: SuiteSession) -> str:
    """When a nonce that is issued now can last be presented: the longest window the contract allows."""
    return shift(session.now, f"+{bench.contract.parameters['nonce_window_seconds'].value}s")


def request(session: SuiteSession, label: str, *, nonce: str, age_s: float = 0, **members: str) -> dict[str, Any]:
    """A submission; `label` decides target and owner, and so the logical key."""
    artifact = session.hex64("artifact")
    body = {
        "protocol_version": "rs4a/0.2",
        "operation": "register_dot",
        "canonical_target": f"dot://acme/{label}-{session.rand('target')}",
        "owner_or_approval_binding": f"owner-{session.rand('owner')}",
        "principal": f"agent-{session.rand('principal')}",
        "run_id": f"run-{session.rand('run')}",
        "deployed_artifact_hash": artifact,
        "authorization_nonce": nonce,
        "attempt_id": f"try-{session.rand('attempt')}",
        "issued_at": shift(session.now, f"-{age_s:f}s") if age_s else session.now,
        **members,
    }
    return {"request": body, "trusted_attested": {"artifact_hash": artifact}}


def issue(bench: Bench, session: SuiteSession, *, worker: int = 0, binding: Mapping[str, str] | None = None) -> str:
    """A fresh nonce, bound to the principal unless the call says otherwise."""
    window = {"not_before": session.now, "not_after": window_end(bench, session)}
    bound = binding or {"principal": f"agent-{session.rand('principal')}"}
    answer = session.call("issue_nonce", {"binding": bound, "window": window}, worker)
    if answer.outcome != "accepted":
        bench.fail("not_reached", "no nonce was issued, so nothing can be shown", received=shown(answer))
    return str(answer.value["nonce"])


def shown(answer: Answer) -> str:
    """An answer in a word or two."""
    return " ".join(str(part) for part in (answer.outcome, answer.effect, answer.reason) if part is not None)


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a history: `what` is done with key `key` and nonce number `nonce`, modulo how many there are."""

    what: str
    key: int = 0
    nonce: int = 0
    age_s: float = 0
    seconds: int = 0


@dataclass(slots=True)
class _Nonce:
    """A nonce in the model. `target` is the key it is bound to, None if bound to the principal only."""

    value: str
    target: int | None
    until: str
    used_by: tuple[str, int] | None = None


@dataclass(slots=True)
class _Model:
    """What the contract says about a history; no store, no time but the frozen one."""

    ttl_s: int
    fail_next: bool = False
    nonces: list[_Nonce] = field(default_factory=list)
    decisions: dict[int, dict[str, Any]] = field(default_factory=dict)
    refusals: list[str] = field(default_factory=list)

    def register(self, key: int, nonce: _Nonce | None, *, age_s: float, now: str) -> str:
        """The reason due, or `new`, or `prior` (decision_order of the contract)."""
        if age_s > self.ttl_s:
            return "REQUEST_STALE"
        used = None if nonce is None else nonce.used_by
        if key in self.decisions:
            if used == ("registration", key):
                return "prior"
            if used is not None:
                return "REPLAY_NONCE_CONSUMED"
            return "REPLAY_DUPLICATE" if self.decisions[key]["state"] == "COMMITTED" else "COMPENSATION_ONLY"
        if nonce is None or nonce.target not in (None, key) or now > nonce.until:
            return "NONCE_UNBOUND"
        return "new" if used is None else "REPLAY_NONCE_CONSUMED"

    def compensate(self, key: int, nonce: _Nonce | None, *, age_s: float, now: str) -> set[str]:
        """Every answer that fits: the contract does not say which of several reasons goes first."""
        if age_s > self.ttl_s:
            return {"REQUEST_STALE"}
        used = None if nonce is None else nonce.used_by
        state = self.decisions.get(key, {}).get("state")
        if state == "COMPENSATED" and used == ("compensation", key):
            return {"prior"}
        due = set()
        if state not in ("FAILED", "COMPENSATED"):
            due.add("NOTHING_TO_COMPENSATE")
        if state == "COMPENSATED":
            due.add("REPLAY_DUPLICATE")
        if used is not None:
            due.add("REPLAY_NONCE_CONSUMED")
        if nonce is None or nonce.target not in (None, key) or now > nonce.until:
            due.add("NONCE_UNBOUND")
        return due or {"new"}


_KEYS = st.integers(0, 2)
_NONCES = st.integers(0, 5)
# Around the end of the time to live (300 s), where an off-by-one shows.
_AGES = st.sampled_from([0, 0, 0, 0, 299.999999, 300, 300.000001, 3000])
_CALL = {"key": _KEYS, "nonce": _NONCES, "age_s": _AGES}
STEPS = st.one_of(
    st.builds(Step, st.just("issue"), key=st.integers(0, 5)),
    st.builds(Step, st.just("register"), **_CALL),
    st.builds(Step, st.just("register"), **_CALL),
    st.builds(Step, st.just("retry"), key=_KEYS),
    st.builds(Step, st.just("compensate"), **_CALL),
    st.builds(Step, st.just("fail next"), key=_KEYS),
    st.builds(Step, st.just("clock"), seconds=st.sampled_from([1, 300, 3601])),
    st.builds(Step, st.just("resolve"), key=_KEYS),
    st.builds(Step, st.just("maintain")),
)
# Every history begins with two nonces, a committed and a failed registration, so that none is idle.
OPENING = (
    Step("issue", key=3), Step("issue", key=3), Step("issue", key=3), Step("register", key=0, nonce=0),
    Step("fail next"), Step("register", key=1, nonce=1),
)  # fmt: skip


class Play:
    """Plays a history against a session and the model side by side."""

    def __init__(self, bench: Bench, session: SuiteSession) -> None:
        self.bench = bench
        self.session = session
        self.model = _Model(ttl_s=int(bench.contract.parameters["ttl_seconds"].value or 0))
        self.told: list[str] = []
        self.tries = 0

    def step(self, step: Step) -> None:
        actions: dict[str, Callable[[Step], None]] = {
            "issue": self._issue,
            "register": self._register,
            "retry": self._retry,
            "compensate": self._compensate,
            "fail next": lambda _: self._fail_next(),
            "clock": lambda s: self.session.clock(f"+{s.seconds}s"),
            "restart": lambda _: self.session.restart(),
            "resolve": self._resolve,
            "maintain": lambda _: self._maintain(),
        }
        self.told.append(f"{step.what} {step.key} {step.nonce} {step.age_s:g}")
        actions[step.what](step)

    def _submission(self, step: Step, nonce: _Nonce | None) -> dict[str, Any]:
        self.tries += 1
        value = f"never-issued-{self.session.rand('free')}" if nonce is None else nonce.value
        return request(
            self.session, str(step.key), nonce=value, age_s=step.age_s,
            run_id=f"run-{self.tries}", attempt_id=f"try-{self.tries}",
        )  # fmt: skip

    def _chosen(self, step: Step) -> _Nonce | None:
        """One past the last nonce is one that was never issued."""
        at = step.nonce % (len(self.model.nonces) + 1)
        return self.model.nonces[at] if at < len(self.model.nonces) else None

    def _issue(self, step: Step) -> None:
        """Keys 0 to 2: bound to that target; beyond: to the principal only."""
        target = step.key if step.key <= 2 else None
        bound = request(self.session, str(step.key), nonce="")["request"]["canonical_target"]
        binding = None if target is None else {"canonical_target": bound}
        value = issue(self.bench, self.session, binding=binding)
        self.model.nonces.append(_Nonce(value, target, window_end(self.bench, self.session)))

    def _fail_next(self) -> None:
        self.session.provoke("fail_verify")
        self.model.fail_next = True

    def _register(self, step: Step) -> None:
        nonce = self._chosen(step)
        due = self.model.register(step.key, nonce, age_s=step.age_s, now=self.session.now)
        answer = self.session.call("register", self._submission(step, nonce))
        if due == "prior" and answer.reason == "REPLAY_ATTEMPT_NO_BYPASS":
            self.model.refusals.append(answer.reason)
            return
        self._judge(answer, {due}, step)
        blocked = step.key in self.model.decisions
        if due == "REQUEST_STALE" and (answer.data or {}).get("replay_blocked") is not blocked:
            self._differs(f"replay_blocked {blocked}", repr(answer.data), "fail_open")
        if due == "new" and nonce is not None:
            nonce.used_by = ("registration", step.key)
            state = "FAILED" if self.model.fail_next else "COMMITTED"
            self.model.decisions[step.key] = {"id": answer.value["decision"]["decision_id"], "state": state}
            self.model.fail_next = False

    def _retry(self, step: Step) -> None:
        """The nonce that consumed the key, if the key is consumed."""
        for number, nonce in enumerate(self.model.nonces):
            if nonce.used_by == ("registration", step.key):
                self._register(Step("register", step.key, number))

    def _compensate(self, step: Step) -> None:
        nonce = self._chosen(step)
        due = self.model.compensate(step.key, nonce, age_s=step.age_s, now=self.session.now)
        answer = self.session.call("compensate", self._submission(step, nonce))
        self._judge(answer, due, step)
        if due == {"new"} and nonce is not None:
            nonce.used_by = ("compensation", step.key)
            self.model.decisions[step.key]["state"] = "COMPENSATED"

    def _judge(self, answer: Answer, due: set[str], step: Step) -> None:
        got = answer.effect if answer.outcome == "accepted" else answer.reason
        if got not in due:
            opened = answer.outcome == "accepted" and (answer.effect == "new" or not due & {"new", "prior"})
            refused = answer.outcome == "refused" and due & {"new", "prior"}
            verdict = "fail_open" if opened else "over_refusal" if refused else "wrong_reason"
            self._differs(" or ".join(sorted(due)), shown(answer), verdict)
        if answer.outcome == "refused":
            self.model.refusals.append(str(answer.reason))
        if got == "prior":
            self._same_decision(answer.value["decision"], step.key)

    def _same_decision(self, told: Mapping[str, Any], key: int) -> None:
        known = self.model.decisions[key]
        if (told["decision_id"], told["state"]) != (known["id"], known["state"]):
            self._differs(repr(known), f"{told['decision_id']} {told['state']}", "lost_durability")

    def _resolve(self, step: Step) -> None:
        key = derive("rs4a.logical_request_key", self._submission(step, None))
        answer = self.session.call("resolve_status", {"logical_request_key": key})
        due = "COMMITTED" if step.key in self.model.decisions else "NOT_COMMITTED"
        if answer.outcome != "accepted" or answer.value["status"] != due:
            self._differs(due, f"{shown(answer)} {answer.value!r}", "lost_durability")
        if due == "COMMITTED" and "decision" in answer.value:
            self._same_decision(answer.value["decision"], step.key)

    def _maintain(self) -> None:
        answer = self.session.call("maintain")
        if answer.outcome != "accepted" or answer.value["tombstoned"] != 0:
            self._differs("accepted, no tombstone without a horizon", f"{shown(answer)} {answer.value!r}", "fail_open")

    def compare(self) -> None:
        """The stored rows and the audit are those of the model."""
        state = self.session.observe("state")
        model = self.model
        due = (
            sorted(decision["id"] for decision in model.decisions.values()),
            sorted(nonce.value for nonce in model.nonces if nonce.used_by),
            sorted(d["id"] for d in model.decisions.values() if d["state"] != "COMMITTED"),
            sorted(d["id"] for d in model.decisions.values() if d["state"] == "COMPENSATED"),
        )
        got = (
            sorted(row["decision_id"] for row in state["registration"]),
            sorted(row["authorization_nonce"] for row in state["nonce_consume"]),
            sorted(row["decision_id"] for row in state["verification"]),
            sorted(row["decision_id"] for row in state["compensation"]),
        )
        if got != due:
            more = any(len(have) > len(want) for have, want in zip(got, due, strict=True))
            self._differs(f"rows {due!r}", f"{got!r}", "fail_open" if more else "lost_durability")
        records = self.session.observe("audit")["records"]
        codes = [record["code"] for record in records if record["method"] in ("register", "compensate")]
        if codes != model.refusals:
            self._differs(f"audit {model.refusals!r}", f"{codes!r}", "state_leak")

    def _differs(self, expected: str, received: str, verdict: str) -> None:
        history = "; ".join(self.told)
        self.bench.fail(verdict, f"the history [{history}] left the contract", expected=expected, received=received)
