"""Reading YAML the way JSON is read: YAML 1.2 core scalars, no duplicate keys, no tags, no aliases, no surprises.

Under YAML 1.1, which PyYAML speaks, `NO` is a boolean and `2026-01-01` a date; `CAN_PROCEED = NO` must stay text.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, ClassVar

import yaml

from holdfast.specs.errors import SpecError
from holdfast.specs.files import read_regular
from holdfast.specs.strictjson import MAX_SAFE_INTEGER

# A contract's longest file has some hundred kilobytes.
_LONGEST = 16 * 1024 * 1024

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _CoreLoader(_Base):  # type: ignore[misc]
    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    # The signature is PyYAML's.
    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} is not text; put it in quotes", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key!r}", key_node.start_mark)
            seen.add(key)
        return dict(super().construct_mapping(node, deep=deep))

    def construct_number(self, node: Any) -> int | float:
        """A number that JSON can carry too (RFC 7493 section 2.2)."""
        integer = node.tag == "tag:yaml.org,2002:int"
        value = int(node.value) if integer and len(node.value) < 20 else float(node.value)
        if abs(value) > (MAX_SAFE_INTEGER if integer else sys.float_info.max):
            problem = f"number {node.value[:24]} is out of the range of JSON; write it as text"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return value


_CORE = (
    ("tag:yaml.org,2002:bool", r"^(?:true|false)$", "tf"),
    ("tag:yaml.org,2002:null", r"^(?:null|~|)$", "n~"),
    ("tag:yaml.org,2002:int", r"^-?(?:0|[1-9][0-9]*)$", "-0123456789"),
    ("tag:yaml.org,2002:float", r"^-?(?:0|[1-9][0-9]*)\.[0-9]+(?:[eE][-+]?[0-9]+)?$", "-0123456789"),
)
for _tag, _pattern, _first in _CORE:
    _CoreLoader.add_implicit_resolver(_tag, re.compile(_pattern), [*_first, ""] if "null" in _tag else list(_first))
for _tag in ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
    _CoreLoader.add_constructor(_tag, _CoreLoader.construct_number)

# Where a tag, an anchor or an alias may stand; only texts that have such a place pay for being scanned.
_UNLIKE_JSON = re.compile(r"(?:^|[\s\[{,])[!&*]")
_REFUSED = {
    yaml.TagToken: "a tag; plain scalars, lists and mappings say all there is to say",
    yaml.AnchorToken: "an anchor; write the value out, or use the contract's $defs",
    yaml.AliasToken: "an alias; write the value out, or use the contract's $defs",
    yaml.DirectiveToken: "a directive; a contract file is one plain document",
}


def _refuse_what_json_lacks(text: str) -> None:
    for token in yaml.scan(text, Loader=_Base):
        if type(token) in _REFUSED:
            raise yaml.constructor.ConstructorError(None, None, _REFUSED[type(token)], token.start_mark)


def parse_yaml(text: str, *, name: str) -> Any:
    """Parse one YAML document; `name` is how errors call it. Raises SpecError with line and column."""
    try:
        if _UNLIKE_JSON.search(text) or text.startswith("%"):
            _refuse_what_json_lacks(text)
        return yaml.load(text, Loader=_CoreLoader)  # noqa: S506 - a subclass of the safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise SpecError(f"{name}{where}: not the YAML that holdfast reads: {error.problem}") from error
    except RecursionError as error:
        raise SpecError(f"{name}: nested too deeply to be read; a contract is flat") from error
    except yaml.YAMLError as error:
        raise SpecError(f"{name}: not the YAML that holdfast reads: {error}") from error


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
