"""A registrar does not start on a live surface without a proof of fitness, nor with the proof of another surface."""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from holdfast.reference_impl.answers import Accepted, Fault, Ok
from holdfast.reference_impl.postgres import connect, describe, with_database
from holdfast.reference_impl.postgres_databases import clone, drop_database
from holdfast.reference_impl.rs4a_replay import fitness
from holdfast.reference_impl.rs4a_replay.ddl import SCHEMA
from holdfast.reference_impl.rs4a_replay.entry import Rs4aReplay
from holdfast.reference_impl.rs4a_replay.fitness import CRITERIA, read_circumstance, read_structure
from holdfast.reference_impl.rs4a_replay.terms import PARTS
from holdfast.reference_impl.session import (
    OpenError,
    OpenRefusedError,
    OpenRequest,
    Session,
    StateWanted,
    SurfaceWanted,
)
from holdfast.servers.serving import Launched
from holdfast.specs import load_terms, strictjson

from .conftest import NOW, WINDOW, Desk, submission

Json = dict[str, Any]
Edit = Callable[[Json], object]


def _instant(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


@dataclass(slots=True)
class Live:
    """A database with a surface in it, as an operator has one: not a session's, not a template."""

    admin_dsn: str
    writer_dsn: str
    writer: str
    folder: Path
    structure: Json
    server: Json

    def proof(self, edit: Edit | None = None, *, name: str = "proof.json") -> Path:
        """A proof of this surface as it was made, then edited and sealed anew."""
        structure = self.structure
        terms = load_terms("rs4a-replay")
        words = ("logical_request_key", "replay_key", "authorization_nonce", "operation", "canonical_target", "run_id")
        columns = {word: word for word in (*words, "deployed_artifact_hash", "owner_or_approval_binding")}
        policy = {
            "name": None,
            "columns": {**columns, "decision": "decision_id", "attempt": "attempt_id", "retain_until": "retain_until"},
            "operations": ["register_dot"],
            "horizon_seconds": None,
            "max_age_seconds": 604800,
            "reviewed": [],
            "values": {},
            "domain_evidence": None,
            "sqlite_writer_uid": None,
            "sqlite_connection": {},
        }
        proof: Json = {
            "schema": 1,
            "kit": {"name": "holdfast", "version": "0.1.0", "digest": "sha256:" + "c" * 64, "libraries": {}},
            "contract": {"name": terms.name, "version": terms.version, "digest": terms.digest},
            "made": _instant(datetime.now(UTC)),
            "target": "a test",
            "server": {
                "name": f"{self.server['system_identifier']}/{self.server['database']}",
                "replica": False,
                "facts": {**self.server, "clock": _instant(datetime.now(UTC))},
            },
            "challenge": None,
            "surface": {
                "name": "prod",
                "parts": {part: {"schema": SCHEMA, "name": relation} for part, relation in PARTS.items()},
                "writer": self.writer,
            },
            "policy": policy,
            "departures": [],
            "evidence": {
                "snapshot": {"dialect": "postgresql", "structure": structure, "circumstances": {}},
                "probes": [],
                "lost": {},
            },
            "judgement": {
                "status": "FIT",
                "findings": [
                    {"criterion": letter, "standing": "proven", "reasons": [], "rows": [], "probes": []}
                    for letter in CRITERIA
                ],
                "notes": [],
            },
            "candidates": [],
            "digest": strictjson.digest({"policy": policy, "structure": structure}).removeprefix("sha256:"),
        }
        if edit is not None:
            edit(proof)
        path = self.folder / name
        path.write_text(json.dumps({**proof, "seal": strictjson.digest(proof)}), encoding="utf-8")
        return path

    def open(self, proof: Path | None, **config: str) -> Session:
        """A registrar on this surface. Raises OpenError."""
        given = {"store": "postgres", "writer_dsn": self.writer_dsn, **config}
        if proof is not None:
            given["fitness"] = str(proof)
        request = OpenRequest(StateWanted.EXISTING, SurfaceWanted.READY, self.folder, NOW, given)
        return Rs4aReplay().open(request)

    def rows(self) -> int:
        """How many rows any relation of the surface holds."""
        with connect(self.admin_dsn) as connection:
            names = connection.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'", (SCHEMA,)
            ).fetchall()
            counts = [connection.execute(f"SELECT count(*) FROM {SCHEMA}.{name}").fetchone() for (name,) in names]
        return sum(int(str(count[0])) for count in counts if count is not None)


def _surface(launched: Launched, database: str, folder: Path) -> Live:
    config = launched.ready.config
    with connect(with_database(config["dsn"], "postgres")) as connection:
        drop_database(connection, database)
        clone(connection, database, str(conninfo_to_dict(config["dsn"])["dbname"]))
    writer_dsn = with_database(config["writer_dsn"], database)
    writer = str(conninfo_to_dict(writer_dsn)["user"])
    with connect(writer_dsn) as connection:
        structure = read_structure(connection, writer=writer)
        (server,) = read_circumstance(connection, "identity", writer=writer)
    return Live(with_database(config["dsn"], database), writer_dsn, writer, folder, structure, server)


def _dropped(launched: Launched, database: str) -> None:
    with connect(with_database(launched.ready.config["dsn"], "postgres")) as connection:
        drop_database(connection, database)


@pytest.fixture(scope="module")
def shared(postgres: Launched, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One for all tests that leave it as it is."""
    yield _surface(postgres, "live_surface", tmp_path_factory.mktemp("live"))
    _dropped(postgres, "live_surface")


@pytest.fixture
def live(shared: Live, tmp_path: Path) -> Iterator[Live]:
    yield replace(shared, folder=tmp_path)
    assert shared.rows() == 0


@pytest.fixture
def own(postgres: Launched, tmp_path: Path) -> Iterator[Live]:
    """One for a test that changes it."""
    yield _surface(postgres, "own_surface", tmp_path)
    _dropped(postgres, "own_surface")


def test_a_registrar_starts_on_the_surface_that_was_proven_and_keeps_what_it_writes_there(own: Live) -> None:
    session = own.open(own.proof())
    desk = Desk(session)
    nonce = desk.nonce()
    assert isinstance(desk.call("register", submission(nonce)), Accepted)
    session.close()
    again = Desk(own.open(own.proof()))
    assert again.counts() == (1, 1)
    again.session.close()


def test_without_a_proof_it_does_not_start_and_writes_nothing(live: Live) -> None:
    with pytest.raises(OpenRefusedError, match="expected the proof that this surface is fit") as refused:
        live.open(None)
    assert refused.value.reason == "REPLAY_SURFACE_NOT_FIT"
    assert "holdfast fitness" in str(refused.value)
    assert live.rows() == 0


def _unproven(proof: Json) -> None:
    proof["judgement"]["findings"][6]["standing"] = "unproven"


def _fewer(proof: Json) -> None:
    # Nine findings, as the schema wants them, and one criterion of them twice.
    proof["judgement"]["findings"][8] = copy.deepcopy(proof["judgement"]["findings"][0])


def _status(status: str) -> Edit:
    return lambda proof: proof["judgement"].update(status=status)


def _ledger(proof: Json) -> None:
    proof["surface"]["parts"]["effect"] = {"schema": "public", "name": "iu_route_attempt"}


def _dated(**apart: float) -> Edit:
    """Both dates of a proof: its own, and what the clock of its server said."""

    def apply(proof: Json) -> None:
        proof["made"] = proof["server"]["facts"]["clock"] = _instant(datetime.now(UTC) + timedelta(**apart))

    return apply


def _made(**apart: float) -> Edit:
    return lambda proof: proof.update(made=_instant(datetime.now(UTC) + timedelta(**apart)))


def _facts(**changes: Any) -> Edit:
    return lambda proof: proof["server"]["facts"].update(changes)


def _beyond(name: str) -> Edit:
    """The server was further ahead at the inspection than it is now."""
    return lambda proof: proof["server"]["facts"].update({name: str(10**15)})


def _with_policy(**changes: Any) -> Edit:
    def apply(proof: Json) -> None:
        policy = proof["policy"]
        policy.update(changes)
        structure = proof["evidence"]["snapshot"]["structure"]
        proof["digest"] = strictjson.digest({"policy": policy, "structure": structure}).removeprefix("sha256:")

    return apply


DOUBTS: list[tuple[str, Edit, str]] = [
    ("guard_contract", lambda proof: proof["contract"].update(digest="sha256:" + "0" * 64), "another text"),
    ("guard_fit", _status("REPLAY_SURFACE_NOT_FIT"), "REPLAY_SURFACE_NOT_FIT"),
    ("guard_fit", _status("REPLAY_SURFACE_REQUIRED_NOT_PRESENT"), "REPLAY_SURFACE_REQUIRED_NOT_PRESENT"),
    ("guard_fit", _unproven, r"REPLAY_SURFACE_NOT_FIT.*\(g\) unproven"),
    ("guard_fit", _fewer, "criteria are missing"),
    ("guard_surface", _ledger, "REPLAY_SURFACE_NOT_FIT.*another surface.*iu_route_attempt"),
    ("guard_surface", lambda proof: proof["surface"]["parts"].pop("audit"), "another surface"),
    ("guard_surface", lambda proof: proof["surface"].update(writer="somebody"), "writer 'somebody'"),
    ("guard_age", _dated(days=-7, minutes=-1), "lets it stand for 7 days"),
    ("guard_age", _dated(hours=1), "lets it stand for 7 days"),
    ("guard_clock", _made(minutes=-10), "one of the two was edited"),
    ("guard_clock", _facts(clock=None), "does not say what its server's clock said"),
    ("guard_server", _facts(system_identifier="7000000000000000000"), "another server or database"),
    ("guard_server", _facts(database="staging"), "another server or database"),
    ("guard_server", _facts(database_oid="1"), "another server or database"),
    ("guard_history", _facts(timeline=2), "a replica was promoted, or a backup restored"),
    ("guard_history", _beyond("log_position"), "put back to an earlier state"),
    ("guard_history", _beyond("next_transaction"), "put back to an earlier state"),
    ("guard_history", _facts(next_transaction="soon"), "does not say what next_transaction"),
    ("guard_terms", _with_policy(operations=["register_dot", "erase_dot"]), "admits the operations erase_dot"),
    (
        "guard_terms",
        _with_policy(horizon_seconds=86400),
        "kept for 86400 seconds; the contract wants them kept for ever",
    ),
    ("guard_digest", lambda proof: proof.update(digest="0" * 64), "not the one that was proven"),
]


@pytest.mark.parametrize(("guard", "edit", "complaint"), DOUBTS)
def test_a_doubtful_proof_opens_nothing_and_only_its_own_guard_sees_to_that(
    live: Live, guard: str, edit: Edit, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = live.proof(edit)
    with pytest.raises(OpenRefusedError, match=complaint) as refused:
        live.open(proof)
    assert refused.value.reason.startswith("REPLAY_SURFACE_")
    monkeypatch.setattr(fitness, guard, lambda *_: None)
    live.open(proof).close()


def test_a_proof_that_maps_columns_is_of_columns_that_this_registrar_does_not_write(live: Live) -> None:
    def mapped(proof: Json) -> None:
        proof["policy"]["columns"]["logical_request_key"] = "replay_key"

    with pytest.raises(OpenError, match="takes other columns for logical_request_key"):
        live.open(live.proof(mapped))


def test_the_name_that_was_configured_must_be_the_proofs(live: Live) -> None:
    live.open(live.proof(), surface="prod").close()
    with pytest.raises(OpenError, match="expected a proof of 'staging', got one of 'prod'"):
        live.open(live.proof(), surface="staging")


@pytest.mark.parametrize(
    "statement",
    [
        f"ALTER TABLE {SCHEMA}.registration DISABLE TRIGGER registration_append_only",
        f"GRANT DELETE ON {SCHEMA}.registration TO PUBLIC",
        f"ALTER TABLE {SCHEMA}.registration DROP CONSTRAINT logical_request_key_unique",
        f"ALTER TABLE {SCHEMA}.nonce_consume SET UNLOGGED",
        f"CREATE OR REPLACE FUNCTION {SCHEMA}.refuse_change() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE NOTICE 'no'; RETURN NEW; END $$",
    ],
)
def test_a_surface_that_was_changed_since_is_not_the_one_that_was_proven(own: Live, statement: str) -> None:
    proof = own.proof()
    with connect(own.admin_dsn) as connection:
        connection.execute(statement)
    with pytest.raises(OpenError, match=r"REPLAY_SURFACE_NOT_FIT.*or was changed since"):
        own.open(proof)
    assert own.rows() == 0


@pytest.mark.parametrize(("name", "value"), [("synchronous_commit", "off"), ("session_replication_role", "replica")])
def test_what_sessions_of_the_writer_start_with_is_read_when_it_starts(own: Live, name: str, value: str) -> None:
    proof, maintenance = own.proof(), with_database(own.admin_dsn, "postgres")
    try:
        # For the whole server, as postgresql.conf says it; no catalogue of the surface shows it.
        with connect(maintenance) as connection:
            connection.execute(sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), sql.Literal(value)))
            connection.execute("SELECT pg_reload_conf()")
        with pytest.raises(OpenRefusedError, match=f"start with {name} = {value}"):
            _opened_until_refused(own, proof)
    finally:
        with connect(maintenance) as connection:
            connection.execute(sql.SQL("ALTER SYSTEM RESET {}").format(sql.Identifier(name)))
            connection.execute("SELECT pg_reload_conf()")
    assert own.rows() == 0


def _opened_until_refused(live: Live, proof: Path) -> None:
    """The server reads its file again when it comes to it."""
    for _ in range(100):
        live.open(proof).close()
        time.sleep(0.02)


def test_a_live_surface_is_never_made_fresh_nor_broken_for_a_test(own: Live) -> None:
    config = {"store": "postgres", "writer_dsn": own.writer_dsn, "fitness": str(own.proof())}
    with pytest.raises(OpenError, match="never made anew"):
        Rs4aReplay().open(OpenRequest(StateWanted.FRESH, SurfaceWanted.READY, own.folder, NOW, config))
    desk = Desk(own.open(own.proof()))
    for method, args in (("break_surface", {"how": "unreachable"}), ("break_audit", {"broken": True})):
        answer = desk.call(method, args)
        assert isinstance(answer, Fault)
        assert "never broken for a test" in answer.detail
    assert isinstance(desk.call("state"), Ok)
    assert isinstance(desk.call("issue_nonce", {"binding": {"principal": "agent-1"}, "window": WINDOW}), Accepted)
    desk.session.close()


def test_an_unreachable_live_surface_is_said_without_the_password(live: Live) -> None:
    config = {"store": "postgres", "writer_dsn": "postgresql://w:s3cr3t-word@127.0.0.1:1/none", "fitness": "x"}
    with pytest.raises(OpenError, match="cannot be reached") as refused:
        Rs4aReplay().open(OpenRequest(StateWanted.EXISTING, SurfaceWanted.READY, live.folder, NOW, config))
    assert "s3cr3t-word" not in str(refused.value)


def test_a_proof_is_a_file_that_was_made_on_some_day(live: Live) -> None:
    path = live.proof(lambda proof: proof.update(made="2026-02-30T00:00:00.000000Z"))
    with pytest.raises(OpenError, match="2026-02-30"):
        live.open(path)
    pipe = live.folder / "pipe"
    os.mkfifo(pipe)
    for place in (pipe, live.folder, Path("proof\0json")):
        with pytest.raises(OpenError, match="cannot be read"):
            live.open(place)


def test_a_piece_of_a_password_is_not_shown_for_a_host() -> None:
    for dsn in ("postgresql://u:x@s3cret@127.0.0.1:1/db", "postgresql://u/s3cret@127.0.0.1:1/db"):
        assert "s3cret" not in describe(dsn)
    assert describe("postgresql://u@127.0.0.1:1/db") == "database 'db' at '127.0.0.1'"
