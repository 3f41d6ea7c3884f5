"""Tampering with a run: damage breaks the chain; a forger who mends it meets the installed contract and the judge."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from holdfast.conformance.gate.decision import GateDecision, ReasonCode
from holdfast.conformance.verdict import Exit

from .alterations import believed_at
from .conftest import CALM, NOW, Bench, Edit, Json, Lines, forge, verdicts

REFUSED = {"outcome": "refused", "reason": "DUPLICATE"}
SECOND = "toy/once/a-second-put-of-a-key-is-refused"


def held(decision: GateDecision, code: ReasonCode, *, exit_status: Exit = Exit.INCOMPLETE) -> str:
    """The text of that reason, on a decision that holds with that exit status."""
    assert decision.can_proceed == "NO"
    assert decision.exit is exit_status, [str(reason) for reason in decision.reasons]
    return next(reason.text for reason in decision.reasons if reason.code is code)


def of(lines: Lines, kind: str, case: str = SECOND) -> list[Json]:
    return [line for line in lines if line["type"] == kind and line.get("case") == case]


# Damage: the chain as it was


def test_an_edited_line_holds_and_is_named(bench: Bench) -> None:
    edit = bench.damaged(lambda lines: [*lines[:5], lines[5].replace(b'"worker":0', b'"worker":1'), *lines[6:]])
    assert "line 6 was changed" in held(edit, ReasonCode.DAMAGED)


def test_a_fail_open_in_damaged_evidence_still_is_10(bench: Bench) -> None:
    path = bench.run(flaw="accepts duplicates")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    held(bench.decide(path), ReasonCode.FAIL_OPEN, exit_status=Exit.FAIL_OPEN)


# Forgery: the chain computed anew


TABLE: Json = {
    "type": "vectors", "stream": "1", "seed": 0, "count": 0, "block_rows": 1, "root": None, "profile": "core",
    "sdk": {"name": "", "language": "", "library": "", "version": ""}, "missing": 0, "restarts": 0, "table": [],
    "counterexamples": [],
}  # fmt: skip


def told(edit: Edit, code: ReasonCode, words: str = "", *, flaw: str | None = None, opens: bool = False) -> Any:
    """A forger's edit of a run with that flaw, and the reason that holds; with 10 if what `opens` is still seen."""
    return edit, code, words, flaw, Exit.FAIL_OPEN if opens else Exit.INCOMPLETE


def first(member: str) -> Edit:
    """A verdict that conforms has words beside it."""
    return lambda lines: of(lines, "verdict")[0].update({member: "crash" if member == "silence" else "all is well"})


def without(*kinds: str, side: str = "") -> Edit:
    """Lines of a case are gone."""
    return lambda lines: [
        line
        for line in lines
        if line.get("case") != SECOND or line["type"] not in kinds or side not in ("", line.get("side"))
    ]


def shortened(lines: Lines) -> Lines:
    """The case is gone from plan, exchanges and verdicts; footer and chain are in perfect order."""
    lines[0]["plan"].remove(SECOND)
    return [line for line in lines if line.get("case") != SECOND]


def emptied(lines: Lines) -> Lines:
    lines[0]["plan"] = []
    return [lines[0], lines[-1]]


def words_beside(lines: Lines) -> None:
    """A local action tells something."""
    line = next(line for line in lines if (line.get("event") or {}).get("kind") == "done")
    line["event"]["detail"] = "and all was well"


def refused(lines: Lines) -> None:
    """The accepted second put becomes a refusal; the observation after it shows the second effect."""
    puts = [line for line in of(lines, "exchange") if line["side"] == "main" and line["action"].startswith("when.")]
    next(line for line in puts if "outcome" in (line["answer"] or {}))["answer"] = REFUSED
    for line in of(lines, "verdict"):
        line["verdict"] = "conforms"


def answered(nonsense: Json) -> Edit:
    """Every answer is one that no adapter can give."""

    def edit(lines: Lines) -> None:
        for line in lines:
            if line["type"] == "exchange" and line["answer"] is not None:
                line["answer"] = nonsense

    return edit


def redated(lines: Lines) -> None:
    for line, member, days in ((lines[0], "started", 1), (lines[-1], "finished", 2)):
        line[member] = (NOW + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")


R, TWICE = ReasonCode, "accepts duplicates"
INSTALLED, INVENTED, OTHER = "than what is installed", "toy/once/invented", "sha256:" + "e" * 64
WORDS = ("detail", "expected", "received", "advice", "silence", "excused")
NONSENSE: tuple[Json, ...] = (
    {}, {"outcome": 7}, {"outcome": "refused"}, {"outcome": "accepted"}, {"outcome": "ok", "value": {"entry": 3}},
)  # fmt: skip
PLACES: tuple[Json, ...] = ({"n": 0}, {"side": "twin"}, {"side": None, "n": None}, {"n": 10**6})
FORGED: dict[str, Any] = {
    "digest": told(lambda x: x[0]["contracts"][0].update(digest=OTHER), R.OTHER_CONTRACT, INSTALLED),
    "digest of cases": told(lambda x: x[0]["contracts"][0].update(cases_digest=OTHER), R.OTHER_CONTRACT, INSTALLED),
    "version": told(lambda x: x[0]["contracts"][0].update(version="9.9.9"), R.OTHER_CONTRACT, INSTALLED),
    "plan of a failure": told(shortened, R.OTHER_PLAN, SECOND, flaw=TWICE, opens=True),
    "plan": told(shortened, R.OTHER_PLAN, SECOND),
    "plan and its results": told(shortened, R.MISSING_RESULTS, SECOND),
    "whole plan": told(emptied, R.ZERO_CASES, "not one of 7 cases"),
    "whole plan, which is another": told(emptied, R.OTHER_PLAN),
    **{f"{member} of what conforms": told(first(member), R.JUDGED_OTHERWISE) for member in WORDS},
    "local action": told(words_beside, R.JUDGED_OTHERWISE),
    "artefacts": told(lambda x: [line for line in x if line["type"] != "artefacts"], R.DAMAGED, "which files ran"),
    "documents beside cases": told(lambda x: [*x[:-2], {**TABLE}, *x[-2:]], R.EXTRA_RESULTS),
    "verdicts": told(
        CALM,
        R.JUDGED_OTHERWISE,
        "recorded is conforms, its exchanges show fail_open",
        flaw=TWICE,
        opens=True,
    ),
    "milder verdict": told(verdicts("fail_open", verdict="not_reached"), R.JUDGED_OTHERWISE, flaw=TWICE, opens=True),
    "exchanges": told(without("exchange"), R.JUDGED_OTHERWISE, "its exchanges show not_reached"),
    "twin": told(without("exchange", side="twin"), R.JUDGED_OTHERWISE, "the twin side was not run"),
    "result": told(without("exchange", "verdict"), R.MISSING_RESULTS, SECOND),
    "seed": told(lambda x: x[0].update(seed="another"), R.JUDGED_OTHERWISE, "do not fit the case"),
    "answer without care": told(refused, R.JUDGED_OTHERWISE, flaw=TWICE, opens=True),
    **{f"answers, {each}": told(answered(each), R.JUDGED_OTHERWISE) for each in NONSENSE},
    "result that nobody planned": told(
        lambda x: x.insert(-2, {**of(x, "verdict")[0], "case": INVENTED}), R.EXTRA_RESULTS, INVENTED
    ),
    "verdict of the end": told(lambda x: x[-1].update(verdict="fail_open", left=True), R.DAMAGED, "gravest finding"),
    "dates": told(redated, R.FUTURE),
    "excuse": told(verdicts("fail_open", excused="issue 17"), R.EXCUSED_FAIL_OPEN, flaw=TWICE, opens=True),
    **{
        f"place, {place}": told(verdicts("fail_open", **place), R.JUDGED_OTHERWISE, flaw=TWICE, opens=True)
        for place in PLACES
    },
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forger_who_changes_and_mends_the_chain_is_held(what: str, bench: Bench) -> None:
    edit, code, words, flaw, status = FORGED[what]
    assert words in held(bench.forged(edit, flaw=flaw), code, exit_status=status)


def test_a_digest_of_the_installed_contract_does_not_help_an_old_plan(bench: Bench) -> None:
    """The run was made when the contract had one case less, and its header was brought up to date."""
    younger = bench.contract
    older = structs.replace(younger, cases=younger.cases[:-1])
    path = Bench(older, bench.folder).run()
    decision = bench.decide(path)
    assert "1 cases are not in the run's plan" in held(decision, ReasonCode.OTHER_PLAN)
    assert held(decision, ReasonCode.MISSING_RESULTS)


@pytest.mark.parametrize(
    ("verdict", "code", "status"),
    [("conforms", ReasonCode.NOT_IN_RUN, Exit.INCOMPLETE), ("fail_open", ReasonCode.FAIL_OPEN, Exit.FAIL_OPEN)],
)
@pytest.mark.parametrize("origin", ["chosen", "fresh"])
def test_a_run_of_documents_is_named_as_one_and_never_opens_the_gate(
    bench: Bench, verdict: str, code: ReasonCode, status: Exit, origin: str
) -> None:
    def documents(lines: Lines) -> Lines:
        header = {**lines[0], "plan": ["vectors/core/P1"], "seed_origin": origin, "nonce": None}
        line = {**of(lines, "verdict")[0], "case": "vectors/core/P1", "verdict": verdict, "side": None, "n": None}
        return [header, {**TABLE}, line, *lines[-2:]]

    decision = bench.forged(documents)
    (reason,) = decision.reasons
    assert (decision.can_proceed, reason.code, decision.exit) == ("NO", code, status)
    assert "`holdfast vectors verify`" in reason.text


def test_a_forger_who_makes_up_every_exchange_makes_up_a_run(bench: Bench) -> None:
    """The limit of a hash chain, on purpose in a test: it detects damage, not forgery.

    All lines of the case are replaced by those of an honest run with the same seed, the chain is computed anew:
    nothing in the file says otherwise. A signature of the whole file, which is not the kit's affair, shows that.
    """
    honest: Lines = []
    forge(bench.run(name="honest.jsonl"), lambda lines: honest.extend(lines))
    made_up = forge(bench.run(flaw="accepts duplicates"), lambda lines: [lines[0], *honest[1:]])
    assert bench.decide(made_up).can_proceed == "YES"


@pytest.mark.parametrize(
    "line",
    [
        {"type": "log", "worker": 0, "text": "all is well"},
        {"type": "restart", "worker": 0, "cause": "crash: never", "count": 1},
    ],
)
def test_logs_and_restarts_are_believed_as_the_documentation_says(bench: Bench, line: Json) -> None:
    decision = bench.forged(lambda lines: [*lines[:-2], line, *lines[-2:]])
    assert decision.can_proceed == "YES"
    assert believed_at(line["type"]) is not None


def test_how_a_file_came_to_be_counted_is_believed_and_the_file_is_not(bench: Bench) -> None:
    assert bench.forged(lambda lines: lines[-2]["files"][0].update(source="named")).can_proceed == "YES"
    assert believed_at("artefacts.files.*.source") is not believed_at("artefacts.files.*.path")
    held(bench.forged(lambda lines: lines[-2]["files"][0].update(sha256="e" * 64)), ReasonCode.DAMAGED)
