"""A clone is what the live surface is, or there is none; and neither server keeps anything of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from msgspec import structs
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.conformance.fitness.errors import LostError
from holdfast.conformance.fitness.model import Part, RelationName, Surface
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres import clone as clones_of
from holdfast.conformance.fitness.postgres.clone import discreet
from holdfast.conformance.fitness.postgres.probes import probe_clone
from holdfast.conformance.fitness.postgres.scratch import Scratch, scratch
from holdfast.conformance.fitness.target import target_of
from holdfast.specs.fitness import load_queries
from holdfast.specs.schema import explain, published_validator
from tests.fitness.lives import LiveServer, clone_of, snapshot_of
from tests.fitness.schemas import CORPUS, DATABASE, schemas

SURFACE = Surface(
    "reg.effect",
    {
        Part.EFFECT: RelationName("reg", "effect"),
        Part.NONCE: RelationName("reg", "consumed"),
        Part.AUDIT: RelationName("reg", "refusals"),
    },
    "corpus_writer",
)
# One thing of each kind that `LIKE … INCLUDING ALL` loses or mends.
_KEPT = """
ALTER TABLE reg.effect ADD CONSTRAINT later CHECK (run_id <> 'x') NOT VALID;
ALTER TABLE reg.effect ADD CONSTRAINT at_the_end UNIQUE (attempt_id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE reg.effect ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY whole ON reg.effect TO corpus_writer USING (true) WITH CHECK (true);
CREATE RULE besides AS ON INSERT TO reg.refusals DO ALSO NOTIFY refusals;
ALTER TABLE reg.consumed DISABLE TRIGGER consumed_whole;
GRANT UPDATE (run_id) ON reg.effect TO corpus_other WITH GRANT OPTION;
GRANT corpus_other TO corpus_writer WITH ADMIN TRUE, INHERIT FALSE, SET FALSE;
ALTER ROLE corpus_writer SET search_path = reg, "$user", public;
ALTER ROLE corpus_writer IN DATABASE registry SET synchronous_commit = local;
ALTER ROLE corpus_owner LOGIN BYPASSRLS CREATEROLE NOINHERIT;
CREATE TABLE reg.inbox (k text);
CREATE RULE forward AS ON INSERT TO reg.inbox DO ALSO INSERT INTO reg.consumed VALUES (NEW.k, NEW.k);
CREATE FUNCTION public.door() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN RETURN NEW; END $$;
REVOKE EXECUTE ON FUNCTION public.door FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.door TO corpus_other;
CREATE TRIGGER door AFTER INSERT ON reg.inbox FOR EACH ROW EXECUTE FUNCTION public.door();
"""

_GUARD = """
CREATE TRIGGER effect_rows BEFORE UPDATE OR DELETE ON reg.effect FOR EACH ROW EXECUTE FUNCTION reg.refuse_change();
ALTER TABLE reg.effect ENABLE ALWAYS TRIGGER effect_rows
"""


@pytest.fixture
def live(live_server: LiveServer) -> Iterator[psycopg.Connection[object]]:
    """A database with the fit surface in it."""
    with live_server.database(DATABASE) as connection:
        connection.execute((CORPUS / "fit.sql").read_bytes())
        yield connection


def _kept_by(server: Scratch) -> tuple[set[object], set[object]]:
    with closing(server.connect()) as connection:
        databases = {name for (name,) in connection.execute("SELECT datname FROM pg_database").fetchall()}
        roles = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles").fetchall()}
    return databases, roles


def test_clone_has_everything_that_copying_a_table_would_lose(
    live: psycopg.Connection[object], live_server: LiveServer, clones: Scratch
) -> None:
    live.execute(_KEPT.encode())
    dsn = live_server.dsn_of(DATABASE)
    snapshot = snapshot_of(dsn, SURFACE)
    with clone_of(dsn, SURFACE, snapshot, clones) as made:
        assert made.failed == ()
        observed = snapshot_of(made.dsn, SURFACE)
        with psycopg.connect(made.dsn_as("corpus_writer")) as connection:
            path = connection.execute("SHOW search_path").fetchone()
    compared = [query.name for query in load_queries("rs4a-replay").queries if query.clone]
    assert len(compared) > 10
    assert all(snapshot.structure[name] for name in ("rules_elsewhere", "definers"))
    for name in compared:
        assert observed.structure[name] == snapshot.structure[name], name
    assert path == ('reg, "$user", public',)


@pytest.mark.parametrize(
    ("change", "undone", "words"),
    [
        ("CREATE INDEX by_run ON reg.effect (run_id)", "DROP INDEX reg.by_run", "indexes lacks"),
        ("GRANT DELETE ON reg.effect TO corpus_other", "REVOKE DELETE ON reg.effect FROM corpus_other", "grants lacks"),
        ("ALTER ROLE corpus_writer CREATEROLE", "ALTER ROLE corpus_writer NOCREATEROLE", "roles lacks"),
        ("DROP TRIGGER effect_rows ON reg.effect", _GUARD, "triggers has in addition"),
        (
            "CREATE FUNCTION door() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'",
            "DROP FUNCTION door",
            "definers lacks",
        ),
    ],
)
def test_clone_that_differs_in_anything_is_no_evidence(
    change: str, undone: str, words: str, live: psycopg.Connection[object], live_server: LiveServer, clones: Scratch
) -> None:
    dsn, kept = live_server.dsn_of(DATABASE), _kept_by(clones)
    live.execute(change.encode())
    snapshot = snapshot_of(dsn, SURFACE)
    # The dump comes later than the snapshot, and no longer has it.
    live.execute(undone.encode())
    with pytest.raises(LostError, match=words), clone_of(dsn, SURFACE, snapshot, clones):
        pytest.fail("a clone was handed out")
    assert _kept_by(clones) == kept


def test_index_that_was_never_finished_is_left_to_the_live_catalogue(live_server: LiveServer, clones: Scratch) -> None:
    invalid = next(schema for schema in schemas() if schema.id == "key-index-invalid")
    with live_server.database(DATABASE) as connection:
        invalid.make(connection)
        dsn = live_server.dsn_of(DATABASE)
        snapshot = snapshot_of(dsn, SURFACE)
        with clone_of(dsn, SURFACE, snapshot, clones) as made:
            names = {row["name"] for row in snapshot_of(made.dsn, SURFACE).structure["indexes"]}
    invalid_rows = [row["name"] for row in snapshot.structure["indexes"] if row["valid"] is False]
    assert invalid_rows == ["by_key"]
    assert "by_key" not in names
    assert "effect_replay" in names


def test_neither_server_keeps_anything_of_a_clone_that_was_probed_or_given_up(
    live: psycopg.Connection[object], live_server: LiveServer, clones: Scratch
) -> None:
    dsn = live_server.dsn_of(DATABASE)
    kept, before = _kept_by(clones), _dumped(dsn, clones)
    snapshot = snapshot_of(dsn, SURFACE)
    with clone_of(dsn, SURFACE, snapshot, clones) as made:
        assert probe_clone(made, SURFACE, snapshot, Policy())[0].name == "first"
    with pytest.raises(RuntimeError), clone_of(dsn, SURFACE, snapshot, clones):
        raise RuntimeError("the inspection was cancelled")
    assert _kept_by(clones) == kept
    assert _dumped(dsn, clones) == before
    assert live.execute("SELECT count(*) FROM reg.effect").fetchone() == (0,)


def _dumped(dsn: str, server: Scratch) -> list[str]:
    """Everything in a database, rows included, but for the key that pg_dump draws anew each time."""
    done = subprocess.run([server.programs / "pg_dump", "--dbname", dsn], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))]


def test_password_of_the_live_server_is_on_no_argument_list_and_in_no_error(
    live: psycopg.Connection[object], live_server: LiveServer, clones: Scratch, tmp_path: Path
) -> None:
    program = tmp_path / "pg_dump"
    program.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/arguments\necho "$PGPASSWORD" >{tmp_path}/word\nexit 7\n')
    program.chmod(0o755)
    dsn = f"{live_server.dsn_of(DATABASE)} password=s3cret-word"
    snapshot = snapshot_of(dsn, SURFACE)
    with (
        pytest.raises(LostError, match="pg_dump ended with status 7") as raised,
        clone_of(dsn, SURFACE, snapshot, replace(clones, programs=tmp_path)),
    ):
        pytest.fail("a clone was handed out")
    assert (tmp_path / "word").read_text().strip() == "s3cret-word"
    assert DATABASE in (tmp_path / "arguments").read_text()
    assert "s3cret" not in (tmp_path / "arguments").read_text() + str(raised.value)


def test_server_command_says_what_it_runs_and_takes_settings(tmp_path: Path) -> None:
    wanted = {"contract": "rs4a-replay", "dir": str(tmp_path), "config": {"work_mem": "5MB"}, "confined": False}
    command = [sys.executable, "-P", "-m", "holdfast.servers.postgres.embedded"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps(wanted) + "\n")
        child.stdin.flush()
        ready = json.loads(child.stdout.readline())
        assert explain(published_validator("launcher"), ready) is None
        assert (Path(ready["config"]["programs"]) / "pg_dump").exists()
        with psycopg.connect(ready["config"]["dsn"]) as connection:
            assert connection.execute("SHOW work_mem").fetchone() == ("5MB",)
        child.stdin.close()
        assert child.wait(timeout=20) == 0
    assert [path for path in ready["paths"] if Path(path).exists()] == []


def test_scratch_server_is_the_one_that_was_started_whatever_the_environment_names(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elsewhere = {
        "PGHOSTADDR": "192.0.2.1",
        "PGPORT": "1",
        "PGOPTIONS": "-c work_mem=1GB",
        "PGUSER": "x",
        "PGDATABASE": "x",
    }
    for name, value in elsewhere.items():
        monkeypatch.setenv(name, value)
    with scratch() as made, closing(made.connect()) as connection:
        assert connection.info.host.startswith("/")
        assert connection.execute("SHOW work_mem").fetchone() == ("4MB",)


_HOLD = """
import sys
from holdfast.conformance.fitness.postgres.scratch import scratch
with scratch() as made:
    print(made.dsn, flush=True)
    sys.stdin.read()
"""


def test_nothing_is_left_of_a_scratch_server_whose_owner_was_killed() -> None:
    child = subprocess.Popen([sys.executable, "-c", _HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout is not None
        folder = Path(str(conninfo_to_dict(child.stdout.readline())["host"]))
        postmaster = int((folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(child.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while (folder.parent.exists() or Path(f"/proc/{postmaster}").exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not folder.parent.exists()
    assert not Path(f"/proc/{postmaster}").exists()


def test_text_of_a_view_from_an_older_server_is_no_difference_and_its_rights_are(
    live: psycopg.Connection[object], live_server: LiveServer, clones: Scratch
) -> None:
    live.execute("CREATE VIEW reg.seen AS SELECT run_id FROM reg.effect")
    dsn = live_server.dsn_of(DATABASE)
    snapshot = snapshot_of(dsn, SURFACE)
    (view,) = snapshot.structure["views"]
    older = {"server": [{**snapshot.circumstances["server"][0], "number": 150004}]}
    for changed, circumstances, faithful in (
        ({"definition": " SELECT effect.run_id\n   FROM reg.effect;"}, older, True),
        ({"definition": " SELECT effect.run_id\n   FROM reg.effect;"}, snapshot.circumstances, False),
        ({"owner": "corpus_owner"}, older, False),
    ):
        described = structs.replace(
            snapshot,
            structure={**snapshot.structure, "views": ({**view, **changed},)},
            circumstances={**snapshot.circumstances, **circumstances},
        )
        if faithful:
            with clone_of(dsn, SURFACE, described, clones) as made:
                assert made.failed == ()
        else:
            with pytest.raises(LostError, match="views lacks"), clone_of(dsn, SURFACE, described, clones):
                pytest.fail("a clone was handed out")


_SECRETS = {"password": "s3cret-Pa55", "sslpassword": "key-Pa55-word"}


def test_what_is_dumped_with_secrets_has_none_in_its_arguments(
    live_server: LiveServer, clones: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed: list[tuple[str, str, int]] = []
    run = clones_of._run

    def watched(command: list[str], *, environment: Mapping[str, str], **given: Any) -> Any:
        if environment.get("PGSERVICEFILE"):
            file = Path(environment["PGSERVICEFILE"])
            observed.append((" ".join(command), file.read_text(), file.stat().st_mode & 0o777))
            assert environment["PGPASSWORD"] == _SECRETS["password"]
        return run(command, environment=environment, **given)

    monkeypatch.setattr(clones_of, "_run", watched)
    # The server asks for neither, and pg_dump reads both.
    dumped = clones_of._dump(target_of(make_conninfo(live_server.dsn, **_SECRETS)), clones)
    ((arguments, file, mode),) = observed
    assert b"PostgreSQL database dump complete" in dumped
    assert (file, mode) == ("[holdfast]\nsslpassword=key-Pa55-word\n", 0o600)
    assert not any(secret in arguments for secret in _SECRETS.values())


def test_without_secrets_a_dsn_stays_as_it_is() -> None:
    with discreet("host=db service=mine") as (dsn, environment):
        assert conninfo_to_dict(dsn) == {"host": "db", "service": "mine"}
        assert environment == {}


@pytest.mark.parametrize(
    "dsn", ["service=mine sslpassword=word", "sslpassword='ends '", make_conninfo("", sslpassword="two\nlines")]
)
def test_secrets_that_cannot_be_handed_over_are_not_put_into_arguments_instead(dsn: str) -> None:
    with pytest.raises(LostError, match="sslpassword of the DSN"), discreet(dsn):
        pass
