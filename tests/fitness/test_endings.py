"""What the text of a default says of an end, as PostgreSQL 13 to 18 write it. What is not known is never no time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.conformance.fitness.criteria.endings import Ending, Sense, ending

NONE, DAY, HOUR = timedelta(), timedelta(days=1), timedelta(hours=1)
MADE = Ending(Sense.MOMENT, NONE, NONE)
SAID: dict[str, Sense | Ending] = {
    # No time.
    "": Sense.NO_TIME,
    "NULL::text": Sense.NO_TIME,
    "NULL::timestamp with time zone": Sense.NO_TIME,
    "0": Sense.NO_TIME,
    "'-1'::integer": Sense.NO_TIME,
    "true": Sense.NO_TIME,
    "'pending'::text": Sense.NO_TIME,
    "('a'::text)::character varying(20)": Sense.NO_TIME,
    "'{}'::jsonb": Sense.NO_TIME,
    "ARRAY[]::text[]": Sense.NO_TIME,
    "nextval('reg.numbers'::regclass)": Sense.NO_TIME,
    "(gen_random_uuid())::text": Sense.NO_TIME,
    "CURRENT_USER": Sense.NO_TIME,
    "md5((random())::text)": Sense.NO_TIME,
    "current_setting('app.tenant'::text)": Sense.NO_TIME,
    "(5 + 3)": Sense.NO_TIME,
    "'v1+2'::text": Sense.NO_TIME,
    "'1.2.3'::text": Sense.NO_TIME,
    f"'0x{'f' * 400}'::text": Sense.NO_TIME,
    "'interval'::text": Sense.NO_TIME,
    # The moment of making.
    "now()": Sense.MOMENT,
    "pg_catalog.now()": Sense.MOMENT,
    "CURRENT_TIMESTAMP(3)": Sense.MOMENT,
    "(now())::date": Sense.MOMENT,
    "(clock_timestamp())::timestamp(0) without time zone": Sense.MOMENT,
    "CURRENT_DATE": Sense.MOMENT,
    "timezone('utc'::text, now())": Sense.MOMENT,
    "(CURRENT_TIMESTAMP AT TIME ZONE 'Europe/Vienna'::text)": Sense.MOMENT,
    "((now() AT TIME ZONE 'UTC'::text))::text": Sense.MOMENT,
    "date_trunc('second'::text, now())": Sense.MOMENT,
    "((EXTRACT(epoch FROM now()) * (1000)::numeric))::bigint": Sense.MOMENT,
    "(floor((date_part('epoch'::text, clock_timestamp()) * (1000)::double precision)))::bigint": Sense.MOMENT,
    "('now'::text)::timestamp with time zone": Sense.MOMENT,
    "to_char(now(), 'YYYY-MM-DD'::text)": Sense.MOMENT,
    # For ever.
    "'infinity'::timestamp with time zone": Sense.FOR_EVER,
    "'Infinity'::double precision": Sense.FOR_EVER,
    "'9223372036854775807'::bigint": Sense.FOR_EVER,
    "(now() + 'infinity'::interval)": Sense.FOR_EVER,
    "tstzrange(now(), NULL::timestamp with time zone)": Sense.FOR_EVER,
    "tstzrange(now(), 'infinity'::timestamp with time zone, '[)'::text)": Sense.FOR_EVER,
    # A while after.
    "(now() + '1 day'::interval)": Ending(Sense.LATER, NONE, DAY),
    "('1 day'::interval + now())": Ending(Sense.LATER, NONE, DAY),
    "(timezone('utc'::text, now()) + '02:00:00'::interval)": Ending(Sense.LATER, 2 * HOUR, 2 * HOUR),
    "'1 day'::interval": Ending(Sense.LATER, NONE, DAY),
    "(now() + '400 days'::interval month)": Ending(Sense.LATER),
    "('400 days'::interval)::interval month": Ending(Sense.LATER),
    "'1 year 2 mons'::interval": Ending(Sense.LATER, (365 + 55) * DAY, (366 + 62) * DAY),
    "tstzrange(now(), (now() + '1 day'::interval))": Ending(Sense.LATER, NONE, DAY),
    "tstzrange(now(), (now() + '1 day'::interval), '[]'::text)": Ending(Sense.LATER, NONE, DAY),
    "(now() + ('1 day'::interval * (30)::double precision))": Ending(Sense.LATER),
    "(now() - '-30 days'::interval)": Ending(Sense.LATER),
    "make_interval(days => 30)": Ending(Sense.LATER),
    "(CURRENT_DATE + 30)": Ending(Sense.LATER),
    "((EXTRACT(epoch FROM now()))::bigint + 86400)": Ending(Sense.LATER),
    "(86400 + (date_part('epoch'::text, now()))::bigint)": Ending(Sense.LATER),
    "((now() + '30 days'::interval))::text": Ending(Sense.LATER),
    "timestamptz_pl_interval(now(), '1 day'::interval)": Ending(Sense.LATER),
    "jsonb_build_object('until', (now() + '1 day'::interval))": Ending(Sense.LATER),
    # A fixed time.
    "'9999-12-31 00:00:00+00'::timestamp with time zone": Sense.INSTANT,
    "'-infinity'::timestamp with time zone": Sense.INSTANT,
    "'2030-01-01'::date": Sense.INSTANT,
    "'2030-01-01T00:00:00Z'::character varying": Sense.INSTANT,
    "'20300101T000000Z'::text": Sense.INSTANT,
    "'[2026-01-01,2027-01-01)'::daterange": Sense.INSTANT,
    '\'{"until": "2030-01-01"}\'::jsonb': Sense.INSTANT,
    "1893456000": Sense.INSTANT,
    "'1893456000000'::bigint": Sense.INSTANT,
    "('tomorrow'::text)::timestamp with time zone": Sense.INSTANT,
    "'30 days'::text": Sense.INSTANT,
    "'24:00:00'::text": Sense.INSTANT,
    "'1/2/2030'::text": Sense.INSTANT,
    "'1 January 2030'::text": Sense.INSTANT,
    "'20300101'::text": Sense.INSTANT,
    "'P30D'::text": Sense.INSTANT,
    "'PT3600S'::text": Sense.INSTANT,
    # Not read.
    "reg.until()": Sense.UNCLEAR,
    "(('21915'::bigint * 86400) + 0)": Sense.UNCLEAR,
    "('2030'::text || '-01-01'::text)": Sense.UNCLEAR,
    "COALESCE(NULL::text, '2030-01-01'::text)": Sense.UNCLEAR,
    "reg.until(now())": Sense.UNCLEAR,
    '"My Schema"."Until"()': Sense.UNCLEAR,
    "reg.now()": Sense.UNCLEAR,
    "(1 OPERATOR(reg.+) 2)": Sense.UNCLEAR,
    "('x'::text)::reg.until": Sense.UNCLEAR,
    "until()": Sense.UNCLEAR,
    "(now() AT TIME ZONE 'X-167'::text)": Sense.UNCLEAR,
    "timezone('<X>-167'::text, now())": Sense.UNCLEAR,
    "to_char(now(), '9999-MM-DD'::text)": Sense.UNCLEAR,
    "(EXTRACT(epoch FROM now()) * (2)::numeric)": Sense.UNCLEAR,
    "(EXTRACT(epoch FROM now()) * (1000)::numeric * (2)::numeric)": Sense.UNCLEAR,
    "to_timestamp((4102444800)::double precision)": Sense.UNCLEAR,
    "(current_setting('app.until'::text))::timestamp with time zone": Sense.UNCLEAR,
    "CASE WHEN true THEN now() ELSE NULL::timestamp with time zone END": Sense.UNCLEAR,
    "query_to_xml('SELECT now() + ''1 day'''::text, true, true, ''::text)": Sense.UNCLEAR,
    "date_trunc('year'::text, reg.until())": Sense.UNCLEAR,
    "GREATEST(now(), reg.until())": Sense.UNCLEAR,
    "'a'\x03": Sense.UNCLEAR,
    # A quote in a name would make a text of what is called.
    "(\"a'\".until() || 'x'::text)": Sense.UNCLEAR,
    "(\"now()\".until() || 'x'::text)": Sense.UNCLEAR,
}


@pytest.mark.parametrize("text", SAID)
def test_a_default_says(text: str) -> None:
    wanted, found = SAID[text], ending(text)
    assert (found if isinstance(wanted, Ending) else found.sense) == wanted


def test_what_a_column_of_a_type_of_time_says_is_a_time() -> None:
    assert ending("now()", kind="pg_catalog.timestamptz").sense is Sense.MOMENT
    assert ending("NULL::timestamp with time zone", kind="pg_catalog.timestamptz").sense is Sense.NO_TIME
    assert ending("''::text", kind="pg_catalog.timestamptz").sense is Sense.INSTANT
    assert ending("COALESCE(NULL::date, NULL::date)", kind="pg_catalog.timestamptz").sense is Sense.UNCLEAR


def test_what_somebody_has_reviewed_is_believed_and_no_more() -> None:
    assert ending("reg.number()", reviewed=("reg.number",)).sense is Sense.NO_TIME
    assert ending("reg.number()", reviewed=("number",)).sense is Sense.UNCLEAR
    assert ending("(reg.number() + reg.until())", reviewed=("reg.number",)).sense is Sense.UNCLEAR
    assert ending("(now() + reg.span())", reviewed=("reg.span",)).sense is Sense.LATER


@pytest.mark.parametrize(
    ("text", "sense"),
    [
        ("(committed_at)::date", Sense.MOMENT),
        ("(made_s + 86400)", Sense.LATER),
        ("(other + 86400)", Sense.NO_TIME),
        ("md5(logical_request_key)", Sense.NO_TIME),
        ("to_timestamp((other)::double precision)", Sense.UNCLEAR),
        ("reg.after(committed_at)", Sense.UNCLEAR),
    ],
)
def test_a_generated_column_says_what_its_columns_say(text: str, sense: Sense) -> None:
    assert ending(text, moments={"committed_at": MADE, "made_s": MADE}).sense is sense


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("(date_trunc('second'::text, now()) + '8760:00:00'::interval)", 365 * DAY - timedelta(seconds=1)),
        ("(date_trunc('day'::text, now()) + '8760:00:00'::interval)", 364 * DAY),
        ("('8760:00:00'::interval + date_trunc('year'::text, now()))", -DAY),
        ("((now())::date + '8760:00:00'::interval)", 364 * DAY),
        ("(CURRENT_DATE + '8760:00:00'::interval)", 364 * DAY),
        ("tstzrange(now(), (date_trunc('month'::text, now()) + '8760:00:00'::interval))", 334 * DAY),
        ("(date_trunc('century'::text, now()) + '8760:00:00'::interval)", None),
        ("(CURRENT_TIME + '8760:00:00'::interval)", None),
        ("((now())::time without time zone + '8760:00:00'::interval)", None),
        ("(((now())::character varying(10))::timestamp with time zone + '8760:00:00'::interval)", None),
        ("((now())::timestamp(0) with time zone + '8760:00:00'::interval)", 365 * DAY - timedelta(seconds=1)),
        ("(CURRENT_TIMESTAMP(0) + '8760:00:00'::interval)", 365 * DAY - timedelta(seconds=1)),
        ("(timezone('America/Lima'::text, now()) + '365 days'::interval)", 364 * DAY - 2 * HOUR),
        ("((now() AT TIME ZONE 'UTC'::text) + '365 days'::interval)", 365 * DAY),
        ("(((now() AT TIME ZONE 'UTC'::text))::timestamp with time zone + '365 days'::interval)", 364 * DAY - 2 * HOUR),
        ("(((now())::text)::timestamp with time zone + '8760:00:00'::interval)", None),
        # Of these days one may have 23 hours in the zone of the session.
        ("(now() + '365 days'::interval)", 364 * DAY),
        ("((to_char(now(), 'Mon YYYY'::text))::timestamp without time zone + '8760:00:00'::interval)", None),
        ("(made + '8760:00:00'::interval)", 365 * DAY),
        ("(on_day + '8760:00:00'::interval)", 364 * DAY),
        ("(at_some_time + '8760:00:00'::interval)", None),
    ],
)
def test_what_is_cut_off_the_moment_of_making_brings_the_end_nearer(text: str, least: timedelta | None) -> None:
    found = ending(text, moments={"made": MADE, "on_day": MADE.nearer(DAY), "at_some_time": MADE.nearer(None)})
    assert (found.sense, found.least, found.most) == (Sense.LATER, least, 365 * DAY)


@pytest.mark.parametrize(
    ("kind", "modifier", "least"),
    [
        ("timestamptz", -1, 364 * DAY - 2 * HOUR), ("timestamp", -1, 365 * DAY), ("date", -1, 364 * DAY),
        ("timestamp", 0, 365 * DAY - timedelta(seconds=1)), ("time", -1, None), ("bpchar", 14, None),
        ("interval", 458751, None),
    ],
)  # fmt: skip
def test_the_type_of_a_column_cuts_too(kind: str, modifier: int, least: timedelta | None) -> None:
    text = "(timezone('UTC'::text, now()) + '1 year'::interval)"
    assert ending(text, kind=f"pg_catalog.{kind}", modifier=modifier).least == least


def test_an_end_after_an_end_is_not_known_to_be_near() -> None:
    until = {"until": Ending(Sense.LATER, 30 * DAY, 30 * DAY)}
    assert ending("(until + '01:00:00'::interval)", moments=until) == Ending(Sense.LATER, HOUR)
