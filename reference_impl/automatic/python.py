"""Operators on Python. An edit replaces the smallest piece of the source, so that its difference reads well.

Left out, because no test can show them: annotations, docstrings, imports, decorators, f-strings that are no SQL, and
texts for people: those of errors and of standard error, of a command line's help, and what is called `detail` (the free
text of an answer, docs/adapter-protocol.md).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from holdfast.reference_impl.automatic import sql
from holdfast.reference_impl.automatic.operators import Edit, Operator, Place

# Each comparison as it is written, with its opposite and with the one whose boundary lies one further.
_WRITTEN: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.GtE: ">=",
    ast.Gt: ">",
    ast.LtE: "<=",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.Is: "is",
    ast.IsNot: "is not",
}
_OPPOSITE = {"==": "!=", "<": ">=", ">": "<=", "in": "not in", "is": "is not"}
_OPPOSITE |= {opposite: word for word, opposite in _OPPOSITE.items()}
_EDGE = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
# Functions that only types need, whose arguments in another order are a crash at once, or have no order.
_UNSWAPPED = frozenset({"cast", "isinstance", "issubclass", "getattr", "hasattr", "TypeVar", "field", "min", "max"})
# The name of the type of digits that are computed: they have no case to lose, and no blanks.
_HEX = "Hex"
# So much is left of a truncated text, and of truncated bytes: a part of a digest, and a part of a document.
_TEXT_LEFT, _BYTES_LEFT = 16, 1024
_SYNCS = ("fsync", "fdatasync", "sync", "flush")
_ISOLATED = ("isolation_level",)
_DETAIL = "detail"
# Arguments by name that hold such texts: of an answer, and of argparse.
_TEXTS = frozenset({_DETAIL, "help", "metavar"})


@dataclass(frozen=True, slots=True)
class _Scope:
    """The function around a place, and the class around a statement outside of every function."""

    function: str = ""
    owner: str = ""

    def within(self, name: str) -> str:
        return ".".join(part for part in (self.function or self.owner, name) if part)


class Source:
    """One module's source: its tree, and where a node stands in its bytes."""

    def __init__(self, source: bytes) -> None:
        self.data = source
        self.tree = ast.parse(source)
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def start(self, node: ast.expr | ast.stmt) -> int:
        """The offset of the node's first byte."""
        return self._lines[node.lineno - 1] + node.col_offset

    def end(self, node: ast.expr | ast.stmt) -> int:
        """The offset after its last byte."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset

    def text(self, node: ast.expr | ast.stmt) -> str:
        """The node as it is written."""
        return self.data[self.start(node) : self.end(node)].decode()

    def edit(self, operator: Operator, node: ast.expr | ast.stmt, text: str) -> Edit:
        """The node in another form."""
        return Edit(operator, self.start(node), self.end(node), text)


def edits(source: Source) -> Iterator[tuple[Place, Edit]]:
    """Every edit of a module with its place, in the order of the source."""
    yield from _Walk(source).body(source.tree.body, _Scope())


class _Walk:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._unused = _unused(source.tree)

    def body(self, statements: Sequence[ast.stmt], scope: _Scope) -> Iterator[tuple[Place, Edit]]:
        for statement in statements:
            if not _is_docstring(statement) and not isinstance(statement, ast.Import | ast.ImportFrom):
                yield from self._statement(statement, scope)

    def _statement(self, node: ast.stmt, scope: _Scope) -> Iterator[tuple[Place, Edit]]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from self._function(node, scope)
            return
        if isinstance(node, ast.ClassDef):
            yield from self.body(node.body, _Scope(scope.function, scope.within(node.name)))
            return
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        bodies = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
        bodies += [handler.body for handler in getattr(node, "handlers", [])]
        bodies += [case.body for case in getattr(node, "cases", [])]
        place = _place(node, scope, compound=any(bodies))
        if _tells(node, scope):
            return
        yield from ((place, edit) for edit in self._on_statement(node))
        for child in _expressions(node):
            yield from ((place, edit) for edit in self._on_expression(child, told=isinstance(node, ast.Raise)))
        for body in bodies:
            yield from self.body(body, scope)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: _Scope) -> Iterator[tuple[Place, Edit]]:
        name = scope.within(node.name)
        body = [each for each in node.body if not _is_docstring(each)]
        if not body or _is_abstract(body[0]):
            return
        inner = _Scope(name)
        last = node.body[-1].end_lineno or node.body[-1].lineno
        whole = Place(name, body[0].lineno, last)
        positional = [*node.args.posonlyargs, *node.args.args]
        defaults = [*zip(positional[len(positional) - len(node.args.defaults) :], node.args.defaults, strict=True)]
        defaults += [(each, one) for each, one in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if one]
        for argument, default in defaults:
            if argument.arg != _DETAIL:
                yield from ((whole, edit) for edit in self._on_expression(default, told=False))
        yield from ((whole, edit) for edit in self._on_parameters(node, body[0]))
        yield from self.body(body, inner)

    def _on_parameters(self, node: ast.FunctionDef | ast.AsyncFunctionDef, first: ast.stmt) -> Iterator[Edit]:
        """A text or some bytes that a function takes are cut, or lose their case and the blanks around them."""
        if first.lineno == node.lineno:
            return
        start, indent = self._source.start(first), " " * first.col_offset
        used = _used(node) - {_DETAIL}
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            kind = "" if argument.annotation is None else ast.unparse(argument.annotation)
            name = argument.arg
            if name not in used:
                continue
            if kind in ("str", _HEX):
                yield Edit(Operator.TRUNCATED, start, start, f"{name} = {name}[:{_TEXT_LEFT}]\n{indent}")
            if kind == "str":
                yield Edit(Operator.NORMALISED, start, start, f"{name} = {name}.strip().lower()\n{indent}")
            if kind == "bytes":
                yield Edit(Operator.TRUNCATED, start, start, f"{name} = {name}[:{_BYTES_LEFT}]\n{indent}")

    def _on_statement(self, node: ast.stmt) -> Iterator[Edit]:
        source = self._source
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            operator = Operator.SYNC if _is_sync(node.value) else Operator.STATEMENT
            yield source.edit(operator, node, "pass")
        elif isinstance(node, ast.Raise | ast.Delete | ast.AugAssign | ast.Continue | ast.Break) or _keeps(node):
            yield source.edit(Operator.STATEMENT, node, "pass")
        elif isinstance(node, ast.If | ast.While) and not isinstance(node.test, ast.Constant):
            yield from self._guard(node.test)

    def _guard(self, test: ast.expr) -> Iterator[Edit]:
        # The opposite of one comparison is an edit of its own already.
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1):
            yield self._source.edit(Operator.GUARD, test, f"not ({self._source.text(test)})")

    def _on_expression(self, node: ast.expr, *, told: bool) -> Iterator[Edit]:
        """The edits of an expression and of all in it. `told`: it describes an error."""
        source = self._source
        yield from (source.edit(operator, node, text) for operator, text in sql.changes(node))
        if isinstance(node, ast.JoinedStr):
            return
        if isinstance(node, ast.Compare):
            yield from self._comparison(node)
        elif isinstance(node, ast.BoolOp):
            for left in node.values:
                others = [source.text(each) for each in node.values if each is not left]
                word = " and " if isinstance(node.op, ast.And) else " or "
                yield source.edit(Operator.GUARD, node, f"({word.join(others)})")
        elif isinstance(node, ast.IfExp):
            yield from self._guard(node.test)
        elif isinstance(node, ast.Constant) and not told:
            yield from self._constant(node)
        elif isinstance(node, ast.Call):
            if not told:
                yield from self._swapped(node)
            yield from self._isolation(node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield source.edit(Operator.GUARD, node, f"({source.text(node.operand)})")
        elif isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
            for generator in node.generators:
                for test in generator.ifs:
                    yield source.edit(Operator.GUARD, test, "True")
        unseen = self._unseen(node) if isinstance(node, ast.Call) else []
        for child in _expressions(node):
            yield from self._on_expression(child, told=told or any(child is each for each in unseen))

    def _unseen(self, node: ast.Call) -> list[ast.expr]:
        """The arguments of a function of this module that make the texts of its errors alone."""
        own = ast.unparse(node.func).removeprefix("self.")
        return [each for at, each in enumerate(node.args) if at in self._unused.get(own, ())]

    def _comparison(self, node: ast.Compare) -> Iterator[Edit]:
        source, operands = self._source, [node.left, *node.comparators]
        for table, operator in ((_OPPOSITE, Operator.COMPARISON), (_EDGE, Operator.BOUNDARY)):
            for found, (left, right) in zip(node.ops, pairwise(operands), strict=True):
                word = _WRITTEN[type(found)]
                start, end = source.end(left), source.start(right)
                between = source.data[start:end].decode()
                # Two words may stand in two lines.
                if word in table and word in between:
                    yield Edit(operator, start, end, between.replace(word, table[word], 1))

    def _constant(self, node: ast.Constant) -> Iterator[Edit]:
        value = node.value
        changed: object = None
        if isinstance(value, bool):
            changed = not value
        elif isinstance(value, int):
            changed = value + 1
        elif isinstance(value, float):
            changed = value * 2 or 1.0
        elif isinstance(value, bytes):
            changed = value[:-1] if value else b"x"
        # A text with blanks is for a person.
        elif isinstance(value, str) and not any(map(str.isspace, value.strip())):
            changed = value[1:] or "x"
        if changed is not None:
            yield self._source.edit(Operator.CONSTANT, node, repr(changed))

    def _swapped(self, node: ast.Call) -> Iterator[Edit]:
        if (
            len(node.args) < 2
            or any(isinstance(each, ast.Starred) for each in node.args)
            or _called(node) in _UNSWAPPED
        ):
            return
        for at in range(len(node.args) - 1):
            first, second = (self._source.text(each) for each in node.args[at : at + 2])
            if first == second:
                continue
            start, end = self._source.start(node.args[at]), self._source.end(node.args[at + 1])
            yield Edit(Operator.ARGUMENT, start, end, f"{second}, {first}")

    def _isolation(self, node: ast.Call) -> Iterator[Edit]:
        for keyword in node.keywords:
            if keyword.arg in _ISOLATED and ast.unparse(keyword.value) == "None":
                yield self._source.edit(Operator.ISOLATION, keyword.value, "'DEFERRED'")


def _place(node: ast.stmt, scope: _Scope, *, compound: bool) -> Place:
    """Of a compound statement, the lines of its head."""
    last = node.end_lineno or node.lineno
    if compound:
        heads = [child.end_lineno or child.lineno for child in _expressions(node)]
        last = max(heads, default=node.lineno)
    if scope.function:
        return Place(scope.function, node.lineno, last)
    bound = {name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
    owner = {scope.owner.rpartition(".")[2]} - {""}
    return Place("", node.lineno, last, tuple(sorted(bound | owner)))


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions directly in a node; those of annotations and of types are left out."""
    if isinstance(node, ast.AnnAssign):
        if "TypeAlias" not in ast.unparse(node.annotation) and node.value is not None:
            yield node.value
        return
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _called(node.value) == "TypeVar":
        return
    if isinstance(node, ast.Call) and _called(node) == "cast":
        yield from node.args[1:]
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
        elif isinstance(child, ast.keyword):
            if child.arg not in _TEXTS:
                yield child.value
        elif isinstance(child, ast.withitem):
            yield child.context_expr
        elif isinstance(child, ast.comprehension):
            yield from (child.iter, *child.ifs)
        elif isinstance(child, ast.match_case) and child.guard is not None:
            yield child.guard


def _called(node: ast.Call) -> str:
    function = node.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_sync(node: ast.Call) -> bool:
    name = _called(node).strip("_")
    return name in _SYNCS or name.startswith("sync_")


def _keeps(node: ast.stmt) -> bool:
    """Whether a statement keeps a value in an object. A name that is never bound would be a crash at once."""
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Attribute | ast.Subscript) for t in node.targets)


def _tells(node: ast.stmt, scope: _Scope) -> bool:
    """Whether a statement makes the text of an error, or a detail."""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return all(ast.unparse(target).rpartition(".")[2] == _DETAIL for target in targets)
    own = scope.function.rpartition(".")[0].endswith("Error")
    return own and isinstance(node, ast.Expr) and ast.unparse(node).startswith("super().__init__(")


def _used(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names that a function uses for more than the text of an error, raised or printed."""
    parts = [each for statement in function.body for each in ast.walk(statement)]
    errors = [each for each in parts if isinstance(each, ast.Call) and _is_error(each)]
    texts = [text for error in errors for text in error.args if isinstance(text, ast.JoinedStr)]
    told = {id(each) for text in texts for each in ast.walk(text)}
    return {each.id for each in parts if isinstance(each, ast.Name) and id(each) not in told}


def _is_error(node: ast.Call) -> bool:
    printed = [each for each in node.keywords if each.arg == "file" and ast.unparse(each.value) == "sys.stderr"]
    return _called(node).endswith("Error") or bool(printed)


def _unused(tree: ast.Module) -> dict[str, frozenset[int]]:
    """By the name of a function, which of its arguments make the texts of errors alone."""
    found: dict[str, frozenset[int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = [each.arg for each in (*node.args.posonlyargs, *node.args.args) if each.arg not in ("self", "cls")]
            unused = frozenset(at for at, name in enumerate(names) if name not in _used(node))
            found[node.name] = unused & found.get(node.name, unused)
    return found


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_abstract(node: ast.stmt) -> bool:
    return isinstance(node, ast.Raise) and "NotImplementedError" in ast.unparse(node)
