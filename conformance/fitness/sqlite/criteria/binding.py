"""(c) and (d): what is bound, and to which domain."""

from __future__ import annotations

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.model import Part
from holdfast.conformance.fitness.policy import BINDINGS, KEYS, NONCE
from holdfast.conformance.fitness.sqlite.catalogue import Column, Relation
from holdfast.conformance.fitness.sqlite.criteria.keys import (
    tried,
)
from holdfast.conformance.fitness.sqlite.outcomes import Outcome, came_to
from holdfast.conformance.fitness.sqlite.probes import other_operations
from holdfast.conformance.fitness.sqlite.sheet import Sheet
from holdfast.conformance.fitness.sqlite.sqltext import values_of


def binding(sheet: Sheet) -> None:
    """(c): what a request is bound to stands in columns that may not be empty."""
    effect = sheet.table(Part.EFFECT)
    if effect is None:
        return
    there = sheet.columns(effect, Part.EFFECT, BINDINGS, besides=(KEYS[0], NONCE))
    for word in there:
        column = effect.columns[sheet.policy.column(word)]
        name = f"{effect.name}.{column.name}"
        sheet.rows.append(column.row)
        if not effect.refuses_null(column):
            sheet.refute(Code.BINDING_NULLABLE, f"{name} is not NOT NULL", Part.EFFECT, rows=(column.row,))
        if column.generated:
            sheet.refute(Code.BINDING_GENERATED, f"{name} is generated", Part.EFFECT, rows=(column.row,))
        if column.affinity not in ("TEXT", "BLOB"):
            sheet.refute(Code.KEY_TYPE, changes_texts(name, column), Part.EFFECT, rows=(column.row,))
        if column.default is not None and column.default.upper() != "NULL":
            text = f"{name} has the default {column.default}"
            sheet.refute(Code.BINDING_DEFAULT, text, Part.EFFECT, rows=(column.row,))
        if not effect.conditions(column.name):
            text = f"no CHECK asks anything of {name} whatever the other columns hold, so it may be empty in other rows"
            sheet.doubt(Code.BINDING_MAY_BE_EMPTY, text, Part.EFFECT, rows=(effect.row,))
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
            sheet.refused(Part.EFFECT, {f"{stem}-{word}": tried(sheet, f"{stem}-{word}")}, code, text)


def changes_texts(name: str, column: Column) -> str:
    """What the type of a column does to texts."""
    return f"{name} is of the type {column.type}, which makes numbers of texts that look so: what was bound is not kept"


def domain(sheet: Sheet) -> None:
    """(d): the surface takes registrations and nothing else."""
    effect = sheet.table(Part.EFFECT)
    if effect is None:
        return
    column = sheet.policy.column("operation")
    texts = [" ".join(token.text for token in check.body) for check in effect.checks]
    shown = [{"relation": effect.name, "check": text} for text in texts]
    if column not in effect.columns:
        said = f"; its constraints speak of: {'; '.join(texts)}" if texts else ""
        sheet.refute(Code.WRONG_DOMAIN, f"{effect.name} has no column {column}{said}", Part.EFFECT, rows=shown)
        return
    sheet.rows += [row for row, check in zip(shown, effect.checks, strict=True) if check.mentions(column)]
    _admits_its_own(sheet, effect)
    if sheet.policy.domain_evidence is not None:
        return  # declared, and printed with everything else that a policy declares
    found = {name: tried(sheet, name) for name, said in other_operations() if said not in sheet.policy.operations}
    sheet.refused(Part.EFFECT, found, Code.DOMAIN_UNRESTRICTED, "another operation went in")
    stated = [values for part in effect.conditions(column) if (values := values_of(part, column)) is not None]
    if not stated:
        text = f"no CHECK of {effect.name} says {column} = or IN and nothing else, so others than those tried may go in"
        sheet.doubt(Code.DOMAIN_UNCLEAR, text, Part.EFFECT, rows=shown)
    elif all(set(values) - set(sheet.policy.operations) for values in stated):
        text = f"{effect.name} takes {', '.join(stated[0])}; the surface is for {', '.join(sheet.policy.operations)}"
        sheet.refute(Code.DOMAIN_UNRESTRICTED, text, Part.EFFECT, rows=shown)
    for name, outcome in found.items():
        probe = sheet.evidence.probe(name)
        if outcome is Outcome.REFUSED and probe and probe.answers[-2].sqlstate != "SQLITE_CONSTRAINT_CHECK":
            text = f"another operation was refused, but by no CHECK: {came_to(probe)}"
            sheet.doubt(Code.DOMAIN_UNCLEAR, text, Part.EFFECT, probes=(name,))


def _admits_its_own(sheet: Sheet, effect: Relation) -> None:
    """A surface that takes no registration is one of another domain."""
    for place, operation in enumerate(sheet.policy.operations):
        name = f"operation-{place + 1}"
        outcome = tried(sheet, name)
        if outcome in (Outcome.REFUSED, Outcome.SILENT, Outcome.ERASED):
            text = f"{effect.name} does not take the operation {operation}: {came_to(sheet.evidence.probe(name))}"
            sheet.refute(Code.WRONG_DOMAIN, text, Part.EFFECT, probes=(name,))
        sheet.shown(Part.EFFECT, {name: outcome})
