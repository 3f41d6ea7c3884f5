"""Who can do what by way of whom, and that PostgreSQL says the same."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

from holdfast.conformance.fitness.model import Part, RelationName, Surface
from holdfast.conformance.fitness.postgres.catalogue import Catalogue, Roles
from holdfast.conformance.fitness.postgres.snapshot import take
from tests.fitness.lives import LiveServer

NAMES = ("r1", "r2", "r3", "r4", "r5")
# Memberships as (role, member, options).
GRANTS = (
    ("r2", "r1", "INHERIT TRUE, SET FALSE"),
    ("r3", "r2", "INHERIT FALSE, SET TRUE"),
    ("r4", "r3", "INHERIT TRUE, SET TRUE"),
    ("r5", "r3", "INHERIT FALSE, SET FALSE"),
)


@pytest.fixture
def live(live_server: LiveServer) -> Iterator[psycopg.Connection[Any]]:
    """A database with a table that every role has to do with."""
    with live_server.database() as connection:
        for name in NAMES:
            connection.execute(sql.SQL("CREATE ROLE {}").format(sql.Identifier(name)))
        for role, member, options in GRANTS:
            connection.execute(f"GRANT {role} TO {member} WITH {options}")
        connection.execute("CREATE TABLE public.t (a int)")
        connection.execute(f"GRANT SELECT ON public.t TO {', '.join(NAMES)}")
        yield connection


def roles_of(connection: psycopg.Connection[Any]) -> Roles:
    surface = Surface("t", {Part.EFFECT: RelationName("public", "t")}, "r1")
    return Catalogue(take(connection, surface)).roles


def test_the_server_agrees_on_every_pair(live: psycopg.Connection[Any]) -> None:
    roles = roles_of(live)
    for member, role in itertools.product(NAMES, NAMES):
        row = live.execute(
            "SELECT pg_has_role(%(m)s, %(r)s, 'SET'), pg_has_role(%(m)s, %(r)s, 'USAGE')", {"m": member, "r": role}
        ).fetchone()
        assert row is not None
        assert (role in roles.becomes(member), row[0]) in ((True, True), (False, False)), (member, role)
        # Privileges of whom one can become count as well.
        usable = any(
            live.execute("SELECT pg_has_role(%s, %s, 'USAGE')", (each, role)).fetchone() == (True,)
            for each in roles.becomes(member)
        )
        assert (role in roles.powers(member)) is usable, (member, role)


def test_who_lets_others_in_lets_himself_in(live: psycopg.Connection[Any]) -> None:
    assert roles_of(live).powers("r3") == {"r3", "r4"}
    live.execute("GRANT r5 TO r3 WITH ADMIN TRUE, INHERIT FALSE, SET FALSE")
    live.execute("CREATE ROLE r6; GRANT SELECT ON public.t TO r6; GRANT r6 TO r5 WITH INHERIT FALSE, SET TRUE")
    # Now r3 can become r5, and as r5 it is r6.
    assert roles_of(live).powers("r3") == {"r3", "r4", "r5", "r6"}


def test_the_owner_of_the_database_belongs_to_its_own_role(live: psycopg.Connection[Any]) -> None:
    assert "pg_database_owner" not in roles_of(live).powers("r1")
    live.execute("ALTER DATABASE registry OWNER TO r1")
    assert "pg_database_owner" in roles_of(live).powers("r1")
    live.execute("ALTER DATABASE registry OWNER TO postgres")
