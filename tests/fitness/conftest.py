"""One server that stands for a live one and one for clones, for all tests that inspect PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.conformance.fitness.assessment import Assessment
from holdfast.conformance.fitness.gather import assess
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres.scratch import Scratch, bare_server, scratch
from tests.fitness.documented import DOCUMENTED, DOCUMENTED_AT, at, surface_ddl
from tests.fitness.lives import LiveServer


@pytest.fixture(scope="session")
def live_server() -> Iterator[LiveServer]:
    """A server with its own settings, as it comes; databases are made in it and dropped."""
    with bare_server({}) as bare:
        yield LiveServer(bare.dsn)


@pytest.fixture(scope="session")
def clones() -> Iterator[Scratch]:
    """A scratch server, which holds one clone at a time."""
    with scratch() as made:
        yield made


@pytest.fixture(scope="session")
def documented(live_server: LiveServer, clones: Scratch) -> Assessment:
    """The surface of docs/fitness.md examined, as of DOCUMENTED_AT. Its database is gone: roles are the server's."""
    with live_server.database("documented") as connection:
        connection.execute(surface_ddl())
        return at(DOCUMENTED_AT, assess(live_server.dsn_of("documented"), DOCUMENTED, Policy(), server=clones))
