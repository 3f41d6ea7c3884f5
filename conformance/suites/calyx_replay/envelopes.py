"""The envelopes of one history, found again by how long ago they were made; and what version 0 left in the workdir.

That is a list of message ids, and envelopes by id.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import cycle, islice
from random import Random

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import base64url, from_base64url, shift
from holdfast.conformance.suites.calyx_replay.model import BEGINNING, Left, Letter, written
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
    if answer.said not in due:
        verdict = "over_refusal" if "new" in due else "fail_open" if answer.outcome == "accepted" else "wrong_reason"
        bench.weigh(answer.judged(verdict), what, expected=" or ".join(due), received=answer.said)
    name, value = named.get(answer.said, ("", None))
    if name and (answer.data or {}).get(name) != value:
        bench.report("wrong_reason", what, expected=f"{answer.said} with {name} {value}", received=f"{answer.data}")


# Ways in which what was left cannot be taken over: the list is cut short, has a number, or is no array; or else one of
# the envelopes is another's work, is empty, or is that of another id.
_NO_LISTS, _SPOILT = 3, ("signature", "ciphertext", "sender", "spelling", "nothing", "another")
UNSOUND = _NO_LISTS + len(_SPOILT)
# A list of ten thousand ids is longer than 2 MiB with it.
_INDENT = 200
# How many seconds ahead of the clock a lost letter is: it is in the window up to twice as long as it is blocked.
_AHEAD = (0, 299.5, 150)


class LeftBehind:
    """The files of version 0 in one session, and what they mean (`model.Left`)."""

    def __init__(
        self, session: SuiteSession, letters: Envelopes, *, listed: str, envelopes: str, factor: int = 1
    ) -> None:
        """`listed` and `envelopes` are the places; lost letters are `factor` times as far ahead as is usual."""
        self._session, self._letters, self._factor = session, letters, factor
        self._list, self._envelopes = listed, envelopes
        self._files: dict[str, Letter] = {}
        self._digest: str | None = None
        self._spoilt: list[Letter] = []
        self.now: Left | None = None

    @property
    def is_there(self) -> bool:
        """Whether the list is where it was left."""
        return bool(self._session.file(self._list)["exists"])

    @property
    def is_kept(self) -> bool:
        """Whether the list is as it was left."""
        return self._digest is None or self._session.file(self._list)["sha256"] == self._digest

    @property
    def latest(self) -> datetime:
        """The latest time of an envelope that is listed."""
        return max((letter.at for letter in self.now.letters.values()), default=BEGINNING) if self.now else BEGINNING

    def leave(self, came: int, others: int, alone: int, unsound: int | None = None) -> None:
        """A list with these numbers of received envelopes, other envelopes and ids; or one that cannot be migrated."""
        letters = [self._letters.of(which) for which in range(came)]
        letters += [self._letters.make(-float(number)) for number in range(others)]
        letters = list({each.msg_id: each for each in letters if each.msg_id not in self._files}.values())
        for letter in letters:
            self._place(letter)
        listed = [letter.msg_id for letter in letters]
        lost = [self._letters.make(seconds * self._factor) for seconds in islice(cycle(_AHEAD), alone)]
        listed += [letter.msg_id for letter in lost if letter.msg_id not in listed]
        # What comes last in a long list is not forgotten.
        listed.reverse()
        self._write(listed, unsound)
        if unsound is not None and unsound >= _NO_LISTS:
            # The last one that was placed; what stands before it could be taken over.
            self._spoilt.append(letters[-1])
            self._put(letters[-1].msg_id, self._spoil(letters[-1], _SPOILT[unsound - _NO_LISTS]))

    def _spoil(self, letter: Letter, way: str) -> Letter:
        if way == "nothing":
            return replace(letter, data="")
        return self._letters.make(0) if way == "another" else self._letters.forged(letter, way)

    def leave_one(self, letter: Letter, *, found: bool, more: bool) -> None:
        """A list with an envelope, or with its id alone where no envelope is; `more`: behind what is listed already.

        An id that is listed already comes up twice.
        """
        if found:
            self._place(letter)
        listed = list(self.now.listed) if more and self.now is not None else []
        self._write([*listed, letter.msg_id], None)

    def leave_many(self, first: Letter, lost: Sequence[Letter], length: int, *, digits: Callable[[str], str]) -> None:
        """A list of this length: an envelope first, and ids alone, those of `lost` evenly among them and at its end.

        Each id stands on a line of its own, far indented.
        """
        self._place(first)
        ids = [derive("calyx.msg_id", digits(f"id {number}")) for number in range(length - 1)]
        for number, letter in enumerate(lost):
            ids[number * (length - 2) // (len(lost) - 1)] = letter.msg_id
        self._write([first.msg_id, *ids], None, indent=_INDENT)

    def _place(self, letter: Letter) -> None:
        self._put(letter.msg_id, letter)
        self._files[letter.msg_id] = letter

    def _put(self, msg_id: str, letter: Letter) -> None:
        self._session.place(f"{self._envelopes}/{msg_id}.json", from_base64url(letter.data))

    def _write(self, listed: Sequence[str], unsound: int | None, indent: int | None = None) -> None:
        while self._spoilt:
            self._place(self._spoilt.pop())
        text = json.dumps(listed, indent=indent)
        if unsound is not None and unsound < _NO_LISTS:
            text = (text[:-1], f"{text[:-1]}, 17]", f'{{"ids": {text}}}')[unsound]
        self._session.place(self._list, text.encode())
        self._digest = hashlib.sha256(text.encode()).hexdigest()
        found = {msg_id: self._files[msg_id] for msg_id in listed if msg_id in self._files}
        twice = tuple(msg_id for msg_id, count in Counter(listed).items() for _ in range(count - 1))
        sound = unsound is None and not any(letter.flaw for letter in found.values())
        self.now = Left(tuple(dict.fromkeys(listed)), found, sound=sound, twice=twice)

    def has(self, msg_id: str) -> bool:
        """Whether an envelope lies there under this id."""
        return msg_id in self._files
