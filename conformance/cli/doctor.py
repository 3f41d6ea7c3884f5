"""`holdfast doctor -- CMD…`: the handshake and the usual mistakes of adapters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec
import typer

from holdfast.conformance.cli.console import Format, OutputFormat, ending, in_style, out, print_json, table_of
from holdfast.conformance.cli.greeted import greeted
from holdfast.conformance.cli.group import with_options
from holdfast.conformance.cli.target import Service, TargetOptions, known_contracts
from holdfast.conformance.doctor.conversation import Examination, Health, examine, left_out
from holdfast.conformance.run.plan import usable
from holdfast.conformance.run.settings import RunSettings
from holdfast.conformance.verdict import Exit, Verdict
from holdfast.specs import SpecError, load_contract

_PREFLIGHT = "pre-flight"
_COLOUR = {Health.GOOD: "green", Health.BAD: "bold red", Health.SKIPPED: "yellow"}


@dataclass(frozen=True, kw_only=True)
class Options(TargetOptions):
    """What the command line asks for."""

    contract: Annotated[str | None, typer.Option("--contract", help="open a session of this contract")] = None
    service: Service = None
    format_: OutputFormat = Format.TEXT


@with_options(Options)
def doctor(options: Options) -> Exit:
    """Examine an adapter before verifying it: `holdfast doctor -- COMMAND…`, or `holdfast doctor reference`."""
    contract, target = options.contract, options.target
    known_contracts([] if contract is None else [contract])
    settings = options.settings_for((), seed="doctor")
    # A contract of the user's own, which the adapter claims, may be wrong.
    with ending(Exit.USAGE, SpecError):
        found = examine(settings, contract=contract)
        if target.is_server:
            # This start was that of holdfast's own adapter.
            found = [item for item in found if (item.name, item.health) != ("start", Health.GOOD)]
        if target.is_server and all(item.health is not Health.BAD for item in found):
            found += _preflights(settings, contract)
        found += left_out()
    if options.format_ is Format.JSON:
        print_json({"examinations": [msgspec.to_builtins(item) for item in found]})
    else:
        table = table_of("examined", "worker", "health", "found", "what to do")
        for item in found:
            table.add_row(
                item.name,
                "-" if item.worker is None else str(item.worker),
                in_style(item.health.value, _COLOUR[item.health]),
                item.found,
                item.advice,
            )
        out().print_table(table)
    bad = [item for item in found if item.health is Health.BAD]
    if any(item.name in ("start", "hello", "launcher", _PREFLIGHT) for item in bad):
        return Exit.ADAPTER
    return Exit.NON_CONFORMING if bad else Exit.OK


def _preflights(settings: RunSettings, contract: str | None) -> list[Examination]:
    """What `holdfast verify` asks of a server before it judges anything."""
    with greeted(settings, ()) as (engine, greeting):
        names = [claim.contract for claim in greeting.claims if claim.contract in usable()[0]]
        asked = [load_contract(name) for name in names if contract in (None, name)]
        judged = [engine.preflight(each) for each in asked]
    return [
        Examination(_PREFLIGHT, Health.GOOD, f"{each.name} can be asked")
        if one.verdict is Verdict.CONFORMS
        else Examination(_PREFLIGHT, Health.BAD, one.detail, one.advice)
        for each, one in zip(asked, judged, strict=True)
    ]
