"""The checks of a contract that schemas cannot express: every name that is used is declared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from holdfast.specs.errors import SpecError
from holdfast.specs.faults import FaultCase, FaultLayer, FaultWorkload
from holdfast.specs.leaves import SchemaLeaf, leaves
from holdfast.specs.model import Case, CaseKind, Contract, Group, Inertness, Twin
from holdfast.specs.neighbours import Sweep
from holdfast.specs.routes import INDETERMINATE
from holdfast.specs.schema import published_schema

# With one fact an operation is there or not; only with two can it be there by half.
_LEAST_FACTS = 2
# Members of a workload's operation that need an outcome, an effect or a reason.
_OF_ANSWERS = frozenset({"refused", "anew", "untrue", "provoke", "instead"})


@cache
def step_facts(fact: str) -> Mapping[str, Any]:
    """By kind of step, what its schema says under `x-FACT`; for example the group of the method that it names."""
    kinds = published_schema("cases")["$defs"].items()
    return {name.removeprefix("step_"): form[f"x-{fact}"] for name, form in kinds if f"x-{fact}" in form}


def check_consistent(contract: Contract) -> None:
    """Every name that is used is declared. Raises SpecError with the first problems."""
    problems = [*_terms_problems(contract), *_relation_problems(contract), *_state_problems(contract)]
    for method in contract.methods.values():
        problems += [
            f"method {method.name}: undeclared reason {r}" for r in method.reasons if r not in contract.reasons
        ]
    seen: set[str] = set()
    listed: tuple[Case | FaultCase, ...] = (*contract.cases, *contract.faults)
    for each in listed:
        if each.id in seen:
            problems.append(f"case id {each.id} stands there twice")
        seen.add(each.id)
        what = "case" if isinstance(each, Case) else "fault"
        problems += [f"{what} {each.id}: unknown clause {c}" for c in each.clauses if c not in contract.clauses]
    for case in contract.cases:
        problems += [f"case {case.id}: {text}" for text in _case_problems(contract, case)]
    for fault in contract.faults:
        if fault.workload not in contract.workloads:
            problems.append(f"fault {fault.id}: unknown workload {fault.workload}")
        elif fault.operations and (fault.layer is not FaultLayer.POWER_LOSS or contract.workloads[fault.workload].each):
            problems.append(f"fault {fault.id}: operations are for power-loss and a workload of one operation")
    declared = contract.neighbours
    sweeps, unswept = ({}, {}) if declared is None else (declared.sweeps, declared.unswept)
    problems += [
        f"sweep {sweep.name}: {text}" for sweep in sweeps.values() for text in _sweep_problems(contract, sweep)
    ]
    problems += [f"unswept: {name} is no leaf of an operation" for name in unswept.keys() - leaves_of(contract).keys()]
    for workload in contract.workloads.values():
        problems += [f"workload {workload.name}: {text}" for text in _workload_problems(contract, workload)]
    if problems:
        more = f" (and {len(problems) - 8} more)" if len(problems) > 8 else ""
        raise SpecError(f"contract {contract.name}: " + "; ".join(problems[:8]) + more)


def _terms_problems(contract: Contract) -> Iterable[str]:
    """Reasons, states, keys: the parts of contract.yaml that name each other."""
    for decision in contract.decision_order:
        for name in (decision.reason, decision.otherwise):
            if name is not None and name not in contract.reasons:
                yield f"decision_order: undeclared reason {name}"
    for transition in contract.transitions:
        for name in (transition.before, transition.after):
            if name not in contract.states:
                yield f"transitions: undeclared state {name}"
    for name, key in contract.keys.items():
        if key.tag not in contract.parameters:
            yield f"keys: {name} has the tag {key.tag}, which is no parameter"
    declared = {
        member
        for method in contract.methods.values()
        if method.refusal_data is not None
        for member in _members(method.refusal_data.schema)
    }
    for reason in contract.reasons.values():
        for member in reason.data:
            if member not in declared:
                yield f"reason {reason.name}: its data has {member}, which no method's refusal_data declares"
    for inertness in filter(None, (contract.inertness, *(role.inertness for role in contract.roles.values()))):
        yield from _inertness_problems(contract, inertness)
    yield from _role_problems(contract)
    yield from _route_problems(contract)


def _route_problems(contract: Contract) -> Iterable[str]:
    """A route that lacks a status would make garbage of a right answer."""
    for name, route in contract.routes.items():
        method = contract.methods[name]
        known = {*method.effects, *method.reasons}
        yield from (f"route of {name}: no status for {each}" for each in sorted(known - route.statuses.keys()))
        strange = route.statuses.keys() - known - {INDETERMINATE}
        yield from (f"route of {name}: a status for {each}, which it never answers" for each in sorted(strange))
        members = _members(method.args.schema)
        yield from (f"route of {name}: no argument {each}" for each in sorted(route.headers.keys() - {*members}))
        unsaid = {*route.connection} - route.headers.keys()
        yield from (f"route of {name}: {each} is of the connection and no header" for each in sorted(unsaid))
        for effect in method.effects:
            if len(route.named(route.statuses.get(effect, 0))) > 1:
                yield f"route of {name}: {effect} shares its status, so nothing could tell them apart"


def _role_problems(contract: Contract) -> Iterable[str]:
    """Roles are named by clauses and methods; a method whose role is not known would be asked of every adapter."""
    if contract.roles:
        yield from (f"method {each.name}: has no role" for each in contract.methods.values() if each.role is None)
        yield from (f"clause {each.id}: has no role" for each in contract.clauses.values() if not each.roles)
    named = {f"method {each.name}": {each.role} for each in contract.methods.values() if each.role is not None}
    named |= {f"clause {each.id}": {*each.roles} for each in contract.clauses.values()}
    named |= {f"case {each.id}": {*each.roles} for each in contract.cases}
    for where, roles in named.items():
        yield from (f"{where}: unknown role {role}" for role in sorted(roles - contract.roles.keys()))
    for role in contract.roles.values():
        if role.name in contract.methods and contract.methods[role.name].role != role.name:
            yield f"role {role.name}: a method has that name, and `not_claimed` could mean either"
        if role.stateless is not None and role.inertness is not None:
            yield f"role {role.name}: has inertness and is stateless; drop one of the two"


def _inertness_problems(contract: Contract, inertness: Inertness) -> Iterable[str]:
    for observed in filter(None, (inertness.observe, inertness.audit)):
        known = contract.methods.get(observed)
        if known is None or known.group is not Group.OBSERVATION:
            yield f"inertness: {observed} is not an observation"
    if inertness.audit is not None and inertness.audit_list is None:
        yield "inertness: audit needs audit_list, the member of its value that holds the records"
    if inertness.by_harness and contract.inspection is None:
        yield "inertness: seen_by harness needs `inspection`, the store that the harness looks into"
    if inertness.by_harness and inertness.observe is not None:
        yield f"inertness: seen_by harness, so {inertness.observe} would not be looked at; leave `observe` out"
    if not inertness.by_harness and inertness.observe is None:
        yield "inertness: self-reported needs `observe`, the observation that shows the state"


def _members(schema: Any) -> Iterable[str]:
    """The members an object schema declares, through one reference to the file's $defs."""
    if not isinstance(schema, Mapping):
        return ()
    target = schema
    if "$ref" in schema:
        target = schema.get("$defs", {}).get(schema["$ref"].rpartition("/")[2], {})
    return tuple(target.get("properties", ()))


def _relation_problems(contract: Contract) -> Iterable[str]:
    for relation in contract.relations.values():
        for what, columns in (("primary_key", relation.primary_key), *relation.unique.items()):
            for column in columns:
                if column not in relation.columns:
                    yield f"relation {relation.name}: {what} names {column}, which is no column"
    inertness = contract.inertness
    if inertness is not None and inertness.audit is not None and inertness.audit_list is not None:
        result = contract.methods[inertness.audit].result if inertness.audit in contract.methods else None
        if result is not None and inertness.audit_list not in _members(result.schema):
            yield f"inertness: {inertness.audit} has no member {inertness.audit_list}"


def _state_problems(contract: Contract) -> Iterable[str]:
    """A contract shows its state, or says that it has none and then has nothing that could hold one."""
    if (contract.inertness is None) == (contract.stateless is None):
        yield (
            "expected either `inertness`, how the harness sees that a refusal changed nothing, or `stateless`, why "
            f"there is nothing to change; {'neither' if contract.stateless is None else 'both'} stand there"
        )
    if contract.stateless is None:
        return
    if contract.inspection is not None:
        yield "stateless, yet it has inspection: there is no store to look into"
    for part in ("relations", "states", "transitions"):
        if getattr(contract, part):
            yield f"stateless, yet it has {part}"
    for reason in contract.reasons.values():
        if reason.audit_records:
            yield f"stateless, yet a refusal with {reason.name} leaves {reason.audit_records} audit records"
    for method in contract.methods.values():
        if method.group is Group.OBSERVATION:
            yield f"stateless, yet {method.name} is an observation: there is nothing to look at"
        if "prior" in method.effects:
            yield f"stateless, yet {method.name} tells an earlier result: nothing keeps one"
    for case in contract.cases:
        if case.kind is CaseKind.DURABILITY:
            yield f"stateless, yet case {case.id} is about durability"


def _workload_problems(contract: Contract, workload: FaultWorkload) -> Iterable[str]:
    if contract.stateless is not None:
        yield "a stateless contract has nothing that a crash could take"
    if (workload.operation is None) is not bool(workload.each):
        yield "expected either one `operation` or `each` of several"
    others = [step["instead"] for step in workload.steps if "instead" in step]
    barred = [step["barred"] for step in workload.steps if "barred" in step]
    prepared = (one for number in range(1, workload.asked) for one in workload.prepared(number))
    for step in (*workload.steps, *others, *(one["whole"] for one in others), *barred, *prepared):
        if "provoke" in step:
            hook = contract.methods.get(step["provoke"])
            if hook is None or hook.group is not Group.PROVOCATION:
                yield f"provoke: {step['provoke']} is not one of the contract's provocations"
        if "call" not in step:
            continue
        method = contract.methods.get(step["call"])
        if method is None or method.group is not Group.OPERATION:
            yield f"call: {step['call']} is not one of the contract's operations"
        elif not set(step.get("untrue", ())) <= set(method.reasons):
            yield f"untrue: {', '.join(step['untrue'])} are not all {method.name}'s reasons"
        elif "refused" in step and step["refused"] not in method.reasons:
            yield f"refused: {step['refused']} is not among {method.name}'s reasons"
        elif step.get("once") == "prior" and ("refused" in step or "prior" not in method.effects):
            yield f"once: prior, but {method.name} is never accepted as known from before here"
    yield from _command_problems(contract, workload)
    counted = 0
    for name, fact in workload.facts.items():
        if "inspect" in fact and contract.inspection is None:
            yield f"fact {name}: inspect needs `inspection`, the store that the harness looks into"
        method = contract.methods.get(next(fact[kind] for kind in ("observe", "behind", "ask") if kind in fact))
        if method is None or method.group is Group.PROVOCATION or ("ask" not in fact and method.effects):
            yield f"fact {name}: expected an observation, or an operation that tells, got no such method"
        is_learned = "rows" in fact and not isinstance(fact["columns"], Mapping)
        if is_learned is not bool(workload.each):
            yield f"fact {name}: expected {'names' if workload.each else 'values'} of columns, for what is asked for"
        if "rows" in fact and not is_learned and fact["key"] not in fact["columns"]:
            yield f"fact {name}: its key {fact['key']} is not among its columns"
        counted += len(fact["columns"]) - (not is_learned) if "rows" in fact else 1
    if counted < _LEAST_FACTS:
        yield f"an operation shows {counted} fact; with {_LEAST_FACTS} or more it would show when half of it is there"
    if not any("rows" in fact for fact in workload.facts.values()):
        yield "expected the rows of one observation among its facts: only they show an effect that was not asked for"


def _command_problems(contract: Contract, workload: FaultWorkload) -> Iterable[str]:
    for step in workload.steps:
        if "command" not in step:
            continue
        name = step["command"]
        hook = contract.methods.get(name)
        result = {} if hook is None or hook.result is None else hook.result.schema
        if hook is None or hook.group is not Group.PROVOCATION or "status" not in result.get("required", ()):
            yield f"command: {name} is no provocation that answers with a status"
        if not workload.each:
            yield f"command: {name} stands in `operation`; what a command changes is learned, so use `each`"
        for member in sorted(_OF_ANSWERS & step.keys()):
            yield f"{member}: the command {name} answers with a status, and nothing could be compared with this"
        if step.get("once") == "prior":
            yield f"once: prior, but the command {name} does not say what it knew from before"
    for step in workload.steps:
        if "job" not in step:
            continue
        hook = contract.methods.get(step["job"])
        if hook is None or hook.group is not Group.PROVOCATION or hook.damages:
            yield f"job: {step['job']} is no provocation that leaves the store in reach"
        if not workload.each:
            yield f"job: {step['job']} stands in `operation`; what a job changes is learned, so use `each`"
        for member in sorted({"refused", "once", "untrue", "provoke", "instead"} & step.keys()):
            yield f"{member}: the job {step['job']} is done or not, and nothing could be compared with this"
    spared = ["spared" in step for step in workload.steps]
    if any(spared) and (not workload.each or spared != sorted(spared) or spared[0]):
        yield "spared: expected the last operations of `each`, and not the first, which every session asks for"
    if any({"spared", "idle"} <= step.keys() for step in workload.steps):
        yield "spared: such an operation has work in a second session, so it cannot be `idle` there"


def _case_problems(contract: Contract, case: Case) -> Iterable[str]:
    started: set[str] = set()
    watched: set[str] = set()
    labels = {"open"}
    for step in (*case.given, *case.when, *case.then):
        if "label" in step:
            if step["label"] in labels:
                yield f"label {step['label']} stands there twice"
            labels.add(step["label"])
        for action, group in step_facts("method").items():
            if action in step:
                method = contract.methods.get(step[action])
                if method is None or method.group is not Group(group):
                    yield f"{action}: {step[action]} is not one of the contract's {group}s"
        for action in ("worker", *step_facts("worker")):
            if step.get(action, 0) >= case.workers:
                yield f"{action}: {step[action]} in a case with {case.workers} workers, which count from 0"
        for action in step_facts("store").keys() & step.keys():
            if contract.inspection is None:
                yield f"{action}: the contract has no `inspection`, so it does not say where its store lies"
            elif contract.inspection.format != _FORMATS.get(action, contract.inspection.format):
                yield f"{action}: the store is {contract.inspection.format}, expected {_FORMATS[action]}"
        for action, least in step_facts("workers").items():
            if action in step and case.workers < least:
                yield f"a {action} needs at least {least} workers"
        if "as" in step:
            started.add(step["as"])
        for action in ("finish", "unanswered"):
            if action in step and step[action] not in started:
                yield f"{action}: nothing was started as {step[action]!r} before"
        watched |= {step["unanswered"]} if "unanswered" in step else set()
        watched -= {step["finish"]} if "finish" in step else set()
        yield from _expect_problems(contract, step)
    for name in sorted(watched):
        yield f"unanswered: {name} is never finished after it, so an answer that came too early would not be judged"
    if case.twin is not None:
        yield from _twin_problems(contract, case, case.twin, labels)


def _expect_problems(contract: Contract, step: Mapping[str, Any]) -> Iterable[str]:
    """An expectation that no answer of the method could meet, or that says less than it seems to."""
    expect = step.get("expect", {})
    pools = (expect, *expect.get("any", ()), expect.get("one", {}), *expect.get("rest", ()))
    operations = (step[kind] for kind, group in step_facts("method").items() if kind in step and group == "operation")
    method = contract.methods.get(next(operations, ""))
    for option in (part for pool in pools for part in (pool, *pool.get("any", ()))):
        outcome = option.get("outcome")
        if "effect" in option and outcome != "accepted":
            yield f"expects effect {option['effect']} of an outcome that is not said to be accepted"
        if "reason" in option and outcome != "refused":
            yield f"expects reason {option['reason']} of an outcome that is not said to be refused"
        reasons = option.get("reason", ())
        for reason in [reasons] if isinstance(reasons, str) else reasons:
            if reason not in (contract.reasons if method is None else method.reasons):
                of = "the contract" if method is None else method.name
                yield f"expects the reason {reason}, which is not among {of}'s"
        reports = step_facts("reports").keys() & step.keys()
        if ("value" in option or "data" in option) and outcome is None and not reports:
            yield "expects a value without an outcome; say `outcome: accepted`"


# Of the kinds of steps that work on the store, those that know one format only.
_FORMATS = {"insert": "sqlite", "probe": "sqlite", "alter": "rocksdb"}


def _twin_problems(contract: Contract, case: Case, twin: Twin, labels: set[str]) -> Iterable[str]:
    for label in (twin.step, twin.at):
        if label not in labels:
            yield f"twin names the step {label!r}, which has no such label"
    steps = [step for step in (*case.given, *case.when, *case.then) if "label" in step]
    order = ["open", *(step["label"] for step in steps)]
    if {twin.step, twin.at} <= set(order) and order.index(twin.at) < order.index(twin.step):
        yield f"twin ends at {twin.at!r}, before the step {twin.step!r} that it changes"
    ends = next((step for step in steps if step["label"] == twin.at), {})
    if not {"call", "finish"} & ends.keys():
        yield f"twin ends at {twin.at!r}, which is no call: nothing could be accepted there"
    else:
        yield from (f"twin: {text}" for text in _expect_problems(contract, {**ends, "expect": twin.expect}))


def leaves_of(contract: Contract) -> Mapping[str, SchemaLeaf]:
    """Every leaf of the contract's operations, as OPERATION:PATH. Raises SpecError for a malformed annotation."""
    return {
        f"{method.name}:{place.path}": place
        for method in contract.methods.values()
        if method.group is Group.OPERATION
        for place in leaves(method.args.schema)
    }


def _sweep_problems(contract: Contract, sweep: Sweep) -> Iterable[str]:
    known = leaves_of(contract)
    if sweep.clause not in contract.clauses:
        yield f"unknown clause {sweep.clause}"
    if "other" not in sweep.due:
        # That is what a sweep is for.
        yield "due says nothing of other"
    if (sweep.value is None) == (not sweep.leaves):
        yield "expected either leaves, which stand in arguments, or `value`, which stands in a file"
    for name in sweep.leaves:
        if name not in known:
            yield f"{name} is no leaf of an operation"
        elif known[name].leaf is None:
            yield f"{name} has no kind; say it in methods.yaml as x-leaf"
        elif sweep.original is None and known[name].encoded:
            yield f"{name} lies in an encoded text; give `original`, and a probe that encodes $y"
    steps = [*((step, Group.OPERATION) for step in (sweep.probe, *sweep.given) if "call" in step)]
    steps += [(step, Group.PROVOCATION) for step in sweep.given if "provoke" in step]
    for step, group in steps:
        name = step["call"] if group is Group.OPERATION else step["provoke"]
        method = contract.methods.get(name)
        if method is None or method.group is not group:
            yield f"{name} is not one of the contract's {group.value}s"
    if "call" not in sweep.probe:
        yield "the probe is no call"
