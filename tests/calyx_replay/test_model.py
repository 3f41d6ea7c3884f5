"""A mailbox against a model that fits on one page: sets in memory, and the rules of the contract."""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from holdfast.reference_impl.calyx_replay.entry import CalyxReplay
from holdfast.reference_impl.session import OpenRequest, StateWanted, SurfaceWanted
from holdfast.servers.serving import Launched
from tests.calyx_replay.conftest import NOW, Box, envelope, key_of

WINDOW, DAY = timedelta(seconds=300), timedelta(hours=24)
# Around the edges of window and retention, in both directions.
SPANS = st.sampled_from([0, 1, -1, 299, 300, 301, -300, -301, 599, 600, 601, 3600, 86400, 86401, -86400, 90000, -90000])
MICROSECONDS = st.sampled_from([0, 0, 1, -1])


class Mailboxes(RuleBasedStateMachine):
    """Two connections on one mailbox, a clock that jumps both ways, and what must come out."""

    template: Launched

    @initialize()
    def start(self) -> None:
        self.workdir = Path(tempfile.mkdtemp(prefix="hf-calyx-model-"))
        self.now = NOW
        self.seen: dict[str, datetime] = {}
        self.delivered: list[str] = []
        self.sent: list[tuple[bytes, datetime]] = []
        self.cutoff = datetime.min.replace(tzinfo=UTC)
        self.last_automatic = NOW
        self.boxes = [self.open(StateWanted.FRESH), self.open(StateWanted.EXISTING)]

    def open(self, state: StateWanted) -> Box:
        request = OpenRequest(state, SurfaceWanted.READY, self.workdir, self.now, self.template.ready.config)
        return Box(CalyxReplay().open(request), self.workdir)

    def forget(self, cutoff: datetime) -> int:
        old = [key for key, seen in self.seen.items() if seen < cutoff]
        for key in old:
            del self.seen[key]
        self.cutoff = max(self.cutoff, cutoff)
        return len(old)

    def prune_if_due(self) -> None:
        if abs(self.now - self.last_automatic) >= DAY:
            self.last_automatic = self.now
            self.forget(self.now - DAY)

    def expected(self, key: str, timestamp: datetime) -> str:
        if abs(timestamp - self.now) > WINDOW:
            return "TIMESTAMP_OUT_OF_WINDOW"
        if key in self.seen:
            return "REPLAY_DUPLICATE"
        if timestamp < self.cutoff + WINDOW:
            return "REPLAY_UNPROVABLE"
        return "new"

    def send(self, which: int, raw: bytes, timestamp: datetime) -> None:
        key = key_of(raw)
        expected = self.expected(key, timestamp)
        assert self.boxes[which].outcome(raw) == expected
        if expected == "new":
            # For every clock: never twice.
            assert key not in self.delivered
            self.seen[key] = self.now
            self.delivered.append(key)
            self.prune_if_due()

    @rule(which=st.integers(0, 1), seconds=st.sampled_from([0, 0, 0, 5, 300, -300, 301, -301]), more=MICROSECONDS)
    def accept(self, which: int, seconds: int, more: int) -> None:
        at = self.now + timedelta(seconds=seconds, microseconds=more)
        raw = envelope(at=at)
        self.sent.append((raw, at))
        self.send(which, raw, at)

    @rule(which=st.integers(0, 1), data=st.data())
    def replay(self, which: int, data: st.DataObject) -> None:
        if self.sent:
            self.send(which, *data.draw(st.sampled_from(self.sent[-8:])))

    @rule(seconds=SPANS, more=MICROSECONDS)
    def skew(self, seconds: int, more: int) -> None:
        self.now += timedelta(seconds=seconds, microseconds=more)
        for box in self.boxes:
            box.session.set_clock(self.now)

    @rule(which=st.integers(0, 1), hours=st.sampled_from([None, 0.1, 600 / 3600, 1, 24, 48]))
    def prune(self, which: int, hours: float | None) -> None:
        args = {} if hours is None else {"retention_hours": hours}
        answer = self.boxes[which].call("prune", **args)
        if hours == 0.1:
            assert getattr(answer, "reason", None) == "RETENTION_TOO_SHORT"
            return
        removed = self.forget(self.now - timedelta(hours=24 if hours is None else hours))
        assert getattr(answer, "value", None) == {"removed": removed, "kept": len(self.seen), "unreadable": 0}

    @rule(which=st.integers(0, 1))
    def restart(self, which: int) -> None:
        self.boxes[which].session.close()
        self.boxes[which] = self.open(StateWanted.EXISTING)
        self.prune_if_due()

    @invariant()
    def both_see_the_same(self) -> None:
        for box in getattr(self, "boxes", []):
            assert box.keys() == set(self.seen)
            assert box.delivered() == self.delivered

    def teardown(self) -> None:
        for box in reversed(getattr(self, "boxes", [])):
            box.session.close()
        if hasattr(self, "workdir"):
            shutil.rmtree(self.workdir)


def test_it_does_what_the_model_does(template: Launched) -> None:
    Mailboxes.template = template
    run_state_machine_as_test(
        Mailboxes,
        settings=settings(max_examples=40, stateful_step_count=25, deadline=None, database=None, derandomize=True),
    )
