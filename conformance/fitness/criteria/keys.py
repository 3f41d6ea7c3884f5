"""(a) single use of the two keys, and (b) of the nonce: what makes a column of a table a key that nothing goes past."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria import files
from holdfast.conformance.fitness.criteria.binding import checks_on, made_up, must_be_said, refused_by, weak_checks
from holdfast.conformance.fitness.criteria.judging import Judging, duplicate, sound
from holdfast.conformance.fitness.criteria.spelling import (
    NEIGHBOURS,
    NUL_NEIGHBOURS,
    WRITE_AS,
    WRITE_AS_IN_FILES,
    capacity,
    conditions_of,
    has_word,
    one_spelling,
    one_spelling_in_files,
)
from holdfast.conformance.fitness.criteria.tables import ordinary, plain_insert, there
from holdfast.conformance.fitness.model import Part, RelationName, Row
from holdfast.conformance.fitness.policy import KEYS, NONCE
from holdfast.conformance.fitness.postgres.catalogue import Catalogue, longest

# Types whose equality is that of their bytes, and which keep what they are given.
_TEXTS = ("pg_catalog.text", "pg_catalog.varchar")
_BYTES = "pg_catalog.bytea"
_UUID = "pg_catalog.uuid"
# pg_attribute.attidentity of a column that no statement gives a value.
_ALWAYS = "a"
# How the names of the probes of a key begin.
_STEMS = {KEYS[0]: "key", KEYS[1]: "replay-key"}
# In SQLite a key may be bytes where a text is meant.
_BYTES_TOO = {**NUL_NEIGHBOURS, "blob": (None, "as bytes")}
_BYTE_ORDERED = ("pg_catalog.C", "pg_catalog.POSIX")


# What makes a unique index less than it seems, in the order in which a reader wants to know.
def _defects(index: Row) -> Iterator[tuple[Code, str]]:
    if index["exclusion"] or index["period"]:
        yield Code.KEY_TEMPORAL, "is an exclusion constraint, or unique for a period only"
    if not (index["valid"] and index["ready"] and index["live"]):
        yield Code.KEY_INVALID, "was never finished: duplicates may be there, and new ones pass"
    if not index["immediate"]:
        yield Code.KEY_DEFERRABLE, "is checked at the end of a transaction, and is no arbiter of ON CONFLICT"
    if index["predicate"] is not None:
        yield Code.KEY_PARTIAL, f"holds for some rows only: {index['predicate']}"
    if index["expressions"] is not None:
        yield Code.KEY_EXPRESSION, f"is over an expression: {index['expressions']}"
    if not index["deterministic"]:
        yield Code.KEY_COLLATION, "takes different texts for equal"
    foreign = [each for each in index["opclasses"] if not str(each).startswith("pg_catalog.")]
    if foreign:
        yield Code.KEY_OPERATOR, f"compares by {', '.join(foreign)}, which is not PostgreSQL's own"


def _concerns(index: Row, column: str) -> bool:
    return column in index["columns"] or has_word(str(index["expressions"] or ""), column)


def sound_unique(catalogue: Catalogue, relation: RelationName, column: str) -> Row | None:
    """A unique index on exactly this column that holds for all rows, at once; None if there is none."""
    indexes = catalogue.unique(relation)
    return next((index for index in indexes if index["columns"] == [column] and not any(_defects(index))), None)


def _unique(judging: Judging, part: Part, relation: RelationName, column: str) -> None:
    if (index := sound_unique(judging.catalogue, relation, column)) is not None:
        judging.rest_on(index)
        return
    near = [index for index in judging.catalogue.unique(relation) if _concerns(index, column)]
    row = judging.catalogue.relation(relation)
    if row is not None and row["partition_key"] is not None and not near:
        text = f"{relation} is partitioned by {row['partition_key']}: UNIQUE ({column}) alone cannot be declared on it"
        judging.unproven(Code.KEY_NOT_DECLARABLE, text, part=part, rows=[row])
    else:
        tail = f"; near it: {', '.join(str(index['name']) for index in near)}" if near else ""
        text = f"nothing makes {column} of {relation} unique by itself, at once and for all rows{tail}"
        judging.refute(Code.KEY_NOT_UNIQUE, text, part=part, rows=near)
    for index in near:
        what = f"{index['name']} on {relation}"
        if len(index["columns"]) > 1:
            others = ", ".join(str(each or "an expression") for each in index["columns"] if each != column)
            text = f"{what} is unique with {others} only: the same {column} goes in again with another {others}"
            judging.refute(Code.KEY_COMPOSITE, text, part=part, rows=[index])
            if judging.policy.column("attempt") in index["columns"]:
                judging.refute(Code.REPLAY_ATTEMPT_NO_BYPASS, text, part=part, rows=[index])
        for code, text in _defects(index):
            judging.refute(code, f"{what} {text}", part=part, rows=[index])


def _column(judging: Judging, part: Part, relation: RelationName, name: str, trial: str) -> Row | None:
    """The column, held to what a key must be."""
    row = judging.catalogue.column(relation, name)
    if row is None:
        return None
    judging.rest_on(row)
    what = f"{name} of {relation}"
    must_be_said(judging, part, relation, row, trial, Code.KEY_NULLABLE, ", and NULLs are never equal")
    if row["base_type"] not in (*_TEXTS, _BYTES, _UUID):
        kept = f"is of type {row['type']}; text, bytea and uuid keep a key as it is and compare its bytes"
        text = f"{what} {row.get('changes_texts') or kept}"
        judging.refute(Code.KEY_TYPE, text, part=part, rows=[row])
    if row["base_type"] in _TEXTS:
        if row["deterministic"] is False:
            text = f"{what} has the collation {row['collation']}, to which different texts are equal"
            judging.refute(Code.KEY_COLLATION, text, part=part, rows=[row])
        index = sound_unique(judging.catalogue, relation, name)
        used = None if index is None else index["collations"][0]
        # An index that has another collation than its column has its own order.
        stable = row["byte_order"] if used in (None, row["collation"]) else used in _BYTE_ORDERED
        if row["deterministic"] and not stable:
            text = (
                f"the unique index of {what} is ordered by the collation {used or row['collation']} of a library: "
                'after an update of the library it may miss duplicates; declare the column COLLATE "C"'
            )
            judging.unproven(Code.COLLATION_UNSTABLE, text, part=part, rows=[row])
    made_up(judging, part, relation, row, (Code.KEY_GENERATED, Code.KEY_DEFAULT), "a row without a key gets one")
    return row


def _canonical(judging: Judging, relation: RelationName, row: Row, stem: str) -> None:
    """A key is held to one spelling by its type, by the text of a check, or by a check that a policy vouches for."""
    name = str(row["name"])
    if row["base_type"] == _UUID:
        return
    checks = checks_on(judging, relation, name)
    judging.rest_on(*checks)
    good = sound(judging, checks)
    weak_checks(judging, relation, checks)
    if not checks:
        if row["base_type"] == _BYTES or not judging.unread(*(f"{stem}-{each}" for each in NEIGHBOURS)):
            text = f"no check on {name} of {relation} alone shows that one key has one spelling"
            judging.unproven(Code.KEY_NOT_CANONICAL, text, part=Part.EFFECT)
    elif row["base_type"] == _BYTES or not good or _shows_one(judging, good, name):
        return
    # Neighbours never exhaust the spellings that a check may let pass: its text must show that there is one only.
    elif not any(judging.reviewed(check, relation) for check in good):
        described = "; ".join(" ".join(dict.fromkeys((check["name"], check["definition"]))) for check in good)
        text = (
            f"nothing in the text of the checks on {name} of {relation} shows that one key has one spelling: "
            f"{described}; write one as CHECK ({_advice(judging, name)}, or name "
            "the constraint in a policy as reviewed"
        )
        judging.unproven(Code.KEY_NOT_CANONICAL, text, part=Part.EFFECT, rows=good)


# What a digest of half the length of SHA-256 has.
_BITS = 128


def _roomy(judging: Judging, part: Part, relation: RelationName, row: Row) -> None:
    """The form that checks hold a key to leaves room for keys that nobody guesses and none of which meet."""
    name = str(row["name"])
    checks = sound(judging, checks_on(judging, relation, name))
    most = capacity(conditions_of(checks), name, of_bytes=row["base_type"] == _BYTES, longest=longest(row))
    if most < _BITS:
        keys = "nonces" if part is Part.NONCE else "keys"
        text = f"the checks on {name} of {relation} leave it less than {_BITS} bits: {keys} may meet, or be guessed"
        judging.unproven(Code.KEY_NARROW, text, part=part, rows=checks or [row])


def _advice(judging: Judging, name: str) -> str:
    if judging.in_files:
        return f"{WRITE_AS_IN_FILES.format(name)})"
    return f"{name} {WRITE_AS}), with a prefix if need be and without options, alternatives, +, * and {{m,n}}"


def _shows_one(judging: Judging, checks: list[Row], name: str) -> bool:
    said = conditions_of(checks)
    if judging.in_files:
        row, table = judging.named_column(Part.EFFECT, name), judging.relation(Part.EFFECT)
        typed = row is not None and table is not None and table["strict"] and row["affinity"] == "TEXT"
        return one_spelling_in_files(said, name, typed=bool(typed))
    return one_spelling(said, name, trusted=judging.policy.reviewed)


def single_use(judging: Judging) -> None:
    """(a)"""
    if (found := there(judging, Part.EFFECT)) is None:
        return
    judging.check(ordinary, Part.EFFECT)
    plain_insert(judging, Part.EFFECT)
    for inspect in (_keys, _attempts, _used_once):
        judging.check(inspect, found[0])
    if judging.in_files:
        judging.check(files.sound, Part.EFFECT)


def _keys(judging: Judging, relation: RelationName) -> None:
    missing: list[str] = []
    for word, stem in _STEMS.items():
        name = judging.policy.column(word)
        row = _column(judging, Part.EFFECT, relation, name, f"{stem}-null")
        if row is None:
            missing.append(name)
            continue
        _unique(judging, Part.EFFECT, relation, name)
        _canonical(judging, relation, row, stem)
        _roomy(judging, Part.EFFECT, relation, row)
    if missing:
        text = f"{relation} lacks {', '.join(missing)}"
        judging.refute(Code.MISSING_COLUMNS, text, part=Part.EFFECT)


def _attempts(judging: Judging, relation: RelationName) -> None:
    """Attempts neither make a row another one nor are unique themselves."""
    attempt = judging.policy.column("attempt")
    # A policy in a proof names every column, so that only another name says that an attempt must be there.
    if judging.policy.renames("attempt") and judging.catalogue.column(relation, attempt) is None:
        text = f"the policy takes {attempt} for the attempt, and {relation} has no column of that name"
        judging.unproven(Code.MISSING_COLUMNS, text, part=Part.EFFECT)
    columns = {str(row["name"]) for row in judging.catalogue.of("columns", relation)}
    alone = {name for name in columns if sound_unique(judging.catalogue, relation, name) is not None}
    # Beside a column that is unique by itself an attempt decides nothing; of a key that is not it is reported above.
    harmless = {*alone, *map(judging.policy.column, KEYS)} - {attempt}
    for index in judging.catalogue.unique(relation):
        # What an exclusion constraint compares with, its index does not say.
        if index["exclusion"] or not harmless & set(index["columns"]):
            condition = re.sub(r"'(?:[^']|'')*'", "", str(index["predicate"] or ""))
            if _concerns(index, attempt) or has_word(condition, attempt):
                text = f"{index['name']} on {relation} keys {attempt}, and an attempt may recur: {index['definition']}"
                judging.refute(Code.ATTEMPT_KEYING, text, part=Part.EFFECT, rows=[index])
    if judging.policy.column(KEYS[0]) in alone:
        return
    # A unique index over several columns takes the same value of one with another of the next: shown, or tried.
    for index in judging.catalogue.unique(relation):
        if len(index["columns"]) == 1 or alone & set(index["columns"]):
            continue
        names = {f"composite-{index.get('index', index['name'])}-{column}" for column in index["columns"]}
        found = [probe for probe in judging.evidence.probes if probe.name in names and probe.answer is not None]
        shown = [each.name for each in found if each.answers[-1].sqlstate is None and each.answers[-1].affected != 0]
        listed = ", ".join(str(each or "an expression") for each in index["columns"])
        tail = f"; tried, and admitted: {', '.join(shown)}" if shown else ""
        text = (
            f"{index['name']} on {relation} is UNIQUE ({listed}): a retry ledger, which takes the same key again{tail}"
        )
        judging.refute(Code.REPLAY_ATTEMPT_NO_BYPASS, text, part=Part.EFFECT, rows=[index], probes=shown)


def _used_once(judging: Judging, relation: RelationName) -> None:
    """What was tried on the clone."""
    rows = {word: judging.column(Part.EFFECT, word) for word in KEYS}
    if None in rows.values():
        return
    for name in ("first", "second"):
        judging.admitted(name, Code.KEY_COLLISION, "a fresh key was refused", part=Part.EFFECT)
    key, replay = map(judging.policy.column, KEYS)
    twice, again = (duplicate(judging.catalogue, relation, each) for each in (key, replay))
    # The replay key has no attempt either, so it is the same too, and the database checks the one or the other first.
    for name, code, text, by in (
        ("same-key", Code.DUPLICATE_ADMITTED, f"the same {key} went in twice", twice),
        (
            "same-key-new-attempt",
            Code.REPLAY_ATTEMPT_NO_BYPASS,
            f"the same {key} went in again with another attempt",
            lambda answer: twice(answer) or again(answer) or (judging.in_files and answer.sqlstate == "23505"),
        ),
        ("same-replay-key", Code.DUPLICATE_ADMITTED, f"the same {replay} went in twice", again),
    ):
        judging.refused(name, code, text, part=Part.EFFECT, by=by, staged=True)
    for word, stem in _STEMS.items():
        text = f"a row without {judging.policy.column(word)} went in"
        judging.refused(f"{stem}-null", Code.KEY_NULLABLE, text, part=Part.EFFECT)
    for word, row in rows.items():
        name, stem = judging.policy.column(word), _STEMS[word]
        if row is None or row["base_type"] == _BYTES:
            continue
        # Another spelling of a consumed key is refused, and by a check that reads nothing but the key.
        good = sound(judging, checks_on(judging, relation, name))
        holds = refused_by(good, plain=_shows_one(judging, good, name))
        for suffix, (_, what) in {**NEIGHBOURS, **(_BYTES_TOO if judging.in_files else {})}.items():
            text = f"the consumed {name} {what} is another key to {relation}"
            judging.refused(f"{stem}-{suffix}", Code.KEY_NOT_CANONICAL, text, part=Part.EFFECT, by=holds)
        text = f"two different values of {name} that begin alike are one key"
        judging.admitted(f"{stem}-prefix", Code.KEY_COLLISION, text, part=Part.EFFECT)
    attempt = judging.column(Part.EFFECT, "attempt")
    # An attempt that the server numbers never recurs, and no row can say that it does.
    if attempt is not None and not attempt["generated"] and attempt["identity"] != _ALWAYS:
        text = f"a known {attempt['name']} was refused with another key"
        judging.admitted("attempt-again", Code.ATTEMPT_KEYING, text, part=Part.EFFECT)


def nonce(judging: Judging) -> None:
    """(b)"""
    judging.check(_nonce_named)
    if (relation := judging.part(Part.NONCE)) is None:
        return
    judging.check(ordinary, Part.NONCE)
    plain_insert(judging, Part.NONCE)
    judging.check(_nonce_column, relation)
    judging.check(_nonce_used_once, relation)


def _nonce_named(judging: Judging) -> None:
    column = judging.policy.column(NONCE)
    effect, relation = judging.part(Part.EFFECT), judging.part(Part.NONCE)
    if relation is None:
        text = "no relation is there in which a nonce is consumed, one row for each"
        judging.refute(Code.MISSING_RELATION, text, part=Part.NONCE)
        if effect is not None and judging.catalogue.column(effect, column) is None:
            judging.refute(Code.MISSING_COLUMNS, f"{effect} lacks {column} as well", part=Part.EFFECT)
    elif relation == effect:
        text = f"{relation} is the effect itself: a nonce column of it is no consume record"
        judging.refute(Code.NONCE_NOT_SEPARATE, text, part=Part.NONCE)


def _nonce_column(judging: Judging, relation: RelationName) -> None:
    if there(judging, Part.NONCE) is None:
        return
    column = judging.policy.column(NONCE)
    if (row := _column(judging, Part.NONCE, relation, column, "nonce-null")) is None:
        judging.refute(Code.MISSING_COLUMNS, f"{relation} lacks {column}", part=Part.NONCE)
    else:
        _unique(judging, Part.NONCE, relation, column)
        _roomy(judging, Part.NONCE, relation, row)


def _nonce_used_once(judging: Judging, relation: RelationName) -> None:
    column = judging.policy.column(NONCE)
    if judging.catalogue.column(relation, column) is None:
        return
    for name in ("first", "second"):
        judging.admitted(name, Code.KEY_COLLISION, "a fresh nonce was refused", part=Part.NONCE)
    twice = duplicate(judging.catalogue, relation, column)
    text = f"two different values of {column} that begin alike are one nonce"
    judging.admitted("nonce-prefix", Code.KEY_COLLISION, text, part=Part.NONCE)
    text = f"one {column} was consumed for two keys"
    judging.refused("nonce-again", Code.NONCE_REUSED, text, part=Part.NONCE, by=twice, staged=True)
    judging.refused("nonce-null", Code.KEY_NULLABLE, f"a consume record without {column} went in", part=Part.NONCE)
    if judging.in_files:
        text = f"the bytes of a consumed {column} were consumed again"
        judging.refused("nonce-blob", Code.NONCE_REUSED, text, part=Part.NONCE)
