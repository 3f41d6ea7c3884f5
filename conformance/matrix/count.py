"""How much of a contract's matrix a run has sent, held against matrix.yaml. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.conformance.matrix.sent import Pairs, sent
from holdfast.conformance.run.plan import PlannedCase, plan_of
from holdfast.conformance.verdict import Verdict
from holdfast.reports.evidence import Exchange, Run
from holdfast.specs import Contract
from holdfast.specs.cells import cells_of, rows_of
from holdfast.specs.matrix import Matrix, load_matrix

Sides = Mapping[str, Mapping[str, Sequence[Exchange]]]


@dataclass(frozen=True, slots=True)
class Counted:
    """The cells of a contract and the pairs that a run sent, of the cases that conform.

    A cell that is not `open` and has no exception counts as soon as one pair of it was sent.
    """

    contract: str
    cells: tuple[tuple[str, str], ...]
    pairs: Mapping[tuple[str, str], int]
    open: frozenset[tuple[str, str]]
    excepted: frozenset[tuple[str, str]]

    @property
    def filled(self) -> int:
        """How many cells the run filled."""
        return sum(key in self.pairs and key not in self.open for key in self.cells)

    def sentence(self) -> str:
        """For a person."""
        sent_pairs = sum(self.pairs.get(key, 0) for key in self.cells)
        beside = [f"{len(found)} {what}" for found, what in ((self.open, "open"), (self.excepted, "excepted")) if found]
        more = f" ({', '.join(beside)})" if beside else ""
        return f"{self.contract}: matrix: {self.filled} of {len(self.cells)} cells, {sent_pairs} pairs sent{more}"


def counted(contract: Contract, conforming: Iterable[PlannedCase], sides: Sides) -> Counted | None:
    """What a run sent of the matrix of `contract`; None where the contract has no matrix."""
    matrix = load_matrix(contract.name)
    if matrix is None:
        return None
    total: Pairs = Counter()
    for planned in conforming:
        total += sent(contract, matrix, planned, sides.get(planned.id, {}))
    return held_against(contract, matrix, total)


def held_against(contract: Contract, matrix: Matrix, pairs: Mapping[tuple[str, str], int]) -> Counted:
    """Pairs beside the cells that there are."""
    rows = rows_of(contract, matrix)
    return Counted(
        contract.name,
        tuple(
            (name, each) for name, row in rows.items() for each in cells_of(contract, name, row, horizon=matrix.horizon)
        ),
        pairs,
        frozenset((name, each) for name, row in rows.items() for each in row.left()),
        frozenset((name, each) for name, row in rows.items() for each in row.excepted()),
    )


def by_case(contract: Contract, matrix: Matrix, run: Run) -> Mapping[str, Pairs]:
    """What each case that conforms sent in a run."""
    sides, planned = run.sides(), {case.id: case for case in plan_of(contract)}
    good = [line.case for line in run.verdicts if line.verdict == Verdict.CONFORMS.value and line.case in planned]
    return {case: sent(contract, matrix, planned[case], sides.get(case, {})) for case in good}
