"""`holdfast fitness` as it is typed: what it finds, what it says, what it never prints and never writes."""

from __future__ import annotations

import io
import json
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
import typer
from msgspec import structs
from psycopg.conninfo import make_conninfo
from typer.testing import CliRunner, Result

from holdfast.conformance.cli import fitness
from holdfast.conformance.cli.commands import app
from holdfast.conformance.cli.console import PlainConsole
from holdfast.conformance.cli.explain.command import explain
from holdfast.conformance.fitness import gather
from holdfast.conformance.fitness.assessment import Assessment
from holdfast.conformance.fitness.deadline import NEVER
from holdfast.conformance.fitness.errors import FitnessError, LostError
from holdfast.conformance.fitness.gather import assess, relation_named
from holdfast.conformance.fitness.model import Criterion, EvidenceClass, Part, RelationName, Standing, Status
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres import snapshot as readings
from holdfast.conformance.fitness.postgres.probes import probe_clone
from holdfast.conformance.fitness.postgres.scratch import Scratch
from holdfast.conformance.fitness.postgres.snapshot import reading
from holdfast.conformance.fitness.target import Target, target_of
from holdfast.conformance.verdict import Exit
from holdfast.specs import schema, strictjson
from tests.conftest import thinned
from tests.fitness.documented import DOCUMENTED, LEDGER, ledger_ddl, surface_ddl
from tests.fitness.lives import LiveServer
from tests.fitness.relays import relay
from tests.pace import busy
from tests.packaging.test_docs import followed

PASSWORD = "s3cret-Pa55-word"
_NAMED = (
    *("--effect", "surface.consumed_request", "--nonce", "surface.consumed_nonce"),
    *("--audit", "surface.refusal_audit", "--writer", "registrar"),
)

Call = Callable[..., Result]


@dataclass(frozen=True, slots=True)
class Inspected:
    """One call, the files that it wrote, and the live server before and after it."""

    result: Result
    proof: str
    page: str
    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def document(self) -> Any:
        return json.loads(self.proof)


@pytest.fixture(scope="module")
def call(clones: Scratch) -> Iterator[Call]:
    """The command, with the scratch server that all tests share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gather, "scratch", lambda _: nullcontext(clones))
        yield lambda *words: CliRunner().invoke(app, ["fitness", *map(str, words)])


@pytest.fixture(scope="module")
def quiet(live_server: LiveServer) -> Iterator[None]:
    """Only the tests take transaction ids on the live server."""
    with psycopg.connect(live_server.dsn, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET autovacuum = off")
        connection.execute("SELECT pg_reload_conf()")
        yield
        connection.execute("ALTER SYSTEM RESET autovacuum")
        connection.execute("SELECT pg_reload_conf()")


def _seen(connection: psycopg.Connection[Any], folder: Path, inspect: Callable[..., Result]) -> Inspected:
    proof, page = folder / "proof.json", folder / "page.html"
    before = _catalogue(connection)
    result = inspect("--json", proof, "--html", page)
    return Inspected(result, proof.read_text(), page.read_text(), before, _catalogue(connection))


@pytest.fixture(scope="module")
def fit(call: Call, live_server: LiveServer, quiet: None, tmp_path_factory: pytest.TempPathFactory) -> Inspected:
    """The documented surface, inspected with a password in the DSN."""
    with live_server.database("registry", surface_ddl()) as connection:
        dsn = make_conninfo(live_server.dsn_of("registry"), password=PASSWORD)
        return _seen(connection, tmp_path_factory.mktemp("fit"), partial(call, dsn, *_NAMED))


@pytest.fixture(scope="module")
def refused(call: Call, live_server: LiveServer, quiet: None, tmp_path_factory: pytest.TempPathFactory) -> Inspected:
    """The ledger, with names that would be a page's own words."""
    with live_server.database("ledger", ledger_ddl()) as connection:
        connection.execute("ALTER TABLE iu_route_attempt ADD CONSTRAINT \"<b>x</b>\" CHECK (status <> '<script>')")
        dsn = live_server.dsn_of("ledger")
        return _seen(connection, tmp_path_factory.mktemp("ledger"), partial(call, dsn, "--effect", LEDGER))


@pytest.fixture(scope="module")
def tables(live_server: LiveServer) -> Iterator[str]:
    """A database for questions that come to nothing."""
    with live_server.database("tables") as connection:
        connection.execute("CREATE SCHEMA surface; CREATE TABLE surface.consumed_request (id bigint)")
        yield live_server.dsn_of("tables")


def said(result: Result) -> str:
    return " ".join((result.stdout + result.stderr).split())


def cannot_be_asked(result: Result, complaint: str) -> None:
    """The command ended with 64, and said why and no password."""
    assert result.exit_code == 64
    assert complaint in said(result)
    assert PASSWORD not in said(result).replace(" ", "")


# What it finds


def test_the_documented_surface_is_fit_in_less_than_twenty_seconds(live_server: LiveServer, tmp_path: Path) -> None:
    with live_server.database("fresh", surface_ddl()):
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-P", "-m", "holdfast.conformance.cli", "fitness", live_server.dsn_of("fresh"), *_NAMED],
            capture_output=True, text=True, cwd=tmp_path, check=False,
        )  # fmt: skip
        took = time.monotonic() - began
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("FIT\n")
    assert took < busy(20)


def test_the_documented_surface_is_found_without_naming_it(call: Call, live_server: LiveServer) -> None:
    with live_server.database("searched", surface_ddl(), ledger_ddl()):
        result = call(live_server.dsn_of("searched"), "--audit", "surface.refusal_audit")
    assert result.exit_code == 0, said(result)
    assert "effect surface.consumed_request, nonce surface.consumed_nonce" in result.stdout
    assert "writer registrar" in result.stdout
    assert "public.iu_route_attempt" in result.stdout


def test_the_ledger_is_refused_with_every_reason_of_section_two(refused: Inspected) -> None:
    result, document = refused.result, refused.document
    assert result.exit_code == 10
    assert result.stdout.startswith("REPLAY_SURFACE_NOT_FIT\n")
    found = {
        finding["criterion"]: {reason["code"]: reason for reason in finding["reasons"]}
        for finding in document["judgement"]["findings"]
    }
    bypass = found["a"]["REPLAY_ATTEMPT_NO_BYPASS"]
    assert "iu_route_attempt_idem_uniq" in bypass["text"]
    assert "(idempotency_key, attempt_no)" in bypass["text"]
    tried = [probe for probe in document["evidence"]["probes"] if probe["name"] in bypass["probes"]]
    assert tried
    assert all(probe["answers"][-1]["affected"] == 1 for probe in tried)
    missing = found["c"]["MISSING_COLUMNS"]["text"]
    for column in (
        *("logical_request_key", "authorization_nonce", "run_id", "operation", "canonical_target"),
        *("deployed_artifact_hash", "owner_or_approval_binding"),
    ):
        assert column in missing
    assert "MISSING_RELATION" in found["b"]
    assert "WRONG_DOMAIN" in found["d"]
    assert {"NO_TRIGGERS", "WRITER_UNPROVEN"} <= found["f"].keys()
    for code in ("REPLAY_ATTEMPT_NO_BYPASS", "WRONG_DOMAIN", "NO_TRIGGERS", "WRITER_UNPROVEN"):
        assert code in result.stdout


def test_where_nothing_could_be_a_surface_it_is_not_present_and_nothing_is_made(
    call: Call, live_server: LiveServer, tmp_path: Path
) -> None:
    proof = tmp_path / "proof.json"
    with live_server.database("empty") as connection:
        connection.execute("CREATE TABLE note (id bigint PRIMARY KEY, words text)")
        before = _catalogue(connection)
        result = call(live_server.dsn_of("empty"), "--json", proof)
        assert _catalogue(connection) == before
    assert result.exit_code == 12
    assert result.stdout.startswith("REPLAY_SURFACE_REQUIRED_NOT_PRESENT\n")
    assert "public.note" in result.stdout
    document = json.loads(proof.read_text())
    assert document["surface"] is None
    assert {finding["standing"] for finding in document["judgement"]["findings"]} == {"unproven"}
    assert [each["relation"]["name"] for each in document["candidates"] if not each["reasons"]] == []


# What it never writes


def _catalogue(connection: psycopg.Connection[Any]) -> tuple[str, ...]:
    """All that makes a database what it is, but for what the server counts by itself; and every role."""
    asked = (
        "SELECT md5(string_agg(t::text, '' ORDER BY t::text)) FROM (SELECT * FROM pg_attribute) t",
        "SELECT md5(string_agg(t::text, '' ORDER BY t::text)) FROM (SELECT oid, relname, relnamespace, relowner,"
        " relkind, relpersistence, relacl::text, relfilenode, relhastriggers, relrowsecurity FROM pg_class) t",
        *(
            f"SELECT md5(string_agg(t::text, '' ORDER BY t::text)) FROM (SELECT * FROM {name}) t"
            for name in (
                *("pg_proc", "pg_trigger", "pg_constraint", "pg_index", "pg_namespace", "pg_type", "pg_policy"),
                *("pg_rewrite", "pg_depend", "pg_roles", "pg_auth_members", "pg_db_role_setting", "pg_description"),
            )
        ),
        "SELECT string_agg(datname, ',' ORDER BY datname) FROM pg_database",
        # The number that the next transaction gets that writes anything.
        "SELECT pg_snapshot_xmax(pg_current_snapshot())",
    )
    return tuple(str(connection.execute(text).fetchone()) for text in asked)


def test_looking_writes_nothing_at_all_to_the_live_server(fit: Inspected, refused: Inspected) -> None:
    assert fit.result.exit_code == 0, said(fit.result)
    assert fit.before == fit.after
    assert refused.before == refused.after


@pytest.mark.usefixtures("quiet")
def test_the_live_probe_writes_and_takes_it_back_and_says_what_it_cannot_take_back(
    call: Call, live_server: LiveServer, tmp_path: Path
) -> None:
    proof = tmp_path / "proof.json"
    with live_server.database("kept", surface_ddl()) as connection:
        before = _catalogue(connection)
        dsn = live_server.dsn_of("kept")
        refused = call(dsn, *_NAMED, "--probe-live")
        elsewhere = call(dsn, *_NAMED, "--probe-live", "--live-dsn", make_conninfo(dsn, dbname="postgres"))
        writer = make_conninfo(dsn, user="registrar")
        result = call(dsn, *_NAMED, "--probe-live", "--live-dsn", writer, "--json", proof)
        after = _catalogue(connection)
        assert after[:-1] == before[:-1]
        assert after[-1] != before[-1]
        for table in ("consumed_request", "consumed_nonce", "refusal_audit"):
            assert connection.execute(f"SELECT count(*) FROM surface.{table}").fetchone() == (0,)
    # Code of the tables' owner would run with the rights of who logs in.
    assert (refused.exit_code, elsewhere.exit_code) == (64, 64)
    assert "got one to another" in said(elsewhere)
    assert "expected a DSN that logs in as the writer registrar, got one of " in said(refused)
    assert result.exit_code == 0, said(result)
    # What will come of it is said before, what came of it afterwards.
    assert "it will be rolled back" in " ".join(result.stderr.split())
    assert "was rolled back" not in " ".join(result.stderr.split())
    assert "sequences" in result.stderr
    assert "it was rolled back" in " ".join(result.stdout.split())
    assert "sequences" in result.stdout
    live = [probe for probe in json.loads(proof.read_text())["evidence"]["probes"] if probe["evidence"] == "live"]
    assert live
    assert all(probe["name"].startswith("live-") for probe in live)


def test_the_session_that_looks_cannot_write(tables: str) -> None:
    with psycopg.connect(tables, autocommit=True) as connection:
        connection.execute("CREATE TABLE twin (id int)")
        connection.execute("DROP TABLE twin")
    with (
        pytest.raises(FitnessError, match="read-only transaction"),
        reading(target_of(tables), NEVER, "a reading") as connection,
    ):
        connection.execute("CREATE TABLE made (id int)")


def test_a_catalogue_that_is_changed_meanwhile_proves_nothing(
    clones: Scratch, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with live_server.database("moving", surface_ddl()) as connection:

        def meanwhile(*given: Any) -> Any:
            connection.execute("ALTER TABLE surface.consumed_request DISABLE TRIGGER no_truncate")
            return probe_clone(*given)

        monkeypatch.setattr(gather, "probe_clone", meanwhile)
        assessed = assess(live_server.dsn_of("moving"), DOCUMENTED, Policy(), server=clones)
    assert assessed.judgement.status is Status.NOT_FIT
    assert assessed.evidence is not None
    assert "changed while it was inspected" in assessed.evidence.lost[EvidenceClass.CATALOGUE]
    assert {finding.standing for finding in assessed.judgement.findings} == {Standing.UNPROVEN}


# What it says when it cannot be asked


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--effect", "surface.consumed_requests"), "there is no such relation"),
        (("--effect", "surface.consumed_requests"), "it has surface.consumed_request"),
        (("--effect", "other.consumed_request"), "it has surface.consumed_request"),
        (("--effect", "consumed_request"), "expected schema.table"),
        (("--nonce", "a.b.c"), "--nonce: expected schema.table"),
        (("--audit", "surface.none"), "--audit surface.none: there is no such relation"),
        (("--writer", "registrat"), "there is no such role"),
        (("--writer", "postgrse"), "it has postgres"),
        (("another",), "expected one DSN, got 1 words more"),
        (("--policy", "none.yaml"), "none.yaml"),
        (("--json", "/dev/null/proof.json"), "--json"),
        (("--html", "/dev/null/page.html"), "--html"),
        # It may be half a DSN.
        ((f"password={PASSWORD}",), "expected one DSN, got 1 words more"),
    ],
)
def test_a_question_that_cannot_be_asked_is_64_and_says_why(
    call: Call, tables: str, words: tuple[str, ...], complaint: str
) -> None:
    cannot_be_asked(call(tables, *words), complaint)


def _closed_port() -> str:
    return f"postgresql://auditor:{PASSWORD}@127.0.0.1:1/registry"


@pytest.mark.parametrize(
    ("dsn", "complaint"),
    [
        (_closed_port(), "registry at 127.0.0.1, port 1 cannot be asked"),
        (f"host=127.0.0.1 port=1 dbname=registry user=auditor password={PASSWORD}", "cannot be asked"),
        (f"host=127.0.0.1 port=1 password='{PASSWORD}", "libpq cannot read"),
        (f"postgresql://auditor:{PASSWORD}@[::1/registry", "libpq cannot read"),
        (f"postgresql://auditor@127.0.0.1:1/registry?password={PASSWORD}", "cannot be asked"),
        (f"mysql://auditor:{PASSWORD}@127.0.0.1:1/registry", "libpq cannot read"),
        ("none.sqlite3", "no file of that name is there"),
        # Signs that end a password too early: the rest is taken for a host, a port or a database.
        (f"postgresql://u:x@{PASSWORD}@127.0.0.1:1/registry", "the host of this one holds signs that belong elsewhere"),
        (f"postgresql://u:{PASSWORD}/y@127.0.0.1:1/registry", "the port of this one"),
        (f"postgresql://u/{PASSWORD}@127.0.0.1:1/registry", "the dbname of this one"),
    ],
)
def test_an_unreachable_database_is_said_without_the_password(call: Call, dsn: str, complaint: str) -> None:
    cannot_be_asked(call(dsn, *_NAMED), complaint)


def test_a_login_that_fails_is_said_without_the_password(call: Call, tables: str) -> None:
    result = call(make_conninfo(tables, user="nobody_here", password=PASSWORD), *_NAMED)
    cannot_be_asked(result, 'role "nobody_here" does not exist')


def test_a_password_is_in_nothing_that_a_look_leaves_behind(fit: Inspected) -> None:
    for text in (fit.result.stdout, fit.proof, fit.page):
        assert "registry at " in text
        assert PASSWORD not in text
    assert PASSWORD not in fit.result.stderr


_SLIPPED = (
    f"postgresql://auditor:{PASSWORD}@127.0.0.1:1/registry",
    f"host=127.0.0.1 user=auditor password={PASSWORD}",
)


@pytest.mark.parametrize(
    ("option", "word", "in_file"),
    thinned(
        [
            (option, word, in_file)
            for word in _SLIPPED
            for in_file in (False, True)
            for option in ("--effect", "--nonce", "--audit", "--writer", "--policy", "--json", "--html", "--bogus")
        ]
    ),
)
def test_a_dsn_that_slipped_into_an_option_is_not_shown_and_names_no_file(
    call: Call, tables: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, word: str, *, in_file: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(sqlite3.connect("notes.sqlite3")) as connection:
        connection.execute("CREATE TABLE note (text TEXT)")
    result = call("notes.sqlite3" if in_file else tables, option, word)
    assert result.exit_code in (2, 64)
    assert "password" in said(result)
    assert PASSWORD not in said(result).replace(" ", "")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.sqlite3"]


@pytest.mark.parametrize("prefix", ["file:", "sqlite:"])
@pytest.mark.parametrize("word", _SLIPPED)
def test_a_dsn_that_is_called_a_file_is_not_shown(call: Call, prefix: str, word: str) -> None:
    cannot_be_asked(call(prefix + word), "may hold a password")


def test_a_fault_of_the_kit_is_told_without_the_password(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(dsn: str, *_: Any, **__: Any) -> None:
        raise RuntimeError(f"cannot go on with {dsn}")

    monkeypatch.setattr(gather, "assess", broken)
    result = call(_closed_port())
    assert result.exit_code == 20
    assert "RuntimeError" in result.stderr
    assert PASSWORD not in result.output + result.stderr


def test_a_role_that_may_not_read_the_catalogue_is_told_so(call: Call, live_server: LiveServer) -> None:
    # Databases are used again, and no sweep gives rights on the catalogue back: no other test uses this name.
    with live_server.database("blinded", surface_ddl()) as connection:
        connection.execute("CREATE ROLE blind LOGIN")
        dsn = live_server.dsn_of("blinded", user="blind")
        seeing = call(dsn, *_NAMED)
        connection.execute("REVOKE SELECT ON pg_catalog.pg_class FROM PUBLIC")
        result = call(dsn, *_NAMED)
    # Who may not read the tables may not dump them either, so nothing could be tried.
    assert seeing.exit_code == 12, said(seeing)
    assert "clone" in said(seeing)
    cannot_be_asked(result, "may not read the catalogue")
    assert "connect as a role that may" in said(result)


@pytest.mark.parametrize(
    ("part", "error"),
    [
        ("probe_clone", psycopg.OperationalError("server closed the connection unexpectedly")),
        ("scratch", LostError("no scratch server could be started: no room")),
    ],
)
def test_a_clone_that_breaks_down_or_cannot_be_had_leaves_everything_tried_unproven(
    live_server: LiveServer, clones: Scratch, monkeypatch: pytest.MonkeyPatch, part: str, error: Exception
) -> None:
    def broken(*_: Any) -> Any:
        raise error

    monkeypatch.setattr(gather, part, broken)
    with live_server.database("broken", surface_ddl()):
        server = clones if part == "probe_clone" else None
        assessed = assess(live_server.dsn_of("broken"), DOCUMENTED, Policy(), server=server)
    assert assessed.evidence is not None
    assert str(error) in assessed.evidence.lost[EvidenceClass.CLONE]
    assert {finding.standing for finding in assessed.judgement.findings} == {Standing.UNPROVEN}
    assert {reason.code for reason in assessed.judgement.reasons} == {"EVIDENCE_MISSING"}


def test_a_server_of_an_unknown_version_is_not_judged(call: Call, tables: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings, "NEWEST", 14)
    cannot_be_asked(call(tables, *_NAMED), "expected PostgreSQL 13 to 14, got 1")


def test_what_the_programs_of_the_server_say_is_kept_without_the_password(
    call: Call, live_server: LiveServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def failing(target: Target, *_: Any) -> Any:
        raise LostError(f"pg_dump: error: connection with {target.dsn} and {PASSWORD} failed")

    monkeypatch.setattr(gather, "clone", failing)
    proof = tmp_path / "proof.json"
    with live_server.database("alone", surface_ddl()):
        dsn = make_conninfo(live_server.dsn_of("alone"), password=PASSWORD)
        result = call(dsn, *_NAMED, "--json", proof)
    assert result.exit_code == 12
    assert "pg_dump: error" in result.stdout
    for text in (result.stdout, result.stderr, proof.read_text()):
        assert PASSWORD not in text


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--writer", "registrar"), "SQLite knows no roles"),
        (("--probe-live",), "is probed on a copy only"),
        (("--effect", "notes"), "--effect notes: there is no such relation"),
        (("--effect", "notes"), "it has note"),
    ],
)
def test_what_a_file_cannot_be_asked_is_64(call: Call, tmp_path: Path, words: tuple[str, ...], complaint: str) -> None:
    path = tmp_path / "surface.sqlite3"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE note (id INTEGER PRIMARY KEY)")
    cannot_be_asked(call(path, *words), complaint)
    assert call(path).exit_code == 12


@pytest.mark.parametrize(
    ("text", "complaint"), [("sqlite:none.sqlite3", "none.sqlite3"), ("NOTE", "is no SQLite database")]
)
def test_what_is_no_database_is_said_to_be_none(call: Call, tmp_path: Path, text: str, complaint: str) -> None:
    note = tmp_path / "note.txt"
    note.write_text("not a database")
    cannot_be_asked(call(note if text == "NOTE" else text), complaint)


# How it is shown


def test_the_proof_fits_its_schema_and_json_prints_it(
    call: Call, fit: Inspected, refused: Inspected, tables: str, tmp_path: Path
) -> None:
    for observed in (fit, refused):
        assert schema.explain(schema.published_validator("fitness"), strictjson.loads(observed.proof)) is None
    path = tmp_path / "absent.json"
    result = call(tables, "--format", "json", "--json", path)
    assert result.exit_code == 12
    assert strictjson.loads(result.stdout) == strictjson.loads(path.read_bytes())
    assert schema.explain(schema.published_validator("fitness"), strictjson.loads(result.stdout)) is None


def test_the_page_tells_all_of_it_and_needs_no_network(fit: Inspected, refused: Inspected) -> None:
    for page in (fit.page, refused.page):
        assert "<script" not in page
        assert "http://" not in page
        assert "https://" not in page
        assert "default-src 'none'" in page
        assert page.count("<h3") == len(Criterion)
    assert "<b>x</b>" not in refused.page
    for word in ("REPLAY_SURFACE_NOT_FIT", "REPLAY_ATTEMPT_NO_BYPASS", "INSERT INTO", "(idempotency_key, attempt_no)"):
        assert word in refused.page
    assert ">FIT</h1>" in fit.page


def test_departures_of_the_policy_are_printed(call: Call, tables: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("name: prod\nhorizon_seconds: 86400\n")
    result = call(tables, "--policy", policy)
    assert "lowers the replay horizon to 1 day" in result.stdout


@pytest.mark.parametrize(
    ("text", "relation"),
    [
        ("surface.t", RelationName("surface", "t")),
        ("Surface.T", RelationName("surface", "t")),
        ('"My Schema"."a.b"', RelationName("My Schema", "a.b")),
        ('s."with ""quotes"""', RelationName("s", 'with "quotes"')),
    ],
)
def test_names_are_read_as_sql_reads_them(text: str, relation: RelationName) -> None:
    assert relation_named(Part.EFFECT, text) == relation


@pytest.mark.parametrize("text", ["", ".", "t", "s.", ".t", "a.b.c", '"s.t', '"s"t', 's"x".t', '"".t', "s.t."])
def test_what_is_no_name_of_a_relation_is_refused(text: str) -> None:
    with pytest.raises(FitnessError, match=r"expected schema\.table"):
        relation_named(Part.EFFECT, text)


def test_explaining_what_only_a_live_surface_shows_says_how_it_is_proven() -> None:
    asked = typer.Typer(add_completion=False)
    asked.command()(explain)
    assert "proven by `holdfast fitness DSN`" in said(CliRunner().invoke(asked, ["RS4A-RP-10"]))
    assert "holdfast fitness" not in said(CliRunner().invoke(asked, ["RS4A-RP-02"]))


def test_a_name_with_a_line_feed_in_it_is_no_line_of_ours(documented: Assessment) -> None:
    described = io.StringIO()
    notes = ("superusers: x\nexit:   0", "y")
    fitness._print(
        PlainConsole(file=described, width=120),
        replace(documented, judgement=structs.replace(documented.judgement, notes=notes)),
        {"digest": None},
        Exit.FAIL_OPEN,
    )
    assert [line for line in described.getvalue().splitlines() if line.startswith("exit:")] == ["exit:   10"]


def test_a_table_is_proven_fit_as_the_how_to_page_says(live_server: LiveServer, tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "how-to" / "prove-a-table.md"
    (login,) = re.findall(r"^ *```sql\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    with live_server.database("registry", surface_ddl()) as connection, relay(live_server) as between:
        connection.execute(login)
        # By these libpq finds the server that the page calls `db`.
        here = {"PGHOSTADDR": "127.0.0.1", "PGPORT": str(between.port)}
        here |= dict.fromkeys(("PGSSLMODE", "PGGSSENCMODE"), "disable")
        said = followed("prove-a-table.md", tmp_path, **here)
    assert said.splitlines()[0].startswith("FIT"), said
    assert json.loads((tmp_path / "proof.json").read_text(encoding="utf-8"))
