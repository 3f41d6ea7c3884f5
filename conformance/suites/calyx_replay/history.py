"""Histories of a mailbox, and the small model that each is held against."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hypothesis import strategies as st

from holdfast.conformance.cases.values import shift
from holdfast.conformance.session import Answer
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.session import SuiteSession
from holdfast.vectors.derive import derive

_WINDOW = timedelta(seconds=300)


@dataclass(frozen=True, slots=True)
class Step:
    """What is done: `which` envelope of those sent, `seconds` of time, by which `worker`."""

    what: str
    which: int = 0
    seconds: float = 0
    worker: int = 0


_WORKERS = st.integers(0, 1)
# Around the edge of the window (300 s), where an off-by-one shows.
_SKEWS = st.sampled_from([0, 0, 0, 0, 300, -300, 300.000001, -300.000001, 4000])
STEPS = st.one_of(
    st.builds(Step, st.just("send"), seconds=_SKEWS, worker=_WORKERS),
    st.builds(Step, st.just("send"), seconds=_SKEWS, worker=_WORKERS),
    st.builds(Step, st.just("again"), which=st.integers(0, 9), worker=_WORKERS),
    st.builds(Step, st.just("again"), which=st.integers(0, 9), worker=_WORKERS),
    st.builds(Step, st.just("clock"), seconds=st.sampled_from([1, 299, 601, 23 * 3600, 25 * 3600])),
    st.builds(Step, st.just("prune"), seconds=st.sampled_from([600, 3600, 24 * 3600]), worker=_WORKERS),
    st.builds(Step, st.just("restart")),
)
# Every history begins with an envelope and its replay by another process.
OPENING = (Step("send"), Step("again", worker=1), Step("send", seconds=300, worker=1))


@dataclass(slots=True)
class _Sent:
    """An envelope: its bytes, its timestamp, and when it first arrived if it was delivered."""

    data: str
    at: datetime
    delivered: bool = False


@dataclass(slots=True)
class _Model:
    """What the mailbox has to have: when each key that is still recorded arrived, and what was delivered."""

    seen: dict[str, datetime] = field(default_factory=dict)
    delivered: list[str] = field(default_factory=list)


class Play:
    """Plays a history against a session and the model side by side."""

    def __init__(self, bench: Bench, session: SuiteSession, make: Callable[[str, str], str]) -> None:
        self.bench, self.session, self._make = bench, session, make
        self.model = _Model()
        self.sent: list[_Sent] = []
        self.told: list[str] = []

    def step(self, step: Step) -> None:
        """Do it, and hold the answer against the model."""
        actions: dict[str, Callable[[Step], None]] = {
            "send": self._send,
            "again": self._again,
            "clock": lambda one: self.session.clock(f"+{one.seconds:g}s"),
            "prune": self._prune,
            "restart": lambda _: self.session.restart(),
        }
        self.told.append(f"{step.what} {step.which} {step.seconds:g} by {step.worker}")
        actions[step.what](step)

    @property
    def _now(self) -> datetime:
        return datetime.fromisoformat(self.session.now)

    def _send(self, step: Step) -> None:
        sign = "-" if step.seconds < 0 else "+"
        at = shift(self.session.now, f"{sign}{abs(step.seconds):.6f}s")
        self.sent.append(_Sent(self._make(f"m{len(self.sent)}", at), datetime.fromisoformat(at)))
        self._accept(self.sent[-1], step.worker)

    def _again(self, step: Step) -> None:
        self._accept(self.sent[step.which % len(self.sent)], step.worker)

    def _accept(self, sent: _Sent, worker: int) -> None:
        answer = self.session.call("accept", {"envelope": sent.data}, worker)
        if abs(sent.at - self._now) > _WINDOW:
            due = "TIMESTAMP_OUT_OF_WINDOW"
        elif sent.delivered:
            due = "REPLAY_DUPLICATE"
        else:
            due = "accepted"
        got = answer.reason or answer.outcome
        if got != due:
            opened = answer.outcome == "accepted"
            verdict = "fail_open" if opened else "over_refusal" if due == "accepted" else "wrong_reason"
            self._differs(due, got, verdict)
        if due == "accepted":
            sent.delivered = True
            key = derive("calyx.replay_key", sent.data)
            self.model.seen[key] = self._now
            self.model.delivered.append(key)

    def _prune(self, step: Step) -> None:
        answer: Answer = self.session.call("prune", {"retention_hours": step.seconds / 3600}, step.worker)
        if answer.outcome != "accepted":
            self._differs("accepted", f"{answer.outcome} {answer.reason}", "over_refusal")
        cutoff = self._now - timedelta(seconds=step.seconds)
        self.model.seen = {key: at for key, at in self.model.seen.items() if at >= cutoff}

    def compare(self) -> None:
        """What is recorded is what the model has, but for what an automatic prune may have removed."""
        rows = {row["replay_key"]: row["seen_at"] for row in self.session.observe("state")["replay_state"]}
        day_ago = self._now - timedelta(hours=24)
        for key, at in self.model.seen.items():
            if key not in rows and at >= day_ago:
                self._differs(f"the row of {key}, seen at {at.isoformat()}", "no such row", "lost_durability")
            if key in rows and datetime.fromisoformat(rows[key]) != at:
                self._differs(f"seen_at {at.isoformat()}", rows[key], "state_leak")
        for key in rows:
            if key not in self.model.seen:
                self._differs("no row that was pruned or never delivered", key, "state_leak")
        delivered = [each["replay_key"] for each in self.session.observe("deliveries")["delivered"]]
        if sorted(delivered) != sorted(self.model.delivered):
            more = len(delivered) > len(self.model.delivered)
            self._differs(
                f"{len(self.model.delivered)} deliveries", f"{delivered!r}", "fail_open" if more else "lost_durability"
            )

    def _differs(self, expected: str, received: str, verdict: str) -> None:
        history = "; ".join(self.told)
        self.bench.fail(verdict, f"the history [{history}] left the contract", expected=expected, received=received)
