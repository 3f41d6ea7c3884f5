"""What the gate asks of a run as a whole, before any case."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from holdfast.conformance.gate.model import Expected, Findings, GateReason, ReasonCode, Requirement, held, some_of
from holdfast.conformance.run.documents import CONTRACT
from holdfast.conformance.run.kit import pin_of
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.verdict import Exit, Verdict, can_be_excused, exit_of, gravest, gravest_finding
from holdfast.reports.earlier import PARTIAL, PREVIOUS
from holdfast.reports.evidence import Claimed, DefectKind, Header, KitIdentity, Run
from holdfast.specs import Contract

# Clocks of machines in one installation differ by seconds. With more difference a run claims to be from the future.
CLOCK_TOLERANCE = timedelta(minutes=5)
# How many findings show what is wrong with a file.
_DEFECTS_SHOWN = 5

_CODE_OF = {
    DefectKind.CUT_OFF: ReasonCode.CUT_OFF,
    DefectKind.UNKNOWN_VERDICT: ReasonCode.UNKNOWN_VERDICT,
}
# The reason to hold a run with such an end; its verdict lines do not change it.
_ENDED = {
    Exit.KIT: (ReasonCode.KIT_FAULT, "the run ended with a fault of the kit itself; see its console output"),
    Exit.ADAPTER: (ReasonCode.ADAPTER_FAILED, "the adapter failed before any case; try `holdfast doctor -- CMD…`"),
    Exit.EXPECTATION: (
        ReasonCode.EXPECTATIONS_STALE,
        "the expected-failures file of the run did not say the truth; mend it and run again",
    ),
    Exit.USAGE: (ReasonCode.DAMAGED, "the run ended as a usage error, which leaves no evidence; run again"),
}


def of_file(run: Run) -> Iterator[GateReason]:
    """Damage."""
    for defect in run.defects[:_DEFECTS_SHOWN]:
        code = _CODE_OF.get(defect.kind, ReasonCode.DAMAGED)
        lead = "the evidence is not complete" if code is ReasonCode.CUT_OFF else "the evidence is damaged"
        yield held(code, f"{lead}: {defect}")
    if len(run.defects) > _DEFECTS_SHOWN:
        more = len(run.defects) - _DEFECTS_SHOWN
        yield held(ReasonCode.DAMAGED, f"the evidence is damaged: {more} more findings")


def of_name(path: Path) -> Iterator[GateReason]:
    """The meaning of a file's name: a later run set the file aside, or its run did not end."""
    names = {str(path), os.path.realpath(path)}
    if any(name.endswith(PREVIOUS) for name in names):
        text = f"{path} is of an older run, which a later one set aside; give the evidence of the later one"
        yield held(ReasonCode.OLDER_RUN, text)
    if any(name.endswith(PARTIAL) for name in names):
        text = f"{path} is of a run that has not come to its end, or never did; wait for it, or run again"
        yield held(ReasonCode.UNFINISHED_RUN, text)


def of_vectors(run: Run, required: Sequence[Requirement]) -> Iterator[GateReason]:
    """Evidence of `holdfast vectors verify` where contracts are `required`: it is of documents, and proves none."""
    verdicts = [Verdict(line.verdict) for line in run.verdicts]
    names = ", ".join(each.name for each in required) or "a contract"
    right = sum(verdict is Verdict.CONFORMS for verdict in verdicts)
    for line in run.vectors:
        text = (
            f"{line.count} generated documents of seed {line.seed} in the profile {line.profile}, {right} of "
            f"{len(verdicts)} categories conform. Documents prove no clause of {names}: run `holdfast verify` with an "
            f"adapter. --require {CONTRACT}/vectors asks for documents"
        )
        status = gravest([Exit.INCOMPLETE, *map(exit_of, verdicts)])
        code = {Exit.FAIL_OPEN: ReasonCode.FAIL_OPEN, Exit.KIT: ReasonCode.KIT_FAULT}.get(status, ReasonCode.NOT_IN_RUN)
        yield GateReason(code, f"the run is one of `holdfast vectors verify`: {text}", status)


def of_libraries(header: Header, kit: KitIdentity, expected: Expected) -> Findings:
    """What the run used in another version than is installed: a note, or a reason where the same are asked for."""
    ran, here = header.kit.libraries, kit.libraries
    apart = [f"{name} {ran[name]} (here {here[name]})" for name in sorted(ran.keys() & here) if ran[name] != here[name]]
    apart += [f"no version of {name}" for name in sorted(here.keys() - ran)]
    if not apart:
        return Findings((), ())
    text = f"the run had other libraries: {', '.join(apart)}"
    if expected.same_libraries:
        mends = "run again, or install what `holdfast report constraints` prints"
        return Findings((held(ReasonCode.OTHER_KIT, f"{text}; {mends}"),), ())
    return Findings((), (f"{text}; its exchanges were judged again with those of here",))


def of_run(run: Run, header: Header, *, kit: KitIdentity, now: datetime, max_age: timedelta) -> Iterator[GateReason]:
    """The kit, the selection, the age and the end of a run."""
    if (header.kit.name, header.kit.version) != (kit.name, kit.version):
        text = f"the run was made by {header.kit.name} {header.kit.version}, installed is {kit.name} {kit.version}"
        yield held(ReasonCode.OTHER_KIT, f"{text}; run again with the installed one")
    elif header.kit.digest != kit.digest:
        brought = [pin.distribution for pin in header.contracts if pin.distribution is not None]
        what = " or ".join([f"holdfast {kit.version}", *brought])
        text = f"the run was made by other code that calls itself {what} too; run again with the installed one"
        yield held(ReasonCode.OTHER_KIT, text)
    if header.selection.expression is not None:
        text = (
            f"the run was narrowed to {header.selection.expression!r}; run again without narrowing "
            "(of verify -k, --clause, --case, --category, --no-faults, --quick; of pytest -k, -m, --lf, an id)"
        )
        yield held(ReasonCode.NARROWED, text)
    yield from _age(run, header, now=now, max_age=max_age)
    yield from _end(run)


def of_parts(run: Run, header: Header) -> Iterator[GateReason]:
    """Reasons where the parts of a header, and the kinds of its lines, do not belong together."""
    names = [pin.contract for pin in header.contracts]
    strange = [case for case in header.plan if case.partition("/")[0] not in names]
    if len(set(names)) != len(names) or list(header.selection.contracts) != names or strange:
        text = "the contracts that it selects, names and plans are not the same"
        yield held(ReasonCode.DAMAGED, f"the evidence contradicts itself: {text}; run again")
    if run.vectors:
        text = "a line of `holdfast vectors verify` stands among those of `holdfast verify`"
        yield held(ReasonCode.EXTRA_RESULTS, f"{text}; run again")


def _age(run: Run, header: Header, *, now: datetime, max_age: timedelta) -> Iterator[GateReason]:
    finished = header.started if run.footer is None else run.footer.finished
    if max(header.started, finished) > now + CLOCK_TOLERANCE:
        text = (
            f"the run is from the future: it says {max(header.started, finished).isoformat()}, now is {now.isoformat()}"
        )
        yield held(ReasonCode.FUTURE, f"{text}; set the clocks right and run again")
    elif finished < header.started:
        yield held(ReasonCode.DAMAGED, "the run finished before it started; run again")
    elif finished - header.started + CLOCK_TOLERANCE < timedelta(microseconds=_last_us(run)):
        text = f"the run took {finished - header.started} by its clock, its exchanges took longer"
        yield held(ReasonCode.DAMAGED, f"the evidence contradicts itself: {text}; run again")
    elif now - header.started > max_age:
        text = f"the run is {_span(now - header.started)} old, at most {_span(max_age)} are allowed; run again"
        yield held(ReasonCode.STALE, text)


def _last_us(run: Run) -> int:
    """The end of the last exchange, in microseconds since the run began."""
    return max((line.received_us or line.sent_us or 0 for line in run.exchanges), default=0)


def _span(span: timedelta) -> str:
    hours = span.total_seconds() / 3600
    return f"{hours / 24:.1f} days" if hours >= 48 else f"{hours:.1f} hours"


def _end(run: Run) -> Iterator[GateReason]:
    if run.footer is None:
        return
    ended = Exit(run.footer.exit)
    if ended in _ENDED:
        code, text = _ENDED[ended]
        yield GateReason(code, text, Exit.INCOMPLETE if ended is Exit.USAGE else ended)
    shown = gravest_finding(Verdict(line.verdict) for line in run.verdicts).value
    due = _exits_due(run)
    if ended not in _ENDED and ended not in due:
        if ended in {gravest([exit_, Exit.INCOMPLETE]) for exit_ in due}:
            text = "the run ended as incomplete beside its verdicts: it was narrowed, or a clause has no case"
            yield held(ReasonCode.NOT_PROVEN, f"{text}; see the notes of the run")
        else:
            text = (
                f"the footer says exit {int(ended)}, the verdict lines call for {' or '.join(str(int(d)) for d in due)}"
            )
            yield held(ReasonCode.DAMAGED, f"the evidence contradicts itself: {text}; run again")
    if run.verdicts and run.footer.verdict != shown:
        text = f"the footer says {run.footer.verdict}, the gravest finding is {shown}"
        yield held(ReasonCode.DAMAGED, f"the evidence contradicts itself: {text}; run again")


def _exits_due(run: Run) -> tuple[Exit, ...]:
    """The exit statuses that can follow from the lines of a run alone: what is not supported counts only for a MUST."""
    exits = {
        Verdict(line.verdict): exit_of(Verdict(line.verdict))
        for line in run.verdicts
        if not (line.excused is not None and can_be_excused(Verdict(line.verdict)))
    }
    planned = () if run.header is None else run.header.plan
    shown = {line.case for line in run.verdicts}
    missing = [Exit.INCOMPLETE] if not run.verdicts or any(case not in shown for case in planned) else []
    supported = [exit_ for verdict, exit_ in exits.items() if verdict is not Verdict.UNSUPPORTED]
    return tuple(dict.fromkeys((gravest([*exits.values(), *missing]), gravest([*supported, *missing]))))


def of_contract(header: Header, requirement: Requirement) -> Iterator[GateReason]:
    """Compares the contract of the run with the installed one, and with the adapter's claim of it."""
    yield from of_pin(header, requirement.contract)
    if any(pin.contract == requirement.contract.name for pin in header.contracts):
        yield from _plan(header, requirement)
        yield from _claim(header.adapter.claims, requirement)


def of_pin(header: Header, contract: Contract) -> Iterator[GateReason]:
    """Compares the contract of the run with the installed one."""
    pins = [pin for pin in header.contracts if pin.contract == contract.name]
    if len(pins) != 1:
        ran = ", ".join(pin.contract for pin in header.contracts) or "none"
        text = f"{contract.name} is required, the run is about {ran}; run with --contract {contract.name}"
        yield held(ReasonCode.NOT_IN_RUN, text)
        return
    (pin,), here = pins, pin_of(contract)
    differing = [
        what
        for what, ran, installed in (
            ("version", pin.version, here.version),
            ("contract", pin.digest, here.digest),
            ("cases", pin.cases_digest, here.cases_digest),
            ("package", pin.distribution, here.distribution),
        )
        if ran != installed
    ]
    if differing:
        text = f"{contract.name}: the run had another {' and '.join(differing)} than what is installed"
        yield held(ReasonCode.OTHER_CONTRACT, f"{text}; run again")


def _plan(header: Header, requirement: Requirement) -> Iterator[GateReason]:
    """The plan must follow from the installed contract: the run's own plan counts nothing."""
    name = requirement.contract.name
    due = [case.id for case in plan_of(requirement.contract)]
    known = set(due)
    found = [case for case in header.plan if case in known or case.startswith(f"{name}/")]
    if found == due:
        return
    present = set(found)
    missing = [case for case in due if case not in present]
    extra = [case for case in found if case not in known]
    parts = [
        f"{len(missing)} cases are not in the run's plan ({some_of(missing)})" if missing else "",
        f"{len(extra)} cases in it are unknown ({some_of(extra)})" if extra else "",
    ]
    said = "; ".join(filter(None, parts)) or "the cases stand in another order, or more than once"
    text = f"{name}: the plan of the run is not the plan of the installed contract: {said}; run again"
    yield held(ReasonCode.OTHER_PLAN, text, tuple(missing + extra))


def _claim(claims: Sequence[Claimed], requirement: Requirement) -> Iterator[GateReason]:
    contract = requirement.contract
    versions = [claim.version for claim in claims if claim.contract == contract.name]
    if contract.version not in versions:
        came = f"version {', '.join(versions)} of it" if versions else "nothing of the kind"
        text = f"{contract.name} {contract.version} is required, the adapter claims {came}; see `claims` in its hello"
        yield held(ReasonCode.NOT_CLAIMED, text)


def foreign_results(run: Run, header: Header) -> Iterator[GateReason]:
    """Results and exchanges of cases that are in no plan."""
    planned = set(header.plan)
    cases = sorted(({line.case for line in run.verdicts} | {line.case for line in run.exchanges}) - planned)
    if cases:
        text = f"the evidence speaks of {len(cases)} cases that are not in its plan ({some_of(cases)}); run again"
        yield held(ReasonCode.EXTRA_RESULTS, text, tuple(cases))


def of_baseline(run: Run, header: Header, baseline: Run) -> Iterator[GateReason]:
    """The claims of the adapter in an earlier run that it no longer makes."""
    before = baseline.header
    if baseline.defects or before is None:
        what = str(baseline.defects[0]) if baseline.defects else "it has no header"
        text = f"the baseline is damaged: {what}; give a whole run"
        yield held(ReasonCode.BASELINE_UNUSABLE, text)
    elif baseline.digest == run.digest or before.started > header.started:
        text = "the baseline is not older than the run; --baseline takes the run of an earlier build"
        yield held(ReasonCode.BASELINE_UNUSABLE, text)
    if before is None:
        return
    now = {claim.contract: claim for claim in header.adapter.claims}
    for claim in before.adapter.claims:
        kept = now.get(claim.contract)
        if kept is None:
            text = f"{claim.contract} was claimed in the baseline and is claimed no longer"
            yield GateReason(ReasonCode.CLAIM_DROPPED, text, Exit.EXPECTATION)
            continue
        lost = tuple(name for name in kept.not_claimed if name not in claim.not_claimed)
        if lost:
            text = f"{claim.contract}: claimed in the baseline and no longer: {some_of(lost)}"
            yield GateReason(ReasonCode.CLAIM_DROPPED, text, Exit.EXPECTATION)
