"""`run.jsonl`: the only source of truth about a run (docs/evidence.md)."""

from reports.evidence.errors import EvidenceError
from reports.evidence.model import (
    AdapterIdentity,
    Claimed,
    ContractPin,
    Defect,
    DefectKind,
    Exchange,
    Footer,
    Header,
    Implementation,
    KitIdentity,
    Line,
    Log,
    Restart,
    Run,
    Selection,
    Vectors,
    VerdictLine,
)
from reports.evidence.place import Place
from reports.evidence.reader import read_evidence
from reports.evidence.redact import MARK, Redactor
from reports.evidence.writer import EvidenceWriter

__all__ = [
    "MARK",
    "AdapterIdentity",
    "Claimed",
    "ContractPin",
    "Defect",
    "DefectKind",
    "EvidenceError",
    "EvidenceWriter",
    "Exchange",
    "Footer",
    "Header",
    "Implementation",
    "KitIdentity",
    "Line",
    "Log",
    "Place",
    "Redactor",
    "Restart",
    "Run",
    "Selection",
    "Vectors",
    "VerdictLine",
    "read_evidence",
]
