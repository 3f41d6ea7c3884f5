"""`holdfast report`: data that fit their schema, and a page that a person, a screen reader and a browser can use."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from typer.testing import CliRunner

from holdfast import DISTRIBUTION, __version__
from holdfast.conformance.cli.commands import app
from holdfast.conformance.gate.decision import installed_kit
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.run.summary import verdict_of
from holdfast.conformance.verdict import Verdict
from holdfast.reports import report as pages
from holdfast.specs import load_contract, schema, typed

from .conftest import TOY, Bench, Edit, Lines, forge

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
IN_CI = os.environ.get("CI") == "true"
HOSTILE = '<script>document.title="mine"</script>\x1b[2J\u202e" onload="alert(1)'
MOST_SECONDS = 2


@pytest.fixture(autouse=True)
def _toy_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SPECS", str(TOY))


def run_of(bench: Bench, flaw: str | None = "accepts duplicates", edit: Edit = lambda _: None) -> Path:
    started = datetime.now(UTC) - timedelta(minutes=2)
    made = bench.run(flaw=flaw, kit=installed_kit(), started=started, finished=started + timedelta(minutes=1))
    return forge(made, edit)


def report(*words: str) -> Any:
    return CliRunner().invoke(app, ["report", *words])


def data_of(run: Path) -> Any:
    done = report("json", str(run))
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)
    assert schema.explain(schema.published_validator("report"), data) is None
    return data


def read(run: Path) -> pages.Report:
    return typed.read(data_of(run), pages.Report, instants=("made",))


def test_the_published_schema_is_that_of_the_types() -> None:
    assert schema.published_schema("report") == json.loads(json.dumps(pages.report_schema()))


def test_a_finding_has_its_promise_its_harm_what_was_sent_and_what_came(bench: Bench) -> None:
    data = data_of(run_of(bench))
    assert (data["can_proceed"], data["exit"]) == ("NO", 10)
    first = data["findings"][0]
    clause = bench.contract.clauses[first["clause"]]
    assert (first["verdict"], first["promise"], bool(first["harm"])) == ("fail_open", clause.text, True)
    shown = first["cases"][0]
    case = bench.contract.case(shown["case"])
    assert case is not None
    assert bool(shown["twin"]) is (case.twin is not None)
    (judged,) = [call for call in shown["calls"] if call["judged"]]
    assert judged["sent"]
    assert judged["came"]
    assert first["again"].endswith(f"{shown['case']} -- shelf")


def test_each_clause_stands_there_once_with_all_of_its_cases(bench: Bench) -> None:
    data = data_of(run_of(bench, None))
    assert data["can_proceed"] == "YES"
    assert data["findings"] == []
    assert [line["clause"] for line in data["clauses"]] == [*bench.contract.clauses]
    assert (
        sum(data["counts"].values())
        == data["planned"]
        == len({c["case"] for one in data["clauses"] for c in one["cases"]})
    )


@pytest.mark.parametrize("verdict", [Verdict.FAIL_OPEN, Verdict.WRONG_REASON, Verdict.NO_VERDICT, Verdict.CONFORMS])
def test_a_clause_neither_breaks_nor_conforms_by_a_case_that_breaks_another(verdict: Verdict) -> None:
    contract = load_contract("jcs")
    broken = next(case for case in plan_of(contract) if case.clauses == ("JCS-DUP-01", "JCS-DUP-02", "JCS-DUP-03"))
    sound = next(case for case in plan_of(contract) if case.clauses == ("JCS-DUP-02",))
    first, second = (contract.clauses[name] for name in broken.clauses[:2])
    results = [(broken, verdict), (sound, Verdict.CONFORMS)]
    assert verdict_of(first, contract, results[:1]) is verdict
    of_other = verdict in (Verdict.FAIL_OPEN, Verdict.WRONG_REASON)
    assert verdict_of(second, contract, results) is (Verdict.NOT_REACHED if of_other else verdict)
    assert verdict_of(second, contract, []) is None


def test_what_has_no_result_is_said_not_to_be_tested(bench: Bench) -> None:
    data = data_of(run_of(bench, None, edit=lambda lines: [one for one in lines if one["type"] != "verdict"]))
    assert data["can_proceed"] == "NO"
    assert any("no result" in each["why"] for each in data["untested"])


def test_a_file_that_is_no_evidence_or_a_place_that_cannot_be_written_is_a_usage_error(
    bench: Bench, tmp_path: Path
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text("{}\n", encoding="utf-8")
    assert report("html", str(other), "-o", str(tmp_path / "page.html")).exit_code == 64
    assert report("html", str(run_of(bench)), "-o", str(other / "page.html")).exit_code == 64
    assert not (tmp_path / "page.html").exists()


def test_the_versions_of_a_run_are_printed_as_constraints(bench: Bench) -> None:
    done = report("constraints", str(run_of(bench)))
    assert done.exit_code == 0
    pins = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    assert f"jsonschema-rs=={version('jsonschema-rs')}" in pins
    assert pins[0] == f"{DISTRIBUTION}=={__version__}"


def test_a_page_takes_the_place_of_an_older_page_and_of_nothing_else(bench: Bench, tmp_path: Path) -> None:
    place, run = tmp_path / "page.html", str(run_of(bench))
    assert [report("html", run, "-o", str(place)).exit_code for _ in range(2)] == [0, 0]
    assert (tmp_path / "page.html.previous").is_file()
    place.write_text("<!doctype html>mine", encoding="utf-8")
    assert report("html", run, "-o", str(place)).exit_code == 64
    assert place.read_text(encoding="utf-8") == "<!doctype html>mine"


@pytest.fixture
def hostile(bench: Bench) -> Path:
    def edited(lines: Lines) -> None:
        for line in lines:
            if line["type"] == "header":
                line["adapter"]["implementation"] = {"name": HOSTILE, "version": HOSTILE, "language": HOSTILE}
            if line["type"] == "verdict" and line["verdict"] == "fail_open":
                line["detail"] = HOSTILE + "x" * (10 << 20)

    return run_of(bench, edit=edited)


def test_hostile_texts_are_shown_and_what_is_very_long_is_cut(hostile: Path, tmp_path: Path) -> None:
    place = tmp_path / "page.html"
    assert report("html", str(hostile), "--output", str(place)).exit_code == 0
    text = place.read_text(encoding="utf-8")
    assert "<script>document" not in text
    assert "\u202e" not in text
    assert "\x1b" not in text
    assert len(text) < 1 << 20


# In a real browser.


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium."""
    if BROWSER is None:
        assert not IN_CI, "CI has chromium"
        pytest.skip("chromium is not installed, so the page is not proven in a browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        running = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield running
        running.close()


class Opened:
    """A page in a browser, and what it asked for or complained of."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page = browser.new_page(**options)
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.address = file.as_uri()
        begun = time.perf_counter()
        self.page.goto(self.address, wait_until="load")
        self.seconds = time.perf_counter() - begun

    def is_quiet(self) -> bool:
        return not self.complaints and self.asked == [self.address]


def written(report: pages.Report, folder: Path) -> Path:
    place = folder / "page.html"
    place.write_text(pages.page(report), encoding="utf-8")
    return place


@pytest.mark.parametrize("width", [360, 1600])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible_and_no_wider_than_the_screen(
    bench: Bench, browser: Any, tmp_path: Path, width: int, scheme: str
) -> None:
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]

    place = written(read(run_of(bench)), tmp_path)
    opened = Opened(browser, place, viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert opened.is_quiet()
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert "fail open" in opened.page.inner_text("header")
    # The check is a script that the page's own policy would stop.
    checked = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    checked.goto(place.as_uri())
    assert [each["id"] for each in Axe().run(checked).response["violations"]] == []


def test_hostile_texts_do_nothing_in_a_browser(hostile: Path, browser: Any, tmp_path: Path) -> None:
    opened = Opened(browser, written(read(hostile), tmp_path))
    assert opened.is_quiet()
    assert opened.page.title() != "mine"
    assert "document.title" in opened.page.inner_text("header")


def test_the_filter_keeps_what_is_asked_for_and_links_lead_somewhere(
    bench: Bench, browser: Any, tmp_path: Path
) -> None:
    opened = Opened(browser, written(read(run_of(bench)), tmp_path))
    page, rows = opened.page, "#clause-rows > tr:visible"
    whole = page.locator(rows).count()
    page.select_option("#filter-verdict", "bad")
    assert 0 < page.locator(rows).count() < whole
    page.select_option("#filter-verdict", "")
    page.fill("#filter-text", "no clause says this")
    assert page.locator(rows).count() == 0
    page.fill("#filter-text", "")
    assert page.locator(rows).count() == whole
    for link in page.locator("a[href^='#']").all():
        assert page.locator(link.get_attribute("href")).count() == 1
    assert opened.is_quiet()


def test_a_run_of_five_thousand_cases_opens_at_once(bench: Bench, browser: Any, tmp_path: Path) -> None:
    small = read(run_of(bench))
    line, finding = small.clauses[0], small.findings[0]
    case = line.cases[0]
    clauses = [
        structs.replace(
            line, clause=f"TOY-{each}", cases=tuple(structs.replace(case, case=f"toy/{each}/{n}") for n in range(25))
        )
        for each in range(200)
    ]
    findings = tuple(structs.replace(finding, cause=f"cause {each}") for each in range(100))
    large = structs.replace(small, clauses=tuple(clauses), findings=findings, planned=5000)
    opened = Opened(browser, written(large, tmp_path))
    assert opened.seconds < MOST_SECONDS
    assert opened.page.locator("#clause-rows > tr").count() == 200
