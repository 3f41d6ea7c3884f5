"""The question to the gate, its answer, and every reason that it can give."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, unique
from typing import Literal

from holdfast.conformance.run.plan import PlannedCase
from holdfast.conformance.verdict import Exit
from holdfast.specs import Contract
from holdfast.specs.typed import Form


@unique
class Extent(Enum):
    """How much of a contract is required: all of it, or without the cases that need provocations; or its documents."""

    FULL = "full"
    CORE = "core"
    VECTORS = "vectors"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One `--require`: an installed contract, and how much of it. `roles` is None for all of its roles.

    `profile` is that of documents.
    """

    contract: Contract
    extent: Extent
    roles: frozenset[str] | None = None
    profile: str | None = None

    @property
    def name(self) -> str:
        """The requirement in the form of the command line."""
        if self.extent is Extent.VECTORS:
            return f"{self.contract.name}/vectors/{self.profile}"
        roles = "" if self.roles is None else f"/{'+'.join(sorted(self.roles))}"
        return self.contract.name + roles + ("/core" if self.extent is Extent.CORE else "")

    def leaves_out(self, case: PlannedCase) -> bool:
        """Whether this case may be missing or unproven."""
        return (self.extent is Extent.CORE and bool(case.provocations)) or self.is_of_others(case)

    def is_of_others(self, case: PlannedCase) -> bool:
        """Whether the case is of roles that are not required: it may do anything but fail open."""
        return self.roles is not None and not self.contract.roles_of(case.clauses, case.roles) <= self.roles


@dataclass(frozen=True, slots=True)
class FitnessProof:
    """A fitness file and its required subject: the live effect relation, and the server and database it lies in.

    `server` is None if the caller did not say, which holds the gate. `challenge` is what the caller gave to
    `holdfast fitness --challenge`, None if it asks for none.
    """

    path: str
    surface: str
    server: str | None = None
    challenge: str | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """What the caller knows of the run and asks for; None asks for nothing. `not_before` is aware.

    `allow_seed` takes a run whose seed was chosen, `allow_excused` one with MUSTs that fail and are excused. A run of
    documents has at least `rows` generated ones.
    """

    adapter_digest: str | None = None
    commit: str | None = None
    nonce: str | None = None
    not_before: datetime | None = None
    allow_seed: bool = False
    allow_excused: bool = False
    same_libraries: bool = False
    rows: int = 100_000


@unique
class ReasonCode(Enum):
    """Why the gate is held."""

    # the file
    DAMAGED = "damaged"
    CUT_OFF = "cut_off"
    OLDER_RUN = "older_run"
    UNFINISHED_RUN = "unfinished_run"
    UNKNOWN_VERDICT = "unknown_verdict"
    # the run
    OTHER_KIT = "other_kit"
    OTHER_CONTRACT = "other_contract"
    NOT_IN_RUN = "not_in_run"
    NOT_CLAIMED = "not_claimed"
    OTHER_PLAN = "other_plan"
    NARROWED = "narrowed"
    OTHER_ADAPTER = "other_adapter"
    ADAPTER_CHANGED = "adapter_changed"
    OTHER_COMMIT = "other_commit"
    OTHER_NONCE = "other_nonce"
    SEED_CHOSEN = "seed_chosen"
    TOO_EARLY = "too_early"
    STALE = "stale"
    FUTURE = "future"
    ADAPTER_FAILED = "adapter_failed"
    EXPECTATIONS_STALE = "expectations_stale"
    # its cases
    ZERO_CASES = "zero_cases"
    MISSING_RESULTS = "missing_results"
    EXTRA_RESULTS = "extra_results"
    JUDGED_OTHERWISE = "judged_otherwise"
    KIT_FAULT = "kit_fault"
    FAIL_OPEN = "fail_open"
    EXCUSED_FAIL_OPEN = "excused_fail_open"
    NOT_PROVEN = "not_proven"
    NON_CONFORMING = "non_conforming"
    EXCUSED = "excused"
    # what no run can show, and what was true before
    CLAUSES_UNCOVERED = "clauses_uncovered"
    FITNESS_MISSING = "fitness_missing"
    FITNESS_UNVERIFIED = "fitness_unverified"
    FITNESS_UNTIED = "fitness_untied"
    FITNESS_DEPARTS = "fitness_departs"
    BASELINE_UNUSABLE = "baseline_unusable"
    CLAIM_DROPPED = "claim_dropped"
    NOTHING_REQUIRED = "nothing_required"


class GateReason(Form, frozen=True):
    """One reason to hold: the exit status it calls for, and the cases it speaks of, if it speaks of cases."""

    code: ReasonCode
    text: str
    exit: Exit
    cases: tuple[str, ...] = ()


def held(code: ReasonCode, text: str, cases: tuple[str, ...] = ()) -> GateReason:
    """A reason to hold because something is not proven."""
    return GateReason(code, text, Exit.INCOMPLETE, cases)


@dataclass(frozen=True, slots=True)
class Findings:
    """What holds the gate, what its reader must know, and the cases that a requirement does not ask for."""

    reasons: tuple[GateReason, ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...] = ()


class GateDecision(Form, frozen=True):
    """The answer. `notes` hold nothing but must be seen; `left_out` are cases that `/core` does not ask for;
    `not_asked` are checks that an option would have made.

    Its members are those of gate.schema.json.
    """

    can_proceed: Literal["YES", "NO"]
    exit: Exit
    reasons: tuple[GateReason, ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]
    not_asked: tuple[str, ...] = ()


# How many ids or findings make a reason clear; the JSON form lists all ids.
_SHOWN = 3


def some_of(names: tuple[str, ...] | list[str]) -> str:
    """The first of `names` and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
