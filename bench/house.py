"""The picture of the house in docs/architecture.md, made from the imports: `python -m bench.house` writes it anew.

A floor imports from the floors above it alone. Parts that import one another stand in one pair of braces.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from graphlib import TopologicalSorter
from pathlib import Path

import grimp

PAGE = Path(__file__).resolve().parents[1] / "docs" / "architecture.md"
_PLACE = re.compile(r"(?<=<!-- python -m bench\.house -->\n).*?(?=<!-- end -->)", re.DOTALL)
_OPENED = "holdfast.conformance"


def imports() -> Mapping[str, Set[str]]:
    """The parts that each part of the house imports, also through others.

    A part is a folder of the house, or a folder or module of `conformance`.
    """
    graph = grimp.build_graph("holdfast", cache_dir=None)
    parts = (graph.find_children("holdfast") | graph.find_children(_OPENED)) - {_OPENED, "holdfast.__main__"}
    # The public names, which the package imports when they are asked for.
    for public in graph.find_modules_directly_imported_by("holdfast"):
        graph.remove_import(importer="holdfast", imported=public)
    for part in parts:
        graph.squash_module(part)
    return {part: parts & graph.find_upstream_modules(part) for part in parts}


def floors(below: Mapping[str, Set[str]]) -> list[list[frozenset[str]]]:
    """The parts from the one that imports nothing on; those that import one another are one group."""
    group = {part: frozenset({part, *(each for each in below[part] if part in below[each])}) for part in below}
    sorter = TopologicalSorter(
        {one: {group[each] for part in one for each in below[part]} - {one} for one in group.values()}
    )
    made = []
    sorter.prepare()
    while sorter.is_active():
        made.append(sorted(ready := sorter.get_ready(), key=sorted))
        sorter.done(*ready)
    return made


def picture() -> str:
    """The floors as a block of text."""
    lines = []
    for number, floor in enumerate(floors(imports())):
        names = [[each.removeprefix("holdfast.").replace(".", "/") for each in sorted(one)] for one in floor]
        lines.append(f"{number}  " + "   ".join(f"{{{' '.join(one)}}}" if len(one) > 1 else one[0] for one in names))
    return "```text\n" + "\n".join(lines) + "\n```\n"


def main() -> None:
    """Write the picture into the page."""
    PAGE.write_text(_PLACE.sub(lambda _: picture(), PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
