"""The queries of a fitness proof as data, so that each reader of a proof reads the very same rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from functools import cache
from typing import Any

from holdfast.specs import strictjson
from holdfast.specs.errors import SpecError
from holdfast.specs.loader import of_contract
from holdfast.specs.registry import contracts, folder_of


@unique
class QueryKind(Enum):
    """Structure makes a surface what it is, and is digested; a circumstance is what a reader must know besides."""

    STRUCTURE = "structure"
    CIRCUMSTANCE = "circumstance"


@dataclass(frozen=True, slots=True)
class Tie:
    """How rows are compared between the store of a run and the surface of a proof.

    Columns that are `apart` may differ. Where `role` names a column, only the rows of the writer and of PUBLIC (null)
    count; the writers of the two may have different names.
    """

    apart: frozenset[str]
    role: str | None


@dataclass(frozen=True, slots=True)
class Query:
    """One query. `needs` are relations (schema, name) without which it has no rows; `clone`: a clone shows the same.

    `tied` is None for a query that has no part in tying a run to a proof.
    """

    name: str
    purpose: str
    kind: QueryKind
    clone: bool
    needs: tuple[tuple[str, str], ...]
    sql: str
    tied: Tie | None


@dataclass(frozen=True, slots=True)
class Queries:
    """All queries of a contract for PostgreSQL, and the settings under which they are run, in one transaction."""

    settings: tuple[str, ...]
    queries: tuple[Query, ...]
    digest: str

    def of(self, kind: QueryKind) -> tuple[Query, ...]:
        """The queries of one kind, in order."""
        return tuple(query for query in self.queries if query.kind is kind)


def parameters(relations: Iterable[tuple[str, str]], writer: str | None) -> dict[str, Any]:
    """The parameters of the queries: relations as (schema, name), and the role that writes."""
    pairs = list(dict.fromkeys(relations))
    return {"schemas": [pair[0] for pair in pairs], "names": [pair[1] for pair in pairs], "writer": writer}


def in_order(rows: Iterable[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Rows in the order of their RFC 8785 forms: the same on every server, for every collation."""
    return tuple(sorted((dict(row) for row in rows), key=strictjson.canonical))


@cache
def load_queries(contract: str) -> Queries:
    """The queries of `contract` for PostgreSQL. Raises SpecError when they are malformed or there are none."""
    path = folder_of(contract) / "fitness" / "postgresql.yaml"
    raw = of_contract(path, "fitness-queries", contract)
    queries = tuple(_query(name, data, raw, str(path)) for name, data in raw["queries"].items())
    return Queries(tuple(raw["settings"]), queries, strictjson.digest(raw))


def has_queries(contract: str) -> bool:
    """Whether a contract asks for fitness at all."""
    found = contracts().get(contract)
    return found is not None and (found.folder / "fitness" / "postgresql.yaml").is_file()


@cache
def surface_contract() -> str:
    """The contract of holdfast whose surface `holdfast fitness` inspects: the one with queries."""
    (name,) = (name for name, one in contracts().items() if one.distribution is None and has_queries(name))
    return name


def _query(name: str, data: Mapping[str, Any], raw: Mapping[str, Any], where: str) -> Query:
    parts: Sequence[str] = data.get("parts", ())
    unknown = [part for part in parts if part not in raw["parts"]]
    if unknown:
        raise SpecError(f"{where}: query {name}: unknown parts {', '.join(unknown)}; known: {', '.join(raw['parts'])}")
    tied = data.get("tied")
    before = ",\n".join([raw["scope"].rstrip(), *(raw["parts"][part].rstrip() for part in parts)])
    return Query(
        name=name,
        purpose=data["purpose"],
        kind=QueryKind(data["kind"]),
        clone=data.get("clone", False),
        needs=tuple((schema, name) for schema, _, name in (text.partition(".") for text in data.get("needs", ()))),
        sql=f"WITH RECURSIVE {before}{data.get('with', '')}\n{data['sql']}",
        tied=None if tied is None else Tie(frozenset(tied.get("apart", ())), tied.get("role")),
    )
