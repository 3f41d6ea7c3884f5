"""Near misses of a key: other spellings that a surface must refuse. Only the usual ones, because there is no end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

# From a consumed key to the neighbour, and a text that describes the neighbour.
Neighbour: TypeAlias = tuple[Callable[[str], str], str]
# By the end of the name of its probe, in the order in which they are tried.
NEIGHBOURS: Mapping[str, Neighbour] = {
    "upper": (str.upper, "in upper case"),
    "space": (lambda key: f"{key} ", "with a space at its end"),
    "leading-space": (lambda key: f" {key}", "with a space before it"),
    "newline": (lambda key: f"{key}\n", "with a line feed at its end"),
    "tab": (lambda key: f"{key}\t", "with a tab at its end"),
    "sha256": (lambda key: f"sha256:{key}", "with sha256: before it"),
    "version": (lambda key: f"v1:{key}", "with v1: before it"),
    "0x": (lambda key: f"0x{key}", "with 0x before it"),
    "zero": (lambda key: f"0{key}", "with a zero before it"),
    "doubled": (lambda key: f"{key}{key}", "twice in a row"),
}
# SQLite only, because no text of PostgreSQL holds a NUL: length() and GLOB stop at the first one.
NUL_NEIGHBOURS: Mapping[str, Neighbour] = {
    "nul": (lambda key: f"{key}\0", "with a NUL at its end"),
    "nul-tail": (lambda key: f"{key}\0x", "with a NUL and more at its end"),
}
