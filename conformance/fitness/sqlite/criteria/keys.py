"""Criteria (a) and (b): a key that is taken once, by the catalogue and by trying."""

from __future__ import annotations

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.model import Part
from holdfast.conformance.fitness.policy import KEYS, NONCE
from holdfast.conformance.fitness.sqlite.catalogue import BINARY, Index, Relation
from holdfast.conformance.fitness.sqlite.outcomes import Outcome, came_to, of_attempt
from holdfast.conformance.fitness.sqlite.sheet import Sheet
from holdfast.conformance.fitness.sqlite.spelling import WRITE_AS, one_spelling
from holdfast.conformance.fitness.twins import NUL_TWINS, TWINS

# What a conflict clause of the table may not be: both keep the error to themselves.
_SWALLOWED = ("IGNORE", "REPLACE")
_STEMS = {KEYS[0]: "key", KEYS[1]: "replay-key"}


def single_use(sheet: Sheet) -> None:
    effect = sheet.table(Part.EFFECT)
    if effect is None:
        return
    there = sheet.columns(effect, Part.EFFECT, KEYS)
    for word in there:
        _unique(sheet, effect, Part.EFFECT, word)
    swallowed(sheet, effect, Part.EFFECT)
    unreviewed(sheet, effect, Part.EFFECT)
    _attempts(sheet, effect)
    if KEYS[0] in there:
        found = {name: tried(sheet, name) for name in ("same-key", "same-key-new-attempt")}
        sheet.refused(Part.EFFECT, found, Code.REPLAY_ATTEMPT_NO_BYPASS, "one key was taken twice under two attempts")
        _other_key(sheet)
    if KEYS[1] in there:
        found = {"same-replay-key": tried(sheet, "same-replay-key")}
        sheet.refused(Part.EFFECT, found, Code.DUPLICATE_ADMITTED, "one replay key was taken twice")
    for word in there:
        _spellings(sheet, word)
    _bypassed(sheet, effect, there)
    sound(sheet, "integrity", Part.EFFECT)


def tried(sheet: Sheet, name: str) -> Outcome:
    return of_attempt(sheet.probe(name))


def _unique(sheet: Sheet, relation: Relation, which: Part, word: str) -> None:
    """The catalogue's part: a full unique index on exactly this column, which is NOT NULL and a text of its own."""
    column = relation.columns[sheet.policy.column(word)]
    sheet.rows.append(column.row)
    indexes = relation.unique_on(column.name)
    sheet.rows += [row for index in indexes for row in index.rows]
    if not indexes:
        _not_unique(sheet, relation, which, column.name)
    if not relation.refuses_null(column):
        text = f"{relation.name}.{column.name} is not NOT NULL, and NULLs are never equal"
        sheet.refute(Code.KEY_NULLABLE, text, which, rows=(column.row,))
    if column.generated:
        sheet.refute(Code.KEY_GENERATED, f"{relation.name}.{column.name} is generated", which, rows=(column.row,))
    if column.default is not None:
        sheet.refute(Code.KEY_DEFAULT, f"{relation.name}.{column.name} has a default", which, rows=(column.row,))
    if column.affinity not in ("TEXT", "BLOB"):
        text = f"{relation.name}.{column.name} is of the type {column.type}, which makes numbers of texts that look so"
        sheet.refute(Code.KEY_TYPE, text, which, rows=(column.row,))


def _not_unique(sheet: Sheet, relation: Relation, which: Part, column: str) -> None:
    """Say why no index on the column will do."""
    near = [index for index in relation.indexes if index.unique and _is_near(index, column)]
    for index in near:
        code, text = _shortcoming(index)
        sheet.refute(code, f"{index.called} on {relation.name} {text}", which, rows=index.rows)
    if not near:
        text = f"{relation.name} has no unique index on {column}"
        sheet.refute(Code.KEY_NOT_UNIQUE, text, which, rows=(relation.row,))


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


def swallowed(sheet: Sheet, relation: Relation, which: Part) -> None:
    clauses = [clause for clause in relation.conflict_clauses if clause in _SWALLOWED]
    for clause in dict.fromkeys(clauses):
        code = Code.SILENTLY_IGNORED if clause == "IGNORE" else Code.CHANGE_ADMITTED
        what = "drops the new row" if clause == "IGNORE" else "deletes the stored row"
        text = f"{relation.name} has a constraint with ON CONFLICT {clause}: it {what} and says nothing"
        sheet.refute(code, text, which, rows=(relation.row,))


def unreviewed(sheet: Sheet, relation: Relation, which: Part) -> None:
    for each in relation.triggers:
        if each.event == "INSERT" and each.name not in sheet.policy.reviewed:
            text = f"{each.timing} INSERT trigger {each.name} on {relation.name} may change, drop or replace rows"
            sheet.doubt(
                Code.TRIGGER_UNREVIEWED, f"{text}; read it, then name it in the policy (`reviewed`)", which,
                rows=({"relation": relation.name, "trigger": each.name, "timing": each.timing, "event": each.event},),
            )  # fmt: skip


def _attempts(sheet: Sheet, effect: Relation) -> None:
    """An attempt may recur: it decides nothing."""
    column = sheet.policy.column("attempt")
    if column not in effect.columns:
        if "attempt" in sheet.policy.columns:
            text = f"the policy takes {column} for the attempt, and {effect.name} has no column of that name"
            sheet.doubt(Code.MISSING_COLUMNS, text, Part.EFFECT, rows=(effect.row,))
        return
    alone = {name for name in effect.columns if effect.unique_on(name)}
    # Beside a column that is unique by itself an attempt decides nothing; of a key that is not it is told above.
    harmless = {*alone, *map(sheet.policy.column, KEYS)} - {column}
    for index in effect.indexes:
        if index.unique and index.mentions(column) and not harmless & set(index.columns):
            text = f"{index.called} on {effect.name} keys {column}: an attempt cannot serve two requests"
            sheet.refute(Code.ATTEMPT_KEYING, text, Part.EFFECT, rows=index.rows)
    outcome = tried(sheet, "attempt-again")
    if outcome in (Outcome.REFUSED, Outcome.SILENT, Outcome.ERASED):
        text = f"a known {column} was not taken with another key: {came_to(sheet.evidence.probe('attempt-again'))}"
        sheet.refute(Code.ATTEMPT_KEYING, text, Part.EFFECT, probes=("attempt-again",))
    sheet.shown(Part.EFFECT, {"attempt-again": outcome})


def _other_key(sheet: Sheet) -> None:
    """Another key that begins like the known one must go in."""
    outcome = tried(sheet, "key-prefix")
    if outcome in (Outcome.REFUSED, Outcome.SILENT, Outcome.ERASED):
        text = f"a different key was taken for the known one: {came_to(sheet.evidence.probe('key-prefix'))}"
        sheet.refute(Code.KEY_COLLISION, text, Part.EFFECT, probes=("key-prefix",))
    sheet.shown(Part.EFFECT, {"key-prefix": outcome})


def _spellings(sheet: Sheet, word: str) -> None:
    stem = _STEMS[word]
    found = {f"{stem}-null": tried(sheet, f"{stem}-null")}
    sheet.refused(Part.EFFECT, found, Code.KEY_NULLABLE, f"NULL went in as {word}")
    relation = sheet.relation(Part.EFFECT)
    column = sheet.policy.column(word)
    if relation is not None and relation.is_table and not relation.conditions(column):
        text = f"no CHECK gives {column} one form whatever the other columns hold, so other rows may have another"
        sheet.doubt(Code.KEY_NOT_CANONICAL, text, Part.EFFECT, rows=(relation.row,))
    elif relation is not None and relation.is_table and column in relation.columns:
        _spelled(sheet, relation, column)
    found = {name: tried(sheet, name) for name in (f"{stem}-{twin}" for twin in (*TWINS, *NUL_TWINS, "blob"))}
    sheet.refused(Part.EFFECT, found, Code.KEY_NOT_CANONICAL, f"another spelling of a known {word} went in")


def _spelled(sheet: Sheet, relation: Relation, column: str) -> None:
    """Twins never exhaust the spellings that a CHECK may let pass: its text must show that there is one only."""
    named = (check.name for check in relation.checks if check.mentions(column))
    if one_spelling(relation, column) or any(name and name in sheet.policy.reviewed for name in named):
        return
    text = (
        f"nothing in the text of the CHECKs of {relation.name} shows that one {column} has one spelling; write "
        f"CHECK ({WRITE_AS.format(column)}), or name the constraint in a policy as reviewed"
    )
    sheet.doubt(Code.KEY_NOT_CANONICAL, text, Part.EFFECT, rows=(relation.row,))


def _bypassed(sheet: Sheet, effect: Relation, there: tuple[str, ...]) -> None:
    """Where nothing makes the key unique by itself: what is unique together can be had again with another part."""
    if KEYS[0] in there and effect.unique_on(sheet.policy.column(KEYS[0])):
        return
    for index in effect.indexes:
        stem = f"composite-{index.name}-"
        names = [probe.name for probe in sheet.evidence.probes if probe.name.startswith(stem)]
        # Another key with the same attempt is another request.
        names = [name for name in names if name.removeprefix(stem) != sheet.policy.column(KEYS[0])]
        taken = [name for name in names if of_attempt(sheet.probe(name)) is Outcome.ADMITTED]
        if taken:
            key = ", ".join(map(str, index.columns))
            apart = " or ".join(name.removeprefix(stem) for name in taken)
            text = f"{index.called} UNIQUE ({key}): two rows that differ in {apart} alone were both taken"
            sheet.refute(Code.REPLAY_ATTEMPT_NO_BYPASS, text, Part.EFFECT, rows=index.rows, probes=taken)


def sound(sheet: Sheet, name: str, which: Part) -> None:
    """What a file holds fits its schema: an index that lacks entries admits what it does not know."""
    probe = sheet.probe(name)
    if probe is None or probe.answer is None:
        sheet.shown(which, {name: Outcome.NOT_SHOWN})
        return
    said = [str(row["integrity_check"]) for row in probe.answer.rows]
    if said != ["ok"]:
        text = f"the file is not sound: {'; '.join(said) or came_to(probe)}"
        sheet.refute(Code.CORRUPT, text, which, probes=(name,))


def nonce_consumed(sheet: Sheet) -> None:
    effect, parts = sheet.relation(Part.EFFECT), sheet.evidence.surface.parts
    if Part.NONCE not in parts:
        lacks = effect is not None and sheet.policy.column(NONCE) not in effect.columns
        more = f"; {effect.name} has no column {sheet.policy.column(NONCE)} either" if lacks and effect else ""
        sheet.refute(Code.MISSING_RELATION, f"no relation of its own holds consumed nonces{more}", Part.NONCE)
        return
    nonce = sheet.table(Part.NONCE)
    if nonce is None:
        return
    if effect is not None and nonce.name == effect.name:
        sheet.refute(Code.NONCE_NOT_SEPARATE, f"{nonce.name} is the effect itself", Part.NONCE, rows=(nonce.row,))
    if not sheet.columns(nonce, Part.NONCE, (NONCE,)):
        return
    _unique(sheet, nonce, Part.NONCE, NONCE)
    swallowed(sheet, nonce, Part.NONCE)
    unreviewed(sheet, nonce, Part.NONCE)
    found = {name: tried(sheet, name) for name in ("nonce-again", "nonce-blob")}
    sheet.refused(Part.NONCE, found, Code.NONCE_REUSED, "a consumed nonce was consumed again")
    found = {"nonce-null": tried(sheet, "nonce-null")}
    sheet.refused(Part.NONCE, found, Code.KEY_NULLABLE, "NULL went in as a nonce")
