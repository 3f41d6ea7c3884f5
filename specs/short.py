"""What may be written short in a contract's files, and what it is in full: forms, and what entries have in common.

    forms:
      issued: {call: issue_nonce, args: {window: $window}, bind: {<name>: value.nonce}}
    cases:
      - given: [{use: issued, each: [{name: n1}, {name: n2}]}]

The loader writes all of it in full before it checks anything. So a digest is of the full form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from holdfast.specs.errors import SpecError, unknown

# The lists of a file in which an entry may be short, and those of them in which a form's name alone is an entry.
STEPS = frozenset({"given", "when", "then"})
LISTS = STEPS | {"cases", "equivalent", "beside"}
# And the mapping whose values may be.
PLACES = frozenset({"sweeps"})
# What stands in a form where a use of it differs.
_HOLE = re.compile(r"<([a-z][a-z_]*)>")
# The words of a schema whose value has names for keys, and those whose value is no schema.
_NAMED = frozenset({"members", "properties", "patternProperties", "$defs"})
_VALUES = frozenset({"const", "enum", "default", "examples"})

Entry = Mapping[str, Any]


class _Form(NamedTuple):
    """A named entry, or several of them, with holes. It may use the forms that stand before it."""

    body: Any
    known: Mapping[str, _Form]


Forms = Mapping[str, _Form]
# What fills a hole, or else what stands there if it may stay open.
Take = Callable[..., Any]


class _ShortError(ValueError):
    """What cannot be written in full, and why."""


def in_full(data: Any, path: object, shared: Mapping[str, Any] | None = None) -> Any:
    """The data of the file at `path` with every short entry in full; `shared` are forms of its contract.

    Raises SpecError.
    """
    if not isinstance(data, dict):
        return data
    own, forms = data.get("forms", {}), dict[str, _Form]()
    if not isinstance(own, dict):
        raise SpecError(f"{path}: forms: expected the entries by their names, got {own!r:.80}")
    for name, body in [*(shared or {}).items(), *own.items()]:
        if name in forms:
            raise SpecError(f"{path}: form {name!r} is one of forms.yaml; give one of the two another name")
        forms[name] = _Form(body, dict(forms))
    found: dict[str, Any] = {}
    for part, value in data.items():
        if part in LISTS and isinstance(value, list):
            numbered = enumerate(value)
            found[part] = [one for at, entry in numbered for one in _placed(entry, forms, f"{path}: {part}/{at}")]
        elif part in PLACES and isinstance(value, dict):
            found[part] = {at: _alone(entry, forms, f"{path}: {part}/{at}") for at, entry in value.items()}
        elif part == "values" and isinstance(value, dict) and value.get("use") in forms:
            found[part] = _alone(value, forms, f"{path}: {part}")
        elif part != "forms":
            found[part] = value
    return found


def schema_in_full(schema: Any, place: str) -> Any:
    """A schema with each `members` in full: an object of these members and no others, all of them required but those
    with a `?`. Raises SpecError.
    """
    try:
        return _schema(schema)
    except _ShortError as error:
        raise SpecError(f"{place}: {error}") from error


def _schemas(named: Any) -> Any:
    return {name: _schema(part) for name, part in named.items()} if isinstance(named, dict) else named


def _schema(part: Any) -> Any:
    if isinstance(part, list):
        return [_schema(one) for one in part]
    if not isinstance(part, dict):
        return part
    full = {
        word: value if word in _VALUES else _schemas(value) if word in _NAMED else _schema(value)
        for word, value in part.items()
    }
    if "members" not in full:
        return full
    members = full.pop("members")
    if not isinstance(members, dict):
        raise _ShortError(
            f"members: expected a schema for each name, such as {{id: {{type: string}}}}, got {members!r:.80}"
        )
    required = [name for name in members if not name.endswith("?")]
    properties = {name.removesuffix("?"): schema for name, schema in members.items()}
    needed = {"required": required} if required else {}
    return _together(full, {"type": "object", "additionalProperties": False, **needed, "properties": properties})


def _placed(entry: Any, forms: Forms, place: str) -> list[Any]:
    try:
        return list(_entries(entry, forms))
    except _ShortError as error:
        named = f" ({entry['id']})" if isinstance(entry, dict) and "id" in entry else ""
        raise SpecError(f"{place}{named}: {error}") from error


def _alone(entry: Any, forms: Forms, place: str) -> Any:
    found = _placed(entry, forms, place)
    if len(found) != 1:
        raise SpecError(f"{place}: expected one entry, got {len(found)}; use a form that is one")
    return found[0]


def _entries(entry: Any, forms: Forms) -> Iterator[Any]:
    """The entries for which this one stands, in full."""
    if not isinstance(entry, dict):
        yield entry
    elif "each" in entry:
        for row in _rows(entry["each"]):
            yield from _entries(_together({each: entry[each] for each in entry if each != "each"}, row), forms)
    elif "use" in entry:
        yield from _used(entry, forms)
    else:
        yield {part: _steps(value, forms) if part in STEPS else value for part, value in entry.items()}


def _steps(steps: Any, forms: Forms) -> Any:
    if not isinstance(steps, list):
        return steps
    return [full for step in steps for full in _entries({"use": step} if isinstance(step, str) else step, forms)]


def _rows(rows: Any) -> list[Entry]:
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise _ShortError(f"each: expected a list of what differs, such as [{{…}}, {{…}}], got {rows!r:.80}")
    return rows


def _together(shared: Entry, own: Entry) -> dict[str, Any]:
    for twice in sorted(shared.keys() & own.keys()):
        raise _ShortError(f"{twice} is there already, got {own[twice]!r:.80}; say it once")
    return {**shared, **own}


def _used(entry: Entry, forms: Forms) -> Iterator[Any]:
    name = entry["use"]
    if not isinstance(name, str) or name not in forms:
        raise _ShortError(unknown("form", str(name), forms))
    form = forms[name]
    said = {part: value for part, value in entry.items() if part != "use"}
    taken: set[str] = set()

    def take(hole: str, otherwise: Any = None) -> Any:
        taken.add(hole)
        if hole not in said and otherwise is None:
            got = ", ".join(said) or "nothing"
            raise _ShortError(f"form {name!r}: expected {hole}, got {got}; fill every hole")
        return said.get(hole, otherwise)

    filled = _filled(form.body, take)
    more = {part: value for part, value in said.items() if part not in taken}
    if isinstance(filled, list):
        if more:
            raise _ShortError(f"form {name!r}: expected no more than its holes, got {', '.join(more)}; it is a list")
        yield from _steps(filled, form.known)
    else:
        yield from _entries(_together(filled, more), form.known)


def _filled(part: Any, take: Take) -> Any:
    """A part of a form with what `take` has for its holes."""
    if isinstance(part, dict):
        found: dict[str, Any] = {}
        for name, value in part.items():
            found = _together(found, _members(name, value, take))
        return found
    if isinstance(part, list):
        return [_filled(one, take) for one in part]
    if not isinstance(part, str):
        return part
    whole = _HOLE.fullmatch(part)
    return _text(part, take) if whole is None else take(whole[1])


def _members(name: str, value: Any, take: Take) -> Entry:
    """The members for which one of a form stands: those that fill its hole, which may stay open, or itself."""
    if value is not None or _HOLE.fullmatch(name) is None:
        return {_text(name, take): _filled(value, take)}
    taken = take(name[1:-1], {})
    if not isinstance(taken, dict):
        raise _ShortError(f"{name[1:-1]}: expected members, such as {{a: 1}}, got {taken!r:.80}")
    return taken


def _text(part: str, take: Take) -> str:
    return _HOLE.sub(lambda hole: _word(hole[1], take(hole[1])), part)


def _word(hole: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _ShortError(f"{hole}: expected a text or an integer inside of a text, got {value!r:.80}")
    return str(value)
