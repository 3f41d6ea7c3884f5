"""Attempts to change or remove stored rows, in every way that SQLite has."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.conformance.fitness.model import Part, Probe
from holdfast.conformance.fitness.sqlite.bench import BEGIN, ProbeRunner, Subject, all_there, inspect, made, row_of
from holdfast.conformance.fitness.sqlite.rows import Blob, Sql, Value, Values, insert, quoted, same, without
from holdfast.conformance.fitness.sqlite.session import Transcript, refused

SUFFIX = {Part.EFFECT: "", Part.NONCE: "-nonce", Part.AUDIT: "-audit"}


def tampering(bench: ProbeRunner, subject: Subject) -> Iterator[Probe]:
    """The probes of one relation."""
    suffix, name = SUFFIX[subject.which], quoted(subject.relation.name)
    other = subject.row_builder.row(bench.words.fresh())
    condition, parameters = same(subject.first)
    yield _tried(bench, f"writer-update{suffix}", subject, list(_updates(subject, other)))
    yield _tried(bench, f"writer-delete{suffix}", subject, [Sql(f"DELETE FROM {name} WHERE {condition}", parameters)])
    yield _tried(bench, f"writer-truncate{suffix}", subject, [Sql(f"DELETE FROM {name}")])
    keys = list(_unique_columns(subject))
    if keys:
        taken = {column for key in keys for column in key}
        fresh = {column: value for column, value in other.items() if column not in taken}
        changed = ", ".join(f"{quoted(column)} = excluded.{quoted(column)}" for column in fresh or other)
        row = {**subject.first, **fresh}
        upsert = insert(subject.relation.name, row, behind=f" ON CONFLICT DO UPDATE SET {changed}")
        yield _tried(bench, f"writer-upsert{suffix}", subject, [upsert])
    replaces = list(_replaces(subject, keys, other))
    if replaces:
        yield _tried(bench, f"writer-replace{suffix}", subject, replaces)


def _updates(subject: Subject, other: Values) -> Iterator[Sql]:
    """Each column by itself, with a value that only a guard can refuse: a trigger may check some columns only."""
    condition, parameters = same(subject.first)
    for column, value in other.items():
        place, given = (f"x'{value.hex}'", ()) if isinstance(value, Blob) else ("?", (value,))
        sql = f"UPDATE {quoted(subject.relation.name)} SET {quoted(column)} = {place} WHERE {condition}"
        yield Sql(sql, (*given, *parameters))


def _replaces(subject: Subject, keys: list[tuple[str, ...]], other: dict[str, Value]) -> Iterator[Sql]:
    """REPLACE of the stored row by each of its unique keys, and by its rowid."""
    relation = subject.relation
    for key in keys:
        row = {**other, **{name: subject.first[name] for name in key}}
        yield insert(relation.name, row, verb="INSERT OR REPLACE")
    if relation.is_table and not relation.without_rowid and "rowid" not in relation.columns:
        condition, parameters = same(subject.first)
        # A column that is the rowid under another name would have the last word.
        rest = without(other, *(name for name, column in relation.columns.items() if relation.is_rowid(column)))
        plain = insert(relation.name, rest, verb="INSERT OR REPLACE")
        text = plain.text.replace("(", "(rowid, ", 1)
        place = text.index("VALUES (") + len("VALUES (")
        rowid = f"(SELECT rowid FROM {quoted(relation.name)} WHERE {condition}), "
        yield Sql(text[:place] + rowid + text[place:], (*parameters, *plain.parameters))


def _unique_columns(subject: Subject) -> Iterator[tuple[str, ...]]:
    """The columns of each unique index, those of which the stored row has values for all."""
    for index in subject.relation.indexes:
        names = tuple(name for name in index.columns if name is not None and name in subject.first)
        if index.unique and len(names) == len(index.columns):
            yield names


def _tried(bench: ProbeRunner, name: str, subject: Subject, changes: list[Sql]) -> Probe:
    """Try one after the other until one does harm; the last two answers are that one's, or the last one's.

    An upsert or REPLACE that runs into nothing adds a row, which does no harm to the stored one.
    """
    transcript = Transcript()
    adds = "upsert" in name or "replace" in name
    if subject.problem:
        return made(name, transcript, failed=subject.problem)
    for change in changes:
        with bench.session(place=bench.place(subject)) as session:
            transcript.run(session, BEGIN)
            answer = transcript.run(session, change)
            observed = transcript.run(session, inspect({"first": row_of(subject)}))
            session.end()
        if not all_there(observed) or not (refused(answer) or adds):
            break
    return made(name, transcript)
