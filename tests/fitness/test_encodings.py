"""Databases without an encoding: PostgreSQL keeps bytes there, and a proof holds text."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from holdfast.conformance.fitness.gather import assess
from holdfast.conformance.fitness.model import Status
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres.scratch import Scratch
from tests.fitness.documented import DOCUMENTED, surface_ddl
from tests.fitness.lives import LiveServer

PLAIN = "plain"


@pytest.fixture
def plain(live_server: LiveServer) -> Iterator[psycopg.Connection[bytes]]:
    """The documented surface in a database without an encoding."""
    with psycopg.connect(live_server.dsn, autocommit=True) as keeper:
        keeper.execute(f"CREATE DATABASE {PLAIN} TEMPLATE template0 ENCODING SQL_ASCII LOCALE 'C'")
        try:
            with live_server.database(PLAIN) as connection:
                connection.execute(surface_ddl().encode())
                yield connection
        finally:
            keeper.execute(f"DROP DATABASE IF EXISTS {PLAIN} WITH (FORCE)")


def test_text_is_read_and_cloned_as_text(
    plain: psycopg.Connection[bytes], live_server: LiveServer, clones: Scratch
) -> None:
    plain.execute("ALTER TABLE surface.consumed_nonce ADD CHECK (authorization_nonce <> 'gebühr')".encode())

    found = assess(live_server.dsn_of(PLAIN), DOCUMENTED, Policy(), server=clones)

    assert found.judgement.status is Status.FIT, found.judgement.reasons


def test_bytes_that_are_no_text_leave_criteria_unproven(
    plain: psycopg.Connection[bytes], live_server: LiveServer, clones: Scratch
) -> None:
    plain.execute(rb"ALTER TABLE surface.consumed_nonce ADD CHECK (authorization_nonce <> E'geb\xfchr')")

    found = assess(live_server.dsn_of(PLAIN), DOCUMENTED, Policy(), server=clones)

    assert found.judgement.status is Status.NOT_FIT
    assert "CATALOGUE_UNREADABLE" in {reason.code for reason in found.judgement.reasons}
