"""The envelopes of one history: made from its session, and found again by how long ago they were made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random

from holdfast.conformance.cases.values import base64url, from_base64url, shift
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.calyx_replay.model import Letter, said, written
from holdfast.conformance.suites.session import SuiteSession
from holdfast.vectors.derive import derive

# The ways to forge a letter, and the reason with which a mailbox has to refuse each.
FORGERIES: Mapping[str, str] = {
    "signature": "SIGNATURE_INVALID",
    "ciphertext": "SIGNATURE_INVALID",
    "recipient": "SIGNATURE_INVALID",
    "sender": "SIGNATURE_INVALID",
    "key": "ENVELOPE_MALFORMED",
    "spelling": "ENVELOPE_MALFORMED",
    "timestamp": "TIMESTAMP_UNREADABLE",
    "member": "SIGNATURE_INVALID",
}

# Names that members have elsewhere in an envelope or in a row. In a header they are members like any other.
_NAMES = ("signature", "ciphertext", "header", "protocol_version", "envelope_timestamp", "seen_at")
# One letter in three has such a member in its header.
_NAMED = 3


class Envelopes:
    """Envelopes of three senders to two recipients."""

    def __init__(self, session: SuiteSession, most: int | None = None) -> None:
        """`most` is how many bytes an envelope may have; what is longer is malformed."""
        self._session, self._most = session, most
        self._made: list[Letter] = []
        self._forged: list[Letter] = []

    @property
    def made(self) -> Sequence[Letter]:
        """All, in the order in which they were made."""
        return self._made

    def called(self, data: str) -> Letter | None:
        """The one with these bytes."""
        return next((each for each in reversed((*self._forged, *self._made)) if each.data == data), None)

    def of(self, which: int) -> Letter:
        """One that was made before, from the last on; a new one where there is none."""
        return self._made[-1 - which % len(self._made)] if self._made else self.make(0)

    def twin(self, which: int) -> Letter:
        """A new one with the message id of one that was made before."""
        return self.make(0, self.of(which).msg_id)

    def forged(self, letter: Letter, way: str) -> Letter:
        """A forgery of a letter, made without the key of its sender."""
        text, data = letter.text, letter.data
        if way == "ciphertext":
            text = f"forgery {len(self._forged):05}: {self._session.rand(f'forgery {len(self._forged)}')}"
        to: Sequence[tuple[str, str]] = {
            "ciphertext": [("ciphertext", base64url(text.encode()))],
            "recipient": [("header.recipient_fp", self._session.hex64("a recipient of a forgery"))],
            "sender": [
                ("header.sender_key", derive("calyx.sender_key", "another sender")),
                ("header.sender_fp", derive("calyx.sender_fp", "another sender")),
            ],
            "key": [("header.sender_key", derive("calyx.sender_key", "another sender"))],
            "timestamp": [("header.timestamp", letter.row["envelope_timestamp"].replace("T", " "))],
            "member": [(f"header.{_name(len(self._forged))}", "of a forger")],
        }.get(way, ())
        for part, value in to:
            data = derive("calyx.altered", {"envelope": data, "part": part, "to": value, "resign": False})
        if way == "signature":
            data = derive("calyx.altered", {"envelope": data, "part": "signature", "resign": False})
        if way == "spelling":
            data = derive("calyx.variant", {"envelope": data, "how": "trailing-newline"})
        row = {**letter.row, "replay_key": derive("calyx.replay_key", data)}
        self._forged.append(replace(letter, data=data, row=row, text=text, flaw=self._flaw(data) or FORGERIES[way]))
        return self._forged[-1]

    def _flaw(self, data: str) -> str:
        is_long = self._most is not None and len(from_base64url(data)) > self._most
        return "ENVELOPE_MALFORMED" if is_long else ""

    @property
    def now(self) -> datetime:
        """The clock of the session."""
        return datetime.fromisoformat(self._session.now)

    def long(self, size: int) -> Letter:
        """A new one whose encoding has `size` bytes."""
        short = len(from_base64url(self.make(0, more={"x-filler": ""}).data))
        return self.make(0, more={"x-filler": "x" * (size - short)})

    def make(
        self,
        seconds: float,
        msg_id: str | None = None,
        more: Mapping[str, str] | None = None,
        text: str | None = None,
    ) -> Letter:
        """A new one, this number of seconds ahead of the clock. `more` are further members of its header.

        Without `more` some letters have a member whose name stands elsewhere in an envelope.
        """
        number = len(self._made)
        # Senders are those of this session alone: who they are is searched for outside of it too.
        label, sender = f"letter {number:05}", self._session.rand(f"sender {number % 3}")
        if more is None:
            more = {} if number % _NAMED else {_name(number // _NAMED): f"of {label}"}
        timestamp = shift(self._session.now, f"{'-' if seconds < 0 else '+'}{abs(seconds):.6f}s")
        header = {
            "msg_id": msg_id or derive("calyx.msg_id", self._session.hex64(label)),
            "recipient_fp": self._session.hex64(f"recipient {number % 2}"),
            "timestamp": timestamp,
            **more,
        }
        text = text or f"{label}: {self._session.rand(label)}"
        data = derive("calyx.envelope", {"key": sender, "header": header, "ciphertext": base64url(text.encode())})
        row = {
            "replay_key": derive("calyx.replay_key", data),
            "msg_id": header["msg_id"],
            "sender_fp": derive("calyx.sender_fp", sender),
            "recipient_fp": header["recipient_fp"],
            "envelope_timestamp": timestamp,
        }
        self._made.append(Letter(data, datetime.fromisoformat(timestamp), row, text, self._flaw(data)))
        return self._made[-1]

    def rows(
        self, count: int, first: int, begin: datetime, span: timedelta
    ) -> list[tuple[Mapping[str, str], datetime]]:
        """This number of rows of no letter, numbered from `first` on, each with its time within a span.

        Not in the order of their times: what is removed up to a number is then not what is oldest. Their envelopes are
        not from ahead of them, or a prune might keep them (CALYX-MIG-8).
        """
        row = self.make(0).row
        places = Random(first).sample(range(count), count)  # noqa: S311 - nothing is kept secret with it
        times = [begin + place * span / max(1, count) for place in places]
        keys = (self._session.hex64(f"row {first + number}") for number in range(count))
        return [
            ({**row, "replay_key": key, "envelope_timestamp": written(at)}, at)
            for key, at in zip(keys, times, strict=True)
        ]


def _name(number: int) -> str:
    return _NAMES[number % len(_NAMES)]


def told(
    bench: Bench, session: SuiteSession, letter: Letter, *due: str, what: str = "an envelope among thousands"
) -> None:
    """Send it. One of `due` must be the answer; a refusal as a copy or by an id must name it. Raises NonConformance."""
    answer = session.call("accept", {"envelope": letter.data})
    named = {"REPLAY_DUPLICATE": ("replay_key", letter.key), "MSG_ID_BLOCKED": ("msg_id", letter.msg_id)}
    if said(answer) not in due:
        verdict = "over_refusal" if "new" in due else "fail_open" if answer.outcome == "accepted" else "wrong_reason"
        bench.weigh(verdict, what, expected=" or ".join(due), received=said(answer))
    name, value = named.get(said(answer), ("", None))
    if name and (answer.data or {}).get(name) != value:
        bench.report("wrong_reason", what, expected=f"{said(answer)} with {name} {value}", received=f"{answer.data}")
