"""What is read from a live catalogue: the same rows for equal surfaces and for every reader, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from holdfast.conformance.fitness.judge import judge
from holdfast.conformance.fitness.model import Evidence, Part, RelationName, Snapshot, Standing, Surface
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres.snapshot import moment, take
from holdfast.conformance.fitness.proof import bound_to
from holdfast.reference_impl.rs4a_replay.postgres_provision import ensure_writer, provision_postgres
from holdfast.specs import load_terms
from holdfast.specs.fitness import QueryKind, load_queries
from tests.fitness.lives import LiveServer

CONTRACT = "rs4a-replay"
WRITER = "w"
SURFACE = Surface(
    "s",
    {
        Part.EFFECT: RelationName("rs4a_replay", "registration"),
        Part.NONCE: RelationName("rs4a_replay", "nonce_consume"),
        Part.AUDIT: RelationName("rs4a_replay", "audit"),
    },
    WRITER,
)


@pytest.fixture
def live(live_server: LiveServer) -> Iterator[psycopg.Connection[Any]]:
    """The reference's own surface in a database of its own."""
    with live_server.database() as connection:
        ensure_writer(connection, WRITER, password=None)
        provision_postgres(live_server.dsn_of("registry"), load_terms(CONTRACT).relations, writer=WRITER)
        yield connection


def observed(connection: psycopg.Connection[Any]) -> Snapshot:
    return take(connection, SURFACE)


def test_every_query_is_read_and_equal_surfaces_have_one_digest(
    live: psycopg.Connection[Any], live_server: LiveServer
) -> None:
    first = observed(live)
    queries = load_queries(CONTRACT)
    assert set(first.structure) == {query.name for query in queries.of(QueryKind.STRUCTURE)}
    assert set(first.circumstances) == {query.name for query in queries.of(QueryKind.CIRCUMSTANCE)} | {"unreadable"}
    assert first.circumstances["unreadable"] == {}
    # The same surface again, with other OIDs, in a database with another name.
    with live_server.database("another") as connection:
        connection.execute("CREATE TABLE before_it (a int)")
        provision_postgres(live_server.dsn_of("another"), load_terms(CONTRACT).relations, writer=WRITER)
        second = observed(connection)
    policy = Policy().written()
    assert first.structure == second.structure
    assert bound_to(first.structure, policy) == bound_to(second.structure, policy)


def test_writer_sees_the_same_structure(live: psycopg.Connection[Any], live_server: LiveServer) -> None:
    with psycopg.connect(live_server.dsn_of("registry", user=WRITER)) as connection:
        assert observed(connection).structure == observed(live).structure


# One after another, each with the query that has to show it.
CHANGES = """
relations: ALTER TABLE rs4a_replay.registration FORCE ROW LEVEL SECURITY
triggers: ALTER TABLE rs4a_replay.registration DISABLE TRIGGER registration_append_only
columns: ALTER TABLE rs4a_replay.registration ALTER run_id SET DEFAULT ''
grants: GRANT UPDATE (run_id) ON rs4a_replay.registration TO w
memberships: GRANT pg_write_all_data TO w
roles: ALTER ROLE w CREATEROLE
role_settings: ALTER ROLE w SET synchronous_commit = off
role_settings: ALTER DATABASE registry SET session_replication_role = replica
durability: ALTER ROLE w SET zero_damaged_pages = on
durability: ALTER DATABASE registry SET ignore_checksum_failure = on
event_triggers: CREATE FUNCTION watch() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
  CREATE EVENT TRIGGER watch ON sql_drop EXECUTE FUNCTION watch()
event_triggers: CREATE OR REPLACE FUNCTION watch() RETURNS event_trigger LANGUAGE plpgsql
  AS 'BEGIN RAISE NOTICE ''x''; END'
administrators: CREATE ROLE maker CREATEROLE
parameters: GRANT SET ON PARAMETER session_replication_role TO w
indexes: CREATE INDEX more ON rs4a_replay.registration (run_id)
inheritance: CREATE TABLE child () INHERITS (rs4a_replay.registration)
views: CREATE VIEW shown AS SELECT * FROM rs4a_replay.registration
mentions: CREATE FUNCTION purge() RETURNS void LANGUAGE sql AS 'DELETE FROM rs4a_replay.registration'
functions: CREATE OR REPLACE FUNCTION rs4a_replay.refuse_change() RETURNS trigger LANGUAGE plpgsql
  AS 'BEGIN RETURN NEW; END'
references: CREATE TABLE log (k text REFERENCES rs4a_replay.registration (logical_request_key) ON DELETE CASCADE)
schemas: ALTER SCHEMA rs4a_replay OWNER TO w
owners: ALTER FUNCTION rs4a_replay.refuse_change OWNER TO w
definers: CREATE FUNCTION door() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'
definers: REVOKE EXECUTE ON FUNCTION door FROM PUBLIC
rules_elsewhere: CREATE TABLE inbox (k text); CREATE RULE aside AS ON INSERT TO inbox
  DO ALSO DELETE FROM rs4a_replay.registration WHERE run_id = NEW.k
rules: CREATE RULE aside AS ON INSERT TO rs4a_replay.registration DO ALSO NOTHING
policies: CREATE POLICY hidden ON rs4a_replay.registration USING (false)
constraints: ALTER TABLE rs4a_replay.registration ADD CHECK (run_id <> 'x') NOT ENFORCED
"""


def test_what_changes_the_surface_changes_the_structure(live: psycopg.Connection[Any]) -> None:
    before = observed(live)
    for row in CHANGES.strip().replace("\n  ", " ").splitlines():
        query, _, statement = row.partition(": ")
        live.execute(statement.encode())
        after = observed(live)
        assert before.structure[query] != after.structure[query], statement
        before = after
    # Parameters are the server's, and no database takes them with it.
    live.execute("REVOKE SET ON PARAMETER session_replication_role FROM w")


def test_a_table_space_is_the_relations_own_or_that_of_the_database(
    live: psycopg.Connection[Any], live_server: LiveServer
) -> None:
    live.execute("SET allow_in_place_tablespaces = on")
    live.execute("CREATE TABLESPACE fast LOCATION ''")
    live.execute("ALTER TABLE rs4a_replay.registration SET TABLESPACE fast")
    own = {row["relation"]: row["tablespace"] for row in observed(live).structure["relations"]}
    assert (own["registration"], own["nonce_consume"]) == ("fast", None)
    live.execute("ALTER TABLE rs4a_replay.registration SET TABLESPACE pg_default")
    live.execute("CREATE DATABASE spaced TABLESPACE fast TEMPLATE template0")
    with live_server.database("spaced") as connection:
        provision_postgres(live_server.dsn_of("spaced"), load_terms(CONTRACT).relations, writer=WRITER)
        connection.execute("ALTER TABLE rs4a_replay.nonce_consume SET TABLESPACE pg_default")
        structure = observed(connection).structure
    own = {row["relation"]: row["tablespace"] for row in structure["relations"]}
    assert (own["registration"], own["nonce_consume"]) == ("fast", None)
    assert "fast" in {row["tablespace"] for row in structure["indexes"]}
    live.execute("DROP DATABASE spaced")
    live.execute("DROP TABLESPACE fast")


def test_helpers_of_a_guard_are_part_of_it(live: psycopg.Connection[Any]) -> None:
    live.execute("CREATE FUNCTION rs4a_replay.say() RETURNS void LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$")
    live.execute(
        "CREATE OR REPLACE FUNCTION rs4a_replay.refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM rs4a_replay.say(); RETURN NULL; END $$"
    )
    before = observed(live)
    assert {row["name"] for row in before.structure["functions"]} == {"refuse_change", "say"}
    live.execute("CREATE OR REPLACE FUNCTION rs4a_replay.say() RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$")
    assert observed(live).structure["functions"] != before.structure["functions"]


def test_whatever_a_relation_is_made_of_has_an_owner_and_what_only_refers_to_it_has_none(
    live: psycopg.Connection[Any],
) -> None:
    live.execute(
        """
        CREATE ROLE maker; CREATE SCHEMA made; GRANT ALL ON SCHEMA made TO maker; SET ROLE maker;
        CREATE TYPE made.mood AS ENUM ('calm'); CREATE TYPE made.mark AS (mood made.mood, said text);
        CREATE FUNCTION made.ok(t text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT t <> '' $$;
        CREATE DOMAIN made.base AS text CHECK (made.ok(VALUE)); CREATE DOMAIN made.form AS made.base;
        CREATE COLLATION made.bytes (provider = libc, locale = 'C'); CREATE SEQUENCE made.numbers;
        CREATE FUNCTION made.same(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT $1 = $2 $$;
        CREATE OPERATOR made.== (LEFTARG = text, RIGHTARG = text, FUNCTION = made.same);
        CREATE TABLE made.other (key text PRIMARY KEY); CREATE TABLE made.rows (a int);
        CREATE TABLE made.refers (key text); RESET ROLE;
        ALTER TABLE rs4a_replay.registration ADD marks made.mark[], ADD more made.form, ADD n int,
          ADD r made.rows, ADD told text COLLATE made.bytes, ADD CHECK (told OPERATOR(made.==) told),
          ADD target text REFERENCES made.other;
        ALTER TABLE rs4a_replay.registration ALTER n SET DEFAULT nextval('made.numbers');
        ALTER TABLE made.refers ADD FOREIGN KEY (key) REFERENCES rs4a_replay.registration (logical_request_key);
        """
    )
    rows = [row for row in observed(live).structure["owners"] if row["owner"] == "maker"]
    assert {(row["kind"], row["name"]) for row in rows if row["relation"] == "registration"} == {
        ("type", "made.mood"), ("type", "made.mark"), ("type", "made.base"), ("type", "made.form"),
        ("function", "made.ok(pg_catalog.text)"), ("function", "made.same(pg_catalog.text,pg_catalog.text)"),
        ("collation", "made.bytes"), ("sequence", "made.numbers"), ("table", "made.rows"),
        ("operator", "made.==(pg_catalog.text,pg_catalog.text)"),
    }  # fmt: skip
    assert {row["relation"] for row in rows} == {"registration"}


def test_checks_say_which_functions_may_answer_otherwise_tomorrow(live: psycopg.Connection[Any]) -> None:
    live.execute(
        "CREATE FUNCTION rs4a_replay.ok(t text) RETURNS boolean LANGUAGE sql STABLE AS 'SELECT t <> now()::text'"
    )
    live.execute("CREATE DOMAIN rs4a_replay.key AS text CHECK (rs4a_replay.ok(VALUE)) CHECK (VALUE <> '')")
    live.execute("CREATE TABLE rs4a_replay.t (k rs4a_replay.key CHECK (rs4a_replay.ok(k)), l text CHECK (l <> ''))")
    found = take(live, Surface("t", {Part.EFFECT: RelationName("rs4a_replay", "t")}, None)).structure
    assert sorted(row["volatile"] for row in found["domain_checks"]) == [[], ["ok"]]
    assert {row["columns"][0]: row["volatile"] for row in found["constraints"]} == {"k": ["ok"], "l": []}
    assert {row["base_type"] for row in found["columns"]} == {"pg_catalog.text"}
    assert "ok" in {row["name"] for row in found["functions"]}


def test_not_null_that_was_never_validated_is_none(live: psycopg.Connection[Any]) -> None:
    live.execute("CREATE TABLE rs4a_replay.t (logical_request_key text, CONSTRAINT n NOT NULL logical_request_key)")
    live.execute("ALTER TABLE rs4a_replay.t DROP CONSTRAINT n")
    live.execute("ALTER TABLE rs4a_replay.t ADD CONSTRAINT n NOT NULL logical_request_key NOT VALID")
    surface = Surface("t", {Part.EFFECT: RelationName("rs4a_replay", "t")}, None)
    (column,) = take(live, surface).structure["columns"]
    assert column["not_null"] is False
    live.execute("ALTER TABLE rs4a_replay.t VALIDATE CONSTRAINT n")
    (column,) = take(live, surface).structure["columns"]
    assert column["not_null"] is True


def test_nothing_can_be_written_meanwhile_and_nothing_is_left(live: psycopg.Connection[Any]) -> None:
    with moment(live):
        assert live.execute("SHOW transaction_isolation").fetchone() == ("repeatable read",)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), live.transaction():
            live.execute("CREATE TABLE public.t (a int)")
    assert live.info.transaction_status is psycopg.pq.TransactionStatus.IDLE
    assert live.execute("SHOW search_path").fetchone() == ('"$user", public',)


def test_what_the_role_may_not_read_is_named_and_leaves_the_surface_unproven(
    live: psycopg.Connection[Any], live_server: LiveServer
) -> None:
    for catalogue, query in (("pg_trigger", "triggers"), ("pg_index", "indexes")):
        live.execute(f"REVOKE SELECT ON pg_catalog.{catalogue} FROM PUBLIC")
        with psycopg.connect(live_server.dsn_of("registry", user=WRITER)) as connection:
            found = observed(connection)
        assert query not in found.structure
        assert found.circumstances["unreadable"][query].startswith("42501")
        judged = judge(Evidence(SURFACE, found), Policy())
        assert "CATALOGUE_UNREADABLE" in {reason.code for reason in judged.reasons}
        assert {finding.standing for finding in judged.findings} == {Standing.UNPROVEN}


def _cron(connection: psycopg.Connection[Any]) -> None:
    connection.execute(
        "CREATE SCHEMA cron; CREATE TABLE cron.job (schedule text, command text, username text, database text, active "
        "bool); INSERT INTO cron.job VALUES ('@daily', 'DELETE FROM rs4a_replay.registration', 'x', 'registry', true)"
    )


def test_jobs_are_read_where_they_can_be(live: psycopg.Connection[Any], live_server: LiveServer) -> None:
    assert observed(live).circumstances["jobs_cron"] == []
    _cron(live)
    (job,) = observed(live).circumstances["jobs_cron"]
    assert job["command"] == "DELETE FROM rs4a_replay.registration"
    retention = judge(Evidence(SURFACE, observed(live)), Policy()).findings[8]
    assert ("JOB", Standing.REFUTED) in {(reason.code, reason.standing) for reason in retention.reasons}
    # What row security hides is not taken for nothing.
    live.execute("GRANT USAGE ON SCHEMA cron TO w; GRANT SELECT ON cron.job TO w")
    live.execute("ALTER TABLE cron.job ENABLE ROW LEVEL SECURITY")
    with psycopg.connect(live_server.dsn_of("registry", user=WRITER)) as connection:
        found = observed(connection)
    assert found.circumstances["unreadable"]["jobs_cron"].startswith("42501")
    retention = judge(Evidence(SURFACE, found), Policy()).findings[8]
    assert "CATALOGUE_UNREADABLE" in {reason.code for reason in retention.reasons}


def test_names_that_need_quotes_are_only_names(live: psycopg.Connection[Any]) -> None:
    live.execute("""CREATE SCHEMA "o'hara.x"; CREATE TABLE "o'hara.x"."a b%s" ("c d" int)""")
    name = RelationName("o'hara.x", "a b%s")
    found = take(live, Surface("s", {Part.EFFECT: name}, "no; such role"))
    assert [row["name"] for row in found.structure["columns"]] == ["c d"]
    assert found.circumstances["unreadable"] == {}
