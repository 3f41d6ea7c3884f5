"""A policy gives spellings and values that probes cannot guess. Each change to the contract is reported."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from holdfast.conformance.fitness.policy import (
    BINDINGS,
    KEYS,
    NONCE,
    WORDS,
    Policy,
    PolicyError,
    policy_from_proof,
    policy_of,
    read_policy,
)
from holdfast.conformance.fitness.proof import bound_to
from holdfast.specs.typed import InvalidError, read, written


def test_without_a_file_the_contract_decides_and_nothing_departs_from_it() -> None:
    policy = Policy()
    assert policy.operations == ("register_dot",)
    assert policy.horizon is None
    assert policy.max_age == timedelta(days=7)
    assert [policy.column(word) for word in (*KEYS, NONCE, *BINDINGS)] == [*KEYS, NONCE, *BINDINGS]
    assert (policy.column("decision"), policy.column("attempt")) == ("decision_id", "attempt_id")
    assert policy.departures() == ()
    with pytest.raises(KeyError):
        policy.column("decision_id")


def test_a_file_is_read_as_yaml_or_json(tmp_path: Path) -> None:
    yaml, json_ = tmp_path / "p.yaml", tmp_path / "p.json"
    yaml.write_text("name: prod\ncolumns: {logical_request_key: lrk}\nmax_age_seconds: 3600\n")
    json_.write_text('{"name": "prod", "columns": {"logical_request_key": "lrk"}, "max_age_seconds": 3600}')
    assert read_policy(yaml) == read_policy(json_)
    assert read_policy(yaml).column("logical_request_key") == "lrk"
    assert read_policy(yaml).max_age == timedelta(hours=1)


def test_an_empty_file_is_the_contract(tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("")
    assert read_policy(path) == Policy()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"columns": {"logical_request_key": "lrk"}}, "takes the column lrk for logical_request_key"),
        ({"columns": {"decision": "verdict"}}, "takes the column verdict for decision"),
        ({"operations": ["register_dot", "send"]}, "admits the operations register_dot, send"),
        ({"horizon_seconds": 86400}, "lowers the replay horizon to 1 day"),
        ({"max_age_seconds": 2678400}, "stand for 31 days"),
        ({"reviewed": ["stamp"]}, "the policy says that stamp was reviewed"),
        ({"domain_evidence": "A. Registrar, 2026-01-01: only registrations"}, "declares the domain in words"),
        ({"sqlite_writer_uid": 1000}, "the writer runs as the user 1000"),
        ({"sqlite_connection": {"synchronous": "full"}}, "every connection of the writer sets synchronous=full"),
    ],
)
def test_each_departure_from_the_contract_is_said(data: dict[str, Any], said: str) -> None:
    (departure,) = policy_of(data, where="p").departures()
    assert said in departure


@pytest.mark.parametrize(
    "data",
    [
        {"columns": {"logical_request_key": "logical_request_key"}},
        {"operations": ["register_dot"]},
        {"horizon_seconds": None},
        {"max_age_seconds": 3600.0},
        {"name": "prod", "values": {"note": "x"}},
    ],
)
def test_what_the_contract_says_too_is_no_departure(data: dict[str, Any]) -> None:
    assert policy_of(data, where="p").departures() == ()


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ({"column": {}}, "column"),
        ({"columns": {"primary_key": "id"}}, "primary_key"),
        ({"max_age_seconds": 2678401}, "2678400"),
        ({"max_age_seconds": 0}, "60"),
        ({"horizon_seconds": 0}, "1"),
        ({"operations": []}, "[]"),
        ({"name": "two words"}, "two words"),
        ({"values": {"a": ["x"]}}, '["x"]'),
        ({"domain_evidence": "trust me"}, "trust me"),
        ({"sqlite_connection": {"synchronous": "sometimes"}}, "sometimes"),
        ([], "[]"),
    ],
)
def test_what_no_policy_may_say_is_refused_with_its_place(data: Any, complaint: str) -> None:
    with pytest.raises(PolicyError, match=r"^p: does not fit fitness-policy\.schema\.json") as refused:
        policy_of(data, where="p")
    assert complaint in str(refused.value)


def test_one_column_cannot_be_two_words() -> None:
    with pytest.raises(PolicyError, match="taken for logical_request_key and for replay_key"):
        policy_of({"columns": {"replay_key": "logical_request_key"}}, where="p")
    swapped = {"logical_request_key": "replay_key", "replay_key": "logical_request_key"}
    assert policy_of({"columns": swapped}, where="p").column("replay_key") == "logical_request_key"


@pytest.mark.parametrize("text", ["name: [", "name: a\nname: b\n", "name: !!python/object x"])
def test_a_file_that_cannot_be_read_says_where(tmp_path: Path, text: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(PolicyError, match=r"p\.yaml"):
        read_policy(path)
    with pytest.raises(PolicyError, match=r"none\.yaml"):
        read_policy(tmp_path / "none.yaml")


def test_a_proof_holds_every_member_and_gives_the_policy_back() -> None:
    policy = policy_of(
        {"name": "prod", "columns": {"attempt": "try_no"}, "horizon_seconds": 60, "reviewed": ["b", "a"]}, where="p"
    )
    held = policy.written()
    assert set(held.columns) == set(WORDS)
    assert policy_from_proof(held, where="p").written() == held
    assert policy_from_proof(Policy().written(), where="p").horizon is None


def test_a_proof_may_not_hold_a_policy_in_another_form() -> None:
    held = Policy().written()
    with pytest.raises(PolicyError, match="not in the form"):
        policy_from_proof(structs.replace(held, reviewed=("b", "a")), where="p")
    with pytest.raises(InvalidError):
        read({**written(held), "forgiving": 1}, Policy)


def test_every_member_of_a_policy_is_in_the_digest() -> None:
    changed: list[dict[str, Any]] = [
        {},
        {"name": "prod"},
        {"columns": {"attempt": "try_no"}},
        {"operations": ["send"]},
        {"horizon_seconds": 60},
        {"max_age_seconds": 3600},
        {"reviewed": ["a"]},
        {"values": {"a": 1}},
        {"domain_evidence": "A. Registrar, 2026-01-01: only registrations"},
        {"sqlite_writer_uid": 1000},
        {"sqlite_connection": {"synchronous": "full"}},
    ]
    digests = {bound_to({}, policy_of(data, where="p").written()) for data in changed}
    assert len(digests) == len(changed)
