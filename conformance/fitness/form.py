"""The words of a proof as JSON, and back. What comes back is equal to what went, so that it can be judged again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.conformance.fitness.model import (
    Answer,
    Candidate,
    Criterion,
    Dialect,
    Evidence,
    EvidenceClass,
    Finding,
    Judgement,
    Part,
    Probe,
    Reason,
    RelationName,
    Row,
    Snapshot,
    Standing,
    Statement,
    Status,
    Surface,
)


def plain(value: Any) -> Any:
    """A value with lists and dicts for whatever sequences and mappings it holds."""
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return value


def relation_json(relation: RelationName) -> dict[str, str]:
    """One relation."""
    return {"schema": relation.schema, "name": relation.name}


def surface_json(surface: Surface) -> dict[str, Any]:
    """The surface, its parts by their names."""
    parts = {part.value: relation_json(relation) for part, relation in surface.parts.items()}
    return {"name": surface.name, "parts": parts, "writer": surface.writer}


def snapshot_json(snapshot: Snapshot) -> dict[str, Any]:
    """What the catalogue said."""
    return {
        "dialect": snapshot.dialect.value,
        "structure": plain(snapshot.structure),
        "circumstances": plain(snapshot.circumstances),
    }


def probe_json(probe: Probe) -> dict[str, Any]:
    """One probe: statements, and as many answers as there were."""
    return {
        "name": probe.name,
        "evidence": probe.evidence.value,
        "statements": [
            {"session": s.session, "role": s.role, "sql": s.sql, "parameters": plain(s.parameters)}
            for s in probe.statements
        ],
        "answers": [
            {
                "sqlstate": a.sqlstate,
                "message": a.message,
                "affected": a.affected,
                "rows": plain(a.rows),
                "constraint": a.constraint,
            }
            for a in probe.answers
        ],
        "failed": probe.failed,
    }


def evidence_json(evidence: Evidence) -> dict[str, Any]:
    """Evidence without its surface, which stands beside it."""
    return {
        "snapshot": snapshot_json(evidence.snapshot),
        "probes": [probe_json(probe) for probe in evidence.probes],
        "lost": {each.value: why for each, why in evidence.lost.items()},
    }


def reason_json(reason: Reason) -> dict[str, Any]:
    """One reason."""
    return {
        "criterion": reason.criterion.value,
        "standing": reason.standing.value,
        "code": reason.code,
        "text": reason.text,
        "part": None if reason.part is None else reason.part.value,
        "rows": plain(reason.rows),
        "probes": list(reason.probes),
    }


def judgement_json(judgement: Judgement) -> dict[str, Any]:
    """What the evidence amounts to."""
    return {
        "status": judgement.status.value,
        "findings": [
            {
                "criterion": finding.criterion.value,
                "standing": finding.standing.value,
                "reasons": [reason_json(reason) for reason in finding.reasons],
                "rows": plain(finding.rows),
                "probes": list(finding.probes),
            }
            for finding in judgement.findings
        ],
        "notes": list(judgement.notes),
    }


def candidate_json(candidate: Candidate) -> dict[str, Any]:
    """A relation that was looked at, and why it is none."""
    return {
        "relation": relation_json(candidate.relation),
        "part": candidate.part.value,
        "reasons": [reason_json(reason) for reason in candidate.reasons],
    }


def _relation(data: Mapping[str, str]) -> RelationName:
    return RelationName(data["schema"], data["name"])


def _rows(data: Sequence[Row]) -> tuple[Row, ...]:
    return tuple(data)


def surface_of(data: Mapping[str, Any]) -> Surface:
    """The surface of a proof that fits its schema."""
    parts = {Part(name): _relation(each) for name, each in data["parts"].items()}
    return Surface(data["name"], parts, data["writer"])


def _probe(data: Mapping[str, Any]) -> Probe:
    return Probe(
        data["name"],
        EvidenceClass(data["evidence"]),
        tuple(Statement(s["session"], s["role"], s["sql"], tuple(s["parameters"])) for s in data["statements"]),
        tuple(
            Answer(a["sqlstate"], a["message"], a["affected"], _rows(a["rows"]), a["constraint"])
            for a in data["answers"]
        ),
        data["failed"],
    )


def evidence_of(data: Mapping[str, Any], surface: Surface) -> Evidence:
    """The evidence of a proof that fits its schema."""
    shot = data["snapshot"]
    structure = {name: _rows(rows) for name, rows in shot["structure"].items()}
    return Evidence(
        surface,
        Snapshot(Dialect(shot["dialect"]), structure, shot["circumstances"]),
        tuple(map(_probe, data["probes"])),
        {EvidenceClass(name): why for name, why in data["lost"].items()},
    )


def _reason(data: Mapping[str, Any]) -> Reason:
    part = data["part"]
    return Reason(
        Criterion(data["criterion"]),
        Standing(data["standing"]),
        data["code"],
        data["text"],
        None if part is None else Part(part),
        _rows(data["rows"]),
        tuple(data["probes"]),
    )


def judgement_of(data: Mapping[str, Any]) -> Judgement:
    """The judgement of a proof that fits its schema."""
    findings = tuple(
        Finding(
            Criterion(each["criterion"]),
            Standing(each["standing"]),
            tuple(map(_reason, each["reasons"])),
            _rows(each["rows"]),
            tuple(each["probes"]),
        )
        for each in data["findings"]
    )
    return Judgement(Status(data["status"]), findings, tuple(data["notes"]))


def candidate_of(data: Mapping[str, Any]) -> Candidate:
    """A candidate of a proof that fits its schema."""
    return Candidate(_relation(data["relation"]), Part(data["part"]), tuple(map(_reason, data["reasons"])))
