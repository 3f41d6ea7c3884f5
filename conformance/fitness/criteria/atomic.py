"""(e) consume and effect commit together or not at all, and stay."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.files import commits
from holdfast.conformance.fitness.criteria.judging import NOT_SERIALIZED, THERE, Judging, duplicate, is_refusal
from holdfast.conformance.fitness.criteria.keys import sound_unique
from holdfast.conformance.fitness.criteria.tables import OFF, TABLES, apart, logged, there
from holdfast.conformance.fitness.model import Part, Probe, ProbeAnswer, RelationName, Row
from holdfast.conformance.fitness.policy import KEYS, NONCE
from holdfast.conformance.fitness.postgres.catalogue import UnreadError

# The word of each part that is consumed once.
_ONCE = {Part.EFFECT: KEYS[0], Part.NONCE: NONCE}
_COMMIT = "synchronous_commit"
_DURABLE = ("fsync", "full_page_writes")
# Sources of a setting from which no session of another role takes it.
_OF_THIS_READER = ("user", "database user", "client", "session")


def atomic(judging: Judging) -> None:
    """(e)"""
    parts = apart(judging)
    if Part.NONCE not in parts:
        text = "no relation of its own consumes the nonce, so nothing shows that both rows commit together"
        judging.unproven(Code.MISSING_RELATION, text, part=Part.NONCE)
    for part in parts:
        judging.check(_transactional, part)
    servers = (_arbiters, _durable, _committed, _waiting, event_triggers, _no_prepared)
    for inspect in (*((commits,) if judging.in_files else servers), _tried):
        judging.check(inspect)


def _transactional(judging: Judging, part: Part) -> None:
    if (found := there(judging, part)) is None:
        return
    name, row = found
    if row["kind"] not in TABLES:
        text = f"{name} is no table of this database: nothing shows that its rows commit with the others"
        judging.refute(Code.NOT_A_TABLE, text, part=part, rows=[row])
    elif row["access_method"] not in ("heap", None):
        text = f"{name} is kept by the access method {row['access_method']}, of which nothing is shown here"
        judging.unproven(Code.ACCESS_METHOD, text, part=part, rows=[row])
    logged(judging, part)
    for each in judging.spread(part):
        for own in (*judging.catalogue.of("relations", each), *judging.catalogue.of("indexes", each)):
            if (space := own.get("tablespace")) is not None and space not in judging.policy.reviewed:
                text = (
                    f"{own.get('name') or each} lies in the table space {space}, of whose disk nothing is shown; "
                    "SET TABLESPACE pg_default, or name it in a policy as reviewed"
                )
                judging.unproven(Code.TABLESPACE, text, part=part, rows=[own])


def _arbiters(judging: Judging) -> None:
    for part in apart(judging):
        relation, column = judging.part(part), judging.policy.column(_ONCE[part])
        if relation is None:
            continue
        if (index := sound_unique(judging.catalogue, relation, column)) is None:
            text = f"no unique index on {column} of {relation} can be the arbiter of ON CONFLICT ({column})"
            judging.refute(Code.ARBITER_UNUSABLE, text, part=part)
        else:
            judging.rest_on(index)


def _durable(judging: Judging) -> None:
    rows = {str(row["name"]): row for row in judging.catalogue.rows("durability")}
    for name in _DURABLE:
        row = rows.get(name)
        if row is None:
            judging.unproven(Code.COMMIT_UNKNOWN, f"the setting {name} could not be read")
        elif row["value"] != "on":
            text = f"{name} is {row['value']}: what was committed may be lost, or the table damaged"
            judging.refute(Code.NOT_DURABLE, text, rows=[row])
        else:
            judging.rest_on(row)
    # What else is not at its default: a value that is not known to keep what was committed is not shown to.
    for name, row in rows.items():
        if name not in _DURABLE:
            text = f"{name} is {row['value']}, which is not known to keep what was committed; set it to its default"
            judging.unproven(Code.NOT_DURABLE, text, rows=[row])


def setting_of(judging: Judging, name: str) -> Row | None:
    """The row by which sessions of the writer start with a setting; None if only the server decides."""
    rows = {
        (row["role"], row["database"]): row
        for row in reversed(judging.catalogue.rows("role_settings"))
        if row["name"] == name
    }
    # In the order of PostgreSQL: the role in this database, the role, the database, all.
    ways = ((role, here) for role in dict.fromkeys((judging.writer, None)) for here in (True, False))
    return next((rows[way] for way in ways if way in rows), None)


def server_setting(judging: Judging, name: str) -> Row | None:
    """What the server says of a setting that the writer has from nowhere else; None, with a reason, if it is hidden."""
    rows = [each for each in judging.catalogue.rows("commit") if each["name"] == name]
    if rows and rows[0]["source"] not in _OF_THIS_READER:
        return rows[0]
    text = f"the {name} of the server is hidden by a setting of the role that reads; ask as another role"
    judging.unproven(Code.COMMIT_UNKNOWN, text, rows=rows)
    return None


def _committed(judging: Judging) -> None:
    if (row := setting_of(judging, _COMMIT) or server_setting(judging, _COMMIT)) is None:
        return
    if _is_off(row):
        text = f"sessions of the writer start with {_COMMIT} = {row['value']}: an acknowledged commit may be lost"
        judging.refute(Code.ASYNC_COMMIT, text, rows=[row])
    else:
        judging.rest_on(row)


def _is_off(row: Row) -> bool:
    """Whether a value is one of the words for off, which PostgreSQL takes shortened as well."""
    value = str(row["value"]).lower()
    return value == "0" or (value not in ("", "o") and any(word.startswith(value) for word in ("off", "false", "no")))


def _waiting(judging: Judging) -> None:
    """What ALTER SYSTEM or an editor has written into the files, and no reload has put into force."""
    try:
        rows = judging.catalogue.rows("waiting")
    except UnreadError:
        # For superusers only, and nothing is off as yet: a note says so.
        return
    for row in rows:
        # What the role or the database sets is not the server's to change.
        if not _is_off(row) or (row["name"] == _COMMIT and setting_of(judging, _COMMIT) is not None):
            continue
        name = row["name"]
        text = (
            f"{name} will be {row['value']} after the next reload: a file of the server says so; ALTER SYSTEM RESET "
            f"{name}, or correct the file"
        )
        judging.refute(Code.NOT_DURABLE if name in _DURABLE else Code.ASYNC_COMMIT, text, rows=[row])


# What an event trigger may do, at the beginning of a session and otherwise.
_EVENTS = {
    True: "runs when a session of the writer begins, and may set anything in it, synchronous_commit too",
    False: "runs with the rights of whoever changes the schema, the owner of the surface too",
}


def event_triggers(judging: Judging, *, at_login: bool = True) -> None:
    """Those that fire when a session begins, or at changes of the schema, are reviewed."""
    for row in judging.catalogue.rows("event_triggers"):
        names = {str(row["name"]), str(row.get("function"))}
        if (row["event"] == "login") is at_login and row["enabled"] != OFF and not names & set(judging.policy.reviewed):
            what = row.get("function") if at_login else row["event"]
            text = (
                f"the event trigger {row['name']} ({what}) {_EVENTS[at_login]}; drop it, or name it in a policy as "
                "reviewed"
            )
            judging.unproven(Code.TRIGGER_UNREVIEWED, text, rows=[row])


def _no_prepared(judging: Judging) -> None:
    if rows := judging.catalogue.rows("prepared"):
        text = (
            f"{len(rows)} prepared transactions are pending in this database; commit or roll them back, and ask again"
        )
        judging.unproven(Code.PREPARED_TRANSACTIONS, text, rows=rows)


def _tried(judging: Judging) -> None:
    effect, nonce = judging.part(Part.EFFECT), judging.part(Part.NONCE)
    key, once = judging.policy.column(KEYS[0]), judging.policy.column(NONCE)
    if effect is None or judging.catalogue.column(effect, key) is None:
        return
    if nonce is None or effect == nonce or judging.catalogue.column(nonce, once) is None:
        if judging.in_files:
            _raced(judging, "race", effect, key)
            _arbiter(judging, "arbiter", key, Part.EFFECT)
        return
    judging.admitted("first", Code.NOT_ATOMIC, "consume and effect did not commit together")
    _arbiter(judging, "arbiter", key, Part.EFFECT)
    _arbiter(judging, "nonce-arbiter", once, Part.NONCE)
    counts(judging, "rollback", {"effect": 0, "nonce": 0}, Code.NOT_ATOMIC, "a rolled-back transaction left a row")
    wanted = {"effect": 0, "nonce": 0, "committed": 1}
    counts(judging, "killed", wanted, Code.NOT_ATOMIC, "a killed session left a row, or a committed one is gone")
    _raced(judging, "race", effect, key)
    _raced(judging, "race-nonce", nonce, once)
    _arbiter(judging, "race-arbiter", key, Part.EFFECT)
    text = "after the first of two sessions rolled back, the second did not go through"
    judging.admitted("race-after-rollback", Code.RACE_LOST, text)


def _raced(judging: Judging, name: str, relation: RelationName, column: str) -> None:
    text = f"of two sessions with one {column} both went through"
    judging.refused(name, Code.RACE_LOST, text, by=_lost(judging, name, relation, column), staged=True)


def _lost(judging: Judging, name: str, relation: RelationName, column: str) -> Callable[[ProbeAnswer], bool]:
    """Whether a race was lost: the unique index said so, or the isolation of the session did and one row is there."""
    twice = duplicate(judging.catalogue, relation, column)
    if judging.in_files:
        return is_refusal
    return lambda answer: twice(answer) or any(_outrun(probe, answer) for probe, _ in judging.tried(name))


def _outrun(probe: Probe, answer: ProbeAnswer) -> bool:
    """Above READ COMMITTED the loser may have to try again; it has lost only if exactly one row is there."""
    there = [row[THERE] for each in probe.answers for row in each.rows if THERE in row]
    return answer.sqlstate == NOT_SERIALIZED and there == [1]


def _arbiter(judging: Judging, name: str, column: str, part: Part) -> None:
    """ON CONFLICT with the key: no error, and no row the second time."""
    for probe, answer in judging.staged(name):
        if _outrun(probe, answer) or (answer.sqlstate is None and answer.affected == 0):
            continue
        if answer.sqlstate is not None:
            text = f"ON CONFLICT ({column}) does not work: {answer.sqlstate} {answer.message}".strip()
        else:
            text = f"ON CONFLICT ({column}) DO NOTHING added a known key again"
        reason = judging.unproven if judging.by_others(answer) else judging.refute
        reason(Code.ARBITER_UNUSABLE, text, part=part, probes=[probe.name])


def counts(
    judging: Judging, name: str, wanted: dict[str, int], code: Code, text: str, *, part: Part | None = None
) -> None:
    """A probe that ends by counting rows from another session."""
    for probe, answer in judging.staged(name):
        found = {key: answer.rows[0].get(key) for key in wanted} if len(answer.rows) == 1 else {}
        if answer.sqlstate is not None or not found:
            shown = f"the probe {probe.name} shows nothing: {answer.sqlstate} {answer.message}".strip()
            judging.unproven(Code.PROBE_FAILED, shown, part=part, probes=[probe.name])
        elif None in found.values():
            shown = f"the probe {probe.name} did not count all"
            judging.unproven(Code.PROBE_FAILED, shown, part=part, probes=[probe.name])
        elif found != wanted:
            described = ", ".join(f"{key} {value}" for key, value in found.items())
            judging.refute(code, f"{text}: rows found: {described}", part=part, probes=[probe.name])
