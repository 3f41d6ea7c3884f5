"""(c) and (d): what is bound, and to which domain."""

from __future__ import annotations

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.model import Part
from holdfast.conformance.fitness.policy import BINDINGS, KEYS, NONCE
from holdfast.conformance.fitness.sqlite.catalogue import Column, Relation
from holdfast.conformance.fitness.sqlite.criteria.keys import (
    tried,
)
from holdfast.conformance.fitness.sqlite.judging import Judging
from holdfast.conformance.fitness.sqlite.outcomes import Outcome, came_to
from holdfast.conformance.fitness.sqlite.probes import other_operations
from holdfast.conformance.fitness.sqlite.sqltext import values_of


def binding(judging: Judging) -> None:
    """(c): what a request is bound to stands in columns that may not be empty."""
    effect = judging.table(Part.EFFECT)
    if effect is None:
        return
    there = judging.columns(effect, Part.EFFECT, BINDINGS, besides=(KEYS[0], NONCE))
    for word in there:
        column = effect.columns[judging.policy.column(word)]
        name = f"{effect.name}.{column.name}"
        judging.rows.append(column.row)
        if not effect.refuses_null(column):
            by, text = judging.refusal(f"without-{word}"), f"{name} is not declared NOT NULL"
            judging.refute_unless(by, Code.BINDING_NULLABLE, text, Part.EFFECT, (column.row,))
        if column.generated:
            judging.refute(Code.BINDING_GENERATED, f"{name} is generated", Part.EFFECT, rows=(column.row,))
        if column.affinity not in ("TEXT", "BLOB"):
            judging.refute(Code.KEY_TYPE, changes_texts(name, column), Part.EFFECT, rows=(column.row,))
        if column.default is not None and column.default.upper() != "NULL":
            text = f"{name} has the default {column.default}"
            judging.refute(Code.BINDING_DEFAULT, text, Part.EFFECT, rows=(column.row,))
        for stem, code, text in (
            ("without", Code.BINDING_NULLABLE, f"a row without {word} went in"),
            ("omitted", Code.BINDING_DEFAULT, f"a row that does not name {word} went in"),
            ("empty", Code.BINDING_MAY_BE_EMPTY, f"a row with an empty {word} went in"),
            (
                "empty-blob",
                Code.BINDING_MAY_BE_EMPTY,
                f"a row with an empty BLOB as {word} went in; make the table STRICT, or ask for its typeof() as well",
            ),
        ):
            judging.refused(Part.EFFECT, {f"{stem}-{word}": tried(judging, f"{stem}-{word}")}, code, text)
    names = [judging.policy.column(word) for word in there]
    if together := ", ".join(name for name in names if not effect.conditions(name)):
        text = f"no CHECK of {effect.name} holds for {together} regardless of other columns, so other rows may be empty"
        judging.unproven(Code.BINDING_MAY_BE_EMPTY, text, Part.EFFECT, rows=(effect.row,))


def changes_texts(name: str, column: Column) -> str:
    """What the type of a column does to texts."""
    return f"{name} is of the type {column.type}, which makes numbers of texts that look so: what was bound is not kept"


def domain(judging: Judging) -> None:
    """(d): the surface takes registrations and nothing else."""
    effect = judging.table(Part.EFFECT)
    if effect is None:
        return
    column = judging.policy.column("operation")
    texts = [" ".join(token.text for token in check.body) for check in effect.checks]
    shown = [{"relation": effect.name, "check": text} for text in texts]
    if column not in effect.columns:
        said = f"; its constraints speak of: {'; '.join(texts)}" if texts else ""
        judging.refute(Code.WRONG_DOMAIN, f"{effect.name} has no column {column}{said}", Part.EFFECT, rows=shown)
        return
    judging.rows += [row for row, check in zip(shown, effect.checks, strict=True) if check.mentions(column)]
    _admits_its_own(judging, effect)
    if judging.policy.domain_evidence is not None:
        return  # declared, and printed with everything else that a policy declares
    found = {name: tried(judging, name) for name, said in other_operations() if said not in judging.policy.operations}
    judging.refused(Part.EFFECT, found, Code.DOMAIN_UNRESTRICTED, "another operation went in")
    stated = [values for part in effect.conditions(column) if (values := values_of(part, column)) is not None]
    if not stated:
        text = f"no CHECK of {effect.name} says {column} = or IN and nothing else, so others than those tried may go in"
        judging.unproven(Code.DOMAIN_UNCLEAR, text, Part.EFFECT, rows=shown)
    elif all(set(values) - set(judging.policy.operations) for values in stated):
        text = f"{effect.name} takes {', '.join(stated[0])}; the surface is for {', '.join(judging.policy.operations)}"
        judging.refute(Code.DOMAIN_UNRESTRICTED, text, Part.EFFECT, rows=shown)
    for name, outcome in found.items():
        probe = judging.evidence.probe(name)
        if outcome is Outcome.REFUSED and probe and probe.answers[-2].sqlstate != "SQLITE_CONSTRAINT_CHECK":
            text = f"another operation was refused, but by no CHECK: {came_to(probe)}"
            judging.unproven(Code.DOMAIN_UNCLEAR, text, Part.EFFECT, probes=(name,))


def _admits_its_own(judging: Judging, effect: Relation) -> None:
    """A surface that takes no registration is one of another domain."""
    for place, operation in enumerate(judging.policy.operations):
        name = f"operation-{place + 1}"
        outcome = tried(judging, name)
        if outcome in (Outcome.REFUSED, Outcome.SILENT, Outcome.ERASED):
            text = f"{effect.name} does not take the operation {operation}: {came_to(judging.evidence.probe(name))}"
            judging.refute(Code.WRONG_DOMAIN, text, Part.EFFECT, probes=(name,))
        judging.shown(Part.EFFECT, {name: outcome})
