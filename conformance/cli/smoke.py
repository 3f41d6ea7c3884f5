"""`holdfast smoke`: within seconds, a script for each method that an adapter claims."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer

from holdfast.conformance.cases.expect import alternatives
from holdfast.conformance.cli.console import out, stop, styled
from holdfast.conformance.cli.greeted import greeted
from holdfast.conformance.cli.group import with_options
from holdfast.conformance.cli.target import TargetOptions, known_contracts
from holdfast.conformance.cli.verify.transcript import log_tail
from holdfast.conformance.run.plan import methods_of, unclaimed
from holdfast.conformance.verdict import Exit, Verdict, exit_of, gravest
from holdfast.specs import Case, Contract, load_contract

# No case begins later, in seconds after the hello of the adapter.
SMOKE_S = 5.0


@dataclass(frozen=True, kw_only=True)
class Options(TargetOptions):
    """What the command line asks for."""

    contract: Annotated[str, typer.Option("--contract", help="the contract to try")]
    seed: Annotated[str | None, typer.Option(help="fixes every random suffix")] = None


@with_options(Options)
def smoke(options: Options) -> Exit:
    """Try a script for each method that the adapter claims, within 5 seconds. It proves nothing."""
    names = known_contracts([options.contract])
    seed = options.seed or secrets.token_hex(16)
    settings = options.settings_for(names, seed=seed, forkserver=options.target.forkserver)
    loaded, console, found = load_contract(options.contract), out(), []
    with greeted(settings, [loaded]) as (engine, _):
        lacking = frozenset(engine.not_claimed(loaded))
        chosen = cases_of(loaded, lacking)
        ends = time.monotonic() + SMOKE_S * engine.settings.factor
        for case in chosen:
            if time.monotonic() > ends:
                break
            result = engine.run_case(loaded, case)
            judged = result.judgement
            found.append(judged.verdict)
            console.print(styled(judged.verdict), f"{case.id}: {case.title}")
            for name, text in (("detail", judged.detail), ("expected", judged.expected), ("received", judged.received)):
                if text:
                    console.print(f"  {name}: {text}")
            for line in log_tail(result):
                console.print(f"  stderr: {line}")
            if engine.pool.exhausted:
                # No case after this one could be started.
                break
    missing = unclaimed(loaded, lacking)
    if missing:
        console.print(f"not there yet: {', '.join(missing)}")
    if not found:
        stop(Exit.INCOMPLETE, "not proven: no script can be tried with the methods that the adapter claims")
    good = sum(verdict is Verdict.CONFORMS for verdict in found)
    ran = f"{len(found)} of {len(chosen)} scripts were tried, {good} conform"
    console.print(f"{ran}; `holdfast verify` runs everything, and proves it")
    exits = [exit_of(verdict) for verdict in found]
    return gravest([*exits, *([Exit.INCOMPLETE] if missing or len(found) < len(chosen) else [])])


def cases_of(contract: Contract, lacking: frozenset[str]) -> Sequence[Case]:
    """For each method that is there, and for each reason of each, the shortest script that asks for it.

    None of them calls a method that is not there.
    """
    known = [(case, _asked(contract, case)) for case in contract.cases]
    able = [
        (case, asked)
        for case, asked in known
        if lacking.isdisjoint(methods_of(contract, case) | contract.roles_of(case.clauses, case.roles))
    ]
    able.sort(key=lambda each: len(each[0].given) + len(each[0].when) + len(each[0].then))
    wanted = [(name, "") for name in contract.methods]
    wanted += [(method.name, reason) for method in contract.methods.values() for reason in method.reasons]
    chosen: dict[str, Case] = {}
    covered: set[tuple[str, str]] = set()
    for each in wanted:
        found = None if each in covered else next(((case, asked) for case, asked in able if each in asked), None)
        if found is not None:
            chosen[found[0].id] = found[0]
            covered |= found[1]
    return list(chosen.values())


def _asked(contract: Contract, case: Case) -> frozenset[tuple[str, str]]:
    """The methods that a script calls, alone and with the reasons that it expects of them."""
    found = {(name, "") for name in methods_of(contract, case)}
    for step in (*case.given, *case.when, *case.then):
        name, expected = str(step.get("call", "")), step.get("expect", {})
        for option in alternatives(expected) if name and isinstance(expected, Mapping) else ():
            reasons = option.get("reason", ())
            found |= {(name, each) for each in ([reasons] if isinstance(reasons, str) else reasons)}
    return frozenset(found)
