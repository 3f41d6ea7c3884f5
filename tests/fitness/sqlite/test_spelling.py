"""CHECKs of SQLite: which texts show that a key has one spelling, and that those which do refuse every twin."""

from __future__ import annotations

import math
import sqlite3

import pytest

from holdfast.conformance.fitness.criteria.spelling import (
    NEIGHBOURS,
    NUL_NEIGHBOURS,
    WRITE_AS_IN_FILES,
    capacity,
    conditions,
    limits,
    one_spelling_in_files,
)
from holdfast.conformance.fitness.sqlite.catalogue import check_text
from holdfast.conformance.fitness.sqlite.sqltext import checks
from holdfast.conformance.fitness.trying.values import digest_of

KEY = digest_of(1)
_TEXT, _ONLY = "typeof(k) = 'text'", "k NOT GLOB '*[^0-9a-f]*'"
_LONG, _BYTES = "length(k) = 64", "length(CAST(k AS BLOB)) = 64"
_PLACES = f"k GLOB '{'[0-9a-f]' * 64}'"
ACCEPTED = (
    WRITE_AS_IN_FILES.format("k"),
    f"{_LONG} AND {_BYTES} AND {_ONLY} AND {_TEXT}",
    f"({_TEXT} AND ({_LONG} AND {_BYTES})) AND {_ONLY}",
    f"{_TEXT} AND {_LONG} AND instr(k, char(0)) = 0 AND {_ONLY}",
    f"{_TEXT} AND {_BYTES} AND instr(k, x'00') = 0 AND {_ONLY}",
    f"{_TEXT} AND {_PLACES} AND {_BYTES}",
    f"{_TEXT} AND {_PLACES} AND instr(k, char(0)) = 0",
    f"TYPEOF(\"K\") = 'text' AND LENGTH([k]) = 64 AND length(cast(k as blob)) = 64 /* OR 1 */ AND {_ONLY}",
)
REFUSED = (
    f"{_LONG} AND {_BYTES} AND {_ONLY}",
    f"{_TEXT} AND {_LONG} AND {_ONLY}",
    f"{_TEXT} AND {_BYTES} AND {_ONLY}",
    f"{_TEXT} AND {_LONG} AND length(CAST(k AS BLOB)) = 65 AND {_ONLY}",
    f"{_TEXT} AND {_LONG} AND {_BYTES}",
    f"{_TEXT} AND {_PLACES}",
    f"{_TEXT} AND k GLOB '[0-9a-f]*' AND {_BYTES}",
    f"{_TEXT} AND k GLOB '{'?' * 64}' AND {_BYTES}",
    f"{_TEXT} AND k LIKE '{'_' * 64}' AND {_BYTES} AND {_LONG}",
    f"{_TEXT} AND {_LONG} AND {_BYTES} AND k NOT GLOB '*[^0-9a-fA-F]*'",
    f"{_TEXT} AND {_LONG} AND {_BYTES} AND k NOT GLOB '[^0-9a-f]*'",
    f"{_TEXT} AND {_LONG} AND {_BYTES} AND k NOT GLOB '*[^0-z]*'",
    f"{_TEXT} AND {_LONG} AND {_BYTES} AND k NOT LIKE '*[^0-9a-f]*'",
    f"{_TEXT} AND {_LONG} AND {_BYTES} AND lower(k) NOT GLOB '*[^0-9a-f]*'",
    f"{_TEXT} AND {_LONG} AND {_BYTES} AND {_ONLY} OR k = 'x'",
    f"{_TEXT} AND {_LONG} AND {_BYTES} AND NOT ({_ONLY})",
    f"({_TEXT} AND {_LONG} AND {_BYTES} AND {_ONLY}) IS NOT 0",
    f"coalesce({_TEXT} AND {_LONG} AND {_BYTES} AND {_ONLY}, 1)",
    f"CASE WHEN 1 AND {_TEXT} AND {_LONG} AND {_BYTES} AND {_ONLY} AND 1 THEN 1 ELSE 1 END",
    f"0 BETWEEN 0 AND {_TEXT} AND {_LONG} AND {_BYTES} AND {_ONLY}",
    f"typeof(k) = 'blob' AND {_LONG} AND {_BYTES} AND {_ONLY}",
    f"typeof('k') = 'text' AND {_LONG} AND {_BYTES} AND {_ONLY}",
    f'{_TEXT} AND "length"(k) = 64 AND {_BYTES} AND {_ONLY}',
    f'{_TEXT} AND {_LONG} AND {_BYTES} AND k NOT GLOB "*[^0-9a-f]*"',
)


def _table(condition: str) -> str:
    return f"CREATE TABLE t (k TEXT NOT NULL CHECK ({condition}))"


def _one(condition: str, *, typed: bool = False) -> bool:
    ((_, body),) = checks(_table(condition))
    return one_spelling_in_files(conditions(check_text(body, ["k"])), "k", typed=typed)


@pytest.mark.parametrize("condition", ACCEPTED)
def test_a_text_shows_that_there_is_one_spelling_and_no_twin_goes_in(condition: str) -> None:
    assert _one(condition)
    connection = sqlite3.connect(":memory:")
    connection.execute(_table(condition))
    connection.execute("INSERT INTO t VALUES (?)", (KEY,))
    middle = f"{KEY[:3]}\0{'g' * 60}"
    for neighbour in (*(make(KEY) for make, _ in {**NEIGHBOURS, **NUL_NEIGHBOURS}.values()), KEY.encode(), middle, ""):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute("INSERT INTO t VALUES (?)", (neighbour,))
    connection.close()


@pytest.mark.parametrize("condition", REFUSED)
def test_a_text_leaves_it_open_whether_there_is_one_spelling(condition: str) -> None:
    assert not _one(condition)


def test_a_strict_table_needs_no_typeof() -> None:
    assert _one(f"{_LONG} AND {_BYTES} AND {_ONLY}", typed=True)


@pytest.mark.parametrize(
    ("condition", "bits"),
    [
        (_BYTES, 512),
        ("octet_length(k) = 8", 64),
        (f"octet_length(k) = 8 AND {_ONLY}", 32),
        ("length(k) < 7", 123),
        ("typeof(k) = 'blob' AND length(k) = 8", 64),
        ("length(k) = 15 AND typeof(k) == 'blob'", 120),
        ("length(k) = 8 AND typeof(k) IS 'blob'", 64),
        ("length(k) = 8 AND typeof(k) IN ('blob')", 64),
        ("length(k) = 8 AND typeof(k) IN ('blob', 'text')", 160),
        ("length(k) = 8 AND typeof(k) = 'text'", 160),
        ("length(k) IN (5, 6)", 123),
        ("k = substr(k, 1, 6)", 123),
        ("length(k) IS 5 OR 6 = length(k)", 121),
        ("NOT (length(k) > 6 OR k = '')", 123),
        ("NOT k GLOB '*[^01]*' AND (length(k) = 6 OR length(k) = 8)", 9),
        ("length(k) IN (6, 64) OR k <> ''", math.inf),
        ("k LIKE 'a1_' OR k GLOB '[ab]'", 22),
        ("length(k) BETWEEN 1 AND 6 AND k NOT GLOB '*[^01]*'", 8),
        (f"k GLOB '{'[0-9A-Fa-f]' * 8}'", 35),
        ("k GLOB 'a?[^b]'", 40),
        ("k GLOB 'abc'", 0),
        ("k GLOB 'a*'", math.inf),
        ("k GLOB '[z-a]'", 20),
        ("k GLOB '[0-9'", math.inf),
        ("k NOT GLOB '*[^0-9a-f]*'", math.inf),
        ("length(k) >= 6", math.inf),
        ("lower(k) GLOB 'abc'", math.inf),
    ],
)
def test_what_a_check_leaves_a_column_is_counted_in_bits(condition: str, bits: float) -> None:
    ((_, body),) = checks(_table(condition))
    found = capacity(conditions(check_text(body, ["k"])), "k")
    assert (found if math.isinf(found) else int(found)) == bits


@pytest.mark.parametrize(
    ("definition", "least", "most"),
    [
        ("CHECK (k BETWEEN - 3 AND 1)", -3, 1),
        ("CHECK (((k > 0) AND (k < 100)))", 1, 99),
        ("CHECK ((k <= ('-5'::integer)::numeric))", None, -5),
        ("CHECK (((k >= (0)::double precision) AND (k <> (7)::double precision)))", 0, None),
        ("CHECK ((k > (1.5)::numeric))", None, None),
        ("CHECK (length ( k ) > 3)", None, None),
        ("CHECK (((k >= 0) OR (k <= 9)))", None, None),
    ],
)
def test_comparisons_leave_a_column_these_numbers(definition: str, least: int | None, most: int | None) -> None:
    assert limits(conditions(definition), "k") == (least, most)
