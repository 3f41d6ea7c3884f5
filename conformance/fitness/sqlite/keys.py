"""Criteria (a) and (b): a key that is taken once, by the catalogue and by trying."""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.spelling import is_of_one_case
from holdfast.conformance.fitness.model import Part
from holdfast.conformance.fitness.neighbours import NEIGHBOURS, NUL_NEIGHBOURS
from holdfast.conformance.fitness.policy import KEYS, NONCE
from holdfast.conformance.fitness.sqlite.catalogue import BINARY, Column, Index, Relation
from holdfast.conformance.fitness.sqlite.judging import Judging, Outcome, came_to
from holdfast.conformance.fitness.sqlite.probes import STEMS
from holdfast.conformance.fitness.sqlite.sqltext import Token

# CHECKs of SQLite whose text shows that a key has one spelling only; see `criteria.spelling` for why a text is asked.
# SQLite has two traps more: without STRICT or typeof() the bytes of a text are another value that every other condition
# takes for the text, and length() and GLOB end at a NUL, so that anything may stand behind it.

# What a reason suggests for another form; {0} is the column.
WRITE_AS = "typeof({0}) = 'text' AND length({0}) = 64 AND length(CAST({0} AS BLOB)) = 64 AND {0} NOT GLOB '*[^0-9a-f]*'"
# An AND inside one of these does not separate conditions.
_NOT_PARTED = ("CASE", "BETWEEN")
_BYTES = ("length ( cast ( {c} as blob ) ) =", "octet_length ( {c} ) =")
_NO_NUL = ("instr ( {c} , char ( 0 ) ) =", "instr ( {c} , x'00' ) =")
_NUMBER = "([1-9][0-9]*)"


def one_spelling(relation: Relation, column: str) -> bool:
    """Whether the CHECKs of a relation leave each key in the column one spelling, for all values of other columns."""
    # The tokens of each condition in one spelling, the column as {c}; a text keeps its case and its quotes.
    parts = [
        " ".join(_word(token, column) for token in part)
        for check in relation.checks
        if not any(token.says(word) for token in check.body for word in _NOT_PARTED)
        for part in check.conjuncts
    ]
    strict = relation.strict and relation.columns[column].affinity == "TEXT"
    if not (strict or _found(parts, "typeof ( {c} ) =", "('text')")):
        return False
    long = set(_found(parts, "length ( {c} ) =", _NUMBER))
    octets = {number for form in _BYTES for number in _found(parts, form, _NUMBER)}
    whole = any(_found(parts, form, "(0)") for form in _NO_NUL)
    if any(
        places and (whole or str(places) in octets) for places in map(_places, _found(parts, "{c} glob", "'([^']*)'"))
    ):
        return True
    # What is NOT GLOB one of these has characters of one set only.
    only = any(map(is_of_one_case, _found(parts, "{c} not glob", r"'\*\[\^([^\]]+)\]\*'")))
    return only and bool(long & octets or (whole and long | octets))


def _word(token: Token, column: str) -> str:
    if token.kind == "string":
        return "'" + token.text.replace("'", "''") + "'"
    if token.kind in ("word", "quoted") and token.names(column):
        return "{c}"
    # A name in quotes is no function and no keyword.
    return f'"{token.text}"' if token.kind == "quoted" else token.text.lower()


def _found(parts: Sequence[str], before: str, value: str) -> list[str]:
    """What stands in the group of `value`, for each condition that consists of `before` and of such a value."""
    pattern = re.compile(f"{re.escape(before)} {value}")
    return [match.group(1) for part in parts if (match := pattern.fullmatch(part)) is not None]


def _places(text: str) -> int:
    """How many places a pattern of GLOB has that names the characters of each; 0 for any other pattern."""
    places = 0
    for inside, plain in re.findall(r"\[([^\]^][^\]]*)\]|(.)", text, re.DOTALL):
        if not (is_of_one_case(inside) if inside else re.fullmatch(r"[A-Za-z0-9_:/@=.+-]", plain)):
            return 0
        places += 1
    return places


# Conflict clauses that a table must not have, both of which hide the error: the code, and what they do.
_SWALLOWED = {
    "IGNORE": (Code.SILENTLY_IGNORED, "drops the new row"),
    "REPLACE": (Code.CHANGE_ADMITTED, "deletes the stored row"),
}


def single_use(judging: Judging) -> None:
    """(a)"""
    effect = judging.table(Part.EFFECT)
    if effect is None:
        return
    there = judging.columns(effect, Part.EFFECT, KEYS)
    for word, column in there:
        _unique(judging, effect, Part.EFFECT, word, column)
    taken_as_written(judging, effect, Part.EFFECT)
    _attempts(judging, effect)
    words = [word for word, _ in there]
    if KEYS[0] in words:
        text = "one key was taken twice under two attempts"
        judging.refused(Part.EFFECT, Code.REPLAY_ATTEMPT_NO_BYPASS, text, "same-key", "same-key-new-attempt")
        judging.admitted(Code.KEY_COLLISION, "a different key was taken for the known one", "key-prefix")
    if KEYS[1] in words:
        text = "one replay key was taken twice"
        judging.refused(Part.EFFECT, Code.DUPLICATE_ADMITTED, text, "same-replay-key")
    for word, column in there:
        _spellings(judging, effect, word, column.name)
    if KEYS[0] not in words or not effect.unique_on(judging.policy.column(KEYS[0])):
        _bypassed(judging, effect)
    sound(judging, "integrity", Part.EFFECT)


def _unique(judging: Judging, relation: Relation, which: Part, word: str, column: Column) -> None:
    """The catalogue's part: a full unique index on exactly this column, which is NOT NULL and a text of its own."""
    judging.rows.append(column.row)
    indexes = relation.unique_on(column.name)
    judging.rows += [row for index in indexes for row in index.rows]
    if not indexes:
        near = [each for each in relation.indexes if each.unique and {column.name, None} & set(each.columns)]
        for index in near:
            code, text = _shortcoming(index)
            judging.refute(code, f"{index.called} on {relation.name} {text}", which, rows=index.rows)
        if not near:
            text = f"{relation.name} has no unique index on {column.name}"
            judging.refute(Code.KEY_NOT_UNIQUE, text, which, rows=(relation.row,))
    more = ", and NULLs are never equal"
    judging.not_null(relation, which, column, Code.KEY_NULLABLE, f"{STEMS[word]}-null", more)
    judging.flaws(
        relation,
        which,
        column,
        (column.generated, Code.KEY_GENERATED, "is generated"),
        (column.default is not None, Code.KEY_DEFAULT, "has a default"),
        (column.changes_texts, Code.KEY_TYPE, column.changes_texts),
    )


def _shortcoming(index: Index) -> tuple[Code, str]:
    if None in index.columns:
        return Code.KEY_EXPRESSION, "is on an expression: what is unique is not the key"
    if len(index.columns) > 1:
        return Code.KEY_COMPOSITE, f"is unique on ({', '.join(map(str, index.columns))}) together only"
    if index.partial:
        return Code.KEY_PARTIAL, "is partial: it sees some rows only"
    found = next((collation for collation in index.collations if collation.upper() != BINARY), "")
    return Code.KEY_COLLATION, f"compares with {found}: different keys are one"


def taken_as_written(judging: Judging, relation: Relation, which: Part) -> None:
    """Nothing drops, changes or replaces the row of an INSERT."""
    for clause in dict.fromkeys(relation.conflict_clauses):
        if clause in _SWALLOWED:
            code, what = _SWALLOWED[clause]
            text = f"{relation.name} has a constraint with ON CONFLICT {clause}: it {what} and says nothing"
            judging.refute(code, text, which, rows=(relation.row,))
    for each in relation.triggers:
        if each.event == "INSERT" and each.name not in judging.policy.reviewed:
            text = (
                f"{each.timing} INSERT trigger {each.name} on {relation.name} may change, drop or replace rows; read "
                "it, then name it in the policy (`reviewed`)"
            )
            judging.unproven(Code.TRIGGER_UNREVIEWED, text, which, rows=(each.row,))


def _attempts(judging: Judging, effect: Relation) -> None:
    """An attempt may recur: it decides nothing."""
    column = judging.policy.column("attempt")
    if column not in effect.columns:
        if "attempt" in judging.policy.columns:
            text = f"the policy takes {column} for the attempt, and {effect.name} has no column of that name"
            judging.unproven(Code.MISSING_COLUMNS, text, Part.EFFECT, rows=(effect.row,))
        return
    alone = {name for name in effect.columns if effect.unique_on(name)}
    # Beside a column that is unique by itself an attempt decides nothing; of a key that is not it is reported above.
    harmless = {*alone, *map(judging.policy.column, KEYS)} - {column}
    for index in effect.indexes:
        if index.unique and index.mentions(column) and not harmless & set(index.columns):
            text = f"{index.called} on {effect.name} keys {column}: an attempt cannot serve two requests"
            judging.refute(Code.ATTEMPT_KEYING, text, Part.EFFECT, rows=index.rows)
    judging.admitted(Code.ATTEMPT_KEYING, f"a known {column} was not taken with another key", "attempt-again")


def _spellings(judging: Judging, effect: Relation, word: str, column: str) -> None:
    """Neighbours never exhaust the spellings that a CHECK may let pass: its text must show that there is one only."""
    stem = STEMS[word]
    judging.refused(Part.EFFECT, Code.KEY_NULLABLE, f"NULL went in as {word}", f"{stem}-null")
    text, named = "", (check.name for check in effect.checks if check.mentions(column))
    if not effect.conditions(column):
        text = f"no CHECK gives {column} one form regardless of the other columns, so other rows may have another"
    elif not (one_spelling(effect, column) or any(name and name in judging.policy.reviewed for name in named)):
        text = (
            f"nothing in the text of the CHECKs of {effect.name} shows that one {column} has one spelling; write "
            f"CHECK ({WRITE_AS.format(column)}), or name the constraint in a policy as reviewed"
        )
    if text and effect.is_table:
        judging.unproven(Code.KEY_NOT_CANONICAL, text, Part.EFFECT, rows=(effect.row,))
    names = [f"{stem}-{neighbour}" for neighbour in (*NEIGHBOURS, *NUL_NEIGHBOURS, "blob")]
    judging.refused(Part.EFFECT, Code.KEY_NOT_CANONICAL, f"another spelling of a known {word} went in", *names)


def _bypassed(judging: Judging, effect: Relation) -> None:
    """Where nothing makes the key unique by itself: a composite key admits it again with another part."""
    for index in effect.indexes:
        stem = f"composite-{index.name}-"
        names = [probe.name for probe in judging.evidence.probes if probe.name.startswith(stem)]
        # Another key with the same attempt is another request.
        names = [name for name in names if name.removeprefix(stem) != judging.policy.column(KEYS[0])]
        taken = [name for name in names if judging.outcome(name) is Outcome.ADMITTED]
        if taken:
            key = ", ".join(map(str, index.columns))
            apart = " or ".join(name.removeprefix(stem) for name in taken)
            text = f"{index.called} UNIQUE ({key}): two rows that differ in {apart} alone were both taken"
            judging.refute(Code.REPLAY_ATTEMPT_NO_BYPASS, text, Part.EFFECT, rows=index.rows, probes=taken)


def sound(judging: Judging, name: str, which: Part) -> None:
    """The content of a file fits its schema: an index that lacks entries admits keys that it does not know."""
    probe = judging.probe(name)
    if probe is None or probe.answer is None:
        judging.not_shown(which, name)
        return
    said = [str(row["integrity_check"]) for row in probe.answer.rows]
    if said != ["ok"]:
        text = f"the file is not sound: {'; '.join(said) or came_to(probe)}"
        judging.refute(Code.CORRUPT, text, which, probes=(name,))


def nonce_consumed(judging: Judging) -> None:
    """(b)"""
    effect, column = judging.relation(Part.EFFECT), judging.policy.column(NONCE)
    if Part.NONCE not in judging.evidence.surface.parts:
        lacks = effect is not None and column not in effect.columns
        more = f"; {effect.name} has no column {column} either" if lacks and effect else ""
        judging.refute(Code.MISSING_RELATION, f"no relation of its own holds consumed nonces{more}", Part.NONCE)
        return
    nonce = judging.table(Part.NONCE)
    if nonce is None:
        return
    if effect is not None and nonce.name == effect.name:
        judging.refute(Code.NONCE_NOT_SEPARATE, f"{nonce.name} is the effect itself", Part.NONCE, rows=(nonce.row,))
    for word, there in judging.columns(nonce, Part.NONCE, (NONCE,)):
        _unique(judging, nonce, Part.NONCE, word, there)
        taken_as_written(judging, nonce, Part.NONCE)
        text = "a consumed nonce was consumed again"
        judging.refused(Part.NONCE, Code.NONCE_REUSED, text, "nonce-again", "nonce-blob")
        judging.refused(Part.NONCE, Code.KEY_NULLABLE, "NULL went in as a nonce", "nonce-null")
