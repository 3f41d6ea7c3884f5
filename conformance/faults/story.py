"""A finding for a person: one sentence that names the acknowledgement and what was not on disk, and a picture.

The picture shows what was written, when a sync saved it, what was promised, and where the crash came. It is one SVG
that needs nothing else: no script, no font, no network. From left to right stand the recorded operations on their one
line of numbers. Each file has a lane, from its first byte at the top to its last at the bottom: a write is a bar from
the operation that wrote it to the one that saved it, so that what crosses an upright line was on no disk for sure at
that time. Changes of names have a lane of their own. Every mark says in its <title> what it is.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as Xml

from holdfast.conformance.faults.model.disk import Point, on, points
from holdfast.conformance.faults.model.pending import PAGE, Data, Moved, Pending, Units
from holdfast.conformance.faults.model.plan import Candidate
from holdfast.conformance.faults.model.states import StateRule
from holdfast.conformance.faults.naming import listed, short
from holdfast.conformance.faults.oracle import CrashClass, CrashOutcome
from holdfast.conformance.faults.recording import Event, Failed, Named, Operation, Recording, Sync, SyncAll, Type, read
from holdfast.conformance.faults.report import BrokenPromise, Deadline, Layer, Marks
from holdfast.conformance.faults.runs import Promises
from holdfast.conformance.faults.subject import Workload

# What became of the store; of a loss the verdict has the numbers.
_ENDS = {
    CrashClass.TORN: "a write was there by half",
    CrashClass.UNRECOVERABLE: "the store did not come back",
    CrashClass.INIT: "the store did not come back",
    CrashClass.UNSTABLE: "the store showed something else at its second start",
    CrashClass.INVENTED: "the store held what no operation asked for",
}


def of_power_loss(workload: Workload, promises: Promises, candidate: Candidate, verdict: CrashOutcome) -> str:
    """What was acknowledged at the last point at which the disk may have this state, what of it is lost, what came."""
    last = candidate.numbers[-1]
    state = candidate.at(last)
    acknowledged = [(event, op) for op, event in promises.acknowledged.items() if 0 < event <= last]
    if acknowledged:
        event, number = max(acknowledged)
        text = next(op.text for op in workload.ops if op.number == number)
        begin = f"The acknowledgement of `{short(text)}` left at event {event}; "
        # Between the two the disk may have changed.
        begin += "at that time" if event in state.point.numbers else f"when the power failed, after operation {last},"
    else:
        begin = f"The power failed after operation {last}; at that time"
    how = f"{state.kind.value}: {state.note}" if state.note else state.kind.value
    systems = {one.point.systems for one in candidate.states if last in one.point.numbers}
    # Of several, or of one without a name, all may leave it so.
    where = f" on {next(iter(systems))}" if len(systems) == 1 and "" not in systems else ""
    end = f"the store held {verdict.came.partition(':')[0]}" if verdict.kind is CrashClass.LOST else _ENDS[verdict.kind]
    return f"{begin} {listed(state.losses) or 'everything was on disk'}; after power loss{where} ({how}) {end}."


def marks(promises: Promises, candidate: Candidate) -> Marks:
    """The same for the picture."""
    last = candidate.numbers[-1]
    state = candidate.at(last)
    lost = {one.operation for one in state.lost}
    if state.kind is not StateRule.ALL:
        lost |= {by for pages in state.point.doomed.values() for by in pages.values()}
    return Marks(promises.acknowledged, last, frozenset(lost), state.point.systems, promises.idle)


def draw(layer: Layer, finding: BrokenPromise, deadline: Deadline) -> Path | None:
    """Put the picture of a kept finding beside its state, as .svg; None if there is no recording of it.

    Raises OSError, RecordingError, OutOfTimeError.
    """
    if finding.kept is None or finding.marks is None:
        return None
    recorded = read(finding.kept.with_suffix(".jsonl"), deadline.check)
    verdict = finding.verdict
    words = f"Expected {verdict.expected}; got {verdict.came}. {finding.story}"
    picture = drawn(recorded, finding.marks, title=f"{layer.value}: {verdict.kind.value}", words=words)
    place = finding.kept.with_suffix(".svg")
    place.write_text(picture, encoding="utf-8")
    return place


# Pixels: of the names of the lanes, of a lane, between two of them, of the room for one operation.
_LABELS, _LANE, _GAP, _MARGIN = 210, 40, 8, 24
_LEAST_STEP, _MOST_STEP, _WIDE = 4.0, 26.0, 1000
_LINE, _TEXT = 17, 12
# Longer recordings show this number of operations before the crash or the end, because a screen is finite.
MOST_OPERATIONS = 1500
# The lanes with most events; a database server touches a hundred files.
MOST_LANES = 16
_LETTER = 6.6
# How many names of one call are shown.
_TOLD_NAMES = 6
_INK, _FAINT, _GRID = "#1f2933", "#52606d", "#d9e2ec"
_SAVED, _LOST, _OPEN, _KEPT, _GOOD = "#7aa6d1", "#c62828", "#e0a030", "#8aa88f", "#2e7d32"


def drawn(recording: Recording, marks: Marks, *, title: str, words: str = "") -> str:
    """The picture as an SVG document, `title` above it and `words` below that."""
    return _Picture(recording, marks).drawn(title, words)


@dataclass(slots=True)
class _Bar:
    """What was not durable from one operation on until another; `until` is None if nothing saved it.

    `given_up` is the sync that failed to save it, after which no other does.
    """

    unit: Pending
    until: int | None = None
    given_up: int = 0

    @property
    def lane(self) -> int | None:
        """Its file, None for names."""
        return None if isinstance(self.unit, Moved) else self.unit.file

    def gave_up(self, point: Point) -> int:
        """The sync that had given it up at this point, or 0."""
        if not isinstance(self.unit, Data):
            return 0
        doomed = point.doomed.get(self.unit.file, {})
        return next((by for page, by in doomed.items() if self._covers(page)), 0)

    def _covers(self, page: int) -> bool:
        assert isinstance(self.unit, Data)
        return self.unit.begin < page * PAGE + PAGE and self.unit.end > page * PAGE

    def lost(self, lost: Collection[int]) -> bool:
        """Whether it is among what was lost."""
        return self.until is None and (self.unit.operation in lost or self.given_up in lost)


class _Picture:
    def __init__(self, recording: Recording, marks: Marks) -> None:
        self._marks = marks
        last = recording.operations[-1].number if recording.operations else 0
        self._end = last if marks.crash is None else min(last, max(marks.crash, 0))
        # What came after the crash is shown as well, so that a crash at an acknowledgement is not at the edge.
        self._last = min(last, self._end + 10)
        self._first = max(1, self._last - MOST_OPERATIONS + 1)
        count = max(1, self._last - self._first + 1)
        self._step = min(_MOST_STEP, max(_LEAST_STEP, _WIDE / count))
        self._width = round(_LABELS + count * self._step + 2 * _MARGIN)
        self._shown = recording.operations[self._first - 1 : self._last]
        self._bars, point = _bars(recording, self._end, marks)
        self._paths, self._kinds = point.paths, point.live_names.kinds
        self._lanes = self._chosen()
        self._root = Xml.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img"})

    def drawn(self, title: str, words: str) -> str:
        letters = max(40, int((self._width - 2 * _MARGIN) / _LETTER))
        lines = textwrap.wrap(_plain(words), letters, break_on_hyphens=False)
        top = _MARGIN + (len(lines) + 2) * _LINE
        self._say(title, " ".join(lines), lines)
        bottom = self._events(top)
        bottom = self._lane_of_names(bottom)
        for file in self._lanes:
            bottom = self._lane(file, bottom)
        bottom = self._left_out(bottom)
        self._uprights(top, bottom)
        height = self._legend(bottom + _LINE)
        self._root.set("viewBox", f"0 0 {self._width} {height}")
        self._root.set("width", str(self._width))
        self._root.set("height", str(height))
        Xml.indent(self._root)
        return Xml.tostring(self._root, encoding="unicode") + "\n"

    def _x(self, number: int) -> float:
        return round(_LABELS + _MARGIN + (number - self._first + 0.5) * self._step, 1)

    def _say(self, title: str, said: str, lines: list[str]) -> None:
        """The text that comes first, and that a screen reader reads."""
        self._root.set("aria-labelledby", "title description")
        self._root.set("font-family", "system-ui, sans-serif")
        self._root.set("font-size", str(_TEXT))
        self._root.set("fill", _INK)
        _in(self._root, "title", _plain(title), id="title")
        _in(self._root, "desc", said or _plain(title), id="description")
        defs = _in(self._root, "defs")
        # Not by its colour alone.
        hatch = {"id": "lost", "width": 6, "height": 6, "patternUnits": "userSpaceOnUse"}
        pattern = _in(defs, "pattern", patternTransform="rotate(45)", **hatch)
        _in(pattern, "rect", width=6, height=6, fill="#ef9a9a")
        _in(pattern, "rect", width=3, height=6, fill=_LOST)
        _in(self._root, "rect", width="100%", height="100%", fill="#ffffff")
        _in(self._root, "text", _plain(title), x=_MARGIN, y=_MARGIN + _TEXT, font_size=16, font_weight="bold")
        for place, line in enumerate(lines, start=1):
            _in(self._root, "text", line, x=_MARGIN, y=_MARGIN + _TEXT + place * _LINE + 3, fill=_FAINT)

    def _label(self, name: str, top: float, below: str = "") -> None:
        # Digits are wider than most letters.
        most = int((_LABELS - _MARGIN) / (_LETTER + 1)) - 1
        short = name if len(name) <= most else f"…{name[1 - most :]}"
        _in(self._root, "text", short, title="" if short == name else name, x=_MARGIN, y=top + _TEXT + 2)
        if below:
            _in(self._root, "text", below, x=_MARGIN, y=top + 2 * _TEXT + 6, fill=_FAINT, font_size=_TEXT - 2)

    def _rail(self, top: float, height: float) -> None:
        _in(self._root, "rect", x=_LABELS, y=top, width=self._width - _LABELS, height=height, fill="#f5f7fa")

    def _events(self, top: float) -> float:
        """The numbers, what left for the outside, and the acknowledgements among it."""
        self._label("operation", top)
        every = next(each for each in (1, 5, 10, 50, 100, 500, 1000) if each * self._step >= 40)
        for number in range(self._first, self._last + 1):
            if number % every == 0:
                _in(
                    self._root, "text", str(number), x=self._x(number), y=top + _TEXT, fill=_FAINT, text_anchor="middle"
                )
        top += _LINE
        self._label("acknowledged", top, "what left for the outside")
        self._rail(top, _LANE)
        by_event = {event: op for op, event in self._marks.acknowledged.items()}
        labelled = -math.inf
        for one in self._shown:
            if not isinstance(one.action, Event | Failed):
                continue
            x, op = self._x(one.number), by_event.get(one.number)
            if isinstance(one.action, Failed):
                what = f"operation {one.number}: {one.call} had to fail with error {one.action.error}"
                mark = f"M{x - 3} {top + _LANE - 11}l6 6m0 -6l-6 6"
                _in(self._root, "path", title=what, d=mark, stroke=_LOST, stroke_width=1.5)
                continue
            what = "" if op is None else f"operation {op} of the workload was acknowledged, "
            what = f"event {one.number}: {what}{one.action.size:,} bytes to {one.action.channel}"
            if op is None:
                _in(self._root, "circle", title=what, cx=x, cy=top + _LANE - 8, r=2, fill=_FAINT)
                continue
            _in(self._root, "path", title=what, d=f"M{x} {top + _LANE - 2}l-5 -9h10z", fill=_GOOD)
            if x - labelled > 2 * _TEXT:
                look = {"text_anchor": "middle", "fill": _GOOD, "font_weight": "bold"}
                _in(self._root, "text", str(op), x=x, y=top + _TEXT + 6, **look)
                labelled = x
        return top + _LANE + _GAP

    def _lane_of_names(self, top: float) -> float:
        moves = [bar for bar in self._bars if bar.lane is None]
        if not moves:
            return top
        self._label("names", top, "made, renamed, removed")
        self._rail(top, _LANE)
        rows = 5
        for place, bar in enumerate(moves):
            assert isinstance(bar.unit, Moved)
            changes = ", ".join(
                ("+" if isinstance(one, Named) else "-") + _path(one.path) for one in bar.unit.changes[:_TOLD_NAMES]
            )
            y = top + 3 + place % rows * (_LANE - 6) / rows
            self._bar(bar, y, (_LANE - 6) / rows - 1, f"names {changes}")
        self._syncs(top, {file for file, (kind, _) in self._kinds.items() if kind is Type.DIRECTORY})
        return top + _LANE + _GAP

    def _lane(self, file: int, top: float) -> float:
        bars = [bar for bar in self._bars if bar.lane == file]
        size = max(bar.unit.end if isinstance(bar.unit, Data) else 1 for bar in bars)
        self._label(self._name(file), top, f"{size:,} bytes")
        self._rail(top, _LANE)
        for bar in bars:
            if isinstance(bar.unit, Data):
                begin, end = bar.unit.begin, bar.unit.end
                high = max(2.5, (end - begin) / size * (_LANE - 4))
                y = top + 2 + min(begin / size * (_LANE - 4), _LANE - 4 - high)
                self._bar(bar, y, high, f"{end - begin:,} bytes at {begin:,} of {self._name(file)}")
            else:
                assert not isinstance(bar.unit, Moved)
                self._bar(bar, top + _LANE - 5, 2.5, f"{self._name(file)} cut or grown to {bar.unit.size:,} bytes")
        self._syncs(top, {file})
        return top + _LANE + _GAP

    def _syncs(self, top: float, files: Collection[int]) -> None:
        """The syncs of any of these files, on their lane."""
        for one in self._shown:
            action = one.action
            if isinstance(action, Sync) and action.file in files:
                self._sync(one, top, f"error {action.error}" if action.error else "")
            elif isinstance(action, SyncAll):
                self._sync(one, top, "")

    def _sync(self, one: Operation, top: float, failed: str) -> None:
        what = f"operation {one.number}: {one.call}{f' failed with {failed}' if failed else ''}"
        x, group = self._x(one.number), _in(self._root, "g", title=what)
        dashes = {"stroke_dasharray": "3 2"} if failed else {}
        _in(group, "path", d=f"M{x} {top}v{_LANE}", stroke=_LOST if failed else _GOOD, stroke_width=1.5, **dashes)
        _in(group, "circle", cx=x, cy=top, r=2.5, fill=_LOST if failed else _GOOD)

    def _bar(self, bar: _Bar, y: float, high: float, what: str) -> None:
        number = bar.unit.operation
        end = self._end if bar.until is None else bar.until
        if end < self._first or number > self._last:
            return
        fill, fate = _SAVED, f"durable from operation {bar.until} on"
        if bar.until is None:
            fill, fate = _OPEN, f"given up by the sync of operation {bar.given_up}" if bar.given_up else "never synced"
            if bar.lost(self._marks.lost):
                fill, fate = "url(#lost)", f"{fate}, LOST"
            elif self._marks.crash is not None:
                fill, fate = _KEPT, "not synced, and on disk all the same"
        x = self._x(max(number, self._first)) - self._step / 2
        shape = {"x": round(x, 1), "y": round(y, 1), "height": round(high, 1)}
        width, said = max(2, round(self._x(end) - x, 1)), f"operation {number}: {what}; {fate}"
        _in(self._root, "rect", title=said, width=width, fill=fill, fill_opacity=0.85, **shape)

    def _left_out(self, top: float) -> float:
        """What is not in the picture is said."""
        said = []
        if self._first > 1:
            said.append(f"operations 1 to {self._first - 1:,} are not shown")
        files = {bar.lane for bar in self._bars} - {None} - set(self._lanes)
        if files:
            said.append(f"{len(files)} more files were written, all of them with less to tell")
        if said:
            _in(self._root, "text", "; ".join(said), x=_LABELS, y=top + _TEXT, fill=_FAINT)
        return top + _LINE * bool(said)

    def _uprights(self, top: float, bottom: float) -> None:
        """The lines that cross all lanes: acknowledgements, and the crash."""
        for op, event in sorted(self._marks.acknowledged.items()):
            if self._first <= event <= self._last:
                what = f"operation {op} of the workload is acknowledged: what crosses this line is unsynced"
                line = f"M{self._x(event)} {top + _LINE + _LANE}V{bottom}"
                _in(self._root, "path", title=what, d=line, stroke=_GOOD, stroke_dasharray="2 3")
        if self._marks.crash is None:
            return
        x = round(self._x(self._end) + self._step / 2, 1)
        group = _in(self._root, "g", title=f"the crash, after operation {self._marks.crash}")
        # What would have come after it.
        veil = {"x": x, "y": top + _LINE, "width": self._width - x, "height": bottom - top - _LINE}
        _in(group, "rect", fill="#ffffff", fill_opacity=0.7, **veil)
        _in(group, "path", d=f"M{x} {top + _LINE - 2}V{bottom}", stroke=_LOST, stroke_width=2.5)
        _in(group, "text", "crash", x=x, y=bottom + _TEXT, fill=_LOST, font_weight="bold", text_anchor="middle")

    def _legend(self, top: float) -> int:
        """What the colours mean. Returns where the picture ends."""
        crashed = self._marks.crash is not None
        fates = [("url(#lost)", "lost in the crash"), (_KEPT, "unsynced, kept")] if crashed else [(_OPEN, "not synced")]
        x = _MARGIN
        for fill, text in [(_SAVED, "written, until a sync saved it"), *fates]:
            _in(self._root, "rect", x=x, y=top, width=18, height=10, fill=fill)
            _in(self._root, "text", text, x=x + 24, y=top + 10)
            x += 24 + round(len(text) * _LETTER) + 24
        for fill, text in [(_GOOD, "sync"), (_LOST, "sync that failed")]:
            _in(self._root, "circle", cx=x + 5, cy=top + 5, r=3, fill=fill)
            _in(self._root, "text", text, x=x + 14, y=top + 10)
            x += 14 + round(len(text) * _LETTER) + 24
        self._width = max(self._width, x + _MARGIN)
        return round(top + 2 * _LINE)

    def _chosen(self) -> list[int]:
        """The files that have a lane: those with most events, in the order in which they were first written to."""
        weight: dict[int, tuple[int, int]] = {}
        for bar in self._bars:
            if bar.lane is not None and (bar.until is None or bar.until >= self._first):
                lost, count = weight.get(bar.lane, (0, 0))
                weight[bar.lane] = (lost + bar.lost(self._marks.lost), count + 1)
        chosen = set(sorted(weight, key=lambda file: weight[file], reverse=True)[:MOST_LANES])
        return [file for file in weight if file in chosen]

    def _name(self, file: int) -> str:
        path = self._paths.get(file)
        return "a file without a name" if path is None else _path(path)


def _bars(recording: Recording, end: int, marks: Marks) -> tuple[list[_Bar], Point]:
    """Everything that was not durable for a while up to operation `end`, in order, and how the disk stood there."""
    found: list[_Bar] = []
    pending: dict[int | None, dict[tuple[type, int, int], _Bar]] = {}
    given_up: list[_Bar] = []
    every = on(points(recording, marks.idle), marks.systems)
    # There is one before the first operation.
    last = next(every)
    for point in every:
        if point.first > end:
            break
        before, last = last, point
        for bar in [bar for bar in given_up if not bar.gave_up(point)]:
            # Written anew, it is dirty again.
            given_up.remove(bar)
            bar.until, bar.given_up = point.first, 0
        for lane in [None, *{**before.units, **point.units}]:
            now = point.moves if lane is None else point.units.get(lane, Units())
            old = before.moves if lane is None else before.units.get(lane, Units())
            if now is old:
                continue
            bars = pending.setdefault(lane, {})
            # With ten thousand operations on a file, what one more of them adds is one more.
            added: Sequence[Pending] | None = None
            if isinstance(now, Units) and isinstance(old, Units):
                added = now.since(old)
            if added is None:
                added = now
                kept = {_key(unit) for unit in now}
                for key in [key for key in bars if key not in kept]:
                    bar = bars.pop(key)
                    bar.given_up = bar.gave_up(point)
                    if bar.given_up:
                        given_up.append(bar)
                    else:
                        bar.until = point.first
            for unit in added:
                if _key(unit) not in bars:
                    bars[_key(unit)] = _Bar(unit)
                    found.append(bars[_key(unit)])
    return found, last


def _key(unit: Pending) -> tuple[type, int, int]:
    """Of those on one file, the same for what is left of a write after a part of it was synced."""
    return type(unit), unit.operation, unit.begin if isinstance(unit, Data) else 0


def _path(path: bytes) -> str:
    return _plain(path.decode("utf-8", "backslashreplace"))


def _plain(text: str) -> str:
    """Without the characters that XML has no way to write."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


def _in(parent: Xml.Element, tag: str, text: str = "", /, **attributes: object) -> Xml.Element:
    """An element in another, with a `title` in it if that is given; `font_size` becomes `font-size`."""
    title = attributes.pop("title", "")
    plain = {"patternUnits", "patternTransform"}
    named = {name if name in plain else name.replace("_", "-"): str(value) for name, value in attributes.items()}
    element = Xml.SubElement(parent, tag, named)
    element.text = text or None
    if title:
        Xml.SubElement(element, "title").text = str(title)
    return element
