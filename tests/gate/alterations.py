"""Alterations of a run, over every field of every line: blind ones, and those of a forger who mends chain and seal.

A place is named `type.member…`, with `*` for what is counted or keyed.
"""

from __future__ import annotations

import copy
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from holdfast.conformance.verdict import Verdict, gravest_finding
from holdfast.reports.evidence import Artefact, Source
from holdfast.reports.evidence.identity import digest_of
from holdfast.specs import strictjson
from holdfast.specs.typed import instant_text
from tests.forger import resealed

_DOCS = Path(__file__).parents[2] / "docs" / "evidence.md"
_TABLE = _DOCS.read_text(encoding="utf-8").partition("\n| place |")[2].partition("\n\n")[0].splitlines()[2:]
# What the gate believes of a run, because nothing in the file can show otherwise: all that a forger can write there.
BELIEVED = frozenset(row[2:].partition(" |")[0] for row in _TABLE)
Line = dict[str, Any]
Way = tuple[str | int, ...]
# What is said below these is of an adapter's or a case's own shape.
_OPEN = {("exchange", "request"), ("exchange", "answer"), ("header", "environment"), ("header", "config")}
_OPEN |= {("header", "deadlines"), ("footer", "counts")}
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*Z\Z")
# Texts that mean something elsewhere in a run.
_TEXTS = (
    "",
    "x",
    "conforms",
    "fail_open",
    "accepted",
    "refused",
    "main",
    "twin",
    "done",
    "named",
    "loaded",
    "null",
    "0",
    "sha256:" + "0" * 64,
)


def believed_at(place: str) -> str | None:
    """The row of the table that speaks of a place, the closest one; None where the gate believes nothing."""
    return max((row for row in BELIEVED if place == row or place.startswith(f"{row}.")), key=len, default=None)


class Alteration:
    """What was done, where, and the file that came of it. No dataclass: Hypothesis would print the file as well."""

    def __init__(self, place: str, words: str, data: bytes) -> None:
        self.place = place
        self.words = words
        self.data = data

    def __repr__(self) -> str:
        return self.words


def paths_of(value: object, before: Way = ()) -> list[Way]:
    """Every path into a value, the value itself first."""
    found = [before]
    if isinstance(value, dict):
        for name, part in value.items():
            found += paths_of(part, (*before, name))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            found += paths_of(part, (*before, index))
    return found


def place_of(line: Mapping[str, Any], path: Way, labels: Mapping[str, str]) -> str:
    """The place of a path in a line. `labels` are words before the type of exchanges, by case."""
    kind = str(line["type"])
    if len(path) > 1 and (kind, path[0]) in _OPEN:
        path = (path[0], 0)
    if kind == "header" and path[:2] == ("adapter", "claims"):
        path = path[:4] if len(path) > 3 and path[3] != "not_claimed" else (*path[:3], "not_claimed")[: len(path)]
    label = labels.get(line["case"], "") if kind == "exchange" else ""
    return ".".join([f"{label} {kind}".strip(), *("*" if isinstance(part, int) else part for part in path)])


def _at(line: Any, path: Way) -> Any:
    for part in path:
        line = line[part]
    return line


def other_values(value: object) -> st.SearchStrategy[Any]:
    """Values that could stand where `value` stands: of its kind mostly, of another now and then."""
    strange: st.SearchStrategy[Any] = st.sampled_from([None, True, 0, -1, 1.5, "", "x", [], {}])
    if isinstance(value, bool):
        return st.one_of(st.just(not value), strange)
    if isinstance(value, int | float):
        return st.one_of(st.sampled_from([value + 1, value - 1, 0, value * 2, 10**9]), strange)
    if isinstance(value, str) and _INSTANT.match(value):
        moment = datetime.fromisoformat(value)
        spans = (timedelta(microseconds=1), timedelta(seconds=20), timedelta(hours=3), timedelta(days=400))
        return st.one_of(
            st.sampled_from([instant_text(moment + each * sign) for each in spans for sign in (1, -1)]), strange
        )
    if isinstance(value, str):
        edits = [value + "0", value[:-1], value[::-1], value.swapcase(), *_TEXTS]
        digits = [
            value.replace(old, new, 1) for old, new in (("0", "1"), ("1", "2"), ("5", "6"), ("a", "b")) if old in value
        ]
        return st.one_of(st.sampled_from(edits + digits), strange)
    if isinstance(value, list):
        lists: list[Any] = [value[1:], value[:-1], value[::-1], [*value, *value[:1]], [*value, "x"]]
        return st.one_of(st.sampled_from(lists), strange)
    if isinstance(value, dict):
        return st.one_of(st.just({**value, "x": "x"}), st.just({}), strange)
    return strange


@st.composite
def edited_lines(draw: st.DrawFn, lines: Sequence[Line], labels: Mapping[str, str]) -> tuple[str, str, list[Line]]:
    """The lines with one edit: a field, or whole lines."""
    kinds = sorted({line["type"] for line in lines})
    kind = draw(st.sampled_from(kinds))
    index = draw(st.sampled_from([number for number, line in enumerate(lines) if line["type"] == kind]))
    result = list(lines)
    what = draw(st.sampled_from(["change", "change", "change", "change", "remove", "add", "line"]))
    if what == "line":
        words = draw(st.sampled_from(["removed", "repeated", "moved", "of another"]))
        if words == "removed":
            del result[index]
        elif words == "repeated":
            result.insert(draw(st.integers(0, len(result))), dict(result[index]))
        elif words == "moved":
            result.insert(draw(st.integers(0, len(result) - 1)), result.pop(index))
        else:
            other = draw(st.sampled_from([number for number, line in enumerate(lines) if line["type"] == kind]))
            result[index] = dict(lines[other])
        return place_of(lines[index], (), labels), f"line {index + 1} {words}", result
    line = copy.deepcopy(lines[index])
    # By the first member, so that a long answer does not keep the others from being tried.
    member = draw(st.sampled_from([name for name in sorted(line) if name not in ("type", "prev", "seal")]))
    path = draw(st.sampled_from(paths_of(line[member], (member,))))
    value, parent = _at(line, path), _at(line, path[:-1])
    place = place_of(lines[index], path, labels)
    if what == "remove":
        del parent[path[-1]]
        words = "removed"
    elif what == "add" and isinstance(value, dict):
        name, added = draw(st.sampled_from(["x", "y"])), draw(other_values("x"))
        value[name] = added
        place, words = place_of(lines[index], (*path, name), labels), f"{name} = {added!r} added"
    else:
        parent[path[-1]] = draw(other_values(value))
        words = f"{value!r} becomes {parent[path[-1]]!r}"
    result[index] = line
    return place, f"line {index + 1} {place}: {words[:200]}", result


@st.composite
def resealing(draw: st.DrawFn, lines: Sequence[Line], labels: Mapping[str, str]) -> Alteration:
    """One edit, after which the forger brings the footer into line and computes chain and seal anew."""
    place, words, changed = draw(edited_lines(lines, labels))
    if place.startswith("artefacts.files"):
        changed[-2] = _digested(changed[-2])
    if not place.startswith("footer.") and changed and changed[-1].get("type") == "footer":
        changed[-1] = in_line(changed)
    return Alteration(place, words, _file(resealed(changed)))


def in_line(lines: Sequence[Line]) -> Line:
    """The footer as it fits the lines before it."""
    said = [line.get("verdict") for line in lines if line.get("type") == "verdict"]
    found = [word for word in said if isinstance(word, str)]
    known = [Verdict(word) for word in found if word in {verdict.value for verdict in Verdict}]
    counts = dict(Counter(found))
    return {**lines[-1], "counts": counts, "lines": len(lines) - 1, "verdict": gravest_finding(known).value}


def _digested(line: Line) -> Line:
    """The artefacts with the digest that fits their files, where they are files at all."""
    try:
        files = [Artefact(one["path"], one["sha256"], Source(one["source"])) for one in line["files"]]
        return {**line, "digest": digest_of(files)}
    except (KeyError, TypeError, ValueError):
        return line


def _file(raws: Sequence[bytes]) -> bytes:
    return b"".join(raw + b"\n" for raw in raws)


@st.composite
def blind(draw: st.DrawFn, raws: Sequence[bytes]) -> Alteration:
    """One alteration of the bytes or of a line, the chain left as it was."""
    count = len(raws)
    whole = _file(raws)
    lines: list[Line] = [strictjson.loads(raw) for raw in raws]
    edits: dict[str, Callable[[], bytes]] = {
        "bytes": lambda: _bytes(draw, whole),
        "cut": lambda: whole[: draw(st.integers(0, len(whole) - 1))],
        "joined": lambda: _joined(raws, draw(st.integers(0, count - 2))),
        "spelled otherwise": lambda: _spelled(raws, draw(st.integers(0, count - 1))),
        "twice": lambda: whole + whole,
    }
    what = draw(st.sampled_from([*edits, "edit", "edit", "edit", "edit"]))
    if what == "edit":
        place, words, changed = draw(edited_lines(lines, {}))
        return Alteration(place, words, _file([strictjson.canonical(line) for line in changed]))
    return Alteration("file", what, edits[what]())


def _bytes(draw: st.DrawFn, whole: bytes) -> bytes:
    at, byte = draw(st.integers(0, len(whole) - 1)), draw(st.binary(min_size=0, max_size=2))
    return whole[:at] + byte + whole[at + draw(st.integers(0, 1)) :]


def _joined(raws: Sequence[bytes], at: int) -> bytes:
    return _file([*raws[:at], raws[at] + raws[at + 1], *raws[at + 2 :]])


def _spelled(raws: Sequence[bytes], at: int) -> bytes:
    return _file([*raws[:at], raws[at].replace(b":", b": ", 1), *raws[at + 1 :]])
