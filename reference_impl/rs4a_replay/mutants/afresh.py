"""Bugs of rs4a-replay in what looks like something else, in settings of nothing, and in what one process remembers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.admission import Attempt
from holdfast.reference_impl.rs4a_replay.authority import Authority
from holdfast.reference_impl.rs4a_replay.reading import Reader
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.store import Insert, Row
from holdfast.reference_impl.rs4a_replay.terms import Submission
from holdfast.reference_impl.rs4a_replay.validator import Validator

_MOST_UNITS = 1024
_USUAL = timedelta(seconds=300)

# What looks like something else


class RunOfDigits(Registrar):
    """A run that is a number is stored as that number, as a column without a type does it."""

    def effect_rows(self, attempt: Attempt) -> Sequence[Insert]:
        *others, last = super().effect_rows(attempt)
        run = str(last.row["run_id"])
        number = str(int(run)) if run.isascii() and run.isdigit() else run
        return (*others, replace(last, row={**last.row, "run_id": number}))


class LengthInUnits(Reader):
    def fits_schema(self, args: Any) -> bool:
        fits = super().fits_schema(args)
        return fits and len(args["request"]["canonical_target"].encode("utf-16-le")) <= 2 * _MOST_UNITS


# Settings


class UsualForNone(Validator):
    def is_stale(self, submission: Submission, *, now: datetime) -> bool:
        self._settings = replace(self._settings, ttl=self._settings.ttl or _USUAL)
        return super().is_stale(submission, now=now)


class WindowOfAnHour(Authority):
    def issue_row(self, args: Any, *, now: datetime) -> Row:
        self._settings = replace(self._settings, nonce_window=timedelta(hours=1))
        return super().issue_row(args, now=now)


# What a process remembers, or computes


class NonceOfItsBinding(Authority):
    _count = 0

    def new_nonce(self, binding: dict[str, str]) -> str:
        self._count += 1
        return hashlib.sha256(f"{sorted(binding.items())} {self._count}".encode()).hexdigest()


class RemembersOtherStores(Registrar):
    _told: dict[str, Mapping[str, Any]] = {}  # noqa: RUF012 - it belongs to the process, which is the bug

    def register(self, attempt: Attempt) -> Answer:
        answer = super().register(attempt)
        submission = attempt.verdict.submission
        nonce = "" if submission is None else submission.authorization_nonce
        if isinstance(answer, Accepted):
            self._told[nonce] = answer.value
        elif nonce in self._told:
            return Accepted(Effect.PRIOR, self._told[nonce])
        return answer


BUGS: Mapping[str, Change] = {
    "run-of-digits-is-a-number": part(registrar=RunOfDigits),
    "length-in-utf-16": part(reader=LengthInUnits),
    "zero-is-the-usual": part(validator=UsualForNone),
    "window-of-an-hour": part(authority=WindowOfAnHour),
    "nonce-of-its-binding": part(authority=NonceOfItsBinding),
    "remembers-other-stores": part(registrar=RemembersOtherStores),
}
