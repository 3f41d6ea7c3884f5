"""The judges, on the evidence of a fit surface with one row or one answer of it changed: each change has its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import pytest
from msgspec import structs

from holdfast.conformance.fitness.assessment import Assessment
from holdfast.conformance.fitness.judge import judge
from holdfast.conformance.fitness.model import (
    Criterion,
    Evidence,
    EvidenceClass,
    Part,
    Probe,
    ProbeAnswer,
    RelationName,
    Row,
    Snapshot,
    Standing,
    Statement,
    Status,
)
from holdfast.conformance.fitness.policy import Policy
from tests.fitness.contradicting import contradictions

EFFECT = RelationName("surface", "consumed_request")
NONCE = RelationName("surface", "consumed_nonce")
AUDIT = RelationName("surface", "refusal_audit")
WRITER = "registrar"
_Edit: TypeAlias = Callable[[Evidence], Evidence]
# Criterion, how it stands then, and one of its codes.
_Expected: TypeAlias = tuple[str, Standing, str]
R, U = Standing.REFUTED, Standing.UNPROVEN


@pytest.fixture(scope="module")
def fit(documented: Assessment) -> Evidence:
    assert documented.evidence is not None
    return documented.evidence


def with_rows(evidence: Evidence, query: str, rows: tuple[Row, ...]) -> Evidence:
    snapshot = evidence.snapshot
    if query in snapshot.structure:
        changed = Snapshot(snapshot.dialect, {**snapshot.structure, query: rows}, snapshot.circumstances)
    else:
        changed = Snapshot(snapshot.dialect, snapshot.structure, {**snapshot.circumstances, query: list(rows)})
    return replace(evidence, snapshot=changed)


def rows_of(evidence: Evidence, query: str) -> tuple[Row, ...]:
    return tuple(evidence.snapshot.structure.get(query) or evidence.snapshot.circumstances.get(query) or ())


def edit(query: str, where: Mapping[str, Any], **changes: Any) -> _Edit:
    """Change the rows of a query that are like `where`; there has to be one."""

    def apply(evidence: Evidence) -> Evidence:
        rows = rows_of(evidence, query)
        chosen = [row for row in rows if all(row[key] == value for key, value in where.items())]
        assert chosen, (query, where)
        return with_rows(evidence, query, tuple({**row, **changes} if row in chosen else row for row in rows))

    return apply


def add(query: str, **row: Any) -> _Edit:
    return lambda evidence: with_rows(evidence, query, (*rows_of(evidence, query), row))


def drop(query: str, where: Mapping[str, Any]) -> _Edit:
    def apply(evidence: Evidence) -> Evidence:
        rows = rows_of(evidence, query)
        left = tuple(row for row in rows if not all(row[key] == value for key, value in where.items()))
        assert len(left) < len(rows), (query, where)
        return with_rows(evidence, query, left)

    return apply


def answer(probe: str, **changes: Any) -> _Edit:
    """Change the answer that counts of a probe that is there."""

    def apply(evidence: Evidence) -> Evidence:
        assert evidence.probe(probe) is not None, probe
        return replace(
            evidence,
            probes=tuple(
                structs.replace(each, answers=(*each.answers[:-1], structs.replace(each.answers[-1], **changes)))
                if each.name == probe
                else each
                for each in evidence.probes
            ),
        )

    return apply


def without(probe: str) -> _Edit:
    return lambda evidence: replace(evidence, probes=tuple(p for p in evidence.probes if p.name != probe))


def both(*edits: _Edit) -> _Edit:
    def apply(evidence: Evidence) -> Evidence:
        for each in edits:
            evidence = each(evidence)
        return evidence

    return apply


def at(relation: RelationName, **more: Any) -> dict[str, Any]:
    return {"schema": relation.schema, "relation": relation.name, **more}


def column(relation: RelationName, name: str, **changes: Any) -> _Edit:
    return edit("columns", at(relation, name=name), **changes)


def index(name: str, **changes: Any) -> _Edit:
    return edit("indexes", {"name": name}, **changes)


def grant(relation: RelationName, grantee: str | None, privilege: str, **more: Any) -> _Edit:
    row = {"object": "relation", "column": None, "grantable": False, **more}
    return add("grants", **at(relation), grantee=grantee, privilege=privilege, **row)


def schema_grant(grantee: str | None) -> _Edit:
    row = {"object": "schema", "relation": None, "column": None, "grantable": False, "privilege": "CREATE"}
    return add("grants", schema="surface", grantee=grantee, **row)


def role(name: str, **more: Any) -> _Edit:
    plain = dict.fromkeys(
        ("superuser", "create_role", "create_database", "replication", "bypass_row_security", "inherit"), False
    )
    return add("roles", **{"role": name, **plain, "login": True, **more})


def member(of: str, who: str, **more: Any) -> _Edit:
    return add("memberships", **{"role": of, "member": who, "inherit": False, "set": False, "admin": False, **more})


def setting(name: str, value: str, *, who: str | None = WRITER, database: bool = False) -> _Edit:
    return add("role_settings", role=who, database=database, name=name, value=value)


ADMITTED = {"sqlstate": None, "message": "", "affected": 1, "constraint": None}
KEY = "logical_request_key"
UNIQUE = "logical_request_key_unique"
FK = {
    "schema": EFFECT.schema, "relation": EFFECT.name, "name": "target_fk", "to_schema": "surface",
    "to_relation": "target", "columns": ["canonical_target"], "to_columns": ["name"], "on_delete": "a",
    "on_update": "a", "validated": True, "enforced": True, "deferrable": False, "definition": "",
}  # fmt: skip
# What a relation is made of, as PostgreSQL names it.
GUARD = "surface.refuse_change()"
TYPE = {"kind": "type", "name": "surface.operation", "owner": "crew"}
DEFINER = {
    "schema": "surface", "name": "admit", "arguments": "", "owner": "registrar_owner", "superuser": False,
    "trigger": False, "executors": [None], "attached": [], "definition": "BEGIN EXECUTE $1; END",
}  # fmt: skip
RULE = {
    "schema": "surface", "relation": "other", "kind": "r", "owner": "registrar_owner", "name": "aside",
    "event": "insert", "instead": False, "enabled": "O", "definition": "",
}  # fmt: skip
VIEW = {
    "schema": "surface", "relation": "shown", "kind": "v", "owner": "registrar_owner", "options": [], "updatable": 28,
    "definition": "",
}  # fmt: skip
TRIGGER = {
    "name": "stamp", "timing": "before", "level": "row", "events": ["insert"], "enabled": "O", "conditional": False,
    "columns": [], "constraint": False, "function": "surface.stamp", "definition": "",
}  # fmt: skip
FUNCTION = {
    "schema": "surface", "name": "admit", "arguments": "", "owner": "registrar_owner", "definer": True,
    "trigger": False, "executors": [None], "definition": "insert into consumed_request",
}  # fmt: skip
ATTEMPTS: dict[str, Any] = {
    **at(EFFECT), "name": "one_try", "unique": True, "primary": False, "exclusion": False, "immediate": True,
    "valid": True, "ready": True, "live": True, "method": "btree", "predicate": None, "expressions": None,
    "period": False, "constraint": None, "columns": ["attempt_id"], "included": [], "definition": "", "calls": [],
    "opclasses": ["pg_catalog.text_ops"], "collations": ["pg_catalog.C"], "deterministic": True,
}  # fmt: skip


CHECK: dict[str, Any] = {
    "name": "said", "kind": "c", "columns": ["code", "recorded_at"], "validated": True, "enforced": True,
    "deferrable": False, "deferred": False, "no_inherit": False, "definition": "", "volatile": [], "calls": [],
}  # fmt: skip
PLAIN: dict[str, Any] = {**ATTEMPTS, "name": "plain", "unique": False}
WATCH = {
    "name": "watch", "event": "ddl_command_end", "enabled": "O", "function": "public.watch", "definition": "",
}  # fmt: skip
LOGIN = {**WATCH, "name": "greet", "event": "login", "function": "public.greet"}
FILES = {"schema": "pg_catalog", "name": "lo_export", "arguments": "oid, text", "grantee": None}


MAKER = add(
    "administrators", role="maker", superuser=False, create_role=True, bypass_row_security=False, replication=False,
    login=True,
)  # fmt: skip


def narrow(relation: RelationName, name: str, condition: str, **more: Any) -> _Edit:
    """A CHECK beside the others."""
    row = {**CHECK, "columns": [name], "name": "narrow", "definition": f"CHECK (({name} {condition}))", **more}
    return add("constraints", **{**at(relation), **row})


ATTEMPT_INDEXES: dict[str, dict[str, Any]] = {
    "by an expression": {"columns": [None], "expressions": "lower(attempt_id)"},
    "for some rows": {"predicate": "(operation = 'register_dot'::text)"},
    "in a condition": {"columns": ["run_id"], "predicate": "(attempt_id = '1'::text)"},
    "at the end": {"immediate": False},
    "by exclusion": {"unique": False, "exclusion": True},
    "by exclusion, with a key": {"unique": False, "exclusion": True, "columns": ["attempt_id", KEY]},
    "with the operation": {"columns": ["attempt_id", "operation"]},
    "with what is not unique by itself": {"columns": ["run_id", "attempt_id"]},
}


def outrun(probe: str, there: int) -> _Edit:
    """The loser of a race gets a serialization failure, and `there` rows are there."""

    def apply(evidence: Evidence) -> Evidence:
        return replace(
            evidence,
            probes=tuple(
                structs.replace(
                    each,
                    statements=(*each.statements[:-1], Statement("helper", "x", "SELECT"), each.statements[-1]),
                    answers=(*each.answers[:-1], ProbeAnswer(rows=({"there": there},)), ProbeAnswer(sqlstate="40001")),
                )
                if each.name == probe
                else each
                for each in evidence.probes
            ),
        )

    return apply


# What else is said of a column that the server fills in.
MADE_UP: Row = {"identity": "", "domain_default": None, "base_type": "pg_catalog.int8", "calls": []}

CHANGES: dict[str, tuple[_Edit, tuple[_Expected, ...]]] = {
    # a
    "a deferrable": (index(UNIQUE, immediate=False), (("a", R, "KEY_DEFERRABLE"), ("e", R, "ARBITER_UNUSABLE"))),
    "a invalid": (index(UNIQUE, valid=False), (("a", R, "KEY_INVALID"), ("e", R, "ARBITER_UNUSABLE"))),
    "a not ready": (index(UNIQUE, ready=False), (("a", R, "KEY_INVALID"), ("e", R, "ARBITER_UNUSABLE"))),
    "a not live": (index(UNIQUE, live=False), (("a", R, "KEY_INVALID"), ("e", R, "ARBITER_UNUSABLE"))),
    "a partial": (index(UNIQUE, predicate="(x)"), (("a", R, "KEY_PARTIAL"), ("e", R, "ARBITER_UNUSABLE"))),
    "a temporal": (index(UNIQUE, period=True), (("a", R, "KEY_TEMPORAL"), ("e", R, "ARBITER_UNUSABLE"))),
    "a exclusion": (
        index(UNIQUE, unique=False, exclusion=True), (("a", R, "KEY_TEMPORAL"), ("e", R, "ARBITER_UNUSABLE")),
    ),
    "a own operators": (
        index(UNIQUE, opclasses=["mine.ops"]), (("a", R, "KEY_OPERATOR"), ("e", R, "ARBITER_UNUSABLE")),
    ),
    "a index that calls": (
        add("indexes", **{**PLAIN, "expressions": "surface.f(run_id)"}), (("a", U, "CHECK_UNREVIEWED"),),
    ),
    "a index with a condition that calls": (
        add("indexes", **{**PLAIN, "predicate": "surface.f(run_id)"}), (("a", U, "CHECK_UNREVIEWED"),),
    ),
    "a index with a user's own cast": (
        add("indexes", **{**PLAIN, "calls": ["surface.as_number"]}), (("a", U, "CHECK_UNREVIEWED"),),
    ),
    "a index of a user's own order": (
        add("indexes", **{**PLAIN, "opclasses": ["surface.ops"]}), (("a", U, "CHECK_UNREVIEWED"),),
    ),
    "a check that calls": (
        add("constraints", **{**at(EFFECT), **CHECK, "calls": ["surface.f"]}), (("a", U, "CHECK_UNREVIEWED"),),
    ),
    "a check that sets something": (
        add("constraints", **{**at(EFFECT), **CHECK, "volatile": ["set_config"]}), (("a", U, "CHECK_VOLATILE"),),
    ),
    "b exclusion of a user's own": (
        add("constraints", **{**at(NONCE), **CHECK, "kind": "x", "calls": ["surface.="]}),
        (("b", U, "CHECK_UNREVIEWED"),),
    ),
    "b domain that calls": (
        add("domain_checks", **at(NONCE, column=KEY, name="said", validated=True, enforced=True, volatile=[], calls=[],
                                  definition="CHECK (surface.f(VALUE))")),
        (("b", U, "CHECK_UNREVIEWED"),),
    ),
    "g check that calls": (
        add("constraints", **{**at(AUDIT), **CHECK, "definition": "CHECK (surface.f(code))"}),
        (("g", U, "CHECK_UNREVIEWED"),),
    ),
    "g check that ends": (
        add("constraints", **{**at(AUDIT), **CHECK, "volatile": ["now"]}), (("g", U, "CHECK_VOLATILE"),),
    ),
    "g default that calls": (column(AUDIT, "code", calls=["surface.f"]), (("g", U, "CHECK_UNREVIEWED"),)),
    "g default that sets something": (
        column(AUDIT, "code", default="set_config('x'::text, 'y'::text, true)"), (("g", U, "CHECK_UNREVIEWED"),),
    ),
    "a default of a flag that calls": (
        column(EFFECT, "attempt_id", base_type="pg_catalog.bool", calls=["surface.f"]),
        (("a", U, "CHECK_UNREVIEWED"),),
    ),
    "b default of a domain of flags that sets something": (
        column(NONCE, KEY, base_type="pg_catalog.bool", domain_default="(set_config('x', 'y', true) = 'y')"),
        (("b", U, "CHECK_UNREVIEWED"),),
    ),
    "a nondeterministic": (
        index(UNIQUE, deterministic=False), (("a", R, "KEY_COLLATION"), ("e", R, "ARBITER_UNUSABLE")),
    ),
    "a expression": (
        index(UNIQUE, columns=[None], expressions=f"lower({KEY})"),
        (("a", R, "KEY_EXPRESSION"), ("e", R, "ARBITER_UNUSABLE")),
    ),
    "a composite with attempt": (
        index(UNIQUE, columns=[KEY, "attempt_id"]),
        (("a", R, "REPLAY_ATTEMPT_NO_BYPASS"), ("e", R, "ARBITER_UNUSABLE")),
    ),
    "a not unique": (drop("indexes", {"name": UNIQUE}), (("a", R, "KEY_NOT_UNIQUE"), ("e", R, "ARBITER_UNUSABLE"))),
    "a replay key not unique": (drop("indexes", {"name": "replay_key_unique"}), (("a", R, "KEY_NOT_UNIQUE"),)),
    "a replay key not declarable": (
        both(
            drop("indexes", {"name": "replay_key_unique"}),
            edit("relations", at(EFFECT), kind="p", partition_key=f"HASH ({KEY})", partition_strategy="h"),
        ),
        (("a", U, "KEY_NOT_DECLARABLE"),),
    ),
    "a attempt unique": (
        add("indexes", **ATTEMPTS),
        (("a", R, "ATTEMPT_KEYING"),),
    ),
    **{
        f"a attempt unique {how}": (add("indexes", **(ATTEMPTS | more)), (("a", R, "ATTEMPT_KEYING"),))
        for how, more in ATTEMPT_INDEXES.items()
    },
    "a nullable": (column(EFFECT, KEY, not_null=False), (("a", U, "KEY_NULLABLE"),)),
    "a replay key nullable": (column(EFFECT, "replay_key", not_null=False), (("a", U, "KEY_NULLABLE"),)),
    "a of type name": (column(EFFECT, KEY, base_type="pg_catalog.name"), (("a", R, "KEY_TYPE"),)),
    "a generated": (column(EFFECT, KEY, generated="s"), (("a", R, "KEY_GENERATED"),)),
    "a default": (column(EFFECT, KEY, default="md5(random()::text)"), (("a", R, "KEY_DEFAULT"),)),
    "a domain default": (column(EFFECT, KEY, domain_default="''::text"), (("a", R, "KEY_DEFAULT"),)),
    "a blind collation": (column(EFFECT, KEY, deterministic=False), (("a", R, "KEY_COLLATION"),)),
    "a collation of a library": (
        both(column(EFFECT, KEY, byte_order=False, collation="public.de"), index(UNIQUE, collations=["public.de"])),
        (("a", U, "COLLATION_UNSTABLE"),),
    ),
    "a check not valid": (
        edit("constraints", at(EFFECT, columns=[KEY]), validated=False), (("a", R, "CHECK_NOT_VALID"),),
    ),
    "a check not enforced": (
        edit("constraints", at(EFFECT, columns=["replay_key"]), enforced=False), (("a", R, "CHECK_NOT_VALID"),),
    ),
    "a check volatile": (
        edit("constraints", at(EFFECT, columns=[KEY]), volatile=["today"]), (("a", U, "CHECK_VOLATILE"),),
    ),
    "a check calls": (
        edit("constraints", at(EFFECT, columns=[KEY]), definition=f"CHECK (surface.canon({KEY}))"),
        (("a", U, "CHECK_UNREVIEWED"),),
    ),
    "a check of another form": (
        edit("constraints", at(EFFECT, columns=[KEY]), definition=f"CHECK (({KEY} ~ '^(a|b)$'::text))"),
        (("a", U, "KEY_NOT_CANONICAL"),),
    ),
    "a check of another form, replay key": (
        edit("constraints", at(EFFECT, columns=["replay_key"]), definition="CHECK ((replay_key <> ''::text))"),
        (("a", U, "KEY_NOT_CANONICAL"),),
    ),
    "a check by an operator": (
        edit("constraints", at(EFFECT, columns=[KEY]), definition=f"CHECK (({KEY} OPERATOR(surface.~) 'x'::text))"),
        (("a", U, "CHECK_UNREVIEWED"),),
    ),
    "a check by a cast": (
        edit("constraints", at(EFFECT, columns=[KEY]), definition=f"CHECK ((({KEY})::\"It's\".mark)::boolean)"),
        (("a", U, "CHECK_UNREVIEWED"),),
    ),
    "a check by a cast that its text does not show": (
        edit("constraints", at(EFFECT, columns=[KEY]), calls=["mine.as_number"]), (("a", U, "CHECK_UNREVIEWED"),),
    ),
    "a unlogged": (edit("relations", at(EFFECT), persistence="u"), (("a", R, "UNLOGGED"), ("e", R, "UNLOGGED"))),
    "a temporary": (edit("relations", at(EFFECT), persistence="t"), (("a", R, "TEMPORARY"), ("e", R, "TEMPORARY"))),
    "a view": (
        edit("relations", at(EFFECT), kind="v"),
        (("a", R, "NOT_A_TABLE"), ("e", R, "NOT_A_TABLE"), ("i", R, "NOT_A_TABLE")),
    ),
    "a children": (
        add("inheritance", parent_schema="surface", parent=EFFECT.name, schema="old", relation="rows", partition=False),
        (("a", R, "CHILD_TABLES"), ("f", R, "NO_TRIGGERS")),
    ),
    "a partition": (
        edit("relations", at(EFFECT), is_partition=True), (("a", R, "IS_PARTITION"), ("i", R, "PARTITION_DROPPABLE")),
    ),
    "a trigger of INSERT": (add("triggers", **at(EFFECT), **TRIGGER), (("a", U, "TRIGGER_UNREVIEWED"),)),
    "a rule": (
        add("rules", **at(EFFECT, name="aside", event="insert", instead=True, enabled="O", definition="")),
        (("a", U, "RULE_UNREVIEWED"),),
    ),
    "a tried, same key": (answer("same-key", **ADMITTED), (("a", R, "DUPLICATE_ADMITTED"),)),
    "a tried, new attempt": (answer("same-key-new-attempt", **ADMITTED), (("a", R, "REPLAY_ATTEMPT_NO_BYPASS"),)),
    "a tried, same replay key": (answer("same-replay-key", **ADMITTED), (("a", R, "DUPLICATE_ADMITTED"),)),
    "a tried, NULL": (answer("key-null", **ADMITTED), (("a", R, "KEY_NULLABLE"),)),
    "a tried, upper case": (answer("key-upper", **ADMITTED), (("a", R, "KEY_NOT_CANONICAL"),)),
    "a tried, space": (answer("replay-key-space", **ADMITTED), (("a", R, "KEY_NOT_CANONICAL"),)),
    "a tried, prefix": (answer("key-sha256", **ADMITTED), (("a", R, "KEY_NOT_CANONICAL"),)),
    "a tried, line feed": (answer("replay-key-newline", **ADMITTED), (("a", R, "KEY_NOT_CANONICAL"),)),
    "a twin not tried": (without("key-doubled"), (("a", U, "PROBE_FAILED"),)),
    "a tried, known attempt": (
        answer("attempt-again", sqlstate="23505", affected=None, constraint="one_try"), (("a", R, "ATTEMPT_KEYING"),),
    ),
    "a known attempt not tried": (without("attempt-again"), (("a", U, "PROBE_FAILED"),)),
    "a tried, neighbour": (
        answer("key-prefix", sqlstate="23505", affected=None, constraint=UNIQUE), (("a", R, "KEY_COLLISION"),),
    ),
    "a tried, swallowed": (answer("same-key", **{**ADMITTED, "affected": 0}), (("a", R, "SILENTLY_IGNORED"),)),
    "a tried, refused by another": (answer("same-key", constraint="elsewhere"), (("a", U, "PROBE_FAILED"),)),
    "a tried, waited": (answer("same-key", sqlstate="55P03"), (("a", U, "PROBE_FAILED"),)),
    "a not tried": (without("same-key"), (("a", U, "PROBE_FAILED"),)),
    # b
    "b nullable": (column(NONCE, "authorization_nonce", not_null=False), (("b", U, "KEY_NULLABLE"),)),
    "b partial": (
        index("authorization_nonce_unique", predicate="(x)"), (("b", R, "KEY_PARTIAL"), ("e", R, "ARBITER_UNUSABLE")),
    ),
    "b trigger": (add("triggers", **at(NONCE), **TRIGGER), (("b", U, "TRIGGER_UNREVIEWED"),)),
    "b tried": (answer("nonce-again", **ADMITTED), (("b", R, "NONCE_REUSED"),)),
    "b tried, NULL": (answer("nonce-null", **ADMITTED), (("b", R, "KEY_NULLABLE"),)),
    # c
    "c nullable": (column(EFFECT, "run_id", not_null=False), (("c", U, "BINDING_NULLABLE"),)),
    "c nullable, and it was done": (
        both(column(EFFECT, "run_id", not_null=False), answer("without-run_id", **ADMITTED)),
        (("c", R, "BINDING_NULLABLE"),),
    ),
    "c generated": (column(EFFECT, "run_id", generated="s"), (("c", R, "BINDING_GENERATED"),)),
    "a key of few digits": (narrow(EFFECT, "replay_key", "~ '^v1:[0-9a-f]{31}$'::text"), (("a", U, "KEY_NARROW"),)),
    "a key of few words": (
        narrow(EFFECT, "replay_key", "= ANY (ARRAY['a'::text, 'b'::text])"), (("a", U, "KEY_NARROW"),),
    ),
    "a key of few signs": (
        narrow(EFFECT, "replay_key", "!~ '[^0-9]'::text) AND (length(replay_key) = 38"), (("a", U, "KEY_NARROW"),),
    ),
    "b nonce of few digits": (narrow(NONCE, "authorization_nonce", "~ '^[0-9]{38}$'::text"), (("b", U, "KEY_NARROW"),)),
    **{
        f"b nonce of few signs, {condition}": (
            narrow(NONCE, "authorization_nonce", condition), (("b", U, "KEY_NARROW"),),
        )
        for condition in (
            "~ '^[0-9A-Za-z]{6}$'::text", "~ '^[0-9]{1,32}$'::text", "~ '^[!-~]{19}$'::text", "~ '^[^x]{6}$'::text",
        )
    },
    "b nonce of a short type": (
        column(NONCE, "authorization_nonce", base_type="pg_catalog.varchar", modifier=10), (("b", U, "KEY_NARROW"),),
    ),
    **{
        f"b nonce of few bytes, by {name}": (
            both(
                column(NONCE, "authorization_nonce", base_type="pg_catalog.bytea", deterministic=None),
                add("constraints", **at(NONCE), **{
                    **CHECK, "columns": ["authorization_nonce"],
                    "definition": f"CHECK (({name}(authorization_nonce) = 15))",
                }),
            ),
            (("b", U, "KEY_NARROW"),),
        )
        for name in ("octet_length", "length")
    },
    "c binding of one number": (narrow(EFFECT, "run_id", "= 1"), (("c", U, "BINDING_CONSTANT"),)),
    "c binding of one number in a list": (
        narrow(EFFECT, "run_id", "= ANY (ARRAY['1'::bigint])"), (("c", U, "BINDING_CONSTANT"),),
    ),
    "c binding of one pattern": (narrow(EFFECT, "run_id", "~ '^prod$'::text"), (("c", U, "BINDING_CONSTANT"),)),
    "c binding of one value": (narrow(EFFECT, "run_id", "= 'x'::text"), (("c", U, "BINDING_CONSTANT"),)),
    "h decision of one value": (
        column(EFFECT, "decision_id", labels=["accepted"]), (("h", U, "BINDING_CONSTANT"),),
    ),
    "c default": (column(EFFECT, "run_id", default="''::text"), (("c", R, "BINDING_DEFAULT"),)),
    "c no check": (
        drop("constraints", at(EFFECT, columns=["run_id"])), (("c", U, "PROBE_FAILED"),),
    ),
    "c check not valid": (
        edit("constraints", at(EFFECT, columns=["run_id"]), validated=False), (("c", R, "CHECK_NOT_VALID"),),
    ),
    "c missing": (drop("columns", at(EFFECT, name="run_id")), (("c", R, "MISSING_COLUMNS"),)),
    "c tried, without": (answer("without-run_id", **ADMITTED), (("c", R, "BINDING_NULLABLE"),)),
    "c tried, empty": (answer("empty-run_id", **ADMITTED), (("c", R, "BINDING_MAY_BE_EMPTY"),)),
    # d
    "d tried": (answer("other-operation", **ADMITTED), (("d", R, "DOMAIN_UNRESTRICTED"),)),
    "d not valid": (
        edit("constraints", at(EFFECT, columns=["operation"]), validated=False),
        (("c", R, "CHECK_NOT_VALID"), ("d", R, "CHECK_NOT_VALID")),
    ),
    # e
    "e fsync": (edit("durability", {"name": "fsync"}, value="off"), (("e", R, "NOT_DURABLE"),)),
    "e full pages": (edit("durability", {"name": "full_page_writes"}, value="off"), (("e", R, "NOT_DURABLE"),)),
    "e a table space": (edit("relations", at(EFFECT), tablespace="fast"), (("e", U, "TABLESPACE"),)),
    "e a table space of an index": (index(UNIQUE, tablespace="fast"), (("e", U, "TABLESPACE"),)),
    "e what developers set": (add("durability", name="zero_damaged_pages", value="on"), (("e", U, "NOT_DURABLE"),)),
    "e what is retried": (add("durability", name="data_sync_retry", value="on"), (("e", U, "NOT_DURABLE"),)),
    "e fsync after a reload": (add("waiting", name="fsync", value="off"), (("e", R, "NOT_DURABLE"),)),
    "e full pages after a reload": (add("waiting", name="full_page_writes", value="F"), (("e", R, "NOT_DURABLE"),)),
    "e late commits after a reload": (
        add("waiting", name="synchronous_commit", value="no"), (("e", R, "ASYNC_COMMIT"),),
    ),
    "e login trigger": (add("event_triggers", **LOGIN), (("e", U, "TRIGGER_UNREVIEWED"),)),
    "e server commits late": (edit("commit", {"name": "synchronous_commit"}, value="off"), (("e", R, "ASYNC_COMMIT"),)),
    "e writer commits late": (setting("synchronous_commit", "off"), (("e", R, "ASYNC_COMMIT"),)),
    "e database commits late": (
        setting("synchronous_commit", "off", who=None, database=True), (("e", R, "ASYNC_COMMIT"),),
    ),
    "e commit hidden": (edit("commit", {"name": "synchronous_commit"}, source="user"), (("e", U, "COMMIT_UNKNOWN"),)),
    "e kept by an extension": (edit("relations", at(NONCE), access_method="columnar"), (("e", U, "ACCESS_METHOD"),)),
    "e prepared": (add("prepared", gid="x", owner="y"), (("e", U, "PREPARED_TRANSACTIONS"),)),
    "e arbiter": (answer("arbiter", sqlstate="42P10", affected=None), (("e", R, "ARBITER_UNUSABLE"),)),
    "e arbiter twice": (answer("nonce-arbiter", affected=1), (("e", R, "ARBITER_UNUSABLE"),)),
    "e rollback": (answer("rollback", rows=({"effect": 1, "nonce": 0},)), (("e", R, "NOT_ATOMIC"),)),
    "e killed": (
        answer("killed", rows=({"effect": 0, "nonce": 0, "committed": 0},)), (("e", R, "NOT_ATOMIC"),),
    ),
    "e race": (answer("race", **ADMITTED), (("e", R, "RACE_LOST"),)),
    "e race without a winner": (outrun("race", 0), (("e", U, "PROBE_FAILED"),)),
    "e race that both won": (outrun("race-nonce", 2), (("e", U, "PROBE_FAILED"),)),
    "e race for an arbiter without a winner": (outrun("race-arbiter", 0), (("e", R, "ARBITER_UNUSABLE"),)),
    "e race lost without a count": (answer("race", sqlstate="40001"), (("e", U, "PROBE_FAILED"),)),
    "e race not run": (without("race"), (("e", U, "PROBE_FAILED"),)),
    # f
    "f no triggers": (drop("triggers", at(NONCE)), (("f", U, "GUARD_UNREVIEWED"),)),
    "f no guard of TRUNCATE": (drop("triggers", at(EFFECT, name="no_truncate")), (("f", U, "GUARD_UNREVIEWED"),)),
    "f guard after": (edit("triggers", at(EFFECT, name="no_change"), timing="after"), (("f", U, "GUARD_UNREVIEWED"),)),
    "f guard disabled": (edit("triggers", at(EFFECT, name="no_change"), enabled="D"), (("f", U, "GUARD_UNREVIEWED"),)),
    "f guard for replicas": (
        edit("triggers", at(EFFECT, name="no_change"), enabled="R"), (("f", U, "GUARD_UNREVIEWED"),),
    ),
    "f guard with a condition": (
        edit("triggers", at(EFFECT, name="no_change"), conditional=True), (("f", U, "GUARD_UNREVIEWED"),),
    ),
    "f guard of a column": (
        edit("triggers", at(EFFECT, name="no_change"), columns=["run_id"]), (("f", U, "GUARD_UNREVIEWED"),),
    ),
    "f guard without DELETE": (
        edit("triggers", at(EFFECT, name="no_change"), events=["update"]), (("f", U, "GUARD_UNREVIEWED"),),
    ),
    "f no triggers, and it was done": (
        both(drop("triggers", at(NONCE)), answer("owner-update-nonce", **ADMITTED)), (("f", R, "NO_TRIGGERS"),),
    ),
    "f no triggers, and nothing was tried": (
        both(drop("triggers", at(NONCE)), without("owner-update-nonce")), (("f", R, "NO_TRIGGERS"),),
    ),
    "f guard after, and it was done": (
        both(edit("triggers", at(EFFECT, name="no_change"), timing="after"), answer("owner-delete", **ADMITTED)),
        (("f", R, "GUARD_MISSING"),),
    ),
    "f guard after, and nothing was tried": (
        both(edit("triggers", at(EFFECT, name="no_change"), timing="after"), without("owner-delete")),
        (("f", U, "GUARD_UNREVIEWED"),),
    ),
    "f guard disabled, and it was done": (
        both(edit("triggers", at(EFFECT, name="no_change"), enabled="D"), answer("owner-update", **ADMITTED)),
        (("f", R, "GUARD_MISSING"),),
    ),
    "f guard replaceable": (
        edit("owners", at(NONCE, name=GUARD), owner=WRITER), (("f", R, "GUARD_REPLACEABLE"),),
    ),
    "f guard of a stranger": (
        both(role("passer_by"), edit("owners", at(EFFECT, name=GUARD), owner="passer_by")),
        (("f", U, "GUARD_REPLACEABLE"),),
    ),
    "f writer owns": (edit("relations", at(NONCE), owner=WRITER), (("f", R, "WRITER_OWNS"),)),
    "f writer owns the schema": (
        edit("owners", at(EFFECT, kind="schema"), owner=WRITER), (("f", R, "WRITER_OWNS"),),
    ),
    "f writer owns the database": (
        edit("database", {}, owner=WRITER), (("f", R, "WRITER_OWNS"), ("g", R, "WRITER_OWNS")),
    ),
    "fg no row of the database": (
        drop("database", {}), (("f", U, "CATALOGUE_UNREADABLE"), ("g", U, "CATALOGUE_UNREADABLE")),
    ),
    "f writer owns the database and so the schema": (
        both(edit("owners", at(NONCE, kind="schema"), owner="pg_database_owner"), edit("database", {}, owner=WRITER)),
        (("f", R, "WRITER_OWNS"), ("g", R, "WRITER_OWNS")),
    ),
    "fg another owns the database": (
        both(role("passer_by"), edit("database", {}, owner="passer_by")),
        (("f", U, "OWNED_ELSEWHERE"), ("g", U, "OWNED_ELSEWHERE")),
    ),
    "f writer owns a type": (add("owners", **at(EFFECT), **{**TYPE, "owner": WRITER}), (("f", R, "WRITER_OWNS"),)),
    "f writer is a member of the owner of a type": (
        both(role("crew"), member("crew", WRITER, inherit=True), add("owners", **at(EFFECT), **TYPE)),
        (("f", R, "WRITER_OWNS"),),
    ),
    "f another owns a type": (add("owners", **at(NONCE), **TYPE), (("f", U, "OWNED_ELSEWHERE"),)),
    "g another owns a type": (add("owners", **at(AUDIT), **TYPE), (("g", U, "OWNED_ELSEWHERE"),)),
    "f the owner of the audit owns a guard": (
        both(
            role("clerk"), edit("relations", at(AUDIT), owner="clerk"),
            edit("grants", at(AUDIT, grantee="registrar_owner"), grantee="clerk"),
            edit("owners", at(EFFECT, name=GUARD), owner="clerk"),
        ),
        (("f", U, "GUARD_REPLACEABLE"),),
    ),
    "f an extension of another": (
        add("owners", **at(EFFECT), **{**TYPE, "kind": "extension", "name": "citext"}), (("f", U, "OWNED_ELSEWHERE"),),
    ),
    "fg writer becomes the owner": (
        member("registrar_owner", WRITER, set=True), (("f", R, "WRITER_OWNS"), ("g", R, "WRITER_OWNS")),
    ),
    "fg writer inherits the owner": (
        member("registrar_owner", WRITER, inherit=True), (("f", R, "WRITER_OWNS"), ("g", R, "WRITER_OWNS")),
    ),
    "fg writer lets itself into the owner": (
        member("registrar_owner", WRITER, admin=True), (("f", R, "WRITER_OWNS"), ("g", R, "WRITER_OWNS")),
    ),
    "fg writer by way of another": (
        both(role("team"), member("team", WRITER, set=True), member("registrar_owner", "team", inherit=True)),
        (("f", R, "WRITER_OWNS"), ("g", R, "WRITER_OWNS")),
    ),
    "f superuser": (edit("roles", {"role": WRITER}, superuser=True), (("f", R, "WRITER_ATTRIBUTES"),)),
    "f bypasses": (edit("roles", {"role": WRITER}, bypass_row_security=True), (("f", R, "WRITER_ATTRIBUTES"),)),
    "f another makes roles, before 16": (
        both(edit("server", {}, number=150000), MAKER), (("f", U, "OTHERS_MAY_WRITE"),),
    ),
    "f another can become the owner": (
        both(role("dba"), member("registrar_owner", "dba", set=True)), (("f", U, "OTHERS_MAY_WRITE"),),
    ),
    "f another may let itself into the owner": (
        both(role("dba"), member("registrar_owner", "dba", admin=True)), (("f", U, "OTHERS_MAY_WRITE"),),
    ),
    "f event trigger of any event": (add("event_triggers", **WATCH), (("f", U, "TRIGGER_UNREVIEWED"),)),
    "f makes roles": (edit("roles", {"role": WRITER}, create_role=True), (("f", R, "WRITER_ATTRIBUTES"),)),
    "f replicates": (edit("roles", {"role": WRITER}, replication=True), (("f", R, "WRITER_ATTRIBUTES"),)),
    "f becomes a superuser": (
        both(role("boss", superuser=True), member("boss", WRITER, set=True)), (("f", R, "WRITER_ATTRIBUTES"),),
    ),
    "f writes everything": (member("pg_write_all_data", WRITER, inherit=True), (("f", R, "WRITER_MEMBERSHIP"),)),
    "f runs programs": (member("pg_execute_server_program", WRITER, set=True), (("f", R, "WRITER_MEMBERSHIP"),)),
    "f UPDATE": (grant(EFFECT, WRITER, "UPDATE"), (("f", R, "WRITER_PRIVILEGES"),)),
    "f UPDATE of a column": (
        grant(EFFECT, WRITER, "UPDATE", object="column", column="run_id"), (("f", R, "WRITER_PRIVILEGES"),),
    ),
    "f TRIGGER": (grant(NONCE, WRITER, "TRIGGER"), (("f", R, "WRITER_PRIVILEGES"),)),
    "f passes it on": (
        edit("grants", at(EFFECT, grantee=WRITER, privilege="INSERT"), grantable=True),
        (("f", R, "WRITER_PRIVILEGES"),),
    ),
    "f no INSERT": (
        drop("grants", at(EFFECT, grantee=WRITER, privilege="INSERT")), (("f", U, "WRITER_UNPROVEN"),),
    ),
    "f everybody inserts": (grant(EFFECT, None, "INSERT"), (("f", R, "OTHERS_MAY_WRITE"),)),
    "f another inserts": (both(role("other"), grant(EFFECT, "other", "INSERT")), (("f", R, "OTHERS_MAY_WRITE"),)),
    "f another inserts columns": (
        both(role("other"), grant(NONCE, "other", "INSERT", object="column", column="authorization_nonce")),
        (("f", R, "OTHERS_MAY_WRITE"),),
    ),
    "f another by way of a group": (
        both(
            role("crew", login=False), role("other"), grant(EFFECT, "crew", "INSERT"),
            member("crew", "other", inherit=True),
        ),
        (("f", R, "OTHERS_MAY_WRITE"),),
    ),
    "f another writes everything": (
        both(role("other"), member("pg_write_all_data", "other", inherit=True)), (("f", R, "OTHERS_MAY_WRITE"),),
    ),
    "f a maker of roles inserts": (
        both(role("maker", create_role=True), grant(EFFECT, "maker", "INSERT")), (("f", R, "OTHERS_MAY_WRITE"),),
    ),
    "f a maker of roles is the writer": (
        both(role("maker", create_role=True), member(WRITER, "maker", set=True, admin=True)),
        (("f", R, "WRITER_SHARED"),),
    ),
    "f writer lent out": (both(role("other"), member(WRITER, "other", admin=True)), (("f", R, "WRITER_SHARED"),)),
    "f writer shared": (both(role("other"), member(WRITER, "other", set=True)), (("f", R, "WRITER_SHARED"),)),
    "f schema for everybody": (
        schema_grant(None), (("f", R, "SCHEMA_CREATE"),),
    ),
    "f schema for the writer": (
        schema_grant(WRITER),
        (("f", R, "SCHEMA_CREATE"),),
    ),
    "f parameter": (
        add("parameters", parameter="session_replication_role", grantee=WRITER, privilege="SET"),
        (("f", R, "PARAMETER_GRANTED"),),
    ),
    "f parameter for everybody": (
        add("parameters", parameter="session_replication_role", grantee=None, privilege="SET"),
        (("f", R, "PARAMETER_GRANTED"),),
    ),
    "f other parameter": (
        add("parameters", parameter="log_statement", grantee=WRITER, privilege="SET"), (("f", U, "PARAMETER_GRANTED"),),
    ),
    "f parameter of another": (
        both(role("other"), add("parameters", parameter="fsync", grantee="other", privilege="ALTER SYSTEM")),
        (("f", U, "PARAMETER_GRANTED"),),
    ),
    "f parameter of an unknown role": (
        add("parameters", parameter="session_replication_role", grantee="other", privilege="SET"),
        (("f", U, "PARAMETER_GRANTED"),),
    ),
    "f files of another": (
        both(role("other"), member("pg_write_server_files", "other", inherit=True)), (("f", U, "OTHERS_MAY_WRITE"),),
    ),
    "f programs of another by way of a group": (
        both(
            role("other"), role("crew", login=False), member("crew", "other", set=True),
            member("pg_execute_server_program", "crew", inherit=True),
        ),
        (("f", U, "OTHERS_MAY_WRITE"),),
    ),
    "f large objects of everybody": (add("file_functions", **FILES), (("f", U, "OTHERS_MAY_WRITE"),)),
    "f large objects of another": (
        add("file_functions", **{**FILES, "grantee": "other"}), (("f", U, "OTHERS_MAY_WRITE"),),
    ),
    "f large objects of the writer": (
        add("file_functions", **{**FILES, "grantee": WRITER}), (("f", U, "WRITER_PRIVILEGES"),),
    ),
    "f sleeping triggers": (setting("session_replication_role", "replica"), (("f", R, "REPLICATION_ROLE"),)),
    "f sleeping triggers of the server": (
        edit("commit", {"name": "session_replication_role"}, value="replica"), (("f", R, "REPLICATION_ROLE"),),
    ),
    "f triggers hidden": (
        edit("commit", {"name": "session_replication_role"}, source="user"), (("f", U, "COMMIT_UNKNOWN"),),
    ),
    "f subscription": (add("subscriptions", **at(EFFECT, subscriptions=1)), (("f", R, "REPLICATED_INTO"),)),
    "f inherits": (
        add("inheritance", parent_schema="old", parent="all", schema="surface", relation=EFFECT.name, partition=False),
        (("f", U, "INHERITED"),),
    ),
    "f view": (
        both(add("views", **VIEW), grant(RelationName("surface", "shown"), None, "INSERT", object="view")),
        (("f", R, "OTHERS_MAY_WRITE"),),
    ),
    "f view of the writer": (
        both(add("views", **VIEW), grant(RelationName("surface", "shown"), WRITER, "DELETE", object="view")),
        (("f", R, "WRITER_PRIVILEGES"),),
    ),
    "f function for the writer": (
        add("mentions", **{**FUNCTION, "executors": [WRITER]}), (("f", U, "DEFINER_FUNCTION"),),
    ),
    "f function": (add("mentions", **FUNCTION), (("f", U, "DEFINER_FUNCTION"),)),
    "f trigger function elsewhere": (
        add("mentions", **{**FUNCTION, "trigger": True, "executors": ["registrar_owner"]}),
        (("f", U, "DEFINER_FUNCTION"),),
    ),
    "f rule elsewhere": (add("rules_elsewhere", **RULE), (("f", U, "RULE_UNREVIEWED"),)),
    "f definer that names nothing": (add("definers", **DEFINER), (("f", U, "DEFINER_FUNCTION"),)),
    "f definer whose name with its schema is another's": (
        both(
            add("mentions", **{**FUNCTION, "schema": "a", "name": "b.c", "definer": False}),
            add("definers", **{**DEFINER, "schema": "a.b", "name": "c"}),
        ),
        (("f", U, "DEFINER_FUNCTION"),),
    ),
    "f definer of a superuser": (
        add("definers", **{**DEFINER, "owner": "boss", "superuser": True}), (("f", U, "DEFINER_FUNCTION"),),
    ),
    "f definer of the writer": (add("definers", **{**DEFINER, "owner": WRITER}), (("f", U, "DEFINER_FUNCTION"),)),
    "f definer for the writer": (
        add("definers", **{**DEFINER, "executors": [WRITER]}), (("f", U, "DEFINER_FUNCTION"),),
    ),
    "f definer of a member of the owner": (
        both(
            role("crew"), member("registrar_owner", "crew", set=True),
            add("definers", **{**DEFINER, "owner": "crew"}),
        ),
        (("f", U, "DEFINER_FUNCTION"),),
    ),
    "f definer that anybody may make a trigger of": (
        add("definers", **{**DEFINER, "trigger": True}), (("f", U, "DEFINER_FUNCTION"),),
    ),
    "f definer that is a trigger elsewhere": (
        add("definers", **{**DEFINER, "trigger": True, "executors": [], "attached": ["public.t"]}),
        (("f", U, "DEFINER_FUNCTION"),),
    ),
    "f trigger function that is off here": (
        both(
            add("mentions", **{**FUNCTION, "trigger": True}),
            add("triggers", **at(EFFECT), **{**TRIGGER, "function": "surface.admit", "enabled": "D"}),
        ),
        (("f", U, "DEFINER_FUNCTION"),),
    ),
    "f trigger function here and elsewhere": (
        both(
            add("mentions", **{**FUNCTION, "trigger": True}),
            add("triggers", **at(EFFECT), **{**TRIGGER, "function": "surface.admit", "events": ["update"]}),
        ),
        (("f", U, "DEFINER_FUNCTION"),),
    ),
    "f tried, update": (answer("owner-update", **ADMITTED), (("f", R, "CHANGE_ADMITTED"),)),
    "f tried, nothing said": (
        answer("owner-delete-nonce", **{**ADMITTED, "affected": 0}), (("f", U, "SILENTLY_IGNORED"),),
    ),
    "f tried, truncated": (answer("owner-truncate", **{**ADMITTED, "affected": 0}), (("f", R, "CHANGE_ADMITTED"),)),
    "f tried, by chance": (answer("owner-update", sqlstate="23514"), (("f", U, "PROBE_FAILED"),)),
    "f tried, locked": (answer("writer-update", sqlstate="55P03"), (("f", U, "PROBE_FAILED"),)),
    "f tried, stranger": (answer("stranger-insert", **ADMITTED), (("f", R, "STRANGER_ADMITTED"),)),
    # g
    "g unlogged": (edit("relations", at(AUDIT), persistence="u"), (("g", R, "UNLOGGED"),)),
    "g unguarded": (drop("triggers", at(AUDIT)), (("g", U, "GUARD_UNREVIEWED"),)),
    "g not for the writer": (
        drop("grants", at(AUDIT, grantee=WRITER, privilege="INSERT")), (("g", R, "AUDIT_UNWRITABLE"),),
    ),
    "g triggers of everybody": (grant(AUDIT, None, "TRIGGER"), (("g", R, "OTHERS_MAY_WRITE"),)),
    "g triggers of another": (
        both(role("other"), grant(AUDIT, "other", "TRIGGER")), (("g", R, "OTHERS_MAY_WRITE"),),
    ),
    "g triggers of the writer": (grant(AUDIT, WRITER, "TRIGGER"), (("g", R, "WRITER_PRIVILEGES"),)),
    "g tied": (
        add("references", **{**FK, "relation": AUDIT.name, "to_relation": EFFECT.name}), (("g", R, "AUDIT_LOST"),),
    ),
    "g lost": (
        answer("audit-survives", rows=({"audit": 0, "effect": 0, "nonce": 0},)), (("g", R, "AUDIT_LOST"),),
    ),
    "g one refusal of each": (
        answer("audit-again", sqlstate="23505", affected=None, constraint="once"), (("g", R, "AUDIT_UNWRITABLE"),),
    ),
    "g second refusal not tried": (without("audit-again"), (("g", U, "PROBE_FAILED"),)),
    "g something unique": (
        add("indexes", **(ATTEMPTS | {"relation": AUDIT.name, "columns": ["code"]})), (("g", U, "AUDIT_UNWRITABLE"),),
    ),
    "g something unique for some": (
        add("indexes", **(ATTEMPTS | {"relation": AUDIT.name, "columns": [None], "predicate": "(code = 'x'::text)"})),
        (("g", U, "AUDIT_UNWRITABLE"),),
    ),
    "g something excluded": (
        add("indexes", **(ATTEMPTS | {"relation": AUDIT.name, "columns": ["audit_id"], "exclusion": True})),
        (("g", U, "AUDIT_UNWRITABLE"),),
    ),
    "g the request is the key": (
        edit("indexes", at(AUDIT, primary=True), columns=[KEY]), (("g", U, "AUDIT_UNWRITABLE"),),
    ),
    "g erased": (answer("owner-delete-audit", **ADMITTED), (("g", R, "CHANGE_ADMITTED"),)),
    # h
    "h nullable": (column(EFFECT, "decision_id", not_null=False), (("h", U, "DECISION_NULLABLE"),)),
    "h unreadable": (
        drop("grants", at(EFFECT, grantee=WRITER, privilege="SELECT")), (("h", R, "DECISION_HIDDEN"),),
    ),
    "h row security": (edit("relations", at(EFFECT), row_security=True), (("h", U, "ROW_SECURITY"),)),
    "h row security of the nonce": (edit("relations", at(NONCE), row_security=True), (("h", U, "ROW_SECURITY"),)),
    "h hidden": (answer("read-back", rows=()), (("h", R, "DECISION_HIDDEN"),)),
    "h empty": (answer("read-back", rows=({"decision": None},)), (("h", R, "DECISION_NULLABLE"),)),
    # i
    "i cascade": (add("references", **{**FK, "on_delete": "c"}), (("i", R, "CASCADE"),)),
    "i set null": (add("references", **{**FK, "on_delete": "n"}), (("i", R, "CASCADE"),)),
    "i set default": (add("references", **{**FK, "on_update": "d"}), (("i", R, "CASCADE"),)),
    "i cascade to others": (
        add("references", **{
            **FK, "relation": "other", "to_relation": NONCE.name, "on_delete": "c",
        }), (("i", R, "CASCADE"),),
    ),
    "i time to live": (
        add("columns", **at(EFFECT, name="expires", base_type="pg_catalog.timestamptz", domain_default=None,
                            default="(now() + '90 days'::interval)")),
        (("i", R, "RETENTION_TTL"),),
    ),
    "i an own function": (
        column(EFFECT, "attempt_id", default="surface.until()"), (("i", U, "RETENTION_UNKNOWN"),),
    ),
    "i a span": (
        add("columns", **at(NONCE, name="keep", base_type="pg_catalog.interval", domain_default=None,
                            default="'1 day'::interval")),
        (("i", R, "RETENTION_TTL"),),
    ),
    "i seconds": (
        column(EFFECT, "attempt_id", default="((EXTRACT(epoch FROM now()))::bigint + 86400)"),
        (("i", R, "RETENTION_TTL"),),
    ),
    "i a default of a domain": (
        column(EFFECT, "attempt_id", domain_default="(now() + '1 day'::interval)"), (("i", R, "RETENTION_TTL"),),
    ),
    "i a fixed time": (
        add("columns", **at(EFFECT, name="expires", base_type="pg_catalog.timestamptz", domain_default=None,
                            default="'9999-12-31 00:00:00+00'::timestamp with time zone")),
        (("i", U, "RETENTION_UNKNOWN"),),
    ),
    "i end unknown": (
        add("columns", **at(EFFECT, name="retain_until", base_type="pg_catalog.timestamptz", domain_default=None,
                            default=None)),
        (("i", U, "RETENTION_UNKNOWN"),),
    ),
    "i partitions of time": (
        edit("relations", at(NONCE), kind="p", partition_key="RANGE (at)", partition_strategy="r"),
        (("i", R, "PARTITION_DROPPABLE"),),
    ),
    "i job": (
        add("jobs_cron", command="DELETE FROM surface.consumed_request", schedule="", role="x", active=True),
        (("i", R, "JOB"),),
    ),
    "i job that only looks": (
        add("jobs_pgagent", command="VACUUM consumed_nonce", name="x", active=True), (("i", U, "JOB"),),
    ),
    "i job that calls": (
        both(
            add("mentions", **{**FUNCTION, "name": "tidy", "definer": False, "definition": f"DELETE FROM {EFFECT}"}),
            add("jobs_cron", command="SELECT surface.tidy()", schedule="", role="x", active=True),
        ),
        (("i", R, "JOB"),),
    ),
    "i chunks": (
        add("jobs_timescaledb", name="retention", command="policy_retention", relation=EFFECT.name, config="{}"),
        (("i", R, "JOB"),),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_one_change_turns_the_criteria_that_it_concerns_and_no_other(fit: Evidence, name: str) -> None:
    change, expected = CHANGES[name]
    judgement = judge(change(fit), Policy())
    standings = {
        finding.criterion.value: finding.standing
        for finding in judgement.findings
        if finding.standing is not Standing.PROVEN
    }
    described = [(reason.criterion.value, reason.code, reason.text) for reason in judgement.reasons]
    assert standings == {letter: standing for letter, standing, _ in expected}, described
    for letter, _, code in expected:
        assert (letter, code) in {(letter, code) for letter, code, _ in described}, described
    assert judgement.status is Status.NOT_FIT


def test_the_surface_is_fit_and_every_criterion_says_what_it_rests_on(fit: Evidence) -> None:
    judgement = judge(fit, Policy())
    assert judgement.status is Status.FIT
    assert [finding.criterion for finding in judgement.findings] == list(Criterion)
    assert all(finding.rows and not finding.reasons for finding in judgement.findings)
    assert [finding.criterion.value for finding in judgement.findings if not finding.probes] == ["i"]
    assert judge(fit, Policy()) == judgement


HARMLESS: dict[str, tuple[_Edit, Policy]] = {
    "a reviewed trigger": (add("triggers", **at(EFFECT), **TRIGGER), Policy(reviewed=("stamp",))),
    "a reviewed trigger by its full name": (
        add("triggers", **at(EFFECT), **TRIGGER), Policy(reviewed=(f"{EFFECT}.stamp",)),
    ),
    "f reviewed event trigger": (add("event_triggers", **WATCH), Policy(reviewed=("watch",))),
    "f reviewed function of an event trigger": (
        add("event_triggers", **WATCH), Policy(reviewed=("public.watch",)),
    ),
    "e reviewed function of a login trigger": (
        add("event_triggers", **LOGIN), Policy(reviewed=("public.greet",)),
    ),
    "e reviewed table space": (edit("relations", at(EFFECT), tablespace="fast"), Policy(reviewed=("fast",))),
    "f reviewed administrator": (
        both(role("dba"), member("registrar_owner", "dba", admin=True)), Policy(reviewed=("dba",)),
    ),
    "f reviewed maker of roles, before 16": (
        both(edit("server", {}, number=150000), MAKER), Policy(reviewed=("maker",)),
    ),
    "f maker of roles since 16": (both(edit("server", {}, number=160000), MAKER), Policy()),
    "a key of 128 bits": (narrow(EFFECT, "replay_key", "~ '^[0-9a-f]{32}$'::text"), Policy()),
    "a nonce whose form is not read": (narrow(NONCE, "authorization_nonce", "~ '^(a|b)[0-9]{6}$'::text"), Policy()),
    "a trigger that is off": (add("triggers", **at(EFFECT), **{**TRIGGER, "enabled": "D"}), Policy()),
    "policies that let everything through": (
        both(
            edit("relations", at(EFFECT), row_security=True),
            add("policies", **at(
                EFFECT, name="all", permissive=True, command="all", roles=[None], using="true", check=None
            )),
        ),
        Policy(),
    ),
    "columns instead of the table": (
        both(
            drop("grants", at(EFFECT, grantee=WRITER, privilege="SELECT")),
            grant(EFFECT, WRITER, "SELECT", object="column", column=KEY),
            grant(EFFECT, WRITER, "SELECT", object="column", column="decision_id"),
        ),
        Policy(),
    ),
    "an end beyond the horizon": (
        add("columns", **at(EFFECT, name="expires", base_type="pg_catalog.timestamptz", domain_default=None,
                            default="(now() + '2 years'::interval)")),
        Policy(horizon_seconds=700 * 86_400),
    ),
    "kept for ever": (
        add("columns", **at(EFFECT, name="retain_until", base_type="pg_catalog.timestamptz", domain_default=None,
                            default="'infinity'::timestamp with time zone")),
        Policy(),
    ),
    "a plain foreign key": (add("references", **FK), Policy()),
    "a member that can neither inherit nor become": (both(role("other"), member(WRITER, "other")), Policy()),
    "who made the writer's role": (
        both(role("maker", create_role=True), member(WRITER, "maker", admin=True)), Policy(),
    ),
    "a superuser in the writer's role": (
        both(role("boss", superuser=True), member(WRITER, "boss", set=True, inherit=True)), Policy(),
    ),
    "a group of the writer alone": (
        both(
            role("crew", login=False), member("crew", WRITER, inherit=True), grant(EFFECT, "crew", "INSERT"),
        ),
        Policy(),
    ),
    "a view that runs as who asks": (
        both(
            add("views", **{**VIEW, "options": ["security_invoker=true"]}),
            grant(RelationName("surface", "shown"), None, "INSERT", object="view"),
        ),
        Policy(),
    ),
    "a view that cannot be written": (
        both(
            add("views", **{**VIEW, "updatable": 0}),
            grant(RelationName("surface", "shown"), None, "INSERT", object="view"),
        ),
        Policy(),
    ),
    "a function for its owner only": (add("mentions", **{**FUNCTION, "executors": ["registrar_owner"]}), Policy()),
    "a trigger function that was reviewed": (
        add("mentions", **{**FUNCTION, "trigger": True}), Policy(reviewed=("surface.admit",)),
    ),
    "a trigger function whose trigger was reviewed": (
        both(
            add("mentions", **{**FUNCTION, "trigger": True}),
            add("triggers", **at(EFFECT), **{**TRIGGER, "function": "surface.admit"}),
        ),
        Policy(reviewed=("stamp",)),
    ),
    "a guard that speaks of the surface and runs as its owner": (
        add("mentions", **{**FUNCTION, "trigger": True, "name": "refuse_change"}), Policy(),
    ),
    "a check whose function was reviewed": (
        edit("constraints", at(EFFECT, columns=[KEY]), definition=f"CHECK (surface.canon({KEY}))"),
        Policy(reviewed=("surface.canon",)),
    ),
    "a check with a point in its text, in a number and before a word of PostgreSQL's": (
        edit(
            "constraints",
            at(EFFECT, columns=[KEY]),
            definition=f"CHECK ((({KEY} ~ '^[0-9a-f]{{64}}$'::text) AND ({KEY} ~ 'a.b(c)'::text) AND "
            f"(length({KEY}) OPERATOR(pg_catalog.>) 1.5)))",
        ),
        Policy(),
    ),
    "a check with a constant of a user's type": (
        edit(
            "constraints", at(EFFECT, columns=[KEY]),
            definition=f"CHECK ((({KEY} ~ '^[0-9a-f]{{64}}$'::text) AND ({KEY} <> ('x'::surface.\"Kind\")::text)))",
        ),
        Policy(),
    ),
    "a check whose cast was reviewed": (
        edit("constraints", at(EFFECT, columns=[KEY]), calls=["mine.as_number"]), Policy(reviewed=("mine.as_number",)),
    ),
    "a type of a superuser's": (
        both(role("boss", superuser=True), add("owners", **at(EFFECT), **{**TYPE, "owner": "boss"})), Policy(),
    ),
    "a type of who can act as the owner": (
        both(role("crew"), member("registrar_owner", "crew", inherit=True), add("owners", **at(EFFECT), **TYPE)),
        Policy(reviewed=("crew",)),
    ),
    "a database and a schema of the owner's": (
        both(
            edit("database", {}, owner="registrar_owner"),
            edit("owners", at(EFFECT, kind="schema"), owner="pg_database_owner"),
        ),
        Policy(),
    ),
    "an audit, and its guard, of a clerk": (
        both(
            role("clerk"), edit("relations", at(AUDIT), owner="clerk"),
            edit("grants", at(AUDIT, grantee="registrar_owner"), grantee="clerk"),
            edit("owners", at(AUDIT, name=GUARD), owner="clerk"),
        ),
        Policy(),
    ),
    "a rule elsewhere that was reviewed": (add("rules_elsewhere", **RULE), Policy(reviewed=("aside",))),
    "a rule elsewhere that is off": (add("rules_elsewhere", **{**RULE, "enabled": "D"}), Policy()),
    "a definer that was reviewed": (add("definers", **DEFINER), Policy(reviewed=("surface.admit",))),
    "a definer for its owner only": (add("definers", **{**DEFINER, "executors": ["registrar_owner"]}), Policy()),
    "a definer of a role that may not write": (
        both(role("reader"), add("definers", **{**DEFINER, "owner": "reader"})), Policy(),
    ),
    "a definer that only raises": (
        add("definers", **{
            **DEFINER, "trigger": True, "attached": ["public.t"],
            "definition": "CREATE\nAS $function$\nBEGIN RAISE EXCEPTION 'no'; END\n$function$\n",
        }),
        Policy(),
    ),
    "a definer in a trigger that was reviewed": (
        both(
            add("definers", **{**DEFINER, "trigger": True}),
            add("triggers", **at(EFFECT), **{**TRIGGER, "function": "surface.admit"}),
        ),
        Policy(reviewed=("stamp",)),
    ),
    "a check of another form that was reviewed": (
        edit("constraints", at(EFFECT, columns=[KEY]), definition=f"CHECK (({KEY} ~ '^(a|b)$'::text))"),
        Policy(reviewed=("consumed_request_logical_request_key_check",)),
    ),
    "an attempt beside a key": (
        add("indexes", **{**ATTEMPTS, "columns": ["decision_id", "attempt_id"]}), Policy(),
    ),
    "an attempt that an index carries along": (
        add("indexes", **{**ATTEMPTS, "columns": [KEY], "included": ["attempt_id"]}), Policy(),
    ),
    "races of serializable transactions": (
        both(outrun("race", 1), outrun("race-nonce", 1), outrun("race-arbiter", 1)), Policy(),
    ),
    "a function that was reviewed": (add("mentions", **FUNCTION), Policy(reviewed=("surface.admit",))),
    "a job on other tables": (
        add("jobs_cron", command="DELETE FROM consumed_request_log", schedule="", role="x", active=True), Policy(),
    ),
    "an index whose function was reviewed": (
        add("indexes", **{**PLAIN, "expressions": "surface.f(run_id)"}), Policy(reviewed=("surface.f",)),
    ),
    "an index that was reviewed": (
        add("indexes", **{**PLAIN, "calls": ["surface.f"]}), Policy(reviewed=("plain",)),
    ),
    "a check of the moment that was reviewed": (
        add("constraints", **{**at(AUDIT), **CHECK, "volatile": ["now"]}), Policy(reviewed=("said",)),
    ),
    "a check that is not enforced": (
        add("constraints", **{**at(AUDIT), **CHECK, "volatile": ["now"], "enforced": False}), Policy(),
    ),
    "a default of the audit that was reviewed": (
        column(AUDIT, "code", calls=["surface.f"]), Policy(reviewed=("surface.f",)),
    ),
    "parameters and files of superusers": (
        both(
            role("boss", superuser=True), member("pg_write_server_files", "boss", inherit=True),
            add("parameters", parameter="fsync", grantee="boss", privilege="SET"),
            add("file_functions", **{**FILES, "grantee": "boss"}), grant(AUDIT, "boss", "TRIGGER"),
        ),
        Policy(),
    ),
    "others who append to the audit": (both(role("other"), grant(AUDIT, "other", "INSERT")), Policy()),
    "a login trigger that was reviewed": (add("event_triggers", **LOGIN), Policy(reviewed=("greet",))),
    "a login trigger that is off": (add("event_triggers", **{**LOGIN, "enabled": "D"}), Policy()),
    "the server will commit late, the writer not": (
        both(add("waiting", name="synchronous_commit", value="off"), setting("synchronous_commit", "on")), Policy(),
    ),
    "what is on after a reload": (add("waiting", name="fsync", value="on"), Policy()),
    "a commit that waits for standbys": (setting("synchronous_commit", "remote_apply"), Policy()),
    "the server commits late, the writer does not": (
        both(edit("commit", {"name": "synchronous_commit"}, value="off"), setting("synchronous_commit", "on")),
        Policy(),
    ),
    "what is unique in the audit with its primary key": (
        add("indexes", **(ATTEMPTS | {"relation": AUDIT.name, "columns": ["code", "audit_id"]})), Policy(),
    ),
    "a number of the server's own in the audit": (
        both(
            add("columns", **at(AUDIT, name="place", default="nextval('s'::regclass)", **MADE_UP)),
            add("columns", **at(AUDIT, name="mark", default="gen_random_uuid()", **MADE_UP)),
            add("indexes", **(ATTEMPTS | {"relation": AUDIT.name, "columns": ["place"]})),
            add("indexes", **(ATTEMPTS | {"relation": AUDIT.name, "columns": ["mark"]})),
        ),
        Policy(),
    ),
    "a composite key beside the sound one": (
        add("indexes", **{
            **at(EFFECT), "name": "by_both", "unique": True, "primary": False, "exclusion": False, "immediate": True,
            "valid": True, "ready": True, "live": True, "method": "btree", "predicate": None, "expressions": None,
            "period": False, "constraint": None, "columns": [KEY, "attempt_id"], "included": [], "definition": "",
            "calls": [],
            "opclasses": ["pg_catalog.text_ops"] * 2, "collations": ["pg_catalog.C"] * 2, "deterministic": True,
        }),
        Policy(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMLESS)
def test_the_accepted_neighbour_stays_fit(fit: Evidence, name: str) -> None:
    change, policy = HARMLESS[name]
    judgement = judge(change(fit), policy)
    assert judgement.status is Status.FIT, [(reason.code, reason.text) for reason in judgement.reasons]


@pytest.mark.parametrize(
    ("definition", "standing"),
    [
        ("CHECK ((operation = 'register_dot'::text))", Standing.PROVEN),
        ("CHECK (((operation)::text = 'register_dot'::text))", Standing.PROVEN),
        ("CHECK (((operation)::text = ANY ((ARRAY['register_dot'::character varying])::text[])))", Standing.PROVEN),
        ("CHECK ((operation = ANY (ARRAY['register_dot'::text])))", Standing.PROVEN),
        ("CHECK (((operation = 'register_dot'::text) AND (length(operation) > 0)))", Standing.PROVEN),
        ("CHECK (((operation = 'register_dot'::text) OR (run_id = 'x'::text)))", U),
        ("CHECK (((operation = 'register_dot'::text) AND surface.known(operation)))", U),
        ("CHECK ((operation OPERATOR(surface.=) 'register_dot'::text))", U),
        ("CHECK ((operation ~~ 'register_dot%'::text))", U),
        ("CHECK ((NOT (operation <> 'register_dot'::text)))", U),
        ("CHECK ((lower(operation) = 'register_dot'::text))", U),
        # It was tried and refused; the other one was not tried.
        ("CHECK ((operation = ANY (ARRAY['register_dot'::text, 'inbound'::text])))", U),
        ("CHECK ((operation = ANY (ARRAY['register_dot'::text, 'deregister_dot'::text])))", R),
        ("CHECK ((operation = ANY (ARRAY['inbound'::text, 'outbound'::text])))", R),
        ("CHECK ((operation = 'it''s register_dot AND (('::text))", R),
    ],
)
def test_only_a_plain_list_shows_the_domain(fit: Evidence, definition: str, standing: Standing) -> None:
    changed = edit("constraints", at(EFFECT, columns=["operation"]), definition=definition)(fit)
    finding = judge(changed, Policy()).findings[3]
    assert (finding.criterion, finding.standing) == (Criterion.DOMAIN, standing), finding.reasons


def one_check(form: str) -> _Edit:
    """All checks of the effect as one, which refuses what they refused; `form` has a place for all conditions."""

    def apply(evidence: Evidence) -> Evidence:
        rows = rows_of(evidence, "constraints")
        checks = [row for row in rows if row["kind"] == "c" and row["relation"] == EFFECT.name]
        columns = sorted({*(name for row in checks for name in row["columns"]), "attempt_id"})
        definition = form.format(" AND ".join(str(row["definition"]).removeprefix("CHECK ") for row in checks))
        one = {**checks[0], "name": "one", "columns": columns, "definition": definition}
        names = {row["name"] for row in checks}

        def renamed(answer: ProbeAnswer) -> ProbeAnswer:
            said = {"constraint": "one", "message": 'violates check constraint "one"'}
            return structs.replace(answer, **said) if answer.constraint in names else answer

        changed = with_rows(evidence, "constraints", (*(row for row in rows if row not in checks), one))
        probes = (structs.replace(probe, answers=tuple(map(renamed, probe.answers))) for probe in changed.probes)
        return replace(changed, probes=tuple(probes))

    return apply


def test_one_check_of_all_columns_is_read_condition_by_condition(fit: Evidence) -> None:
    assert judge(one_check("CHECK (({0}))")(fit), Policy()).status is Status.FIT
    # Another condition that speaks of a column together with others may be the one that refused.
    for more in ("(run_id <> attempt_id)", "(surface.known(consumed_request.*))"):
        judgement = judge(one_check(f"CHECK (({{0}} AND {more}))")(fit), Policy())
        assert judgement.findings[2].standing is U


def test_one_check_that_is_not_read_is_one_reason_of_each_criterion(fit: Evidence) -> None:
    changed = one_check("CHECK (((attempt_id = 'free'::text) OR ({0})))")(fit)
    judgement = judge(changed, Policy())
    assert [finding.criterion.value for finding in judgement.findings if finding.standing is U] == ["a", "c", "d"]
    assert len(judgement.reasons) == 3
    assert contradictions(changed, judgement, lambda name: _by_check(changed, name)) == []


def _by_check(evidence: Evidence, name: str) -> bool:
    probe = evidence.probe(name)
    return probe is not None and probe.answer is not None and probe.answer.sqlstate == "23514"


def test_declared_evidence_stands_for_the_constraint_but_never_against_one(fit: Evidence) -> None:
    declared = Policy(domain_evidence="only the registrar of dots writes here")
    dropped = both(drop("constraints", at(EFFECT, columns=["operation"])), answer("other-operation", **ADMITTED))(fit)
    assert judge(dropped, Policy()).findings[3].standing is R
    assert judge(dropped, declared).findings[3].standing is Standing.PROVEN
    routing = "CHECK ((operation = ANY (ARRAY['inbound'::text, 'outbound'::text])))"
    other = edit("constraints", at(EFFECT, columns=["operation"]), definition=routing)(fit)
    assert judge(other, declared).findings[3].standing is R


@pytest.mark.parametrize("lost", [EvidenceClass.CATALOGUE, EvidenceClass.CLONE])
def test_a_lost_class_of_evidence_leaves_everything_unproven(fit: Evidence, lost: EvidenceClass) -> None:
    probes = () if lost is EvidenceClass.CLONE else fit.probes
    judgement = judge(replace(fit, probes=probes, lost={lost: "gone"}), Policy())
    assert {finding.standing for finding in judgement.findings} == {U}
    assert all("EVIDENCE_MISSING" in {reason.code for reason in finding.reasons} for finding in judgement.findings)


def test_what_stood_in_the_way_of_the_probes_is_said_by_every_criterion(fit: Evidence) -> None:
    only = Probe("first", EvidenceClass.CLONE, (), (), "the value for k does not differ from row to row")
    judgement = judge(replace(fit, probes=(only,)), Policy())
    assert {finding.standing for finding in judgement.findings} == {U}
    for finding in judgement.findings:
        assert only.failed in " ".join(r.text for r in finding.reasons if r.code == "EVIDENCE_MISSING")


def test_lost_privileges_and_races_leave_what_needs_them_unproven(fit: Evidence) -> None:
    for lost, letters in ((EvidenceClass.PRIVILEGES, "fgh"), (EvidenceClass.CONCURRENCY, "eg")):
        findings = judge(replace(fit, lost={lost: "gone"}), Policy()).findings
        assert "".join(each.criterion.value for each in findings if each.standing is not Standing.PROVEN) == letters


def _reads(fit: Evidence, query: str) -> str:
    """The criteria that are not proven without a query."""
    snapshot = fit.snapshot
    structure = {name: rows for name, rows in snapshot.structure.items() if name != query}
    circumstances = {name: rows for name, rows in snapshot.circumstances.items() if name != query}
    circumstances["unreadable"] = {query: "42501 permission denied"}
    evidence = replace(fit, snapshot=Snapshot(snapshot.dialect, structure, circumstances))
    judgement = judge(evidence, Policy())
    for finding in judgement.findings:
        assert finding.standing is not R, finding.reasons
        if finding.standing is U:
            assert "CATALOGUE_UNREADABLE" in {reason.code for reason in finding.reasons}
    return "".join(each.criterion.value for each in judgement.findings if each.standing is U)


@pytest.mark.parametrize(
    ("query", "criteria"),
    [
        ("relations", "abcdefghi"), ("columns", "abcdehi"), ("indexes", "abe"), ("constraints", "acd"),
        ("domain_checks", "acd"), ("triggers", "abfg"), ("rules", "ab"), ("inheritance", "abefg"),
        ("functions", "f"), ("mentions", "f"), ("views", "f"), ("schemas", "f"), ("grants", "fgh"), ("roles", "fgh"),
        ("memberships", "fgh"),
        ("database", "fgh"), ("role_settings", "ef"), ("parameters", "f"), ("subscriptions", "f"), ("durability", "e"),
        ("owners", "fg"), ("rules_elsewhere", "f"), ("definers", "f"), ("file_functions", "f"),
        ("event_triggers", "ef"), ("administrators", "f"),
        ("references", "gi"), ("prepared", "e"), ("commit", "e"), ("jobs_cron", "i"), ("jobs_partman", "i"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_unproven(fit: Evidence, query: str, criteria: str) -> None:
    assert set(criteria) <= set(_reads(fit, query))


def test_that_files_of_settings_were_not_read_is_a_note(fit: Evidence) -> None:
    assert _reads(fit, "waiting") == ""
    circumstances = {name: rows for name, rows in fit.snapshot.circumstances.items() if name != "waiting"}
    snapshot = structs.replace(fit.snapshot, circumstances={**circumstances, "unreadable": {"waiting": "42501 denied"}})
    (note,) = (each for each in judge(replace(fit, snapshot=snapshot), Policy()).notes if "42501" in each)
    assert note.startswith("whether the next reload switches fsync or a commit's waiting off was not looked at: ")


def test_a_probe_on_the_live_table_can_only_refute(fit: Evidence) -> None:
    twice = Probe(
        "live-same-key", EvidenceClass.LIVE, (Statement("live", WRITER, "INSERT"),), (ProbeAnswer(None, "", 1),)
    )
    assert judge(replace(fit, probes=(*fit.probes, twice)), Policy()).findings[0].standing is R
    refused = structs.replace(twice, answers=(ProbeAnswer("23505", "", None, (), UNIQUE),))
    assert judge(replace(fit, probes=(*fit.probes, refused)), Policy()).status is Status.FIT
    alone = tuple(each for each in fit.probes if each.name != "same-key")
    assert judge(replace(fit, probes=(*alone, refused)), Policy()).findings[0].standing is U


def test_without_parts_the_criteria_say_what_is_missing(fit: Evidence) -> None:
    surface = structs.replace(fit.surface, parts={Part.EFFECT: EFFECT}, writer=None)
    findings = {each.criterion.value: each for each in judge(replace(fit, surface=surface), Policy()).findings}
    assert {letter: each.standing for letter, each in findings.items() if each.standing is not Standing.PROVEN} == {
        "b": R, "e": U, "f": U, "g": U, "h": U,
    }  # fmt: skip
    same = structs.replace(fit.surface, parts={Part.EFFECT: EFFECT, Part.NONCE: EFFECT, Part.AUDIT: EFFECT})
    findings = {each.criterion.value: each for each in judge(replace(fit, surface=same), Policy()).findings}
    assert "NONCE_NOT_SEPARATE" in {reason.code for reason in findings["b"].reasons}
    assert "AUDIT_NOT_SEPARATE" in {reason.code for reason in findings["g"].reasons}


def test_notes_say_what_a_reader_must_know(fit: Evidence) -> None:
    described = both(
        edit("server", {}, replica=True),
        add("prepared", gid="stuck", owner="x"),
        add("extensions", name="citus", version="12", schema="public"),
        add("publications", **at(EFFECT, publication="out")),
        add("event_triggers", **WATCH),
        add("administrators", role="maker", superuser=False, create_role=True, bypass_row_security=False,
            replication=False, login=True),
        setting("search_path", "mine, public"),
        add("references", **FK),
    )(fit)  # fmt: skip
    notes = "\n".join(judge(described, Policy()).notes)
    for words in ("replica", "stuck", "citus", "published by out", "watch", "maker", "mine, public", "target_fk"):
        assert words in notes
    assert "superusers, whom nothing here binds: " in notes
    elsewhere = "jobs that another database of this server keeps"
    assert elsewhere in notes
    here = add("extensions", name="pg_cron", version="1.6", schema="pg_catalog")(described)
    assert elsewhere not in "\n".join(judge(here, Policy()).notes)
    assert "extensions: none" in judge(drop("extensions", {})(fit), Policy()).notes


@pytest.mark.parametrize("secret", ["dblink('host=db password=s3cret-word')", "https://u:s3cret-word@db/x"])
def test_a_function_that_holds_something_like_a_password_is_named_and_not_quoted(fit: Evidence, secret: str) -> None:
    text = f"CREATE FUNCTION surface.tell() AS $$ SELECT {secret} $$"
    described = judge(add("mentions", **{**FUNCTION, "name": "tell", "definition": text})(fit), Policy()).notes
    (note,) = (note for note in described if "password" in note)
    assert "surface.tell" in note
    assert "s3cret" not in note
    assert not any("password" in note for note in judge(fit, Policy()).notes)


@pytest.mark.parametrize(
    ("body", "plain"),
    [
        ("BEGIN RAISE EXCEPTION '% on %', TG_OP, TG_TABLE_NAME USING ERRCODE = '23001'; END", True),
        ("begin\n  -- nobody; never\n  raise 'it''s; append-only'; return null;\nend;", True),
        ("BEGIN RAISE restrict_violation; END", True),
        ("DECLARE BEGIN RAISE 'no'; END", True),
        ("\n  declare\n  -- nothing\nBEGIN\n  RAISE EXCEPTION 'no';\nEND;\n", True),
        ("DECLARE gone integer := surface.tidy(); BEGIN RAISE 'no'; END", False),
        ("DECLARE gone integer DEFAULT surface.tidy(); BEGIN RAISE 'no'; END", False),
        ("DECLARE none CONSTANT text := ''; BEGIN RAISE 'no'; END", False),
        ("DECLARE BEGIN RAISE 'no'; EXCEPTION WHEN OTHERS THEN RETURN OLD; END", False),
        ("DECLARE BEGIN RAISE NOTICE 'no'; RETURN OLD; END", False),
        ("DECLARE BEGIN DECLARE gone integer := surface.tidy(); BEGIN RAISE 'no'; END; END", False),
        ("DECLAREBEGIN RAISE 'no'; END", False),
        ("BEGIN -- nobody\r\n RAISE 'append-only: \"%\" for $1 -- always', TG_TABLE_NAME; END", True),
        ("BEGIN IF current_setting('x.off', true) = 'on' THEN RETURN OLD; END IF; RAISE EXCEPTION 'no'; END", False),
        ("BEGIN -- x\r IF current_setting('x.off', true) = 'on' THEN RETURN OLD; END IF; --\n RAISE 'no'; END", False),
        (
            "BEGIN /* /* */ RAISE EXCEPTION ' */ IF current_setting('x.off', true) = 'on' THEN RETURN OLD; END IF; "
            "RAISE 'no'; --'; END",
            False,
        ),
        ("BEGIN /* nobody */ RAISE EXCEPTION 'no'; END", False),
        ("BEGIN RAISE EXCEPTION E'\\''; EXCEPTION WHEN OTHERS THEN RETURN OLD; END; --'; END", False),
        ("BEGIN RAISE EXCEPTION $x$'$x$; EXCEPTION WHEN OTHERS THEN RETURN OLD; END; --'; END", False),
        ("BEGIN RAISE USING MESSAGE = \"a'\"; EXCEPTION WHEN OTHERS THEN RETURN OLD; END; --'; END", False),
        ("BEGIN RAISE NOTICE 'no'; RETURN OLD; END", False),
        ("BEGIN RAISE warning 'no'; END", False),
        ("BEGIN RETURN OLD; RAISE EXCEPTION 'no'; END", False),
        ("BEGIN RAISE EXCEPTION 'no'; EXCEPTION WHEN OTHERS THEN RETURN OLD; END", False),
        ("BEGIN RAISE NOTICE 'no'; RAISE EXCEPTION 'no'; END", False),
    ],
)
def test_a_guard_that_does_more_than_raise_has_to_be_reviewed(fit: Evidence, body: str, plain: bool) -> None:
    text = f"CREATE OR REPLACE FUNCTION surface.refuse_change()\n RETURNS trigger\nAS $function$\n{body}\n$function$\n"
    changed = edit("functions", {"name": "refuse_change"}, definition=text)(fit)
    codes = {reason.code for reason in judge(changed, Policy()).reasons}
    assert codes == (set() if plain else {"GUARD_UNREVIEWED"})
    reviewed = Policy(reviewed=("no_change", "no_truncate"))
    assert judge(changed, reviewed).status is Status.FIT


@pytest.mark.parametrize("tag", ["$x$", "$function$"])
def test_a_guard_is_read_in_its_body_and_not_in_a_setting_before_it(fit: Evidence, tag: str) -> None:
    text = (
        'CREATE OR REPLACE FUNCTION surface.refuse_change()\n RETURNS trigger\n LANGUAGE plpgsql\n SET "x.y" TO \'\n'
        f"AS {tag}BEGIN RAISE EXCEPTION ''no''; END{tag}\n'\nAS $function$\nBEGIN RETURN OLD; END\n$function$\n"
    )
    changed = edit("functions", {"name": "refuse_change"}, definition=text)(fit)
    assert {reason.code for reason in judge(changed, Policy()).reasons} == {"GUARD_UNREVIEWED"}


def test_a_function_of_the_guards_name_with_arguments_is_not_the_guard(fit: Evidence) -> None:
    plain = next(row for row in rows_of(fit, "functions") if row["name"] == "refuse_change")
    more = "BEGIN IF TG_OP = 'x' THEN RETURN OLD; END IF; RAISE 'no'; END"
    changed = with_rows(
        fit,
        "functions",
        ({**plain, "arguments": "a text"}, {**plain, "definition": f"AS $function$\n{more}\n$function$\n"}),
    )
    assert {reason.code for reason in judge(changed, Policy()).reasons} == {"GUARD_UNREVIEWED"}


def test_what_a_check_calls_binds_nothing(fit: Evidence) -> None:
    changed = edit("constraints", at(EFFECT, columns=["run_id"]), definition="CHECK (surface.said(run_id))")(fit)
    reasons = judge(changed, Policy()).reasons
    # It also runs at every INSERT, for every column.
    assert {reason.criterion for reason in reasons} == {Criterion.BINDING, Criterion.SINGLE_USE}
    assert {reason.standing for reason in reasons} == {U}
    assert "CHECK_UNREVIEWED" in {reason.code for reason in reasons}
    assert judge(changed, Policy(reviewed=("surface.said",))).status is Status.FIT


@pytest.mark.parametrize(
    ("probe", "affected", "said"),
    [
        ("owner-update", 1, "UPDATE of surface.consumed_request was not refused to the owner: no error, 1 row"),
        ("owner-truncate", 0, "TRUNCATE of surface.consumed_request was not refused to the owner: no error"),
        (
            "writer-delete-nonce",
            0,
            "the change of the probe writer-delete-nonce was not refused and changed nothing: no error, and no row; "
            "whether another change would be refused is not shown; let the guard raise an exception",
        ),
        (
            "stranger-insert",
            0,
            "the row of the probe stranger-insert was neither refused nor added: no error, and no row; a caller "
            "that does not count takes it for added",
        ),
    ],
)
def test_a_reason_says_what_happened_and_no_more(fit: Evidence, probe: str, affected: int, said: str) -> None:
    changed = answer(probe, **{**ADMITTED, "affected": affected})(fit)
    assert [reason.text for reason in judge(changed, Policy()).reasons] == [said]


def test_a_reason_says_how_what_belongs_to_another_becomes_the_owners(fit: Evidence) -> None:
    for row, said in (
        (TYPE, "ALTER TYPE surface.operation OWNER TO registrar_owner"),
        (
            {**TYPE, "kind": "operator class", "name": "a.b USING btree"},
            "ALTER OPERATOR CLASS a.b USING btree OWNER TO",
        ),
        ({**TYPE, "kind": "extension", "name": "citext"}, "REASSIGN OWNED BY crew TO registrar_owner"),
    ):
        (reason,) = judge(add("owners", **at(EFFECT), **row)(fit), Policy()).reasons
        assert said in reason.text


def test_an_attempt_that_a_policy_looks_for_must_be_there(fit: Evidence) -> None:
    elsewhere = judge(fit, Policy(columns={"attempt": "try_no"}))
    (finding,) = [each for each in elsewhere.findings if each.criterion is Criterion.SINGLE_USE]
    assert (finding.standing, [each.code for each in finding.reasons]) == (Standing.UNPROVEN, ["MISSING_COLUMNS"])
