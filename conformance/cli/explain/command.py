"""`holdfast explain NAME`: everything the kit knows about a clause, a case, a method, a reason or a contract."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.conformance.cli.console import Format, OutputFormat, ending, out, print_json, stop
from holdfast.conformance.cli.explain import described
from holdfast.conformance.cli.target import known_contracts
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.verdict import Exit
from holdfast.specs import Contract, SpecError, contract_names, load_contract
from holdfast.specs.errors import meant


def explain(
    name: Annotated[
        str | None,
        typer.Argument(
            help="a clause or the end of its id, a case, a method, a reason or a contract; else CONTRACT/NAME"
        ),
    ] = None,
    contract: Annotated[str | None, typer.Option("--contract", help="only of this contract")] = None,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="DOCS", help="write the page of each contract's methods into DOCS")
    ] = None,
    matrix: Annotated[bool, typer.Option("--matrix", help="of a contract: operations against attacks")] = False,
    evidence: Annotated[
        Path | None,
        typer.Option(
            "--evidence", metavar="RUN", help="with --matrix: the cells with a case that conforms in this run"
        ),
    ] = None,
    format_: OutputFormat = Format.TEXT,
) -> None:
    """Explain a clause, a case, a method, a reason or a contract."""
    if evidence is not None and not matrix:
        stop(Exit.USAGE, "--evidence belongs to --matrix, and says in which run cases have to conform")
    if matrix:
        # The readers of a run take longer to import than most explanations take.
        from holdfast.conformance.cli.explain.matrix import explain_matrix

        explain_matrix(name, contract, evidence, format_)
        return
    known_contracts([] if contract is None else [contract])
    if (name is None) is (write is None):
        stop(Exit.USAGE, f"expected a name or --write, got {'neither' if name is None else 'both'}")
    names = contract_names() if contract is None else (contract,)
    with ending(Exit.KIT, SpecError):
        if write is not None:
            _write(write, [load_contract(each) for each in names])
            return
        assert name is not None
        found = list(_found(name, names)) or [each for known in _ending(name, names) for each in _found(known, names)]
    if not found:
        near = meant(name, [known for contract in map(load_contract, names) for known in _known(contract)])
        stop(
            Exit.USAGE,
            f"expected the id of a clause or a case, a method or a reason, got {name!r}{near}; `holdfast list` lists "
            "them all",
        )
    if len(found) > 1:
        places = ", ".join(f"{each.name}/{name}" for each, _ in found)
        stop(Exit.USAGE, f"expected a name that is in one contract, got {name!r}; say one of {places}")
    ((where, data),) = found
    if format_ is Format.JSON:
        print_json(data)
    else:
        out().print_lines(described.lines_of(where, data))


def _found(name: str, names: Sequence[str]) -> Iterator[tuple[Contract, dict[str, Any]]]:
    """The explanation of that name in each contract that has it."""
    prefix, _, rest = name.partition("/")
    for contract in map(load_contract, names):
        own = rest if prefix == contract.name and rest else name
        if name == contract.name:
            yield contract, described.contract_data(contract)
        elif own in contract.clauses:
            yield contract, described.clause_data(contract, contract.clauses[own])
        elif own in contract.methods:
            yield contract, described.method_data(contract, contract.methods[own])
        elif own in contract.reasons:
            yield contract, described.reason_data(contract, contract.reasons[own])
        elif prefix == contract.name:
            # The ids of cases begin with the name of their contract.
            planned = next((case for case in plan_of(contract) if case.id == name), None)
            if planned is not None:
                yield contract, described.case_data(contract, planned)


def _ending(name: str, names: Sequence[str]) -> list[str]:
    """The clause whose id ends with this name, as `RP-03`, if it is one alone."""
    found = [each for contract in map(load_contract, names) for each in contract.clauses if each.endswith(f"-{name}")]
    return found if len(found) == 1 else []


def _known(contract: Contract) -> Iterator[str]:
    yield from contract.clauses
    yield from (case.id for case in plan_of(contract))
    yield from (f"{contract.name}/{each}" for each in (*contract.methods, *contract.reasons))


def _write(docs: Path, contracts: Sequence[Contract]) -> None:
    from holdfast.conformance.cli.explain.pages import COMMANDS, FOLDER, commands_page, page_of
    from holdfast.specs.binding import openapi_of

    if not docs.is_dir():
        stop(Exit.USAGE, f"--write: expected a folder, got {docs}; make it first")
    folder = docs / FOLDER
    folder.mkdir(exist_ok=True)
    for contract in contracts:
        path = folder / f"{contract.name}.md"
        path.write_text(page_of(contract), encoding="utf-8")
        out().print(f"wrote {path}")
        place = docs / "openapi" / f"{contract.name}.json"
        place.parent.mkdir(exist_ok=True)
        place.write_text(json.dumps(openapi_of(contract), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        out().print(f"wrote {place}")
    (docs / COMMANDS).write_text(commands_page(), encoding="utf-8")
    out().print(f"wrote {docs / COMMANDS}")
