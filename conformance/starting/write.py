"""Writes a new adapter into a folder."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path

import jinja2

from holdfast import requirement
from holdfast.conformance.starting.view import missing_of, schemas_of, views_of
from holdfast.specs import Contract

_FILES = Path(__file__).with_name("files")
_TEMPLATE = ".j2"
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
    """The folder cannot take a new adapter; the text says why."""


def is_name(text: str) -> bool:
    """Whether an implementation may be called so."""
    return _NAME.fullmatch(text) is not None


def write_adapter(
    contract: Contract, language: str, folder: Path, *, name: str, roles: Collection[str] = ()
) -> list[Path]:
    """Write the files into a folder that is new or empty; their paths. `roles`: only those. Raises FolderError."""
    made = rendered(contract, language, name=name, roles=roles)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FolderError(f"expected a new or an empty folder, got {folder}; nothing was written")
    try:
        for path, text in made.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise FolderError(f"expected to write {folder}, got: {error}") from error
    return [folder / path for path in made]


def rendered(contract: Contract, language: str, *, name: str, roles: Collection[str] = ()) -> dict[str, str]:
    """The text of each file by its path."""
    kept = roles or tuple(contract.roles)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FILES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - programs, no pages
    )
    environment.filters["json"] = lambda value: json.dumps(value, ensure_ascii=False)
    said = {
        "contract": contract,
        "methods": views_of(contract, language, kept),
        "missing": missing_of(contract, kept),
        "required": [f"{contract.name}/{role}" for role in roles] or [contract.name],
        "language": language,
        "name": name,
        "holdfast": requirement(),
        **COMMANDS[language],
    }
    found: dict[str, str] = {}
    for path in sorted((_FILES / language).rglob("*")):
        if path.is_file() and path.parent.name != "__pycache__":
            inside = path.relative_to(_FILES / language).as_posix()
            found[inside.removesuffix(_TEMPLATE)] = _text(environment, f"{language}/{inside}", said)
    for file, place in _COMMON.items():
        found[place] = _text(environment, f"common/{file}", said)
    if language in _CHECKED:
        found[_SCHEMAS] = json.dumps(schemas_of(contract, kept), indent=1, ensure_ascii=False) + "\n"
    return found


def _text(environment: jinja2.Environment, name: str, said: Mapping[str, object]) -> str:
    if not name.endswith(_TEMPLATE):
        return (_FILES / name).read_text(encoding="utf-8")
    return environment.get_template(name).render(**said)
