"""What version 0 left, as a history puts it into the workdir: a list of message ids, and envelopes by id."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import cycle, islice

from holdfast.conformance.cases.values import from_base64url
from holdfast.conformance.suites.calyx_replay.envelopes import Envelopes
from holdfast.conformance.suites.calyx_replay.model import BEGINNING, Left, Letter
from holdfast.conformance.suites.session import SuiteSession
from holdfast.vectors.derive import derive

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
