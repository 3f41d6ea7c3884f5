"""Values in cases: names, text with holes, copies with changes, random suffixes that can be computed again.

The rules are in `docs/case-language.md`. Everything here is pure: the gate resolves a case a second time from its
evidence and must come to the same bytes.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.vectors.derive import derive

_NAME = re.compile(r"\$([a-z_][a-z0-9_]*(?:\.[A-Za-z0-9_-]+)*)")
_NAMED = re.compile(r"\$\{?([a-z_][a-z0-9_]*)")
_HOLE = re.compile(r"\$\{([^}]*)\}|\$\$")
_SPAN = re.compile(r"([+-])([0-9]+(?:\.[0-9]{1,6})?)([smhd])")
_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MISSING = object()


class Literal(dict[str, Any]):
    """An object that came from an answer. It is compared as a plain value: an adapter cannot hand in a matcher."""


class CaseError(Exception):
    """A part of a case has no meaning: an unknown name, or a path that leads nowhere."""


class UnusableError(CaseError):
    """An answer of the adapter is not such that the case can go on with it."""


def parse_instant(text: str) -> datetime:
    """RFC 3339 in UTC with the letter Z."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)


def format_instant(moment: datetime) -> str:
    """RFC 3339 in UTC with the letter Z; a fraction only if there is one."""
    whole = moment.astimezone(UTC).replace(tzinfo=None)
    return whole.isoformat(timespec="microseconds" if whole.microsecond else "seconds") + "Z"


def shift(moment: str, step: str) -> str:
    """`moment` moved by a span such as `+300s`, or the instant that `step` names."""
    match = _SPAN.fullmatch(step)
    try:
        if match is None:
            return format_instant(parse_instant(step))
        sign, amount, unit = match.groups()
        seconds = float(amount) * _UNIT_S[unit] * (1 if sign == "+" else -1)
        return format_instant(parse_instant(moment) + timedelta(seconds=seconds))
    except (ValueError, OverflowError) as error:
        raise CaseError(f"expected an instant, or a span such as +300s, got {step!r}: {error}") from error


def at_path(value: Any, path: str) -> Any:
    """The member of `value` at a dotted path; a private marker if there is none (see `is_missing`)."""
    for part in path.split(".") if path else ():
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _MISSING
    return value


def is_missing(value: Any) -> bool:
    """Whether `at_path` found nothing."""
    return value is _MISSING


def put_path(value: Any, path: str, new: Any) -> None:
    """Set the member at a dotted path of a mutable copy. Raises CaseError when the way there does not exist."""
    *way, last = path.split(".")
    target = at_path(value, ".".join(way))
    if isinstance(target, dict):
        target[last] = new
    elif isinstance(target, list) and last.isdigit() and int(last) < len(target):
        target[int(last)] = new
    else:
        raise CaseError(f"cannot set {path!r}: there is no such place")


def drop_path(value: Any, path: str) -> None:
    """Remove the member at a dotted path of a mutable copy. Raises CaseError when it is not there."""
    *way, last = path.split(".")
    target = at_path(value, ".".join(way))
    if not isinstance(target, dict) or last not in target:
        raise CaseError(f"cannot drop {path!r}: there is no such member")
    del target[last]


def base64url(data: bytes) -> str:
    """Bytes as they travel: without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def from_base64url(text: str) -> bytes:
    """The bytes in an answer, read as leniently as its schema allows."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def decoded(text: Any) -> bytes:
    """The bytes that a text encodes. Raises ValueError for anything but base64url without padding."""
    if not isinstance(text, str):
        raise ValueError(f"expected bytes as base64url, got {type(text).__name__}")
    data = from_base64url(text)
    if base64url(data) != text:
        raise ValueError(f"not base64url without padding: {text[:40]!r}")
    return data


def names_in(value: Any) -> set[str]:
    """Every name that a value of a case uses, without the path after it."""
    if isinstance(value, str):
        return {found.split(".", 1)[0] for found in _NAMED.findall(value)}
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return {name for part in parts for name in names_in(part)}


@dataclass(frozen=True, slots=True)
class Scope:
    """The names a value can use: `defined` are those of the case's `values`, `bound` come from answers."""

    seed: str
    case: str
    side: str
    defined: Mapping[str, Any]
    opened: str
    now: str
    bound: Mapping[str, Any] = field(default_factory=dict)

    def bind(self, name: str, value: Any) -> Scope:
        """The scope with one more bound name."""
        return replace(self, bound={**self.bound, name: value})

    def at(self, now: str) -> Scope:
        """The scope at another time."""
        return replace(self, now=now)

    def digits(self, purpose: str, label: str, length: int) -> str:
        """`length` hexadecimal digits, at most 64, fixed by seed, case, side and label."""
        text = "\x1f".join((self.seed, self.case, self.side, purpose, label))
        return hashlib.sha256(text.encode()).hexdigest()[:length]

    def _lookup(self, name: str, trail: tuple[str, ...]) -> Any:
        if name in self.bound:
            return _literal(self.bound[name])
        if name not in self.defined:
            known = ", ".join(sorted({*self.bound, *self.defined}))
            raise CaseError(f"unknown name ${name}; known here: {known}")
        if name in trail:
            raise CaseError(f"${name} is defined by itself: {' -> '.join((*trail, name))}")
        # `values` have the time of the opening of the session: a request keeps its time while the clock moves on.
        return replace(self, now=self.opened)._resolve(self.defined[name], (*trail, name))

    def resolve(self, value: Any) -> Any:
        """`value` with every name, hole and copy put in, as a fresh structure.

        Raises CaseError, UnusableError where an answer was to be put in.
        """
        try:
            return self._resolve(value, ())
        except CaseError as error:
            if self._uses_an_answer(value, set()):
                raise UnusableError(str(error)) from error
            raise

    def _uses_an_answer(self, value: Any, seen: set[str]) -> bool:
        names = names_in(value) - seen
        seen |= names
        return any(
            name in self.bound or (name in self.defined and self._uses_an_answer(self.defined[name], seen))
            for name in names
        )

    def _resolve(self, value: Any, trail: tuple[str, ...]) -> Any:
        if isinstance(value, str):
            return self._text(value, trail)
        if isinstance(value, list):
            return [self._resolve(item, trail) for item in value]
        if not isinstance(value, Mapping):
            return value
        if "$from" in value:
            return self._copy(value, trail)
        if "$derive" in value:
            return _derived(value["$derive"], self._resolve(value["of"], trail))
        if "$repeat" in value:
            return str(self._resolve(value["$repeat"], trail)) * value["times"]
        if "$utf8" in value or "$hex" in value:
            return self._bytes(value, trail)
        return {key: self._resolve(item, trail) for key, item in value.items()}

    def _bytes(self, value: Mapping[str, Any], trail: tuple[str, ...]) -> str:
        """Bytes as they travel: base64url without padding. Raises CaseError for what spells no bytes."""
        if len(value) != 1:
            raise CaseError(f"bytes are written as $utf8 or as $hex and nothing beside it, not {sorted(value)}")
        ((form, operand),) = value.items()
        text = self._resolve(operand, trail)
        if not isinstance(text, str):
            raise CaseError(f"{form} takes text, not {text!r}")
        try:
            data = text.encode("utf-8") if form == "$utf8" else bytes.fromhex(text)
        except ValueError as error:
            raise CaseError(f"{form} {text[:40]!r}: {error}") from error
        return base64url(data)

    def _copy(self, value: Mapping[str, Any], trail: tuple[str, ...]) -> Any:
        copied = copy.deepcopy(self._named(value["$from"].removeprefix("$"), trail))
        for path, new in value.get("set", {}).items():
            put_path(copied, path, self._resolve(new, trail))
        for path in value.get("drop", ()):
            drop_path(copied, path)
        return copied

    def _named(self, path: str, trail: tuple[str, ...]) -> Any:
        name, _, rest = path.partition(".")
        found = at_path(self._lookup(name, trail), rest)
        if is_missing(found):
            raise CaseError(f"${path} leads nowhere")
        return found

    def _text(self, text: str, trail: tuple[str, ...]) -> Any:
        whole = _NAME.fullmatch(text)
        if whole is not None:
            return copy.deepcopy(self._named(whole.group(1), trail))
        if text.startswith("$") and not text.startswith(("$$", "${")):
            raise CaseError(f"{text!r} is no name; write `$$` for a dollar sign, or `${{name}}` inside a text")

        def fill(match: re.Match[str]) -> str:
            inner = match.group(1)
            if inner is None:
                return "$"
            if inner.startswith("rand:"):
                return self.digits("rand", inner[5:], 16)
            if inner.startswith("hex64:"):
                return self.digits("hex64", inner[6:], 64)
            if inner == "now":
                return self.now
            if inner.startswith(("now+", "now-")):
                return shift(self.now, inner[3:])
            found = self._named(inner, trail)
            if isinstance(found, bool) or not isinstance(found, str | int | float):
                raise CaseError(f"${{{inner}}} is no text and no number, so it cannot stand inside a text")
            return str(found)

        return _HOLE.sub(fill, text)


def _derived(name: str, value: Any) -> Any:
    try:
        return derive(name, value)
    except ValueError as error:
        raise CaseError(str(error)) from error


def _literal(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Literal({key: _literal(item) for key, item in value.items()})
    return [_literal(item) for item in value] if isinstance(value, list) else value
