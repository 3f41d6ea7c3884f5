"""What the text of a default says of an end in SQLite, where texts and numbers are all that a time can be."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.conformance.fitness.criteria.endings import Ending, Sense
from holdfast.conformance.fitness.sqlite.sqltext import _said, generated, tokens

SAID = {
    "-1": Sense.NO_TIME,
    "NULL": Sense.NO_TIME,
    "'pending'": Sense.NO_TIME,
    '"pending"': Sense.NO_TIME,
    "X'00'": Sense.NO_TIME,
    "TRUE": Sense.NO_TIME,
    "lower(hex(randomblob(16)))": Sense.NO_TIME,
    "abs(random())": Sense.NO_TIME,
    "CURRENT_TIMESTAMP": Sense.MOMENT,
    "current_date": Sense.MOMENT,
    "datetime('now')": Sense.MOMENT,
    "datetime()": Sense.MOMENT,
    "(datetime('now', 'localtime'))": Sense.MOMENT,
    "strftime('%Y-%m-%dT%H:%M:%fZ', 'now')": Sense.MOMENT,
    "CAST(strftime('%s', 'now') AS INTEGER)": Sense.MOMENT,
    "unixepoch()": Sense.MOMENT,
    "unixepoch('now') * 1000": Sense.MOMENT,
    "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)": Sense.MOMENT,
    "CAST(unixepoch('subsec') * 1000 AS INTEGER)": Sense.MOMENT,
    "CAST(unixepoch('now', 'subsec') * 1000 AS INTEGER)": Sense.MOMENT,
    "julianday('now')": Sense.MOMENT,
    "datetime('now') || 'Z'": Sense.MOMENT,
    "'9999-12-31'": Sense.FOR_EVER,
    "'9999-12-31T23:59:59Z'": Sense.FOR_EVER,
    "'infinity'": Sense.FOR_EVER,
    "9223372036854775807": Sense.FOR_EVER,
    "253402300799": Sense.FOR_EVER,
    "date('now','+30 days')": Sense.LATER,
    "strftime('%s', 'now') + 3600": Sense.LATER,
    "unixepoch() + 86400": Sense.LATER,
    "unixepoch() * 1000 + 86400000": Sense.LATER,
    "30 + julianday('now')": Sense.LATER,
    "CAST(julianday('now') + 30 AS TEXT)": Sense.LATER,
    "datetime('now', '+01:00')": Sense.UNCLEAR,
    "'2030-01-01'": Sense.INSTANT,
    "1893456000": Sense.INSTANT,
    "0x70DBD880": Sense.INSTANT,
    "+1.893456e9": Sense.INSTANT,
    "'20300101'": Sense.INSTANT,
    "20300101": Sense.NO_TIME,
    "60 * 60 * 24": Sense.NO_TIME,
    "21915 * 86400": Sense.UNCLEAR,
    "iif(1, '2030-01-01', '')": Sense.UNCLEAR,
    "'30 days'": Sense.INSTANT,
    "datetime('2030-01-01')": Sense.UNCLEAR,
    "strftime('9%Y', 'now')": Sense.UNCLEAR,
    "unixepoch() * 2": Sense.UNCLEAR,
    "julianday('now') - -30": Sense.UNCLEAR,
    "until()": Sense.UNCLEAR,
}


@pytest.mark.parametrize("text", SAID)
def test_a_default_says(text: str) -> None:
    assert _said(tokens(text)).sense is SAID[text]


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        # At the end of a day a date of 30 days later is 29 days away.
        ("date('now', '+30 days')", 29, 30),
        ("(datetime('now', '365 days'))", 365, 365),
        ("datetime('now', '2 months')", 56, 62),
        ("datetime('now', '+12 months')", 365, 366),
        ("datetime('now', '+13 months')", 393, 397),
        ("unixepoch('NOW', '+2 years')", 730, 732),
        ("julianday('now', '+48 hours')", 2, 2),
    ],
)
def test_how_far_away_an_end_lies_is_known_of_one_modifier(text: str, least: int, most: int) -> None:
    assert _said(tokens(text)) == Ending(Sense.LATER, timedelta(days=least), timedelta(days=most))


@pytest.mark.parametrize(
    "text",
    [
        "datetime('now', '+1 day', 'start of month')",
        "strftime('%Y', 'now', '+1 day')",
        "datetime('2000-01-01', '+1 day')",
        "datetime('2000-01-01', '+1 day') || datetime('now')",
        "unixepoch() + 86400 * 3",
        "julianday('now', '+2 days') + 2",
        # Round the call stands what brings it nearer, or makes something else of it.
        "max(datetime('now','+400 days'), current_timestamp)",
        "unixepoch('now','+400 days') - 34000000",
        "iif(1, current_timestamp, datetime('now','+400 days'))",
        "case when 1 then current_timestamp else datetime('now','+400 days') end",
        "time('now','+400 days')",
        "unixepoch('now','+400 days') % 86400",
        "-unixepoch('now','+400 days')",
        "substr(datetime('now','+400 days'),1,7)",
        "datetime('now','400 days') < current_timestamp",
    ],
)
def test_how_far_away_any_other_end_lies_is_not_known(text: str) -> None:
    assert _said(tokens(text)) == Ending(Sense.LATER)


def test_a_generated_column_says_what_its_columns_say() -> None:
    sql = 'CREATE TABLE t (a TEXT DEFAULT (f(1, 2)), "b c" INT AS (made + 60), d GENERATED ALWAYS AS (a) STORED)'
    found = generated(sql)
    assert set(found) == {"b c", "d"}
    assert _said(found["b c"], {"made"}).sense is Sense.LATER
    assert _said(found["b c"]).sense is Sense.NO_TIME
    assert _said(found["d"]).sense is Sense.NO_TIME
