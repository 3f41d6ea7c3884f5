"""Cases of the ledger contract, run on its adapter; the gate's judge comes to the same result for each."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from holdfast.conformance.cases.record import CaseResult
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.judge import judge_case
from holdfast.conformance.run.settings import RunSettings
from holdfast.specs import Case, Contract
from holdfast.specs.loader import read_contract
from holdfast.specs.model import CaseKind
from tests.hostile.verify import temp_folder

FOLDER = Path(__file__).resolve().parent.parent / "ledger"
LEDGER = read_contract(FOLDER / "ledger")
ONCE = LEDGER.cases[0]
SEED = "looked"

Step = Mapping[str, Any]


def case_of(*steps: Step, kind: CaseKind = CaseKind.BEHAVIOUR, **changes: Any) -> Case:
    """A case of these steps."""
    return replace(ONCE, **{"kind": kind, "given": (), "when": steps, "then": (), "twin": None, **changes})


def ran(*cases: Case, flaw: str = "", seed: str = SEED, contract: Contract = LEDGER) -> Iterator[CaseResult]:
    """What the adapter with that flaw shows, held to the contract or to a variant of it."""
    with temp_folder() as folder:
        settings = RunSettings(
            (sys.executable, str(FOLDER / "adapter.py"), flaw), ("ledger",), seed=seed, workdir=str(folder)
        )
        with Engine(settings) as engine:
            for case in cases:
                result = engine.run_case(contract, case)
                assert judge_case(contract, case, result.main, result.twin, seed=seed) == result.judgement
                yield result


def verdict(*steps: Step, flaw: str = "", **changes: Any) -> tuple[str, str]:
    """The verdict of a case of these steps, and its detail."""
    (result,) = ran(case_of(*steps, **changes), flaw=flaw)
    return result.judgement.verdict.value, result.judgement.detail
