"""CHECKs as PostgreSQL itself writes them: which texts show that a key has one spelling, and which do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from holdfast.conformance.fitness.criteria.spelling import conditions, one_spelling
from tests.fitness.lives import LiveServer

HEX = "^[0-9a-f]{64}$"
# Conditions on k, a text, as users write them. The base is that of every row of the table.
ACCEPTED = (
    f"k ~ '{HEX}'",
    f"(k COLLATE \"C\") ~ '{HEX}'",
    f"k::text ~ '{HEX}'",
    f"k ~ '{HEX}' AND k <> ''",
    f"k <> repeat('0', 64) AND (v IS NULL OR v ~ 'x') IS NOT NULL AND k ~ '{HEX}'",
    "k ~ '^sha256:[0-9a-f]{64}$'",
    "k ~ '^lrk_[0-9a-f]{64}_v2$'",
    "k ~ '^[0-9]{20}$'",
    "k ~ '^[A-Z2-7]{52}={4}$'",
    "k ~ '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$'",
    "k ~ '^key[.][0-9a-f]{64}$'",
    "length(k) = 64 AND k !~ '[^0-9a-f]'",
    "octet_length(k) = 64 AND k !~ '[^0-9a-f]'",
    "char_length(k) = 64 AND k ~ '^[0-9a-f]+$'",
    "64 > 1 AND length(k) = 64 AND k ~ '^[0-9a-f]*$'",
)
REFUSED = (
    "k <> ''",
    "k = lower(k)",
    "length(k) = 64",
    "k !~ '[^0-9a-f]'",
    "k ~ '^[0-9a-f]+$'",
    "length(k) >= 64 AND k !~ '[^0-9a-f]'",
    "length(k) = 64 AND k !~ '[^0-9a-fA-F]'",
    "length(k) = 64 AND k !~ '^[0-9a-f]'",
    "length(k) = 64 AND k !~ '[0-9a-f]'",
    "length(k) = 64 AND k !~ '[^0-9a-f]{2}'",
    "length(k) = 64 AND k !~* '[^0-9a-f]'",
    "length(v) = 64 AND k !~ '[^0-9a-f]'",
    "length(btrim(k)) = 64 AND k !~ '[^0-9a-f]'",
    f"lower(k) ~ '{HEX}'",
    f"btrim(k) ~ '{HEX}'",
    f"v ~ '{HEX}'",
    f"NOT k ~ '{HEX}'",
    f"(k ~ '{HEX}') IS NOT FALSE",
    f"k ~ '{HEX}' OR k = ''",
    f"k ~ '{HEX}' OR v = 'x' AND k ~ '{HEX}'",
    f"CASE WHEN v IS NULL AND k ~ '{HEX}' THEN true ELSE true END",
    f"coalesce(k ~ '{HEX}', true)",
    f"k ~* '{HEX}'",
    f"k !~ '{HEX}'",
    f"k LIKE '{HEX}'",
    "k SIMILAR TO '[0-9a-f]{64}'",
    f"k ~ ANY (ARRAY['{HEX}', '^x$'])",
    f"k OPERATOR(public.~~~~) '{HEX}'",
    f"k ~ '(?i){HEX}'",
    f"k ~ '***:(?i){HEX}'",
    "k ~ '^(?i)[0-9a-f]{64}$'",
    "k ~ '[0-9a-f]{64}'",
    "k ~ '^[0-9a-f]{64}'",
    "k ~ '[0-9a-f]{64}$'",
    "k ~ '^[0-9a-f]{64}|x$'",
    "k ~ '^a|[0-9a-f]{64}$'",
    "k ~ '^(sha256:)?[0-9a-f]{64}$'",
    "k ~ '^(a|b)[0-9a-f]{64}$'",
    "k ~ '^0?[0-9a-f]{64}$'",
    "k ~ '^ *[0-9a-f]{64}$'",
    "k ~ '^[0-9a-f]{32,64}$'",
    "k ~ '^[0-9a-f]{64,}$'",
    "k ~ '^[0-9a-f]{64}{1,2}$'",
    "k ~ '^([0-9a-f]{32})+$'",
    "k ~ '^[0-9a-f]{64}.$'",
    "k ~ '^.{64}$'",
    "k ~ '^[0-9A-f]{64}$'",
    "k ~ '^[A-z]{64}$'",
    "k ~ '^[0-9a-fA]{64}$'",
    "k ~ '^[^g-z]{64}$'",
    "k ~ '^[[:xdigit:]]{64}$'",
    "k ~ '^[0-9a-f ]{64}$'",
    "k ~ '^[0-9a-fé]{64}$'",
    r"k ~ '^[0-9a-f]{64}\n?$'",
    r"k ~ '^\w{64}$'",
    r"k ~ '^[\w]{64}$'",
    r"k ~ E'^[0-9a-f]{64}\n$'",
    "k ~ '^$'",
    "k ~ v",
)


@pytest.fixture(scope="module")
def table(live_server: LiveServer) -> Iterator[psycopg.Connection[Any]]:
    with live_server.database("spelling") as connection:
        connection.execute("CREATE FUNCTION public.yes(text, text) RETURNS boolean IMMUTABLE RETURN true")
        connection.execute("CREATE OPERATOR public.~~~~ (LEFTARG = text, RIGHTARG = text, FUNCTION = public.yes)")
        connection.execute("CREATE TABLE public.t (k text, v text)")
        yield connection


def shown(connection: psycopg.Connection[Any], condition: str) -> list[str]:
    """The conditions of a check as the snapshot shows them."""
    with connection.transaction(force_rollback=True):
        connection.execute(f"ALTER TABLE public.t ADD CONSTRAINT form CHECK ({condition})".encode())
        connection.execute("SET LOCAL search_path = pg_catalog, pg_temp")
        row = connection.execute(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'form'"
        ).fetchone()
    assert row is not None
    return conditions(str(row[0]))


@pytest.mark.parametrize("condition", ACCEPTED)
def test_a_text_shows_that_there_is_one_spelling(table: psycopg.Connection[Any], condition: str) -> None:
    found = shown(table, condition)
    assert one_spelling(found, "k"), found


@pytest.mark.parametrize("condition", REFUSED)
def test_a_text_leaves_it_open_whether_there_is_one_spelling(table: psycopg.Connection[Any], condition: str) -> None:
    found = shown(table, condition)
    assert not one_spelling(found, "k"), found


def test_a_column_that_needs_quotes_a_varchar_and_a_domain_are_read_too(table: psycopg.Connection[Any]) -> None:
    with table.transaction(force_rollback=True):
        table.execute(f"CREATE DOMAIN public.d AS varchar CONSTRAINT form CHECK (VALUE ~ '{HEX}')")
        table.execute(
            f'CREATE TABLE public.u ("the "" key" varchar(64) CONSTRAINT other CHECK ("the "" key" ~ \'{HEX}\'))'
        )
        rows = table.execute(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname IN ('form', 'other')"
        ).fetchall()
    assert len(rows) == 2
    assert all(one_spelling(conditions(str(text)), 'the " key') for (text,) in rows), rows


def test_a_function_that_somebody_answers_for_is_asked_about_the_key_alone() -> None:
    trusted = ("reg.canon",)
    assert one_spelling(conditions("CHECK (reg.canon(k))"), "k", trusted=trusted)
    assert not one_spelling(conditions("CHECK (reg.canon(k))"), "k")
    assert not one_spelling(conditions("CHECK ((reg.canon(k) OR (k = 'x'::text)))"), "k", trusted=trusted)
    assert not one_spelling(conditions("CHECK (reg.canon(lower(k)))"), "k", trusted=trusted)
    assert not one_spelling(conditions("CHECK (reg.canon(v))"), "k", trusted=trusted)
