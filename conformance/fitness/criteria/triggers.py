"""Whether triggers guard rows: each change of a part runs into one that raises an exception."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.judging import Judging
from holdfast.conformance.fitness.criteria.tables import OFF
from holdfast.conformance.fitness.model import SUFFIX, Part, RelationName, Row

# pg_trigger.tgenabled of a trigger that fires in an ordinary session.
_FIRES = ("O", "A")
VERBS = ("update", "delete", "truncate")


def guarded_by_triggers(judging: Judging, part: Part) -> None:
    """UPDATE, DELETE and TRUNCATE of a part each run into a trigger, on every partition as well."""
    for relation in judging.spread(part) if judging.relation(part) is not None else ():
        verbs = VERBS[:2] if judging.in_files else VERBS
        triggers = [row for row in judging.catalogue.of("triggers", relation) if row["enabled"] != OFF]
        own = relation == judging.part(part)
        if not triggers:
            by = judging.refusal(*(trial for verb in verbs for trial in _trials(judging, part, verb))) if own else ""
            text = f"{relation} has no triggers that guard its rows"
            judging.refute_unless(by, Code.NO_TRIGGERS, text, part, doubt=Code.GUARD_UNREVIEWED)
            continue
        for verb in verbs:
            _guard(judging, part, relation, verb, triggers, own=own)


def _trials(judging: Judging, part: Part, verb: str) -> list[str]:
    """The probes that try a change of a part."""
    verbs = (verb, "truncate") if judging.in_files and verb == "delete" else (verb,)
    return [f"{who}-{each}{SUFFIX[part]}" for each in verbs for who in judging.actors]


def _guard(judging: Judging, part: Part, relation: RelationName, verb: str, triggers: list[Row], *, own: bool) -> None:
    near = [row for row in triggers if verb in row["events"]]
    good = [row for row in near if not any(_weaknesses(row, verb))]
    if good:
        judging.rest_on(*good)
        if not any(_refuses(judging, row) or judging.reviewed(row, relation) for row in good):
            names = ", ".join(f"{row['name']} ({row['function']})" for row in good)
            text = (
                f"the guard {names} of {relation} does more than raise an exception: it refused what was tried, and "
                f"may let other things pass; write {_PLAIN_GUARD[judging.in_files]}, or name it in a policy as reviewed"
            )
            judging.unproven(Code.GUARD_UNREVIEWED, text, part=part, rows=good)
        return
    # A change of the whole is no change of one of its partitions alone.
    firing = [row for row in near if row["enabled"] in _FIRES]
    by = judging.refusal(*_trials(judging, part, verb)) if own or firing else ""
    if by and any(judging.reviewed(row, relation) for row in firing):
        judging.rest_on(*firing)
        return
    weak = "; ".join(f"{row['name']}: {', '.join(_weaknesses(row, verb))}" for row in near) or "none fires at it"
    how = "let one raise an exception BEFORE it FOR EACH ROW (TRUNCATE: STATEMENT)"
    text = (
        f"no trigger of {relation} is shown to refuse every {verb.upper()} ({weak}); "
        f"{f'write {_PLAIN_GUARD[True]}' if judging.in_files else how}, without a condition, or name it in a policy "
        "as reviewed"
    )
    if firing and by is None:
        judging.unproven(Code.GUARD_UNREVIEWED, text, part=part, rows=near)
    else:
        judging.refute_unless(by, Code.GUARD_MISSING, text, part, near, doubt=Code.GUARD_UNREVIEWED)


# In PL/pgSQL a guard that always refuses: nothing before the exception, no condition, and no handler behind it. What
# DECLARE declares may have a default that calls something, so nothing may be declared.
# Other quotes than the plain ones may hold one of these, so that what is text and what is a statement changes places.
_ALWAYS_RAISES = re.compile(
    r"\s*(?:DECLARE\s+)?BEGIN\s+RAISE\s+(?!DEBUG|LOG|INFO|NOTICE|WARNING)(?=[A-Z'])(?:'(?:[^']|'')*'|[^;'\"$])*;"
    r"(?:\s*RETURN\s+(?:NULL|NEW|OLD)\s*;)?\s*END\s*;?\s*",
    re.IGNORECASE | re.ASCII,
)
# Text in quotes is kept: it holds no comments. PostgreSQL ends a comment at either end of line.
_COMMENTS = re.compile(r"('(?:[^']|'')*')|--[^\n\r]*")
# A block comment may hold others, and a backslash may keep a quote from ending a text: not read here, hence not plain.
_UNCLEAR = ("/*", "\\")
# How pg_get_functiondef ends; it chooses a tag that the body does not have.
_BODY = re.compile(r"^AS (\$functionx*\$)(.*)\1\s*\Z", re.DOTALL | re.MULTILINE)


_PLAIN_GUARD = {False: "BEGIN RAISE EXCEPTION …; END", True: "SELECT RAISE(ABORT, text) and nothing else"}


def _refuses(judging: Judging, row: Row) -> bool:
    return bool(row["raises"]) if "raises" in row else only_raises(judging, str(row["function"]))


def only_raises(judging: Judging, function: str) -> bool:
    """Whether a trigger function, by schema and name, is a single exception. A plain one is executed all the same."""
    for row in judging.catalogue.rows("functions"):
        # A function of the same name that takes arguments is no trigger function.
        if f"{row['schema']}.{row['name']}" == function and not row["arguments"]:
            return row["language"] == "plpgsql" and plain(str(row["definition"]))
    return False


def plain(definition: str) -> bool:
    """Whether the text of a PL/pgSQL function, as PostgreSQL gives it, is a single exception."""
    body = _BODY.search(definition)
    # A third tag stands in a setting of the function: where the body begins is not clear then.
    if body is None or definition.count(body.group(1)) != 2 or any(each in body.group(2) for each in _UNCLEAR):
        return False
    return _ALWAYS_RAISES.fullmatch(_COMMENTS.sub(lambda found: found.group(1) or " ", body.group(2))) is not None


def _weaknesses(row: Row, verb: str) -> Iterator[str]:
    if row["timing"] != "before":
        yield f"it runs {row['timing']} the change"
    if row["level"] != ("statement" if verb == "truncate" else "row"):
        yield f"it runs for each {row['level']}"
    if row["enabled"] not in _FIRES:
        yield "it fires in replication only"
    if row["conditional"]:
        yield "it has a condition"
    if row["columns"]:
        yield f"it looks at {', '.join(row['columns'])} only"
    if row["constraint"]:
        yield "it is a constraint trigger"
