"""`run.jsonl`: the only source of truth about a run (docs/evidence.md)."""

from holdfast.reports.evidence.errors import EvidenceError
from holdfast.reports.evidence.identity import Artefact, Artefacts, NotHashed, SeedOrigin, Source, seed_of_nonce
from holdfast.reports.evidence.model import (
    AdapterIdentity,
    Claimed,
    ContractPin,
    Counterexample,
    Event,
    Exchange,
    Footer,
    Header,
    Implementation,
    KitIdentity,
    Line,
    Log,
    Relation,
    Restart,
    SdkAnswer,
    SdkIdentity,
    Selection,
    SurfaceLine,
    TableRow,
    Vectors,
    VerdictLine,
)
from holdfast.reports.evidence.place import Place
from holdfast.reports.evidence.reader import read_evidence
from holdfast.reports.evidence.redact import MARK, Redactor
from holdfast.reports.evidence.run import Defect, DefectKind, Run
from holdfast.reports.evidence.writer import EvidenceWriter

__all__ = [
    "MARK",
    "AdapterIdentity",
    "Artefact",
    "Artefacts",
    "Claimed",
    "ContractPin",
    "Counterexample",
    "Defect",
    "DefectKind",
    "Event",
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
    "Relation",
    "Restart",
    "Run",
    "SdkAnswer",
    "SdkIdentity",
    "SeedOrigin",
    "Selection",
    "Source",
    "SurfaceLine",
    "TableRow",
    "Vectors",
    "VerdictLine",
    "read_evidence",
    "seed_of_nonce",
]
