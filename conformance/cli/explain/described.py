"""What a contract, a clause, a case, a method or a reason is, as plain JSON (explain.schema.json) and as lines."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from holdfast.conformance.cli.console import as_json, members
from holdfast.conformance.run.plan import PlannedCase, plan_of, suite_case_id, suite_tests
from holdfast.specs import Case, Clause, Contract
from holdfast.specs.faults import FaultCase
from holdfast.specs.model import Method, Reason
from holdfast.specs.mutants import FILE, load_mutants
from holdfast.specs.registry import folder_of
from holdfast.specs.yamlfile import read_yaml

# The keys of a step, or of a workload's parts, whose value is the name of a method.
_CALLS = ("call", "command", "job", "race", "start", "observe", "ask", "provoke")
# And those whose value is a reason, or a list of reasons.
_REASONS = ("reason", "refused")
# Parts of contract.yaml that stand in the explanation of a contract as they are written there.
_PARTS = ("summary", "parameters", "keys", "decision_order", "states", "transitions", "relations", "inspection")

_GROUP = {
    "operation": "It does something: it answers `accepted`, `refused` or `indeterminate`.",
    "observation": "It shows state and changes nothing: it answers `ok` with a value.",
    "provocation": "It is a test hook: it injects a fault and answers `ok`.",
}
_WIDTH = 118
_FITNESS = "proven by `holdfast fitness DSN` of a live surface, and by no run; see docs/fitness.md"


def written(contract: Contract) -> Mapping[str, Any]:
    """The text of contract.yaml, unchanged."""
    found: Mapping[str, Any] = read_yaml(folder_of(contract.name) / "contract.yaml")
    return found


def contract_data(contract: Contract) -> dict[str, Any]:
    """A contract without its clauses and cases."""
    parts = written(contract)
    return {
        "contract": _full_name(contract),
        **members(contract, "title", "digest", "stateless"),
        "methods": {method.name: method.title for method in contract.methods.values()},
        "reasons": {reason.name: reason.meaning for reason in contract.reasons.values()},
        **{part: parts.get(part) for part in _PARTS},
    }


def clause_data(contract: Contract, clause: Clause) -> dict[str, Any]:
    """A clause, with the cases and the mutants that belong to it."""
    declared = load_mutants(contract.name)
    return {
        "clause": clause.id,
        "contract": _full_name(contract),
        **members(clause, "level", "basis", "section", "proof", "text", "harm"),
        "where": _where(folder_of(contract.name) / "contract.yaml", clause.id),
        **members(clause, "digest", "not_testable"),
        "unbreakable": declared.unbreakable.get(clause.id),
        "cases": [
            {"case": case.id, "title": case.title, "where": _case_at(contract, case.id)}
            for case in plan_of(contract)
            if clause.id in case.clauses
        ],
        "mutants": [
            {
                "mutant": mutant.name,
                "title": mutant.title,
                "verdict": mutant.must_fail[clause.id],
                "where": _where(folder_of(contract.name) / FILE, mutant.name),
            }
            for mutant in declared.breaking(clause.id)
        ],
    }


def case_data(contract: Contract, planned: PlannedCase) -> dict[str, Any]:
    """A case, with its script or its fault; a suite test has neither."""
    case, fault = contract.case(planned.id), contract.fault(planned.id)
    script = _struck(contract, fault) if fault is not None else None if case is None else _script(case)
    return {
        "case": planned.id,
        "contract": _full_name(contract),
        "title": planned.title,
        "where": _case_at(contract, planned.id),
        **members(planned, "clauses", "scripted", "provocations", "form"),
        "script": script,
    }


def method_data(contract: Contract, method: Method) -> dict[str, Any]:
    """A method: what it takes, what it answers, and the cases whose text names it."""
    refusal = method.refusal_data
    return {
        "method": method.name,
        "contract": _full_name(contract),
        **members(method, "group", "title"),
        "capability": method.name,
        **members(method, "effects"),
        "reasons": {name: contract.reasons[name].meaning for name in method.reasons},
        "audited": method.audited if method.reasons else None,
        "args": _alone(method.args.schema),
        "result": None if method.result is None else _alone(method.result.schema),
        "refusal_data": None if refusal is None else _alone(refusal.schema),
        "cases": _naming(contract, method.name, _CALLS),
    }


def reason_data(contract: Contract, reason: Reason) -> dict[str, Any]:
    """A refusal reason: what it means, what it leaves and carries, the methods and cases that name it."""
    return {
        "reason": reason.name,
        "contract": _full_name(contract),
        **members(reason, "meaning", "audit_records", "data"),
        "when": [
            step["when"]
            for step in written(contract).get("decision_order", ())
            if reason.name in _strings(list(step.values()))
        ],
        "methods": [method.name for method in contract.methods.values() if reason.name in method.reasons],
        "cases": _naming(contract, reason.name, _REASONS),
    }


def _case_at(contract: Contract, name: str) -> str:
    """Where a script, a fault or a suite test stands."""
    case = contract.case(name)
    if case is not None:
        return _where(folder_of(contract.name) / "cases" / case.source, name)
    if contract.fault(name) is not None:
        return _where(folder_of(contract.name) / "faults.yaml", name)
    test = next(test for test, _ in suite_tests(contract.name) if suite_case_id(contract.name, test.__name__) == name)
    path, begins = Path(sys.modules[test.__module__].__file__ or ""), re.compile(rf"\s*(def )?{test.__name__}\s*[(=]")
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    # One that is made of a row of a table has a line there. One that is made of a sweep has none.
    return f"{_shown(path)}:{next((number for number, line in lines if begins.match(line)), 1)}"


def _where(path: Path, name: str) -> str:
    """The file, and the line with the id or the name of the entry."""
    begins = re.compile(rf"\s*(- )?(\{{)?(use: [^,]+, )?(id|name): {re.escape(name)}(,.*|\s*)$")
    lines = path.read_text(encoding="utf-8").splitlines()
    number = next((f":{number}" for number, line in enumerate(lines, 1) if begins.match(line)), "")
    return f"{_shown(path)}{number}"


def _shown(path: Path) -> str:
    """The path as an editor here opens it."""
    path = path.resolve()
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _full_name(contract: Contract) -> str:
    return f"{contract.name} {contract.version}"


def _alone(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with those of the shared definitions that it needs."""
    shared = schema.get("$defs", {})
    own = {key: value for key, value in schema.items() if key != "$defs"}
    needed: dict[str, Any] = {}
    waiting = [own]
    while waiting:
        for text in _strings(waiting.pop()):
            name = text.removeprefix("#/$defs/")
            if name != text and name not in needed:
                needed[name] = shared[name]
                waiting.append(shared[name])
    return {**own, "$defs": {name: needed[name] for name in shared if name in needed}} if needed else own


def _naming(contract: Contract, name: str, keys: tuple[str, ...]) -> list[str]:
    """The ids of scripted cases and faults in whose text one of these keys has that value."""
    found = [case.id for case in contract.cases if name in _values(_script(case), keys)]
    return found + [fault.id for fault in contract.faults if name in _values(_struck(contract, fault), keys)]


def _values(part: Any, keys: tuple[str, ...]) -> Iterator[str]:
    """Every string that is the value of one of these keys, or in a list that is."""
    if isinstance(part, Mapping):
        for key, value in part.items():
            if key in keys and not isinstance(value, Mapping):
                yield from _strings(value)
            yield from _values(value, keys)
    elif isinstance(part, list):
        for each in part:
            yield from _values(each, keys)


def _strings(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, Mapping):
        for value in part.values():
            yield from _strings(value)
    elif isinstance(part, list):
        for value in part:
            yield from _strings(value)


def _script(case: Case) -> dict[str, Any]:
    twin = case.twin
    parts: dict[str, Any] = {
        **members(case, "kind"),
        "open": members(case, "surface", "config"),
        **members(case, "workers", "values", "given", "when", "then"),
    }
    if twin is not None:
        parts["twin"] = {"step": twin.step, "set": as_json(twin.change), **members(twin, "at", "expect")}
    return _present(parts)


def _struck(contract: Contract, fault: FaultCase) -> dict[str, Any]:
    """The fault, its workload, and how the result is judged."""
    workload = contract.work_of(fault)
    names = ("title", "operations", "config", "prepare", "operation", "each", "facts")
    return _present({**members(fault, "layer", "promise"), "workload": workload.name, **members(workload, *names)})


def _present(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in parts.items() if value}


def lines_of(contract: Contract, data: Mapping[str, Any]) -> Iterator[str]:
    """The lines of one explanation, short members first, then each of the others under its name."""
    blocks = {}
    for key, value in data.items():
        if _is_short(key, value):
            if value not in (None, []):
                yield f"{key:<14}{', '.join(value) if isinstance(value, list) else _word(value)}"
        elif value:
            blocks[key] = value
    yield from _notes(contract, data)
    for key, value in blocks.items():
        yield ""
        if key in ("cases", "mutants"):
            yield f"{key}: {len(value)}"
            yield from (f"  {each if isinstance(each, str) else '  '.join(map(str, each.values()))}" for each in value)
        else:
            yield f"{key}:"
            yield from (f"  {line}" for line in yaml_lines(value))


def yaml_lines(value: Any) -> list[str]:
    """A part as YAML, in the order in which it is written."""
    text: str = yaml.safe_dump(value, sort_keys=False, default_flow_style=None, allow_unicode=True, width=_WIDTH)
    return text.splitlines()


def _is_short(key: str, value: Any) -> bool:
    if isinstance(value, list):
        return key not in ("cases", "mutants", "decision_order", "transitions")
    return not isinstance(value, Mapping)


def _word(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _notes(contract: Contract, data: Mapping[str, Any]) -> Iterator[str]:
    if "method" in data:
        yield _GROUP[data["group"]]
        yield f"An adapter without it lists `{data['capability']}` under `not_claimed` and answers `unsupported`."
        yield "A method that the contract does not have is answered with `fault`."
    for name in data.get("clauses", ()):
        yield f"{name}: {contract.clauses[name].text}"
    if data.get("proof") == "fitness":
        yield _FITNESS
