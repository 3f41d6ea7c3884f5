"""The gallery: what an entry has to be, and what its page and the table say."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from holdfast.conformance.cases.record import Record
from holdfast.conformance.gallery.page import Audience, chosen, facts_of, page, table
from holdfast.conformance.gallery.running import (
    ENTRIES,
    TRIES,
    Declared,
    Entry,
    Ran,
    RepeatedFailure,
    RunError,
    installed,
    names,
    read,
    run,
)
from holdfast.conformance.gallery.timeline import curls, timeline
from holdfast.conformance.run.plan import suite_case_id, suite_tests
from holdfast.conformance.verdict import Verdict
from holdfast.servers.wires.profile import read as read_service
from tests.conftest import missing
from tests.pace import busy

CASES = {suite_case_id("idempotency-key", test.__name__) for test, _ in suite_tests("idempotency-key")}
RACE = "idempotency-key/suite/any-number-of-requests-at-once-have-one-effect"
KEYS = "idempotency-key/suite/a-request-without-its-required-key-is-refused"
MOST_LINES = 60
ROOT = Path(__file__).parents[2]
# Entries that pip alone installs, in seconds.
_LIGHT = ("exactly-once", "flask-idempotent")
_NO_SERVICE = {".toml", ".json", ".lock", ".sum", ".mod", ".txt", ".xml"}


@pytest.mark.parametrize("name", names())
def test_an_entry_can_be_read_its_service_is_small_and_its_library_is_pinned(name: str) -> None:
    entry = read(name)
    service = read_service(ENTRIES / name / "service.toml")
    assert "process" in service.wires()
    assert {case for limit in entry.declared for case in limit.cases} <= CASES
    files = [path for path in (ENTRIES / name).rglob("*") if path.is_file() and path.suffix not in _NO_SERVICE]
    # What only starts the store's server is no part of the service.
    files = [path for path in files if path.stem != "store"]
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)
    assert 0 < lines <= MOST_LINES
    pinned = [path for path in (ENTRIES / name).iterdir() if path.suffix in _NO_SERVICE and path.stem != "entry"]
    assert any(entry.version in path.read_text(encoding="utf-8") for path in pinned)


def test_an_entry_that_cannot_be_installed_is_not_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="status 3"):
        installed(names()[0], _entry(install=("sh -c 'exit 3'",)), tmp_path)


def _entry(**changed: object) -> Entry:
    fields = {"title": "A library", "language": "Go", "package": "a/b", "version": "1.2.3", "homepage": "https://x"}
    more = {"store": "Redis", "install": (), "safe": "Do that.", **changed}
    return Entry(**fields, **more)  # type: ignore[arg-type]


def test_a_page_keeps_what_its_run_showed_and_the_table_reads_it(tmp_path: Path) -> None:
    limit = Declared((RACE,), "It is only for one process.", "README", "https://x/1.2.3")
    found = [RepeatedFailure(RACE, "fail_open", TRIES, "two effects", ["0 s client"], ["curl x"])]
    found += [
        RepeatedFailure(KEYS, "wrong_reason", TRIES, "500", [], []),
        RepeatedFailure(KEYS, "fail_open", 1, "once", [], []),
    ]
    ran = Ran("2026-01-01", {RACE: "fail_open", KEYS: "wrong_reason"}, found, "sha256:0123456789abcdef")
    entry = _entry(declared=(limit,))
    (tmp_path / "a.md").write_text(page("a", entry, ran, version="1"), encoding="utf-8")
    (tmp_path / "index.md").write_text("---\nno page\n---\n", encoding="utf-8")
    (facts,) = facts_of(tmp_path)
    text = table([facts])
    assert re.search(r"\[A library\]\(a\.md\).*`a/b` 1\.2\.3.*sha256:0123456789ab", text)
    # What came once only is no finding: KEY has one that departs, RACE one that fails open.
    heads, marks = (re.findall(rf"<{each}>([^<]*)", text) for each in ("th", "td"))
    assert {name: mark for name, mark in zip(heads[1:], marks, strict=True) if mark in "\u25cf\u25cb" and mark} == {
        "KEY": "\u25cb",
        "RACE": "\u25cf",
    }
    local = (tmp_path / "a.md").read_text(encoding="utf-8")
    assert limit.quote in local
    assert KEYS in local
    # Nobody's advice that was not run is printed as one.
    assert "**To be safe**" not in local
    published = page("a", entry, ran, version="1", audience=Audience.PUBLIC)
    assert limit.url in published
    for hidden in (KEYS, "wrong_reason", entry.safe, "roken by choice"):
        assert hidden not in published


def test_an_advice_that_was_run_stands_beside_what_it_showed() -> None:
    ran = Ran("2026-01-01", {KEYS: "conforms"}, [], "sha256:0", {KEYS: "conforms", RACE: "fail_open"})
    assert "**To be safe** (1 conforms, 1 fail_open). Do that." in page("a", _entry(), ran, version="1")


def _published(case: str, declared: tuple[Declared, ...], *, times: int = TRIES, safe: str = "conforms") -> str:
    ran = Ran(
        "2026-01-01", {case: "fail_open"}, [RepeatedFailure(case, "fail_open", times, "two", [], [])], "", {case: safe}
    )
    return page("a", _entry(declared=declared), ran, version="1", audience=Audience.PUBLIC)


def test_everybody_reads_an_advice_only_where_it_closes_a_quoted_limit() -> None:
    limit = Declared((RACE,), "It is only for one process.", "README", "https://x/1.2.3")
    assert "Do that." in _published(RACE, (limit,))
    assert "Do that." not in _published(RACE, (limit,), safe="fail_open")


def test_of_an_entry_without_a_quoted_limit_everybody_reads_the_same_whatever_it_showed(tmp_path: Path) -> None:
    nothing = page("a", _entry(), Ran("2026-01-01", {RACE: "conforms"}, []), version="1", audience=Audience.PUBLIC)
    assert _published(RACE, ()) == nothing
    # What comes once only is no limit.
    assert _published(RACE, (Declared((RACE,), "a", "b", "https://x/1.2.3"),), times=1) == nothing
    (tmp_path / "a.md").write_text(nothing, encoding="utf-8")
    assert "fail_open" not in table(facts_of(tmp_path))


def test_what_a_profile_leaves_out_is_broken_by_choice() -> None:
    said = {"scope": ["route"], "fingerprint": ["body"], "shared": False, "duplicate": "ack"}
    assert chosen(said).keys() == {"IK-SCOPE-1", "IK-FP-2", "IK-ONCE-3", "IK-RESP-1"}
    whole = {"scope": ["principal"], "fingerprint": ["body", "query"], "shared": True, "duplicate": "replay"}
    assert chosen(whole) == {}


@pytest.mark.parametrize("name", names())
def test_a_quotation_names_its_place_in_the_version_of_the_entry(name: str) -> None:
    entry = read(name)
    for limit in entry.declared:
        assert limit.quote
        # A page of the documentation of 4.22.x is that of 4.22.0.
        assert any(version in limit.url for version in (entry.version, f"{entry.version.rpartition('.')[0]}.x"))


def test_the_published_index_is_that_of_the_published_pages() -> None:
    kept = ROOT / "docs" / "gallery"
    pages = facts_of(kept)
    assert (kept / "index.md").read_text(encoding="utf-8") == table(pages)
    for facts in pages:
        entry, text = read(facts["name"]), (kept / f"{facts['name']}.md").read_text(encoding="utf-8")
        assert facts["version"] == entry.version
        limits = [entry.quoted(finding["case"]) for finding in facts["findings"]]
        # A page shows quoted limits alone, each beside its quotation, and no other verdict.
        assert all(limit is not None and limit.quote in text for limit in limits)
        assert text.count("\n## ") == len(limits)
        assert {verdict.value for verdict in Verdict if f"**{verdict.value}**" in text} == {
            finding["verdict"] for finding in facts["findings"]
        }
        assert (entry.safe in text) == (facts["safe"] != "")
        assert not facts["chosen"]


def _slice() -> list[str]:
    """The entries that are started: one of each run of the tests, all of them by `tox -e gallery`."""
    if os.environ.get("HOLDFAST_GALLERY") == "all":
        return names()
    return [Random(os.environ.get("PYTEST_XDIST_TESTRUNUID", "alone")).choice(_LIGHT)]


@pytest.mark.parametrize("name", _slice())
def test_an_entry_starts_and_its_routes_reach_the_sink(name: str, tmp_path: Path) -> None:
    entry = read(name)
    try:
        folder = installed(name, entry, tmp_path)
    except (RunError, OSError) as error:
        missing(f"what installs {name}: {error}")
    for service in [each for each in ("service.toml", "safe.toml") if (folder / each).exists()]:
        command = [sys.executable, "-m", "holdfast.conformance.cli", "doctor", "--slow", "4", "--service", service]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=busy(600), check=False)
        assert done.returncode == 0, f"{service}: {done.stdout}{done.stderr}"


def _record(n: int, method: str, args: dict[str, object], value: object) -> Record:
    request = {"op": "call", "method": method, "args": args}
    answer = {"outcome": "ok", "value": value}
    return Record(n, method, 0, request, answer, None, n * 1_000_000, n * 1_000_000 + 10)


def test_a_timeline_has_the_tag_of_the_finding_and_what_befell_the_store() -> None:
    profile = {"profile": {"header": "Key"}, "routes": {"create": {"path": "/orders", "method": "POST"}}}
    one: dict[str, object] = {"tag": "hf-1", "body": "e30", "keys": ["k"]}
    records = [
        _record(0, "profile", {}, profile),
        _record(1, "begin", {"name": "first", "request": one}, {"at": "sink"}),
        _record(2, "submit", {**one, "tag": "hf-2"}, {"status": 201, "body": ""}),
        _record(3, "line", {"fault": "silent"}, None),
        _record(4, "seen", {"tag": "hf-1"}, {"effects": 2, "attempts": 2, "held": 0}),
        _record(5, "seen", {"tag": "hf-2"}, {"effects": 1, "attempts": 1, "held": 0}),
    ]
    lines = timeline(records, 4)
    assert [line.split()[2] for line in lines] == ["client", "store", "sink"]
    assert "2 effects" in lines[-1]
    assert [line for line in curls(records, 1) if "/orders" in line and "'Key: k'" in line]
    headers = {"X-Tenant": "it's one", "Authorization": "$CREDENTIAL_A"}
    (line,) = curls(records, 1, {"a": headers, "b": {"X-Tenant": "another"}})
    expanded = subprocess.run(
        ["sh", "-c", line.replace("curl", "printf '%s\\n'", 1)], capture_output=True, text=True, check=True,
        env={"CREDENTIAL_A": "Bearer a", "SERVICE": "http://x"},
    ).stdout.splitlines()  # fmt: skip
    assert {"X-Tenant: it's one", "Authorization: Bearer a", "http://x/orders"} <= {*expanded}
    # An answer in front of its effect is of no execution.
    behind = {**profile, "profile": {"header": "Key", "handler": "behind"}}
    answer = {"outcome": "accepted", "effect": "new", "value": {"status": 202, "body": ""}}
    answered = replace(_record(2, "submit", one, None), answer=answer)
    assert "its own answer" in timeline([records[0], answered], 2)[-1]
    assert "its own answer" not in timeline([_record(0, "profile", {}, behind), answered], 2)[-1]
    # Another contract has no wires.
    assert timeline(records[1:], 4) == []


PROFILE = _record(0, "profile", {}, {"profile": {"header": "Key"}, "routes": {"create": {"path": "/orders"}}})
ONE: dict[str, object] = {"tag": "hf-1", "body": "JUZJTEwl", "keys": ["k"], "fill": 7}


def test_what_a_request_has_beside_its_key_and_body_is_told_and_stands_in_its_line_of_curl() -> None:
    sent = {**ONE, "principal": "b", "chunked": True, "half": True, "headers": [["Accept-Encoding", "gzip"]]}
    records = [PROFILE, _record(1, "submit", sent, {"status": 201, "body": ""})]
    (told,), (line,) = timeline(records, 1), curls(records, 1)
    assert {"principal b", "in chunks", "Accept-Encoding: gzip"} <= {part.strip() for part in told.split(",")}
    assert {"Accept-Encoding: gzip", "Transfer-Encoding: chunked"} <= {*shlex.split(line, comments=True)}
    assert "half of the body" in line.partition("#")[2]


def test_a_timeline_tells_a_wait_from_a_clock_that_is_moved_and_shows_that_a_body_is_empty() -> None:
    done = [
        _record(1, "ending", {"tag": "hf-1", "ending": {"status": 202, "body": ""}}, None),
        _record(2, "ending", {"tag": "hf-1", "ending": {"status": 201}}, None),
        _record(2, "pause", {"ms": 250}, None),
        _record(3, "pass_time", {"ms": 30_100}, None),
        _record(4, "pass_time", {"ms": -3_600_000}, None),
        _record(5, "seen", {"tag": "hf-1"}, {"effects": 1, "attempts": 1}),
    ]
    lines = [line.split(maxsplit=2)[2] for line in timeline([PROFILE, *done], 5)]
    assert lines[0].endswith("status 202, a body of 0 bytes")
    assert lines[1].endswith("status 201")
    assert [line.split() for line in lines[2:5]] == [
        ["wait", "0.25", "s"],
        ["clock", "+30.1", "s"],
        ["clock", "-3600", "s"],
    ]


def test_an_answer_is_from_before_only_where_it_was_heard_before_or_is_marked() -> None:
    def came(body: str, **more: object) -> dict[str, object]:
        return {"outcome": "accepted", "effect": "prior", "status": 201, "body": body, **more}

    answers = [came("eQ"), came("eQ"), came("eg"), {**came(""), "outcome": "refused", "reason": "IN_PROGRESS"}]
    burst = _record(1, "burst", {"requests": [ONE] * 4}, {"answers": answers})
    line = timeline([PROFILE, burst], 1)[-1].partition("->")[2].split(", ")
    assert [each.strip() for each in line] == [
        "201 its own answer y",
        "201 an answer from before y",
        "201 its own answer z",
        "201 IN_PROGRESS",
    ]
    retries = []
    for n, (body, marked) in enumerate((("eQ", False), ("YQ", True), ("Yg", False)), start=2):
        answer = {"outcome": "accepted", "effect": "prior", "value": {"status": 201, "body": body, "marked": marked}}
        retries.append(replace(_record(n, "submit", ONE, None), answer=answer))
    lines = timeline([PROFILE, burst, *retries], 4)[1:]
    assert ["from before" in each for each in lines] == [True, True, False]
    # Of two that ran, the second has an effect of its own, though its bytes are the same.
    again = replace(retries[0], answer={**(retries[0].answer or {}), "effect": "new"})
    assert "its own answer" in timeline([PROFILE, burst, again], 2)[-1]


def test_a_timeline_has_what_holdfast_did_to_files_and_disk() -> None:
    acts = (
        ("tamper data/keys cut", "", "data/keys cut"),
        ("tamper data/keys", "", "data/keys removed"),
        ("lock ", '{"count":2}', "locks 2 files"),
        ("lock no more", '{"count":0}', "lets go"),
        ("copy data", '{"to":"aside"}', "data to aside"),
        ("lose-power 3", '{"kept":[1],"states":8}', "state 4 of 8"),
        # Only asked, or not done.
        ("lose-power 0", '{"kept":[],"states":8}', None),
        ("tree data", '{"files":[]}', None),
    )
    done = [
        Record(n, act, 0, None, None, {"kind": "done", "detail": detail}, n, n)
        for n, (act, detail, _) in enumerate(acts, start=1)
    ]
    failed = replace(done[0], n=20, event={"kind": "failed", "detail": "no such file"})
    under = "{python} -m tracer --out {logs}/recording-full --error 28 --at 17 --once {data} --"
    full = _record(21, "instance", {"number": 0, "do": "start", "under": under}, {"runs": True})
    lines = timeline([PROFILE, *done, failed, full], 21)
    said = [words for _, _, words in acts if words is not None]
    assert len(lines) == len(said) + 1
    assert all(words in line and "store" in line for words, line in zip(said, lines, strict=False))
    assert os.strerror(28) in lines[-1]
    assert "17" in lines[-1]
    assert "tracer" not in lines[-1]


def test_a_body_that_is_filled_says_what_stands_for_it() -> None:
    sent = _record(1, "submit", ONE, {"status": 201, "body": ""})
    for line in (*timeline([PROFILE, sent], 1), *curls([PROFILE, sent], 1)):
        assert "%FILL%" in line
        assert " 7 " in line
    shell = curls([PROFILE, sent], 1)[0].replace("curl", "printf '%s\\n'", 1)
    printed = subprocess.run(
        ["sh", "-c", shell], capture_output=True, text=True, check=True, env={"SERVICE": "http://x"}
    )
    assert printed.stdout.splitlines()[-1] == "http://x/orders"


def _gallery(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast.conformance.cli", "gallery", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=busy(60), check=False, cwd=cwd)


def test_a_run_of_what_is_no_entry_writes_nothing(tmp_path: Path) -> None:
    done = _gallery("run", "no-such", "--write", str(tmp_path / "docs"))
    assert done.returncode == 64
    assert names()[0] in done.stderr
    assert not (tmp_path / "docs").exists()


def test_the_table_is_printed_or_written_and_needs_pages(tmp_path: Path) -> None:
    assert _gallery("table", cwd=tmp_path).returncode == 64
    pages = tmp_path / "docs" / "gallery"
    pages.mkdir(parents=True)
    ran = Ran("2026-01-01", {KEYS: "conforms"}, [])
    (pages / "a.md").write_text(page("a", _entry(), ran, version="1"), encoding="utf-8")
    printed, written = _gallery("table", cwd=tmp_path), _gallery("table", "--write", "docs", cwd=tmp_path)
    assert (printed.returncode, written.returncode) == (0, 0)
    assert (pages / "index.md").read_text(encoding="utf-8").strip() == printed.stdout.strip()
    elsewhere = tmp_path / "mine"
    pages.rename(elsewhere)
    assert _gallery("table", cwd=tmp_path).returncode == 64
    assert _gallery("table", "--pages", "mine", cwd=tmp_path).stdout == printed.stdout


def test_what_an_earlier_run_left_is_no_evidence_of_one_that_does_not_begin(tmp_path: Path) -> None:
    left = tmp_path / "holdfast-out" / "one.jsonl"
    left.parent.mkdir()
    left.write_text("{}\n", encoding="utf-8")
    # There is no service.toml here.
    with pytest.raises(RunError, match="did not come to its end"):
        run(tmp_path, ["one"])


def test_a_command_that_does_not_end_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.conformance.gallery.running._INSTALL_S", 0.2)
    with pytest.raises(RunError, match="did not end"):
        installed(names()[0], _entry(install=("sleep 30",)), tmp_path)
