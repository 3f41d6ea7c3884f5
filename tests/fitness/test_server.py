"""A proof names its server; a replica, another database, a promoted standby and a restored schema are other ones."""

from __future__ import annotations

import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from holdfast.conformance.fitness.assessment import Assessment
from holdfast.conformance.fitness.gather import Names, assess
from holdfast.conformance.fitness.model import EvidenceClass, Part, RelationName, Standing, Status, Surface
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres import snapshot
from holdfast.conformance.fitness.postgres.scratch import Scratch
from holdfast.conformance.fitness.proof import Expected, proof_json, read, verify, write
from holdfast.conformance.fitness.server import Server, server_of
from holdfast.conformance.fitness.sqlite import live as files
from holdfast.conformance.fitness.tie import not_tied
from holdfast.conformance.gate.decision import installed_kit
from holdfast.reference_impl.postgres import connect
from holdfast.reference_impl.rs4a_replay.fitness import Claim, admit
from holdfast.reference_impl.rs4a_replay.postgres_provision import ensure_writer, provision_postgres
from holdfast.reference_impl.rs4a_replay.provision import provision_sqlite, sqlite_paths
from holdfast.reference_impl.session import OpenRefusedError
from holdfast.servers.postgres.cluster import Ending, Programs
from holdfast.servers.postgres.cluster import Server as Running
from holdfast.servers.postgres.embedded import EmbeddedServer
from holdfast.specs import load_contract, load_terms
from tests.fitness.documented import DOCUMENTED, line_of, surface_ddl
from tests.fitness.lives import LiveServer

WRITER = "holdfast_registrar"
OWN = Names("rs4a_replay.registration", "rs4a_replay.nonce_consume", "rs4a_replay.audit", WRITER)
CONTRACT = load_contract("rs4a-replay")


def test_a_server_that_may_not_be_asked_which_one_it_is_makes_no_proof(
    live_server: LiveServer, clones: Scratch
) -> None:
    with live_server.database("hidden", surface_ddl()) as connection:
        connection.execute("CREATE ROLE auditor LOGIN; GRANT pg_read_all_data TO auditor")
        connection.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
        try:
            found = assess(live_server.dsn_of("hidden", user="auditor"), DOCUMENTED, Policy(), server=clones)
        finally:
            connection.execute("GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
    assert found.server is None
    assert found.judgement.status is Status.NOT_FIT
    standings = {finding.standing for finding in found.judgement.findings}
    assert Standing.REFUTED not in standings
    assert found.evidence is not None
    assert "which server this is could not be read" in found.evidence.lost[EvidenceClass.CATALOGUE]


def test_a_database_that_was_made_anew_under_the_name_of_the_proven_one_is_another(live_server: LiveServer) -> None:
    def here() -> Server:
        with psycopg.connect(live_server.dsn_of("again"), autocommit=True) as connection:
            found = server_of(snapshot.read(connection, [], None))
        assert found is not None
        return found

    name = sql.Identifier("again")
    with psycopg.connect(live_server.dsn, autocommit=True) as keeper:
        keeper.execute(sql.SQL("CREATE DATABASE {}").format(name))
        before = here()
        assert before.same_as(here())
        keeper.execute(sql.SQL("DROP DATABASE {}").format(name))
        keeper.execute(sql.SQL("CREATE DATABASE {}").format(name))
        after = here()
        keeper.execute(sql.SQL("DROP DATABASE {}").format(name))
    assert before.name == after.name
    assert not before.same_as(after)


def test_a_sqlite_file_is_named_by_its_host_and_path_and_a_copy_is_another(tmp_path: Path) -> None:
    def named(file: Path) -> Server:
        surface = Surface("s", {Part.EFFECT: RelationName("main", "registration")}, None)
        found = server_of(files.take(file, surface))
        assert found is not None
        return found

    provision_sqlite(tmp_path / "live", load_terms("rs4a-replay").relations)
    file, _ = sqlite_paths(tmp_path / "live")
    copied = Path(shutil.copyfile(file, tmp_path / "copied.sqlite3"))
    live = named(file)
    assert live.name == f"sqlite:{platform.node()}:{file}"
    assert live.same_as(named(file))
    assert named(copied).name != live.name
    kept = file.rename(tmp_path / "kept.sqlite3")
    copied.rename(file)
    # The gate knows the place only; the inode in a proof says that another file lies there.
    assert named(file).name == live.name
    assert not live.same_as(named(file))
    assert kept.exists()


# Real servers: a standby, what was promoted, what was put back, what was restored


@dataclass(frozen=True, slots=True)
class Primary:
    """A server with the reference's surface in it, that others can be made of."""

    server: EmbeddedServer
    programs: Programs

    @property
    def dsn(self) -> str:
        return self.server.dsn("registry")

    def proof(self, path: Path, clones: Scratch, *, dsn: str | None = None) -> Assessment:
        """Inspect the surface and record the result."""
        assessed = assess(dsn or self.dsn, OWN, Policy(), server=clones)
        write(proof_json(assessed, kit=installed_kit(), made=datetime.now(UTC)), path)
        return assessed

    @contextmanager
    def started(self, data: Path) -> Iterator[Running]:
        """A second server on a folder of files."""
        socket = Path(tempfile.mkdtemp(prefix="holdfast-pg-", dir=data.parent))
        self.programs.give(socket)
        running = self.programs.start(data, socket, _REPLICATED)
        try:
            yield running
        finally:
            running.stop(Ending.AT_ONCE)


_REPLICATED = {"wal_level": "replica", "max_wal_senders": "4", "max_connections": "200"}


@pytest.fixture
def primary(tmp_path: Path) -> Iterator[Primary]:
    server = EmbeddedServer(parent=tmp_path, settings=_REPLICATED)
    try:
        with connect(server.dsn("postgres")) as connection:
            connection.execute("CREATE DATABASE registry")
            ensure_writer(connection, WRITER, password=None)
        provision_postgres(server.dsn("registry"), load_terms("rs4a-replay").relations, writer=WRITER)
        yield Primary(server, Programs.within_reach(server.folder))
    finally:
        server.stop()


def admitted(proof: Path, dsn: str) -> str:
    """What the registrar says of this proof on this server; empty if it starts."""
    claim = Claim(str(proof), WRITER, None)
    with connect(dsn) as connection:
        try:
            admit(claim, CONTRACT, connection)
        except OpenRefusedError as error:
            return error.detail
    return ""


def gated(proof: Path, server: str) -> tuple[str, ...]:
    """What the gate says of this proof where it expects this server."""
    expected = Expected("rs4a_replay.registration", server)
    return verify(read(proof), contract=CONTRACT, kit=installed_kit(), now=datetime.now(UTC), expected=expected)


@pytest.mark.sweep
def test_a_standby_is_no_live_surface_and_what_is_promoted_needs_a_proof_of_its_own(
    primary: Primary, clones: Scratch, tmp_path: Path
) -> None:
    proof, of_standby = tmp_path / "proof.json", tmp_path / "standby.json"
    assessed = primary.proof(proof, clones)
    assert assessed.judgement.status is Status.FIT
    assert assessed.server is not None
    assert (admitted(proof, primary.dsn), gated(proof, assessed.server.name)) == ("", ())
    data = primary.server.folder / "standby"
    words = ("-h", str(primary.server.folder), "-U", "postgres", "-D", str(data), "--write-recovery-conf")
    primary.programs.run("pg_basebackup", *words, "--checkpoint=fast", home=primary.server.folder)
    with primary.started(data) as standby:
        dsn = standby.dsn("registry")
        assert "this server is a replica" in admitted(proof, dsn)
        observed = primary.proof(of_standby, clones, dsn=dsn)
        assert observed.server is not None
        assert (observed.server.name, observed.server.replica) == (assessed.server.name, True)
        assert observed.judgement.status is Status.NOT_FIT
        assert any("made on a replica" in said for said in gated(of_standby, assessed.server.name))
        with connect(dsn) as connection:
            connection.execute("SELECT pg_promote()")
        assert "a replica was promoted" in admitted(proof, dsn)
        primary.proof(proof, clones, dsn=dsn)
        assert admitted(proof, dsn) == ""


@pytest.mark.sweep
def test_files_that_were_put_back_to_before_the_proof_are_not_started_on_and_a_later_copy_is_not_told_apart(
    primary: Primary, clones: Scratch, tmp_path: Path
) -> None:
    older, later, proof = primary.server.folder / "older", primary.server.folder / "later", tmp_path / "proof.json"
    words = ("-h", str(primary.server.folder), "-U", "postgres", "--checkpoint=fast", "-D")
    primary.programs.run("pg_basebackup", *words, str(older), home=primary.server.folder)
    with connect(primary.dsn) as connection:
        # Keys were consumed since.
        connection.execute("CREATE TABLE public.since AS SELECT generate_series(1, 1000) AS number")
        connection.execute("DROP TABLE public.since")
        connection.execute("SELECT pg_switch_wal()")
        connection.execute("CREATE TABLE public.since (); DROP TABLE public.since")
    primary.proof(proof, clones)
    primary.programs.run("pg_basebackup", *words, str(later), home=primary.server.folder)
    with primary.started(older) as running:
        assert "it was put back to an earlier state" in admitted(proof, running.dsn("registry"))
    # A limit, as docs/fitness.md has it: no value that a writer may read distinguishes a copy of the files from the
    # original.
    with primary.started(later) as running:
        assert admitted(proof, running.dsn("registry")) == ""


@pytest.mark.sweep
def test_a_schema_that_was_dumped_and_restored_elsewhere_is_not_the_proven_surface(
    primary: Primary, clones: Scratch, tmp_path: Path
) -> None:
    proof = tmp_path / "proof.json"
    live = primary.proof(proof, clones)
    other = EmbeddedServer(parent=tmp_path)
    try:
        with connect(other.dsn("postgres")) as connection:
            connection.execute("CREATE DATABASE registry")
            ensure_writer(connection, WRITER, password=None)
        programs = Path(other.ready.config["programs"])
        dump = subprocess.run(
            [str(programs / "pg_dump"), "--schema-only", primary.dsn], capture_output=True, text=True, check=True
        ).stdout
        words = [str(programs / "psql"), "--quiet", "--set=ON_ERROR_STOP=1", other.dsn("registry")]
        subprocess.run(words, input=dump, capture_output=True, text=True, check=True)
        restored = assess(other.dsn("registry"), OWN, Policy(), server=clones)
        assert restored.judgement.status is Status.FIT
        assert live.server is not None
        assert restored.server is not None
        assert list(not_tied(live, [line_of(restored)])) == []
        assert "another server or database" in admitted(proof, other.dsn("registry"))
        write(proof_json(restored, kit=installed_kit(), made=datetime.now(UTC)), tmp_path / "restored.json")
        (said,) = gated(tmp_path / "restored.json", live.server.name)
        assert f"and {live.server.name} was expected" in said
    finally:
        other.stop()
