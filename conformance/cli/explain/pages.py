"""The pages of docs/ that are made: of a contract's methods, and of the commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holdfast.conformance.cli.commands import Commands
from holdfast.conformance.cli.explain.described import written, yaml_lines
from holdfast.conformance.cli.group import Branch, Entry, load
from holdfast.specs import Contract
from holdfast.specs.model import Group, Method
from holdfast.specs.routes import Route

# Below docs/.
FOLDER = "methods"
COMMANDS = "commands.md"

_GROUPS = {
    Group.OPERATION: (
        "Operations",
        "An operation does something. It answers `accepted`, `refused`, `indeterminate` or `fault`.",
    ),
    Group.OBSERVATION: (
        "Observations",
        "An observation shows state and changes nothing. It answers `ok` with a value, or `fault`.",
    ),
    Group.PROVOCATION: (
        "Provocations",
        "A provocation is a test hook: it injects a fault. It answers `ok` or `fault`. An implementation without that "
        "hook lists its name under `not_claimed`.",
    ),
}


def page_of(contract: Contract) -> str:
    """The page as Markdown."""
    return "\n".join(_page(contract)).rstrip() + "\n"


def _page(contract: Contract) -> Iterator[str]:
    yield f"# Methods of {contract.name} {contract.version}"
    yield ""
    yield "<!-- Written by `holdfast explain --write docs`. Change specs/ and run it again. -->"
    yield ""
    parts = written(contract)
    yield contract.summary
    yield ""
    yield (
        "This page has what an adapter needs to know of the contract beside "
        "[the protocol](../adapter-protocol.md): methods, refusal reasons, parameters and stored relations. "
        "`holdfast explain NAME` prints a part of it, with the cases that use it."
    )
    yield ""
    yield (
        "Arguments, results and data are JSON Schema (draft 2020-12), written as YAML. `$ref` names one of the shared "
        "definitions [below](#shared-definitions), and `x-leaf` says for tests what kind of value stands there. The "
        "name of a method is also the name of its capability: a method that `hello` lists under `not_claimed` is "
        "answered with `unsupported` and that name. A method that is not on this page is answered with `fault`."
    )
    for group, (title, text) in _GROUPS.items():
        methods = [method for method in contract.methods.values() if method.group is group]
        if methods:
            yield from ("", f"## {title}", "", text)
            for method in methods:
                yield from _method(method)
    yield from _reasons(contract)
    yield from _parameters(contract)
    yield from _relations(contract)
    for key, title, text in _PARTS:
        if parts.get(key):
            yield from ("", f"## {title}", "", text, "", *_block(parts[key]))
    shared = next((method.args.schema.get("$defs") for method in contract.methods.values()), None)
    if shared:
        yield from ("", "## Shared definitions", "", *_block(shared))


_PARTS = (
    (
        "roles",
        "Roles",
        "What an implementation may claim alone. A role that `hello` lists under `not_claimed` is not asked for: its "
        "methods are never called, and its cases do not change the exit status. The gate is asked for some roles as "
        "`--require CONTRACT/ROLE`.",
    ),
    ("keys", "Keys", "How keys are computed: the parameter that holds the domain tag, and the fields in their order."),
    ("decision_order", "Order of decisions", "The first line that fits decides the answer."),
    ("states", "States", "What a request can have come to."),
    ("transitions", "Transitions", "How a request gets from one state to another."),
    ("inspection", "The store", "The harness opens this file of the workdir itself."),
)


def _method(method: Method) -> Iterator[str]:
    yield from ("", f"### {method.name}", "", method.title)
    if method.role is not None:
        yield from ("", f"Role: `{method.role}`.")
    if method.damages:
        yield from ("", "After it an observation of the store may answer `fault`, up to the end of the case.")
    if method.effects:
        yield from ("", f"Effects: {_names(method.effects)}.")
    if method.route is not None:
        yield from _route(method.route)
    if method.reasons:
        audited = "" if method.audited else " Its refusals leave no audit records."
        yield from ("", f"Reasons: {_names(method.reasons)}.{audited}")
    refusal = method.refusal_data
    for title, schema in (
        ("Arguments", method.args.schema),
        ("Result", None if method.result is None else method.result.schema),
        ("Data of a refusal", None if refusal is None else refusal.schema),
    ):
        if schema is not None:
            yield from ("", f"{title}:", "", *_block({key: value for key, value in schema.items() if key != "$defs"}))


def _route(route: Route) -> Iterator[str]:
    yield from ("", f"Route, if it is asked over HTTP: `{route.method} {route.path}`.")
    statuses = ", ".join(f"{status} for {_names(route.named(status))}" for status in sorted({*route.statuses.values()}))
    yield f"Statuses: {statuses}. Where a status has several reasons, the member `error` of the body names the reason."
    for name, header in route.headers.items():
        yield f"The argument `{name}` travels percent-encoded in the header `{header}`."
    if route.websocket is not None:
        shaken = f"{_names(route.connection)} in the headers of the handshake, " if route.connection else ""
        yield (
            f"Over a WebSocket at `{route.websocket}`: {shaken}all other arguments as members of one text message; "
            "the answer is a text message with the status as `code` and the body as `body`."
        )
    if route.paired is not None:
        yield f"Of several requests over one WebSocket, `{route.paired}` in an answer says to which one it is."


def _reasons(contract: Contract) -> Iterator[str]:
    yield from ("", "## Reasons", "", "The closed list. `refused` with any other reason is no valid answer.", "")
    rows = (
        (f"`{reason.name}`", reason.meaning, str(reason.audit_records), _names(reason.data))
        for reason in contract.reasons.values()
    )
    yield from _table(("reason", "meaning", "audit records", "data"), rows)


def _parameters(contract: Contract) -> Iterator[str]:
    yield from ("", "## Parameters", "", "`config` of `open` may set another value by the same name.", "")
    rows = (
        (
            f"`{parameter.name}`",
            "unset" if parameter.value is None else f"`{parameter.value}`",
            parameter.unit or "",
            parameter.basis.value,
            parameter.meaning,
        )
        for parameter in contract.parameters.values()
    )
    yield from _table(("parameter", "value", "unit", "basis", "meaning"), rows)


def _relations(contract: Contract) -> Iterator[str]:
    if not contract.relations:
        return
    yield from ("", "## Relations", "", "What is stored, as observations show it.")
    relations = written(contract)["relations"]
    for relation in contract.relations.values():
        yield from ("", f"### Relation {relation.name}", "", relation.purpose, "")
        yield f"Primary key: {_names(relation.primary_key)}.{' Rows are only added.' if relation.append_only else ''}"
        for name, columns in relation.unique.items():
            yield f"Unique (`{name}`): {_names(columns)}."
        yield ""
        rows = (
            (
                f"`{column.name}`",
                column.type,
                "yes" if column.null else "no",
                _names(map(str, column.only)),
                relations[relation.name]["columns"][column.name].get("meaning", ""),
            )
            for column in relation.columns.values()
        )
        yield from _table(("column", "type", "null", "only", "meaning"), rows)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in row)} |"


def _block(part: Any) -> list[str]:
    return ["```yaml", *yaml_lines(part), "```"]


def commands_page() -> str:
    """The page as Markdown."""
    return "\n".join(_commands_page()).rstrip() + "\n"


def _commands_page() -> Iterator[str]:
    yield from (
        "# Commands",
        "",
        "<!-- Written by `holdfast explain --write docs`. Change conformance/cli/ and run it again. -->",
    )
    yield from ("", "Every command uses the same exit statuses ([verdicts.md](verdicts.md)). `--help` prints the same.")
    yield from _commands(Commands.entries, "holdfast")


def _commands(entries: Mapping[str, Entry | Branch], prefix: str) -> Iterator[str]:
    for name, entry in entries.items():
        words = f"{prefix} {name}"
        if isinstance(entry, Branch):
            yield from ("", f"## {words}", "", _one_line(entry.summary))
            yield from _commands(entry.entries, words)
        elif not entry.settings.get("ignore_unknown_options"):
            yield from _command(words, load(name, entry))


def _command(words: str, command: Any) -> Iterator[str]:
    yield from ("", f"## {words}", "", _one_line(command.help or ""))
    rows = [row for row in map(_row, command.params) if row is not None]
    if rows:
        yield from ("", "| option | meaning |", "|---|---|", *rows)


def _row(parameter: Any) -> str | None:
    if "--help" in parameter.opts:
        return None
    if parameter.param_type_name == "argument":
        name = parameter.name.upper()
    else:
        name = ", ".join((*parameter.opts, *parameter.secondary_opts))
        name += "" if parameter.is_flag else f" {parameter.metavar or 'VALUE'}"
    return f"| `{name}` | {_one_line(getattr(parameter, 'help', None) or '').replace('|', chr(92) + '|')} |"


def _one_line(text: str) -> str:
    return " ".join(text.split())
