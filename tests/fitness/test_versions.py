"""The corpus on real servers of every older major version: the same schema is judged the same. `tox -e fitness`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest

from holdfast.conformance.fitness.assessment import Assessment
from holdfast.conformance.fitness.model import Evidence, Standing, Status
from holdfast.conformance.fitness.postgres.scratch import Scratch
from holdfast.conformance.fitness.postgres.snapshot import read, take
from holdfast.conformance.fitness.server import server_of
from holdfast.conformance.fitness.tie import not_tied
from tests.conftest import missing
from tests.fitness.documented import line_of, surface_ddl
from tests.fitness.lives import LiveServer
from tests.fitness.releases import RELEASES, VARIABLE, Release, ReleaseError, server, verified
from tests.fitness.schemas import DATABASE, Schema, schemas

pytestmark = pytest.mark.versions

ALL = schemas()
# Schemas that only a later version understands, with the first one that does: on those before it they cannot be made.
SINCE = {
    # Predefined roles that write everywhere.
    "writer-writes-everything": 14,
    "somebody-writes-everything": 14,
    # Privileges on parameters.
    "writer-may-be-a-replica": 15,
    "parameter-of-another": 15,
    # Options of memberships.
    "writer-is-member-of-a-member": 16,
    "writer-administers-owner": 16,
    # Collations of the server's own.
    "key-collation": 17,
    # Event triggers at login.
    "login-trigger": 17,
    "login-trigger-reviewed": 17,
    # Constraints that are not enforced.
    "domain-not-enforced": 18,
    "key-form-not-enforced": 18,
}


@dataclass(frozen=True, slots=True)
class Older:
    """A running server of a release."""

    release: Release
    live: LiveServer


@pytest.fixture(scope="module", params=RELEASES, ids=lambda release: f"postgresql-{release.major}")
def older(request: pytest.FixtureRequest) -> Iterator[Older]:
    """A server of each release, one after the other."""
    release: Release = request.param
    folder = os.environ.get(VARIABLE)
    if folder is None:
        missing(f"the packages of older PostgreSQL servers: {VARIABLE} is not set, `tox -e fitness` fetches them")
    with server(release, Path(str(folder))) as dsn:
        yield Older(release, LiveServer(dsn))


def test_every_schema_that_only_a_later_version_understands_is_one_of_the_corpus() -> None:
    assert set(SINCE) <= {schema.id for schema in ALL}


def test_the_server_is_of_the_version_that_it_is_named_for(older: Older) -> None:
    with psycopg.connect(older.live.dsn) as connection:
        assert connection.info.server_version // 10_000 == older.release.major


@pytest.mark.parametrize("schema", ALL, ids=lambda schema: schema.id)
def test_a_schema_is_judged_as_by_the_newest(schema: Schema, older: Older, clones: Scratch) -> None:
    with older.live.database(DATABASE) as connection:
        if older.release.major < SINCE.get(schema.id, 0):
            with pytest.raises(psycopg.Error):
                schema.make(connection)
            return
        schema.make(connection)
        found = schema.inspect(older.live, connection, clones)
    judgement = found.judgement
    standings = {f.criterion.value: f.standing for f in judgement.findings if f.standing is not Standing.PROVEN}
    described = [(reason.criterion.value, reason.code, reason.text) for reason in judgement.reasons]
    assert judgement.status is schema.status, described
    assert schema.status is Status.NOT_PRESENT or standings == schema.standings, described
    codes = {letter: {r.code for r in judgement.reasons if r.criterion.value == letter} for letter in schema.codes}
    assert {letter: wanted - codes[letter] for letter, wanted in schema.codes.items() if wanted - codes[letter]} == {}


def test_every_role_can_read_which_server_it_is(older: Older) -> None:
    with older.live.database(DATABASE) as connection:
        connection.execute("CREATE ROLE nobody_in_particular LOGIN")
        with psycopg.connect(older.live.dsn_of(DATABASE, user="nobody_in_particular"), autocommit=True) as plain:
            server = server_of(read(plain, [("public", "none")], None))
    assert server is not None
    assert not server.replica
    assert server.name.endswith(f"/{DATABASE}")
    assert all(server.facts[name] for name in ("system_identifier", "timeline", "log_position", "next_transaction"))


def test_a_run_on_any_version_is_tied_to_a_proof_of_the_same_ddl_on_the_newest(
    older: Older, documented: Assessment
) -> None:
    assert documented.surface is not None
    with older.live.database(DATABASE, surface_ddl()) as connection:
        shot = take(connection, documented.surface)
    evidence = Evidence(documented.surface, shot)
    assessed = replace(documented, evidence=evidence)
    assert list(not_tied(documented, [line_of(assessed)])) == []


def test_a_package_that_is_not_what_was_pinned_is_refused(tmp_path: Path) -> None:
    path = tmp_path / RELEASES[0].file
    with pytest.raises(ReleaseError, match="No such file"):
        verified(RELEASES[0], path)
    path.write_bytes(b"something else")
    with pytest.raises(ReleaseError, match="expected sha512-"):
        verified(RELEASES[0], path)
