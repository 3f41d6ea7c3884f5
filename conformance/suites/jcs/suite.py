"""jcs: what a script cannot say. Every committed vector in every profile, and any document in any disguise."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import cycle, islice, product
from random import Random
from typing import Any

from holdfast.conformance.attacks import clause, tabled
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import from_base64url
from holdfast.conformance.suites.jcs.documents import (
    beside_a_mark,
    beside_a_quotation_mark,
    constructed,
    disguised,
    drawn,
    in_any_order,
    large,
    noncharacters,
    pairs_of_units,
    rungs,
    same_value,
    value_of,
)
from holdfast.conformance.suites.jcs.judging import (
    Found,
    Part,
    args_of,
    canonicalised,
    claimed,
    described,
    floor_of,
    report,
    run,
    run_beside_core,
    run_in_core,
    verified,
)
from holdfast.reports.plain import difference
from holdfast.servers.environment import ELSEWHERE, ZONE
from holdfast.vectors.record import Canonical, Refused, Vector, load
from holdfast.vectors.taxonomy import Category, Profile

# Documents that are generated in one run, from the seed of the run: the committed ones are public, and an adapter
# that only knows those knows nothing else.
_DRAWN, _ACCEPTED = 80, 320
# Where the large documents of a part stand among them.
_LARGE = {Part.FORM: (0, 1), Part.ORDER: (1, 2), Part.STRING: (2, 3), Part.NUMBER: (3, 5)}
_STRICT, _SAFE = (Profile.I_JSON_STRICT.value,), (Profile.SAFE_INT.value,)


def _ids(*families: str, most: int = 1) -> list[str]:
    return [f"JCS-{family}-{number:02}" for family in families for number in range(1, most + 1)]


@clause("JCS-PROF-01", "JCS-PROF-02", "JCS-PROF-03", "JCS-PROF-04", "JCS-PROF-06", roles=_STRICT)
def test_committed_vectors_in_i_json_strict(bench: Bench) -> None:
    """What the profile refuses beyond core, and what it does not."""
    run_beside_core(bench, load("jcs"), partial(canonicalised, Profile.I_JSON_STRICT))


@clause("JCS-PROF-01", "JCS-PROF-05", "JCS-PROF-06", roles=_SAFE)
def test_committed_vectors_in_safe_int(bench: Bench) -> None:
    """What the profile refuses beyond core, and what it does not."""
    run_beside_core(bench, load("jcs"), partial(canonicalised, Profile.SAFE_INT))


@clause("JCS-VER-01", "JCS-VER-02", "JCS-VER-03")
def test_committed_vectors_in_verify_mode(bench: Bench) -> None:
    """Each document and its canonical form."""
    run_beside_core(bench, load("jcs"), partial(verified, Profile.CORE))


# Documents of this run


def _accepted(bench: Bench) -> Iterator[Vector]:
    """The first of them that core accepts."""
    return islice((record for record, _ in constructed(bench.seed) if record.canonical is not None), _ACCEPTED)


def _run_drawn(bench: Bench, number: int, is_about: Callable[[Category, str], bool]) -> None:
    """The first `number` with such a defect."""
    pairs = (
        pair
        for pair in constructed(bench.seed)
        if isinstance(due := pair[0].expected[Profile.CORE], Refused) and is_about(pair[0].category, due.reason)
    )
    _run_defects(bench, islice(pairs, number))


def _run_defects(bench: Bench, pairs: Iterable[tuple[Vector, bytes]]) -> None:
    """Documents with a defect, each beside the document without it, which must be accepted to count."""
    found: list[Found] = []
    told = 0
    with bench.session() as session:
        for record, twin in pairs:
            if session.call("canonicalise", args_of(twin, Profile.CORE)).outcome != "accepted":
                continue
            found += canonicalised(Profile.CORE, session, record, floor_of(bench))
            told += 1
    if not told:
        bench.fail("not_reached", "no document is accepted without its defect, so no refusal counts")
    report(bench, found)


def _any(bench: Bench, part: Part) -> Iterator[Vector]:
    """Committed and constructed documents of any category, and the large ones of that part."""
    ones = (*load("jcs"), *_accepted(bench), *islice(large(bench.seed), *_LARGE[part]))
    return (record for record in ones if record.canonical is not None)


@clause("JCS-IDEM-02", "JCS-IDEM-01")
def test_constructed_documents_and_their_canonical_forms_have_one_form(bench: Bench) -> None:
    """Documents that were canonical before they were disguised. Which form it is, other tests say."""
    with bench.session() as session:
        for record in (*_accepted(bench), *large(bench.seed)):
            first, second = (_canonical(bench, session, body) for body in (record.document, record.canonical or b""))
            if first != second:
                told = f"{record.document[:80]!r} and its canonical form have two forms: {difference(second, first)}"
                bench.fail("wrong_reason", told)


@clause("JCS-PROF-01", "JCS-PROF-02", "JCS-PROF-03", "JCS-PROF-04", "JCS-PROF-06", roles=_STRICT)
def test_constructed_documents_in_i_json_strict(bench: Bench) -> None:
    """What the profile refuses beyond core, and what it does not."""
    run_beside_core(bench, _accepted(bench), partial(canonicalised, Profile.I_JSON_STRICT))


@clause("JCS-PROF-01", "JCS-PROF-05", "JCS-PROF-06", roles=_SAFE)
def test_constructed_documents_in_safe_int(bench: Bench) -> None:
    """What the profile refuses beyond core, and what it does not."""
    run_beside_core(bench, _accepted(bench), partial(canonicalised, Profile.SAFE_INT))


@clause("JCS-VER-01", "JCS-VER-02", "JCS-VER-03")
def test_constructed_documents_in_verify_mode(bench: Bench) -> None:
    """Each document and its canonical form, in a profile whose canonicalise answers it rightly."""
    found: list[Found] = []
    floor, told = floor_of(bench), 0
    with bench.session() as session:
        for record, profile in zip(_accepted(bench), cycle(claimed(bench)), strict=False):
            if not any(canonicalised(profile, session, record, floor)):
                found += verified(profile, session, record, floor)
                told += 1
    if not told:
        bench.fail("not_reached", "canonicalise answers no document rightly, so nothing can be said of verify")
    report(bench, found)


# Edges


def _run_edges(bench: Bench, records: Iterable[Vector], *parts: Part) -> None:
    """What core says of all of them, and of the bytes these parts."""
    run_in_core(bench, in_any_order(records, bench.seed), {*parts, None})


@clause("JCS-SUR-01", "JCS-SUR-02", "JCS-SUR-03")
def test_two_code_units_at_the_ends_of_their_ranges(bench: Bench) -> None:
    """Each half of a character beside each other code unit, in strings and in names."""
    _run_edges(bench, pairs_of_units())


@clause("JCS-BOM-01", "JCS-GRAM-01")
def test_what_differs_from_a_byte_order_mark_in_one_bit(bench: Bench) -> None:
    """It is a character, with which no document begins."""
    _run_edges(bench, beside_a_mark())


@clause("JCS-GRAM-03", "JCS-GRAM-01")
def test_strings_without_one_of_their_quotation_marks(bench: Bench) -> None:
    """What another character begins or ends is no string and no name."""
    _run_edges(bench, beside_a_quotation_mark())


@clause("JCS-PROF-02", "JCS-PROF-01", roles=_STRICT)
def test_noncharacters_behind_other_characters_in_i_json_strict(bench: Bench) -> None:
    """Anywhere in a string, escaped or not."""
    run_beside_core(bench, in_any_order(noncharacters(), bench.seed), partial(canonicalised, Profile.I_JSON_STRICT))


# The ladder of sizes: lengths, numbers and depths around the limits of programs, and beyond them


def _climbed(bench: Bench, parts: Collection[Part | None], *axes: str) -> None:
    """What core says of the rungs of these axes without a defect, and these parts of the bytes."""
    accepted = [record for axis in axes for record, twin in rungs(bench.seed)[axis] if twin is None]
    run_in_core(bench, in_any_order(accepted, bench.seed), parts)


def _climbed_with_defects(bench: Bench, reason: str | None, *about: Category) -> None:
    """Every rung with a defect of these categories that has this reason."""

    def fits(record: Vector) -> bool:
        due = record.expected[Profile.CORE]
        return isinstance(due, Refused) and record.category in about and reason in (None, due.reason)

    climbed = [pair for pairs in rungs(bench.seed).values() for pair in pairs if fits(pair[0])]
    asked = in_any_order(climbed, bench.seed)
    _run_defects(bench, ((record, twin) for record, twin in asked if twin is not None))


@clause("JCS-STR-04", "JCS-STR-01", "JCS-STR-02", "JCS-STR-03", "JCS-STR-05", "JCS-SUR-03", "JCS-DUP-04", whole=True)
def test_strings_and_names_of_growing_length(bench: Bench) -> None:
    """Lengths around powers of two, across the borders of buffers, beside much whitespace, and two code units."""
    pairs = (each for each in pairs_of_units() if each.canonical is not None)
    _run_edges(bench, pairs, Part.STRING, Part.NUMBER, Part.FORM)
    parts = {Part.STRING, Part.NUMBER, Part.FORM, None}
    _climbed(bench, parts, "string", "name", "names", "split", "bytes", "space")
    _climbed(bench, {Part.STRING}, "elements")


@clause("JCS-ORD-01", "JCS-ORD-02")
def test_names_of_growing_length_have_their_order(bench: Bench) -> None:
    """They differ in their last unit, or one is the beginning of another."""
    _climbed(bench, {Part.ORDER}, "names", "name")


@clause("JCS-ORD-01", "JCS-ORD-02", "JCS-ORD-06", whole=True)
def test_members_and_elements_of_growing_number(bench: Bench) -> None:
    """More of them than any table, or any counter of 8 or 16 bits, is likely to hold."""
    _climbed(bench, {Part.ORDER, None}, "members", "elements")


@clause("JCS-DEPTH-02", "JCS-DEPTH-01", "JCS-ORD-05", "JCS-LIT-01", whole=True)
def test_levels_of_growing_number(bench: Bench) -> None:
    """More of them than a stack is likely to hold."""
    _climbed(bench, {Part.ORDER, Part.FORM, None}, "depth")
    _climbed(bench, {Part.FORM}, "elements")


@clause(*_ids("NUM", most=9), whole=True)
def test_numbers_of_growing_length(bench: Bench) -> None:
    """Digits, exponents and integers around the limits of numbers in programs, alone and in a large array."""
    _climbed(bench, {Part.NUMBER, None}, "digits", "zero", "number", "integer")
    _climbed(bench, {Part.NUMBER}, "elements")


def _canonical(bench: Bench, session: SuiteSession, document: bytes) -> bytes:
    answer = session.call("canonicalise", args_of(document, Profile.CORE))
    if answer.outcome != "accepted":
        bench.fail(
            "over_refusal", f"{document!r}: refused with {answer.reason}, it is JSON", received=described(answer)
        )
    return from_base64url(answer.value["canonical"])


def _disguised(bench: Bench) -> Iterator[tuple[Any, bytes, bytes]]:
    """Values of this run, each beside two documents that spell it."""
    for number in range(_DRAWN):
        # An order of disguises, not a secret.
        way = Random(f"{bench.seed} {number}")  # noqa: S311
        value = drawn(way)
        yield value, disguised(value, way), disguised(value, way)


@clause("JCS-IDEM-02", "JCS-IDEM-01")
def test_any_document_in_any_disguise_has_one_canonical_form(bench: Bench) -> None:
    """Respacing, reordering and respelling change nothing, and the form is stable."""
    with bench.session() as session:
        for _, first, second in _disguised(bench):
            canonical, other = _canonical(bench, session, first), _canonical(bench, session, second)
            if canonical != other:
                received = f"{canonical!r} and {other!r}"
                bench.fail("wrong_reason", f"{first!r} and {second!r} are one document", received=received)
            if _canonical(bench, session, canonical) != canonical:
                bench.fail("wrong_reason", f"{canonical!r} was given out as canonical and is not stable")


@clause("JCS-STR-04", "JCS-ORD-06")
def test_any_document_keeps_its_texts_members_and_elements(bench: Bench) -> None:
    """What lost or changed one of them is the form of another document as well. Numbers are for other tests."""
    with bench.session() as session:
        for value, first, _ in _disguised(bench):
            _must_mean(bench, value, _canonical(bench, session, first))


@clause("JCS-VER-01", "JCS-VER-02")
def test_verify_takes_the_canonical_form_alone_of_any_disguise(bench: Bench) -> None:
    """The form that canonicalise itself gave, and the document that it gave it for."""
    with bench.session() as session:
        for _, first, _ in _disguised(bench):
            canonical = _canonical(bench, session, first)
            answer = session.call("verify", args_of(canonical, Profile.CORE))
            if answer.outcome != "accepted":
                bench.fail("over_refusal", f"verify of {canonical!r}: refused with {answer.reason}")
            answer = session.call("verify", args_of(first, Profile.CORE))
            if first != canonical and answer.outcome == "accepted":
                bench.fail("fail_open", f"verify of {first!r}: accepted, its canonical form is {canonical!r}")


def _must_mean(bench: Bench, value: Any, canonical: bytes) -> None:
    try:
        kept = same_value(value_of(canonical), value)
    except ValueError as error:
        bench.fail("wrong_reason", f"{canonical!r} is not JSON: {error}")
    if not kept:
        bench.fail("fail_open", f"{canonical!r} is not the canonical form of {value!r}")


_Question = tuple[str, Vector, Profile]


def _shown(answer: Answer) -> tuple[Any, ...]:
    return answer.outcome, answer.reason, answer.value


def _must_agree(bench: Bench, question: _Question, before: Answer, answer: Answer, other: str) -> None:
    """Compare two answers of one implementation. If one of them refuses, the record says which of the two is wrong."""
    method, record, profile = question
    if _shown(before) != _shown(answer):
        due = record.expected[profile]
        accepts = isinstance(due, Canonical) and (method == "canonicalise" or due.body == record.document)
        wrong = "over_refusal" if accepts else "fail_open"
        bench.fail(
            "wrong_reason" if before.outcome == answer.outcome else wrong,
            f"{method} of {record.document[:80]!r} in {profile.value} has another answer in {other}",
            expected=described(before),
            received=described(answer),
        )


@clause("JCS-PURE-01")
def test_answers_do_not_depend_on_locale_and_zone(bench: Bench) -> None:
    """A process with another decimal point, another collation and another zone in its environment answers the same."""
    questions = [("canonicalise", record, Profile.CORE) for record in load("jcs")[::3]]

    def answers(variables: Mapping[str, str]) -> list[Answer]:
        with bench.session(variables=variables) as session:
            return [session.call(method, args_of(record.document, profile)) for method, record, profile in questions]

    usual, elsewhere = answers({}), answers(ELSEWHERE)
    if [*map(_shown, usual)] != [*map(_shown, elsewhere)]:
        # Not the place but the process or the number of calls may have changed an answer.
        for other, found in (("another process", answers(ZONE)), ("another locale or zone", elsewhere)):
            for question, before, answer in zip(questions, usual, found, strict=True):
                _must_agree(bench, question, before, answer, other)


@clause("JCS-PURE-01")
def test_answers_do_not_depend_on_what_was_asked_before(bench: Bench) -> None:
    """The same questions in another order, in the same session and in another one, have the same answers."""
    chosen = load("jcs")[::12]
    methods = [method for method in ("canonicalise", "verify") if method not in bench.not_claimed]
    questions = list(product(methods, chosen, claimed(bench)))
    known: dict[tuple[str, str, Profile], Answer] = {}
    for seed in range(2):
        # Twice each, so that what a session remembers of a question shows too.
        order = Random(f"{bench.seed} {seed}").sample(2 * questions, 2 * len(questions))  # noqa: S311 - no secret
        with bench.session() as session:
            for each in order:
                method, record, profile = each
                answer = session.call(method, args_of(record.document, profile))
                before = known.setdefault((method, record.id, profile), answer)
                _must_agree(bench, each, before, answer, "another order of calls")
    if len({(answer.outcome, answer.reason, str(answer.value)) for answer in known.values()}) == 1:
        bench.fail("not_reached", "every question had one and the same answer, so nothing shows that they matter")


TESTS = {
    **tabled(
        __name__,
        run,
        # Encodings, whole and broken.
        test_committed_vectors_of_bytes=([*_ids("UTF8", most=3), "JCS-BOM-01"], (None, "UTF8", "BOM")),
        # What is JSON and what only resembles it.
        test_committed_vectors_of_grammar=([*_ids("GRAM", most=5), "JCS-TOP-01"], (None, "GRAM", "TOP")),
        # Names that are the same, halves of characters.
        test_committed_vectors_of_names_and_surrogates=(
            [*_ids("DUP", most=4), *_ids("SUR", most=3)],
            (None, "DUP", "SUR"),
        ),
        # Every notation, ties, and the ends of the range.
        test_committed_vectors_of_numbers=(_ids("NUM", most=9), (Part.NUMBER, "NUM")),
        # What is escaped and what is not.
        test_committed_vectors_of_strings=(_ids("STR", most=5), (Part.STRING, "STR")),
        # Members and elements.
        test_committed_vectors_of_order=(_ids("ORD", most=6), (Part.ORDER, "ORD")),
        # Whitespace, structure, depth, and what is canonical already.
        test_committed_vectors_of_form=(
            [*_ids("WS", "LIT"), *_ids("DEPTH", "IDEM", most=2)],
            (Part.FORM, "WS", "LIT", "DEPTH", "IDEM", "VER", "PURE", "PROF"),
        ),
    ),
    **tabled(
        __name__,
        lambda bench, part: run_in_core(bench, _any(bench, part), {part}),
        # Wherever in a document they stand.
        test_numbers_of_any_document_have_their_canonical_bytes=(
            [f"JCS-NUM-0{number}" for number in (3, 2, 4, 5, 6, 8, 9)],
            (Part.NUMBER,),
        ),
        # Names are strings too.
        test_strings_of_any_document_have_their_canonical_bytes=(
            ("JCS-STR-03", "JCS-STR-01", "JCS-STR-02", "JCS-STR-04", "JCS-SUR-03"),
            (Part.STRING,),
        ),
        # At every depth.
        test_members_and_elements_of_any_document_have_their_order=(_ids("ORD", most=6), (Part.ORDER,)),
        # Literals, brackets, and nothing between them.
        test_the_form_of_any_document_is_that_of_its_construction=(
            ("JCS-LIT-01", "JCS-WS-01", "JCS-UTF8-03"),
            (Part.FORM,),
        ),
    ),
    **tabled(
        __name__,
        _run_drawn,
        # Broken and foreign encodings, in documents of any form.
        test_constructed_defects_of_bytes=(
            ("JCS-UTF8-01", "JCS-UTF8-02", "JCS-BOM-01"),
            (40, lambda category, _: category in (Category.INVALID_UTF8, Category.ENCODING)),
        ),
        # What only resembles JSON, in documents of any form.
        test_constructed_defects_of_grammar=(
            _ids("GRAM", most=5),
            (40, lambda category, reason: reason == "SYNTAX" and category is not Category.ENCODING),
        ),
        # Duplicate names and halves of characters, in documents of any form.
        test_constructed_defects_of_names_and_surrogates=(
            [*_ids("DUP", most=3), *_ids("SUR", most=2)],
            (40, lambda _, reason: reason in ("DUPLICATE_NAME", "LONE_SURROGATE")),
        ),
        # Numbers that no double holds, in documents of any form: one document of four hundred.
        test_constructed_numbers_out_of_range=(["JCS-NUM-01"], (8, lambda _, reason: reason == "NUMBER_OUT_OF_RANGE")),
    ),
    **tabled(
        __name__,
        _climbed_with_defects,
        # Every defect that is known: first, last and alone, in the last child, around a container, at every depth.
        test_defects_of_bytes_at_every_size=(["JCS-UTF8-01"], (None, Category.INVALID_UTF8)),
        test_defects_of_grammar_at_every_size=(
            ("JCS-GRAM-01", "JCS-GRAM-04", "JCS-GRAM-05"),
            ("SYNTAX", Category.STRUCTURE_GRAMMAR, Category.NUMBER_RANGE),
        ),
        test_defects_of_numbers_at_every_size=(["JCS-GRAM-02"], (None, Category.NUMBER_GRAMMAR)),
        test_defects_of_strings_at_every_size=(["JCS-GRAM-03"], (None, Category.STRING_GRAMMAR)),
        test_duplicate_names_at_every_size=(_ids("DUP", most=3), (None, Category.DUPLICATE_NAMES)),
        test_lone_surrogates_at_every_size=(_ids("SUR", most=2), (None, Category.LONE_SURROGATES)),
        test_numbers_out_of_range_at_every_size=(["JCS-NUM-01"], ("NUMBER_OUT_OF_RANGE", Category.NUMBER_RANGE)),
    ),
}
