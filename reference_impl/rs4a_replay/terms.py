"""The vocabulary of the contract in Python: names only, checked against the contract; every value lives there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, unique

from holdfast.reference_impl.terms import reasons

CONTRACT = "rs4a-replay"
Reason = reasons(CONTRACT)
# The relations of this registrar, by their role in a proof of fitness.
PARTS = {"effect": "registration", "nonce": "nonce_consume", "audit": "audit"}


@unique
class Operation(Enum):
    """The methods that the registrar judges, as audit records name them."""

    ISSUE_NONCE = "issue_nonce"
    REGISTER = "register"
    RESOLVE_STATUS = "resolve_status"
    COMPENSATE = "compensate"
    MAINTAIN = "maintain"


@unique
class DecisionState(Enum):
    """COMMITTED is S2; FAILED and COMPENSATED are S3."""

    COMMITTED = "COMMITTED"
    FAILED = "FAILED"
    COMPENSATED = "COMPENSATED"


@unique
class NonceState(Enum):
    """Where one nonce stands; the transition issued to consumed is one way."""

    UNKNOWN = "unknown"
    ISSUED = "issued"
    CONSUMED = "consumed"


@unique
class Purpose(Enum):
    """What a nonce was consumed for."""

    REGISTRATION = "registration"
    COMPENSATION = "compensation"


@unique
class CommitStatus(Enum):
    """The outcome of a logical request; also the audit code of a resolved commit."""

    COMMITTED = "COMMITTED"
    NOT_COMMITTED = "NOT_COMMITTED"


@unique
class SurfaceState(Enum):
    """The state of the configured surface. PRESENT_UNPROVEN is the best that a registrar can report of its own."""

    ABSENT = "ABSENT"
    UNKNOWN = "UNKNOWN"
    NOT_FIT = "NOT_FIT"
    PRESENT_UNPROVEN = "PRESENT_UNPROVEN"


# Source, header and section 7: the registrar itself never opens the gate.
CAN_PROCEED = "NO"
GATE = "REGISTRATION_HOLD"
DOMAIN = "REPLAY_DOMAIN_FAIL_CLOSED"
FITNESS_UNPROVEN = "REPLAY_SURFACE_FITNESS_UNPROVEN"


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission in its normal form: hashes in lower case, target normalised. Read by `reading.Reader` only."""

    protocol_version: str
    operation: str
    canonical_target: str
    owner_or_approval_binding: str
    principal: str
    run_id: str
    deployed_artifact_hash: str
    claimed_artifact_hash: str | None
    attested_artifact_hash: str
    authorization_nonce: str
    attempt_id: str
    issued_at: datetime


@dataclass(frozen=True, slots=True)
class DerivedKeys:
    """The two keys of a submission, SHA-256 in lower-case hexadecimal."""

    logical_request_key: str
    replay_key: str


@dataclass(frozen=True, slots=True)
class Identities:
    """The identities of a request that an audit record names; none of them of a request that cannot be read."""

    logical_request_key: str | None = None
    authorization_nonce: str | None = None
    attempt_id: str | None = None
