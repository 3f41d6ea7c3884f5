"""Which store a run used: by the report of the launcher or the adapter, and by inspection."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from holdfast.conformance.fitness.assessment import Assessment
from holdfast.conformance.fitness.errors import FitnessError
from holdfast.conformance.fitness.judge import judge
from holdfast.conformance.fitness.model import Evidence, Part, RelationName, Snapshot, Surface
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres import snapshot
from holdfast.conformance.fitness.sqlite import live as files
from holdfast.conformance.fitness.store import Login, store_at
from holdfast.conformance.fitness.tie import not_tied
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.settings import RunSettings
from holdfast.conformance.run.surface import asks_for_one
from holdfast.reference_impl.rs4a_replay.postgres_provision import provision_postgres
from holdfast.reference_impl.rs4a_replay.provision import provision_sqlite, sqlite_paths
from holdfast.reports.evidence import SurfaceLine
from holdfast.specs import contract_names, load_contract, load_terms, schema
from holdfast.specs.typed import written
from tests.fitness.documented import line_of
from tests.fitness.lives import LiveServer

CONTRACT = load_contract("rs4a-replay")
REFERENCE = (sys.executable, "-P", "-m", "holdfast.reference_impl")
SAYS = Path(__file__).with_name("says.py")
WRITER = "holdfast_registrar"
sweep = partial(pytest.param, marks=pytest.mark.sweep)
OWN = {
    Part.EFFECT: RelationName("rs4a_replay", "registration"),
    Part.NONCE: RelationName("rs4a_replay", "nonce_consume"),
    Part.AUDIT: RelationName("rs4a_replay", "audit"),
}


def observed(store: str, *, adapter: Sequence[str] = (*REFERENCE, "adapter"), mutant: str | None = None) -> SurfaceLine:
    """What a run of the reference says of its store."""
    words = () if mutant is None else ("--mutant", mutant)
    settings = RunSettings(
        adapter=tuple(adapter),
        contracts=(CONTRACT.name,),
        seed="5eed",
        launcher=(*REFERENCE, "launch", *words),
        config={"store": store},
    )
    with Engine(settings) as engine:
        line = engine.surface(CONTRACT)
    published = schema.published_schema("evidence")["$defs"]
    held = schema.Validator({**published["surface"], "$defs": published})
    assert schema.explain(held, {**written(line), "prev": "sha256:" + "0" * 64}) is None
    return line


@pytest.fixture(scope="module")
def on_postgresql() -> SurfaceLine:
    return observed("postgres")


@pytest.fixture(scope="module")
def on_sqlite() -> SurfaceLine:
    return observed("sqlite")


def looked_at(surface: Surface, shot: Snapshot) -> Assessment:
    """An assessment that tried nothing: only what it is of counts here."""
    evidence = Evidence(surface, shot)
    return Assessment("a test", Policy(), surface, evidence, judge(evidence, Policy()))


@pytest.fixture(scope="module")
def provisioned(live_server: LiveServer) -> Iterator[LiveServer]:
    """A server of its own with the reference's surface, and a writer of another name than a run's."""
    relations = load_terms(CONTRACT.name).relations
    with live_server.database("own") as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(WRITER)))
        provision_postgres(live_server.dsn_of("own"), relations, writer=WRITER)
        connection.close()
        yield live_server


def own_surface(server: LiveServer, database: str) -> Assessment:
    with psycopg.connect(server.dsn_of(database), autocommit=True) as connection:
        surface = Surface("own", OWN, WRITER)
        return looked_at(surface, snapshot.take(connection, surface))


@pytest.fixture(scope="module")
def own_live(provisioned: LiveServer) -> Assessment:
    return own_surface(provisioned, "own")


@pytest.fixture
def own_file(tmp_path: Path) -> Assessment:
    """The reference's surface in files of its own, elsewhere."""
    provision_sqlite(tmp_path / "live", load_terms(CONTRACT.name).relations)
    file, audit = sqlite_paths(tmp_path / "live")
    parts = {part: RelationName("main", name.name) for part, name in OWN.items()}
    parts[Part.AUDIT] = RelationName(str(audit), "audit")
    surface = Surface("own", parts, None)
    return looked_at(surface, files.take(file, surface))


def test_only_contracts_that_ask_for_fitness_ask_which_store_a_run_used() -> None:
    assert [name for name in contract_names() if asks_for_one(load_contract(name))] == ["rs4a-replay"]


def test_a_run_on_postgresql_is_tied_to_a_proof_of_the_same_ddl_on_another_server_with_another_writer(
    on_postgresql: SurfaceLine, own_live: Assessment
) -> None:
    assert (on_postgresql.problem, on_postgresql.used, on_postgresql.source) == ("", True, "adapter")
    assert own_live.server is not None
    assert on_postgresql.server != own_live.server.name
    assert on_postgresql.writer != "holdfast_registrar"
    assert list(not_tied(own_live, [on_postgresql])) == []


def test_a_run_on_sqlite_is_tied_to_a_proof_of_the_same_ddl_in_another_file(
    on_sqlite: SurfaceLine, own_file: Assessment
) -> None:
    assert (on_sqlite.problem, on_sqlite.used, on_sqlite.source) == ("", True, "adapter")
    assert list(not_tied(own_file, [on_sqlite])) == []


def test_a_run_on_another_ddl_is_not_tied_though_all_names_are_the_same(own_file: Assessment) -> None:
    line = observed("sqlite", mutant="key-unchecked")
    assert line.used
    (said,) = not_tied(own_file, [line])
    assert "they differ in main.schema" in said


@pytest.mark.parametrize(
    ("statement", "query"),
    [
        # A relation that was made and dropped again leaves no trace.
        sweep("CREATE INDEX extra ON {0}.registration (run_id); DROP INDEX {0}.extra", None),
        ("CREATE INDEX another ON {0}.registration (run_id)", "indexes"),
        sweep("ALTER TABLE {0}.registration DROP CONSTRAINT replay_key_unique", "constraints, indexes"),
        sweep("ALTER TABLE {0}.registration ADD COLUMN note text", "columns"),
        sweep("ALTER TABLE {0}.registration ALTER COLUMN run_id DROP NOT NULL", "columns"),
        sweep("ALTER TABLE {0}.nonce_consume SET UNLOGGED", "relations"),
        sweep("ALTER TABLE {0}.registration DISABLE TRIGGER registration_no_truncate", "triggers"),
        ("GRANT DELETE ON {0}.registration TO holdfast_registrar", "grants"),
        sweep("GRANT INSERT ON {0}.registration TO PUBLIC", "grants"),
        (
            "CREATE OR REPLACE FUNCTION {0}.refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE NOTICE 'no'; RETURN NEW; END $$",
            "functions",
        ),
        # Whose they are, and who else may read them, belongs to the server.
        ("CREATE ROLE auditor; GRANT USAGE ON SCHEMA {0} TO auditor; GRANT SELECT ON {0}.audit TO auditor", None),
        (
            "CREATE ROLE owner; ALTER TABLE {0}.registration OWNER TO owner; ALTER SCHEMA {0} OWNER TO owner; "
            "ALTER FUNCTION {0}.refuse_change() OWNER TO owner",
            None,
        ),
        ("ALTER ROLE holdfast_registrar SET statement_timeout = '5s'; CREATE VIEW public.v AS SELECT 1", None),
    ],
)
def test_what_of_a_surface_must_be_the_same_in_the_run_and_what_belongs_to_the_server(
    provisioned: LiveServer, own_live: Assessment, statement: str, query: str | None
) -> None:
    copy = sql.Identifier("changed")
    with psycopg.connect(provisioned.dsn, autocommit=True) as keeper:
        keeper.execute(sql.SQL("CREATE DATABASE {} TEMPLATE own").format(copy))
        try:
            with psycopg.connect(provisioned.dsn_of("changed"), autocommit=True) as connection:
                connection.execute(statement.format("rs4a_replay"))
            found = own_surface(provisioned, "changed")
        finally:
            keeper.execute(sql.SQL("DROP DATABASE {}").format(copy))
    line = line_of(own_live)
    said = list(not_tied(found, [line]))
    assert len(said) == (0 if query is None else 1)
    assert all(f"they differ in {query};" in text for text in said), said


@pytest.mark.parametrize(
    ("how", "complaint"),
    [
        ("nothing", "neither the launcher nor the adapter said where the store of a session is"),
        sweep("no-such-file", "the store that the adapter names cannot be read: expected a SQLite database"),
        sweep("no-relation", "the store that the adapter names cannot be read"),
        sweep("no-effect", "names no `effect`"),
        sweep("endless", "cannot be read as a SQLite database: interrupted"),
        ("misfit", "the adapter's `surface` does not fit surface.schema.json"),
        ("dsn", "the store that the adapter names cannot be read"),
    ],
)
def test_a_store_that_cannot_be_looked_at_is_a_problem_of_the_line_and_of_nothing_else(
    own_file: Assessment, how: str, complaint: str
) -> None:
    line = observed("sqlite", adapter=(sys.executable, str(SAYS), how))
    assert complaint in line.problem
    assert not line.used
    assert "Pa55" not in json.dumps(written(line))
    (said,) = not_tied(own_file, [line])
    assert complaint in said


def test_a_store_of_the_same_schema_into_which_nothing_goes_is_not_the_one_that_was_used(
    own_file: Assessment,
) -> None:
    line = observed("sqlite", adapter=(sys.executable, str(SAYS), "decoy"))
    assert line.problem == ""
    assert not line.used
    (said,) = not_tied(own_file, [line])
    assert "nothing that the adapter accepted was seen" in said


@pytest.mark.parametrize("login", list(Login))
def test_a_password_of_the_users_is_not_sent_to_a_server_that_an_adapter_names(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, login: Login
) -> None:
    monkeypatch.setenv("PGPASSWORD", "s3cret-Pa55-word")
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def ask_for_a_password() -> None:
            connection, _ = listener.accept()
            with connection:
                size = int.from_bytes(connection.recv(4))
                connection.recv(size - 4)
                # AuthenticationCleartextPassword.
                connection.sendall(b"R" + (8).to_bytes(4) + (3).to_bytes(4))
                heard.append(connection.recv(1024))

        server = threading.Thread(target=ask_for_a_password)
        server.start()
        dsn = f"host=127.0.0.1 port={listener.getsockname()[1]} dbname=x user=w sslmode=disable gssencmode=disable"
        with pytest.raises(FitnessError):
            store_at({"dsn": dsn, "effect": "s.t"}, tmp_path, login).inspect()
        server.join()
    assert (b"Pa55" in heard[0]) is (login is Login.OF_THE_USER)


@pytest.mark.sweep
def test_what_a_launcher_alone_says_is_looked_at_too(own_live: Assessment) -> None:
    # The database that it names is the template, of which every session has a clone.
    line = observed("postgres", adapter=(sys.executable, str(SAYS), "nothing"))
    assert (line.problem, line.source, line.used) == ("", "launcher", False)
    (said,) = not_tied(own_live, [line])
    assert "in the store that the launcher named" in said
