"""A workload of a contract as operations and facts: the requests, and the facts that prove that they were done.

The name of each fact begins with the name that faults.yaml gives it, and a space.

Everything here is pure: the same seed and the same prepared answers give the same requests and the same facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holdfast.conformance.cases.session import START
from holdfast.conformance.cases.values import Scope, at_path, is_missing, shift
from holdfast.conformance.faults.subject import Facts, Instead, Op, Workload
from holdfast.specs.faults import FaultWorkload, method_of
from holdfast.specs.strictjson import canonical


def scopes_of(spec: FaultWorkload, *, contract: str, seed: str) -> dict[int, Scope]:
    """The names of each operation by its number, the probe's as the last: the same values, each with its own digits.

    `$i` is the number.
    """
    return {
        number: Scope(
            seed=seed,
            case=f"{contract}/{spec.name}/{number}",
            side="main",
            defined=spec.values,
            opened=opened_at(spec),
            now=opened_at(spec),
        ).bind("i", number)
        for number in range(1, spec.asked + 1)
    }


def opened_at(spec: FaultWorkload) -> str:
    """The frozen time at which the sessions of a workload begin."""
    return START if spec.clock is None else shift(START, spec.clock)


def seed_of(scopes: Mapping[int, Scope]) -> str:
    """The seed of everything that is generated for the workload, in hexadecimal digits.

    It is not the run's own seed: from that an adapter could compute what is to come.
    """
    return scopes[1].digits("adapter", "", 12)


def answers_of(spec: FaultWorkload, scopes: Mapping[int, Scope]) -> dict[str, Mapping[str, Any]]:
    """What the broker that is played says, by the id of the request. Raises CaseError."""
    told = [scope.resolve(answer) for scope in scopes.values() for answer in spec.answers]
    return {answer["to"]: answer for answer in told}


def request_of(step: Mapping[str, Any], scope: Scope) -> dict[str, Any]:
    """A call as it is sent. Raises CaseError."""
    return {"op": "call", "method": method_of(step), "args": scope.resolve(step.get("args", {}))}


def workload_of(
    spec: FaultWorkload, scopes: Mapping[int, Scope], before: Facts, learned: Mapping[int, Facts] | None = None
) -> Workload:
    """The operations with the facts that they set; `before` are the facts after the preparation.

    `learned` are the facts of each operation of a workload that does not say itself what they are.
    """

    def made(number: int) -> Op:
        step, scope = spec.step(number), scopes[number]
        request = request_of(step, scope)
        text = f"{request['method']} {number} {canonical(request['args']).decode()}"
        facts = learned[number] if learned is not None else dict(_set_by(spec, scope, number))
        apart = tuple(map(scope.resolve, step.get("apart", ())))
        is_later = len(spec.each) < number < spec.asked
        idle = bool({"idle", "spared"} & step.keys()) and not facts and is_later
        instead = _instead(step["instead"], scope, number, facts) if "instead" in step else None
        follows = tuple(map(scope.resolve, step.get("follows", ())))
        untrue = tuple(step.get("untrue", ()))
        return Op(
            number,
            text,
            facts,
            "anew" in step,
            apart,
            follows,
            idle,
            instead=instead,
            untrue=untrue,
            spared="spared" in step,
            command="command" in step,
        )

    *ops, probe = map(made, sorted(scopes))
    first = len(spec.each) or len(ops)
    once = [step.get("once") for step in spec.steps]
    is_prior = all(one == "prior" or "anew" in step for one, step in zip(once, spec.steps, strict=True))
    return Workload(
        tuple(ops[:first]),
        probe,
        before=before,
        once=any(once),
        prior=is_prior and any(once),
        later=tuple(ops[first:]),
        long=spec.is_long,
    )


def _instead(step: Mapping[str, Any], scope: Scope, number: int, facts: Facts) -> Instead:
    asked, whole = (Op(number, f"{one['call']} {number}", {}, part=part) for part, one in parts_of(step).items())
    return Instead(asked, whole, (*facts, *map(scope.resolve, step["about"])))


def parts_of(instead: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """What is asked for in place of an operation, and after that, by the name of its part."""
    return {"instead": instead, "whole": instead["whole"]}


def changed(before: Facts, after: Facts) -> dict[str, str]:
    """The facts that are not as before; one that is gone is a fact too."""
    names = before.keys() | after.keys()
    return {name: after.get(name, GONE) for name in sorted(names) if before.get(name, GONE) != after.get(name, GONE)}


def with_gone(facts: Facts, names: Iterable[str]) -> dict[str, str]:
    """The facts, and of these names those that are gone."""
    return {**dict.fromkeys(names, GONE), **facts}


# The value of a fact that is not there. No text and no JSON value is equal to it.
GONE = "=gone"


def _set_by(spec: FaultWorkload, scope: Scope, number: int) -> Iterator[tuple[str, str]]:
    for name, fact in spec.facts.items():
        if "rows" in fact:
            yield from facts_of_rows(name, fact, [scope.resolve(fact["columns"])]).items()
        else:
            yield fact_name(name, number), scope.resolve(fact["done"])


def fact_name(name: str, number: int) -> str:
    """The name of a method's answer to one operation."""
    return f"{name} of operation {number}"


def facts_of_rows(name: str, fact: Mapping[str, Any], rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Each column of each row as a fact. A second row of the same key is a fact of its own, unless it is allowed."""
    facts: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for row in rows:
        parts = [fact["key"]] if isinstance(fact["key"], str) else fact["key"]
        key = "/".join(text_of(row.get(part)) for part in parts)
        told = {column: text_of(row.get(column)) for column in fact["columns"] if column != fact["key"]}
        if fact.get("repeats") and seen[key] and all(facts[f"{name} {key} {c}"] == v for c, v in told.items()):
            continue
        seen[key] += 1
        place = f"{name} {key}" if seen[key] == 1 else f"{name} {key} again ({seen[key]})"
        facts |= {f"{place} {column}": value for column, value in told.items()}
    return facts


def text_of(value: Any) -> str:
    """A value for comparison: text unchanged, anything else as JSON that no text is equal to."""
    return value if isinstance(value, str) else f"={canonical(value).decode()}"


def rows_in(value: Any, path: str) -> list[Mapping[str, Any]] | None:
    """The rows in the value of an observation; None if it has none."""
    found = at_path(value, path)
    if is_missing(found) or not isinstance(found, list) or not all(isinstance(row, Mapping) for row in found):
        return None
    return found
