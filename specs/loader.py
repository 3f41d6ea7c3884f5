"""The one loader of contracts. What it returns has been held to the published schemas and is consistent in itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from holdfast.specs import schema, strictjson
from holdfast.specs.consistency import check_consistent
from holdfast.specs.errors import SpecError
from holdfast.specs.kept import kept
from holdfast.specs.model import (
    Basis,
    Case,
    Clause,
    Column,
    Contract,
    FaultCase,
    FaultLayer,
    FaultWorkload,
    Group,
    Inertness,
    Inspection,
    Kind,
    Level,
    Method,
    Observer,
    Parameter,
    Promise,
    Proof,
    Reason,
    Relation,
    Twin,
)

_GROUPS = {
    "operations": Group.OPERATION,
    "observations": Group.OBSERVATION,
    "provocations": Group.PROVOCATION,
}
_NO_ARGS: Mapping[str, Any] = {"type": "object", "additionalProperties": False}
# A colon-separated list of more folders with contracts: for contracts under development and the kit's own tests.
SEARCH_PATH_VARIABLE = "HOLDFAST_SPECS"


def contract_folders() -> dict[str, Path]:
    """Where each known contract lies, by name. The shipped ones cannot be shadowed."""
    shipped = Path(__file__).resolve().parent
    extra = [Path(part) for part in os.environ.get(SEARCH_PATH_VARIABLE, "").split(os.pathsep) if part]
    found: dict[str, Path] = {}
    for root in (shipped, *extra):
        for path in sorted(root.glob("*/contract.yaml")):
            found.setdefault(path.parent.name, path.parent)
    return found


def contract_names() -> tuple[str, ...]:
    """Names of every contract that can be loaded, in order."""
    return tuple(sorted(contract_folders()))


@cache
def load_contract(name: str) -> Contract:
    """Load the contract `name`.

    Raises SpecError when there is no such contract, or when one of its files is malformed or inconsistent.
    """
    return _read(_folder_of(name), with_cases=True)


@cache
def load_terms(name: str) -> Contract:
    """The contract `name` without its cases: all that an implementation needs, in a fraction of the time.

    Raises SpecError like `load_contract`, but for methods whose schemas are none: the harness reads the same files, and
    has them checked.
    """
    return _read(_folder_of(name), with_cases=False)


def version_of(name: str) -> str:
    """The version of the contract `name`. Raises SpecError."""
    return str(kept(_folder_of(name) / "contract.yaml", _contract_file)["version"])


def _folder_of(name: str) -> Path:
    folders = contract_folders()
    if name not in folders:
        known = ", ".join(sorted(folders)) or "none"
        raise SpecError(f"unknown contract {name!r}; known contracts: {known}")
    return folders[name]


def read_contract(folder: Path) -> Contract:
    """Read the contract that lies in `folder`, cases included. Raises SpecError."""
    return _read(folder, with_cases=True)


def _read(folder: Path, *, with_cases: bool) -> Contract:
    raw, methods_raw = (
        read(folder / name) if with_cases else kept(folder / name, read)
        for name, read in (("contract.yaml", _contract_file), ("methods.yaml", _methods_file))
    )
    name = raw["contract"]
    if name != folder.name or methods_raw["contract"] != name or methods_raw["version"] != raw["version"]:
        raise SpecError(f"{folder}: contract.yaml, methods.yaml and the folder must agree on name and version")
    methods = _methods(methods_raw, folder, check=schema.check_schema if with_cases else None)
    reasons = {key: _reason(key, value) for key, value in raw["reasons"].items()}
    clauses = _clauses(raw, folder)
    paths = sorted((folder / "cases").glob("*.yaml")) if with_cases else []
    case_files = [(path, _checked(path, "cases")) for path in paths]
    cases = tuple(case for path, data in case_files for case in _cases(path, data, name))
    faults_path = folder / "faults.yaml"
    faults = _checked(faults_path, "faults") if with_cases and faults_path.exists() else None
    if faults is not None and faults["contract"] != name:
        raise SpecError(f"{faults_path}: is for contract {faults['contract']!r}, but lies in the folder of {name!r}")
    contract = Contract(
        name=name,
        version=raw["version"],
        title=raw["title"],
        parameters={key: _parameter(key, value) for key, value in raw["parameters"].items()},
        reasons=reasons,
        relations={key: _relation(key, value) for key, value in raw.get("relations", {}).items()},
        methods=methods,
        clauses=clauses,
        cases=cases,
        workloads={} if faults is None else _workloads(faults),
        faults=() if faults is None else tuple(_fault(entry, name) for entry in faults["cases"]),
        inspection=Inspection(**raw["inspection"]) if "inspection" in raw else None,
        inertness=Inertness(
            observe=raw["inertness"].get("observe"),
            audit=raw["inertness"].get("audit"),
            audit_list=raw["inertness"].get("audit_list"),
            audit_code=raw["inertness"].get("audit_code"),
            seen_by=raw["inertness"]["seen_by"],
            tree=raw["inertness"].get("tree"),
        )
        if "inertness" in raw
        else None,
        stateless=raw.get("stateless"),
        raw=raw,
        digest=strictjson.digest({"contract": _meaning(raw), "methods": methods_raw}),
        cases_digest=strictjson.digest([*(data for _, data in case_files), *([] if faults is None else [faults])]),
    )
    check_consistent(contract)
    return contract


def _meaning(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The contract without what only the kit's own teeth need, so that a new planted bug makes no evidence stale."""
    clauses = [
        {key: value for key, value in clause.items() if key not in ("mutants", "unbreakable")}
        for clause in raw["clauses"]
    ]
    return {**raw, "clauses": clauses}


def _contract_file(path: Path) -> Mapping[str, Any]:
    return _checked(path, "contract")


def _methods_file(path: Path) -> Mapping[str, Any]:
    return _checked(path, "methods")


def _checked(path: Path, schema_name: str) -> Mapping[str, Any]:
    # A start of an implementation needs no YAML.
    from holdfast.specs import yamlfile

    data = yamlfile.read_yaml(path)
    problem = schema.explain(schema.published_validator(schema_name), data)
    if problem is not None:
        raise SpecError(f"{path}: does not fit {schema_name}.schema.json: {problem}")
    checked: Mapping[str, Any] = data
    return checked


def _parameter(name: str, data: Mapping[str, Any]) -> Parameter:
    return Parameter(name, data["value"], data.get("unit"), Basis(data["basis"]), data["meaning"])


def _reason(name: str, data: Mapping[str, Any]) -> Reason:
    return Reason(name, data["meaning"], data["audit_records"], tuple(data.get("data", ())))


def _relation(name: str, data: Mapping[str, Any]) -> Relation:
    columns = {
        key: Column(key, value["type"], value.get("null", False), tuple(value.get("only", ())))
        for key, value in data["columns"].items()
    }
    return Relation(
        name=name,
        purpose=data["purpose"],
        columns=columns,
        primary_key=tuple(data["primary_key"]),
        unique={key: tuple(value) for key, value in data["unique"].items()},
        audit=data.get("audit", False),
        append_only=data.get("append_only", False),
    )


def _methods(data: Mapping[str, Any], folder: Path, *, check: Callable[..., None] | None) -> dict[str, Method]:
    shared = data.get("$defs", {})
    entries = [entry for group in _GROUPS for entry in data.get(group, {}).values()]
    parts = [entry[key] for entry in entries for key in ("args", "result", "refusal_data") if key in entry]
    if check is not None:
        # All of them at once: each schema below is one of these parts beside the same $defs.
        check({"$defs": shared, "anyOf": [{}, *parts]}, name=str(folder / "methods.yaml"))
    methods: dict[str, Method] = {}
    for group_name, group in _GROUPS.items():
        for name, entry in data.get(group_name, {}).items():
            where = f"{folder / 'methods.yaml'}: {group_name}/{name}"
            if name in methods:
                raise SpecError(f"{where}: the name is used in another group already")

            def bundle(part: Mapping[str, Any]) -> Mapping[str, Any]:
                return {**part, "$defs": shared}

            args_schema = bundle(entry.get("args", _NO_ARGS))
            result_schema = bundle(entry["result"]) if "result" in entry else None
            refusal = entry.get("refusal_data")
            methods[name] = Method(
                name=name,
                group=group,
                title=entry["title"],
                args_schema=args_schema,
                result_schema=result_schema,
                args=schema.trusted_validator(args_schema),
                result=None if result_schema is None else schema.trusted_validator(result_schema),
                refusal_data=None if refusal is None else schema.trusted_validator(bundle(refusal)),
                effects=tuple(entry.get("effects", ())),
                reasons=tuple(entry.get("reasons", ())),
                audited=entry.get("audited", True),
            )
    return methods


def _clauses(raw: Mapping[str, Any], folder: Path) -> dict[str, Clause]:
    clauses: dict[str, Clause] = {}
    for data in raw["clauses"]:
        if data["id"] in clauses:
            raise SpecError(f"{folder / 'contract.yaml'}: clause {data['id']} stands there twice")
        covered = {key: data[key] for key in ("id", "level", "basis", "section", "text", "harm", "proof")}
        clauses[data["id"]] = Clause(
            id=data["id"],
            level=Level(data["level"]),
            basis=Basis(data["basis"]),
            section=data["section"],
            text=data["text"],
            harm=data["harm"],
            proof=Proof(data["proof"]),
            mutants=tuple(data.get("mutants", ())),
            not_testable=data.get("not_testable"),
            unbreakable=data.get("unbreakable"),
            digest=strictjson.digest(covered),
        )
    return clauses


def _cases(path: Path, data: Mapping[str, Any], contract: str) -> Iterable[Case]:
    if data["contract"] != contract:
        raise SpecError(f"{path}: is for contract {data['contract']!r}, but lies in the folder of {contract!r}")
    shared = data.get("values", {})
    for entry in data["cases"]:
        opened = entry.get("open", {})
        yield Case(
            id=entry["id"],
            contract=contract,
            clause=entry["clause"],
            also=tuple(entry.get("also", ())),
            title=entry["title"],
            kind=Kind(entry["kind"]),
            surface=opened.get("surface", "ready"),
            config=dict(opened.get("config", {})),
            workers=entry.get("workers", 1),
            needs=frozenset(entry.get("needs", ())),
            observer=Observer(entry.get("observer", "apart")),
            values={**shared, **entry.get("values", {})},
            given=tuple(entry.get("given", ())),
            when=tuple(entry.get("when", ())),
            then=tuple(entry.get("then", ())),
            twin=_twin(entry, path),
            clause_digests=dict(entry.get("clause_digests", {})),
            source=path.name,
        )


def _workloads(faults: Mapping[str, Any]) -> dict[str, FaultWorkload]:
    shared = faults.get("values", {})
    return {
        name: FaultWorkload(
            name=name,
            title=data["title"],
            operations=data["operations"],
            config=dict(data.get("config", {})),
            values={**shared, **data.get("values", {})},
            prepare=tuple(data.get("prepare", ())),
            operation=data["operation"],
            facts=dict(data["facts"]),
        )
        for name, data in faults["workloads"].items()
    }


def _fault(entry: Mapping[str, Any], contract: str) -> FaultCase:
    return FaultCase(
        id=entry["id"],
        contract=contract,
        clause=entry["clause"],
        also=tuple(entry.get("also", ())),
        title=entry["title"],
        layer=FaultLayer(entry["layer"]),
        workload=entry["workload"],
        promise=Promise(entry["promise"]),
        clause_digests=dict(entry.get("clause_digests", {})),
    )


def _twin(entry: Mapping[str, Any], path: Path) -> Twin | None:
    data = entry.get("twin")
    if data is None:
        return None
    if len(data["set"]) != 1:
        raise SpecError(f"{path}: case {entry['id']}: a twin changes exactly one path, not {len(data['set'])}")
    ((place, value),) = data["set"].items()
    return Twin(data["step"], place, value, data.get("at", data["step"]), data["expect"])
