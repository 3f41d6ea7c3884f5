"""The picture of a recording: every fact in it can be read, by eye or aloud, and it needs nothing but itself."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from holdfast.conformance.faults.deadline import Deadline
from holdfast.conformance.faults.lines import Lines, puts
from holdfast.conformance.faults.report import Layer
from holdfast.conformance.faults.story import draw as draw_finding
from holdfast.conformance.faults.sweep import Sweep
from holdfast.conformance.faults.timeline import MOST_OPERATIONS, Marks, draw
from tests.faults.model.script import Script
from tests.faults.stores.catalogue import BUGS, ENVIRONMENT

_SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def script() -> Script:
    """Two writes to a log, of which one is synced, and two acknowledgements."""
    script = Script(log=b"")
    script.append("log", b"1" * 600)
    script.fsync("log")
    script.ack()
    script.create("new")
    script.append("log", b"2" * 1200)
    script.ack()
    return script


def titles(picture: str) -> list[str]:
    """What the marks say of themselves; raises ParseError if it is no XML."""
    return [one.text or "" for one in Xml.fromstring(picture).iter(f"{_SVG}title")]


def test_what_was_lost_and_what_was_saved_is_said(script: Script) -> None:
    picture = draw(script.recording, Marks({1: 3, 2: 6}, 6, {4, 5}), title="power loss: lost")
    said = titles(picture)
    assert "operation 1: 600 bytes at 0 of log; durable from operation 2 on" in said
    assert "operation 5: 1,200 bytes at 600 of log; never synced, LOST" in said
    assert "operation 4: names +new; never synced, LOST" in said
    assert "event 6: operation 2 of the workload was acknowledged, 3 bytes to pipe:1" in said
    assert "the crash, after operation 6" in said
    # Not by its colour alone.
    assert picture.count('fill="url(#lost)"') == 2 + 1


def test_what_was_on_disk_all_the_same_is_told_from_what_was_lost(script: Script) -> None:
    said = titles(draw(script.recording, Marks(crash=5, lost={5}), title="t"))
    assert "operation 4: names +new; not synced, and on disk all the same" in said
    assert "operation 5: 1,200 bytes at 600 of log; never synced, LOST" in said


def test_it_can_be_read_aloud_and_needs_no_network(script: Script) -> None:
    root = Xml.fromstring(draw(script.recording, Marks(), title="power loss: lost", words="Expected all."))
    assert root.get("role") == "img"
    named = [root.find(f".//*[@id='{name}']") for name in (root.get("aria-labelledby") or "").split()]
    assert [one.text for one in named if one is not None] == ["power loss: lost", "Expected all."]
    for element in root.iter():
        assert element.tag.removeprefix(_SVG) not in ("script", "image", "use", "a", "style", "foreignObject")
        assert not [name for name in element.attrib if "href" in name or name.startswith("on")]
        assert not [
            value for value in element.attrib.values() if "//" in value or ("url(" in value and "#" not in value)
        ]


def test_names_and_words_from_outside_stay_text() -> None:
    script = Script()
    script.create("</text><script>\x01&\n")
    script.append("</text><script>\x01&\n", b"1")
    picture = draw(script.recording, Marks(), title="</svg>\x00", words="a\x1bb <b>")
    assert "<script>" not in picture
    assert "operation 1: names +</text><script>\\x01&\\n; never synced" in titles(picture)
    assert "operation 2: 1 bytes at 0 of </text><script>\\x01&\\n; never synced" in titles(picture)


def test_a_long_recording_is_shown_from_before_the_crash_on() -> None:
    script = Script(log=b"")
    for _ in range(MOST_OPERATIONS + 500):
        script.ack()
    crash = script.append("log", b"1")
    picture = draw(script.recording, Marks(crash=crash, lost={crash}), title="t")
    assert f"operation {crash}: 1 bytes at 0 of log; never synced, LOST" in titles(picture)
    assert f"operations 1 to {crash - MOST_OPERATIONS:,} are not shown" in picture


@pytest.mark.usefixtures("tracer")
def test_a_kept_finding_gets_its_picture(tmp_path: Path) -> None:
    store = next(store for store in BUGS if store.name == "log-no_fsync")
    kept = tmp_path / "kept"
    with Sweep(lambda: Lines(store.command(), environment=ENVIRONMENT), puts(3), parent=tmp_path, keep=kept) as sweep:
        report = sweep.trial(Layer.POWER).report(1)
    places = [draw_finding(report.layer, finding, Deadline()) for finding in report.findings]
    assert places[0] == kept / "power-lost.svg"
    # The first of each class has one, in each of the two sessions; how many follow it depends on the machine.
    assert {*places} - {None} == {places[0], kept / "second-session" / "power-lost.svg"}
    picture = places[0].read_text(encoding="utf-8")
    assert "facts.log; never synced, LOST" in picture
    assert report.findings[0].verdict.came in Xml.fromstring(picture).findtext(f"{_SVG}desc", "")
