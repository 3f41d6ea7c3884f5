"""Draft 2020-12 as jsonschema has it: what decides whether a value fits, and says why it does not.

Whoever only wants to know whether a value fits rarely needs it (`specs.predicates`), and it takes longer to import than
most adapters take to start, so `holdfast.specs.schema` imports it when it is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.validators import extend

from holdfast.specs.errors import SpecError
from holdfast.specs.pattern import found


def _fits_pattern(_validator: Any, operand: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not found(operand, value):
        yield ValidationError(f"{value!r} does not match {operand!r}")


# jsonschema hands patterns to Python as they are, and Python's `$` lets a newline pass at the end.
_Draft = extend(Draft202012Validator, {"pattern": _fits_pattern})  # type: ignore[no-untyped-call]


class Draft:
    """One schema that `check` has passed."""

    def __init__(self, schema: bool | Mapping[str, Any]) -> None:  # noqa: FBT001 - a schema may be a boolean
        """Compiles it."""
        self._validator = _Draft(schema)

    def fits(self, value: Any) -> bool:
        """Whether `value` fits."""
        return bool(self._validator.is_valid(value))

    def problem(self, value: Any) -> str | None:
        """Why `value` does not fit, in one sentence with its place; None if it fits."""
        error = best_match(self._validator.iter_errors(value))
        if error is None:
            return None
        place = "/".join(str(part) for part in error.absolute_path) or "the whole value"
        message = error.message if len(error.message) <= 300 else error.message[:300] + "…"
        return f"at {place}: {message}"


def check(schema: Mapping[str, Any], *, name: str) -> None:
    """Raise SpecError if `schema` is no draft 2020-12 schema."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        place = "/".join(str(part) for part in error.absolute_path)
        raise SpecError(f"{name}: not a JSON Schema: at {place}: {error.message}") from error
