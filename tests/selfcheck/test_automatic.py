"""Bugs that a program plants: where it finds places, how a reference gets one, and which tests are run against it."""

from __future__ import annotations

import ast
import hashlib
import json
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import msgspec
import pytest

from holdfast.conformance.selfcheck.automatic import (
    ListingError,
    Score,
    attacks,
    difference,
    drawn,
    equivalents,
    listed,
    outcomes,
    portions,
    source_of,
)
from holdfast.conformance.selfcheck.tasks import Attack, Beginning, End, Outcome, Trace, Traced, Trial
from holdfast.conformance.selfcheck.worker import Worker
from holdfast.conformance.selfcheck.workers import Workers
from holdfast.reference_impl.altered import Alteration, ChangedError, changed
from holdfast.reference_impl.automatic import sql
from holdfast.reference_impl.automatic.operators import Operator
from holdfast.reference_impl.automatic.python import Source, edits
from holdfast.reference_impl.automatic.reach import Uses
from holdfast.reference_impl.automatic.sites import ROOT, sites_of
from holdfast.reference_impl.registry import contract_names
from holdfast.servers.environment import adapter_environment
from holdfast.servers.errors import StartError
from holdfast.servers.forkserver import ForkServer
from holdfast.servers.janitor import Janitor
from holdfast.specs import load_contract, schema
from holdfast.specs.automatic import Site, load_automatic
from holdfast.specs.faults import FaultLayer
from tests import warm


def changes(source: str) -> set[tuple[Operator, str]]:
    """The operators with what each makes of the source."""
    made = Source(source.encode())
    found = (
        (edit.operator, made.data[: edit.start] + edit.text.encode() + made.data[edit.end :]) for _, edit in edits(made)
    )
    return {(operator, changed.decode()) for operator, changed in found}


@pytest.mark.parametrize(
    ("operator", "before", "after"),
    [
        (Operator.COMPARISON, "x = a == b", "x = a != b"),
        (Operator.COMPARISON, "x = a in b", "x = a not in b"),
        (Operator.BOUNDARY, "x = a < b", "x = a <= b"),
        (Operator.CONSTANT, "x = 300", "x = 301"),
        (Operator.CONSTANT, "x = True", "x = False"),
        (Operator.STATEMENT, "a.b(c)", "pass"),
        (Operator.STATEMENT, "raise A", "pass"),
        (Operator.STATEMENT, "a.b = c", "pass"),
        (Operator.ARGUMENT, "x = f(a, b)", "x = f(b, a)"),
        (Operator.GUARD, "if a and b:\n    c()", "if not (a and b):\n    c()"),
        (Operator.GUARD, "x = a and b", "x = (b)"),
        (Operator.GUARD, "x = [a for a in b if c]", "x = [a for a in b if True]"),
        (Operator.SYNC, "os.fsync(handle)", "pass"),
        (Operator.ISOLATION, "connect(a, isolation_level=None)", "connect(a, isolation_level='DEFERRED')"),
    ],
)
def test_a_place_is_changed_by_its_operator(operator: Operator, before: str, after: str) -> None:
    assert (operator, after) in changes(before)


def test_a_text_that_a_function_takes_is_cut_and_loses_its_case() -> None:
    found = changes("def f(a: str) -> str:\n    return a\n")
    assert (Operator.TRUNCATED, "def f(a: str) -> str:\n    a = a[:16]\n    return a\n") in found
    assert (Operator.NORMALISED, "def f(a: str) -> str:\n    a = a.strip().lower()\n    return a\n") in found


@pytest.mark.parametrize(
    "source",
    [
        '"""Text."""',
        "import a",
        "from a import b",
        "x: int",
        'raise A("b")',
        'x = f"{a} b"',
        "@a(True)\ndef f(): ...",
        'detail = "a" if b else "c"',
        "a.detail = b",
        'class A:\n    detail: str = ""',
        'x = A(b, detail="c")',
        'class AError:\n    def __init__(self, detail: str = ""):\n        super().__init__("a" if detail else "b")',
        'def f(a: str):\n    return AError(f"{a} c")',
        'def f(a: str):\n    raise AError(f"{a} c")\n\n\nf("b")',
        'def f(a: str):\n    print(f"{a} c", file=sys.stderr)',
        'x = A(help="b", metavar="C")',
    ],
)
def test_what_no_test_can_show_is_left_alone(source: str) -> None:
    assert {operator for operator, _ in changes(source)} <= {Operator.STATEMENT}


@pytest.mark.parametrize(
    ("operator", "before", "after"),
    [
        (Operator.SCHEMA, "CREATE TABLE t (a TEXT NOT NULL)", "CREATE TABLE t (a TEXT )"),
        (Operator.SCHEMA, "CREATE TABLE t (a TEXT, UNIQUE (a))", "CREATE TABLE t (a TEXT)"),
        (Operator.SCHEMA, "CREATE UNIQUE INDEX i ON t (a)", "CREATE  INDEX i ON t (a)"),
        (Operator.SCHEMA, "CREATE TABLE t (a TEXT CHECK (a IN (1)))", "CREATE TABLE t (a TEXT )"),
        (Operator.WHERE, "SELECT a FROM t WHERE b = ? ORDER BY c", "SELECT a FROM t  ORDER BY c"),
        (Operator.WHERE, "SELECT a FROM t WHERE b = ? AND c = ?", "SELECT a FROM t WHERE b = ?"),
        (Operator.WHERE, "SELECT a FROM t WHERE b = ? AND c = ?", "SELECT a FROM t WHERE c = ?"),
        (Operator.BOUNDARY, "DELETE FROM t WHERE a < ?", "DELETE FROM t WHERE a <= ?"),
        (Operator.CONFLICT, "INSERT INTO t VALUES (1) ON CONFLICT (a) DO NOTHING", "INSERT INTO t VALUES (1) "),
        (Operator.CONFLICT, "INSERT OR IGNORE INTO t VALUES (1)", "INSERT  INTO t VALUES (1)"),
        (Operator.ISOLATION, "BEGIN IMMEDIATE", "BEGIN "),
        (Operator.PRAGMA, "PRAGMA synchronous = FULL", "PRAGMA synchronous = OFF"),
    ],
)
def test_a_text_of_sql_is_changed_by_its_operator(operator: Operator, before: str, after: str) -> None:
    found = [(one, ast.literal_eval(text)) for one, text in sql.changes(ast.Constant(before))]
    assert (operator, after) in found


def test_what_a_text_of_sql_is_filled_with_stays() -> None:
    node = ast.parse('f"SELECT a FROM {table} WHERE b = {value} AND c = 1"', mode="eval").body
    ((_, first), (_, second)) = list(sql.changes(node))
    names = {"table": "t", "value": "v"}
    assert eval(first, names) == "SELECT a FROM t WHERE c = 1"
    assert eval(second, names) == "SELECT a FROM t WHERE b = v"


def test_a_constant_is_met_where_a_function_uses_it_or_what_is_made_of_it() -> None:
    tree = ast.parse("A = 1\nB = A + 1\ndef f():\n    return B\ndef g():\n    return C\n")
    assert Uses({"m.py": tree}).lines(["A"]) == {("m.py", 4)}


def test_what_no_module_of_a_reference_calls_has_no_sites() -> None:
    own = {each.function for each in all_sites("calyx-replay") if each.file == "instants.py"}
    others = {each.function for each in all_sites("rs4a-replay") if each.file == "instants.py"}
    assert own < others
    # Of a module of classes, a reference that uses one constant of it has none of them.
    files = {each.function.partition(".")[0] for each in all_sites("mesh-delivery") if each.file == "sqlite.py"}
    assert "ProvenDatabase" not in files
    assert "ProvenDatabase" in {each.function.partition(".")[0] for each in all_sites("calyx-replay")}


@pytest.mark.parametrize("contract", contract_names())
def test_sites_have_names_of_their_own_and_make_a_source_that_compiles(contract: str) -> None:
    sites = all_sites(contract)
    assert len({site.id for site in sites}) == len(sites)
    for site in sites[:: len(sites) // 20]:
        source = (ROOT / site.file).read_bytes()
        made = changed(source, [Alteration(contract, site.module, site.digest, site.start, site.end, site.text)])
        assert made != source
        ast.parse(made)


def test_a_change_is_refused_if_the_source_is_not_that_of_the_listing() -> None:
    alteration = Alteration("jcs", "m", hashlib.sha256(b"x = 1").hexdigest(), 4, 5, "2")
    assert changed(b"x = 1", [alteration]) == b"x = 2"
    with pytest.raises(ChangedError):
        changed(b"x = 3", [alteration])


@pytest.mark.parametrize("contract", contract_names())
def test_every_entry_of_a_list_and_every_file_that_is_left_out_is_there(contract: str) -> None:
    _, problems = equivalents(contract, all_sites(contract))
    assert not problems
    package = ROOT / contract.replace("-", "_")
    for each in load_automatic(contract).beside:
        file = next(path for path in (package / each.file, ROOT / each.file) if path.is_file())
        name = each.function.rpartition(".")[2]
        assert not name or any(
            isinstance(node, ast.FunctionDef) and node.name == name for node in ast.walk(ast.parse(file.read_bytes()))
        )


def test_a_function_that_is_left_out_has_no_places() -> None:
    functions = {(site.file, site.function) for site in all_sites("calyx-replay")}
    for each in load_automatic("calyx-replay").beside:
        assert not each.function or ("calyx_replay/" + each.file, each.function) not in functions
    assert ("calyx_replay/operate.py", "_prune") in functions


@cache
def all_sites(contract: str) -> tuple[Site, ...]:
    """Every site of the contract's reference."""
    return tuple(sites_of(contract))


def site_at(line: int, name: str = "a.py:1:constant:1") -> Site:
    """A site of a file `a.py`."""
    return Site(
        id=name,
        contract="jcs",
        module="m",
        file="a.py",
        digest="",
        line=line,
        function="f",
        operator="constant",
        code="1",
        start=0,
        end=1,
        was="1",
        text="2",
        lines={"a.py": (line,)},
    )


def traced(case: str, *lines: int, seconds: float, conforms: bool = True, store: str = "none") -> Traced:
    """What a test executed of `a.py`."""
    return Traced(Trial(store, case), conforms=conforms, seconds=seconds, lines={"a.py": lines})


@pytest.mark.parametrize(
    ("line", "cases", "met", "launched"),
    [
        # The cheapest comes first; one that did not conform as it was traced is none.
        (2, None, ["fast", "slow"], False),
        (4, None, [], False),
        # What the launcher makes meets every test.
        (7, None, ["other", "fast", "slow"], True),
        # One that scripts did not find meets the next tests alone, and its own launcher.
        (7, ("slow",), ["slow"], True),
    ],
)
def test_a_mutant_meets_the_tests_that_execute_its_line(
    line: int, cases: tuple[str, ...] | None, met: list[str], launched: bool
) -> None:
    tests = [
        traced("", 7, seconds=0.0),
        traced("slow", 1, 2, seconds=2.0),
        traced("fast", 2, seconds=1.0),
        traced("other", 3, seconds=0.1),
        traced("fails", 2, seconds=0.1, conforms=False),
    ]
    (attack,) = attacks(load_contract("jcs"), [site_at(line)], tests, cases=cases, faults=cases is None)
    assert ([test.case for test in attack.tests], attack.launched) == (met, launched)


def test_nothing_is_tried_any_more_when_the_time_is_over() -> None:
    contract = load_contract("jcs")
    case = portions(contract, mutants=1)[0][0]
    with Workers(Beginning("jcs", "any", {}), jobs=1) as workers:
        late = workers.results([Trace((Trial("none", case),))], Traced, until=0.0)
        assert list(late) == []
        (attack,) = attacks(contract, [site_at(2)], [traced(case, 2, seconds=0.1)], faults=False)
        assert list(outcomes([attack], workers, until=0.0)) == []


@pytest.mark.parametrize(("operator", "crashed"), [("sync", True), ("guard", False)])
def test_a_mutant_that_no_case_finds_meets_faults(operator: str, crashed: bool) -> None:
    contract = load_contract("calyx-replay")
    site = msgspec.structs.replace(site_at(4), operator=operator)
    (before,) = attacks(contract, [site], [], faults=False)
    assert not before.faults
    (attack,) = attacks(contract, [site], [], faults=True)
    layers = {each.layer for each in contract.faults if each.id in {trial.case for trial in attack.faults}}
    assert (FaultLayer.POWER_LOSS in layers) == crashed
    assert (FaultLayer.STORE_READ_ONLY in layers) != crashed


def test_a_few_mutants_meet_the_scripts_in_portions_and_the_suites_last() -> None:
    contract = load_contract("jcs")
    few, many = portions(contract, mutants=1), portions(contract, mutants=400)
    assert len(few) > len(many) == 2
    assert [case for portion in few for case in portion] == [case for portion in many for case in portion]
    assert all("/suite/" in case for case in few[-1])


def test_a_source_that_has_changed_since_the_listing_has_no_mutants() -> None:
    site = all_sites("jcs")[0]
    assert source_of(site)
    with pytest.raises(ListingError):
        source_of(msgspec.structs.replace(site, digest="0" * 64))


def test_a_test_is_run_with_the_store_that_executes_the_line_and_takes_least_time() -> None:
    tests = [
        traced("both", 2, seconds=2.0, store="slow"),
        traced("both", 2, seconds=1.0, store="fast"),
        traced("one", 2, seconds=0.1, store="slow"),
        traced("", 7, seconds=0.0, store="slow"),
    ]
    shared, launched = attacks(load_contract("calyx-replay"), [site_at(2), site_at(7)], tests, faults=True)
    assert shared.tests == (Trial("slow", "one"), Trial("fast", "both"))
    assert launched.tests == (Trial("slow", "one"), Trial("slow", "both"))
    assert {trial.store for trial in launched.faults} == {"slow"}


def score(*ends: End, equivalent: int = 0) -> Score:
    """A score in which the last mutants are listed."""
    sites = [site_at(1, f"a.py:{number}:constant:1") for number in range(len(ends))]
    outcomes = {site.id: Outcome(site.id, end, 1) for site, end in zip(sites, ends, strict=True)}
    names = [site.id for site in sites][len(sites) - equivalent :]
    return Score("jcs", "s", len(sites), sites, outcomes, dict.fromkeys(names, "why"), ())


def test_what_was_not_tried_and_what_no_test_meets_count_as_survived() -> None:
    found = score(End.KILLED, End.TIMED_OUT, End.CRASHED, End.NOT_TRIED, End.NO_TEST, End.SURVIVED)
    assert (found.killed, len(found.survivors), found.listed) == (3, 3, 0)
    assert found.complaints


def test_one_in_ten_may_be_listed_and_not_more() -> None:
    enough = score(*[End.KILLED] * 9, End.SURVIVED, equivalent=1)
    assert (enough.killed, len(enough.survivors), enough.listed) == (9, 0, 1)
    assert not enough.complaints
    assert score(*[End.KILLED] * 8, End.SURVIVED, End.SURVIVED, equivalent=2).complaints


def test_a_listed_mutant_that_a_test_finds_is_a_complaint() -> None:
    assert score(*[End.KILLED] * 10, equivalent=1).complaints


def test_the_same_seed_draws_the_same_mutants_of_one_source() -> None:
    sites = [site_at(line, f"a.py:{line}:constant:1") for line in range(100)]
    assert drawn(sites, count=10, seed="a") == drawn(sites, count=10, seed="a")
    assert drawn(sites, count=10, seed="a") != drawn(sites, count=10, seed="b")
    assert drawn(sites, count=1000, seed="a") == tuple(sites)


def test_a_change_of_the_source_draws_anew_only_what_it_touches() -> None:
    sites = [msgspec.structs.replace(site_at(line), id=str(line), code=f"{line} == a") for line in range(100)]
    before = {site.code for site in drawn(sites, count=10, seed="a")}
    gone = next(site for site in sites if site.code in before)
    moved = [msgspec.structs.replace(site, id=f"moved {site.id}") for site in sites if site is not gone]
    after = {site.code for site in drawn(moved, count=10, seed="a")}
    assert before - after == {gone.code}
    assert len(after - before) == 1


def test_a_difference_shows_the_line_before_and_after() -> None:
    shown = difference(site_at(1), "1 == a\n")
    assert "-1 == a" in shown
    assert "+2 == a" in shown


def test_a_forkserver_that_does_not_come_up_is_a_failed_start() -> None:
    with Janitor() as janitor:
        gone = ForkServer((sys.executable, "-c", "1"), janitor=janitor, environment=adapter_environment())
        with gone, pytest.raises(StartError):
            gone.start(["adapter"], adapter_environment())


@pytest.mark.parametrize("contract", ["jcs", pytest.param("mesh-delivery", marks=pytest.mark.sweep)])
def test_a_few_mutants_of_one_contract_are_tried_and_counted(contract: str, tmp_path: Path) -> None:
    words = ("--contract", contract, "--count", "4", "--seed", "a slice", "--format", "json")
    done = warm.cold(warm.KIT, "selfcheck", "--automatic", *words, cwd=tmp_path)
    data = json.loads(done.stdout)
    assert schema.explain(schema.published_validator("selfcheck-automatic"), data) is None
    (found,) = data["contracts"]
    assert found["tried"] == 4
    assert found["killed"] + found["equivalent"] == 4, done.stderr


def test_of_a_planted_bug_the_lines_of_the_methods_that_it_overrides_are_listed() -> None:
    sites, _ = listed("calyx-replay")
    (file,) = sites.bugs["cutoff-included"]
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    assert "def delete_before" in lines[sites.bugs["cutoff-included"][file][0] - 1]
    # One that changes no function has none.
    assert "seen-at-of-microseconds-at-most" not in sites.bugs


def test_a_mutant_that_spoils_what_sessions_copy_spoils_no_later_one() -> None:
    sites = all_sites("calyx-replay")
    copying = next(site for site in sites if site.function == "copy" and site.was.startswith("shutil.copy2("))
    spoiling = msgspec.structs.replace(copying, text='source.write_bytes(b"")')
    harmless = next(site for site in sites if site.id in equivalents("calyx-replay", sites)[0])
    case = Trial("none", "calyx-replay/alg-3/the-first-receipt-adds-one-row-and-one-delivery")
    with ExitStack() as stack:
        worker = Worker(Beginning("calyx-replay", "automatic"), stack)
        ends = [next(worker.done(Attack(site, (case,), launched=False))) for site in (spoiling, harmless)]
    assert [each.end for each in ends if isinstance(each, Outcome)] == [End.KILLED, End.SURVIVED]
