"""Settings of commit that files of the server say and no session has as yet."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from holdfast.conformance.fitness.gather import assess
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres.scratch import Scratch
from tests.fitness.documented import DOCUMENTED, surface_ddl
from tests.fitness.lives import LiveServer


@pytest.fixture(autouse=True)
def waiting(live_server: LiveServer) -> Iterator[None]:
    """What ALTER SYSTEM says is taken back, because the server is that of other tests as well."""
    with psycopg.connect(live_server.dsn, autocommit=True) as keeper:
        try:
            keeper.execute("ALTER SYSTEM SET fsync = 'fal'")
            keeper.execute("ALTER SYSTEM SET synchronous_commit = local")
            yield
        finally:
            keeper.execute("ALTER SYSTEM RESET ALL")


def test_a_setting_that_waits_for_a_reload_refutes(live_server: LiveServer, clones: Scratch) -> None:
    with live_server.database("reload", surface_ddl()):
        assessed = assess(live_server.dsn_of("reload"), DOCUMENTED, Policy(), server=clones)
    (reason,) = assessed.judgement.reasons
    assert (reason.criterion.value, reason.code) == ("e", "NOT_DURABLE")
    assert reason.text.startswith("fsync will be fal after the next reload")


def test_whoever_may_not_read_the_files_is_told_so(live_server: LiveServer, clones: Scratch) -> None:
    with live_server.database("reload", surface_ddl()) as connection:
        connection.execute("CREATE ROLE auditor LOGIN; GRANT pg_read_all_data TO auditor")
        assessed = assess(live_server.dsn_of("reload", user="auditor"), DOCUMENTED, Policy(), server=clones)
    assert [(reason.code, reason.text) for reason in assessed.judgement.reasons] == []
    assert [note for note in assessed.judgement.notes if note.startswith("whether the next reload switches fsync")]
