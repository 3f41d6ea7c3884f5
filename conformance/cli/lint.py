"""`holdfast lint`: every contract, or the committed vectors, which needs no Spark."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from enum import Enum, unique
from pathlib import Path
from typing import Annotated

import typer
from msgspec import structs

from holdfast.conformance.cli.console import Format, OutputFormat, out, print_json, stop
from holdfast.conformance.cli.target import known_contracts
from holdfast.conformance.run.baselines import load_baseline
from holdfast.conformance.run.plan import Form, plan_of
from holdfast.conformance.run.settings import REFERENCE
from holdfast.conformance.verdict import Exit
from holdfast.specs import Contract, SpecError, contract_names, fitness, load_contract
from holdfast.specs.cells import fitted, matrix_problems
from holdfast.specs.lint import lint_contract, reviewed_now
from holdfast.specs.lock import load_lock, write_lock
from holdfast.specs.matrix import FILE, load_matrix, written
from holdfast.specs.mutants import load_mutants
from holdfast.specs.registry import folder_of


@unique
class What(Enum):
    """What can be linted."""

    SPECS = "specs"
    VECTORS = "vectors"


def lint(
    what: Annotated[What, typer.Argument(help="specs, or the committed vectors")],
    contract: Annotated[list[str] | None, typer.Option("--contract", help="only this contract; repeat")] = None,
    update: Annotated[
        bool,
        typer.Option("--update", help="the cases were reviewed: write lock.json, and fit the matrix to the contract"),
    ] = False,
    format_: OutputFormat = Format.TEXT,
) -> Exit:
    """Check contracts, their cases and their mutants; exit 20 if something is wrong with the kit's own data."""
    if what is What.VECTORS:
        if contract or update:
            stop(Exit.USAGE, "--contract and --update belong to `holdfast lint specs`")
        return vectors(format_)
    names = contract or list(contract_names())
    problems: list[str] = []
    for name in names:
        known_contracts([name])
        try:
            loaded = load_contract(name)
            if update:
                update_digests(loaded, folder_of(name))
                load_contract.cache_clear()
                load_matrix.cache_clear()
                loaded = load_contract(name)
            problems += [f"{name}: {problem}" for problem in problems_of(loaded)]
        except SpecError as error:
            problems.append(str(error))
    return _report({"contracts": list(names), "problems": problems}, f"{what.value}: {len(names)} contracts,", format_)


def vectors(format_: OutputFormat = Format.TEXT) -> Exit:
    """Check the committed vectors: shapes, ids, twins, near misses, and every expected value that can be computed."""
    from holdfast.vectors.lint import lint as problems_of_vectors

    return _report({"problems": [str(problem) for problem in problems_of_vectors()]}, "vectors:", format_)


def _report(found: Mapping[str, list[str]], what: str, format_: Format) -> Exit:
    problems = found["problems"]
    if format_ is Format.JSON:
        print_json(found)
    else:
        out().print_lines([*problems, f"{what} {len(problems)} problems"])
    return Exit.KIT if problems else Exit.OK


def problems_of(contract: Contract) -> list[str]:
    """What the linter finds in one contract."""
    plan = plan_of(contract)
    suite = {case.id: case.clauses for case in plan if case.form is Form.SUITE}
    mutants, matrix = load_mutants(contract.name), load_matrix(contract.name)
    reviewed = load_lock(folder_of(contract.name), contract.name).reviewed
    problems = lint_contract(contract, mutants=mutants, suite_clauses=suite, reviewed=reviewed)
    if matrix is not None:
        generators = frozenset(case.id for case in plan if case.generated)
        problems += matrix_problems(contract, matrix, mutants=mutants, suite=suite, generators=generators)
    if mutants.planted:
        command = [*REFERENCE, "mutants", "--contract", contract.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        problems += [done.stderr.strip() or f"its patches: exit {done.returncode}"] if done.returncode else []
    baseline, ids = load_baseline(contract), {case.id for case in plan}
    if baseline is None or any(measured.keys() != ids for measured in baseline.verdicts.values()):
        problems.append("baselines.json is missing or of other cases; run `holdfast selfcheck --baselines`")
    if fitness.has_queries(contract.name):
        try:
            fitness.load_queries(contract.name)
        except SpecError as error:
            problems.append(str(error))
    return problems


def update_digests(contract: Contract, folder: Path) -> None:
    """Write which cases prove each clause, with the digest of its text, and the cells of the matrix that there are."""
    lock, matrix = load_lock(folder, contract.name), load_matrix(contract.name)
    lock = structs.replace(lock, reviewed=reviewed_now(contract))
    if matrix is not None:
        matrix = fitted(contract, matrix, {case.id for case in plan_of(contract)})
        (folder / FILE).write_text(written(matrix), encoding="utf-8")
        lock = structs.replace(lock, cells={name: row.cells for name, row in matrix.operations.items() if row.cells})
    write_lock(folder, lock)
