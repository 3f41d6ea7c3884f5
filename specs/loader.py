"""The one loader of contracts. What it returns fits the published schemas and is consistent in itself.

The harness reads the YAML files at each start: an adapter runs as the same user and could change a kept form of them,
and with it a verdict. Only what an implementation reads for itself (`kept_terms`) comes from a kept form.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from holdfast.specs import schema, strictjson
from holdfast.specs.consistency import check_consistent
from holdfast.specs.entry import Entry
from holdfast.specs.errors import SpecError
from holdfast.specs.model import CaseKind, Clause, Contract, Group
from holdfast.specs.registry import folder_of
from holdfast.specs.schema import Validator
from holdfast.specs.short import in_full, schema_in_full

AnyEntry = TypeVar("AnyEntry", bound=Entry)
# What a report says of a clause that failed; it decides nothing.
_SAID = frozenset({"harm_of", "harm_if"})
# What a contract sends or stores, and so may hold a member `expect` of its own.
_SENT = frozenset({"args", "set", "row", "rows", "values", "content"})
_GROUPS = {
    "operations": Group.OPERATION,
    "observations": Group.OBSERVATION,
    "provocations": Group.PROVOCATION,
}
_SCHEMAS = ("args", "result", "refusal_data")


@cache
def load_contract(name: str) -> Contract:
    """Load the contract `name`.

    Raises SpecError when there is no such contract, or when one of its files is malformed or inconsistent.
    """
    return _read(folder_of(name), name, with_cases=True)


@cache
def load_terms(name: str) -> Contract:
    """The contract `name` without its cases, in a fraction of the time.

    Raises SpecError like `load_contract`, but does not check the schemas of methods.
    """
    return _read(folder_of(name), name, with_cases=False)


@cache
def kept_terms(name: str) -> Contract:
    """`load_terms` for an implementation, which is started for each session: from the kept form of the files."""
    return _read(folder_of(name), name, with_cases=False, from_kept=True)


@cache
def version_of(name: str) -> str:
    """The version of the contract `name`. Raises SpecError."""
    return str(kept(folder_of(name) / "contract.yaml", _contract_file)["version"])


# A file of a contract as JSON beside it, so that an implementation parses no YAML each time it is started:
# `__pycache__/contract.yaml.json` is to `contract.yaml` what a compiled module is to its source. It names the digest of
# the bytes that it was made from, and is made again when they change.


def kept(path: Path, read: Callable[[Path], Any]) -> Any:
    """The result of `read` for the file at `path`, from JSON if that was kept; raises the errors of `read`."""
    place = path.parent / "__pycache__" / f"{path.name}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        source = strictjson.digest_bytes(path.read_bytes())
        found = json.loads(place.read_bytes())
        if found["source"] == source:
            return found["value"]
    value = read(path)
    if not sys.dont_write_bytecode:
        # A folder without write permission keeps no JSON.
        with contextlib.suppress(OSError):
            _keep(place, {"source": strictjson.digest_bytes(path.read_bytes()), "value": value})
    return value


def _keep(place: Path, found: dict[str, Any]) -> None:
    """Write it so that another process reads all of it or nothing."""
    place.parent.mkdir(exist_ok=True)
    written = place.with_name(f"{place.name}.{os.getpid()}")
    try:
        written.write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
        written.replace(place)
    finally:
        written.unlink(missing_ok=True)


def read_contract(folder: Path, name: str | None = None) -> Contract:
    """Read the contract that lies in `folder`, which has its name unless one is given. Raises SpecError."""
    return _read(folder, name or folder.name, with_cases=True)


def _read(folder: Path, name: str, *, with_cases: bool, from_kept: bool = False) -> Contract:
    terms, methods = (
        kept(folder / file, read) if from_kept else read(folder / file)
        for file, read in (("contract.yaml", _contract_file), ("methods.yaml", _methods_file))
    )
    clauses = [{part: value for part, value in one.items() if part not in _SAID} for one in terms["clauses"]]
    binding = {member: value for member, value in terms.items() if member != "remedies"} | {"clauses": clauses}
    if terms["contract"] != name or methods["contract"] != name or methods["version"] != terms["version"]:
        what = "contract.yaml, methods.yaml and the folder, or the entry point, must agree on name and version"
        raise SpecError(f"{folder}: {what}; expected the contract {name}")
    if with_cases:
        _check_schemas(methods, folder / "methods.yaml")
    paths = sorted((folder / "cases").glob("*.yaml")) if with_cases else []
    names = [clause["id"] for clause in clauses]
    there = {file for file in ("faults", "neighbours", "forms") if with_cases and (folder / f"{file}.yaml").exists()}
    forms = of_contract(folder / "forms.yaml", "forms", name)["forms"] if "forms" in there else {}
    cases = {path.name: _spelt(_proving(of_contract(path, "cases", name, forms), names, path)) for path in paths}
    faults, neighbours = (
        _spelt(of_contract(folder / f"{file}.yaml", file, name, forms)) if file in there else None
        for file in ("faults", "neighbours")
    )
    if neighbours is not None:
        neighbours = {**neighbours, "sweeps": {name: _swept(one) for name, one in neighbours["sweeps"].items()}}
    contract = msgspec.convert(
        {
            **terms,
            "parameters": _placed(terms["parameters"]),
            "reasons": _placed(terms["reasons"]),
            "roles": _placed(terms.get("roles", {})),
            "remedies": _placed(terms.get("remedies", {})),
            "relations": _relations(terms.get("relations", {})),
            "clauses": _clauses(terms["clauses"], folder / "contract.yaml"),
            "methods": _methods(methods, folder / "methods.yaml"),
            "cases": [case for source, data in cases.items() for case in _cases(data, source)],
            "workloads": {} if faults is None else _workloads(faults),
            "faults": [] if faults is None else [{**fault, "contract": name} for fault in faults["cases"]],
            "digest": strictjson.digest({"contract": binding, "methods": methods}),
            "neighbours": None if neighbours is None else _neighbours(neighbours),
            "cases_digest": strictjson.digest(
                [*cases.values(), *(file for file in (neighbours, faults) if file is not None)]
            ),
        },
        Contract,
        dec_hook=_validator,
    )
    check_consistent(contract)
    return contract


def _validator(_kind: type, value: Any) -> Validator:
    return Validator(value)


def _contract_file(path: Path) -> Mapping[str, Any]:
    terms = _checked(path, "contract")
    return {**terms, "clauses": [{**Clause.UNSAID, **clause} for clause in terms["clauses"]]}


def _methods_file(path: Path) -> Mapping[str, Any]:
    methods = _checked(path, "methods")
    groups = {
        group: {
            name: {
                part: schema_in_full(value, f"{path}: {group}/{name}/{part}") if part in _SCHEMAS else value
                for part, value in entry.items()
            }
            for name, entry in methods[group].items()
        }
        for group in _GROUPS
        if group in methods
    }
    shared = {name: schema_in_full(part, f"{path}: $defs/{name}") for name, part in methods.get("$defs", {}).items()}
    return {**methods, **groups, **({"$defs": shared} if shared else {})}


def _checked(path: Path, schema_name: str, forms: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    # A start of an implementation needs no YAML.
    from holdfast.specs import yamlfile

    data = yamlfile.read_yaml(path)
    if schema_name not in ("forms", "fitness-queries"):
        data = in_full(data, path, forms)
    problem = schema.explain(schema.published_validator(schema_name), data)
    if problem is not None:
        raise SpecError(f"{path}: does not fit {schema_name}.schema.json: {problem}")
    checked: Mapping[str, Any] = data
    return checked


def of_contract(path: Path, schema_name: str, name: str, forms: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """A file of the contract `name`, which may use `forms` and fits its published schema. Raises SpecError."""
    data = _checked(path, schema_name, forms)
    if data["contract"] != name:
        raise SpecError(f"{path}: is for contract {data['contract']!r}, but lies in the folder of {name!r}")
    return data


def read_file(path: Path, schema_name: str, kind: type[AnyEntry], name: str) -> AnyEntry | None:
    """The file at `path`, of the contract `name`, as its type; None if it is not there. Raises SpecError."""
    if not path.exists():
        return None
    data = of_contract(path, schema_name, name)
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise SpecError(f"{path}: {error}") from error


def _proving(data: Mapping[str, Any], clauses: list[str], path: Path) -> dict[str, Any]:
    """A file of cases, each with its kind and its clause."""
    return {**data, "cases": [{"kind": _kind(case), **_clause(case, clauses, path), **case} for case in data["cases"]]}


def _kind(case: Mapping[str, Any]) -> str:
    kind: str = (CaseKind.REFUSAL if "twin" in case else CaseKind.BEHAVIOUR).value
    return kind


def _clause(case: Mapping[str, Any], clauses: list[str], path: Path) -> Mapping[str, str]:
    """The clause whose id ends with the topic of the case's id, where the case names none."""
    if "clause" in case:
        return {}
    topic = case["id"].split("/")[1]
    found = [name for name in clauses if name.lower().endswith(f"-{topic}")]
    if len(found) != 1:
        of = f"a clause whose id ends with {topic!r}, got {', '.join(found) or 'none'}"
        raise SpecError(f"{path}: case {case['id']}: expected {of}; say `clause: ID`")
    return {"clause": found[0]}


def _spelt(data: Any) -> Any:
    """The data with each short expectation in full: `new`, `prior`, an outcome, a reason, or a list of reasons."""
    if isinstance(data, list):
        return [_spelt(part) for part in data]
    if not isinstance(data, dict):
        return data
    return {
        name: part if name in _SENT else _expected(part) if name == "expect" else _spelt(part)
        for name, part in data.items()
    }


def _expected(said: Any) -> Any:
    if isinstance(said, list):
        return {"outcome": "refused", "reason": said}
    if not isinstance(said, str):
        several = {"any", "rest"} & {*said}
        return {
            name: [_expected(one) for one in part] if name in several else _expected(part) if name == "one" else part
            for name, part in said.items()
        }
    if said.isupper():
        return {"outcome": "refused", "reason": said}
    return {"outcome": "accepted", "effect": said} if said in ("new", "prior") else {"outcome": said}


def _swept(sweep: Mapping[str, Any]) -> dict[str, Any]:
    again = {"again": _expected(sweep["again"])} if "again" in sweep else {}
    return {**sweep, "due": {name: _expected(part) for name, part in sweep["due"].items()}, **again}


def _placed(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Entries with their keys as their names."""
    return {name: {**entry, "name": name} for name, entry in entries.items()}


def _relations(entries: Mapping[str, Any]) -> dict[str, Any]:
    return _placed({name: {**entry, "columns": _placed(entry["columns"])} for name, entry in entries.items()})


def _check_schemas(methods: Mapping[str, Any], path: Path) -> None:
    entries = [entry for group in _GROUPS for entry in methods.get(group, {}).values()]
    parts = [entry[key] for entry in entries for key in _SCHEMAS if key in entry]
    # All of them at once: each method's schema is one of these parts beside the same $defs.
    schema.check_schema({"$defs": methods.get("$defs", {}), "anyOf": [{}, *parts]}, name=str(path))


def _methods(data: Mapping[str, Any], path: Path) -> dict[str, Any]:
    shared = data.get("$defs", {})
    methods: dict[str, Any] = {}
    for group_name, group in _GROUPS.items():
        for name, entry in data.get(group_name, {}).items():
            if name in methods:
                raise SpecError(f"{path}: {group_name}/{name}: the name is used in another group already")
            bundled = {key: {**entry[key], "$defs": shared} for key in _SCHEMAS if key in entry}
            methods[name] = {**entry, **bundled, "name": name, "group": group.value}
    return methods


def _clauses(entries: list[Mapping[str, Any]], path: Path) -> dict[str, Any]:
    clauses: dict[str, Any] = {}
    for entry in entries:
        if entry["id"] in clauses:
            raise SpecError(f"{path}: clause {entry['id']} stands there twice")
        digest = strictjson.digest({key: entry[key] for key in Clause.BINDING})
        clauses[entry["id"]] = {**entry, "digest": digest}
    return clauses


def _cases(data: Mapping[str, Any], source: str) -> list[dict[str, Any]]:
    return [
        {**case, "contract": data["contract"], "source": source, "values": _values(data, case)}
        for case in data["cases"]
    ]


def _workloads(data: Mapping[str, Any]) -> dict[str, Any]:
    return _placed({name: {**load, "values": _values(data, load)} for name, load in data["workloads"].items()})


def _neighbours(data: Mapping[str, Any]) -> dict[str, Any]:
    sweeps = {name: {**sweep, "values": _values(data, sweep)} for name, sweep in data["sweeps"].items()}
    return {**data, "sweeps": _placed(sweeps)}


def _values(file: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    """The values of an entry: those of its file, and its own."""
    return {**file.get("values", {}), **entry.get("values", {})}
