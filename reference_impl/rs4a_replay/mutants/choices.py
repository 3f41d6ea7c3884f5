"""Sound variants of rs4a-replay: each does what a clause permits, and the reference does not do."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.reference_impl.answers import Accepted
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.admission import Attempt, Refusal
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.store import Row
from holdfast.reference_impl.rs4a_replay.terms import Reason


class NewAttemptsRefused(Registrar):
    def retold(self, attempt: Attempt, row: Row | None) -> Accepted | Refusal | None:  # type: ignore[override]
        told = super().retold(attempt, row)
        submission = attempt.verdict.submission
        if told is None or row is None or submission is None or row["attempt_id"] == submission.attempt_id:
            return told
        return Refusal(Reason.REPLAY_ATTEMPT_NO_BYPASS, {"decision": told.value["decision"]})


BUGS: Mapping[str, Change] = {
    "choice-new-attempts-refused": part(registrar=NewAttemptsRefused),
}
