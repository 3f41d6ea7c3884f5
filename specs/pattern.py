"""Regular expressions as JSON Schema means them: in the dialect of ECMA 262, where `$` is the end and nothing less.

Python's `$` also matches before a newline at the end, so an id of printable characters with a newline after it would
fit a pattern that was written to keep newlines out; and its `\\d` also matches the digits of other scripts.
"""

from __future__ import annotations

import re
from functools import cache

from holdfast.specs.errors import SpecError


@cache
def pattern(text: str) -> re.Pattern[str]:
    """`text` compiled so that an unescaped `$` outside a class matches at the very end only.

    Raises SpecError for a text that is no regular expression.
    """
    try:
        # Digits and word characters are those of ASCII (ECMA 262, 22.2.2.9).
        return re.compile("".join(_parts(text)), re.ASCII)
    except re.error as error:
        raise SpecError(f"not a regular expression: {text!r}: {error}") from error


def found(text: str, value: str) -> bool:
    """Whether the pattern `text` occurs in `value`; not anchored, as JSON Schema has it (draft 2020-12, 6.3.3)."""
    return pattern(text).search(value) is not None


def _parts(text: str) -> list[str]:
    parts: list[str] = []
    characters = iter(text)
    in_class = False
    for character in characters:
        if character == "\\":
            character += next(characters, "")
        elif character == "[":
            in_class = True
        elif character == "]":
            in_class = False
        elif character == "$" and not in_class:
            character = r"\Z"
        parts.append(character)
    return parts
