"""The judges, on the evidence of a fit surface with one row or one answer of it changed: each change has its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
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
WRITER, OWNER = "registrar", "registrar_owner"
_Edit: TypeAlias = Callable[[Evidence], Evidence]
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


def probed(probe: str, change: Callable[[Probe], Probe]) -> _Edit:
    """Change a probe that is there."""

    def apply(evidence: Evidence) -> Evidence:
        assert evidence.probe(probe) is not None, probe
        return replace(evidence, probes=tuple(change(each) if each.name == probe else each for each in evidence.probes))

    return apply


def answer(probe: str, **changes: Any) -> _Edit:
    """Change the answer that counts."""
    return probed(
        probe,
        lambda each: structs.replace(each, answers=(*each.answers[:-1], structs.replace(each.answers[-1], **changes))),
    )


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
    row = {"object": "column" if "column" in more else "relation", "column": None, "grantable": False, **more}
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


def adds(query: str, **base: Any) -> Callable[..., _Edit]:
    """Of something that adds a row of a query: like `base`, with what is said otherwise."""
    return lambda **more: add(query, **{**base, **more})


def adds_to(query: str, **base: Any) -> Callable[..., _Edit]:
    """The same for a row of a relation."""
    return lambda relation, **more: add(query, **{**at(relation), **base, **more})


def relation(name: RelationName, **changes: Any) -> _Edit:
    return edit("relations", at(name), **changes)


def check_of(name: str, condition: str = "", **changes: Any) -> _Edit:
    definition = {"definition": f"CHECK ({condition})"} if condition else {}
    return edit("constraints", at(EFFECT, columns=[name]), **definition, **changes)


def guard_function(name: RelationName, owner: str) -> _Edit:
    return edit("owners", at(name, name=GUARD), owner=owner)


def schema_of(name: RelationName, owner: str) -> _Edit:
    return edit("owners", at(name, kind="schema"), owner=owner)


def granted(name: RelationName, privilege: str, **changes: Any) -> _Edit:
    return edit("grants", at(name, grantee=WRITER, privilege=privilege), **changes)


def revoked(name: RelationName, privilege: str) -> _Edit:
    return drop("grants", at(name, grantee=WRITER, privilege=privilege))


def commit(name: str, **changes: Any) -> _Edit:
    return edit("commit", {"name": name}, **changes)


def waiting(name: str, value: str) -> _Edit:
    return add("waiting", name=name, value=value)


def admitted(probe: str, **more: Any) -> _Edit:
    """What was tried went through."""
    return answer(probe, **{"sqlstate": None, "message": "", "affected": 1, "constraint": None, **more})


def ends(name: RelationName, column: str, default: str | None, kind: str = "timestamptz") -> _Edit:
    row = {"base_type": f"pg_catalog.{kind}", "domain_default": None, "default": default}
    return add("columns", **at(name, name=column, **row))


guard = partial(edit, "triggers", at(EFFECT, name="no_change"))
database = partial(edit, "database", {})
group, superuser = partial(role, login=False), partial(role, superuser=True)
KEY, REPLAY, N = "logical_request_key", "replay_key", "authorization_nonce"
UNIQUE = "logical_request_key_unique"
SHOWN = RelationName("surface", "shown")
# What a relation is made of, as PostgreSQL names it.
GUARD = "surface.refuse_change()"
LOGIN = {"name": "greet", "event": "login", "function": "public.greet"}
_INDEX: dict[str, Any] = {
    **at(EFFECT), "name": "one_try", "unique": True, "primary": False, "exclusion": False, "immediate": True,
    "valid": True, "ready": True, "live": True, "method": "btree", "predicate": None, "expressions": None,
    "period": False, "constraint": None, "columns": ["attempt_id"], "included": [], "definition": "", "calls": [],
    "opclasses": ["pg_catalog.text_ops"], "collations": ["pg_catalog.C"], "deterministic": True,
}  # fmt: skip
attempts, plain = adds("indexes", **_INDEX), adds("indexes", **{**_INDEX, "name": "plain", "unique": False})
audit_index = adds("indexes", **{**_INDEX, "relation": AUDIT.name})
refers = adds(
    "references", **at(EFFECT), name="target_fk", to_schema="surface", to_relation="target",
    columns=["canonical_target"], to_columns=["name"], on_delete="a", on_update="a", validated=True, enforced=True,
    deferrable=False, definition="",
)  # fmt: skip
definer = adds(
    "definers", schema="surface", name="admit", arguments="", owner=OWNER, superuser=False, trigger=False,
    executors=[None], attached=[], definition="BEGIN EXECUTE $1; END",
)  # fmt: skip
mention = adds(
    "mentions", schema="surface", name="admit", arguments="", owner=OWNER, definer=True, trigger=False,
    executors=[None], definition="insert into consumed_request",
)  # fmt: skip
rule_elsewhere = adds(
    "rules_elsewhere", schema="surface", relation="other", kind="r", owner=OWNER, name="aside",
    event="insert", instead=False, enabled="O", definition="",
)  # fmt: skip
view = adds("views", **at(SHOWN), kind="v", owner=OWNER, options=[], updatable=28, definition="")
event_trigger = adds(
    "event_triggers", name="watch", event="ddl_command_end", enabled="O", function="public.watch", definition=""
)
files = adds("file_functions", schema="pg_catalog", name="lo_export", arguments="oid, text", grantee=None)
trigger = adds_to(
    "triggers", name="stamp", timing="before", level="row", events=["insert"], enabled="O", conditional=False,
    columns=[], constraint=False, function="surface.stamp", definition="",
)  # fmt: skip
check = adds_to(
    "constraints", name="said", kind="c", columns=["code", "recorded_at"], validated=True, enforced=True,
    deferrable=False, deferred=False, no_inherit=False, definition="", volatile=[], calls=[],
)  # fmt: skip
owned = adds_to("owners", kind="type", name="surface.operation", owner="crew")
parameter = adds("parameters", parameter="session_replication_role", grantee=WRITER, privilege="SET")
job = adds("jobs_cron", command="DELETE FROM surface.consumed_request", schedule="", role="x", active=True)
maker = adds(
    "administrators", role="maker", superuser=False, create_role=True, bypass_row_security=False, replication=False,
    login=True,
)  # fmt: skip


def made_up(name: str, default: str) -> _Edit:
    """A column of the audit that the server fills in."""
    row = {"default": default, "domain_default": None, "base_type": "pg_catalog.int8"}
    return add("columns", **at(AUDIT, name=name, identity="", calls=[], **row))


def narrow(relation: RelationName, name: str, condition: str) -> _Edit:
    """A CHECK beside the others; @ is the column."""
    return check(relation, columns=[name], name="narrow", definition=f"CHECK (({condition.replace('@', name)}))")


def outrun(probe: str, there: int) -> _Edit:
    """The loser of a race gets a serialization failure, and `there` rows are there."""
    return probed(
        probe,
        lambda each: structs.replace(
            each,
            statements=(*each.statements[:-1], Statement("helper", "x", "SELECT"), each.statements[-1]),
            answers=(*each.answers[:-1], ProbeAnswer(rows=({"there": there},)), ProbeAnswer(sqlstate="40001")),
        ),
    )


# What becomes of each criterion that is not proven: R(efuted) or U(nproven), and one of its codes.
CHANGES: dict[str, tuple[str, *tuple[_Edit, ...]]] = {
    # a
    "a deferrable": ("a R KEY_DEFERRABLE, e R ARBITER_UNUSABLE", index(UNIQUE, immediate=False)),
    "a invalid": ("a R KEY_INVALID, e R ARBITER_UNUSABLE", index(UNIQUE, valid=False)),
    "a not ready": ("a R KEY_INVALID, e R ARBITER_UNUSABLE", index(UNIQUE, ready=False)),
    "a not live": ("a R KEY_INVALID, e R ARBITER_UNUSABLE", index(UNIQUE, live=False)),
    "a partial": ("a R KEY_PARTIAL, e R ARBITER_UNUSABLE", index(UNIQUE, predicate="(x)")),
    "a temporal": ("a R KEY_TEMPORAL, e R ARBITER_UNUSABLE", index(UNIQUE, period=True)),
    "a exclusion": ("a R KEY_TEMPORAL, e R ARBITER_UNUSABLE", index(UNIQUE, unique=False, exclusion=True)),
    "a own operators": ("a R KEY_OPERATOR, e R ARBITER_UNUSABLE", index(UNIQUE, opclasses=["mine.ops"])),
    "a index that calls": ("a U CHECK_UNREVIEWED", plain(expressions="surface.f(run_id)")),
    "a index with a condition that calls": ("a U CHECK_UNREVIEWED", plain(predicate="surface.f(run_id)")),
    "a index with a user's own cast": ("a U CHECK_UNREVIEWED", plain(calls=["surface.as_number"])),
    "a index of a user's own order": ("a U CHECK_UNREVIEWED", plain(opclasses=["surface.ops"])),
    "a check that calls": ("a U CHECK_UNREVIEWED", check(EFFECT, calls=["surface.f"])),
    "a check that sets something": ("a U CHECK_VOLATILE", check(EFFECT, volatile=["set_config"])),
    "b exclusion of a user's own": ("b U CHECK_UNREVIEWED", check(NONCE, kind="x", calls=["surface.="])),
    "b domain that calls": (
        "b U CHECK_UNREVIEWED", add("domain_checks", **at(
            NONCE, column=KEY, name="said", validated=True, enforced=True, volatile=[], calls=[],
            definition="CHECK (surface.f(VALUE))",
        )),
    ),
    "g check that calls": ("g U CHECK_UNREVIEWED", check(AUDIT, definition="CHECK (surface.f(code))")),
    "g check that ends": ("g U CHECK_VOLATILE", check(AUDIT, volatile=["now"])),
    "g default that calls": ("g U CHECK_UNREVIEWED", column(AUDIT, "code", calls=["surface.f"])),
    "g default that sets something": (
        "g U CHECK_UNREVIEWED", column(AUDIT, "code", default="set_config('x'::text, 'y'::text, true)"),
    ),
    "a default of a flag that calls": (
        "a U CHECK_UNREVIEWED", column(EFFECT, "attempt_id", base_type="pg_catalog.bool", calls=["surface.f"]),
    ),
    "b default of a domain of flags that sets something": (
        "b U CHECK_UNREVIEWED",
        column(NONCE, KEY, base_type="pg_catalog.bool", domain_default="(set_config('x', 'y', true) = 'y')"),
    ),
    "a nondeterministic": ("a R KEY_COLLATION, e R ARBITER_UNUSABLE", index(UNIQUE, deterministic=False)),
    "a expression": (
        "a R KEY_EXPRESSION, e R ARBITER_UNUSABLE", index(UNIQUE, columns=[None], expressions=f"lower({KEY})"),
    ),
    "a composite with attempt": (
        "a R REPLAY_ATTEMPT_NO_BYPASS, e R ARBITER_UNUSABLE", index(UNIQUE, columns=[KEY, "attempt_id"]),
    ),
    "a not unique": ("a R KEY_NOT_UNIQUE, e R ARBITER_UNUSABLE", drop("indexes", {"name": UNIQUE})),
    "a replay key not unique": ("a R KEY_NOT_UNIQUE", drop("indexes", {"name": "replay_key_unique"})),
    "a replay key not declarable": (
        "a U KEY_NOT_DECLARABLE", drop("indexes", {"name": "replay_key_unique"}),
        relation(EFFECT, kind="p", partition_key=f"HASH ({KEY})", partition_strategy="h"),
    ),
    "a attempt unique": ("a R ATTEMPT_KEYING", attempts()),
    "a attempt unique by an expression": (
        "a R ATTEMPT_KEYING", attempts(columns=[None], expressions="lower(attempt_id)"),
    ),
    "a attempt in a condition": (
        "a R ATTEMPT_KEYING", attempts(columns=["run_id"], predicate="(attempt_id = '1'::text)"),
    ),
    "a attempt unique at the end": ("a R ATTEMPT_KEYING", attempts(immediate=False)),
    "a attempt unique by exclusion, with a key": (
        "a R ATTEMPT_KEYING", attempts(unique=False, exclusion=True, columns=["attempt_id", KEY]),
    ),
    "a attempt unique with another": ("a R ATTEMPT_KEYING", attempts(columns=["run_id", "attempt_id"])),
    "a nullable": ("a U KEY_NULLABLE", column(EFFECT, KEY, not_null=False)),
    "a replay key nullable": ("a U KEY_NULLABLE", column(EFFECT, REPLAY, not_null=False)),
    "a of type name": ("a R KEY_TYPE", column(EFFECT, KEY, base_type="pg_catalog.name")),
    "a generated": ("a R KEY_GENERATED", column(EFFECT, KEY, generated="s")),
    "a default": ("a R KEY_DEFAULT", column(EFFECT, KEY, default="md5(random()::text)")),
    "a domain default": ("a R KEY_DEFAULT", column(EFFECT, KEY, domain_default="''::text")),
    "a blind collation": ("a R KEY_COLLATION", column(EFFECT, KEY, deterministic=False)),
    "a collation of a library": (
        "a U COLLATION_UNSTABLE", column(EFFECT, KEY, byte_order=False, collation="public.de"),
        index(UNIQUE, collations=["public.de"]),
    ),
    "a check not valid": ("a R CHECK_NOT_VALID", check_of(KEY, validated=False)),
    "a check not enforced": ("a R CHECK_NOT_VALID", check_of(REPLAY, enforced=False)),
    "a check volatile": ("a U CHECK_VOLATILE", check_of(KEY, volatile=["today"])),
    "a check calls": ("a U CHECK_UNREVIEWED", check_of(KEY, f"surface.canon({KEY})")),
    "a check of another form": ("a U KEY_NOT_CANONICAL", check_of(KEY, f"({KEY} ~ '^(a|b)$'::text)")),
    "a check of another form, replay key": ("a U KEY_NOT_CANONICAL", check_of(REPLAY, "(replay_key <> ''::text)")),
    "a check by an operator": ("a U CHECK_UNREVIEWED", check_of(KEY, f"({KEY} OPERATOR(surface.~) 'x'::text)")),
    "a check by a cast": ("a U CHECK_UNREVIEWED", check_of(KEY, f"(({KEY})::\"It's\".mark)::boolean")),
    "a check by a cast that its text does not show": ("a U CHECK_UNREVIEWED", check_of(KEY, calls=["mine.as_number"])),
    "a unlogged": ("a R UNLOGGED, e R UNLOGGED", relation(EFFECT, persistence="u")),
    "a temporary": ("a R TEMPORARY, e R TEMPORARY", relation(EFFECT, persistence="t")),
    "a view": ("a R NOT_A_TABLE, e R NOT_A_TABLE, i R NOT_A_TABLE", relation(EFFECT, kind="v")),
    "a children": (
        "a R CHILD_TABLES, f R NO_TRIGGERS",
        add("inheritance", parent_schema="surface", parent=EFFECT.name, schema="old", relation="rows", partition=False),
    ),
    "a partition": ("a R IS_PARTITION, i R PARTITION_DROPPABLE", relation(EFFECT, is_partition=True)),
    "a trigger of INSERT": ("a U TRIGGER_UNREVIEWED", trigger(EFFECT)),
    "a rule": (
        "a U RULE_UNREVIEWED",
        add("rules", **at(EFFECT, name="aside", event="insert", instead=True, enabled="O", definition="")),
    ),
    "a tried, same key": ("a R DUPLICATE_ADMITTED", admitted("same-key")),
    "a tried, new attempt": ("a R REPLAY_ATTEMPT_NO_BYPASS", admitted("same-key-new-attempt")),
    "a tried, same replay key": ("a R DUPLICATE_ADMITTED", admitted("same-replay-key")),
    "a tried, NULL": ("a R KEY_NULLABLE", admitted("key-null")),
    "a tried, upper case": ("a R KEY_NOT_CANONICAL", admitted("key-upper")),
    "a tried, space": ("a R KEY_NOT_CANONICAL", admitted("replay-key-space")),
    "a tried, prefix": ("a R KEY_NOT_CANONICAL", admitted("key-sha256")),
    "a tried, line feed": ("a R KEY_NOT_CANONICAL", admitted("replay-key-newline")),
    "a twin not tried": ("a U PROBE_FAILED", without("key-doubled")),
    "a tried, known attempt": (
        "a R ATTEMPT_KEYING", answer("attempt-again", sqlstate="23505", affected=None, constraint="one_try"),
    ),
    "a known attempt not tried": ("a U PROBE_FAILED", without("attempt-again")),
    "a tried, neighbour": (
        "a R KEY_COLLISION", answer("key-prefix", sqlstate="23505", affected=None, constraint=UNIQUE),
    ),
    "a tried, swallowed": ("a R SILENTLY_IGNORED", admitted("same-key", affected=0)),
    "a tried, refused by another": ("a U PROBE_FAILED", answer("same-key", constraint="elsewhere")),
    "a tried, waited": ("a U PROBE_FAILED", answer("same-key", sqlstate="55P03")),
    "a not tried": ("a U PROBE_FAILED", without("same-key")),
    # b
    "b nullable": ("b U KEY_NULLABLE", column(NONCE, N, not_null=False)),
    "b partial": ("b R KEY_PARTIAL, e R ARBITER_UNUSABLE", index("authorization_nonce_unique", predicate="(x)")),
    "b trigger": ("b U TRIGGER_UNREVIEWED", trigger(NONCE)),
    "b tried": ("b R NONCE_REUSED", admitted("nonce-again")),
    "b tried, NULL": ("b R KEY_NULLABLE", admitted("nonce-null")),
    # c
    "c nullable": ("c U BINDING_NULLABLE", column(EFFECT, "run_id", not_null=False)),
    "c nullable, and it was done": (
        "c R BINDING_NULLABLE", column(EFFECT, "run_id", not_null=False), admitted("without-run_id"),
    ),
    "c generated": ("c R BINDING_GENERATED", column(EFFECT, "run_id", generated="s")),
    "a key of few digits": ("a U KEY_NARROW", narrow(EFFECT, REPLAY, "@ ~ '^v1:[0-9a-f]{31}$'::text")),
    "a key of few words": ("a U KEY_NARROW", narrow(EFFECT, REPLAY, "@ = ANY (ARRAY['a'::text, 'b'::text])")),
    "a key of few signs": ("a U KEY_NARROW", narrow(EFFECT, REPLAY, "@ !~ '[^0-9]'::text) AND (length(@) = 38")),
    **{
        f"b nonce of few signs: {said}": ("b U KEY_NARROW", narrow(NONCE, N, said))
        for said in (
            "@ ~ '^[0-9]{38}$'::text", "@ ~ '^[0-9]{1,32}$'::text", "@ ~ '^[!-~]{19}$'::text", "@ ~ '^[^x]{6}$'::text",
            "@ ~ '^(a|b)[0-9]{6}$'::text", r"@ ~ '^\d{6}$|^[[:digit:]]{7}$'::text", "@ ~ '^(?:[0-9]{3}-)?[0-9]$'::text",
            "@ ~~ 'n-____'::text", "(@ = 'a'::text) OR (@ ~ '^[0-9]{6}$'::text)", "length(@) = ANY (ARRAY[5, 6])",
            "length(@) = ANY ('{5,6}'::integer[])", "(length(@) = 5) OR (length(@) = 6)", "6 >= length(@)",
            "@ ~* '^[0-9a-f]{6}$'::text", "@ ~ similar_to_escape('[0-9a-f]{6}'::text)", "\"left\"(@, 6) = @",
            "NOT ((length(@) > 6) OR (length(@) < 2))", "((length(@))::bigint < 7) IS TRUE", "bit_length(@) <= 80",
        )
    },
    "b nonce of a short type": ("b U KEY_NARROW", column(NONCE, N, base_type="pg_catalog.varchar", modifier=10)),
    **{
        f"b nonce of few bytes, by {name}": (
            "b U KEY_NARROW", column(NONCE, N, base_type="pg_catalog.bytea"), narrow(NONCE, N, f"{name}(@) = 15"),
        )
        for name in ("octet_length", "length")
    },
    "c binding of one number": ("c U BINDING_CONSTANT", narrow(EFFECT, "run_id", "@ = 1")),
    "c binding of one number in a list": (
        "c U BINDING_CONSTANT", narrow(EFFECT, "run_id", "@ = ANY (ARRAY['1'::bigint])"),
    ),
    "c binding of one pattern": ("c U BINDING_CONSTANT", narrow(EFFECT, "run_id", "@ ~ '^prod$'::text")),
    "c binding of one value": ("c U BINDING_CONSTANT", narrow(EFFECT, "run_id", "@ = 'x'::text")),
    "h decision of one value": ("h U BINDING_CONSTANT", column(EFFECT, "decision_id", labels=["accepted"])),
    "c default": ("c R BINDING_DEFAULT", column(EFFECT, "run_id", default="''::text")),
    "c no check": ("c U PROBE_FAILED", drop("constraints", at(EFFECT, columns=["run_id"]))),
    "c check not valid": ("c R CHECK_NOT_VALID", check_of("run_id", validated=False)),
    "c missing": ("c R MISSING_COLUMNS", drop("columns", at(EFFECT, name="run_id"))),
    "c tried, without": ("c R BINDING_NULLABLE", admitted("without-run_id")),
    "c tried, empty": ("c R BINDING_MAY_BE_EMPTY", admitted("empty-run_id")),
    # d
    "d tried": ("d R DOMAIN_UNRESTRICTED", admitted("other-operation")),
    "d not valid": ("c R CHECK_NOT_VALID, d R CHECK_NOT_VALID", check_of("operation", validated=False)),
    # e
    "e fsync": ("e R NOT_DURABLE", edit("durability", {"name": "fsync"}, value="off")),
    "e full pages": ("e R NOT_DURABLE", edit("durability", {"name": "full_page_writes"}, value="off")),
    "e a table space": ("e U TABLESPACE", relation(EFFECT, tablespace="fast")),
    "e a table space of an index": ("e U TABLESPACE", index(UNIQUE, tablespace="fast")),
    "e what developers set": ("e U NOT_DURABLE", add("durability", name="zero_damaged_pages", value="on")),
    "e what is retried": ("e U NOT_DURABLE", add("durability", name="data_sync_retry", value="on")),
    "e fsync after a reload": ("e R NOT_DURABLE", waiting("fsync", "off")),
    "e full pages after a reload": ("e R NOT_DURABLE", waiting("full_page_writes", "F")),
    "e late commits after a reload": ("e R ASYNC_COMMIT", waiting("synchronous_commit", "no")),
    "e login trigger": ("e U TRIGGER_UNREVIEWED", event_trigger(**LOGIN)),
    "e server commits late": ("e R ASYNC_COMMIT", commit("synchronous_commit", value="off")),
    "e writer commits late": ("e R ASYNC_COMMIT", setting("synchronous_commit", "off")),
    "e database commits late": ("e R ASYNC_COMMIT", setting("synchronous_commit", "off", who=None, database=True)),
    "e commit hidden": ("e U COMMIT_UNKNOWN", commit("synchronous_commit", source="user")),
    "e kept by an extension": ("e U ACCESS_METHOD", relation(NONCE, access_method="columnar")),
    "e prepared": ("e U PREPARED_TRANSACTIONS", add("prepared", gid="x", owner="y")),
    "e arbiter": ("e R ARBITER_UNUSABLE", answer("arbiter", sqlstate="42P10", affected=None)),
    "e arbiter twice": ("e R ARBITER_UNUSABLE", answer("nonce-arbiter", affected=1)),
    "e rollback": ("e R NOT_ATOMIC", answer("rollback", rows=({"effect": 1, "nonce": 0},))),
    "e killed": ("e R NOT_ATOMIC", answer("killed", rows=({"effect": 0, "nonce": 0, "committed": 0},))),
    "e race": ("e R RACE_LOST", admitted("race")),
    "e race without a winner": ("e U PROBE_FAILED", outrun("race", 0)),
    "e race that both won": ("e U PROBE_FAILED", outrun("race-nonce", 2)),
    "e race for an arbiter without a winner": ("e R ARBITER_UNUSABLE", outrun("race-arbiter", 0)),
    "e race lost without a count": ("e U PROBE_FAILED", answer("race", sqlstate="40001")),
    "e race not run": ("e U PROBE_FAILED", without("race")),
    # f
    "f no triggers": ("f U GUARD_UNREVIEWED", drop("triggers", at(NONCE))),
    "f no guard of TRUNCATE": ("f U GUARD_UNREVIEWED", drop("triggers", at(EFFECT, name="no_truncate"))),
    "f guard after": ("f U GUARD_UNREVIEWED", guard(timing="after")),
    "f guard disabled": ("f U GUARD_UNREVIEWED", guard(enabled="D")),
    "f guard for replicas": ("f U GUARD_UNREVIEWED", guard(enabled="R")),
    "f guard with a condition": ("f U GUARD_UNREVIEWED", guard(conditional=True)),
    "f guard of a column": ("f U GUARD_UNREVIEWED", guard(columns=["run_id"])),
    "f guard without DELETE": ("f U GUARD_UNREVIEWED", guard(events=["update"])),
    "f no triggers, and it was done": ("f R NO_TRIGGERS", drop("triggers", at(NONCE)), admitted("owner-update-nonce")),
    "f no triggers, and nothing was tried": (
        "f R NO_TRIGGERS", drop("triggers", at(NONCE)), without("owner-update-nonce"),
    ),
    "f guard after, and it was done": ("f R GUARD_MISSING", guard(timing="after"), admitted("owner-delete")),
    "f guard after, and nothing was tried": ("f U GUARD_UNREVIEWED", guard(timing="after"), without("owner-delete")),
    "f guard disabled, and it was done": ("f R GUARD_MISSING", guard(enabled="D"), admitted("owner-update")),
    "f guard replaceable": ("f R GUARD_REPLACEABLE", guard_function(NONCE, owner=WRITER)),
    "f guard of a stranger": ("f U GUARD_REPLACEABLE", role("passer_by"), guard_function(EFFECT, owner="passer_by")),
    "f writer owns": ("f R WRITER_OWNS", relation(NONCE, owner=WRITER)),
    "f writer owns the schema": ("f R WRITER_OWNS", schema_of(EFFECT, WRITER)),
    "f writer owns the database": ("f R WRITER_OWNS, g R WRITER_OWNS", database(owner=WRITER)),
    "fg no row of the database": ("f U CATALOGUE_UNREADABLE, g U CATALOGUE_UNREADABLE", drop("database", {})),
    "f writer owns the database and so the schema": (
        "f R WRITER_OWNS, g R WRITER_OWNS", schema_of(NONCE, "pg_database_owner"), database(owner=WRITER),
    ),
    "fg another owns the database": (
        "f U OWNED_ELSEWHERE, g U OWNED_ELSEWHERE", role("passer_by"), database(owner="passer_by"),
    ),
    "f writer is a member of the owner of a type": (
        "f R WRITER_OWNS", role("crew"), member("crew", WRITER, inherit=True), owned(EFFECT),
    ),
    "f another owns a type": ("f U OWNED_ELSEWHERE", owned(NONCE)),
    "g another owns a type": ("g U OWNED_ELSEWHERE", owned(AUDIT)),
    "f the owner of the audit owns a guard": (
        "f U GUARD_REPLACEABLE", role("clerk"), relation(AUDIT, owner="clerk"),
        edit("grants", at(AUDIT, grantee=OWNER), grantee="clerk"), guard_function(EFFECT, owner="clerk"),
    ),
    "fg writer becomes the owner": ("f R WRITER_OWNS, g R WRITER_OWNS", member(OWNER, WRITER, set=True)),
    "fg writer inherits the owner": ("f R WRITER_OWNS, g R WRITER_OWNS", member(OWNER, WRITER, inherit=True)),
    "fg writer lets itself into the owner": ("f R WRITER_OWNS, g R WRITER_OWNS", member(OWNER, WRITER, admin=True)),
    "fg writer by way of another": (
        "f R WRITER_OWNS, g R WRITER_OWNS", role("team"), member("team", WRITER, set=True),
        member(OWNER, "team", inherit=True),
    ),
    "f superuser": ("f R WRITER_ATTRIBUTES", edit("roles", {"role": WRITER}, superuser=True)),
    "f bypasses": ("f R WRITER_ATTRIBUTES", edit("roles", {"role": WRITER}, bypass_row_security=True)),
    "f another makes roles, before 16": ("f U OTHERS_MAY_WRITE", edit("server", {}, number=150000), maker()),
    "f another can become the owner": ("f U OTHERS_MAY_WRITE", role("dba"), member(OWNER, "dba", set=True)),
    "f another may let itself into the owner": ("f U OTHERS_MAY_WRITE", role("dba"), member(OWNER, "dba", admin=True)),
    "f event trigger of any event": ("f U TRIGGER_UNREVIEWED", event_trigger()),
    "f makes roles": ("f R WRITER_ATTRIBUTES", edit("roles", {"role": WRITER}, create_role=True)),
    "f replicates": ("f R WRITER_ATTRIBUTES", edit("roles", {"role": WRITER}, replication=True)),
    "f becomes a superuser": ("f R WRITER_ATTRIBUTES", superuser("boss"), member("boss", WRITER, set=True)),
    "f writes everything": ("f R WRITER_MEMBERSHIP", member("pg_write_all_data", WRITER, inherit=True)),
    "f runs programs": ("f R WRITER_MEMBERSHIP", member("pg_execute_server_program", WRITER, set=True)),
    "f UPDATE": ("f R WRITER_PRIVILEGES", grant(EFFECT, WRITER, "UPDATE")),
    "f UPDATE of a column": ("f R WRITER_PRIVILEGES", grant(EFFECT, WRITER, "UPDATE", column="run_id")),
    "f TRIGGER": ("f R WRITER_PRIVILEGES", grant(NONCE, WRITER, "TRIGGER")),
    "f passes it on": ("f R WRITER_PRIVILEGES", granted(EFFECT, "INSERT", grantable=True)),
    "f no INSERT": ("f U WRITER_UNPROVEN", revoked(EFFECT, "INSERT")),
    "f everybody inserts": ("f R OTHERS_MAY_WRITE", grant(EFFECT, None, "INSERT")),
    "f another inserts": ("f R OTHERS_MAY_WRITE", role("other"), grant(EFFECT, "other", "INSERT")),
    "f another inserts columns": (
        "f R OTHERS_MAY_WRITE", role("other"), grant(NONCE, "other", "INSERT", column="authorization_nonce"),
    ),
    "f another by way of a group": (
        "f R OTHERS_MAY_WRITE", group("crew"), role("other"), grant(EFFECT, "crew", "INSERT"),
        member("crew", "other", inherit=True),
    ),
    "f another writes everything": (
        "f R OTHERS_MAY_WRITE", role("other"), member("pg_write_all_data", "other", inherit=True),
    ),
    "f a maker of roles inserts": (
        "f R OTHERS_MAY_WRITE", role("maker", create_role=True), grant(EFFECT, "maker", "INSERT"),
    ),
    "f a maker of roles is the writer": (
        "f R WRITER_SHARED", role("maker", create_role=True), member(WRITER, "maker", set=True, admin=True),
    ),
    "f writer lent out": ("f R WRITER_SHARED", role("other"), member(WRITER, "other", admin=True)),
    "f writer shared": ("f R WRITER_SHARED", role("other"), member(WRITER, "other", set=True)),
    "f schema for everybody": ("f R SCHEMA_CREATE", schema_grant(None)),
    "f schema for the writer": ("f R SCHEMA_CREATE", schema_grant(WRITER)),
    "f parameter": ("f R PARAMETER_GRANTED", parameter()),
    "f parameter for everybody": ("f R PARAMETER_GRANTED", parameter(grantee=None)),
    "f other parameter": ("f U PARAMETER_GRANTED", parameter(parameter="log_statement")),
    "f parameter of another": (
        "f U PARAMETER_GRANTED", role("other"), parameter(parameter="fsync", grantee="other", privilege="ALTER SYSTEM"),
    ),
    "f parameter of an unknown role": ("f U PARAMETER_GRANTED", parameter(grantee="other")),
    "f files of another": (
        "f U OTHERS_MAY_WRITE", role("other"), member("pg_write_server_files", "other", inherit=True),
    ),
    "f programs of another by way of a group": (
        "f U OTHERS_MAY_WRITE", role("other"), group("crew"), member("crew", "other", set=True),
        member("pg_execute_server_program", "crew", inherit=True),
    ),
    "f large objects of everybody": ("f U OTHERS_MAY_WRITE", files()),
    "f large objects of another": ("f U OTHERS_MAY_WRITE", files(grantee="other")),
    "f large objects of the writer": ("f U WRITER_PRIVILEGES", files(grantee=WRITER)),
    "f sleeping triggers": ("f R REPLICATION_ROLE", setting("session_replication_role", "replica")),
    "f sleeping triggers of the server": ("f R REPLICATION_ROLE", commit("session_replication_role", value="replica")),
    "f triggers hidden": ("f U COMMIT_UNKNOWN", commit("session_replication_role", source="user")),
    "f subscription": ("f R REPLICATED_INTO", add("subscriptions", **at(EFFECT, subscriptions=1))),
    "f inherits": (
        "f U INHERITED",
        add("inheritance", parent_schema="old", parent="all", schema="surface", relation=EFFECT.name, partition=False),
    ),
    "f view": ("f R OTHERS_MAY_WRITE", view(), grant(SHOWN, None, "INSERT", object="view")),
    "f view of the writer": ("f R WRITER_PRIVILEGES", view(), grant(SHOWN, WRITER, "DELETE", object="view")),
    "f function for the writer": ("f U DEFINER_FUNCTION", mention(executors=[WRITER])),
    "f function": ("f U DEFINER_FUNCTION", mention()),
    "f trigger function elsewhere": ("f U DEFINER_FUNCTION", mention(trigger=True, executors=[OWNER])),
    "f rule elsewhere": ("f U RULE_UNREVIEWED", rule_elsewhere()),
    "f definer that names nothing": ("f U DEFINER_FUNCTION", definer()),
    "f definer whose name with its schema is another's": (
        "f U DEFINER_FUNCTION", mention(schema="a", name="b.c", definer=False), definer(schema="a.b", name="c"),
    ),
    "f definer of a superuser": ("f U DEFINER_FUNCTION", definer(owner="boss", superuser=True)),
    "f definer of the writer": ("f U DEFINER_FUNCTION", definer(owner=WRITER)),
    "f definer for the writer": ("f U DEFINER_FUNCTION", definer(executors=[WRITER])),
    "f definer of a member of the owner": (
        "f U DEFINER_FUNCTION", role("crew"), member(OWNER, "crew", set=True), definer(owner="crew"),
    ),
    "f definer that anybody may make a trigger of": ("f U DEFINER_FUNCTION", definer(trigger=True)),
    "f definer that is a trigger elsewhere": (
        "f U DEFINER_FUNCTION", definer(trigger=True, executors=[], attached=["public.t"]),
    ),
    "f trigger function that is off here": (
        "f U DEFINER_FUNCTION", mention(trigger=True), trigger(EFFECT, function="surface.admit", enabled="D"),
    ),
    "f trigger function here and elsewhere": (
        "f U DEFINER_FUNCTION", mention(trigger=True), trigger(EFFECT, function="surface.admit", events=["update"]),
    ),
    "f tried, update": ("f R CHANGE_ADMITTED", admitted("owner-update")),
    "f tried, nothing said": ("f U SILENTLY_IGNORED", admitted("owner-delete-nonce", affected=0)),
    "f tried, truncated": ("f R CHANGE_ADMITTED", admitted("owner-truncate", affected=0)),
    "f tried, by chance": ("f U PROBE_FAILED", answer("owner-update", sqlstate="23514")),
    "f tried, locked": ("f U PROBE_FAILED", answer("writer-update", sqlstate="55P03")),
    "f tried, stranger": ("f R STRANGER_ADMITTED", admitted("stranger-insert")),
    # g
    "g unlogged": ("g R UNLOGGED", relation(AUDIT, persistence="u")),
    "g unguarded": ("g U GUARD_UNREVIEWED", drop("triggers", at(AUDIT))),
    "g not for the writer": ("g R AUDIT_UNWRITABLE", revoked(AUDIT, "INSERT")),
    "g triggers of everybody": ("g R OTHERS_MAY_WRITE", grant(AUDIT, None, "TRIGGER")),
    "g triggers of another": ("g R OTHERS_MAY_WRITE", role("other"), grant(AUDIT, "other", "TRIGGER")),
    "g triggers of the writer": ("g R WRITER_PRIVILEGES", grant(AUDIT, WRITER, "TRIGGER")),
    "g tied": ("g R AUDIT_LOST", refers(relation=AUDIT.name, to_relation=EFFECT.name)),
    "g lost": ("g R AUDIT_LOST", answer("audit-survives", rows=({"audit": 0, "effect": 0, "nonce": 0},))),
    "g one refusal of each": (
        "g R AUDIT_UNWRITABLE", answer("audit-again", sqlstate="23505", affected=None, constraint="once"),
    ),
    "g second refusal not tried": ("g U PROBE_FAILED", without("audit-again")),
    "g something unique": ("g U AUDIT_UNWRITABLE", audit_index(columns=["code"])),
    "g something unique for some": (
        "g U AUDIT_UNWRITABLE", audit_index(columns=[None], predicate="(code = 'x'::text)"),
    ),
    "g something excluded": ("g U AUDIT_UNWRITABLE", audit_index(columns=["audit_id"], exclusion=True)),
    "g the request is the key": ("g U AUDIT_UNWRITABLE", edit("indexes", at(AUDIT, primary=True), columns=[KEY])),
    "g erased": ("g R CHANGE_ADMITTED", admitted("owner-delete-audit")),
    # h
    "h nullable": ("h U DECISION_NULLABLE", column(EFFECT, "decision_id", not_null=False)),
    "h unreadable": ("h R DECISION_HIDDEN", revoked(EFFECT, "SELECT")),
    "h row security": ("h U ROW_SECURITY", relation(EFFECT, row_security=True)),
    "h row security of the nonce": ("h U ROW_SECURITY", relation(NONCE, row_security=True)),
    "h hidden": ("h R DECISION_HIDDEN", answer("read-back", rows=())),
    "h empty": ("h R DECISION_NULLABLE", answer("read-back", rows=({"decision": None},))),
    # i
    "i cascade": ("i R CASCADE", refers(on_delete="c")),
    "i set null": ("i R CASCADE", refers(on_delete="n")),
    "i set default": ("i R CASCADE", refers(on_update="d")),
    "i cascade to others": ("i R CASCADE", refers(relation="other", to_relation=NONCE.name, on_delete="c")),
    "i time to live": ("i R RETENTION_TTL", ends(EFFECT, "expires", "(now() + '90 days'::interval)")),
    "i an own function": ("i U RETENTION_UNKNOWN", column(EFFECT, "attempt_id", default="surface.until()")),
    "i a span": ("i R RETENTION_TTL", ends(NONCE, "keep", "'1 day'::interval", "interval")),
    "i seconds": (
        "i R RETENTION_TTL", column(EFFECT, "attempt_id", default="((EXTRACT(epoch FROM now()))::bigint + 86400)"),
    ),
    "i a default of a domain": (
        "i R RETENTION_TTL", column(EFFECT, "attempt_id", domain_default="(now() + '1 day'::interval)"),
    ),
    "i a fixed time": (
        "i U RETENTION_UNKNOWN", ends(EFFECT, "expires", "'9999-12-31 00:00:00+00'::timestamp with time zone"),
    ),
    "i end unknown": ("i U RETENTION_UNKNOWN", ends(EFFECT, "retain_until", None)),
    "i partitions of time": (
        "i R PARTITION_DROPPABLE", relation(NONCE, kind="p", partition_key="RANGE (at)", partition_strategy="r"),
    ),
    "i job": ("i R JOB", job()),
    "i job that only looks": ("i U JOB", add("jobs_pgagent", command="VACUUM consumed_nonce", name="x", active=True)),
    "i job that calls": (
        "i R JOB", mention(name="tidy", definer=False, definition=f"DELETE FROM {EFFECT}"),
        job(command="SELECT surface.tidy()"),
    ),
    "i chunks": (
        "i R JOB", add("jobs_timescaledb", name="keep", command="policy_retention", relation=EFFECT.name, config="{}"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_one_change_turns_the_criteria_that_it_concerns_and_no_other(fit: Evidence, name: str) -> None:
    wanted, *changes = CHANGES[name]
    expected = {letter: (R if how == "R" else U, code) for letter, how, code in map(str.split, wanted.split(", "))}
    judgement = judge(both(*changes)(fit), Policy())
    standings = {
        finding.criterion.value: finding.standing
        for finding in judgement.findings
        if finding.standing is not Standing.PROVEN
    }
    described = [(reason.criterion.value, reason.code, reason.text) for reason in judgement.reasons]
    assert standings == {letter: standing for letter, (standing, _) in expected.items()}, described
    for letter, (_, code) in expected.items():
        assert (letter, code) in {(letter, code) for letter, code, _ in described}, described
    assert judgement.status is Status.NOT_FIT


def test_the_surface_is_fit_and_every_criterion_says_what_it_rests_on(fit: Evidence) -> None:
    judgement = judge(fit, Policy())
    assert judgement.status is Status.FIT
    assert [finding.criterion for finding in judgement.findings] == list(Criterion)
    assert all(finding.rows and not finding.reasons for finding in judgement.findings)
    assert [finding.criterion.value for finding in judgement.findings if not finding.probes] == ["i"]
    assert judge(fit, Policy()) == judgement


# What a policy says, or what it calls reviewed, and the changes.
HARMLESS: dict[str, tuple[str | Policy, *tuple[_Edit, ...]]] = {
    "a reviewed trigger": ("stamp", trigger(EFFECT)),
    "a reviewed trigger by its full name": (f"{EFFECT}.stamp", trigger(EFFECT)),
    "f reviewed event trigger": ("watch", event_trigger()),
    "f reviewed function of an event trigger": ("public.watch", event_trigger()),
    "e reviewed function of a login trigger": ("public.greet", event_trigger(**LOGIN)),
    "e reviewed table space": ("fast", relation(EFFECT, tablespace="fast")),
    "f reviewed administrator": ("dba", role("dba"), member(OWNER, "dba", admin=True)),
    "f reviewed maker of roles, before 16": ("maker", edit("server", {}, number=150000), maker()),
    "f maker of roles since 16": ("", edit("server", {}, number=160000), maker()),
    "a key of 128 bits": ("", narrow(EFFECT, REPLAY, "@ ~ '^[0-9a-f]{32}$'::text")),
    "a nonce whose form is not read": ("", narrow(NONCE, N, "@ ~ '^(?=n)[a-z]{6}$'::text")),
    "a trigger that is off": ("", trigger(EFFECT, enabled="D")),
    "policies that let everything through": (
        "", relation(EFFECT, row_security=True),
        add("policies", **at(EFFECT, name="x", permissive=True, command="all", roles=[None], using="true", check=None)),
    ),
    "columns instead of the table": (
        "", revoked(EFFECT, "SELECT"), grant(EFFECT, WRITER, "SELECT", column=KEY),
        grant(EFFECT, WRITER, "SELECT", column="decision_id"),
    ),
    "an end beyond the horizon": (
        Policy(horizon_seconds=700 * 86_400), ends(EFFECT, "expires", "(now() + '2 years'::interval)"),
    ),
    "kept for ever": ("", ends(EFFECT, "retain_until", "'infinity'::timestamp with time zone")),
    "a plain foreign key": ("", refers()),
    "a member that can neither inherit nor become": ("", role("other"), member(WRITER, "other")),
    "who made the writer's role": ("", role("maker", create_role=True), member(WRITER, "maker", admin=True)),
    "a superuser in the writer's role": ("", superuser("boss"), member(WRITER, "boss", set=True, inherit=True)),
    "a group of the writer alone": (
        "", group("crew"), member("crew", WRITER, inherit=True), grant(EFFECT, "crew", "INSERT"),
    ),
    "a view that runs as who asks": (
        "", view(options=["security_invoker=true"]), grant(SHOWN, None, "INSERT", object="view"),
    ),
    "a view that cannot be written": ("", view(updatable=0), grant(SHOWN, None, "INSERT", object="view")),
    "a function for its owner only": ("", mention(executors=[OWNER])),
    "a trigger function that was reviewed": ("surface.admit", mention(trigger=True)),
    "a trigger function whose trigger was reviewed": (
        "stamp", mention(trigger=True), trigger(EFFECT, function="surface.admit"),
    ),
    "a guard that speaks of the surface and runs as its owner": ("", mention(trigger=True, name="refuse_change")),
    "a check whose function was reviewed": ("surface.canon", check_of(KEY, f"surface.canon({KEY})")),
    "a check with a point in its text, in a number and before a word of PostgreSQL's": (
        "", check_of(
            KEY, f"(({KEY} ~ '^[0-9a-f]{{64}}$'::text) AND ({KEY} ~ 'a.b(c)'::text) AND "
            f"(length({KEY}) OPERATOR(pg_catalog.>) 1.5))",
        ),
    ),
    "a check with a constant of a user's type": (
        "", check_of(KEY, f"(({KEY} ~ '^[0-9a-f]{{64}}$'::text) AND ({KEY} <> ('x'::surface.\"Kind\")::text))"),
    ),
    "a check whose cast was reviewed": ("mine.as_number", check_of(KEY, calls=["mine.as_number"])),
    "a type of a superuser's": ("", superuser("boss"), owned(EFFECT, owner="boss")),
    "a type of who can act as the owner": ("crew", role("crew"), member(OWNER, "crew", inherit=True), owned(EFFECT)),
    "a database and a schema of the owner's": ("", database(owner=OWNER), schema_of(EFFECT, "pg_database_owner")),
    "an audit, and its guard, of a clerk": (
        "", role("clerk"), relation(AUDIT, owner="clerk"), edit("grants", at(AUDIT, grantee=OWNER), grantee="clerk"),
        guard_function(AUDIT, owner="clerk"),
    ),
    "a rule elsewhere that was reviewed": ("aside", rule_elsewhere()),
    "a rule elsewhere that is off": ("", rule_elsewhere(enabled="D")),
    "a definer that was reviewed": ("surface.admit", definer()),
    "a definer for its owner only": ("", definer(executors=[OWNER])),
    "a definer of a role that may not write": ("", role("reader"), definer(owner="reader")),
    "a definer that only raises": (
        "", definer(trigger=True, attached=["t"], definition="AS $function$\nBEGIN RAISE 'no'; END\n$function$\n"),
    ),
    "a definer in a trigger that was reviewed": (
        "stamp", definer(trigger=True), trigger(EFFECT, function="surface.admit"),
    ),
    "a check of another form that was reviewed": (
        "consumed_request_logical_request_key_check", check_of(KEY, f"({KEY} ~ '^(a|b)[0-9a-f]{{64}}$'::text)"),
    ),
    "an attempt beside a key": ("", attempts(columns=["decision_id", "attempt_id"])),
    "an attempt that an index carries along": ("", attempts(columns=[KEY], included=["attempt_id"])),
    "races of serializable transactions": ("", outrun("race", 1), outrun("race-nonce", 1), outrun("race-arbiter", 1)),
    "a function that was reviewed": ("surface.admit", mention()),
    "a job on other tables": ("", job(command="DELETE FROM consumed_request_log")),
    "an index whose function was reviewed": ("surface.f", plain(expressions="surface.f(run_id)")),
    "an index that was reviewed": ("plain", plain(calls=["surface.f"])),
    "a check of the moment that was reviewed": ("said", check(AUDIT, volatile=["now"])),
    "a check that is not enforced": ("", check(AUDIT, volatile=["now"], enforced=False)),
    "a default of the audit that was reviewed": ("surface.f", column(AUDIT, "code", calls=["surface.f"])),
    "parameters and files of superusers": (
        "", superuser("boss"), member("pg_write_server_files", "boss", inherit=True),
        parameter(parameter="fsync", grantee="boss"), files(grantee="boss"), grant(AUDIT, "boss", "TRIGGER"),
    ),
    "others who append to the audit": ("", role("other"), grant(AUDIT, "other", "INSERT")),
    "a login trigger that was reviewed": ("greet", event_trigger(**LOGIN)),
    "a login trigger that is off": ("", event_trigger(**LOGIN, enabled="D")),
    "the server will commit late, the writer not": (
        "", waiting("synchronous_commit", "off"), setting("synchronous_commit", "on"),
    ),
    "what is on after a reload": ("", waiting("fsync", "on")),
    "a commit that waits for standbys": ("", setting("synchronous_commit", "remote_apply")),
    "the server commits late, the writer does not": (
        "", commit("synchronous_commit", value="off"), setting("synchronous_commit", "on"),
    ),
    "what is unique in the audit with its primary key": ("", audit_index(columns=["code", "audit_id"])),
    "a number of the server's own in the audit": (
        "", made_up("place", "nextval('s'::regclass)"), made_up("mark", "gen_random_uuid()"),
        audit_index(columns=["place"]), audit_index(columns=["mark"]),
    ),
    "a composite key beside the sound one": ("", attempts(columns=[KEY, "attempt_id"])),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMLESS)
def test_the_accepted_neighbour_stays_fit(fit: Evidence, name: str) -> None:
    given, *changes = HARMLESS[name]
    policy = Policy(reviewed=(given,) if given else ()) if isinstance(given, str) else given
    judgement = judge(both(*changes)(fit), policy)
    assert judgement.status is Status.FIT, [(reason.code, reason.text) for reason in judgement.reasons]


@pytest.mark.parametrize(
    ("definition", "standing"),
    [
        ("CHECK ((operation = 'register_dot'::text))", Standing.PROVEN),
        ("CHECK (('register_dot'::text = operation))", Standing.PROVEN),
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
    changed = check_of("operation", definition=definition)(fit)
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
    dropped = both(drop("constraints", at(EFFECT, columns=["operation"])), admitted("other-operation"))(fit)
    assert judge(dropped, Policy()).findings[3].standing is R
    assert judge(dropped, declared).findings[3].standing is Standing.PROVEN
    routing = "CHECK ((operation = ANY (ARRAY['inbound'::text, 'outbound'::text])))"
    other = check_of("operation", definition=routing)(fit)
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
        edit("server", {}, replica=True), add("prepared", gid="stuck", owner="x"), event_trigger(), maker(), refers(),
        add("extensions", name="citus", version="12", schema="public"), setting("search_path", "mine, public"),
        add("publications", **at(EFFECT, publication="out")),
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
    described = judge(mention(name="tell", definition=text)(fit), Policy()).notes
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
    both_of = ({**plain, "arguments": "a text"}, {**plain, "definition": f"AS $function$\n{more}\n$function$\n"})
    changed = with_rows(fit, "functions", both_of)
    assert {reason.code for reason in judge(changed, Policy()).reasons} == {"GUARD_UNREVIEWED"}


def test_what_a_check_calls_binds_nothing(fit: Evidence) -> None:
    changed = check_of("run_id", definition="CHECK (surface.said(run_id))")(fit)
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
    changed = admitted(probe, affected=affected)(fit)
    assert [reason.text for reason in judge(changed, Policy()).reasons] == [said]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({}, "ALTER TYPE surface.operation OWNER TO registrar_owner"),
        ({"kind": "operator class", "name": "a.b USING btree"}, "ALTER OPERATOR CLASS a.b USING btree OWNER TO"),
        ({"kind": "extension", "name": "citext"}, "REASSIGN OWNED BY crew TO registrar_owner"),
    ],
)
def test_a_reason_says_how_what_belongs_to_another_becomes_the_owners(
    fit: Evidence, row: dict[str, str], said: str
) -> None:
    (reason,) = judge(owned(EFFECT, **row)(fit), Policy()).reasons
    assert said in reason.text


def test_an_attempt_that_a_policy_looks_for_must_be_there(fit: Evidence) -> None:
    elsewhere = judge(fit, Policy(columns={"attempt": "try_no"}))
    (finding,) = [each for each in elsewhere.findings if each.criterion is Criterion.SINGLE_USE]
    assert (finding.standing, [each.code for each in finding.reasons]) == (Standing.UNPROVEN, ["MISSING_COLUMNS"])
