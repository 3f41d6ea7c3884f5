"""The loader checks the queries against a schema, and `holdfast lint specs` inspects them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.cli.lint import problems_of
from holdfast.specs import SpecError, fitness, load_contract
from holdfast.specs.fitness import QueryKind, in_order, load_queries, parameters

CONTRACT = "rs4a-replay"
SHIPPED = Path(fitness.__file__).parent / CONTRACT / "fitness" / "postgresql.yaml"


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Load the contract's queries from a folder of our own, with one text replaced by another."""
    folder = tmp_path / CONTRACT
    (folder / "fitness").mkdir(parents=True)
    monkeypatch.setattr(fitness, "folder_of", lambda _: folder)

    def replace(old: str, new: str) -> None:
        text = SHIPPED.read_text(encoding="utf-8")
        assert old in text
        (folder / "fitness" / "postgresql.yaml").write_text(text.replace(old, new, 1), encoding="utf-8")
        load_queries.cache_clear()

    return replace


@pytest.fixture(autouse=True)
def forgotten() -> object:
    """What a test made the loader remember is forgotten."""
    yield
    load_queries.cache_clear()


def test_queries_only_read() -> None:
    queries = load_queries(CONTRACT)
    assert all(setting.startswith("SET LOCAL ") for setting in queries.settings)
    words = re.compile(r"\b(insert|update|delete|truncate|create|alter|drop|grant|revoke|copy|call|lock)\b", re.I)
    for query in queries.queries:
        assert query.sql.startswith("WITH RECURSIVE named AS (")
        # Names of verbs stand in quotes only.
        assert words.search(re.sub(r"'[^']*'|indisexclusion", "", re.sub(r"--[^\n]*", "", query.sql))) is None
        assert query.kind is QueryKind.STRUCTURE or not query.clone
        # Categories and descriptions of settings are said in the language of the server.
        assert re.search(r"(category|short_desc|extra_desc)( =| IN| LIKE|) *\(?'", query.sql) is None


def test_rows_are_sorted_alike_everywhere() -> None:
    rows: list[dict[str, Any]] = [{"a": "B"}, {"a": "a"}, {"a": None}]
    assert in_order(rows) == in_order(reversed(rows)) == ({"a": "B"}, {"a": "a"}, {"a": None})


def test_parameters_name_each_relation_once() -> None:
    pairs = [("s", "t"), ("s", "u"), ("s", "t")]
    assert parameters(pairs, None) == {"schemas": ["s", "s"], "names": ["t", "u"], "writer": None}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("parts: [domains, foreign_calls]", "parts: [dominions]", "query columns: unknown parts dominions"),
        ("kind: circumstance", "kind: structure", "clone"),
        ("sql: |\n      SELECT scope", "sql: |\n      DELETE scope", "at queries/relations/sql"),
        ("SET LOCAL search_path", "SET search_path", "settings/0"),
        ("contract: rs4a-replay", "contract: mesh-delivery", "is for contract 'mesh-delivery'"),
    ],
)
def test_what_is_no_query_is_refused(broken: Callable[[str, str], None], old: str, new: str, said: str) -> None:
    broken(old, new)
    with pytest.raises(SpecError, match=re.escape(said)):
        load_queries(CONTRACT)
    assert any(said in problem for problem in problems_of(load_contract(CONTRACT)))


def test_other_contracts_have_none() -> None:
    assert fitness.has_queries(CONTRACT)
    assert not fitness.has_queries("hx-sync")
    assert not fitness.has_queries("no-contract")
    with pytest.raises(SpecError, match="unknown contract 'no-contract'"):
        load_queries("no-contract")
