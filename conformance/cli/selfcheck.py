"""`holdfast selfcheck`: the kit tests itself. Each planted bug must be caught as declared."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, NoReturn

import msgspec
import typer
from rich.markup import escape
from rich.table import Table

from holdfast.conformance.cli.console import Format, err, out, print_json, stop
from holdfast.conformance.cli.lint import problems_of
from holdfast.conformance.cli.target import reference_target
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.selfcheck.baselines import Policy, baseline_json
from holdfast.conformance.selfcheck.kills import Kill, judge_kill, observed
from holdfast.conformance.selfcheck.running import Wanted, evidence_of
from holdfast.conformance.verdict import Exit
from holdfast.servers.janitor import Janitor
from holdfast.specs import Contract, SpecError, contract_names, load_contract
from holdfast.specs.loader import contract_folders
from holdfast.specs.model import Proof
from holdfast.specs.mutants import FILE, Mutant, load_mutants, written

# The baseline adapters reach no failpoint, so a full wait would only take time.
BASELINE_SLOW = 0.1
# `--automatic` chooses this number of mutants of each contract, or all if there are fewer.
COUNT = 400
SEED = "automatic"


@dataclass(frozen=True, slots=True)
class Planted:
    """A mutant with its reference, and the part of the contract that it is run against."""

    mutant: Mutant
    contract: Contract
    store: str
    whole: bool
    all_faults: bool


def selfcheck(
    contract: Annotated[list[str] | None, typer.Option("--contract", help="only this contract; repeat")] = None,
    full: Annotated[bool, typer.Option("--full", help="every mutant against the whole contract")] = False,
    mutant: Annotated[list[str] | None, typer.Option("--mutant", help="only this mutant; repeat")] = None,
    everything: Annotated[
        bool, typer.Option("--faults", help="with --full: let every fault strike every mutant, for hours")
    ] = False,
    update: Annotated[
        bool,
        typer.Option("--update", help="with --full: write what also fails to mutants.yaml"),
    ] = False,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="measure accept-all and refuse-all, write the files")
    ] = False,
    automatic: Annotated[
        bool, typer.Option("--automatic", help="bugs that a program plants, instead of those planted by hand")
    ] = False,
    count: Annotated[int, typer.Option(min=1, help="with --automatic: mutants of each contract")] = COUNT,
    seed: Annotated[str, typer.Option(help="with --automatic: decides which of them, and the values of tests")] = SEED,
    only: Annotated[list[str] | None, typer.Option("--only", help="with --automatic: this mutant; repeat")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=32, help="mutants run at once")] = min(2, os.cpu_count() or 1),
    format_: Annotated[Format, typer.Option("--format", help="text or json")] = Format.TEXT,
) -> None:
    """Lint the contracts, run every mutant, print the kill matrix. Exit 20 unless every bug is caught as declared."""
    if update and not full:
        stop(Exit.USAGE, "--update writes what fails of a whole contract; it needs --full")
    names = contract or list(contract_names())
    if automatic:
        _automatic(names, count=count, seed=seed, only=only or (), jobs=jobs, format_=format_)
    try:
        contracts = [load_contract(name) for name in names]
        chosen = [
            Planted(found, loaded, declared.store_of(found), full, everything and full)
            for loaded in contracts
            for declared in (load_mutants(loaded.name),)
            for found in declared.mutants
        ]
    except SpecError as error:
        stop(Exit.USAGE if contract else Exit.KIT, str(error))
    if mutant:
        unknown = set(mutant) - {found.mutant.name for found in chosen}
        if unknown:
            stop(Exit.USAGE, f"unknown mutant {', '.join(sorted(unknown))}; `holdfast reference mutants` lists them")
        chosen = [found for found in chosen if found.mutant.name in mutant]
    if baselines:
        with Janitor() as janitor:
            for loaded in contracts:
                _write_baseline(loaded, janitor)
        raise typer.Exit(int(Exit.OK))
    with Janitor() as janitor:
        pool = ThreadPoolExecutor(max_workers=jobs)
        try:
            found = list(pool.map(lambda planted: _kill(planted, janitor), chosen))
        finally:
            # After Ctrl-C nothing waits for the runs that are under way: the janitor ends them.
            pool.shutdown(wait=False, cancel_futures=True)
    kills = [kill for kill, _ in found]
    if update:
        for loaded in contracts:
            _write_observed(loaded.name, {seen.name: seen for _, seen in found})
    problems = [f"{loaded.name}: {text}" for loaded in contracts for text in problems_of(loaded)] if not mutant else []
    if not chosen:
        problems.append("no mutant was run, so nothing shows that the kit catches anything")
    good = not problems and all(kill.as_declared for kill in kills)
    if format_ is Format.JSON:
        print_json(_json(kills, problems, good))
    else:
        _print(kills, problems)
    raise typer.Exit(int(Exit.OK if good else Exit.KIT))


def _automatic(
    names: Sequence[str], *, count: int, seed: str, only: Sequence[str], jobs: int, format_: Format
) -> NoReturn:
    # numpy and what else the suites import takes a third of a second, for which the other mutants need not wait.
    from holdfast.conformance.cli.automatic import automatic

    try:
        contracts = [load_contract(name) for name in names]
    except SpecError as error:
        stop(Exit.USAGE, str(error))
    automatic(contracts, count=count, seed=seed, only=only, jobs=jobs, format_=format_)


def _kill(planted: Planted, janitor: Janitor) -> tuple[Kill, Mutant]:
    """The result of the run, and the mutant with the further clauses that it breaks."""
    mutant, contract = planted.mutant, planted.contract
    target = reference_target(mutant=mutant.name)
    wanted = Wanted(
        mutant.name,
        target.adapter,
        contract.name,
        target.launcher,
        planted.store,
        clauses=() if planted.whole else tuple(mutant.must_fail),
        faults=None if planted.all_faults else tuple(mutant.faults),
    )
    try:
        run = evidence_of(wanted, janitor)
    except RuntimeError as error:
        return Kill(mutant, {}, (str(error),), ()), mutant
    plan = {case.id: case.clauses for case in plan_of(contract)}
    whole = {case.id for case in plan_of(contract) if case.whole}
    left_out = () if planted.all_faults else {fault.id for fault in contract.faults}
    kill = judge_kill(
        mutant, run, due=[case for case in plan if case not in left_out] if planted.whole else (), whole=whole
    )
    word = "killed" if kill.as_declared else "[bold red]NOT AS DECLARED[/]"
    err().print(f"{word} {mutant.name}")
    for line in (*kill.missed, *kill.stray):
        err().print(f"    {escape(line)}")
    return kill, observed(mutant, run, plan, whole=whole)


def _write_observed(contract: str, seen: Mapping[str, Mutant]) -> None:
    declared = load_mutants(contract)
    now = msgspec.structs.replace(declared, mutants=tuple(seen.get(one.name, one) for one in declared.mutants))
    if now == declared:
        return
    (contract_folders()[contract] / FILE).write_text(written(now), encoding="utf-8")
    load_mutants.cache_clear()
    err().print(f"wrote {FILE} of {contract}")


def _print(kills: Sequence[Kill], problems: Sequence[str]) -> None:
    console = out()
    table = Table(title="kill matrix", title_justify="left", show_edge=False)
    for column in ("mutant", "killed", "must fail", "also failing, declared"):
        table.add_column(column, overflow="fold")
    for kill in kills:
        due = [f"{clause} {verdict}" for clause, verdict in kill.mutant.must_fail.items()]
        mark = "[green]yes[/]" if kill.as_declared else "[bold red]NO[/]"
        table.add_row(kill.mutant.name, mark, ", ".join(due), ", ".join(kill.also_failing))
    console.print(table)
    for kill in kills:
        for line in (*kill.missed, *kill.stray):
            console.print(f"{kill.mutant.name}: {line}", markup=False, style="red")
    for problem in problems:
        console.print(f"lint: {problem}", markup=False, style="red")
    killed = sum(kill.as_declared for kill in kills)
    console.print(f"{killed} of {len(kills)} mutants killed as declared, {len(problems)} problems in the contracts")


def _json(kills: Sequence[Kill], problems: Sequence[str], good: bool) -> dict[str, object]:
    return {
        "good": good,
        "problems": list(problems),
        "kills": [
            {
                "mutant": kill.mutant.name,
                "as_declared": kill.as_declared,
                "shown": {clause: verdict.value for clause, verdict in kill.shown.items()},
                "missed": list(kill.missed),
                "stray": list(kill.stray),
            }
            for kill in kills
        ],
    }


def _write_baseline(contract: Contract, janitor: Janitor) -> None:
    verdicts: dict[Policy, dict[str, str]] = {}
    for policy in Policy:
        adapter = (sys.executable, "-P", "-m", "holdfast.conformance.selfcheck.baseline_adapter", policy.value)
        run = evidence_of(Wanted(policy.value, adapter, contract.name, slow=BASELINE_SLOW), janitor)
        verdicts[policy] = {line.case: line.verdict for line in run.verdicts}
    path = contract_folders()[contract.name] / "baselines.json"
    path.write_text(baseline_json(contract, verdicts), encoding="utf-8")
    testable = sum(clause.proof is Proof.RUN for clause in contract.clauses.values())
    err().print(f"wrote {path.name} of {contract.name} ({testable} clauses to prove by a run)")
