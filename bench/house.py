"""The picture of the house in docs/architecture.md, made from the imports: `python -m bench.house` writes it anew.

A floor imports from the floors above it alone. Parts that import one another stand in one pair of braces.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Set
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

PAGE = Path(__file__).resolve().parents[1] / "docs" / "architecture.md"
_PLACE = re.compile(r"(?<=<!-- python -m bench\.house -->\n).*?(?=<!-- end -->)", re.DOTALL)


def part_of(module: str) -> str:
    """The part of the house that a module belongs to: a folder, of `conformance` a folder or module in it."""
    parts = module.split(".")[1:]
    return "/".join(parts[:2]) if parts[0] == "conformance" else parts[0]


def imports() -> Mapping[str, Set[str]]:
    """The parts that each part imports."""
    graph = grimp.build_graph("holdfast", cache_dir=None)
    found: defaultdict[str, set[str]] = defaultdict(set)
    for module in graph.modules - {"holdfast", "holdfast.conformance", "holdfast.__main__"}:
        of = found[part_of(module)]
        of |= {part_of(each) for each in graph.find_modules_directly_imported_by(module) if each.count(".")}
    return {part: imported - {part, "conformance"} for part, imported in found.items()}


def reached(graph: Mapping[str, Set[str]], part: str) -> Set[str]:
    """All that a part imports, also through others."""
    found: set[str] = set()
    waiting = [part]
    while waiting:
        new = graph.get(waiting.pop(), set()) - found
        found |= new
        waiting += new
    return found


def floors(graph: Mapping[str, Set[str]]) -> list[list[frozenset[str]]]:
    """The parts from the one that imports nothing on; those that import one another are one group."""
    whole = {part: reached(graph, part) for part in graph}
    group = {
        part: frozenset({part, *(each for each in all_ if part in whole.get(each, ()))}) for part, all_ in whole.items()
    }
    above = {
        one: {group[each] for part in one for each in graph[part] if each in group} - {one} for one in group.values()
    }
    sorter, made = TopologicalSorter(above), []
    sorter.prepare()
    while sorter.is_active():
        made.append(sorted(ready := sorter.get_ready(), key=sorted))
        sorter.done(*ready)
    return made


def picture() -> str:
    """The floors as a block of text."""
    lines = [
        f"{number}  "
        + "   ".join(" ".join(sorted(one)) if len(one) == 1 else f"{{{' '.join(sorted(one))}}}" for one in floor)
        for number, floor in enumerate(floors(imports()))
    ]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def main() -> None:
    """Write the picture into the page."""
    PAGE.write_text(_PLACE.sub(lambda _: picture(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
