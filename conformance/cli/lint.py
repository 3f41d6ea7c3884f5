"""`holdfast lint specs`: schemas, unique ids, twins, mutants, clause digests of every contract."""

from __future__ import annotations

import re
import subprocess
from enum import Enum, unique
from pathlib import Path
from typing import Annotated

import typer

from holdfast.conformance.cli.console import Format, out, print_json, stop
from holdfast.conformance.cli.target import REFERENCE, known_contracts
from holdfast.conformance.cli.vectors.committed import lint as lint_vectors
from holdfast.conformance.run.plan import Form, generators_of, plan_of
from holdfast.conformance.selfcheck.baselines import load_baseline
from holdfast.conformance.verdict import Exit
from holdfast.specs import Contract, SpecError, contract_names, fitness, load_contract
from holdfast.specs.cells import matrix_problems
from holdfast.specs.lint import lint_contract
from holdfast.specs.loader import contract_folders
from holdfast.specs.matrix import load_matrix
from holdfast.specs.mutants import load_mutants


@unique
class What(Enum):
    """What can be linted."""

    SPECS = "specs"
    VECTORS = "vectors"


def lint(
    what: Annotated[What, typer.Argument(help="specs, or the committed vectors")],
    contract: Annotated[list[str] | None, typer.Option("--contract", help="only this contract; repeat")] = None,
    update: Annotated[
        bool, typer.Option("--update", help="write the clause digests into the cases, after a review")
    ] = False,
    format_: Annotated[Format, typer.Option("--format", help="text or json")] = Format.TEXT,
) -> None:
    """Check contracts, their cases and their mutants; exit 20 if something is wrong with the kit's own data."""
    if what is What.VECTORS:
        if contract or update:
            stop(Exit.USAGE, "--contract and --update belong to `holdfast lint specs`")
        lint_vectors(format_)
    names = contract or list(contract_names())
    problems: list[str] = []
    for name in names:
        known_contracts([name])
        try:
            loaded = load_contract(name)
            if update:
                update_digests(loaded, contract_folders()[name])
                load_contract.cache_clear()
                loaded = load_contract(name)
            problems += [f"{name}: {problem}" for problem in problems_of(loaded)]
        except SpecError as error:
            problems.append(str(error))
    if format_ is Format.JSON:
        print_json({"contracts": list(names), "problems": problems})
    else:
        console = out()
        for problem in problems:
            console.print(problem, markup=False)
        console.print(f"{what.value}: {len(names)} contracts, {len(problems)} problems")
    raise typer.Exit(int(Exit.KIT if problems else Exit.OK))


def problems_of(contract: Contract) -> list[str]:
    """What the linter finds in one contract."""
    suite = {case.id: case.clauses for case in plan_of(contract) if case.form is Form.SUITE}
    mutants, matrix = load_mutants(contract.name), load_matrix(contract.name)
    problems = lint_contract(contract, mutants=mutants, suite_clauses=suite)
    if matrix is not None:
        generators = generators_of(contract)
        problems += matrix_problems(contract, matrix, mutants=mutants, suite=suite, generators=generators)
    if any(each.patch for each in mutants.planted):
        command = [*REFERENCE, "mutants", "--contract", contract.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        problems += [done.stderr.strip() or f"its patches: exit {done.returncode}"] if done.returncode else []
    if load_baseline(contract) is None:
        problems.append("baselines.json is missing or of other cases; run `holdfast selfcheck --baselines`")
    if fitness.has_queries(contract.name):
        try:
            fitness.load_queries(contract.name)
        except SpecError as error:
            problems.append(str(error))
    return problems


_CASE_START = re.compile(r"^( *)- id: (\S+)\s*$")


def update_digests(contract: Contract, folder: Path) -> None:
    """Write the current clause digests of every case behind its id, and nothing else."""
    files = [*sorted((folder / "cases").glob("*.yaml")), *folder.glob("faults.yaml")]
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines()
        new: list[str] = []
        skipping = ""
        for line in lines:
            if skipping and line.startswith(skipping + "  "):
                continue
            skipping = ""
            if re.match(r"^ *clause_digests:", line):
                skipping = line[: len(line) - len(line.lstrip())]
                continue
            new.append(line)
            match = _CASE_START.match(line)
            if match is not None:
                indent = match.group(1) + "  "
                case = contract.case(match.group(2)) or contract.fault(match.group(2))
                if case is None:
                    raise SpecError(f"{path}: case {match.group(2)} stands there and was not loaded")
                new.append(f"{indent}clause_digests:")
                new += [f"{indent}  {name}: {contract.clauses[name].digest}" for name in case.clauses]
        text = "\n".join(new) + "\n"
        if text != path.read_text(encoding="utf-8"):
            path.write_text(text, encoding="utf-8")
