"""The envelopes of one history: made from its session, and found again by how long ago they were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from random import Random

from holdfast.conformance.cases.values import base64url, from_base64url, shift
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

    def called(self, data: str) -> Letter | None:
        """The one with these bytes."""
        return next((letter for letter in reversed(self._made) if letter.data == data), None)

    def of(self, which: int) -> Letter:
        """One that was made before, from the last on; a new one where there is none."""
        return self._made[-1 - which % len(self._made)] if self._made else self.make(0)

    def twin(self, which: int) -> Letter:
        """A new one with the message id of one that was made before."""
        return self.make(0, self.of(which).msg_id)

    @property
    def now(self) -> datetime:
        """The clock of the session."""
        return datetime.fromisoformat(self._session.now)

    def long(self, size: int) -> Letter:
        """A new one whose encoding has so many bytes."""
        short = len(from_base64url(self.make(0, filler="").data))
        return self.make(0, filler="x" * (size - short))

    def make(self, seconds: float, msg_id: str | None = None, filler: str | None = None) -> Letter:
        """A new one, so many seconds ahead of the clock; with a further member of the header if there is a `filler`."""
        number = len(self._made)
        label, sender = f"letter {number:05}", f"sender {number % 3}"
        timestamp = shift(self._session.now, f"{'-' if seconds < 0 else '+'}{abs(seconds):.6f}s")
        header = {
            "msg_id": msg_id or derive("calyx.msg_id", self._session.hex64(label)),
            "recipient_fp": self._session.hex64(f"recipient {number % 2}"),
            "timestamp": timestamp,
            **({} if filler is None else {"x-filler": filler}),
        }
        text = f"{label}: {self._session.rand(label)}"
        data = derive("calyx.envelope", {"key": sender, "header": header, "ciphertext": base64url(text.encode())})
        row = {
            "replay_key": derive("calyx.replay_key", data),
            "msg_id": header["msg_id"],
            "sender_fp": derive("calyx.sender_fp", sender),
            "recipient_fp": header["recipient_fp"],
            "envelope_timestamp": timestamp,
        }
        self._made.append(Letter(data, datetime.fromisoformat(timestamp), row, text))
        return self._made[-1]

    def rows(
        self, count: int, first: int, begin: datetime, span: timedelta
    ) -> list[tuple[Mapping[str, str], datetime]]:
        """This number of rows of no letter, numbered from `first` on, each with its time within a span.

        Not in the order of their times: what is removed up to a number is then not what is oldest.
        """
        row = self.make(0).row
        places = Random(first).sample(range(count), count)  # noqa: S311 - nothing is kept secret with it
        return [
            ({**row, "replay_key": self._session.hex64(f"row {first + number}")}, begin + place * span / max(1, count))
            for number, place in enumerate(places)
        ]
