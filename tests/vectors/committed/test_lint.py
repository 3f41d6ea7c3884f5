"""The linter of committed vectors finds nothing in what is shipped, and each fault that is planted."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import holdfast.vectors.jcs.committed.lint as linter
from holdfast.specs.errors import SpecError
from holdfast.specs.loader import load_terms
from holdfast.vectors.fingerprints import load
from holdfast.vectors.fingerprints.lint import lint_fingerprints
from holdfast.vectors.jcs.committed.lint import lint_records
from holdfast.vectors.jcs.nearmiss import NearMiss, load_near_misses
from holdfast.vectors.lint import FOLDER, lint, modules
from holdfast.vectors.record import Canonical, Refused, Vector
from holdfast.vectors.record import load as load_vectors
from holdfast.vectors.taxonomy import Category, Profile

RECORDS = load_vectors()
FINGERPRINTS = load()
MORE = {**FINGERPRINTS[0].request, "reply_to": "", "priority": "next"}


def _problems(records: Sequence[Vector], near_misses: dict[str, NearMiss] | None = None) -> list[str]:
    known = dict(load_near_misses()) if near_misses is None else near_misses
    return list(lint_records(records, contract=load_terms("jcs"), near_misses=known))


def _with(identifier: str, change: Callable[[Vector], Vector]) -> list[Vector]:
    assert any(record.id == identifier for record in RECORDS)
    return [change(record) if record.id == identifier else record for record in RECORDS]


def test_the_shipped_vectors_have_no_problem() -> None:
    assert lint() == []


@pytest.mark.parametrize(
    ("identifier", "change", "told"),
    [
        ("P1-first-exponent", lambda r: replace(r, id="P1-last-integer"), "stands there 2 times"),
        ("P1-first-exponent", lambda r: replace(r, id="P2-first"), "an id begins with its category"),
        ("P1-first-exponent", lambda r: replace(r, category=Category.NUMBER_TIES), "begins with its category"),
        ("P1-first-exponent", lambda r: replace(r, note=" "), "has no note"),
        ("P1-first-exponent", lambda r: replace(r, clause="JCS-NONE-1"), "contract jcs does not have"),
        ("P1-first-exponent", lambda r: replace(r, twin="P4-one"), "needs no twin"),
        (
            "P1-first-exponent",
            lambda r: replace(r, expected={**r.expected, Profile.SAFE_INT: Canonical(b"[1]")}),
            "with different bytes",
        ),
        (
            "P1-first-exponent",
            lambda r: replace(r, expected={**r.expected, Profile.SAFE_INT: Refused("UNSAFE_INTEGER")}),
            "a refusal without a twin proves nothing",
        ),
        (
            "P1-first-exponent",
            lambda r: replace(r, expected=dict.fromkeys(Profile, Refused("SYNTAX"))),
            "core must accept",
        ),
        ("P1-first-exponent", lambda r: replace(r, expected={}), "an answer of each profile"),
        ("P1-first-exponent", lambda r: replace(r, kills=("no-such-habit",)), "is no near miss"),
        ("P1-first-exponent", lambda r: replace(r, kills=(*r.kills, "nfc")), "claims to kill nfc"),
        ("P1-first-exponent", lambda r: replace(r, kills=r.kills[::-1]), "not sorted"),
        ("P5-two-to-53", lambda r: replace(r, twin=None), "a refusal without a twin proves nothing"),
        ("P5-two-to-53", lambda r: replace(r, twin="P5-nothing"), "does not exist"),
        ("P5-two-to-53", lambda r: replace(r, twin="P5-minus-two-to-53"), "is refused by a profile that refuses it"),
        ("N1-plain", lambda r: replace(r, twin="P13-nested"), "in more than one small place"),
        ("N1-plain", lambda r: replace(r, twin="N1-nested"), "is refused by a profile that refuses it too"),
        (
            "N1-plain",
            lambda r: replace(r, expected=dict.fromkeys(Profile, Canonical(b"{}"))),
            "core must refuse",
        ),
        (
            "N1-plain",
            lambda r: replace(r, expected={**r.expected, Profile.SAFE_INT: Refused("SYNTAX")}),
            "must refuse it for the same reason",
        ),
        (
            "N1-plain",
            lambda r: replace(r, expected=dict.fromkeys(Profile, Refused("BECAUSE"))),
            "does not know",
        ),
        ("N9-blank", lambda r: replace(r, document=b'{"a":1}'), "is its own canonical form"),
        (
            "P16-exponent",
            lambda r: replace(r, expected=dict.fromkeys(Profile, Canonical(b"[1E+21]"))),
            "is the document of P16-exponent, which is not canonical there",
        ),
        (
            "P16-exponent",
            lambda r: replace(r, expected={**r.expected, Profile.SAFE_INT: Refused("UNSAFE_INTEGER")}, twin="P4-one"),
            "refuses its canonical form",
        ),
    ],
)
def test_a_planted_fault_is_found(identifier: str, change: Callable[[Vector], Vector], told: str) -> None:
    problems = _problems(_with(identifier, change))
    assert any(told in problem for problem in problems), problems


def test_records_out_of_the_order_of_categories_are_found() -> None:
    assert any("order of the categories" in problem for problem in _problems(RECORDS[::-1]))


def test_a_category_and_a_clause_without_records_are_found() -> None:
    problems = _problems([record for record in RECORDS if record.category is not Category.ENCODING])
    assert any("no record is of category N8" in problem for problem in problems)
    assert any("clause JCS-UTF8-02: no vector is about it" in problem for problem in problems)


def test_no_records_at_all_are_a_problem() -> None:
    assert any("nothing is shown" in problem for problem in _problems([]))
    assert list(lint_fingerprints([])) == ["there are no fingerprint records, so nothing is shown"]


def test_a_near_miss_that_no_record_kills_is_found() -> None:
    near_misses = {**load_near_misses(), "new-habit": NearMiss("Does something.", ())}
    assert "near miss new-habit: no record kills it" in _problems(RECORDS, near_misses)


def test_a_near_miss_killed_by_nothing_that_exists_is_found() -> None:
    near_misses = {**load_near_misses(), "new-habit": NearMiss("Does something.", ("P1-nothing",))}
    assert any("P1-nothing, which does not exist" in problem for problem in _problems(RECORDS, near_misses))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A copy of the committed files of every contract."""
    for folder in modules():
        shutil.copytree(FOLDER / folder / "data", tmp_path / folder / "data")
    return tmp_path


def test_a_file_that_is_not_there_and_one_that_nothing_reads_are_found(data: Path) -> None:
    (data / "mesh_delivery/data/fingerprints.jsonl").unlink()
    (data / "rs4a_replay/data/more.jsonl").write_bytes(b"")
    assert lint(data) == [
        "vectors/mesh_delivery/data/fingerprints.jsonl: missing; reinstall holdfast",
        "vectors/rs4a_replay/data/more.jsonl: nothing reads this file; remove it, or add it to FILES of the contract",
    ]


@pytest.mark.parametrize(
    ("name", "old", "new", "told"),
    [
        ("mesh_delivery/data/fingerprints.jsonl", b'", "key"', b'",  "key"', ":1: expected the spelling of all lines"),
        ("mesh_delivery/data/fingerprints.jsonl", b'"preimage"', b'"pre"', ":1: at"),
        ("mesh_delivery/data/fingerprints.jsonl", b'"sha256": "3', b'"sha256": "4', "the record says 4"),
        (
            "mesh_delivery/data/fingerprints.jsonl",
            b'"mesh-delivery"',
            b'"rs4a-replay"',
            "is of rs4a-replay, and stands",
        ),
        ("rs4a_replay/data/fingerprints.jsonl", b'"rs4a-logical-plain"', b'"other-plain"', "begin with rs4a-"),
        ("rs4a_replay/data/fingerprints.jsonl", b'"agent-1"', b'"agent-3"', "differs from"),
        ("hx_sync/data/objects.json", b'"output": "', b'"output": "00', "the vector says 00"),
        ("m5_log/data/cbor.json", b'"1818"', b'"1820"', "1820: its value has the encoding 1818"),
        ("m5_log/data/ed25519.json", b'"signature": "e5', b'"signature": "e6', "is not the signature of its seed"),
    ],
)
def test_a_changed_byte_of_a_file_is_found(data: Path, name: str, old: bytes, new: bytes, told: str) -> None:
    file = data / name
    before = file.read_bytes()
    assert old in before
    file.write_bytes(before.replace(old, new, 1))
    assert any(told in problem for problem in lint(data)), lint(data)


def test_a_list_of_near_misses_in_another_order_or_layout_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linter, "write_near_misses", lambda _: b"{}\n")
    assert "vectors/jcs/data/nearmiss.json: is not in the order and layout in which it is written" in lint()


def test_data_that_cannot_be_read_are_a_problem_and_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable() -> None:
        raise SpecError("vectors/jcs/data/nearmiss.json: broken")

    monkeypatch.setattr(linter, "load_near_misses", unreadable)
    assert lint() == ["vectors/jcs/data/nearmiss.json: broken"]


@pytest.mark.parametrize(
    ("identifier", "change", "told"),
    [
        ("mesh-plain", {"sha256": "0" * 64}, "the record says 0000"),
        ("mesh-plain", {"preimage": b"x"}, "not that of its preimage"),
        ("mesh-plain", {"twin": "mesh-dm"}, "needs no twin"),
        ("mesh-plain", {"id": "mesh-dm"}, "stands there 2 times"),
        ("mesh-plain", {"clause": "MESH-0"}, "does not have"),
        ("mesh-plain", {"contract": "nothing"}, "unknown contract"),
        ("mesh-plain", {"preimage": None}, "a digest without a preimage"),
        ("mesh-reply-null", {"same_as": None}, "does not say so"),
        ("mesh-reply-null", {"same_as": "mesh-dm"}, "and has another"),
        ("mesh-reply-null", {"request": FINGERPRINTS[0].request}, "so it shows nothing"),
        ("mesh-nul-topic", {"twin": None}, "a refusal without a twin proves nothing"),
        ("mesh-nul-topic", {"twin": "mesh-nul-reply"}, "must have a mesh.fingerprint"),
        ("mesh-nul-topic", {"request": FINGERPRINTS[0].request}, "must be refused"),
        ("mesh-nul-topic", {"twin": "mesh-queue"}, "differs from its twin mesh-queue in more than one member"),
        ("mesh-reply-null", {"request": MORE}, "differs from mesh-plain in more than one member"),
    ],
)
def test_a_planted_fault_in_a_fingerprint_is_found(identifier: str, change: dict[str, object], told: str) -> None:
    changed = [
        replace(record, **change) if record.id == identifier else record  # type: ignore[arg-type]
        for record in FINGERPRINTS
    ]
    problems = list(lint_fingerprints(changed))
    assert any(told in problem for problem in problems), problems
