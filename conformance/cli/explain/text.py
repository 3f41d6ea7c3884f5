"""An explanation as lines for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from holdfast.specs import Contract

_GROUP = {
    "operation": "It does something: it answers `accepted`, `refused` or `indeterminate`.",
    "observation": "It shows state and changes nothing: it answers `ok` with a value.",
    "provocation": "It is a test hook: it injects a fault and answers `ok`.",
}
_WIDTH = 118
_FITNESS = "proven by `holdfast fitness DSN` of a live surface, and by no run; see docs/fitness.md"


def lines_of(contract: Contract, data: Mapping[str, Any]) -> Iterator[str]:
    """The lines of one explanation, as `described` makes it: short members first, each of the others under its name."""
    blocks = {}
    for key, value in data.items():
        if _is_short(key, value):
            if value not in (None, []):
                yield f"{key:<14}{', '.join(value) if isinstance(value, list) else _plain(value)}"
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


def _plain(value: Any) -> str:
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
