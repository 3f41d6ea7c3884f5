"""The inspection of a foreign database runs no code of it, and overwrites no file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holdfast.conformance.cli.commands import app
from holdfast.conformance.fitness.gather import assess
from holdfast.conformance.fitness.model import Criterion, Standing, Status
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres.scratch import Scratch
from tests.fitness.documented import DOCUMENTED, surface_ddl
from tests.fitness.lives import LiveServer

_LOOKUP = """
CREATE SCHEMA evil; GRANT USAGE ON SCHEMA evil TO PUBLIC;
CREATE FUNCTION evil.run() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
  PERFORM set_config('default_transaction_read_only', 'off', false);
  IF current_setting('transaction_read_only') = 'off' THEN CREATE TABLE public.been_here (); END IF;
  RETURN true;
END $$;
CREATE FUNCTION evil.differs(name, text) RETURNS boolean LANGUAGE sql AS $$ SELECT evil.run() $$;
CREATE OPERATOR evil.!~ (LEFTARG = name, RIGHTARG = text, FUNCTION = evil.differs);
CREATE VIEW evil.pg_roles AS SELECT * FROM pg_catalog.pg_roles WHERE evil.run();
CREATE VIEW evil.pg_namespace AS SELECT * FROM pg_catalog.pg_namespace WHERE evil.run();
CREATE VIEW evil.pg_class AS SELECT * FROM pg_catalog.pg_class WHERE evil.run();
GRANT SELECT ON ALL TABLES IN SCHEMA evil TO PUBLIC;
ALTER DATABASE strangers SET search_path = evil, pg_catalog, public;
"""
_JOBS = """
CREATE ROLE app;
CREATE SCHEMA cron; GRANT USAGE ON SCHEMA cron TO PUBLIC;
CREATE FUNCTION cron.run() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'I am read'; END $$;
CREATE VIEW cron.job AS SELECT ''::text AS schedule, cron.run() AS command, ''::text AS username, true AS active,
  current_database()::text AS database;
ALTER VIEW cron.job OWNER TO app;
GRANT SELECT ON cron.job TO PUBLIC;
"""


def test_names_are_not_looked_up_where_the_owner_of_the_database_says(live_server: LiveServer, clones: Scratch) -> None:
    with live_server.database("strangers", surface_ddl()) as connection:
        connection.execute(_LOOKUP)
        assessed = assess(live_server.dsn_of("strangers"), DOCUMENTED, Policy(), server=clones)
        there = connection.execute("SELECT pg_catalog.to_regclass('public.been_here')").fetchone()
    assert assessed.judgement.status is Status.FIT
    assert there == (None,)


def test_a_table_of_jobs_that_belongs_to_no_superuser_is_not_read_and_proves_nothing(
    live_server: LiveServer, clones: Scratch
) -> None:
    with live_server.database("strangers", surface_ddl()) as connection:
        connection.execute(_JOBS)
        assessed = assess(live_server.dsn_of("strangers"), DOCUMENTED, Policy(), server=clones)
    standings = {each.criterion: each.standing for each in assessed.judgement.findings}
    assert standings[Criterion.RETENTION] is Standing.UNPROVEN
    assert any("cron.job belongs to no superuser" in reason.text for reason in assessed.judgement.reasons)


@pytest.mark.parametrize("words", [("--json", "held.db"), ("--html", "held.db"), ("--json", "held.db-wal")])
def test_nothing_is_written_over_a_database(tmp_path: Path, words: tuple[str, str]) -> None:
    held = tmp_path / "held.db"
    with sqlite3.connect(held) as connection:
        connection.execute("CREATE TABLE consumed (k TEXT)")
    connection.close()
    before = held.read_bytes()
    done = CliRunner().invoke(app, ["fitness", str(held), words[0], str(tmp_path / words[1])])
    assert done.exit_code == 64
    assert "choose another name" in " ".join((done.stdout + done.stderr).split())
    assert held.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["held.db"]


def test_the_policy_is_not_written_over_and_two_files_are_not_one(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("name: mine\n")
    inspect = ["fitness", "postgresql://nobody@/nothing"]
    for words in (["--policy", str(policy), "--json", str(policy)], ["--json", f"{policy}.1", "--html", f"{policy}.1"]):
        assert CliRunner().invoke(app, [*inspect, *words]).exit_code == 64
    assert policy.read_text() == "name: mine\n"
    assert list(tmp_path.iterdir()) == [policy]
