"""`holdfast selfcheck`: the kit proves its own teeth. Each planted bug must be caught, as it is declared."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from holdfast.conformance.adapter.janitor import Janitor, JanitorLostError
from holdfast.conformance.cli.console import Format, err, out, print_json, stop
from holdfast.conformance.cli.lint import problems_of
from holdfast.conformance.cli.mutants import Mutant, planted
from holdfast.conformance.cli.target import Target, reference_target
from holdfast.conformance.selfcheck.baselines import Policy, baseline_json
from holdfast.conformance.verdict import Exit, Verdict, worst
from holdfast.reports.evidence import Run, read_evidence
from holdfast.specs import Contract, SpecError, contract_names, load_contract
from holdfast.specs.loader import contract_folders
from holdfast.specs.model import Proof

# One mutant against a whole contract takes about a minute on PostgreSQL; this only ends what hangs for ever.
RUN_TIMEOUT_S = 900
# The mindless adapters reach no stop point; waiting for it in full would only take time.
BASELINE_SLOW = 0.1


@dataclass(frozen=True, slots=True)
class Kill:
    """What a run of one mutant showed. `missed` and `stray` are sentences; both empty means killed as declared."""

    mutant: Mutant
    shown: Mapping[str, Verdict]
    missed: tuple[str, ...]
    stray: tuple[str, ...]

    @property
    def as_declared(self) -> bool:
        """Whether every declared clause failed as declared and nothing else failed."""
        return not self.missed and not self.stray


def selfcheck(
    contract: Annotated[list[str] | None, typer.Option("--contract", help="only this contract; repeat")] = None,
    full: Annotated[bool, typer.Option("--full", help="every mutant against the whole contract")] = False,
    mutant: Annotated[list[str] | None, typer.Option("--mutant", help="only this mutant; repeat")] = None,
    everything: Annotated[
        bool, typer.Option("--faults", help="with --full: let every fault strike every mutant, for hours")
    ] = False,
    baselines: Annotated[
        bool, typer.Option("--baselines", help="measure accept-all and refuse-all, write the files")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, max=32, help="mutants run at once")] = min(2, os.cpu_count() or 1),
    format_: Annotated[Format, typer.Option("--format", help="text or json")] = Format.TEXT,
) -> None:
    """Lint the contracts, run every mutant, print the kill matrix. Exit 20 unless every bug is caught as declared."""
    names = contract or list(contract_names())
    try:
        contracts = [load_contract(name) for name in names]
        mutants = [found for found in planted() if found.contract in names]
    except SpecError as error:
        stop(Exit.USAGE if contract else Exit.KIT, str(error))
    if mutant:
        unknown = set(mutant) - {found.name for found in mutants}
        if unknown:
            stop(Exit.USAGE, f"unknown mutant {', '.join(sorted(unknown))}; `holdfast reference mutants` lists them")
        mutants = [found for found in mutants if found.name in mutant]
    if baselines:
        with Janitor() as janitor:
            for loaded in contracts:
                _write_baseline(loaded, janitor)
        raise typer.Exit(int(Exit.OK))
    problems = [f"{loaded.name}: {text}" for loaded in contracts for text in problems_of(loaded)] if not mutant else []
    if not mutants:
        problems.append("no mutant was run, so nothing shows that the kit catches anything")
    by_name = {loaded.name: loaded for loaded in contracts}
    with Janitor() as janitor:
        pool = ThreadPoolExecutor(max_workers=jobs)
        try:
            kills = list(
                pool.map(
                    lambda found: _kill(
                        found, by_name[found.contract], whole=full, everything=everything and full, janitor=janitor
                    ),
                    mutants,
                )
            )
        finally:
            # After Ctrl-C nobody waits for the runs that are under way: the janitor ends them.
            pool.shutdown(wait=False, cancel_futures=True)
    good = not problems and all(kill.as_declared for kill in kills)
    if format_ is Format.JSON:
        print_json(_json(kills, problems, good))
    else:
        _print(kills, problems)
    raise typer.Exit(int(Exit.OK if good else Exit.KIT))


def _kill(mutant: Mutant, contract: Contract, *, whole: bool, everything: bool, janitor: Janitor) -> Kill:
    clauses = () if whole else tuple(mutant.must_fail)
    try:
        faults = None if everything else tuple(mutant.faults)
        run = _verify(reference_target(mutant=mutant.name), contract, mutant.store, clauses, faults, janitor=janitor)
    except RuntimeError as error:
        return Kill(mutant, {}, (str(error),), ())
    kill = judge_kill(mutant, run, whole=whole, everything=everything)
    word = "killed" if kill.as_declared else "[bold red]NOT AS DECLARED[/]"
    err().print(f"{word} {mutant.name}")
    for line in (*kill.missed, *kill.stray):
        err().print(f"    {escape(line)}")
    return kill


def _verify(
    target: Target,
    contract: Contract,
    store: str,
    clauses: Sequence[str],
    faults: Sequence[str] | None,
    *,
    janitor: Janitor,
    slow: float = 1.0,
) -> Run:
    """Run `holdfast verify` in a process of its own and read its evidence. Raises RuntimeError if there is none.

    `faults` are those that are let strike, None for all that there are.
    """
    with tempfile.TemporaryDirectory(dir=janitor.make_folder()) as scratch:
        evidence = Path(scratch) / "run.jsonl"
        words = [sys.executable, "-P", "-m", "holdfast.conformance.cli", "verify", "--contract", contract.name]
        words += ["--evidence", str(evidence), "--seed", "selfcheck", "--format", "json", "--slow", str(slow)]
        # Several mutants run at once already.
        words += ["--jobs", "1"]
        for clause in clauses:
            words += ["--clause", clause]
        if faults is not None:
            words += ["--no-faults", *(word for case in faults for word in ("--case", case))]
        if target.launcher:
            words += ["--config", f"store={store}", "--launcher", shlex.join(target.launcher)]
        words += ["--", *target.adapter]
        # In a group of its own that the janitor knows, so that it ends with this process, however this one ends.
        child = subprocess.Popen(
            words, cwd=scratch, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        try:
            janitor.watch_group(child.pid)
            said = child.communicate(timeout=RUN_TIMEOUT_S)[1].decode(errors="replace").strip()[-600:]
        except subprocess.TimeoutExpired as error:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            raise RuntimeError(f"{target.name}: the run took longer than {RUN_TIMEOUT_S} s") from error
        except JanitorLostError:
            os.killpg(child.pid, signal.SIGKILL)
            raise
        finally:
            janitor.forget_group(child.pid)
        if not evidence.is_file():
            raise RuntimeError(f"{target.name}: no evidence, exit {child.returncode}: {said}")
        run = read_evidence(evidence)
        if run.defects:
            raise RuntimeError(f"{target.name}: damaged evidence: {run.defects[0]}")
        return run


def judge_kill(mutant: Mutant, run: Run, *, whole: bool, everything: bool = False) -> Kill:
    """Hold the verdicts against the declaration: the declared verdict must stand among those of each clause's cases.

    `whole`: every case is due; the faults only with `everything`, else those that the mutant names.
    """
    by_clause: dict[str, list[Verdict]] = {}
    for line in run.verdicts:
        for clause in line.clauses:
            by_clause.setdefault(clause, []).append(Verdict(line.verdict))
    missed = [
        f"{clause}: expected {wanted.value}, got {_tally(by_clause.get(clause, []))}"
        for clause, wanted in mutant.must_fail.items()
        if wanted not in by_clause.get(clause, [])
    ]
    by_case = {line.case: Verdict(line.verdict) for line in run.verdicts}
    missed += [
        f"{case}: expected {wanted.value}, got {_tally([by_case[case]] if case in by_case else [])}"
        for case, wanted in mutant.faults.items()
        if by_case.get(case) is not wanted
    ]
    stray: list[str] = []
    for line in run.verdicts:
        verdict = Verdict(line.verdict)
        allowed = {*mutant.must_fail, *mutant.may_fail}
        if verdict is Verdict.CONFORMS or allowed & set(line.clauses) or line.case in mutant.faults:
            continue
        stray.append(f"{line.case}: {verdict.value}, though its clauses are not declared: {line.detail[:160]}")
    if whole:
        ran = {line.case for line in run.verdicts}
        left_out = set() if everything else {fault.id for fault in load_contract(mutant.contract).faults}
        gone = [case for case in (run.header.plan if run.header else ()) if case not in ran | left_out]
        stray += [f"{case}: no result" for case in gone]
    return Kill(mutant, {clause: worst(found) for clause, found in by_clause.items()}, tuple(missed), tuple(stray))


def _tally(verdicts: Sequence[Verdict]) -> str:
    counts = {verdict: verdicts.count(verdict) for verdict in verdicts}
    return ", ".join(f"{count} x {verdict.value}" for verdict, count in counts.items()) or "no result"


def _print(kills: Sequence[Kill], problems: Sequence[str]) -> None:
    console = out()
    table = Table(title="kill matrix", title_justify="left", show_edge=False)
    for column in ("mutant", "killed", "must fail", "also failing, declared"):
        table.add_column(column, overflow="fold")
    for kill in kills:
        also = [c for c, v in kill.shown.items() if v is not Verdict.CONFORMS and c in kill.mutant.may_fail]
        due = [f"{clause} {verdict.value}" for clause, verdict in kill.mutant.must_fail.items()]
        mark = "[green]yes[/]" if kill.as_declared else "[bold red]NO[/]"
        table.add_row(kill.mutant.name, mark, ", ".join(due), ", ".join(also))
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
        run = _verify(Target(adapter, (), policy.value), contract, "", (), None, janitor=janitor, slow=BASELINE_SLOW)
        verdicts[policy] = {line.case: line.verdict for line in run.verdicts}
    path = contract_folders()[contract.name] / "baselines.json"
    path.write_text(baseline_json(contract, verdicts), encoding="utf-8")
    testable = sum(clause.proof is Proof.RUN for clause in contract.clauses.values())
    err().print(f"wrote {path.name} of {contract.name} ({testable} clauses to prove by a run)")
