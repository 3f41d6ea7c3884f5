"""Which lines use the names that a statement outside of every function binds, and what nothing uses.

Such a statement runs when its module is imported. A test meets its change where a function uses a name that it binds,
itself or by way of another such statement. Names are compared as they are written, over all modules of a reference, so
the answer has too many lines rather than too few.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence


class Uses:
    """The names that the statements of some modules use."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        # In functions: each name with the statements that use it. Outside: used names and bound names, by statement.
        self._lines: dict[str, set[tuple[str, int]]] = {}
        self._outside: list[tuple[set[str], set[str]]] = []
        for file, tree in trees.items():
            self._body(file, tree.body, frozenset())

    def lines(self, names: Iterable[str]) -> frozenset[tuple[str, int]]:
        """Where functions use these names, or a name that is made of them: files, and first lines of statements."""
        known = set(names)
        while more := {name for used, bound in self._outside if used & known for name in bound} - known:
            known |= more
        return frozenset(place for name in known for place in self._lines.get(name, ()))

    def _body(self, file: str, body: Sequence[ast.stmt], owner: frozenset[str]) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
                self._use((name for each in defaults for name in _names(each)), file, node.body[0].lineno)
                self._inside(file, node.body)
            elif isinstance(node, ast.ClassDef):
                self._outside.append(({name for base in node.bases for name in _names(base)}, {node.name}))
                self._body(file, node.body, owner | {node.name})
            elif not isinstance(node, ast.Import | ast.ImportFrom):
                used = set(_names(node))
                stored = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and _is_stored(each)}
                self._outside.append((used - stored, stored | owner))

    def _inside(self, file: str, body: Sequence[ast.stmt]) -> None:
        for node in body:
            for child in ast.iter_child_nodes(node):
                if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
                    self._use(_names(child), file, node.lineno)
                elif not isinstance(child, ast.stmt):
                    self._use((name for part in _heads(child) for name in _names(part)), file, node.lineno)
                    self._inside(file, child.body)
            inner = [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
            self._inside(file, inner)

    def _use(self, names: Iterable[str], file: str, line: int) -> None:
        for name in names:
            self._lines.setdefault(name, set()).add((file, line))


def unreached(own: Iterable[ast.Module], shared: Mapping[str, ast.Module]) -> Mapping[str, frozenset[str]]:
    """By shared module, its functions and classes that neither the modules `own` use nor what these use."""
    known = {name for tree in own for name in _names(tree)}
    parts = {
        (file, node.name): set(_names(node))
        for file, tree in shared.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    }
    known |= {
        name
        for file, tree in shared.items()
        for node in tree.body
        if (file, getattr(node, "name", "")) not in parts
        for name in _names(node)
    }
    while more := {name for (_, called), used in parts.items() if called in known for name in used} - known:
        known |= more
    return {file: frozenset(name for where, name in parts if where == file) - known for file in shared}


def _heads(node: ast.ExceptHandler | ast.match_case) -> Iterator[ast.AST]:
    return (child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt))


def _is_stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def _names(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr
        elif isinstance(each, ast.keyword) and each.arg is not None:
            yield each.arg
