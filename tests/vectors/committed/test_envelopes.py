"""Committed envelopes: the derivations make each of them, and the linter finds what is wrong with one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from holdfast.specs.errors import SpecError
from holdfast.vectors.calyx_replay.committed import FILE, PLACE, EnvelopeVector, lint_envelopes, problems, read
from holdfast.vectors.lint import FOLDER

LINES = (FOLDER / "calyx_replay/data" / FILE).read_bytes().splitlines(keepends=True)
RECORDS = read(b"".join(LINES), place=PLACE)
BY_ID = {record.id: record for record in RECORDS}
# How many bytes of each record are altered, one at a time.
PLACES = 24


def _with(identifier: str, **change: Any) -> Sequence[EnvelopeVector]:
    assert identifier in BY_ID
    return [replace(record, **change) if record.id == identifier else record for record in RECORDS]


def test_the_shipped_envelopes_have_no_problem() -> None:
    assert list(problems({FILE: b"".join(LINES)})) == []


def test_a_line_that_is_gone_or_spelt_otherwise_is_found() -> None:
    without = [line for line in LINES if b'"calyx-spelling-utf-16"' not in line]
    assert list(problems({FILE: b"".join(without)})) == ["no envelope is spelt in the way utf-16"]
    spaced = LINES[0].replace(b'", "', b'" ,"', 1)
    (found,) = problems({FILE: b"".join([spaced, *LINES[1:]])})
    assert found.startswith(f"vectors/calyx_replay/data/{FILE}:1: expected the spelling of all lines, from byte 20 on")


@pytest.mark.parametrize("identifier", BY_ID)
def test_any_altered_byte_of_an_envelope_or_a_key_is_found(identifier: str) -> None:
    record = BY_ID[identifier]
    beside = [BY_ID[record.twin]] if record.twin else []
    for at in range(0, len(record.envelope), max(1, len(record.envelope) // PLACES)):
        altered = bytearray(record.envelope)
        altered[at] ^= 1
        assert list(lint_envelopes([*beside, replace(record, envelope=bytes(altered))])), f"byte {at}"
    for at, digit in enumerate(record.replay_key or ""):
        key = f"{(record.replay_key or '')[:at]}{'0' if digit != '0' else '1'}{(record.replay_key or '')[at + 1 :]}"
        assert list(lint_envelopes([*beside, replace(record, replay_key=key)])), f"digit {at}"


@pytest.mark.parametrize(
    ("identifier", "change", "told"),
    [
        ("calyx-plain", {"id": "calyx-one-bit"}, "stands there 2 times"),
        ("calyx-plain", {"envelope": b"{}"}, "makes other bytes"),
        ("calyx-plain", {"replay_key": "0" * 64}, "is not the SHA-256 of its bytes"),
        ("calyx-plain", {"replay_key": None}, "has neither a key nor a reason"),
        ("calyx-plain", {"reasons": ("SIGNATURE_INVALID",)}, "needs neither reasons nor a twin"),
        ("calyx-plain", {"of": {}}, "makes no envelope of it"),
        ("calyx-plain", {"derivation": "calyx.variant"}, "changes the envelope of a twin"),
        ("calyx-plain", {"clause": "CALYX-0"}, "does not have"),
        ("calyx-plain", {"contract": "nothing"}, "unknown contract"),
        ("calyx-spelling-bom", {"reasons": ("BECAUSE",)}, "does not know"),
        ("calyx-spelling-bom", {"reasons": ()}, "has neither a key nor a reason"),
        ("calyx-spelling-bom", {"twin": None}, "a refusal without a twin proves nothing"),
        ("calyx-spelling-bom", {"twin": "calyx-none"}, "a refusal without a twin proves nothing"),
        ("calyx-spelling-bom", {"twin": "calyx-spelling-utf-16"}, "must have a key"),
        ("calyx-spelling-bom", {"of": {"how": "sung"}}, "makes no envelope of it"),
        ("calyx-spelling-bom", {"of": {"how": "utf-16"}}, "makes other bytes"),
        ("calyx-spelling-bom", {"reasons": ("SIGNATURE_INVALID",)}, "is refused with ENVELOPE_MALFORMED"),
        ("calyx-signature-s-plus-l", {"reasons": ("ENVELOPE_MALFORMED",)}, "is refused with SIGNATURE_INVALID"),
        ("calyx-forged-timestamp", {"reasons": ("ENVELOPE_MALFORMED",)}, "is refused with SIGNATURE_INVALID"),
        ("calyx-other-version", {"reasons": ("SIGNATURE_INVALID",)}, "is refused with ENVELOPE_MALFORMED"),
        ("calyx-other-version", {"twin": "calyx-another-id"}, "in more than one member"),
        ("calyx-other-version", {"id": "other-version"}, "begin with calyx-"),
        ("calyx-signature-tail", {"envelope": BY_ID["calyx-plain"].envelope}, "so it shows nothing"),
    ],
)
def test_a_planted_fault_is_found(identifier: str, change: dict[str, Any], told: str) -> None:
    found = list(lint_envelopes(_with(identifier, **change)))
    assert any(told in problem for problem in found), found


def test_no_records_at_all_are_a_problem() -> None:
    assert list(lint_envelopes([])) == ["there are no envelope records, so nothing is shown"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (b'"envelope": "7b', b'"envelope": "7B', "at envelope"),
        (b'"replay_key": "', b'"replay_key": "0', "at replay_key"),
        (b'"reasons"', b'"reason"', "reason"),
        (b"}\n", b"}", "cut off"),
    ],
)
def test_a_damaged_line_is_an_error_that_names_its_place(old: bytes, new: bytes, told: str) -> None:
    line = LINES[0]
    assert old in line
    with pytest.raises(SpecError, match=told) as raised:
        read(line.replace(old, new), place="file.jsonl")
    assert str(raised.value).startswith("file.jsonl")
