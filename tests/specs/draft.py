"""Draft 2020-12 as jsonschema has it: the second opinion on what fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from holdfast.specs.pattern import found


def _fits_pattern(_validator: Any, operand: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not found(operand, value):
        yield ValidationError(f"{value!r} does not match {operand!r}")


# jsonschema hands patterns to Python as they are, and Python's `$` lets a newline pass at the end.
_Draft = extend(Draft202012Validator, {"pattern": _fits_pattern})  # type: ignore[no-untyped-call]


class Draft:
    """One schema of draft 2020-12."""

    def __init__(self, schema: bool | Mapping[str, Any]) -> None:
        self._validator = _Draft(schema)

    def fits(self, value: Any) -> bool:
        """Whether `value` fits."""
        return bool(self._validator.is_valid(value))
