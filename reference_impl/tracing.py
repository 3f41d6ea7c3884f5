"""Writes down which lines of a reference run, so that a mutant is held only against the tests that meet it.

Each statement of a function gets one before it that marks its line in a file in shared memory. What a process did
before it was killed stands there too, and all processes of a test write to the same file. The harness clears it before
a test and reads it afterwards. A trace function of the interpreter would take ten times as long.
"""

from __future__ import annotations

import ast
import builtins
import json
import mmap
import sys
from collections.abc import Mapping
from pathlib import Path
from types import CodeType
from typing import Any

from holdfast.reference_impl.altered import Compiler, CompilingFinder

_MARKS = "__holdfast_marks__"


def install(path: str) -> None:
    """Mark the lines that this process and its forks execute. Raises OSError, ValueError.

    The file is `{"map": PATH, "modules": {MODULE: OFFSET}}` in JSON; line 1 of a module is the byte after its offset.
    """
    if any(isinstance(finder, _Marking) for finder in sys.meta_path):
        return
    wanted = json.loads(Path(path).read_text(encoding="utf-8"))
    with Path(wanted["map"]).open("r+b") as file:
        # Where each module finds a name that it does not bind itself.
        vars(builtins)[_MARKS] = mmap.mmap(file.fileno(), 0)
    sys.meta_path.insert(0, _Marking(wanted["modules"]))


class _Marked(ast.NodeTransformer):
    """Puts a mark before each statement of a function."""

    def __init__(self, offset: int) -> None:
        self._offset = offset
        self._inside = False

    def visit(self, node: ast.AST) -> Any:
        outside, self._inside = self._inside, self._inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in ("body", "orelse", "finalbody"):
            body = getattr(node, name, None)
            if isinstance(body, list):
                marked = [self.visit(statement) for statement in body]
                setattr(node, name, [part for each in marked for part in self._before(each)])
        for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
            self.visit(part)
        self._inside = outside
        return node

    def _before(self, statement: ast.stmt) -> tuple[ast.stmt, ...]:
        if not self._inside:
            return (statement,)
        place = ast.Subscript(ast.Name(_MARKS, ast.Load()), ast.Constant(self._offset + statement.lineno), ast.Store())
        mark = ast.Assign([place], ast.Constant(1))
        return ast.fix_missing_locations(ast.copy_location(mark, statement)), statement


class _Marking(CompilingFinder):
    """Finds the modules whose lines are marked."""

    def __init__(self, offsets: Mapping[str, int]) -> None:
        self._offsets = offsets

    def compiler_of(self, module: str) -> Compiler | None:
        """See `CompilingFinder`."""
        if module not in self._offsets:
            return None

        def marked(source: bytes, path: str) -> CodeType:
            tree = _Marked(self._offsets[module]).visit(ast.parse(source))
            code: CodeType = compile(tree, path, "exec", dont_inherit=True)
            return code

        return marked
