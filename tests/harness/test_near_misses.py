"""The sweep of near misses, against a shelf in this process that is sound or has one bug."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.attacks import near_miss
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.near_miss import sweep
from holdfast.conformance.cases.record import Judgement, NonConformance
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Contract
from holdfast.specs.loader import read_contract
from holdfast.specs.schema import Validator
from holdfast.specs.yamlfile import read_yaml
from tests.harness.suite_play import PlayedDriver, bench_on

TOY = Path(__file__).resolve().parents[1] / "toycontract" / "toy"
SWEEP = {
    "clause": "TOY-01",
    "title": "A near miss of a key is another key",
    "leaves": ["put:key"],
    "original": "lamp-${rand:key}",
    "given": [{"call": "put", "args": {"key": "$x", "nonce": "a-${rand:nonce}"}}],
    "probe": {"call": "put", "args": {"key": "$y", "nonce": "b-${rand:nonce}"}},
    "due": {
        "same": {"outcome": "refused", "reason": "DUPLICATE"},
        "other": {"outcome": "accepted", "effect": "new"},
        "malformed": {"outcome": "refused", "reason": "REQUEST_MALFORMED"},
    },
    "again": {"outcome": "refused", "reason": "DUPLICATE"},
}


@pytest.fixture
def contract(tmp_path: Path) -> Contract:
    """The toy contract with a sweep of its key."""
    folder = tmp_path / "toy"
    (folder / "cases").mkdir(parents=True)
    methods = read_yaml(TOY / "methods.yaml")
    methods["$defs"]["name"]["x-leaf"] = {"kind": "identifier"}
    for name, data in (
        ("contract.yaml", read_yaml(TOY / "contract.yaml")),
        ("methods.yaml", methods),
        ("neighbours.yaml", {"contract": "toy", "sweeps": {"keys": SWEEP}}),
    ):
        (folder / name).write_text(json.dumps(data), encoding="utf-8")
    return read_contract(folder)


Reading = Callable[[str], str]


class Shelf:
    """A shelf. `fits` judges arguments, `read` is what a key is taken for when it is looked up."""

    def __init__(
        self, fits: Callable[[Any], bool], read: Reading, *, leaks: bool = False, written: Reading = str
    ) -> None:
        self._fits, self._read, self._leaks, self._written = fits, read, leaks, written
        self._rows: dict[str, dict[str, str]] = {}
        self._audit: list[dict[str, str]] = []

    def answer(self, method: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """One call."""
        if method == "state":
            return {"outcome": "ok", "value": {"entry": sorted(self._rows.values(), key=json.dumps)}}
        if method == "audit":
            return {"outcome": "ok", "value": {"records": list(self._audit)}}
        if not self._fits(args):
            if self._leaks:
                self._rows[f"leak-{len(self._rows)}"] = {"key": f"leak-{len(self._rows)}", "nonce": "x"}
            return self._refused("REQUEST_MALFORMED")
        key = self._read(str(args["key"]))
        if key in self._rows:
            return self._refused("DUPLICATE")
        self._rows[key] = {"key": self._written(key), "nonce": str(args["nonce"])}
        return {"outcome": "accepted", "effect": "new", "value": {"entry": dict(args)}}

    def _refused(self, reason: str) -> dict[str, Any]:
        self._audit.append({"audit_id": str(len(self._audit)), "code": reason})
        return {"outcome": "refused", "reason": reason}


def judged(
    contract: Contract, make: Callable[[], Shelf], seed: str = "5eed", clause: str = "TOY-01"
) -> tuple[Judgement, Bench]:
    """What the sweep says of a shelf, and its bench."""
    bench = bench_on(contract, "toy/suite/near-misses", lambda _: PlayedDriver(make().answer), seed)
    try:
        sweep(bench, clause)
        return bench.conclude(), bench
    except NonConformance as finding:
        return bench.gravest(finding.judgement), bench


def strict(contract: Contract) -> Callable[[Any], bool]:
    """The schema of the contract."""
    validator: Validator = contract.methods["put"].args
    return validator.is_valid


def test_a_sound_shelf_conforms(contract: Contract) -> None:
    judgement, bench = judged(contract, lambda: Shelf(strict(contract), str))
    assert judgement.verdict is Verdict.CONFORMS
    asked = [record.request or {} for record in bench.records]
    assert len({json.dumps(each["args"]["key"]) for each in asked if each.get("method") == "put"}) > 50


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (lambda key: key[:31], "differs at 31"),
        (lambda key: key[-8:], "differs"),
        (lambda key: key.replace("-", ""), "hyphen dropped"),
        (lambda key: key.removesuffix("0"), "one character more"),
    ],
)
def test_a_shelf_that_takes_a_near_miss_for_the_key_is_found(contract: Contract, read: Reading, name: str) -> None:
    judgement, _ = judged(contract, lambda: Shelf(strict(contract), read))
    assert judgement.verdict is Verdict.FAIL_OPEN
    assert name in judgement.detail
    assert "put:key" in judgement.detail


def test_a_shelf_that_accepts_what_the_format_forbids_is_found(contract: Contract) -> None:
    fits = strict(contract)

    def lenient(args: Any) -> bool:
        return fits({**args, "key": str(args["key"]).removesuffix("\n")})

    judgement, _ = judged(contract, lambda: Shelf(lenient, str))
    assert judgement.verdict is Verdict.FAIL_OPEN
    assert "line feed behind" in judgement.detail


def test_a_refusal_of_a_malformed_near_miss_that_leaves_a_row_is_found(contract: Contract) -> None:
    judgement, _ = judged(contract, lambda: Shelf(strict(contract), str, leaks=True))
    assert judgement.verdict is Verdict.STATE_LEAK


def test_a_shelf_that_accepts_a_near_miss_and_stores_another_value_is_found(contract: Contract) -> None:
    judgement, _ = judged(contract, lambda: Shelf(strict(contract), str, written=lambda key: key[:40]))
    assert judgement.verdict is Verdict.LOST_DURABILITY
    assert "accepted as new, and the observed state does not show it" in judgement.detail


def test_a_shelf_whose_state_shows_no_keys_is_accused_of_nothing(contract: Contract) -> None:
    def digest(key: str) -> str:
        return "k" + hashlib.sha256(key.encode()).hexdigest()[:20]

    judgement, _ = judged(contract, lambda: Shelf(strict(contract), str, written=digest))
    assert judgement.verdict is Verdict.CONFORMS


def test_a_shelf_that_refuses_a_good_near_miss_is_found(contract: Contract) -> None:
    fits = strict(contract)
    judgement, _ = judged(contract, lambda: Shelf(lambda args: fits(args) and len(args["key"]) < 64, str))
    assert judgement.verdict in (Verdict.WRONG_REASON, Verdict.OVER_REFUSAL)


def test_the_same_seed_asks_the_same_again(contract: Contract) -> None:
    asked = [
        [record.request for record in judged(contract, lambda: Shelf(strict(contract), str))[1].records]
        for _ in range(2)
    ]
    assert asked[0] == asked[1]


def test_a_clause_without_a_sweep_is_not_reached(contract: Contract) -> None:
    judgement, _ = judged(contract, lambda: Shelf(strict(contract), str), clause="TOY-02")
    assert judgement.verdict is Verdict.NOT_REACHED


def test_a_sweep_that_could_send_no_near_miss_is_not_reached(
    contract: Contract, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(near_miss, "neighbours", lambda _kind, _value: {})
    judgement, _ = judged(contract, lambda: Shelf(strict(contract), str))
    assert judgement.verdict is Verdict.NOT_REACHED
