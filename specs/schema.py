"""JSON Schemas of draft 2020-12: the published ones by name, whether a value fits one, and why it does not.

The library is imported with the first value. A command of a reference's operator checks none, and starts for each call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.specs.errors import SpecError

if TYPE_CHECKING:
    import jsonschema_rs

# Where the published schemas lie.
SCHEMAS = Path(__file__).resolve().parent / "schemas"
# A message may quote the whole value.
_LONGEST = 300


# Regular expressions as JSON Schema means them: in the dialect of ECMA 262, where `$` is the end and nothing less.
# Python's `$` also matches before a newline at the end, so an id of printable characters with a newline after it would
# fit a pattern that was written to keep newlines out; and its `\d` also matches the digits of other scripts.
# What is escaped, a class, or an end.
_PARTS = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]?|\$", re.DOTALL)


@cache
def pattern(text: str) -> re.Pattern[str]:
    """`text` compiled so that an unescaped `$` outside a class matches at the very end only.

    Raises SpecError for a text that is no regular expression.
    """
    try:
        # Digits and word characters are those of ASCII (ECMA 262, 22.2.2.9).
        return re.compile(_PARTS.sub(lambda part: r"\Z" if part[0] == "$" else part[0], text), re.ASCII)
    except re.error as error:
        raise SpecError(f"not a regular expression: {text!r}: {error}") from error


def found(text: str, value: str) -> bool:
    """Whether the pattern `text` occurs in `value`; not anchored, as JSON Schema has it (draft 2020-12, 6.3.3)."""
    return pattern(text).search(value) is not None


class _Pattern:
    """The keyword `pattern`, in the one dialect of the kit; the library's engine refuses long repetitions."""

    __slots__ = ("_search", "_text")

    def __init__(self, _parent: Mapping[str, Any], text: str, _path: object) -> None:
        self._text = text
        self._search = pattern(text).search

    def validate(self, value: Any) -> None:
        """Raise ValueError, as the library asks for."""
        if isinstance(value, str) and self._search(value) is None:
            raise ValueError(f'{_json(value)} does not match "{self._text}"')


class Validator:
    """A schema that `check_schema` has passed. It is compiled when the first value comes."""

    __slots__ = ("_compiled", "schema")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """`schema` is not changed any more."""
        self.schema = schema
        self._compiled: jsonschema_rs.Draft202012Validator | None = None

    @property
    def compiled(self) -> jsonschema_rs.Draft202012Validator:
        """The compiled schema."""
        if self._compiled is None:
            self._compiled = _compile(self.schema)
        return self._compiled

    def is_valid(self, value: Any) -> bool:
        """Whether `value` fits."""
        try:
            return self.compiled.is_valid(value)
        except UnicodeEncodeError:
            # A text with a lone surrogate is no JSON.
            return False


def _compile(schema: Mapping[str, Any]) -> jsonschema_rs.Draft202012Validator:
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(dict(schema), offline=True, keywords={"pattern": _Pattern})


@cache
def published_schema(name: str) -> Mapping[str, Any]:
    """The schema `specs/schemas/NAME.schema.json`."""
    try:
        loaded: Mapping[str, Any] = json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SpecError(f"no published schema is called {name!r}") from error
    return loaded


@cache
def published_validator(name: str) -> Validator:
    """The validator of the published schema `name`."""
    return Validator(published_schema(name))


def check_schema(schema: Mapping[str, Any], *, name: str) -> None:
    """Raise SpecError if `schema` is no draft 2020-12 schema."""
    import jsonschema_rs

    try:
        _compile(schema)
    except jsonschema_rs.ValidationError as error:
        raise SpecError(f"{name}: not a JSON Schema: {_sentence(error)}") from error


def explain(validator: Validator, value: Any) -> str | None:
    """Why `value` does not fit, in one sentence with its place; None if it fits."""
    if validator.is_valid(value):
        return None
    try:
        return _sentence(_telling(validator.compiled.iter_errors(value)))
    except UnicodeEncodeError:
        return "at some place: a text has a lone surrogate, which JSON cannot hold"


def _sentence(error: jsonschema_rs.ValidationError) -> str:
    import jsonschema_rs

    place = "/".join(map(str, error.instance_path)) or "the whole value"
    message = error.message
    if isinstance(error.kind, jsonschema_rs.ValidationErrorKind.Enum):
        # The library names two of them.
        message = f"{_json(error.instance)} is not one of {', '.join(map(_json, error.kind.options))}"
    return f"at {place}: {message if len(message) <= _LONGEST else message[:_LONGEST] + '…'}"


def _telling(errors: Iterable[jsonschema_rs.ValidationError]) -> jsonschema_rs.ValidationError:
    """The error that says most: the outermost one, or what one of its alternatives says deepest inside the value."""
    outermost = min(errors, key=lambda error: (len(error.instance_path), _alternatives(error) != []))
    while alternatives := _alternatives(outermost):
        inner = sorted(alternatives, key=lambda error: -len(error.instance_path))
        if len(inner) > 1 and len(inner[0].instance_path) == len(inner[1].instance_path):
            break
        outermost = inner[0]
    return outermost


def _alternatives(error: jsonschema_rs.ValidationError) -> list[jsonschema_rs.ValidationError]:
    return [inner for branch in getattr(error.kind, "context", ()) for inner in branch]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
