"""Reading YAML the way JSON is read: YAML 1.2 core scalars, no duplicate keys, no tags, no aliases, no surprises.

Under YAML 1.1, which PyYAML speaks, `NO` is a boolean and `2026-01-01` a date; `CAN_PROCEED = NO` must stay text.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import yaml

from holdfast.specs.errors import SpecError
from holdfast.specs.files import read_regular
from holdfast.specs.strictjson import MAX_SAFE_INTEGER

# A contract's longest file has some hundred kilobytes.
_LONGEST = 16 * 1024 * 1024

_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS = {"true": True, "false": False, "null": None, "~": None, "": None}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+(?:[eE][-+]?[0-9]+)?)?\Z")
# Where a number can begin: most texts are none, and are not searched.
_DIGITS = frozenset("-0123456789")


class _UnlikeJsonError(Exception):
    """A place that JSON cannot say: the text says what stands there."""

    def __init__(self, problem: str, event: Any) -> None:
        super().__init__(problem)
        self.mark = event.start_mark


class _Builder:
    """The value of one document, made from the events of the parser."""

    def __init__(self, text: str) -> None:
        self._next = _Parser(text).get_event

    def document(self) -> Any:
        self._next()
        start = self._next()
        if isinstance(start, yaml.StreamEndEvent):
            return None
        if start.version is not None or start.tags:
            raise _UnlikeJsonError("a directive; a contract file is one plain document", start)
        value = self._value(self._next())
        self._next()
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise _UnlikeJsonError("another document; a contract file is one plain document", after)
        return value

    def _value(self, event: Any) -> Any:
        kind = type(event)
        if kind is yaml.AliasEvent:
            raise _UnlikeJsonError("an alias; write the value out, or use the contract's $defs", event)
        if event.tag is not None:
            raise _UnlikeJsonError("a tag; plain scalars, lists and mappings say all there is to say", event)
        if event.anchor is not None:
            raise _UnlikeJsonError("an anchor; write the value out, or use the contract's $defs", event)
        if kind is yaml.ScalarEvent:
            return _scalar(event)
        return self._list() if kind is yaml.SequenceStartEvent else self._mapping()

    def _list(self) -> list[Any]:
        found = []
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            found.append(self._value(event))
        return found

    def _mapping(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while type(event := self._next()) is not yaml.MappingEndEvent:
            key = self._value(event)
            if not isinstance(key, str):
                raise _UnlikeJsonError(f"key {key!r} is not text; put it in quotes", event)
            if key in found:
                raise _UnlikeJsonError(f"duplicate key {key!r}", event)
            found[key] = self._value(self._next())
        return found


def _scalar(event: Any) -> Any:
    text: str = event.value
    if not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    number = _NUMBER.match(text) if text[0] in _DIGITS else None
    if number is None:
        return text
    # A number that JSON can carry too (RFC 7493 section 2.2). The length first: converting many digits is quadratic.
    whole = number[1] is None
    value = int(text) if whole and len(text) < 20 else float(text)
    if abs(value) > (MAX_SAFE_INTEGER if whole else sys.float_info.max):
        raise _UnlikeJsonError(f"number {text[:24]} is out of the range of JSON; write it as text", event)
    return value


def parse_yaml(text: str, *, name: str) -> Any:
    """Parse one YAML document; `name` is how errors call it. Raises SpecError with line and column."""
    try:
        return _Builder(text).document()
    except _UnlikeJsonError as error:
        raise _refused(name, error.mark, str(error)) from error
    except yaml.MarkedYAMLError as error:
        raise _refused(name, error.problem_mark or error.context_mark, error.problem) from error
    except RecursionError as error:
        raise SpecError(f"{name}: nested too deeply to be read; a contract is flat") from error
    except yaml.YAMLError as error:
        raise SpecError(f"{name}: not the YAML that holdfast reads: {error}") from error


def _refused(name: str, mark: Any, problem: str | None) -> SpecError:
    where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
    return SpecError(f"{name}{where}: not the YAML that holdfast reads: {problem}")


def read_yaml(path: Path) -> Any:
    """Read and parse the YAML file at `path`. Raises SpecError."""
    if path.exists() and not path.is_file():
        # A pipe would be waited for, and a device may have no end.
        raise SpecError(f"{path}: expected a plain file of YAML, got something else; check the name")
    try:
        text = read_regular(path, limit=_LONGEST).decode("utf-8")
    except FileNotFoundError as error:
        raise SpecError(f"{path}: expected a YAML file, found nothing; check the name") from error
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}") from error
    return parse_yaml(text, name=str(path))
