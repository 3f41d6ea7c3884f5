"""Criteria (a) and (b): a key that is taken once, by the catalogue and by trying."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.spelling import is_of_one_case
from holdfast.conformance.fitness.model import Part
from holdfast.conformance.fitness.neighbours import NEIGHBOURS, NUL_NEIGHBOURS
from holdfast.conformance.fitness.policy import KEYS, NONCE
from holdfast.conformance.fitness.sqlite.catalogue import BINARY, Index, Relation
from holdfast.conformance.fitness.sqlite.judging import Judging
from holdfast.conformance.fitness.sqlite.outcomes import Outcome, came_to, of_attempt
from holdfast.conformance.fitness.sqlite.sqltext import Token, TokenKind

# CHECKs of SQLite whose text shows that a key has one spelling only; see `criteria.spelling` for why a text is asked.
# SQLite has two traps more: without STRICT or typeof() the bytes of a text are another value that every other condition
# takes for the text, and length() and GLOB end at a NUL, so that anything may stand behind it.

# What a reason suggests for another form; {0} is the column.
WRITE_AS = "typeof({0}) = 'text' AND length({0}) = 64 AND length(CAST({0} AS BLOB)) = 64 AND {0} NOT GLOB '*[^0-9a-f]*'"
# An AND inside one of these does not separate conditions.
_NOT_PARTED = ("CASE", "BETWEEN")
_BYTES = ("length ( cast ( {c} as blob ) ) =", "octet_length ( {c} ) =")
_NO_NUL = ("instr ( {c} , char ( 0 ) ) =", "instr ( {c} , x'00' ) =")
_NUMBER, _TEXT = "[1-9][0-9]*", "'[^']*'"


def one_spelling(relation: Relation, column: str) -> bool:
    """Whether the CHECKs of a relation leave each key in the column one spelling, for all values of other columns."""
    parts = [_written(part, column) for part in _parts(relation)]
    strict = relation.strict and relation.columns[column].affinity == "TEXT"
    if not (strict or _found(parts, "typeof ( {c} ) =", "'text'")):
        return False
    long = set(_found(parts, "length ( {c} ) =", _NUMBER))
    octets = {number for form in _BYTES for number in _found(parts, form, _NUMBER)}
    whole = any(_found(parts, form, "0") for form in _NO_NUL)
    if any(places and (whole or str(places) in octets) for places in map(_places, _found(parts, "{c} glob", _TEXT))):
        return True
    only = any(map(_is_of_one_set, _found(parts, "{c} not glob", _TEXT)))
    return only and bool(long & octets or (whole and long | octets))


def _parts(relation: Relation) -> Iterator[Sequence[Token]]:
    for check in relation.checks:
        if not any(token.says(word) for token in check.body for word in _NOT_PARTED):
            yield from check.conjuncts


def _written(part: Sequence[Token], column: str) -> str:
    """The tokens of a condition in one spelling, the column as {c}; a text keeps its case and its quotes."""
    return " ".join(_word(token, column) for token in part)


def _word(token: Token, column: str) -> str:
    if token.kind is TokenKind.STRING:
        return "'" + token.text.replace("'", "''") + "'"
    if token.kind in (TokenKind.WORD, TokenKind.QUOTED) and token.names(column):
        return "{c}"
    # A name in quotes is no function and no keyword.
    return f'"{token.text}"' if token.kind is TokenKind.QUOTED else token.text.lower()


def _found(parts: Sequence[str], before: str, value: str) -> list[str]:
    """What stands behind `before`, for each condition that consists of it and of such a value."""
    pattern = re.compile(f"{re.escape(before)} ({value})")
    return [match.group(1) for part in parts if (match := pattern.fullmatch(part)) is not None]


def _is_of_one_set(text: str) -> bool:
    """Whether a text that is NOT GLOB this pattern has characters of one set only."""
    inside = re.fullmatch(r"'\*\[\^([^\]]+)\]\*'", text)
    return inside is not None and is_of_one_case(inside.group(1))


def _places(text: str) -> int:
    """How many places a pattern of GLOB has that names the characters of each; 0 for any other pattern."""
    places = 0
    for inside, plain in re.findall(r"\[([^\]^][^\]]*)\]|(.)", text[1:-1], re.DOTALL):
        if not (is_of_one_case(inside) if inside else re.fullmatch(r"[A-Za-z0-9_:/@=.+-]", plain)):
            return 0
        places += 1
    return places


# Conflict clauses that a table must not have: both hide the error.
_SWALLOWED = ("IGNORE", "REPLACE")
_STEMS = {KEYS[0]: "key", KEYS[1]: "replay-key", NONCE: "nonce"}


def single_use(judging: Judging) -> None:
    effect = judging.table(Part.EFFECT)
    if effect is None:
        return
    there = judging.columns(effect, Part.EFFECT, KEYS)
    for word in there:
        _unique(judging, effect, Part.EFFECT, word)
    swallowed(judging, effect, Part.EFFECT)
    unreviewed(judging, effect, Part.EFFECT)
    _attempts(judging, effect)
    if KEYS[0] in there:
        found = {name: tried(judging, name) for name in ("same-key", "same-key-new-attempt")}
        judging.refused(Part.EFFECT, found, Code.REPLAY_ATTEMPT_NO_BYPASS, "one key was taken twice under two attempts")
        _other_key(judging)
    if KEYS[1] in there:
        found = {"same-replay-key": tried(judging, "same-replay-key")}
        judging.refused(Part.EFFECT, found, Code.DUPLICATE_ADMITTED, "one replay key was taken twice")
    for word in there:
        _spellings(judging, word)
    _bypassed(judging, effect, there)
    sound(judging, "integrity", Part.EFFECT)


def tried(judging: Judging, name: str) -> Outcome:
    return of_attempt(judging.probe(name))


def _unique(judging: Judging, relation: Relation, which: Part, word: str) -> None:
    """The catalogue's part: a full unique index on exactly this column, which is NOT NULL and a text of its own."""
    column = relation.columns[judging.policy.column(word)]
    judging.rows.append(column.row)
    indexes = relation.unique_on(column.name)
    judging.rows += [row for index in indexes for row in index.rows]
    if not indexes:
        _not_unique(judging, relation, which, column.name)
    if not relation.refuses_null(column):
        text = f"{relation.name}.{column.name} is not declared NOT NULL, and NULLs are never equal"
        judging.refute_unless(judging.refusal(f"{_STEMS[word]}-null"), Code.KEY_NULLABLE, text, which, (column.row,))
    if column.generated:
        judging.refute(Code.KEY_GENERATED, f"{relation.name}.{column.name} is generated", which, rows=(column.row,))
    if column.default is not None:
        judging.refute(Code.KEY_DEFAULT, f"{relation.name}.{column.name} has a default", which, rows=(column.row,))
    if column.affinity not in ("TEXT", "BLOB"):
        text = f"{relation.name}.{column.name} is of the type {column.type}, which makes numbers of texts that look so"
        judging.refute(Code.KEY_TYPE, text, which, rows=(column.row,))


def _not_unique(judging: Judging, relation: Relation, which: Part, column: str) -> None:
    """Say why no index on the column is enough."""
    near = [index for index in relation.indexes if index.unique and _is_near(index, column)]
    for index in near:
        code, text = _shortcoming(index)
        judging.refute(code, f"{index.called} on {relation.name} {text}", which, rows=index.rows)
    if not near:
        text = f"{relation.name} has no unique index on {column}"
        judging.refute(Code.KEY_NOT_UNIQUE, text, which, rows=(relation.row,))


def _is_near(index: Index, column: str) -> bool:
    return column in index.columns or None in index.columns


def _shortcoming(index: Index) -> tuple[Code, str]:
    if None in index.columns:
        return Code.KEY_EXPRESSION, "is on an expression: what is unique is not the key"
    if len(index.columns) > 1:
        return Code.KEY_COMPOSITE, f"is unique on ({', '.join(map(str, index.columns))}) together only"
    if index.partial:
        return Code.KEY_PARTIAL, "is partial: it sees some rows only"
    found = next((collation for collation in index.collations if collation.upper() != BINARY), "")
    return Code.KEY_COLLATION, f"compares with {found}: different keys are one"


def swallowed(judging: Judging, relation: Relation, which: Part) -> None:
    clauses = [clause for clause in relation.conflict_clauses if clause in _SWALLOWED]
    for clause in dict.fromkeys(clauses):
        code = Code.SILENTLY_IGNORED if clause == "IGNORE" else Code.CHANGE_ADMITTED
        what = "drops the new row" if clause == "IGNORE" else "deletes the stored row"
        text = f"{relation.name} has a constraint with ON CONFLICT {clause}: it {what} and says nothing"
        judging.refute(code, text, which, rows=(relation.row,))


def unreviewed(judging: Judging, relation: Relation, which: Part) -> None:
    for each in relation.triggers:
        if each.event == "INSERT" and each.name not in judging.policy.reviewed:
            text = f"{each.timing} INSERT trigger {each.name} on {relation.name} may change, drop or replace rows"
            judging.unproven(
                Code.TRIGGER_UNREVIEWED, f"{text}; read it, then name it in the policy (`reviewed`)", which,
                rows=({"relation": relation.name, "trigger": each.name, "timing": each.timing, "event": each.event},),
            )  # fmt: skip


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
    outcome = tried(judging, "attempt-again")
    if outcome in (Outcome.REFUSED, Outcome.SILENT, Outcome.ERASED):
        text = f"a known {column} was not taken with another key: {came_to(judging.evidence.probe('attempt-again'))}"
        judging.refute(Code.ATTEMPT_KEYING, text, Part.EFFECT, probes=("attempt-again",))
    judging.shown(Part.EFFECT, {"attempt-again": outcome})


def _other_key(judging: Judging) -> None:
    """Another key that begins like the known one must go in."""
    outcome = tried(judging, "key-prefix")
    if outcome in (Outcome.REFUSED, Outcome.SILENT, Outcome.ERASED):
        text = f"a different key was taken for the known one: {came_to(judging.evidence.probe('key-prefix'))}"
        judging.refute(Code.KEY_COLLISION, text, Part.EFFECT, probes=("key-prefix",))
    judging.shown(Part.EFFECT, {"key-prefix": outcome})


def _spellings(judging: Judging, word: str) -> None:
    stem = _STEMS[word]
    found = {f"{stem}-null": tried(judging, f"{stem}-null")}
    judging.refused(Part.EFFECT, found, Code.KEY_NULLABLE, f"NULL went in as {word}")
    relation = judging.relation(Part.EFFECT)
    column = judging.policy.column(word)
    if relation is not None and relation.is_table and not relation.conditions(column):
        text = f"no CHECK gives {column} one form regardless of the other columns, so other rows may have another"
        judging.unproven(Code.KEY_NOT_CANONICAL, text, Part.EFFECT, rows=(relation.row,))
    elif relation is not None and relation.is_table and column in relation.columns:
        _spelled(judging, relation, column)
    found = {
        name: tried(judging, name)
        for name in (f"{stem}-{neighbour}" for neighbour in (*NEIGHBOURS, *NUL_NEIGHBOURS, "blob"))
    }
    judging.refused(Part.EFFECT, found, Code.KEY_NOT_CANONICAL, f"another spelling of a known {word} went in")


def _spelled(judging: Judging, relation: Relation, column: str) -> None:
    """Neighbours never exhaust the spellings that a CHECK may let pass: its text must show that there is one only."""
    named = (check.name for check in relation.checks if check.mentions(column))
    if one_spelling(relation, column) or any(name and name in judging.policy.reviewed for name in named):
        return
    text = (
        f"nothing in the text of the CHECKs of {relation.name} shows that one {column} has one spelling; write "
        f"CHECK ({WRITE_AS.format(column)}), or name the constraint in a policy as reviewed"
    )
    judging.unproven(Code.KEY_NOT_CANONICAL, text, Part.EFFECT, rows=(relation.row,))


def _bypassed(judging: Judging, effect: Relation, there: tuple[str, ...]) -> None:
    """Where nothing makes the key unique by itself: a composite key admits it again with another part."""
    if KEYS[0] in there and effect.unique_on(judging.policy.column(KEYS[0])):
        return
    for index in effect.indexes:
        stem = f"composite-{index.name}-"
        names = [probe.name for probe in judging.evidence.probes if probe.name.startswith(stem)]
        # Another key with the same attempt is another request.
        names = [name for name in names if name.removeprefix(stem) != judging.policy.column(KEYS[0])]
        taken = [name for name in names if of_attempt(judging.probe(name)) is Outcome.ADMITTED]
        if taken:
            key = ", ".join(map(str, index.columns))
            apart = " or ".join(name.removeprefix(stem) for name in taken)
            text = f"{index.called} UNIQUE ({key}): two rows that differ in {apart} alone were both taken"
            judging.refute(Code.REPLAY_ATTEMPT_NO_BYPASS, text, Part.EFFECT, rows=index.rows, probes=taken)


def sound(judging: Judging, name: str, which: Part) -> None:
    """The content of a file fits its schema: an index that lacks entries admits keys that it does not know."""
    probe = judging.probe(name)
    if probe is None or probe.answer is None:
        judging.shown(which, {name: Outcome.NOT_SHOWN})
        return
    said = [str(row["integrity_check"]) for row in probe.answer.rows]
    if said != ["ok"]:
        text = f"the file is not sound: {'; '.join(said) or came_to(probe)}"
        judging.refute(Code.CORRUPT, text, which, probes=(name,))


def nonce_consumed(judging: Judging) -> None:
    effect, parts = judging.relation(Part.EFFECT), judging.evidence.surface.parts
    if Part.NONCE not in parts:
        lacks = effect is not None and judging.policy.column(NONCE) not in effect.columns
        more = f"; {effect.name} has no column {judging.policy.column(NONCE)} either" if lacks and effect else ""
        judging.refute(Code.MISSING_RELATION, f"no relation of its own holds consumed nonces{more}", Part.NONCE)
        return
    nonce = judging.table(Part.NONCE)
    if nonce is None:
        return
    if effect is not None and nonce.name == effect.name:
        judging.refute(Code.NONCE_NOT_SEPARATE, f"{nonce.name} is the effect itself", Part.NONCE, rows=(nonce.row,))
    if not judging.columns(nonce, Part.NONCE, (NONCE,)):
        return
    _unique(judging, nonce, Part.NONCE, NONCE)
    swallowed(judging, nonce, Part.NONCE)
    unreviewed(judging, nonce, Part.NONCE)
    found = {name: tried(judging, name) for name in ("nonce-again", "nonce-blob")}
    judging.refused(Part.NONCE, found, Code.NONCE_REUSED, "a consumed nonce was consumed again")
    found = {"nonce-null": tried(judging, "nonce-null")}
    judging.refused(Part.NONCE, found, Code.KEY_NULLABLE, "NULL went in as a nonce")
