"""Making the surface is explicit, refuses to overwrite, and makes what it promises."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.reference_impl.postgres import connect, with_database
from holdfast.reference_impl.postgres_databases import clone, drop_database
from holdfast.reference_impl.rs4a_replay.demo import provision
from holdfast.reference_impl.rs4a_replay.entry import Rs4aReplay
from holdfast.reference_impl.rs4a_replay.provision import ProvisionError, sqlite_paths
from holdfast.reference_impl.session import OpenError, OpenRequest, StateWanted, SurfaceWanted
from holdfast.servers.serving import Launched
from tests.rs4a_replay.conftest import NOW

RELATIONS = ("registration", "nonce_issue", "nonce_consume", "verification", "compensation", "tombstone", "audit")


@pytest.fixture
def empty_database(postgres: Launched) -> Iterator[str]:
    server = with_database(postgres.ready.config["dsn"], "postgres")
    with connect(server) as connection:
        clone(connection, "demo", "template0")
        yield with_database(server, "demo")
        drop_database(connection, "demo")
        connection.execute("DROP ROLE IF EXISTS demo_writer")


def test_provisioning_postgres_says_what_it_made_and_refuses_to_do_it_again(empty_database: str) -> None:
    said = "\n".join(provision(dsn=empty_database, folder=None, writer="demo_writer"))
    for relation in RELATIONS:
        assert f"table rs4a_replay.{relation}" in said
    assert "role demo_writer" in said
    with pytest.raises(ProvisionError, match="exists"):
        provision(dsn=empty_database, folder=None, writer="demo_writer")


def test_provisioning_sqlite_refuses_to_overwrite_and_guards_its_rows(tmp_path: Path) -> None:
    said = "\n".join(provision(dsn=None, folder=tmp_path, writer=""))
    surface, audit = sqlite_paths(tmp_path)
    assert str(surface) in said
    assert str(audit) in said
    with pytest.raises(ProvisionError, match="exists"):
        provision(dsn=None, folder=tmp_path, writer="")
    connection = sqlite3.connect(surface, isolation_level=None)
    connection.execute("INSERT INTO tombstone VALUES (?, 'd', '2026-01-01T00:00:00Z')", ("ab" * 32,))
    for statement in ("DELETE FROM tombstone", "UPDATE tombstone SET decision_id = 'e'"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            connection.execute(statement)
    for key in ("AB" * 32, b"ab" * 32, "ab", None):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute("INSERT INTO tombstone VALUES (?, 'd', '2026-01-01T00:00:00Z')", (key,))
    connection.close()


# What a session of the registrar is opened with: a setting that makes no sense opens nothing and is said.


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"store": "oracle"}, "expected one of postgres, sqlite"),
        ({"isolation": "chaos"}, "expected one of read_committed"),
        ({"ttl_seconds": "soon"}, "expected a whole number"),
        ({"ttl": "1"}, "no such key"),
        ({"store": "postgres", "dsn": "", "writer_dsn": ""}, "expected a DSN"),
        ({"store": "postgres", "dsn": "pass word=hunter2", "writer_dsn": "x"}, "not a DSN"),
        ({"store": "sqlite", "template": "/nowhere"}, "expected the folder of a provisioned template"),
    ],
)
def test_a_bad_config_says_what_was_expected_and_keeps_secrets(
    config: dict[str, str], said: str, tmp_path: object
) -> None:
    request = OpenRequest(StateWanted.FRESH, SurfaceWanted.READY, tmp_path, NOW, config)  # type: ignore[arg-type]
    with pytest.raises(OpenError, match=said) as caught:
        Rs4aReplay().open(request)
    assert "hunter2" not in str(caught.value)
