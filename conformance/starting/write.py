"""A new adapter or contract from a template: what a template says of a contract, and the files that are written."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2

from holdfast import DISTRIBUTION, __version__, requirement
from holdfast.specs import Contract, Method
from holdfast.specs.leaves import resolved
from holdfast.specs.lint import reviewed_now
from holdfast.specs.loader import read_contract
from holdfast.specs.lock import FILE as LOCK
from holdfast.specs.lock import Lock, write_lock
from holdfast.specs.model import Group

# What a member is, and what it is called in each language.
_KINDS = ("string", "integer", "number", "boolean", "array", "object", "any")
_TYPES: Mapping[str, Sequence[str]] = {
    "python": ("str", "int", "float", "bool", "list[Any]", "dict[str, Any]", "Any"),
    "node": ("string", "number", "number", "boolean", "any[]", "Record<string, any>", "any"),
    "go": ("string", "int64", "float64", "bool", "[]any", "map[string]any", "any"),
    "rust": ("String", "i64", "f64", "bool", "Vec<Value>", "Value", "Value"),
    "java": ("String", "Long", "Double", "Boolean", "List<Object>", "Map<String, Object>", "Object"),
}
LANGUAGES = tuple(_TYPES)


@dataclass(frozen=True, slots=True)
class Member:
    """An argument: its name on the wire, its type, and whether it may be left out."""

    name: str
    type: str
    optional: bool

    @property
    def camel(self) -> str:
        """Its name as a type or an exported field has it."""
        return camel(self.name)


@dataclass(frozen=True, slots=True)
class View:
    """One method as a template sees it."""

    name: str
    group: str
    title: str
    effects: Sequence[str]
    reasons: Sequence[str]
    members: Sequence[Member]
    result: Sequence[str]

    @property
    def camel(self) -> str:
        """Its name as a type."""
        return camel(self.name)

    @property
    def python(self) -> str:
        """Its name as a method of Python has it."""
        return f"{self.name}_" if keyword.iskeyword(self.name) else self.name


def methods_of(contract: Contract, roles: Collection[str]) -> Sequence[Method]:
    """The methods of these roles and of no role, in the order of the contract."""
    return [method for method in contract.methods.values() if method.role is None or method.role in roles]


def missing_of(contract: Contract, roles: Collection[str]) -> Mapping[str, str]:
    """What is not claimed at first: each of these methods, and the roles that are no part of it."""
    others = {name: "not a part of it" for name in contract.roles if name not in roles}
    return {**{method.name: "not there yet" for method in methods_of(contract, roles)}, **others}


def schemas_of(contract: Contract, roles: Collection[str]) -> Mapping[str, Any]:
    """The schema of each method's arguments, its group and its reasons, for a program that checks what it is sent."""
    return {
        method.name: {
            "group": method.group.value,
            "reasons": list(method.reasons),
            "args": _plain(method.args.schema),
        }
        for method in methods_of(contract, roles)
    }


def _view(method: Method, language: str) -> View:
    shared = method.args.schema.get("$defs", {})
    schema = resolved(method.args.schema, shared)
    required = schema.get("required", ())
    types = dict(zip(_KINDS, _TYPES[language], strict=True))
    members = [
        Member(name, types[_kind(part, shared)], name not in required)
        for name, part in schema.get("properties", {}).items()
    ]
    answer: Mapping[str, Any] = {} if method.result is None else method.result.schema
    result = resolved(answer, answer.get("$defs", {}))
    return View(
        method.name,
        method.group.value,
        method.title,
        method.effects if method.group is Group.OPERATION else (),
        method.reasons,
        members,
        tuple(result.get("properties", {})),
    )


def _kind(part: Any, shared: Mapping[str, Any]) -> str:
    part = resolved(part, shared) if isinstance(part, Mapping) else {}
    kind = part.get("type", "any")
    if "enum" in part and all(isinstance(each, str) for each in part["enum"]):
        return "string"
    return kind if isinstance(kind, str) and kind in _KINDS else "any"


def _plain(part: Any) -> Any:
    """A schema without what is for the kit alone."""
    if isinstance(part, Mapping):
        return {name: _plain(each) for name, each in part.items() if name != "x-leaf"}
    if isinstance(part, list | tuple):
        return [_plain(each) for each in part]
    return part


def camel(name: str) -> str:
    """`hold_at` as `HoldAt`."""
    return "".join(word.capitalize() for word in re.split(r"[_-]", name))


_FILES = Path(__file__).with_name("files")
_TEMPLATE = ".j2"
# `holdfast.Adapter` rests on it too.
_PYTHON = Path(__file__).with_name("holdfast_adapter.py")
# Files of every language, and where they go.
_COMMON = {
    "README.md.j2": "README.md",
    "github.yml.j2": ".github/workflows/holdfast.yml",
    "gitlab.yml.j2": ".gitlab-ci.yml",
    "gitignore.j2": ".gitignore",
}
_SCHEMAS = "methods.json"
# Languages whose helper library checks arguments by that file.
_CHECKED = frozenset({"python", "node"})
# What builds an adapter, what starts it, and what CI needs before that.
COMMANDS: Mapping[str, Mapping[str, str]] = {
    "python": {
        "build": "",
        "start": "python3 adapter.py",
        "image": "python:3.12",
        "setup": "pip install jsonschema-rs",
    },
    "node": {"build": "npm install", "start": "node adapter.mjs", "image": "node:22", "setup": ""},
    "go": {"build": "go build -o adapter .", "start": "./adapter", "image": "golang:1.24", "setup": ""},
    "rust": {
        "build": "cargo build --release",
        "start": "./target/release/adapter",
        "image": "rust:1.85",
        "setup": "",
    },
    "java": {
        "build": "mvn -q package",
        "start": "java -jar target/adapter.jar",
        "image": "maven:3-eclipse-temurin-17",
        "setup": "",
    },
}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,62}")


class FolderError(Exception):
    """The folder cannot take what is new; the text says why."""


def is_name(text: str) -> bool:
    """Whether an implementation may be called so."""
    return _NAME.fullmatch(text) is not None


def write_adapter(
    contract: Contract, language: str, folder: Path, *, name: str, roles: Collection[str] = ()
) -> list[Path]:
    """Write the files into a folder that is new or empty; their paths. `roles`: only those. Raises FolderError."""
    made = rendered(contract, language, name=name, roles=roles, below=below(folder))
    must_be_new(folder)
    return put(folder, made)


def must_be_new(folder: Path) -> None:
    """Raises FolderError for a folder that has something in it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderError(f"expected a new or an empty folder, got {folder}; nothing was written")


def put(folder: Path, made: Mapping[str, str]) -> list[Path]:
    """Write these texts into a folder; their paths. Raises FolderError."""
    try:
        for path, text in made.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise FolderError(f"expected to write {folder}, got: {error}") from error
    return [folder / path for path in made]


def below(folder: Path) -> str:
    """The path of a folder in its Git repository; empty at its root, and outside of any."""
    whole = folder.absolute()
    root = next((each for each in (whole, *whole.parents) if (each / ".git").exists()), whole)
    return "" if root == whole else whole.relative_to(root).as_posix()


def rendered(
    contract: Contract, language: str, *, name: str, roles: Collection[str] = (), below: str = ""
) -> dict[str, str]:
    """The text of each file by its path; `below` is the folder's path in its repository."""
    kept = roles or tuple(contract.roles)
    environment = _environment()
    said = {
        "contract": contract,
        "methods": [_view(method, language) for method in methods_of(contract, kept)],
        "missing": missing_of(contract, kept),
        "required": [f"{contract.name}/{role}" for role in roles] or [contract.name],
        "language": language,
        "name": name,
        "below": below,
        "holdfast": requirement(contract.extra or ""),
        **COMMANDS[language],
    }
    found = {path: _text(environment, name, said) for path, name in templates_in(language).items()}
    for file, place in _COMMON.items():
        found[place] = _text(environment, f"common/{file}", said)
    if language == "python":
        found[_PYTHON.name] = _PYTHON.read_text(encoding="utf-8")
    if language in _CHECKED:
        found[_SCHEMAS] = json.dumps(schemas_of(contract, kept), indent=1, ensure_ascii=False) + "\n"
    return found


def templates_in(folder: str) -> dict[str, str]:
    """The templates in a folder: the path of the file that each makes, and its name."""
    paths = [path for path in sorted((_FILES / folder).rglob("*")) if path.is_file()]
    inside = [path.relative_to(_FILES / folder).as_posix() for path in paths if path.parent.name != "__pycache__"]
    return {name.removesuffix(_TEMPLATE): f"{folder}/{name}" for name in inside}


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FILES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - programs, no pages
    )
    environment.filters["json"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment


_CONTRACT = "contract"
# It holds digests of what the others say.
_MEASURED = "baselines.json"


def write_contract(name: str, folder: Path) -> list[Path]:
    """Write a contract into a folder that is new or empty, as the project of a package; the paths of its files.

    Raises FolderError.
    """
    must_be_new(folder)
    package = f"{name.replace('-', '_')}_contract"
    environment = _environment()
    said: dict[str, object] = {
        "name": name,
        "package": package,
        "prefix": name.upper(),
        "distribution": DISTRIBUTION,
        "version": __version__,
    }
    templates = templates_in(_CONTRACT)
    measured = templates.pop(f"package/{_MEASURED}")
    texts = {path: _text(environment, template, said) for path, template in templates.items()}
    made = put(folder, {path.replace("package/", f"src/{package}/"): text for path, text in texts.items()})
    data = folder / "src" / package
    contract = read_contract(data, name)
    write_lock(data, Lock(name, reviewed_now(contract)))
    return [*made, data / LOCK, *put(data, {_MEASURED: _text(environment, measured, {**said, "contract": contract})})]


def _text(environment: jinja2.Environment, name: str, said: Mapping[str, object]) -> str:
    if not name.endswith(_TEMPLATE):
        return (_FILES / name).read_text(encoding="utf-8")
    return environment.get_template(name).render(**said)
