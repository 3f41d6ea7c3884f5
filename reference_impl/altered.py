"""A reference with a few places of its source changed: the change is made at import, and no source is written.

A planted bug is a patch in `mutants.yaml`: in which function, which text, replaced by which. What
`selfcheck --automatic` changes stands in a file of its own, so `--mutant FILE.json` goes wherever the name of a planted
bug goes: to the adapter, to the launcher, and to the operators' command line that an adapter starts.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from itertools import pairwise
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypeAlias

from holdfast.specs.registry import Installed, contracts

# Makes code of the source of a module, and of the path of its file.
Compiler: TypeAlias = "Callable[[bytes, str], CodeType]"
# The file of an automatic mutant; planted bugs have names without a dot.
_ENDING = ".json"
# A bug or a sound variant in mutants.yaml. An adapter starts for each session, and the whole file takes too long.
_ENTRY = r"^( *)- name: {}\n(?:\1  .*\n|\n)*"


class ChangedError(ValueError):
    """The source is another one than that in which the place was found."""


class PatchError(ValueError):
    """A patch of mutants.yaml does not fit the source: its place is not there, or not once."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """The bytes from `start` to `end` of a module's source become `text`. `digest` is the SHA-256 of the source."""

    contract: str
    module: str
    digest: str
    start: int
    end: int
    text: str


def changed(source: bytes, alterations: Sequence[Alteration]) -> bytes:
    """The source of one module with all of its alterations. Raises ChangedError, PatchError."""
    digest, made, untouched = hashlib.sha256(source).hexdigest(), source, len(source)
    for each in sorted(alterations, key=lambda one: -one.start):
        if digest != each.digest:
            raise ChangedError(f"the source of {each.module} has changed since its places were listed; list them again")
        if each.end > untouched:
            raise PatchError(f"two patches of {each.module} change one place; write them as one")
        untouched = each.start
        made = made[: each.start] + each.text.encode() + made[each.end :]
    return made


@dataclass(frozen=True, slots=True)
class Patch:
    """One change of a planted bug. `lines` are those of its function, by file; None if it is in no function."""

    alteration: Alteration
    lines: tuple[str, range] | None


@cache
def patched(mutant: str) -> tuple[Patch, ...]:
    """The changes of a planted bug, NAME or CONTRACT/NAME; empty if there is none of that name. Raises PatchError."""
    of, _, name = mutant.rpartition("/")
    for contract in [each for each in contracts().values() if of in ("", each.name)]:
        path = contract.folder / "mutants.yaml"
        text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        # The expression alone is tried at every line of every contract.
        is_here = f"- name: {name}\n" in text
        entry = re.search(_ENTRY.format(re.escape(name)), text, re.MULTILINE) if is_here else None
        if entry is not None:
            import msgspec

            from holdfast.specs.mutants import Patched
            from holdfast.specs.yamlfile import parse_yaml

            (found,) = parse_yaml(entry.group(), name=str(path))
            body = {part: value for part, value in found.items() if part in Patched.__struct_encode_fields__}
            changes = msgspec.convert(body, Patched).patch
            return tuple(_patch(contract, each.at, each.was, each.text) for each in changes)
    return ()


def _patch(contract: Installed, at: str, was: str, now: str) -> Patch:
    root = contract.reference.above
    path, names = root.path, at.split(".")
    while names and not (path := path / names.pop(0)).with_suffix(".py").is_file():
        pass
    path = path.with_suffix(".py")
    if not path.is_file():
        raise PatchError(f"patch at {at}: expected a module below {root.name}, and a function of it")
    source = path.read_bytes()
    node: Any = _parsed(source)
    for name in names:
        inner = [each for each in _definitions(node) if each.name == name]
        if len(inner) != 1:
            raise PatchError(f"patch at {at}: {name} is defined {len(inner)} times there, expected once")
        (node,) = inner
    starts = [0, *(each.end() for each in re.finditer(rb"\n", source)), len(source)]
    first = min((each.lineno for each in getattr(node, "decorator_list", ())), default=getattr(node, "lineno", 1))
    last = node.end_lineno if names else len(starts) - 1
    places = list(_places(source, starts[first - 1], starts[last], was, now))
    if len(places) != 1:
        raise PatchError(f"patch at {at}: {was!r} stands there {len(places)} times, expected once")
    ((start, old, new),) = places
    if old == new:
        raise PatchError(f"patch at {at}: it changes nothing; `now` has to differ from `was`")
    file = path.relative_to(root.path).as_posix()
    digest = hashlib.sha256(source).hexdigest()
    alteration = Alteration(contract.name, root.module_in(file), digest, start, start + len(old), new.decode())
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return Patch(alteration, (file, range(first, last + 1)) if is_function else None)


@cache
def _parsed(source: bytes) -> ast.Module:
    return ast.parse(source)


def _places(source: bytes, begin: int, end: int, was: str, now: str) -> Iterator[tuple[int, bytes, bytes]]:
    """Where `was` stands between two offsets; and both texts, moved in as far as the line of that place is."""
    head = was.partition("\n")[0].encode()
    for found in re.finditer(re.escape(head), source[begin:end]):
        place = begin + found.start()
        line = source[source.rfind(b"\n", 0, place) + 1 : place + 1]
        margin = b"\n" + line[: len(line) - len(line.lstrip(b" "))]
        old, new = (re.sub(rb"\n(?=.)", margin, text.rstrip("\n").encode()) for text in (was, now))
        if source.startswith(old, place) and place + len(old) <= end:
            yield place, old, new


def _definitions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield each
        elif isinstance(each, ast.If | ast.Try | ast.With):
            yield from _definitions(each)


def problem_of(mutant: str) -> str | None:
    """Why a bug cannot be planted: it has no patch, a place is not there once, or what a patch makes is no Python."""
    try:
        patches = patched(mutant)
        if not patches:
            return f"mutant {mutant}: has no patch, which is what plants it"
        for module, alterations in _by_module(patches).items():
            path = _path_of(module, alterations[0].contract)
            compile(changed(path.read_bytes(), alterations), path, "exec")
    except (PatchError, SyntaxError, TypeError) as error:
        return f"mutant {mutant}: {error}"
    return None


def _path_of(module: str, contract: str) -> Path:
    root = contracts()[contract].reference.above
    return root.path.joinpath(*module.removeprefix(f"{root.name}.").split(".")).with_suffix(".py")


def _by_module(patches: Sequence[Patch]) -> Mapping[str, list[Alteration]]:
    found: dict[str, list[Alteration]] = {}
    for each in patches:
        found.setdefault(each.alteration.module, []).append(each.alteration)
    return found


def read(path: str) -> Alteration:
    """The alteration of a file. Raises OSError, ValueError."""
    data = json.loads(Path(path).read_text(encoding="utf-8"))
    return Alteration(**{name: data[name] for name in Alteration.__slots__})


def install(words: Sequence[str]) -> None:
    """If a command line names a mutant, let the modules that it changes be imported so.

    Raises KeyError with the known names for an unknown one, and as `read` and `patched`.
    """
    for option, mutant in pairwise(words):
        if option == "--mutant":
            alone = mutant.endswith(_ENDING)
            found = {(one := read(mutant)).module: [one]} if alone else _by_module(patched(mutant))
            if not found:
                from holdfast.specs.mutants import declared_names

                raise KeyError(f"no mutant is called {mutant!r}; known: {', '.join(declared_names())}")
            sys.meta_path[:0] = [_Planting(module, changes) for module, changes in found.items()]


class CompilingFinder:
    """Finds modules of references, and compiles them in another way. No compiled file is read or written."""

    def compiler_of(self, module: str) -> Compiler | None:
        """What makes code of the source of this module; None where it is compiled as ever."""
        raise NotImplementedError

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        """See `MetaPathFinder`."""
        compiler = self.compiler_of(fullname)
        found = None if compiler is None else PathFinder.find_spec(fullname, path, target)
        if compiler is None or found is None or found.origin is None:
            return None
        loader = _Loader(fullname, found.origin, compiler)
        return spec_from_file_location(fullname, found.origin, loader=loader)


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, compiler: Compiler) -> None:
        super().__init__(name, path)
        self._compiler = compiler

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self._compiler(self.get_data(path), path)


class _Planting(CompilingFinder):
    """Finds the one module that is changed."""

    def __init__(self, module: str, alterations: Sequence[Alteration]) -> None:
        self._module, self._alterations = module, alterations

    def compiler_of(self, module: str) -> Compiler | None:
        """See `CompilingFinder`."""
        if module != self._module:
            return None
        return lambda source, path: compile(changed(source, self._alterations), path, "exec", dont_inherit=True)
