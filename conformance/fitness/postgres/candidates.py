"""The search for a surface: every relation of the database, held to what an effect and a nonce record cannot lack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.judging import Judging
from holdfast.conformance.fitness.criteria.keys import sound_unique
from holdfast.conformance.fitness.errors import FitnessError
from holdfast.conformance.fitness.model import (
    Candidate,
    Criterion,
    Evidence,
    EvidenceClass,
    Part,
    Reason,
    RelationName,
    Standing,
    Surface,
)
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
_OPTION = {Part.EFFECT: "--effect", Part.NONCE: "--nonce", Part.AUDIT: "--audit"}
_NOTHING = (EvidenceClass.CATALOGUE,)


def search(connection: psycopg.Connection[Any], policy: Policy) -> tuple[Candidate, ...]:
    """Every relation of the database as an effect and as a nonce record, with why it is not one; by name.

    A candidate has the columns, and the key of its part is unique by itself; if no relation has, those that come next
    are candidates, for the judges to refuse. Raises psycopg.Error.
    """
    with connection.transaction():
        found = [(str(schema), str(name)) for schema, name in connection.execute(_RELATIONS).fetchall()]
    catalogue = Catalogue(read(connection, found, None))
    relations = [RelationName(schema, name) for schema, name in found]
    effects = _nearest([_as_effect(catalogue, relation, policy) for relation in relations], catalogue, policy)
    is_effect = {each.relation for each in effects if not each.reasons}
    nonces = [_as_nonce(catalogue, relation, policy, effect=relation in is_effect) for relation in relations]
    return (*effects, *_that_consume(nonces, catalogue, policy))


def choose(candidates: Sequence[Candidate], *, named: Mapping[Part, RelationName]) -> Mapping[Part, RelationName]:
    """The only candidate of each part that is not named. Raises FitnessError if there are several for one."""
    chosen: dict[Part, RelationName] = {}
    for part in Part:
        fit = [each.relation for each in candidates if each.part is part and not each.reasons]
        fit = [relation for relation in fit if relation not in named.values()]
        if part in named or not fit:
            continue
        if len(fit) > 1:
            raise FitnessError(
                f"several relations could be the {part.value}: {', '.join(map(str, fit))}; "
                f"name one with {_OPTION[part]}"
            )
        chosen[part] = fit[0]
    return chosen


def writer(connection: psycopg.Connection[Any], effect: RelationName) -> str | None:
    """The only role to which INSERT on a relation was granted, but for its owner and superusers; None if there is none.

    PUBLIC is no role: where every role may insert, no role is the writer. Raises psycopg.Error.
    """
    with connection.transaction():
        rows = connection.execute(_WRITERS, (effect.schema, effect.name)).fetchall()
    return str(rows[0][0]) if len(rows) == 1 and rows[0][0] is not None else None


def _sheet(catalogue: Catalogue, relation: RelationName, part: Part, criterion: Criterion, policy: Policy) -> Judging:
    surface = Surface(str(relation), {part: relation}, None)
    return Judging(criterion, Evidence(surface, catalogue.snapshot), policy, catalogue, _NOTHING)


def _lacks(catalogue: Catalogue, relation: RelationName, names: Sequence[str]) -> list[str]:
    return [name for name in names if catalogue.column(relation, name) is None]


def _missing(criterion: Criterion, part: Part, relation: RelationName, names: Sequence[str]) -> tuple[Reason, ...]:
    text = f"{relation} lacks {', '.join(names)}"
    return (Reason(criterion, Standing.REFUTED, Code.MISSING_COLUMNS.value, text, part),) if names else ()


def _as_effect(catalogue: Catalogue, relation: RelationName, policy: Policy) -> Candidate:
    keys = _lacks(catalogue, relation, [policy.column(word) for word in KEYS])
    bound = _lacks(catalogue, relation, [policy.column(word) for word in BINDINGS])
    reasons = [
        *_missing(Criterion.SINGLE_USE, Part.EFFECT, relation, keys),
        *_missing(Criterion.BINDING, Part.EFFECT, relation, bound),
        *_not_unique(catalogue, relation, Part.EFFECT, Criterion.SINGLE_USE, policy.column(KEYS[0]), policy),
    ]
    return Candidate(relation, Part.EFFECT, tuple(reasons))


def _as_nonce(catalogue: Catalogue, relation: RelationName, policy: Policy, *, effect: bool) -> Candidate:
    column = policy.column(NONCE)
    reasons = list(_missing(Criterion.NONCE, Part.NONCE, relation, _lacks(catalogue, relation, [column])))
    if effect:
        text = f"{relation} is an effect: a consume record is a relation of its own"
        reasons.append(Reason(Criterion.NONCE, Standing.REFUTED, Code.NONCE_NOT_SEPARATE.value, text, Part.NONCE))
    elif not reasons:
        reasons += _not_unique(catalogue, relation, Part.NONCE, Criterion.NONCE, column, policy)
    return Candidate(relation, Part.NONCE, tuple(reasons))


def _that_consume(nonces: Sequence[Candidate], catalogue: Catalogue, policy: Policy) -> Sequence[Candidate]:
    """Of several, those that say which request consumed the nonce: what was issued is a record of the nonce as well."""
    key = policy.column(KEYS[0])
    good = {each.relation for each in nonces if not each.reasons}
    telling = {relation for relation in good if catalogue.column(relation, key) is not None}
    if not telling:
        return nonces
    return [
        Candidate(each.relation, each.part, _missing(Criterion.NONCE, each.part, each.relation, [key]))
        if each.relation in good - telling
        else each
        for each in nonces
    ]


def _nearest(effects: Sequence[Candidate], catalogue: Catalogue, policy: Policy) -> Sequence[Candidate]:
    """If none is an effect: those that lack least, of all that hold the key and bind anything to it."""
    if any(not each.reasons for each in effects):
        return effects
    key, bound = policy.column(KEYS[0]), [policy.column(word) for word in BINDINGS]
    columns = [*(policy.column(word) for word in KEYS), *bound]
    lacking = {
        each.relation: (len(_lacks(catalogue, each.relation, columns)), len(each.reasons))
        for each in effects
        if not _lacks(catalogue, each.relation, [key]) and len(_lacks(catalogue, each.relation, bound)) < len(bound)
    }
    least = min(lacking.values(), default=None)
    return [
        Candidate(each.relation, each.part, ()) if lacking.get(each.relation, ()) == least else each for each in effects
    ]


def _not_unique(
    catalogue: Catalogue, relation: RelationName, part: Part, criterion: Criterion, column: str, policy: Policy
) -> Sequence[Reason]:
    judging = _sheet(catalogue, relation, part, criterion, policy)
    if sound_unique(judging, relation, column) is not None:
        return ()
    shown = [
        f"{index['name']} UNIQUE ({', '.join(str(each or 'an expression') for each in index['columns'])})"
        for index in catalogue.unique(relation)
    ]
    tail = f"; unique there: {', '.join(shown)}" if shown else ""
    text = f"nothing makes {column} of {relation} unique by itself{tail}"
    rows = tuple(catalogue.unique(relation))
    return (Reason(criterion, Standing.REFUTED, Code.KEY_NOT_UNIQUE.value, text, part, rows),)
