"""The search inspects every relation, says why one is no candidate, and never decides by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from holdfast.conformance.fitness.errors import FitnessError
from holdfast.conformance.fitness.gather import choose, search, writer_of
from holdfast.conformance.fitness.model import Candidate, Part, RelationName
from holdfast.conformance.fitness.policy import Policy
from tests.fitness.documented import ledger_ddl, surface_ddl
from tests.fitness.lives import LiveServer

EFFECT, NONCE = RelationName("surface", "consumed_request"), RelationName("surface", "consumed_nonce")


@pytest.fixture
def live(live_server: LiveServer) -> Iterator[psycopg.Connection[Any]]:
    """An empty database."""
    with live_server.database() as connection:
        yield connection


def found(connection: psycopg.Connection[Any], policy: Policy | None = None) -> dict[Part, list[RelationName]]:
    candidates = search(connection, policy or Policy())
    return {part: [each.relation for each in candidates if each.part is part and not each.reasons] for part in Part}


def reasons(candidates: tuple[Candidate, ...], relation: RelationName, part: Part) -> set[str]:
    (each,) = [each for each in candidates if each.relation == relation and each.part is part]
    return {reason.code for reason in each.reasons}


def test_an_empty_database_has_none(live: psycopg.Connection[Any]) -> None:
    assert search(live, Policy()) == ()
    assert choose((), named={}) == {}


def test_the_surface_is_found_among_others_whatever_it_is_called(live: psycopg.Connection[Any]) -> None:
    live.execute(surface_ddl())
    live.execute(ledger_ddl())
    candidates = search(live, Policy())
    assert choose(candidates, named={}) == {Part.EFFECT: EFFECT, Part.NONCE: NONCE}
    ledger = RelationName("public", "iu_route_attempt")
    assert reasons(candidates, ledger, Part.EFFECT) == {"MISSING_COLUMNS", "KEY_NOT_UNIQUE"}
    assert reasons(candidates, ledger, Part.NONCE) == {"MISSING_COLUMNS"}
    assert reasons(candidates, EFFECT, Part.NONCE) >= {"NONCE_NOT_SEPARATE"}
    # The names change places, and nothing else does.
    live.execute("ALTER TABLE public.iu_route_attempt RENAME TO consumed_request")
    live.execute("ALTER TABLE surface.consumed_request RENAME TO iu_route_attempt")
    assert choose(search(live, Policy()), named={})[Part.EFFECT] == RelationName("surface", "iu_route_attempt")


def test_a_policy_says_how_columns_are_called(live: psycopg.Connection[Any]) -> None:
    live.execute(surface_ddl())
    live.execute("ALTER TABLE surface.consumed_request RENAME logical_request_key TO lrk")
    assert found(live)[Part.EFFECT] == []
    assert found(live, Policy(columns={"logical_request_key": "lrk"}))[Part.EFFECT] == [EFFECT]


def test_without_a_sound_one_the_nearest_is_judged(live: psycopg.Connection[Any]) -> None:
    live.execute(surface_ddl())
    live.execute("ALTER TABLE surface.consumed_request DROP CONSTRAINT logical_request_key_unique")
    live.execute("CREATE UNIQUE INDEX by_key ON surface.consumed_request (logical_request_key) WHERE run_id <> ''")
    assert found(live)[Part.EFFECT] == [EFFECT]
    # A sound one comes first.
    live.execute("CREATE TABLE public.other (LIKE surface.consumed_request)")
    live.execute("ALTER TABLE public.other ADD UNIQUE (logical_request_key)")
    assert found(live)[Part.EFFECT] == [RelationName("public", "other")]


def test_the_ledger_alone_is_no_candidate(live: psycopg.Connection[Any]) -> None:
    live.execute(ledger_ddl())
    assert found(live) == {Part.EFFECT: [], Part.NONCE: [], Part.AUDIT: []}


def test_of_several_one_has_to_be_named(live: psycopg.Connection[Any]) -> None:
    live.execute(surface_ddl())
    live.execute("CREATE TABLE public.copy (LIKE surface.consumed_request INCLUDING INDEXES)")
    candidates = search(live, Policy())
    with pytest.raises(FitnessError, match=r"public\.copy, surface\.consumed_request; name one with --effect"):
        choose(candidates, named={})
    assert choose(candidates, named={Part.EFFECT: EFFECT}) == {Part.NONCE: NONCE}


def test_the_writer_is_the_only_one_who_may_insert(live: psycopg.Connection[Any]) -> None:
    live.execute(surface_ddl())
    assert writer_of(live, EFFECT) == "registrar"
    live.execute("CREATE ROLE second; GRANT INSERT (run_id) ON surface.consumed_request TO second")
    assert writer_of(live, EFFECT) is None
    live.execute("REVOKE INSERT (run_id) ON surface.consumed_request FROM second")
    live.execute("GRANT INSERT ON surface.consumed_request TO PUBLIC")
    assert writer_of(live, EFFECT) is None
    live.execute("REVOKE INSERT ON surface.consumed_request FROM PUBLIC, registrar")
    assert writer_of(live, EFFECT) is None
