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
            with live_server.database(PLAIN, surface_ddl()) as connection:
                yield connection
        finally:
            keeper.execute(f"DROP DATABASE IF EXISTS {PLAIN} WITH (FORCE)")


@pytest.mark.parametrize(
    ("text", "status", "codes"),
    [
        ("'gebühr'".encode(), Status.FIT, set()),
        # These bytes are no text.
        (rb"E'geb\xfchr'", Status.NOT_FIT, {"CATALOGUE_UNREADABLE"}),
    ],
)
def test_text_is_read_and_cloned_as_text_and_other_bytes_leave_criteria_unproven(
    text: bytes, status: Status, codes: set[str],
    plain: psycopg.Connection[bytes], live_server: LiveServer, clones: Scratch,
) -> None:  # fmt: skip
    plain.execute(b"ALTER TABLE surface.consumed_nonce ADD CHECK (authorization_nonce <> " + text + b")")
    judgement = assess(live_server.dsn_of(PLAIN), DOCUMENTED, Policy(), server=clones).judgement
    assert judgement.status is status, judgement.reasons
    assert codes <= {reason.code for reason in judgement.reasons}
