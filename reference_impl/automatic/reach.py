"""Which lines use the names that a statement outside of every function binds.

Such a statement runs when its module is imported. A test meets its change where a function uses a name that it binds,
itself or by way of another such statement. Names are compared as they are written, over all modules of a reference, so
the answer has too many lines rather than too few.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping


class Uses:
    """The names that the statements of some modules use."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        # In functions: each name with the lines where it is used. Outside: used names and bound names, by statement.
        self._lines: dict[str, set[tuple[str, int]]] = {}
        self._outside: list[tuple[set[str], set[str]]] = []
        for file, tree in trees.items():
            self._body(file, tree.body, inside=False, owner=set())

    def lines(self, names: Iterable[str]) -> frozenset[tuple[str, int]]:
        """Where functions use these names, or a name that is made of them: files and lines."""
        known = set(names)
        while more := {name for used, bound in self._outside if used & known for name in bound} - known:
            known |= more
        return frozenset(place for name in known for place in self._lines.get(name, ()))

    def _body(self, file: str, body: list[ast.stmt], *, inside: bool, owner: set[str]) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self._body(file, node.body, inside=True, owner=owner)
            elif isinstance(node, ast.ClassDef):
                bases = {name for base in node.bases for name in _names(base)}
                self._outside.append((bases, {node.name}))
                self._body(file, node.body, inside=inside, owner=owner | {node.name})
            elif inside:
                for each in ast.walk(node):
                    for name in _own_names(each):
                        self._lines.setdefault(name, set()).add((file, getattr(each, "lineno", node.lineno)))
            elif not isinstance(node, ast.Import | ast.ImportFrom):
                stored = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and _is_stored(each)}
                self._outside.append((set(_names(node)) - stored, stored | owner))


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _names(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        yield from _own_names(each)


def _own_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.keyword) and node.arg is not None:
        yield node.arg
