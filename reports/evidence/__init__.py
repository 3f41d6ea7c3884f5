"""`run.jsonl`: the only source of truth about a run (docs/evidence.md)."""

from holdfast.reports.evidence.errors import EvidenceError
from holdfast.reports.evidence.identity import Artefact, Artefacts, NotHashed, SeedOrigin, Source, seed_of_nonce
from holdfast.reports.evidence.model import (
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
from holdfast.reports.evidence.place import Place
from holdfast.reports.evidence.reader import read_evidence
from holdfast.reports.evidence.redact import MARK, Redactor
from holdfast.reports.evidence.surface import SurfaceLine
from holdfast.reports.evidence.writer import EvidenceWriter

__all__ = [
    "MARK",
    "AdapterIdentity",
    "Artefact",
    "Artefacts",
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
    "NotHashed",
    "Place",
    "Redactor",
    "Restart",
    "Run",
    "SeedOrigin",
    "Selection",
    "Source",
    "SurfaceLine",
    "Vectors",
    "VerdictLine",
    "read_evidence",
    "seed_of_nonce",
]
