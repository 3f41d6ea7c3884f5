"""An adapter loads the contract of its session and no other, and a bug's contract and no other."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import reference_impl
from holdfast.reference_impl.altered import install
from holdfast.reference_impl.registry import contract_names
from holdfast.reference_impl.session import OpenError
from holdfast.reference_impl.values import values_of
from holdfast.specs import kept_terms
from tests import warm

LOADED = """
import json, sys
from holdfast import reference_impl
from holdfast.reference_impl.altered import install
from holdfast.reference_impl.registry import Deferred, contract_names
{does}
heads = ["holdfast.reference_impl." + name.replace("-", "_") for name in contract_names()]
print(json.dumps([head for head in heads if head + ".terms" in sys.modules]))
"""


def loaded_by(does: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", LOADED.format(does=does)], capture_output=True, text=True, check=True)
    names: list[str] = json.loads(done.stdout)
    return names


def test_what_a_hello_says_loads_no_contract() -> None:
    assert loaded_by("[(one.version, one.not_claimed) for one in map(Deferred, contract_names())]") == []


def test_a_bug_is_found_without_any_contract() -> None:
    assert loaded_by("install(['adapter', '--mutant', 'key-of-first-4k'])") == []


def test_a_bug_that_nobody_has_is_told_with_those_that_there_are() -> None:
    with pytest.raises(KeyError, match=r"no mutant is called 'no-such-bug'; known: .*key-of-first-4k"):
        install(["adapter", "--mutant", "no-such-bug"])


def test_an_adapter_that_is_left_without_a_session_ends_in_order(tmp_path: Path) -> None:
    asked = '{"id":"1","op":"hello","protocol":1}\n{"id":"2","op":"bye"}\n'
    done = warm.cold(warm.REFERENCE, "adapter", input=asked, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    claims = json.loads(done.stdout.splitlines()[0])["ok"]["claims"]
    assert [claim["contract"] for claim in claims] == list(contract_names())


@pytest.mark.parametrize("contract", [name for name in contract_names() if name != "idempotency-key"])
def test_every_reason_that_a_reference_names_is_one_of_its_contract(contract: str) -> None:
    files = Path(reference_impl.__file__).with_name(contract.replace("-", "_")).glob("*.py")
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_bytes()))]
    named = {each.attr for each in nodes if isinstance(each, ast.Attribute) and ast.unparse(each.value) == "Reason"}
    assert "REQUEST_MALFORMED" in named
    assert named <= kept_terms(contract).reasons.keys()


def test_a_setting_without_a_value_in_the_contract_is_a_number_if_it_has_a_unit_and_else_a_text() -> None:
    assert values_of("mesh-delivery", {"broker": "http://127.0.0.1:1"})["broker"] == "http://127.0.0.1:1"
    assert values_of("rs4a-replay", {"horizon_seconds": "60"})["horizon_seconds"] == 60
    with pytest.raises(OpenError):
        values_of("rs4a-replay", {"horizon_seconds": "a day"})
