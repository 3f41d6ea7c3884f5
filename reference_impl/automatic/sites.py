"""Every place of a contract's reference that an operator changes, each with one name that stays while its source does.

A reference is the package of its contract, and the modules beside the packages that it uses.
What only connects it with the kit is no part of it: the list stands in `specs/<contract>/automatic.yaml` with reasons.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from holdfast.reference_impl.altered import patched
from holdfast.reference_impl.automatic.operators import Place
from holdfast.reference_impl.automatic.python import Source, edits
from holdfast.reference_impl.automatic.reach import Uses, unreached
from holdfast.specs.automatic import Site, load_automatic
from holdfast.specs.mutants import load_mutants
from holdfast.specs.registry import installed

ROOT = Path(__file__).parents[1]
# They speak the protocol, find references by name, and hold a reference's lists to the files of its contract.
_MACHINERY = frozenset("__init__ __main__ adapter altered answers failpoints registry session terms tracing".split())


def files_of(contract: str) -> Mapping[str, Path]:
    """The modules of a reference as sites name them, below the package that it is in; in the order of their names.

    Of a reference that another distribution brings, its own alone.
    """
    here = installed(contract)
    beside = {each.file for each in load_automatic(contract).beside if not each.function}
    own = [path for path in _modules(contract) if path.name not in beside and path.name != "__init__.py"]
    shared: set[str] = set()
    waiting = list(own) if here.distribution is None else []
    while waiting:
        for name in _shared_imports(waiting.pop()):
            path = ROOT / f"{name}.py"
            if name not in shared and name not in _MACHINERY and path.is_file():
                shared.add(name)
                waiting.append(path)
    used = (ROOT / f"{name}.py" for name in sorted(shared) if f"{name}.py" not in beside)
    return {path.relative_to(here.reference.above.path).as_posix(): path for path in (*own, *used)}


def _modules(contract: str) -> list[Path]:
    """Those of its package, or the one that it is."""
    path = installed(contract).reference.path
    return sorted(path.glob("*.py")) or [path.with_suffix(".py")]


def _shared_imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("holdfast.reference_impl."):
            parts = node.module.split(".")
            if len(parts) == 3:
                yield parts[2]


def sites_of(contract: str) -> Iterator[Site]:
    """Every site, in the order of files and places. Two edits that make the same source are one site."""
    files = files_of(contract)
    sources = {file: Source(path.read_bytes()) for file, path in files.items()}
    uses = Uses({file: source.tree for file, source in sources.items()})
    modules = _modules(contract)
    own = [ast.parse(path.read_bytes()) for path in modules]
    shared = {file: source.tree for file, source in sources.items() if files[file] not in modules}
    idle = unreached(own, shared)
    beside = {(each.file, each.function) for each in load_automatic(contract).beside}
    for file, source in sources.items():
        for site in _sites_in(contract, file, source, uses):
            left_out = (file.rpartition("/")[2], site.function) in beside
            if not left_out and site.function.partition(".")[0] not in idle.get(file, ()):
                yield site


def _sites_in(contract: str, file: str, source: Source, uses: Uses) -> Iterator[Site]:
    digest = hashlib.sha256(source.data).hexdigest()
    ordinals: dict[tuple[int, str], int] = {}
    known: set[bytes] = {source.data}
    for place, edit in edits(source):
        changed = source.data[: edit.start] + edit.text.encode() + source.data[edit.end :]
        if changed in known:
            continue
        known.add(changed)
        line = source.data.count(b"\n", 0, edit.start) + 1
        key = line, edit.operator.value
        ordinals[key] = ordinals.get(key, 0) + 1
        yield Site(
            id=f"{file}:{line}:{edit.operator.value}:{ordinals[key]}",
            contract=contract,
            module=installed(contract).reference.above.module_in(file),
            file=file,
            digest=digest,
            line=line,
            function=place.function,
            operator=edit.operator.value,
            code=source.data.splitlines()[line - 1].decode().strip(),
            start=edit.start,
            end=edit.end,
            was=source.data[edit.start : edit.end].decode(),
            text=edit.text,
            lines=_lines(file, place, uses),
        )


def _lines(file: str, place: Place, uses: Uses) -> Mapping[str, tuple[int, ...]]:
    if place.function:
        return {file: tuple(range(place.first, place.last + 1))}
    found: dict[str, list[int]] = {}
    for where, line in sorted(uses.lines(place.names)):
        found.setdefault(where, []).append(line)
    return {where: tuple(lines) for where, lines in found.items()}


def replaced_by_bugs(contract: str) -> Mapping[str, Mapping[str, tuple[int, ...]]]:
    """For each planted bug the lines of the functions that it changes, by file. A test that executes none of them runs
    as without the bug. A bug is left out if it changes what is in no function.
    """
    found: dict[str, dict[str, list[int]]] = {}
    for mutant in load_mutants(contract).planted:
        places = [patch.lines for patch in patched(f"{contract}/{mutant.name}")]
        if places and None not in places:
            lines = found[mutant.name] = {}
            for file, numbers in filter(None, places):
                lines.setdefault(file, []).extend(numbers)
    return {name: {file: tuple(numbers) for file, numbers in lines.items()} for name, lines in found.items()}
