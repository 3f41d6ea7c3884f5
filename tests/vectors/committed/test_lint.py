"""The linter of committed vectors finds nothing in what is shipped, and each fault that is planted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.specs.errors import SpecError
from holdfast.specs.loader import load_terms
from holdfast.vectors.calyx_replay.committed import lint_envelopes
from holdfast.vectors.calyx_replay.committed import read as read_envelopes
from holdfast.vectors.fingerprints import load as load_fingerprints
from holdfast.vectors.fingerprints.lint import lint_fingerprints
from holdfast.vectors.fingerprints.record import read as read_fingerprints
from holdfast.vectors.jcs.committed import lint_records, read_near_misses, wrong_answers
from holdfast.vectors.lint import FOLDER, lint, modules
from holdfast.vectors.record import Canonical, Refused, Vector, load, read
from holdfast.vectors.taxonomy import Category, Profile

RECORDS = load()
FINGERPRINTS = load_fingerprints()
ENVELOPES = read_envelopes((FOLDER / "calyx_replay/data/envelopes.jsonl").read_bytes(), place="envelopes.jsonl")
BY_ID = {record.id: record for record in ENVELOPES}
NEAR_MISSES = read_near_misses((FOLDER / "jcs/data/nearmiss.json").read_bytes())
# How many bytes of an envelope are altered, one at a time.
PLACES = 24


def _problems(records: Sequence[Vector], near_misses: Mapping[str, Sequence[str]] | None = None) -> list[str]:
    known = NEAR_MISSES if near_misses is None else near_misses
    return list(lint_records(records, contract=load_terms("jcs"), near_misses=known))


def test_the_shipped_vectors_have_no_problem() -> None:
    assert lint() == []


P1 = next(record for record in RECORDS if record.id == "P1-first-exponent")
PLAIN, MORE = FINGERPRINTS[0].request, {**FINGERPRINTS[0].request, "reply_to": "", "priority": "next"}
UNSAFE, SYNTAX = Refused("UNSAFE_INTEGER"), Refused("SYNTAX")
ALONE = "a refusal without a twin proves nothing"


def _in_safe_int(of: str, answer: Canonical | Refused) -> dict[str, Any]:
    return {"expected": {**next(each for each in RECORDS if each.id == of).expected, Profile.SAFE_INT: answer}}


def _in_all(answer: Canonical | Refused) -> dict[str, Any]:
    return {"expected": dict.fromkeys(Profile, answer)}


# By the record that is changed: what of it, and a word of the problem that is found.
PLANTED: Sequence[tuple[str, dict[str, Any], str]] = (
    ("P1-first-exponent", {"id": "P1-last-integer"}, "stands there 2 times"),
    ("P1-first-exponent", {"id": "P2-first"}, "an id begins with its category"),
    ("P1-first-exponent", {"category": Category.NUMBER_TIES}, "begins with its category"),
    ("P1-first-exponent", {"note": " "}, "has no note"),
    ("P1-first-exponent", {"clause": "JCS-NONE-1"}, "contract jcs does not have"),
    ("P1-first-exponent", {"twin": "P4-one"}, "needs no twin"),
    ("P1-first-exponent", _in_safe_int("P1-first-exponent", Canonical(b"[1]")), "with different bytes"),
    ("P1-first-exponent", _in_safe_int("P1-first-exponent", UNSAFE), ALONE),
    ("P1-first-exponent", _in_all(SYNTAX), "core must accept"),
    ("P1-first-exponent", {"expected": {}}, "an answer of each profile"),
    ("P1-first-exponent", {"kills": ("no-such-habit",)}, "is no near miss"),
    ("P1-first-exponent", {"kills": (*P1.kills, "nfc")}, "claims to kill nfc"),
    ("P1-first-exponent", {"kills": P1.kills[::-1]}, "not sorted"),
    ("P1-first-exponent", {"kills": P1.kills[1:]}, "as was measured, and does not say so"),
    ("P2-b-4340000000000000", {"document": b"[9007199254740992]"}, "its bits with 17 digits"),
    ("P15-floor-objects", {"document": b"{}"}, "no record of category P15 has 64 {"),
    ("P15-deep-arrays", {"document": b"[]"}, "or none has 1000 of them"),
    ("P5-two-to-53", {"twin": None}, ALONE),
    ("P5-two-to-53", {"twin": "P5-nothing"}, "does not exist"),
    ("P5-two-to-53", {"twin": "P5-minus-two-to-53"}, "is refused by a profile that refuses it"),
    ("N1-plain", {"twin": "P13-nested"}, "in more than one small place"),
    ("N1-plain", {"twin": "N1-nested"}, "is refused by a profile that refuses it too"),
    ("N1-plain", _in_all(Canonical(b"{}")), "core must refuse"),
    ("N1-plain", _in_safe_int("N1-plain", SYNTAX), "must refuse it for the same reason"),
    ("N1-plain", _in_all(Refused("BECAUSE")), "does not know"),
    ("N9-blank", {"document": b'{"a":1}'}, "is its own canonical form"),
    ("P16-exponent", _in_all(Canonical(b"[1E+21]")), "is the document of P16-exponent, which is not canonical there"),
    ("P16-exponent", {**_in_safe_int("P16-exponent", UNSAFE), "twin": "P4-one"}, "refuses its canonical form"),
    ("mesh-plain", {"sha256": "0" * 64}, "the record says 0000"),
    ("mesh-plain", {"preimage": b"x"}, "not that of its preimage"),
    ("mesh-plain", {"twin": "mesh-dm"}, "needs no twin"),
    ("mesh-plain", {"id": "mesh-dm"}, "stands there 2 times"),
    ("mesh-plain", {"clause": "MESH-0"}, "does not have"),
    ("mesh-plain", {"contract": "nothing"}, "unknown contract"),
    ("mesh-plain", {"preimage": None}, "a digest without a preimage"),
    ("mesh-reply-null", {"same_as": None}, "does not say so"),
    ("mesh-reply-null", {"same_as": "mesh-dm"}, "and has another"),
    ("mesh-reply-null", {"request": PLAIN}, "so it shows nothing"),
    ("mesh-nul-topic", {"twin": None}, ALONE),
    ("mesh-nul-topic", {"twin": "mesh-nul-reply"}, "must have a mesh.fingerprint"),
    ("mesh-nul-topic", {"request": PLAIN}, "must be refused"),
    ("mesh-nul-topic", {"twin": "mesh-queue"}, "differs from its twin mesh-queue in more than one member"),
    ("mesh-reply-null", {"request": MORE}, "differs from mesh-plain in more than one member"),
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
    ("calyx-spelling-bom", {"twin": None}, ALONE),
    ("calyx-spelling-bom", {"twin": "calyx-none"}, ALONE),
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
)


@pytest.mark.parametrize(("identifier", "change", "told"), PLANTED)
def test_a_planted_fault_is_found(identifier: str, change: dict[str, Any], told: str) -> None:
    family: Any = {"mesh": (FINGERPRINTS, lint_fingerprints), "calyx": (ENVELOPES, lint_envelopes)}
    records, check = family.get(identifier.partition("-")[0], (RECORDS, _problems))
    changed = [replace(record, **change) if record.id == identifier else record for record in records]
    assert changed != [*records]
    problems = list(check(changed))
    assert any(told in problem for problem in problems), problems


@pytest.mark.parametrize("identifier", BY_ID)
def test_any_altered_byte_of_an_envelope_or_a_key_is_found(identifier: str) -> None:
    record = BY_ID[identifier]
    beside = [BY_ID[record.twin]] if record.twin else []
    for at in range(0, len(record.envelope), max(1, len(record.envelope) // PLACES)):
        altered = bytearray(record.envelope)
        altered[at] ^= 1
        assert list(lint_envelopes([*beside, replace(record, envelope=bytes(altered))])), f"byte {at}"
    key = record.replay_key or ""
    for at, digit in enumerate(key):
        other = f"{key[:at]}{'0' if digit != '0' else '1'}{key[at + 1 :]}"
        assert list(lint_envelopes([*beside, replace(record, replay_key=other)])), f"digit {at}"


def test_a_category_and_a_clause_without_records_are_found() -> None:
    problems = _problems([record for record in RECORDS if record.category is not Category.ENCODING])
    assert any("no record is of category N8" in problem for problem in problems)
    assert any("clause JCS-UTF8-02: no vector is about it" in problem for problem in problems)


def test_no_records_at_all_are_a_problem() -> None:
    data = {path.name: path.read_bytes() for path in (FOLDER / "m5_log/data").iterdir()}
    empty = {**json.loads(data["ed25519.json"]), "rfc8032": [], "speccheck": []}
    emptied = {"cbor.json": b'{"vectors": []}', "ed25519.json": json.dumps(empty).encode()}
    found = [f"there are no {name}, so nothing is shown" for name in ("encodings", "rfc8032", "speccheck")]
    assert list(modules()["m5_log"].problems(emptied)) == found
    assert any("nothing is shown" in problem for problem in _problems([]))
    assert list(lint_fingerprints([])) == ["there are no fingerprint records, so nothing is shown"]
    assert list(lint_envelopes([])) == ["there are no envelope records, so nothing is shown"]


@pytest.mark.parametrize(
    ("killers", "told"),
    [((), "new-habit: no record kills it"), (("P1-nothing",), "P1-nothing, which does not")],
)
def test_a_near_miss_that_no_record_kills_is_found(killers: tuple[str, ...], told: str) -> None:
    assert any(told in problem for problem in _problems(RECORDS, {**NEAR_MISSES, "new-habit": killers}))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A copy of the committed files of every contract."""
    for folder in modules():
        shutil.copytree(FOLDER / folder / "data", tmp_path / folder / "data")
    return tmp_path


def test_a_file_that_is_not_there_and_one_that_nothing_reads_are_found(data: Path) -> None:
    (data / "mesh_delivery/data/fingerprints.jsonl").unlink()
    (data / "rs4a_replay/data/more.jsonl").write_bytes(b"")
    (data / "jcs/data/nearmiss.json").write_bytes(b"[]")
    assert lint(data) == [
        'vectors/jcs/data/nearmiss.json: at the whole value: [] is not of type "object"',
        "vectors/mesh_delivery/data/fingerprints.jsonl: missing; reinstall holdfast",
        "vectors/rs4a_replay/data/more.jsonl: nothing reads this file; remove it, or add it to FILES of the contract",
    ]


SUNG = next(
    line
    for line in (FOLDER / "calyx_replay/data/envelopes.jsonl").read_bytes().splitlines(keepends=True)
    if b'"calyx-spelling-utf-16"' in line
)


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("mesh_delivery/data/fingerprints.jsonl", b'", "key"', b'",  "key"', ":1: expected the spelling of all lines"),
        ("mesh_delivery/data/fingerprints.jsonl", b'"preimage"', b'"pre"', ":1: at"),
        ("calyx_replay/data/envelopes.jsonl", SUNG, b"", "no envelope is spelt in the way utf-16"),
        ("calyx_replay/data/envelopes.jsonl", b'", "', b'" ,"', ":1: expected the spelling of all lines, from byte 20"),
        ("mesh_delivery/data/fingerprints.jsonl", b'"sha256": "3', b'"sha256": "4', "the record says 4"),
        (
            "mesh_delivery/data/fingerprints.jsonl",
            b'"mesh-delivery"',
            b'"rs4a-replay"',
            "is of rs4a-replay, and stands",
        ),
        ("jcs/data/P1.jsonl", b'"core": {"canonical": "5b', b'"core": {"canonical": "5c', "the reference says"),
        ("jcs/data/P1.jsonl", b'"category": "P1"', b'"category": "P2"', "stands in vectors/jcs/data/P1.jsonl"),
        ("jcs/data/N1.jsonl", b'"id": "N1-escaped"', b'"id": "N1-plain"', "N1-plain: stands there 2 times"),
        ("jcs/data/N9.jsonl", b'"id"', b'"document"', "N9.jsonl:1: "),
        ("jcs/data/nearmiss.json", b"{", b"{ ", "nearmiss.json: is not in the order and layout"),
        ("jcs/data/nearmiss.json", b"{", b"[", "nearmiss.json: expected JSON"),
        ("calyx_replay/data/envelopes.jsonl", b'"envelope": "7b22', b'"envelope": "7b23', "makes other bytes"),
        ("rs4a_replay/data/fingerprints.jsonl", b'"rs4a-logical-plain"', b'"other-plain"', "begin with rs4a-"),
        ("rs4a_replay/data/fingerprints.jsonl", b'"agent-1"', b'"agent-3"', "differs from"),
        ("hx_sync/data/objects.json", b'"output": "', b'"output": "00', "the vector says 00"),
        ("m5_log/data/cbor.json", b'"1818"', b'"1820"', "1820: its value has the encoding 1818"),
        ("m5_log/data/ed25519.json", b'"signature": "e5', b'"signature": "e6', "is not the signature of its seed"),
    ],
)
def test_a_changed_byte_of_a_file_is_found(name: str, old: bytes, new: bytes, told: str) -> None:
    folder, _, file = name.split("/")
    files = {path.name: path.read_bytes() for path in (FOLDER / folder / "data").iterdir()}
    assert old in files[file]
    problems: list[str] = []
    try:
        problems += modules()[folder].problems({**files, file: files[file].replace(old, new, 1)})
    except SpecError as error:
        problems.append(str(error))
    assert any(told in problem for problem in problems), problems


@pytest.mark.parametrize(
    ("identifier", "profile", "answer", "told"),
    [
        ("P1-first-exponent", Profile.CORE, Canonical(b"[1e21]"), "[1e21] in core, {} canonical [1e+21]"),
        ("N1-plain", Profile.SAFE_INT, SYNTAX, "SYNTAX in safe-int, {} refused DUPLICATE_NAME"),
        ("P5-two-to-53", Profile.SAFE_INT, Canonical(b"[1]"), "[1] in safe-int, {} refused UNSAFE"),
        ("P4-one", Profile.I_JSON_STRICT, SYNTAX, "SYNTAX in i-json-strict, {} canonical [1]"),
    ],
)
def test_an_answer_that_the_reference_does_not_give_is_found(
    identifier: str, profile: Profile, answer: Canonical | Refused, told: str
) -> None:
    record = next(each for each in RECORDS if each.id == identifier)
    (problem,) = wrong_answers([replace(record, expected={**record.expected, profile: answer})])
    assert problem.startswith(f"{identifier}: expects {told.format('the reference says')}")


# Committed records: what is there, and that what is damaged is not read.


def _first(name: str) -> bytes:
    return (FOLDER / name).read_bytes().splitlines(keepends=True)[0]


LINE, MESH = _first("jcs/data/P1.jsonl"), _first("mesh_delivery/data/fingerprints.jsonl")
CALYX = _first("calyx_replay/data/envelopes.jsonl")


def _changed(**members: object) -> bytes:
    return json.dumps({**json.loads(LINE), **members}).encode() + b"\n"


def test_there_are_a_few_hundred_records_in_every_category_and_they_are_small() -> None:
    assert len(load()) > 400
    assert {record.category for record in load()} == set(Category)
    assert sum(path.stat().st_size for path in FOLDER.glob("*/data/*.jsonl")) < 1_000_000


def test_both_contracts_have_fingerprints_that_are_due_and_refusals() -> None:
    for contract in ("mesh-delivery", "rs4a-replay"):
        assert {record.sha256 is None for record in load_fingerprints() if record.contract == contract} == {True, False}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (MESH[:-1], "cut off"),
        (MESH.replace(b'"preimage"', b'"pre"'), "pre"),
        (CALYX[:-1], "cut off"),
        (CALYX.replace(b'"envelope": "7b', b'"envelope": "7B'), "at envelope"),
        (CALYX.replace(b'"replay_key": "', b'"replay_key": "0'), "at replay_key"),
        (CALYX.replace(b'"reasons"', b'"reason"'), "reason"),
        (LINE[:-1], "cut off"),
        (b"", "cut off"),
        (b"\n", "expected one JSON object"),
        (b"{}\n", "required"),
        (LINE.replace(b'"id"', b'"id": "P1-x", "id"'), "duplicate"),
        (_changed(document="5B"), "does not match"),
        (_changed(document="5"), "does not match"),
        (_changed(document="5b5d\n"), "does not match"),
        (_changed(category="P99"), "is not one of"),
        (_changed(surprise=1), "surprise"),
        (_changed(kills=["a", "a"]), "non-unique"),
        (_changed(expected={"core": {"canonical": "5b5d"}}), "required"),
        (_changed(note=""), "note"),
    ],
)
def test_a_damaged_line_is_an_error_that_names_its_place(data: bytes, told: str) -> None:
    readers: Any = {MESH[:30]: read_fingerprints, CALYX[:30]: read_envelopes}
    with pytest.raises(SpecError, match=told) as raised:
        readers.get(data[:30], read)(data, place="file.jsonl")
    assert str(raised.value).startswith("file.jsonl")


def test_a_set_that_is_not_there_is_an_error() -> None:
    with pytest.raises(SpecError, match="found none"):
        load("nowhere")
