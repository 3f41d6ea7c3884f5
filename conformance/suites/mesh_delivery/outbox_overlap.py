"""Two rounds of delivery that overlap. One waits in an attempt. Meanwhile another process delivers what is due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from holdfast.conformance.cases.session import Answer
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.mesh_delivery.broker_answers import Armed, Said, answer_at
from holdfast.conformance.suites.mesh_delivery.outbox_model import Outbox, Row, longest
from holdfast.conformance.suites.mesh_delivery.outbox_observations import Seen
from holdfast.conformance.suites.mesh_delivery.sends import Compared
from holdfast.conformance.suites.session import SuiteSession

UNAVAILABLE = "OUTBOX_UNAVAILABLE"


class Overlap(Compared):
    """The two rounds of one step. Worker 0 is the one that waits."""

    def __init__(self, bench: Bench, session: SuiteSession, seen: Seen, model: Outbox) -> None:
        self._bench, self._session, self._seen = bench, session, seen
        # What each round makes of the outbox by itself.
        self._own, self._other = model, model.copy()

    def run(self, armed: Armed, point: str, span: str) -> None:
        """Both rounds, `span` apart; the model holds what may be there behind them."""
        session, started = self._session, self._now
        handle = session.start("deliver")
        session.reached(point)
        must = self._own.due(started)
        claimed = {name for name, row in self._seen.stored().items() if row["status"] == "inflight"}
        early = self._seen.requests(self._own)
        session.clock(span, waiting=0)
        self._other.passed_over(list(self._other.rows), self._now, whole=False)
        answer = session.call("deliver", {}, 1)
        others = self._seen.requests(self._own)
        told = self._attempts(self._other, others, armed[len(early) :], answer, self._now)
        session.release(point)
        answer = session.finish(handle)
        late = self._seen.requests(self._own)
        session.clock("+0s")
        again = [name for name in late if name in others and name not in claimed]
        if again:
            self._differs("fail_open", "an attempt of what another process has settled meanwhile", "none", again[0])
        own = [*early, *late]
        answered = [*armed[: len(early)], *armed[len(early) + len(others) :]]
        mine = self._attempts(self._own, own, answered, answer, started)
        if must - {*own, *others}:
            missed = ", ".join(sorted(must - {*own, *others}))
            self._differs("over_refusal", "two rounds", f"an attempt of {missed}", "none")
        for name in self._own.rows:
            self._own.rows[name] = self._settled(name, own=name in own, other=name in others)
        # Whether both say what became of a row that both have sent is open.
        self._seen.log(0, [said for name, said in zip(own, mine, strict=True) if name not in others], dying=True)
        self._seen.log(1, [said for name, said in zip(others, told, strict=True) if name not in own], dying=True)

    def _attempts(self, model: Outbox, names: Sequence[str], armed: Armed, answer: Answer, now: datetime) -> list[Said]:
        """What was said to the attempts of one round, which are right for it."""
        count = answer.value["attempts"] if answer.outcome == "accepted" else 0
        if answer.outcome != "accepted" and answer.reason != UNAVAILABLE:
            self._differs("over_refusal", "a round", "accepted", answer.reason or answer.outcome)
        if count != len(names):
            self._weigh("wrong_reason", "the attempts of a round", len(names), count)
        told = []
        for place, name in enumerate(names):
            said, message_id = answer_at(armed, place)
            if name in names[:place] or not model.attempted(name, said.fates, now, message_id):
                self._differs("fail_open", "an attempt", "none now", name)
            told.append(said)
        return told

    def _settled(self, name: str, *, own: bool, other: bool) -> tuple[Row, ...]:
        """What may be there. The other round has written first; what it has delivered stays so."""
        mine, theirs = self._own.rows[name], self._other.rows[name]
        if not own:
            return theirs
        if not other:
            return (*mine, *(row for row in theirs if row.status == "dead"))
        kept = [row for row in mine if row.status == "done" or any(each.status != "done" for each in theirs)]
        twice = [replace(row, attempts=row.attempts + 1, due=longest(row)) for row in (*theirs, *kept)]
        return tuple(dict.fromkeys((*theirs, *kept, *twice)))
