"""Reading evidence back, compressed or plain: every line held to the schema, the chain, the order and the counts.

The reader goes on after a defect, so that a report can show what is there and say everything that is wrong at once.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import zstandard

from holdfast.reports.earlier import COMPRESSED, PARTIAL, PREVIOUS, ZSTD, other_form
from holdfast.reports.evidence.chain import link_of, sealed, unlinked
from holdfast.reports.evidence.identity import Artefacts, digest_of
from holdfast.reports.evidence.model import (
    LINES,
    SCHEMA,
    VERDICTS,
    Attempt,
    Exchange,
    Footer,
    Header,
    Line,
    Log,
    Restart,
    SurfaceLine,
    Vectors,
    VerdictLine,
    line_of,
)
from holdfast.reports.evidence.place import EvidenceError
from holdfast.reports.evidence.run import Defect, DefectKind, Run
from holdfast.specs import schema, strictjson
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.files import open_regular
from holdfast.specs.typed import InvalidError, read

# An exchange holds a request and an answer of at most 1 MiB each; the rest is short. Bounds memory on hostile files.
MAX_LINE = 4 * 1024 * 1024
# After this number of findings the defect of a file is clear; a file of another kind would give one for each line.
MAX_DEFECTS = 100
# A run of all contracts is some tens of megabytes. What is read stays in memory, several times its size: ten times such
# a run still fits into a small machine of a CI.
MAX_EVIDENCE = 512 * 1024 * 1024
# That much is read in less than a minute; a file that still grows would keep the reader for ever.
MAX_SECONDS = 600.0
_PIECE = 1 << 16
# As little as 4 bytes may stand for 128 KiB, so that a piece of this size stands for at most 32 MiB.
_COMPRESSED_PIECE = 1 << 10


def read_evidence(path: Path) -> Run:
    """Read the run at `path`, or at `path.zst` where nothing stands at `path`, with all its defects.

    Raises EvidenceError when no file can be read: there is none, it is a pipe or a device, or it is too large.
    """
    compressed = Path(f"{path}{COMPRESSED}")
    place = compressed if compressed.exists() and not os.path.lexists(path) else path
    try:
        with open_regular(place, limit=MAX_EVIDENCE) as file:
            return _Reading().run(_Plain(file))
    except OSError as error:
        raise EvidenceError(
            f"{path}: expected the evidence of a run (run.jsonl.zst), got: {error.strerror or error}; "
            f"{_beside(path) or '`holdfast verify --evidence FILE` writes one'}"
        ) from error


def _beside(path: Path) -> str:
    """What the last run left there instead of evidence; empty if nothing."""
    real = os.path.realpath(path)
    unfinished, older = (
        [os.path.basename(name) for name in (real + end, other_form(real) + end) if os.path.exists(name)]
        for end in (PARTIAL, PREVIOUS)
    )
    if not (unfinished or older):
        return ""
    said = f"the last run has not come to its end ({unfinished[0]})" if unfinished else "the last run did not finish"
    return said + (f"; {older[0]} is of an older run" if older else "") + ". Run again"


class _Plain(io.RawIOBase):
    """The lines of a file, decompressed if its first bytes say that it is compressed.

    `whole` digests the bytes of the file. `defect` says at the end of the lines why there are no more.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.whole = hashlib.sha256()
        self.defect: tuple[DefectKind, str] | None = None
        self._file = file
        self._pieces = self._plain()
        self._rest = memoryview(b"")
        self._ends = time.monotonic() + MAX_SECONDS

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._rest = self._rest or memoryview(next(self._pieces, b""))
        given = self._rest[: len(buffer)]
        buffer[: len(given)] = given
        self._rest = self._rest[len(given) :]
        return len(given)

    def _plain(self) -> Iterator[bytes]:
        """The pieces of the lines, none of them empty. Raises OSError where they are too many."""
        first = self._file.read(len(ZSTD))
        pieces = self._read(first, _COMPRESSED_PIECE if first == ZSTD else _PIECE)
        size = 0
        for piece in self._decompressed(pieces) if first == ZSTD else pieces:
            size += len(piece)
            if size > MAX_EVIDENCE:
                raise OSError(errno.EFBIG, f"more than {MAX_EVIDENCE} bytes of lines")
            if piece:
                yield piece

    def _read(self, first: bytes, length: int) -> Iterator[bytes]:
        """The bytes of the file."""
        size, piece = 0, first
        while piece:
            size += len(piece)
            if size > MAX_EVIDENCE or time.monotonic() > self._ends:
                raise OSError(errno.EFBIG, f"a file that grows, {size} bytes so far")
            self.whole.update(piece)
            yield piece
            piece = self._file.read(length)

    def _decompressed(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """What stands in the frames of zstandard. What is behind a defect is not read, but digested."""
        reader = zstandard.ZstdDecompressor()
        frame = reader.decompressobj()
        for piece in pieces:
            rest = piece
            while rest and self.defect is None:
                if frame.eof:
                    frame = reader.decompressobj()
                try:
                    yield frame.decompress(rest)
                except zstandard.ZstdError as error:
                    self.defect = DefectKind.NOT_ZSTD, f"the file cannot be decompressed any further: {error}"
                rest = frame.unused_data if frame.eof else b""
        if self.defect is None and not frame.eof:
            self.defect = DefectKind.CUT_OFF, "the compressed file has no end; the run was cut off"


@dataclass(slots=True)
class _Reading:
    """The state of reading one file."""

    number: int = 0
    header: Header | None = None
    footer: Footer | None = None
    footers: int = 0
    headers: int = 0
    lines: defaultdict[type[Line], list[Any]] = field(default_factory=lambda: defaultdict(list))
    attempts: dict[str, Attempt] = field(default_factory=dict)
    artefacts: Artefacts | None = None
    defects: list[Defect] = field(default_factory=list)
    judged: dict[str, int] = field(default_factory=dict)
    # The case whose exchanges stand here and whose verdict is yet to come.
    awaited: str | None = None
    next_n: Counter[tuple[str, str]] = field(default_factory=Counter)

    def run(self, plain: _Plain) -> Run:
        stream = io.BufferedReader(plain, _PIECE)
        previous: str | None = None
        # One byte more than a line and its newline may have: so a longer one is detected without holding it in memory.
        while piece := stream.readline(MAX_LINE + 2):
            if len(self.defects) >= MAX_DEFECTS:
                continue
            self.number += 1
            raw = piece.removesuffix(b"\n")
            if len(raw) > MAX_LINE:
                self._note(DefectKind.SCHEMA, f"expected at most {MAX_LINE} bytes in a line, got more")
            elif len(raw) == len(piece):
                self._note(DefectKind.CUT_OFF, "the last line has no end; the run was cut off while it was written")
            else:
                self._line(raw, previous)
            previous = strictjson.digest_bytes(raw)
        self._end(plain.defect)
        return Run(
            header=self.header,
            exchanges=tuple(self.lines[Exchange]),
            logs=tuple(self.lines[Log]),
            restarts=tuple(self.lines[Restart]),
            verdicts=tuple(self.lines[VerdictLine]),
            footer=self.footer,
            defects=tuple(self.defects),
            digest="sha256:" + plain.whole.hexdigest(),
            vectors=tuple(self.lines[Vectors]),
            surfaces=tuple(self.lines[SurfaceLine]),
            artefacts=self.artefacts,
            attempts=tuple(self.attempts.values()),
        )

    def _note(self, kind: DefectKind, text: str) -> None:
        self.defects.append(Defect(kind, self.number, text))

    def _line(self, raw: bytes, previous: str | None) -> None:
        try:
            data, is_canonical = strictjson.parsed(raw)
        except StrictJsonError as error:
            self._note(DefectKind.NOT_JSON, f"expected one JSON object, got {_shown(raw)}: {error}")
            return
        if not isinstance(data, dict):
            self._note(DefectKind.NOT_JSON, f"expected one JSON object, got {_shown(raw)}")
            return
        if not is_canonical:
            self._note(DefectKind.NOT_CANONICAL, "not in RFC 8785 form: something other than holdfast wrote this line")
        if data.get("prev") != previous:
            self._note(DefectKind.CHAIN, self._chain_text(data.get("prev"), previous))
        kind = data.get("type")
        if not isinstance(kind, str) or kind not in LINES:
            self._note(DefectKind.SCHEMA, f"expected one of the types {', '.join(LINES)}, got {kind!r}")
            return
        self._place(kind)
        if kind == "header" and data.get("schema") != SCHEMA:
            self._note(DefectKind.SCHEMA, _other_schema(data.get("schema")))
            return
        try:
            read(data, link_of(kind))
            line = line_of(unlinked(data))
        except InvalidError as error:
            self._misfit(data, error)
            return
        if isinstance(line, Footer) and sealed(data)["seal"] != data["seal"]:
            self._note(DefectKind.CHAIN, "the footer does not have the digest that it is sealed with: it was changed")
        self._keep(line)

    def _chain_text(self, found: object, expected: str | None) -> str:
        if expected is None:
            return f"the chain begins with prev null, got {found!r}: lines before this one are missing"
        return (
            f"the chain is broken: prev is {found!r}, the line before has {expected}; "
            f"line {self.number - 1} was changed, or lines were removed, inserted or moved here"
        )

    def _place(self, kind: str) -> None:
        """Exactly one header, first; exactly one footer, last."""
        if kind == "header":
            self.headers += 1
            if self.headers > 1:
                self._note(DefectKind.ORDER, "a second header: two runs in one file")
        if self.number == 1 and kind != "header":
            self._note(DefectKind.ORDER, f"expected the header as the first line, got a {kind}")
        if kind == "header" and self.number > 1 and self.headers == 1:
            self._note(DefectKind.ORDER, "the header is not the first line")
        if self.footers and kind != "footer":
            self._note(DefectKind.ORDER, f"expected nothing after the footer, got a {kind}")
        elif self.artefacts is not None and kind != "footer":
            self._note(DefectKind.ORDER, f"expected the footer after the artefacts, got a {kind}")
        if kind == "footer":
            self.footers += 1
            if self.footers > 1:
                self._note(DefectKind.ORDER, "a second footer")

    def _misfit(self, data: Mapping[str, Any], error: InvalidError) -> None:
        word = data.get("verdict")
        if data["type"] in ("verdict", "footer") and isinstance(word, str) and word not in VERDICTS:
            self._note(DefectKind.UNKNOWN_VERDICT, f"no verdict is called {word!r}; this version cannot judge the run")
            return
        # The published schema names the value too.
        problem = schema.explain(schema.published_validator("evidence"), data) or str(error)
        self._note(DefectKind.SCHEMA, f"does not fit evidence.schema.json: {problem}")

    def _keep(self, line: Line) -> None:
        self.lines[type(line)].append(line)
        match line:
            case Exchange():
                self._sequence(line)
            case VerdictLine():
                if self.awaited not in (None, line.case):
                    self._note(DefectKind.ORDER, f"expected the verdict of {self.awaited}, got that of {line.case}")
                self.awaited = None
                if line.case in self.judged:
                    first = self.judged[line.case]
                    self._note(DefectKind.DUPLICATE, f"a second verdict of {line.case}; the first is in line {first}")
                self.judged.setdefault(line.case, self.number)
            case Restart():
                if line.count != (due := len(self.lines[Restart])):
                    self._note(DefectKind.ORDER, f"expected restart {due}, got {line.count}")
            case Attempt():
                if line.case in self.attempts or line.case in self.judged or self.awaited is not None:
                    self._note(DefectKind.ORDER, f"expected one attempt at {line.case}, before the second one")
                self.attempts[line.case] = line
            case Artefacts():
                if list(line.files) != sorted(set(line.files)):
                    self._note(DefectKind.ORDER, "the artefacts do not stand in their order, each once")
                if digest_of(line.files) != line.digest:
                    self._note(DefectKind.COUNT, "the digest of the artefacts is not that of the files listed")
                self.artefacts = line
            case Vectors():
                if self.judged:
                    self._note(DefectKind.ORDER, "documents after a verdict")
                for profile, found in line.unbalanced().items():
                    self._note(
                        DefectKind.COUNT, f"the table of {profile} adds up to {found}, expected {line.count} rows"
                    )
                for profile, found in line.unbalanced_opening().items():
                    self._note(DefectKind.COUNT, f"the opening's table of {profile} adds up to {found}")
            case Header():
                # Of two headers the first counts, so that a run put after another one cannot speak for it.
                self.header = self.header or line
            case Footer():
                self._count(line)
                self.footer = line

    def _sequence(self, line: Exchange) -> None:
        if line.case in self.judged:
            self._note(DefectKind.ORDER, f"an exchange of {line.case} after its verdict")
        if self.awaited not in (None, line.case):
            self._note(DefectKind.ORDER, f"an exchange of {line.case} among those of {self.awaited}")
        if self.awaited == line.case and self.next_n[line.case, "twin"] and line.side == "main":
            self._note(DefectKind.ORDER, f"an exchange of the main side of {line.case} after its twin")
        self.awaited = line.case
        place = (line.case, line.side)
        if line.n != self.next_n[place]:
            self._note(
                DefectKind.ORDER,
                f"expected exchange {self.next_n[place]} of {line.case} ({line.side}), got {line.n}",
            )
        self.next_n[place] = line.n + 1

    def _count(self, footer: Footer) -> None:
        if footer.lines != self.number - 1:
            self._note(
                DefectKind.COUNT, f"the footer counts {footer.lines} lines before it, the file has {self.number - 1}"
            )
        found = dict(Counter(line.verdict for line in self.lines[VerdictLine]))
        if dict(footer.counts) != found:
            self._note(
                DefectKind.COUNT,
                f"the footer counts {_counted(footer.counts)}, the verdict lines are {_counted(found)}",
            )

    def _end(self, defect: tuple[DefectKind, str] | None) -> None:
        if defect is not None:
            self.defects.append(Defect(defect[0], self.number or None, defect[1]))
        if len(self.defects) >= MAX_DEFECTS:
            self.defects.append(Defect(DefectKind.CUT_OFF, None, "too many defects; the rest was not examined"))
        elif self.number == 0:
            self.defects.append(Defect(DefectKind.CUT_OFF, None, "the file is empty"))
        elif self.footers == 0:
            self.defects.append(Defect(DefectKind.CUT_OFF, None, "there is no footer: the run was cut off"))
        elif alone := sorted(self.attempts.keys() - self.judged.keys()):
            self.defects.append(Defect(DefectKind.ORDER, None, f"no verdict after the first attempt at {alone[0]}"))


def _other_schema(found: object) -> str:
    """What to do about a run whose lines are of another version."""
    if isinstance(found, int) and found < SCHEMA:
        return f"an older holdfast wrote this run (schema {found}, expected {SCHEMA}); run again with the installed one"
    return f"expected evidence of schema {SCHEMA}, got {found!r}; read it with the holdfast that wrote it"


def _shown(raw: bytes) -> str:
    return repr(raw[:80].decode("utf-8", "replace") + ("…" if len(raw) > 80 else ""))


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in sorted(counts.items())) or "none"
