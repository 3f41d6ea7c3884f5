"""The judgement of a surface: a pure function of evidence and policy, so that a reader of a proof judges it again. With
it stand notes: what proves nothing and has to be said; they are printed with every judgement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from holdfast.conformance.fitness.criteria import atomic, binding, guards, keys, lasting
from holdfast.conformance.fitness.criteria.judging import Judging
from holdfast.conformance.fitness.criteria.lasting import JOBS
from holdfast.conformance.fitness.model import (
    Criterion,
    CriterionResult,
    Dialect,
    Evidence,
    EvidenceClass,
    FitnessJudgement,
    Part,
    status_of,
)
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres.catalogue import Catalogue, UnreadError, text_of
from holdfast.conformance.fitness.sqlite.catalogue import translated
from holdfast.reports.evidence import Redactor

_TRIED = (EvidenceClass.CATALOGUE, EvidenceClass.CLONE)
_GRANTED = (EvidenceClass.CATALOGUE, EvidenceClass.PRIVILEGES, EvidenceClass.CLONE)
# Each criterion with who judges it, and the classes of evidence without which it is not proven.
JUDGES: Mapping[Criterion, tuple[Callable[[Judging], None], tuple[EvidenceClass, ...]]] = {
    Criterion.SINGLE_USE: (keys.single_use, _TRIED),
    Criterion.NONCE: (keys.nonce, _TRIED),
    Criterion.BINDING: (binding.binding, _TRIED),
    Criterion.DOMAIN: (binding.domain, _TRIED),
    Criterion.ATOMIC: (atomic.atomic, (*_TRIED, EvidenceClass.CONCURRENCY)),
    Criterion.APPEND_ONLY: (guards.append_only, _GRANTED),
    Criterion.AUDIT: (lasting.audit, (*_GRANTED, EvidenceClass.CONCURRENCY)),
    Criterion.PRIOR_DECISION: (lasting.prior_decision, _GRANTED),
    Criterion.RETENTION: (lasting.retention, _TRIED),
}


def judge(evidence: Evidence, policy: Policy) -> FitnessJudgement:
    """Every criterion, in order, and what a reader must know besides. FIT only if all are proven."""
    in_files = evidence.snapshot.dialect is Dialect.SQLITE
    if in_files:
        evidence = translated(evidence)
    catalogue = Catalogue(evidence.snapshot)
    found: list[CriterionResult] = []
    for criterion, (inspect, needs) in JUDGES.items():
        judging = Judging(criterion, evidence, policy, catalogue, needs)
        judging.check(inspect)
        found.append(judging.finding())
    findings = tuple(found)
    said = notes_in_files(evidence) if in_files else notes(evidence, catalogue)
    return FitnessJudgement(status_of(findings), findings, tuple(said))


# Extensions that spread a table over several nodes, or over chunks.
_SPREADING = ("citus", "timescaledb", "bdr", "pglogical", "spock", "pgactive", "pg_partman")

_Look: TypeAlias = Callable[[Evidence, Catalogue], Iterator[str]]


def notes(evidence: Evidence, catalogue: Catalogue) -> tuple[str, ...]:
    """One sentence each."""
    found: list[str] = []
    looks: list[_Look] = [partial(_list, *each) for each in _LISTS]
    looks += [_server, _waiting, _administrators, _owners, _search_path, _spreading, _others, _jobs, _secrets]
    for inspect in looks:
        try:
            found += inspect(evidence, catalogue)
        except UnreadError as error:
            found.append(f"could not be read: {error}")
    return tuple(dict.fromkeys(found))


# What is told of the rows of a query: one sentence of all, with what of each. That there is none is told of extensions.
_LISTS = (
    ("prepared", "prepared transactions are pending: {}", "{gid}"),
    ("extensions", "extensions: {}", "{name} {version}"),
    ("publications", "{}: unique on each node only", "{schema}.{relation} is published by {publication}"),
    ("event_triggers", "event triggers: {}", "{name}"),
)


def _server(_evidence: Evidence, catalogue: Catalogue) -> Iterator[str]:
    rows = catalogue.rows("server")
    if len(rows) != 1:
        raise UnreadError("server", f"expected one row, got {len(rows)}")
    (row,) = rows
    yield f"PostgreSQL {row['version']}, database {row['database']}, read as {row['reader']}"
    if row["replica"]:
        yield "this server is a replica: settings of commit and what is prepared were read here, not on the primary"


def _waiting(_evidence: Evidence, catalogue: Catalogue) -> Iterator[str]:
    try:
        catalogue.rows("waiting")
    except UnreadError as error:
        yield f"whether the next reload switches fsync or a commit's waiting off was not looked at: {error}"


def _administrators(_evidence: Evidence, catalogue: Catalogue) -> Iterator[str]:
    rows = catalogue.rows("administrators")
    supers = [str(row["role"]) for row in rows if row["superuser"]]
    makers = [str(row["role"]) for row in rows if row["create_role"] and not row["superuser"]]
    yield f"superusers, whom nothing here binds: {', '.join(supers) or 'none'}"
    if makers:
        yield f"roles that may make roles, and before PostgreSQL 16 join any but superusers: {', '.join(makers)}"


def _owners(evidence: Evidence, catalogue: Catalogue) -> Iterator[str]:
    roles = catalogue.roles
    for part, name in evidence.surface.parts.items():
        row = catalogue.relation(name)
        if row is None:
            continue
        owner = str(row["owner"])
        others = [role for role in roles.names() if role != owner and owner in roles.powers(role)]
        also = f", and so can {', '.join(others)}" if others else ""
        yield f"{owner} owns {name} ({part.value}) and can drop its guards{also}"


def _search_path(evidence: Evidence, catalogue: Catalogue) -> Iterator[str]:
    writer = evidence.surface.writer
    rows = [row for row in catalogue.rows("role_settings") if row["name"] == "search_path"]
    paths = [f"{text_of(row['role'])}: {row['value']}" for row in rows if row["role"] in (writer, None)]
    yield (
        f"search_path of the writer: {'; '.join(paths) if paths else 'that of the server'}; name the relations with "
        "their schema, because a bare name can mean a temporary table"
    )
    temporary = [text_of(row["grantee"]) for row in catalogue.rows("database") if row["privilege"] == "TEMPORARY"]
    if temporary:
        yield f"temporary tables may be made by {', '.join(sorted(set(temporary)))}"


def _list(query: str, sentence: str, each: str, _evidence: Evidence, catalogue: Catalogue) -> Iterator[str]:
    if (rows := catalogue.rows(query)) or query == "extensions":
        yield sentence.format(", ".join(each.format(**row) for row in rows) or "none")


def _spreading(_evidence: Evidence, catalogue: Catalogue) -> Iterator[str]:
    names = [str(row["name"]) for row in catalogue.rows("extensions")]
    if spread := [name for name in names if name in _SPREADING]:
        yield f"{', '.join(spread)} may spread a table: a unique index holds on its own node and chunk only"


def _others(evidence: Evidence, catalogue: Catalogue) -> Iterator[str]:
    for row in catalogue.rows("commit"):
        if row["name"] == "synchronous_standby_names" and row["value"]:
            yield f"synchronous standbys: {row['value']}"
    surface = {str(name) for part, name in evidence.surface.parts.items() if part is not Part.AUDIT}
    for key in catalogue.rows("references"):
        if f"{key['schema']}.{key['relation']}" in surface:
            yield f"the foreign key {key['name']} is checked as the owner of {key['to_schema']}.{key['to_relation']}"


def _jobs(_evidence: Evidence, catalogue: Catalogue) -> Iterator[str]:
    for query in JOBS:
        if rows := catalogue.rows(query):
            yield f"{len(rows)} jobs are there ({query}); a function that they call by way of another is not followed"
    if all(row["name"] != "pg_cron" for row in catalogue.rows("extensions")):
        # It has one database for the jobs of all (cron.database_name), by default that of the administrator.
        yield "jobs that another database of this server keeps for this one, as pg_cron may, were not looked at"


def _secrets(_evidence: Evidence, catalogue: Catalogue) -> Iterator[str]:
    """The text itself is not repeated: notes are read by more people than proofs."""
    rows = (*catalogue.rows("functions"), *catalogue.rows("mentions"))
    for row in rows:
        text = str(row["definition"] or "")
        if Redactor().free(text) != text:
            yield (
                f"the text of the function {row['schema']}.{row['name']} holds something like a password or a token, "
                "and stands in the proof: take it out of there"
            )


def notes_in_files(evidence: Evidence) -> Iterator[str]:
    """What proves nothing, but the reader must know. From the evidence alone, so that every reader has the same."""
    described = evidence.snapshot.circumstances
    yield f"read and probed with SQLite {described['version']}; the registrar's own library may be another one"
    yield (
        "SQLite has no roles: a user who may write the file can drop its guards, switch checks off "
        "(ignore_check_constraints, writable_schema) or write its pages; give the registrar an account of its own"
    )
    for row in described.get("broken", ()):
        yield (
            f"{row['file']}: the view {row['view']} is broken ({row['error']}): it was left out, and everything else "
            "was judged; drop it or make it anew"
        )
    for name, file in sorted(described["files"].items()):
        mode = evidence.snapshot.structure[f"{name}.journal"][0]["mode"]
        yield f"{name}: {file} on {described['filesystems'][name] or 'an unknown file system'}, journal: {mode}"
    yield "temporary triggers and views, and programs that delete, are in no file: nothing is known of them"
