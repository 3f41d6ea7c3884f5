"""Real runs of the toy contract without any process: a shelf in memory, the kit's own interpreter, judge and writer.

And a forger, who edits the lines of a run and computes the whole chain anew.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from holdfast.conformance.cases.record import CaseResult, Judgement, Record, Side
from holdfast.conformance.gate.decision import Extent, GateDecision, Requirement, decide
from holdfast.conformance.run.judge import judge_case
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.run.recorder import Recorder
from holdfast.conformance.verdict import Verdict, can_be_excused, exit_of, gravest_finding, worst
from holdfast.reports.evidence import (
    AdapterIdentity,
    Artefact,
    Artefacts,
    Claimed,
    ContractPin,
    Header,
    Implementation,
    KitIdentity,
    SeedOrigin,
    Selection,
    Source,
    read_evidence,
    seed_of_nonce,
)
from holdfast.specs import Case, Contract
from holdfast.specs.loader import read_contract
from tests.forger import resealed
from tests.gate.alterations import in_line
from tests.harness.play import Player, Shelf

TOY = Path(__file__).parents[1] / "toycontract"
NONCE = "ticket 17"
SEED = seed_of_nonce(NONCE)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
STARTED = NOW - timedelta(hours=1)
KIT = KitIdentity("holdfast", "0.1.0", "sha256:" + "c" * 64)

ARTEFACTS = Artefacts.of([Artefact("shelf", "f" * 64, Source.COMMAND)])

Json = dict[str, Any]
Lines = list[Json]
Edit = Callable[[Lines], Lines | None]


def play(contract: Contract, case: Case, side: Side, flaw: str | None) -> tuple[Record, ...]:
    """Drive one side of a case against a fresh shelf."""
    player = Player(contract=contract, seed=SEED, shelf=Shelf(flaw))
    player.play(case, side)
    return tuple(player.records)


@dataclass(frozen=True)
class Bench:
    """Makes runs and decides on them."""

    contract: Contract
    folder: Path

    def header(self) -> Header:
        """An ordinary header."""
        contract = self.contract
        claims = (Claimed(contract.name, contract.version, {}),)
        return Header(
            kit=KIT,
            contracts=(ContractPin(contract.name, contract.version, contract.digest, contract.cases_digest),),
            adapter=AdapterIdentity(("shelf",), None, Implementation("shelf", "1.0.0", "python"), claims),
            environment={},
            config={},
            seed=SEED,
            seed_origin=SeedOrigin.NONCE,
            nonce=NONCE,
            deadlines={"op": 2.0},
            started=STARTED,
            plan=tuple(case.id for case in plan_of(contract)),
            selection=Selection((contract.name,), None),
        )

    def run(
        self,
        *,
        flaw: str | None = None,
        excused: Mapping[str, str] | None = None,
        forced: Mapping[str, Verdict] | None = None,
        name: str = "run.jsonl",
        finished: datetime = STARTED + timedelta(minutes=1),
        artefacts: Artefacts = ARTEFACTS,
        **changes: Any,
    ) -> Path:
        """Write a run of every case. `changes` are to the header; `forced` cases end so without an exchange."""
        path, excused, forced = self.folder / name, excused or {}, forced or {}
        found: list[Verdict] = []
        bearing = [Verdict.CONFORMS]
        with Recorder(path) as writer:
            writer.header(structs.replace(self.header(), **changes))
            for case in self.contract.cases:
                result = CaseResult(
                    case.id, case.clauses, Judgement(forced.get(case.id, Verdict.CONFORMS)), (), (), 0.01
                )
                if case.id not in forced:
                    main = play(self.contract, case, Side.MAIN, flaw)
                    twin = () if case.twin is None else play(self.contract, case, Side.TWIN, flaw)
                    judged = judge_case(self.contract, case, main, twin, seed=SEED)
                    shown = twin if judged.verdict is Verdict.CONFORMS else ()
                    result = dataclasses.replace(result, judgement=judged, main=main, twin=shown)
                writer.result(result, excused=excused.get(case.id))
                verdict = result.judgement.verdict
                found.append(verdict)
                if not (case.id in excused and can_be_excused(verdict)):
                    bearing.append(verdict)
            writer.write(artefacts)
            status = int(exit_of(worst(bearing)))
            writer.finish(verdict=gravest_finding(found).value, exit_status=status, finished=finished)
        return path

    def one(self, result: CaseResult, *, excused: str | None = None) -> Path:
        """Write a run of this one result."""
        path, verdict = self.folder / "one.jsonl", result.judgement.verdict
        with Recorder(path) as writer:
            writer.header(self.header())
            writer.result(result, excused=excused)
            writer.write(ARTEFACTS)
            writer.finish(verdict=verdict.value, exit_status=int(exit_of(verdict)), finished=STARTED)
        return path

    def decide(
        self, path: Path, *, extent: Extent = Extent.FULL, contract: Contract | None = None, **options: Any
    ) -> GateDecision:
        """Decide on a run as on an ordinary day."""
        required = [Requirement(contract or self.contract, extent)]
        return decide(read_evidence(path), required, **{"now": NOW, "kit": KIT, **options})

    def damaged(self, change: Callable[[list[bytes]], list[bytes]], **options: Any) -> GateDecision:
        """Decide on a good run whose raw lines were changed."""
        path = self.run()
        path.write_bytes(b"".join(line + b"\n" for line in change(path.read_bytes().splitlines())))
        return self.decide(path, **options)

    def forged(self, edit: Edit, *, flaw: str | None = None, **options: Any) -> GateDecision:
        """Decide on a run that was edited and whose chain was computed anew."""
        return self.decide(forge(self.run(flaw=flaw), edit), **options)


def forge(path: Path, edit: Edit) -> Path:
    """Edit the lines of a run, bring the footer into line with them and compute the chain anew."""
    lines: Lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    changed = edit(lines)
    lines = lines if changed is None else changed
    if lines[-1]["type"] == "footer" and not lines[-1].pop("left", False):
        lines[-1] = in_line(lines)
    path.write_bytes(b"".join(raw + b"\n" for raw in resealed(lines)))
    return path


def verdicts(word: str = "", **changes: Any) -> Edit:
    """Each verdict, or each of that word, is changed; the end of the run says that all is well."""

    def edit(lines: Lines) -> None:
        for line in lines:
            if line["type"] == "verdict" and word in ("", line["verdict"]):
                line.update(changes)
        if not word:
            lines[-1]["exit"] = 0

    return edit


# Every case is told to conform.
CALM = verdicts(verdict="conforms", detail="", expected="", received="", advice="", side=None, n=None, silence=None)


@pytest.fixture(scope="session")
def toy() -> Contract:
    """The toy contract."""
    return read_contract(TOY / "toy")


@pytest.fixture
def bench(toy: Contract, tmp_path: Path) -> Bench:
    """Makes runs of the toy contract."""
    return Bench(toy, tmp_path)
