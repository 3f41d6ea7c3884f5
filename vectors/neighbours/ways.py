"""What makes a near miss of a good value. Each way gives nothing where the value has no place for it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

# Letters of Cyrillic that look like these of Latin.
_LOOK_ALIKES = str.maketrans("aceopxyi", "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456")
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
# Of these characters one in a class is replaced with its neighbour in that class.
_CLASSES = ("0123456789", "abcdef", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_AUTHORITY = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)([^/?#]*)(.*)$", re.DOTALL)


def filled(template: str, value: str) -> str:
    """A template with the parts of the value in its holes."""
    half = len(value) // 2
    return template.format_map(
        {
            "v": value, "upper": value.upper(), "lower": value.lower(), "swapped": value.swapcase(),
            "head": value[:-1], "last": value[-1:], "first": value[:1], "tail": value[1:],
            "left": value[:half], "right": value[half:], "next": value[:-1] + other(value[-1:]),
        }
    )  # fmt: skip


def other(character: str) -> str:
    """Another character of the same class."""
    for characters in _CLASSES:
        if character in characters:
            return characters[(characters.index(character) + 1) % len(characters)]
    return "x" if character != "x" else "y"


def replaced(value: str, find: str, put: str | Callable[[re.Match[str]], str]) -> list[str]:
    """The value with the first place that `find` finds replaced."""
    near, count = re.subn(find, put, value, count=1)
    return [near] if count else []


def changed(value: str, at: int, stretch: str | None) -> list[tuple[str, str]]:
    """Two long values that differ in one character, at this place from the front, or from the end if negative.

    The value is made longer where it is too short, at its end for places from the front and at its beginning else.
    """
    place = at if at >= 0 else -at
    # A multiple of four, as base64 asks for.
    missing = 4 * (place // 4 + 1) - len(value) if place >= len(value) else 0
    if missing > 0 and stretch is None:
        return []
    filler = (stretch or "") * max(0, missing)
    base = value + filler if at >= 0 else filler + value
    if at < 0 and missing > 0 and _AUTHORITY.match(value):
        # A path is made longer inside, so that its scheme stays at the front.
        head, authority, rest = _groups(value)
        base = f"{head}{authority}/{filler}{rest}"
        missing += 1
    where = place if at >= 0 else len(base) - place - 1
    if at < 0 and _AUTHORITY.match(value) and where < len(value) - len(_groups(value)[2]):
        return []
    return [(base, base[:where] + other(base[where]) + base[where + 1 :])]


def typed(value: Any, good: Any) -> Any:
    """A value of another type, with the good one in place of each `{v}`."""
    if isinstance(value, str):
        if value == "{v}" and not isinstance(good, str):
            return json.dumps(good)
        return value.replace("{v}", good) if isinstance(good, str) else value
    if isinstance(value, list):
        return [good if part == "{v}" else typed(part, good) for part in value]
    if isinstance(value, Mapping):
        return {name: typed(part, good) for name, part in value.items()}
    return value


def shifted(value: float, *, add: float | None, times: float | None) -> list[float]:
    """A number and its near miss."""
    if add is not None:
        return [value + (int(add) if add == int(add) else add)]
    if times is not None:
        return [value * (int(times) if times == int(times) and times < 0 else times)]
    return []


def reshaped(code: str, value: Mapping[str, Any]) -> list[Any]:
    """An object with other members. Raises KeyError for an unknown name."""
    change = _OBJECTS[code]
    return [change(value)] if value or code == "with-unknown" else []


def _first_upper(value: Mapping[str, Any]) -> dict[str, Any]:
    first = min(value)
    return {first.upper() if name == first else name: part for name, part in value.items()}


_OBJECTS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "with-unknown": lambda value: {**value, "unknown": "x"},
    "with-prototype": lambda value: {**value, "__proto__": {}},
    "with-blank": lambda value: {**value, f"{min(value)} ": value[min(value)]},
    "with-upper": lambda value: {**value, min(value).upper(): value[min(value)]},
    "first-upper": _first_upper,
    "as-text": json.dumps,
}


def coded(code: str, value: str, *, depth: int, character: str | None) -> list[str]:
    """A near miss that needs code. Raises KeyError for an unknown name."""
    if code in _DOCUMENTS:
        try:
            return _DOCUMENTS[code](json.loads(value), depth)
        except (ValueError, RecursionError):
            return []
    if code == "wildcard":
        # The middle one, where no border hides it.
        half = len(value) // 2
        return [value[:half] + (character or "_") + value[half + 1 :]]
    return _CODES[code](value)


# Texts


def _look_alike(value: str) -> list[str]:
    for place, character in enumerate(value):
        near = character.translate(_LOOK_ALIKES)
        if near != character:
            return [value[:place] + near + value[place + 1 :]]
    return []


def _percent_encoded(value: str) -> list[str]:
    for place in range(len(value) - 1, -1, -1):
        if value[place].isascii() and value[place].isalnum():
            return [f"{value[:place]}%{ord(value[place]):02X}{value[place + 1 :]}"]
    return []


def _spare_bits(value: str) -> list[str]:
    if len(value) % 4 not in (2, 3) or value[-1] not in _ALPHABET:
        return []
    return [value[:-1] + _ALPHABET[_ALPHABET.index(value[-1]) ^ 1]]


def _padded(value: str) -> list[str]:
    missing = -len(value) % 4
    return [value + "=" * missing] if missing else []


def _other_alphabet(value: str) -> list[str]:
    near = value.replace("-", "+").replace("_", "/")
    return [near] if near != value else []


def _groups(value: str) -> tuple[str, str, str]:
    found = _AUTHORITY.match(value)
    return (found[1], found[2], found[3]) if found else ("", "", value)


def _uri(part: int, change: Callable[[str], str]) -> Callable[[str], list[str]]:
    def near(value: str) -> list[str]:
        parts = list(_groups(value))
        if not parts[part]:
            return []
        parts[part] = change(parts[part])
        return ["".join(parts)]

    return near


_CODES: Mapping[str, Callable[[str], list[str]]] = {
    "look-alike": _look_alike,
    "percent-encoded": _percent_encoded,
    "spare-bits": _spare_bits,
    "padded": _padded,
    "other-alphabet": _other_alphabet,
    "no-hyphens": lambda value: [value.replace("-", "")],
    "scheme-upper": _uri(0, str.upper),
    "authority-upper": _uri(1, str.upper),
    "path-upper": _uri(2, str.upper),
    "authority-dot": _uri(1, lambda text: f"{text}."),
    "authority-colon": _uri(1, lambda text: f"{text}:"),
    "json-text": lambda value: [json.dumps(value)],
}


# JSON documents

# More than a reader has that cuts at a kibibyte.
_BLANKS = 1100


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _object(members: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{name}:{text}" for name, text in members) + "}"


def _members(value: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(json.dumps(name), _dumped(value[name])) for name in sorted(value)]


def _at_depth(value: Any, depth: int, change: Callable[[Mapping[str, Any]], str]) -> list[str]:
    """The document with the first object at this depth written by `change`; arrays are no level of their own."""
    if isinstance(value, list):
        for place, part in enumerate(value):
            inner = _at_depth(part, depth, change)
            if inner:
                return ["[" + ",".join([*map(_dumped, value[:place]), *inner, *map(_dumped, value[place + 1 :])]) + "]"]
        return []
    if not isinstance(value, Mapping) or not value:
        return []
    if depth == 1:
        return [change(value)]
    for name in sorted(value):
        inner = _at_depth(value[name], depth - 1, change)
        if inner:
            here = json.dumps(name)
            return [_object([(key, inner[0] if key == here else text) for key, text in _members(value)])]
    return []


def _twice(value: Mapping[str, Any]) -> str:
    members = _members(value)
    return _object([*members, members[0]])


def _twice_escaped(value: Mapping[str, Any]) -> str:
    members = _members(value)
    name = json.loads(members[0][0])
    return _object([*members, (f'"\\u{ord(name[0]):04x}{name[1:]}"', members[0][1])])


def _escaped_letter(value: Mapping[str, Any]) -> str:
    members = _members(value)
    for place, (name, text) in enumerate(members):
        if text[:1] == '"' and text[1:2].isalpha():
            members[place] = (name, f'"\\u{ord(text[1]):04x}{text[2:]}')
            break
    return _object(members)


def _name_upper(value: Mapping[str, Any]) -> str:
    (name, text), *rest = _members(value)
    return _object([(name.upper(), text), *rest])


_DOCUMENTS: Mapping[str, Callable[[Any, int], list[str]]] = {
    "member-twice": lambda value, depth: _at_depth(value, depth, _twice),
    "member-twice-escaped": lambda value, depth: _at_depth(value, depth, _twice_escaped),
    "unknown-member": lambda value, depth: _at_depth(value, depth, lambda each: _dumped({**each, "unknown": "x"})),
    "members-reversed": lambda value, depth: _at_depth(value, depth, lambda each: _object(_members(each)[::-1])),
    "escaped-letter": lambda value, depth: _at_depth(value, depth, _escaped_letter),
    "name-upper": lambda value, depth: _at_depth(value, depth, _name_upper),
    "ascii": lambda value, depth: [json.dumps(value, separators=(",", ":"), sort_keys=True)] if depth == 1 else [],
    "long-blanks": lambda value, depth: _at_depth(value, depth, lambda each: "{" + " " * _BLANKS + _dumped(each)[1:]),
}
