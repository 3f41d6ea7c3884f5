"""The search for a surface: every relation of a database, held to what an effect and a nonce record cannot lack; and
who writes to one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.keys import sound_unique
from holdfast.conformance.fitness.errors import FitnessError
from holdfast.conformance.fitness.model import Candidate, Criterion, Part, Reason, RelationName, Standing
from holdfast.conformance.fitness.policy import BINDINGS, KEYS, NONCE, Policy
from holdfast.conformance.fitness.postgres.catalogue import Catalogue
from holdfast.conformance.fitness.postgres.snapshot import read

_RELATIONS = """
    SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
      AND n.nspname !~ '^pg_(toast|temp)' AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_depend d
        WHERE d.classid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.objid = c.oid AND d.deptype = 'e'
      )
    ORDER BY 1, 2
"""
_WRITERS = """
    SELECT DISTINCT g.rolname::text
    FROM pg_catalog.pg_class c
    JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace,
    LATERAL (
      SELECT x.grantee FROM pg_catalog.aclexplode(c.relacl) x WHERE x.privilege_type = 'INSERT'
      UNION
      SELECT x.grantee FROM pg_catalog.pg_attribute a, pg_catalog.aclexplode(a.attacl) x
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND x.privilege_type = 'INSERT'
    ) granted
    LEFT JOIN pg_catalog.pg_roles g ON g.oid = granted.grantee
    WHERE n.nspname = %s AND c.relname = %s AND granted.grantee <> c.relowner
      AND g.rolsuper IS DISTINCT FROM true
"""


def search(connection: psycopg.Connection[Any], policy: Policy) -> tuple[Candidate, ...]:
    """See `candidates`. Raises psycopg.Error."""
    with connection.transaction():
        found = [(str(schema), str(name)) for schema, name in connection.execute(_RELATIONS).fetchall()]
    catalogue = Catalogue(read(connection, found, None))
    return candidates(catalogue, [RelationName(schema, name) for schema, name in found], policy)


def writer_of(connection: psycopg.Connection[Any], effect: RelationName) -> str | None:
    """The only role to which INSERT on a relation was granted, but for its owner and superusers; None if there is none.

    PUBLIC is no role: where every role may insert, no role is the writer. Raises psycopg.Error.
    """
    with connection.transaction():
        rows = connection.execute(_WRITERS, (effect.schema, effect.name)).fetchall()
    return str(rows[0][0]) if len(rows) == 1 and rows[0][0] is not None else None


def candidates(catalogue: Catalogue, relations: Sequence[RelationName], policy: Policy) -> tuple[Candidate, ...]:
    """Every relation as an effect and as a nonce record, with why it is not one; by name.

    A candidate has the columns, and the key of its part is unique by itself; if no relation has, those that come next
    are candidates, for the judges to refuse.
    """
    keys, bound = [policy.column(word) for word in KEYS], [policy.column(word) for word in BINDINGS]
    effects = {
        each: (
            *_missing(Criterion.SINGLE_USE, Part.EFFECT, each, _lacks(catalogue, each, keys)),
            *_missing(Criterion.BINDING, Part.EFFECT, each, _lacks(catalogue, each, bound)),
            *_not_unique(Criterion.SINGLE_USE, Part.EFFECT, catalogue, each, keys[0]),
        )
        for each in relations
    }
    if all(effects.values()):
        # None is an effect: those that lack least, of all that hold the key and bind anything to it.
        lacking = {
            each: (len(_lacks(catalogue, each, [*keys, *bound])), len(reasons))
            for each, reasons in effects.items()
            if not _lacks(catalogue, each, keys[:1]) and len(_lacks(catalogue, each, bound)) < len(bound)
        }
        least = min(lacking.values(), default=None)
        effects |= {each: () for each, lacks in lacking.items() if lacks == least}
    nonces = {each: _no_nonce(catalogue, each, policy, effect=not effects[each]) for each in relations}
    # Of several those that say which request consumed the nonce: what was issued is a record of the nonce as well.
    good = [each for each, reasons in nonces.items() if not reasons]
    if any(catalogue.column(each, keys[0]) is not None for each in good):
        for each in good:
            nonces[each] = _missing(Criterion.NONCE, Part.NONCE, each, _lacks(catalogue, each, keys[:1]))
    return tuple(
        Candidate(each, part, reasons)
        for part, known in ((Part.EFFECT, effects), (Part.NONCE, nonces))
        for each, reasons in known.items()
    )


def choose(found: Sequence[Candidate], *, named: Mapping[Part, RelationName]) -> Mapping[Part, RelationName]:
    """The only candidate of each part that is not named. Raises FitnessError if there are several for one."""
    chosen: dict[Part, RelationName] = {}
    for part in Part:
        fit = [each.relation for each in found if each.part is part and not each.reasons]
        fit = [relation for relation in fit if relation not in named.values()]
        if part in named or not fit:
            continue
        if len(fit) > 1:
            raise FitnessError(
                f"several relations could be the {part.value}: {', '.join(map(str, fit))}; name one with --{part.value}"
            )
        chosen[part] = fit[0]
    return chosen


def _lacks(catalogue: Catalogue, relation: RelationName, names: Sequence[str]) -> list[str]:
    return [name for name in names if catalogue.column(relation, name) is None]


def _missing(criterion: Criterion, part: Part, relation: RelationName, names: Sequence[str]) -> tuple[Reason, ...]:
    text = f"{relation} lacks {', '.join(names)}"
    return (Reason(criterion, Standing.REFUTED, Code.MISSING_COLUMNS.value, text, part),) if names else ()


def _no_nonce(catalogue: Catalogue, relation: RelationName, policy: Policy, *, effect: bool) -> tuple[Reason, ...]:
    column = policy.column(NONCE)
    reasons = _missing(Criterion.NONCE, Part.NONCE, relation, _lacks(catalogue, relation, [column]))
    if effect:
        text = f"{relation} is an effect: a consume record is a relation of its own"
        apart = Reason(Criterion.NONCE, Standing.REFUTED, Code.NONCE_NOT_SEPARATE.value, text, Part.NONCE)
        return (*reasons, apart)
    return reasons or _not_unique(Criterion.NONCE, Part.NONCE, catalogue, relation, column)


def _not_unique(
    criterion: Criterion, part: Part, catalogue: Catalogue, relation: RelationName, column: str
) -> tuple[Reason, ...]:
    if sound_unique(catalogue, relation, column) is not None:
        return ()
    rows = catalogue.unique(relation)
    shown = [
        f"{index['name']} UNIQUE ({', '.join(str(each or 'an expression') for each in index['columns'])})"
        for index in rows
    ]
    tail = f"; unique there: {', '.join(shown)}" if shown else ""
    text = f"nothing makes {column} of {relation} unique by itself{tail}"
    return (Reason(criterion, Standing.REFUTED, Code.KEY_NOT_UNIQUE.value, text, part, rows),)
