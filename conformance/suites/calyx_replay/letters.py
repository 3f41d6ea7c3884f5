"""The envelopes of one history: made from its session, and found again by how long ago they were made."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from holdfast.conformance.cases.values import base64url, shift
from holdfast.conformance.suites.calyx_replay.model import Letter
from holdfast.conformance.suites.session import SuiteSession
from holdfast.vectors.derive import derive


class Letters:
    """Envelopes of three senders to two recipients."""

    def __init__(self, session: SuiteSession) -> None:
        self._session = session
        self._made: list[Letter] = []

    @property
    def made(self) -> Sequence[Letter]:
        """All, in the order in which they were made."""
        return self._made

    def of(self, which: int) -> Letter:
        """One that was made before, from the last on; a new one where there is none."""
        return self._made[-1 - which % len(self._made)] if self._made else self.make(0)

    def twin(self, which: int) -> Letter:
        """A new one with the message id of one that was made before."""
        return self.make(0, self.of(which).msg_id)

    def make(self, seconds: float, msg_id: str | None = None) -> Letter:
        """A new one, so many seconds ahead of the clock."""
        number = len(self._made)
        label, sender = f"letter {number}", f"sender {number % 3}"
        timestamp = shift(self._session.now, f"{'-' if seconds < 0 else '+'}{abs(seconds):.6f}s")
        header = {
            "msg_id": msg_id or derive("calyx.msg_id", self._session.hex64(label)),
            "recipient_fp": self._session.hex64(f"recipient {number % 2}"),
            "timestamp": timestamp,
        }
        data = derive("calyx.envelope", {"key": sender, "header": header, "ciphertext": base64url(label.encode())})
        row = {
            "replay_key": derive("calyx.replay_key", data),
            "msg_id": header["msg_id"],
            "sender_fp": derive("calyx.sender_fp", sender),
            "recipient_fp": header["recipient_fp"],
            "envelope_timestamp": timestamp,
        }
        self._made.append(Letter(data, datetime.fromisoformat(timestamp), row))
        return self._made[-1]
