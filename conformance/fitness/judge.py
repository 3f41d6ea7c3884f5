"""The judgement of a surface: a pure function of evidence and policy, so that a reader of a proof judges it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.conformance.fitness import sqlite
from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria import atomic, audit, binding, guards, keys, lasting, notes, triggers
from holdfast.conformance.fitness.criteria.judging import Judging
from holdfast.conformance.fitness.criteria.owners import acts_as, owned
from holdfast.conformance.fitness.criteria.tables import OFF, apart, reviewed
from holdfast.conformance.fitness.model import (
    Criterion,
    CriterionResult,
    Dialect,
    Evidence,
    EvidenceClass,
    FitnessJudgement,
    Part,
    Row,
    status_of,
)
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.postgres.catalogue import Catalogue, name_of, text_of

# The ways past guards and grants that no grant on the relation shows: ownership, rules elsewhere, code that runs with
# another role's rights under any text, and what writes to the files of the server.


def append_only(judging: Judging) -> None:
    """(f)"""
    guards.append_only(judging)
    for part in apart(judging):
        judging.check(lambda on, part=part: owned(on, part))  # type: ignore[misc]
    judging.check(_rules_elsewhere)
    judging.check(_definers)
    judging.check(_beyond_grants)
    judging.check(_file_functions)


def _rules_elsewhere(judging: Judging) -> None:
    for row in judging.catalogue.rows("rules_elsewhere"):
        if row["enabled"] == OFF or reviewed(judging, name_of(row), row):
            continue
        text = (
            f"the rule {row['name']} of {str(row['event']).upper()} on {name_of(row)} speaks of the surface, and does "
            f"what it does as {row['owner']}; drop it, or name it in a policy as reviewed"
        )
        judging.unproven(Code.RULE_UNREVIEWED, text, rows=[row])


def _definers(judging: Judging) -> None:
    """A function with the rights of a role that may write can reach the surface without naming it."""
    described = {_key(row) for row in judging.catalogue.rows("mentions")}
    able, owners = _able(judging), _owners(judging)
    for row in judging.catalogue.rows("definers"):
        # Those whose text names the surface are judged by that.
        if _key(row) in described or _known(judging, row) or not _may_write(judging, row, able):
            continue
        others = [
            text_of(each)
            for each in row["executors"]
            if each is None or (each != row["owner"] and not acts_as(judging, str(each), owners))
        ]
        _doubt(judging, row, others)


def _beyond_grants(judging: Judging) -> None:
    """A role with access to the files of the server can write the table's own; the writer's case is reported before."""
    roles, writer, owners = judging.catalogue.roles, judging.evidence.surface.writer, _owners(judging)
    for beyond in guards.BEYOND_GRANTS:
        for role in guards.holders(roles, beyond):
            if role in (beyond, writer) or acts_as(judging, role, owners):
                continue
            rows = [row for row in roles.memberships if row["role"] == beyond]
            text = f"{role} belongs to {beyond}, which goes past every grant; revoke it"
            judging.unproven(Code.OTHERS_MAY_WRITE, text, rows=rows)


def _file_functions(judging: Judging) -> None:
    roles, writer = judging.catalogue.roles, judging.evidence.surface.writer
    powers = frozenset[str]() if writer is None else roles.powers(writer)
    for row in judging.catalogue.rows("file_functions"):
        grantee = row["grantee"]
        if grantee is not None and acts_as(judging, str(grantee), _owners(judging)):
            continue
        function = f"{row['schema']}.{row['name']}({row['arguments']})"
        text = (
            f"{text_of(grantee)} may call {function}, which writes past every grant, into the table's own file as well;"
            f" REVOKE EXECUTE ON FUNCTION {function} FROM {text_of(grantee)}"
        )
        code = Code.WRITER_PRIVILEGES if grantee in powers else Code.OTHERS_MAY_WRITE
        judging.unproven(code, text, rows=[row])


def _doubt(judging: Judging, row: Row, others: list[str]) -> None:
    ways = [f"{', '.join(others)} may {'put it on a relation' if row['trigger'] else 'call it'}"] if others else []
    ways += [f"it is run by triggers of {', '.join(row['attached'])}"] if row["attached"] else []
    if ways:
        text = (
            f"the function {row['schema']}.{row['name']} runs as {row['owner']}, who may write to the surface, and "
            f"{' and '.join(ways)}: what it does is not shown by its text; REVOKE EXECUTE … FROM PUBLIC, give it "
            "another owner, or name it in a policy as reviewed"
        )
        judging.unproven(Code.DEFINER_FUNCTION, text, rows=[row])


def _key(row: Row) -> tuple[str, str, str]:
    return str(row["schema"]), str(row["name"]), str(row["arguments"])


def _known(judging: Judging, row: Row) -> bool:
    """Whether a policy vouches for it, or for what it does to the surface as a trigger; or whether it only raises."""
    function = f"{row['schema']}.{row['name']}"
    if {str(row["name"]), function} & set(judging.policy.reviewed):
        return True
    if not row["trigger"]:
        return False
    own = [
        each for each in judging.catalogue.rows("triggers") if each["function"] == function and each["enabled"] != OFF
    ]
    return triggers.plain(str(row["definition"])) or any(reviewed(judging, name_of(each), each) for each in own)


def _may_write(judging: Judging, row: Row, able: frozenset[str]) -> bool:
    roles, owner = judging.catalogue.roles, str(row["owner"])
    return bool(row["superuser"]) or roles.unbound(owner) or bool(able & roles.powers(owner))


def _able(judging: Judging) -> frozenset[str]:
    """All roles that own something of the surface, write to it, or write everywhere."""
    writer, audit = judging.evidence.surface.writer, judging.part(Part.AUDIT)
    owners = (row["owner"] for query in ("relations", "owners", "database") for row in judging.catalogue.rows(query))
    grantees = (
        each["grantee"]
        for each in judging.catalogue.rows("grants")
        if each["privilege"] in (*guards.WRITES, "CREATE")
        and each["grantee"] is not None
        # Another role that appends to the audit does no harm.
        and (each["privilege"] != "INSERT" or name_of(each) != audit)
    )
    everywhere = (*guards.WRITE_EVERYWHERE, *guards.BEYOND_GRANTS)
    return frozenset(map(str, (*owners, *grantees, *everywhere, *(() if writer is None else (writer,)))))


def _owners(judging: Judging) -> frozenset[str]:
    """Of what is consumed: what others can do as them they can do themselves."""
    rows = (
        judging.catalogue.relation(name) for part, name in judging.evidence.surface.parts.items() if part != Part.AUDIT
    )
    return frozenset(str(row["owner"]) for row in rows if row is not None)


_TRIED = (EvidenceClass.CATALOGUE, EvidenceClass.CLONE)
# Each criterion with who judges it, and the classes of evidence without which it is not proven.
_JUDGES: Mapping[Criterion, tuple[Callable[[Judging], None], tuple[EvidenceClass, ...]]] = {
    Criterion.SINGLE_USE: (keys.single_use, _TRIED),
    Criterion.NONCE: (keys.nonce, _TRIED),
    Criterion.BINDING: (binding.binding, _TRIED),
    Criterion.DOMAIN: (binding.domain, _TRIED),
    Criterion.ATOMIC: (atomic.atomic, atomic.NEEDS),
    Criterion.APPEND_ONLY: (append_only, guards.NEEDS),
    Criterion.AUDIT: (audit.audit, audit.NEEDS),
    Criterion.PRIOR_DECISION: (lasting.prior_decision, lasting.NEEDS_DECISION),
    Criterion.RETENTION: (lasting.retention, lasting.NEEDS_RETENTION),
}


def judge(evidence: Evidence, policy: Policy) -> FitnessJudgement:
    """Every criterion, in order, and what a reader must know besides. FIT only if all are proven."""
    if evidence.snapshot.dialect is Dialect.SQLITE:
        findings = sqlite.findings(evidence, policy)
        return FitnessJudgement(status_of(findings), findings, sqlite.notes(evidence))
    catalogue = Catalogue(evidence.snapshot)
    findings = tuple(_finding(criterion, evidence, policy, catalogue) for criterion in Criterion)
    return FitnessJudgement(status_of(findings), findings, notes.notes(evidence, catalogue))


def _finding(criterion: Criterion, evidence: Evidence, policy: Policy, catalogue: Catalogue) -> CriterionResult:
    inspect, needs = _JUDGES[criterion]
    judging = Judging(criterion, evidence, policy, catalogue, needs)
    judging.check(inspect)
    return judging.finding()
