"""Changing and erasing what is there, as the writer and as the owner: guards are executed, never read.

A guard may stand for some columns only, or let a change pass that it should not, or say nothing but a NOTICE. So one
thing is tried in several ways, each in a transaction of its own that is rolled back, and the worst answer is the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TypeAlias

from msgspec import structs

from holdfast.conformance.fitness.errors import LostError
from holdfast.conformance.fitness.model import SUFFIX, Part, Probe, ProbeAnswer, Statement, Surface
from holdfast.conformance.fitness.policy import BINDINGS, KEYS, NONCE
from holdfast.conformance.fitness.trying.rows import (
    KEY,
    Copy,
    Parameters,
    ProbeBuilder,
    RowError,
    Sample,
    Session,
    given,
    gone,
    placed,
    quoted,
    rolled_back,
)
from holdfast.conformance.fitness.trying.values import Table

# The user who may write a file: SQLite knows no other.
FILE_ROLE = "whoever may write the file"
# A statement with its parameters.
_Try: TypeAlias = tuple[str, Parameters]
_REPLACE = "INSERT OR REPLACE"
# Refusals by a rule that speaks of other things. They say nothing, where another way is refused for good.
_BY_CHANCE = frozenset({"0A000", "22P02", "23502", "23503", "23505", "23514", "42P10", "428C9"})
# No refusals at all: locks and time.
_UNKNOWN = frozenset({"55P03", "57014"})


def tampering(builder: ProbeBuilder, copy: Copy, surface: Surface, first: Sample) -> Iterator[Probe]:
    """UPDATE, DELETE, TRUNCATE and an upsert on every part, as the writer and as the owner of that part."""
    with ExitStack() as stack:
        sessions: dict[tuple[str, str], Session] = {}
        for part in (*builder.order, *builder.audit):
            if part is Part.AUDIT:
                yield from _audited(builder, copy, surface, first)
            for who, role in _actors(builder, surface, part):
                if role is not None and (who, role) not in sessions:
                    sessions[who, role] = stack.enter_context(copy.opened((who, role)))[0]
                for verb, tries in _verbs(builder, part, first).items():
                    name = f"{who}-{verb}{SUFFIX[part]}"
                    if role is None:
                        yield builder.cannot(name, "no writer is named")
                    elif not tries and builder.in_files:
                        continue
                    elif not tries:
                        yield builder.cannot(name, f"there is no way to try it on {builder.relations[part]}")
                    else:
                        yield _worst(builder, name, sessions[who, role], tries, part, first)


def _actors(builder: ProbeBuilder, surface: Surface, part: Part) -> tuple[tuple[str, str | None], ...]:
    if builder.in_files:
        return (("writer", FILE_ROLE),)
    return (("writer", surface.writer), ("owner", builder.table(part).owner))


def gentle(builder: ProbeBuilder, writer: Session, first: Sample) -> Iterator[Probe]:
    """What can be tried on rows of our own as the writer without locking those of others: no TRUNCATE, one row each."""
    for part in builder.order:
        for verb, tries in _verbs(builder, part, first).items():
            if verb != "truncate":
                own = tuple(each for each in tries if each[1])
                yield _worst(builder, f"writer-{verb}{SUFFIX[part]}", writer, own, part, first)


def _audited(builder: ProbeBuilder, copy: Copy, surface: Surface, first: Sample) -> Iterator[Probe]:
    """A record of what was admitted first, which stays; and one that is like it in all but what makes a record itself:
    the same refusal once more.
    """
    table = builder.table(Part.AUDIT)
    auditors = (("auditor", FILE_ROLE if builder.in_files else surface.writer or table.owner),)
    attempt, again = builder.attempt("audit-first"), builder.attempt("audit-again")
    try:
        builder.learn((*builder.order, Part.AUDIT))
        with copy.opened(*auditors) as (auditor,):
            builder.send(attempt, auditor, builder.insert(Part.AUDIT, first), first)
    except (RowError, LostError) as error:
        failed = attempt.done(f"no audit record can be made: {error}")
        yield from (failed, again.done(failed.failed))
        return
    yield attempt.done()
    known = builder.insert(Part.AUDIT, first).values
    same = {name: value for name, value in known.items() if name not in _own(builder, table)}
    sample = builder.fresh()
    try:
        with copy.opened(*auditors) as (auditor,), rolled_back(auditor):
            insert = builder.insert(Part.AUDIT, sample, same)
            if builder.send(again, auditor, insert, sample).sqlstate is None and not builder.in_files:
                again.send(auditor, "SET CONSTRAINTS ALL IMMEDIATE")
    except (RowError, LostError) as error:
        yield again.done(f"no second audit record can be made: {error}")
    else:
        yield again.done()


def _own(builder: ProbeBuilder, table: Table) -> frozenset[str]:
    """The columns in which records of one refusal differ: the primary key's, and what the server makes up.

    What the refused request said is the same each time, in a primary key too.
    """
    said = {builder.policy.column(word) for word in (*KEYS, NONCE, *BINDINGS)}
    primary = {name for unique in table.uniques if unique.primary for name in unique.columns}
    return frozenset((primary - said) | {name for name, column in table.columns.items() if column.made_up})


def _verbs(builder: ProbeBuilder, part: Part, known: Sample) -> Mapping[str, tuple[_Try, ...]]:
    table = builder.into(part)
    condition, values = builder.find(part, known)
    found: dict[str, tuple[_Try, ...]] = {
        "update": tuple(_updates(builder, part, known, table)),
        "delete": ((f"DELETE FROM {table} WHERE {condition}", values), (f"DELETE FROM {table}", ())),
        "truncate": ((f"TRUNCATE {table}", ()), (f"TRUNCATE {table} CASCADE", ())),
        "upsert": tuple(_upserts(builder, part, known)),
    }
    if builder.in_files:
        found |= {"truncate": ((f"DELETE FROM {table}", ()),), "replace": tuple(_replaces(builder, part, known))}
    return found


def _replaces(builder: ProbeBuilder, part: Part, known: Sample) -> Iterator[_Try]:
    """REPLACE of the row that is there: by each of its unique keys, by all that no total one has, and by its rowid.

    What an index over an expression compares is not read: with all of the columns the same it is the same.
    """
    verb, there, fresh = _REPLACE, builder.insert(part, known), builder.fresh()
    table = builder.table(part)
    total = {name for unique in table.uniques if unique.total for name in unique.columns}
    for columns in (*(set(unique.columns) for unique in table.uniques), set(there.values) - total):
        if columns and columns <= set(there.values):
            row = builder.insert(part, fresh, {name: there.values[name] for name in columns})
            yield row.text(verb=verb), row.parameters
    taken = {name.casefold() for name in table.columns}
    rowid = next((name for name in ("rowid", "_rowid_", "oid") if name not in taken), None)
    if rowid is not None and table.has_rowid:
        # A column that is the rowid under another name would have the last word.
        rest = {name: value for name, value in builder.insert(part, fresh).values.items() if name != table.rowid}
        condition, values = builder.find(part, known)
        places = placed(rest.values(), len(values))
        chosen = f"(SELECT {rowid} FROM {builder.into(part)} WHERE {condition})"
        names = ", ".join([rowid, *map(quoted, rest)])
        text = f"{verb} INTO {builder.into(part)} ({names}) VALUES ({', '.join([chosen, *places])})"
        yield text, (*values, *given(rest.values()))


def _updates(builder: ProbeBuilder, part: Part, known: Sample, table: str) -> Iterator[_Try]:
    """Every column, to what it says already, which no check minds, and to something else."""
    fresh = builder.insert(part, builder.fresh()).values
    plain, plain_values = builder.find(part, known)
    for name, column in builder.table(part).columns.items():
        if column.made_by_server:
            continue
        yield f"UPDATE {table} SET {quoted(name)} = {quoted(name)} WHERE {plain}", plain_values
        if name in fresh:
            (place,), first = placed([fresh[name]]), given([fresh[name]])
            condition, values = builder.find(part, known, len(first))
            yield f"UPDATE {table} SET {quoted(name)} = {place} WHERE {condition}", (*first, *values)


def _upserts(builder: ProbeBuilder, part: Part, known: Sample) -> Iterator[_Try]:
    """The row that is there once more, over each unique index that can be the arbiter."""
    insert = builder.insert(part, known)
    wanted = {Part.EFFECT: KEY, Part.NONCE: NONCE}.get(part)
    first = () if wanted is None else ((builder.policy.column(wanted),),)
    indexes = (tuple(unique.columns) for unique in builder.table(part).uniques if unique.total)
    for columns in dict.fromkeys((*first, *indexes)):
        if not set(columns) <= set(insert.values):
            continue
        names = ", ".join(map(quoted, columns))
        # One column beside the key: a guard may stand for the key alone.
        beside = (name for name in list(insert.values)[:1] if name not in columns)
        for changed in dict.fromkeys((columns[0], *beside)):
            change = f"{quoted(changed)} = excluded.{quoted(changed)}"
            yield insert.text(f" ON CONFLICT ({names}) DO UPDATE SET {change}"), insert.parameters


def _worst(
    builder: ProbeBuilder, name: str, session: Session, tries: tuple[_Try, ...], part: Part, first: Sample
) -> Probe:
    count = f"SELECT count(*) AS there, total_changes() AS done FROM {builder.into(part)}"
    attempt = builder.attempt(name)
    made: list[tuple[int, list[tuple[Statement, ProbeAnswer]]]] = []
    for text, parameters in tries:
        with rolled_back(session):
            replaces = builder.in_files and text.startswith(_REPLACE)
            counts = [session.send(count)] if replaces else []
            sent = [session.send(text, parameters)]
            counts += [session.send(count)] if replaces else []
            rows = [row for _, counted in counts for row in counted.rows]
            if len(rows) < len(counts):
                # Whether it took the place of a row is not known: the last answer, which shows nothing, says so.
                made.append((2, [*sent, next(each for each in counts if not each[1].rows)]))
                continue
            # A row that took the place of none was added, which is no change.
            added = not replaces or rows[1]["there"] == rows[0]["there"] + 1
            # A guard may be due only at the commit.
            if sent[0][1].sqlstate is None and not builder.in_files:
                late = session.send("SET CONSTRAINTS ALL IMMEDIATE")
                sent += [late] if late[1].sqlstate else []
            elif builder.in_files and sent[0][1].sqlstate is not None:
                # RAISE(FAIL) refuses and takes back nothing of what was done before it.
                statement, seen = session.send(*builder.intact(part, first))
                there = seen.rows[0]["there"] if seen.rows else 1
                replaced = not added and rows[1]["done"] != rows[0]["done"]
                sent += [(statement, structs.replace(seen, affected=1))] if there != 1 or replaced else []
            elif replaces and sent[0][1].affected and added:
                continue
        answer = sent[-1][1]
        made.append((_gravity(answer), sent))
        if answer.sqlstate is None and answer.affected:
            break
    # Each was alone in its transaction, so that the order means nothing, and sorting keeps it otherwise.
    for statement, answer in (each for _, sent in sorted(made, key=lambda entry: entry[0]) for each in sent):
        attempt.keep(statement, answer)
    return attempt.done()


def _gravity(answer: ProbeAnswer) -> int:
    """How much an answer weighs: refused by chance, refused for good, unknown, done to no row, done."""
    if answer.sqlstate is None:
        return 4 if answer.affected else 3
    return 2 if gone(answer) or answer.sqlstate in _UNKNOWN else 0 if answer.sqlstate in _BY_CHANCE else 1
