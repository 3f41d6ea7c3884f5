"""The commands of holdfast as functions: each runs one in a process of its own, and reads the JSON that it prints.

An option is the keyword of its name. What is no result is an error: a signal, a time-out, output that is no JSON.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, Unpack

import msgspec

from holdfast import worker
from holdfast.conformance.verdict import REPORTED, Exit, FailureMode, Verdict, gravest_finding

FilePath: TypeAlias = "str | PathLike[str]"
_COMMAND = (sys.executable, "-P", "-m", "holdfast.conformance.cli")
# How long a command that is asked to end may take to end its adapters, in seconds.
_END_S = 60.0
# Options whose keyword is another word, because it stands for several.
_SINGULAR = {"adapter_files": "adapter_file", "cases": "case", "clauses": "clause", "layers": "layer"}
_NARROWING = ("quick", "clauses", "cases")


class _Result(msgspec.Struct, frozen=True, kw_only=True):
    exit: Exit

    def __bool__(self) -> bool:
        """Whether the exit status is OK: as in a shell, nothing else is success."""
        return self.exit is Exit.OK


class Finding(msgspec.Struct, frozen=True):
    """A case that does not conform: `verdict` says what it showed, or, with `silence`, why nothing is proven."""

    case: str
    clauses: tuple[str, ...]
    verdict: Verdict
    detail: str
    silence: FailureMode | None = None


class VerifyResult(_Result, frozen=True, kw_only=True):
    """What a run showed: `decision` is the gate's, `verdict` the gravest of what is claimed, `problem` why none ran."""

    decision: Literal["YES", "NO"] = "NO"
    verdict: Verdict = Verdict.NO_VERDICT
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    evidence: Path
    is_narrowed: bool
    problem: str = ""

    @property
    def conforms(self) -> bool:
        """Whether each case that was asked for conforms. A run that was narrowed proves nothing of its contract."""
        return bool(self) or (
            self.is_narrowed and self.exit is Exit.INCOMPLETE and self.verdict is Verdict.CONFORMS and not self.problem
        )

    def __str__(self) -> str:
        """The findings, the gravest first, a line for each."""
        found = [f"{one.verdict.value} {one.case} ({', '.join(one.clauses)}): {one.detail}" for one in self.findings]
        end = f"verdict: {self.verdict.value}, CAN_PROCEED = {self.decision}, exit {int(self.exit)}"
        return "\n".join([*found, *self.notes, *filter(None, [self.problem]), end, f"evidence: {self.evidence}"])


class GateReason(msgspec.Struct, frozen=True):
    """Why a run may not proceed."""

    code: str
    text: str
    exit: Exit
    cases: tuple[str, ...]


class GateResult(_Result, frozen=True, kw_only=True):
    """What the gate decides."""

    decision: Literal["YES", "NO"] = msgspec.field(name="can_proceed")
    reasons: tuple[GateReason, ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]
    not_asked: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether the decision is YES, and the exit status says the same."""
        return self.decision == "YES" and self.exit is Exit.OK

    def __str__(self) -> str:
        """The decision, and a line for each reason, the gravest first."""
        return "\n".join([f"CAN_PROCEED = {self.decision}", *(f"{each.code}: {each.text}" for each in self.reasons)])


class CrashFinding(msgspec.Struct, frozen=True):
    """A promise that a store broke: its class (docs/crash.md), what was expected, what came, what was done."""

    kind: str = msgspec.field(name="class")
    expected: str
    came: str
    story: str
    state: str | None
    timeline: str | None


class CrashLayer(msgspec.Struct, frozen=True):
    """A layer of faults. Only `clean` is a pass; `unproven` and `beside` say why it is none without a finding."""

    layer: str
    clean: bool
    tried: int
    floor: int
    tally: str
    unproven: tuple[str, ...]
    beside: str
    findings: tuple[CrashFinding, ...]

    def __str__(self) -> str:
        """A line for each finding, and for each reason why nothing is proven."""
        found = [f"{each.kind}: expected {each.expected}, came {each.came}; {each.story}" for each in self.findings]
        return "\n".join(f"{self.layer}: {text}" for text in (*found, *self.unproven))


class CrashResult(_Result, frozen=True, kw_only=True):
    """What crashes cost a store: OK only if every layer that was asked for kept every promise."""

    layers: tuple[CrashLayer, ...] = ()
    left_out: tuple[str, ...] = ()
    problem: str = ""

    def __str__(self) -> str:
        """The layers that are no pass, and the exit status."""
        return "\n".join(filter(None, [*map(str, self.layers), self.problem, f"exit {int(self.exit)}"]))


class _Verified(_Result, frozen=True, kw_only=True):
    can_proceed: Literal["YES", "NO"]
    not_asked: frozenset[str]
    notes: tuple[str, ...]
    cases: tuple[Finding, ...]


class VerifyOptions(TypedDict, total=False):
    """The options of `verify`, as `holdfast verify` has them; `timeout` is in seconds."""

    quick: bool
    faults: bool
    clauses: Sequence[str]
    cases: Sequence[str]
    config: Mapping[str, str]
    launcher: str
    seed: str
    nonce: str
    commit: str
    evidence: FilePath
    adapter_files: Sequence[FilePath]
    jobs: int
    slow: float
    timeout: float


class GateOptions(TypedDict, total=False):
    """The options of `gate`, as `holdfast gate` has them."""

    nonce: str
    commit: str
    adapter_digest: str
    not_before: str
    max_age: str
    baseline: FilePath
    allow_seed: bool
    allow_excused: bool
    timeout: float


class CrashOptions(TypedDict, total=False):
    """The options of `crash`, as `holdfast crash` has them."""

    layers: Sequence[str]
    least: bool
    seconds: float
    ops: int
    seed: int
    scratch: Sequence[str]
    detects: bool
    out: FilePath
    slow: float
    timeout: float


_Printed = TypeVar("_Printed", _Verified, GateResult, CrashResult)


def verify(
    contract: str, adapter: Sequence[str] | type[Any] | Literal["reference"], **options: Unpack[VerifyOptions]
) -> VerifyResult:
    """Run the cases of a contract against an adapter: a command, the word `reference`, or a subclass of `Adapter`.

    An adapter that fails gives a result, whatever it does. Raises ValueError for what cannot be asked, RuntimeError
    where holdfast itself gave no result.
    """
    asked: dict[str, Any] = {"evidence": Path("holdfast-out", "run.jsonl.zst"), **options}
    if isinstance(adapter, type):
        from holdfast.adapter import Adapter

        if not issubclass(adapter, Adapter) or adapter.contract != contract:
            named = getattr(adapter, "contract", None)
            raise ValueError(f"expected a subclass of holdfast.Adapter for {contract}, got {adapter!r} for {named}")
        target = ["--", *worker.command_of(adapter, "adapter")]
        asked["adapter_files"] = [*worker.files_of(adapter), *asked.get("adapter_files", ())]
    else:
        target = ["reference"] if adapter == "reference" else ["--", *_words(adapter)]
    said = _ran("verify", {"contract": contract, **asked}, target, _Verified)
    is_narrowed = not asked.get("faults", True) or any(asked.get(name) for name in _NARROWING)
    place = Path(asked["evidence"])
    if not isinstance(said, _Verified):
        return VerifyResult(exit=said[0], evidence=place, is_narrowed=is_narrowed, problem=said[1])
    # What is unsupported because its role is not claimed is no finding.
    unasked = {each.case for each in said.cases if each.verdict is Verdict.UNSUPPORTED} & said.not_asked
    found = [each for each in said.cases if each.case not in unasked]
    bad = [each for each in found if each.verdict is not Verdict.CONFORMS]
    return VerifyResult(
        exit=said.exit,
        decision=said.can_proceed,
        verdict=gravest_finding(each.verdict for each in found),
        findings=tuple(sorted(bad, key=lambda each: REPORTED.index(each.verdict))),
        notes=said.notes,
        evidence=place,
        is_narrowed=is_narrowed,
    )


def gate(evidence: FilePath | VerifyResult, require: str | Sequence[str], **options: Unpack[GateOptions]) -> GateResult:
    """Decide whether a run proves what is required. Raises ValueError, RuntimeError as `verify`."""
    path = evidence.evidence if isinstance(evidence, VerifyResult) else evidence
    required = [require] if isinstance(require, str) else require
    said = _ran("gate", {"require": required, **options}, ["--", str(path)], GateResult)
    if not isinstance(said, GateResult):
        raise RuntimeError(said[1])
    return said


def crash(store: Sequence[str] | type[Any], **options: Unpack[CrashOptions]) -> CrashResult:
    """Find out what a crash, a power loss or a full disk costs a store: a command, or a class that is a `Store`.

    Raises ValueError, RuntimeError as `verify`.
    """
    command = worker.command_of(store, "store") if isinstance(store, type) else _words(store)
    said = _ran("crash", {**options}, ["--", *command], CrashResult)
    return said if isinstance(said, CrashResult) else CrashResult(exit=said[0], problem=said[1])


def _words(command: Sequence[str]) -> Sequence[str]:
    if isinstance(command, str) or not command or not all(isinstance(word, str) for word in command):
        raise ValueError(f"expected a command as a list of words, ['node', 'mine.js'], or a class, got {command!r}")
    return command


def _option(keyword: str, value: Any) -> list[str]:
    """A keyword as a command line has it: once for each of several values."""
    name = f"--{_SINGULAR.get(keyword, keyword).replace('_', '-')}"
    if isinstance(value, bool):
        return [name] if value else ["--no-faults"] if keyword == "faults" else []
    if isinstance(value, Mapping):
        value = [f"{each}={text}" for each, text in value.items()]
    values = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    return [f"{name}={each}" for each in values if each is not None]


def _ran(
    command: str, options: dict[str, Any], target: Sequence[str], kind: type[_Printed]
) -> _Printed | tuple[Exit, str]:
    """What the command printed; or its exit status and its message, where it ended before it had a result.

    Raises ValueError, RuntimeError.
    """
    if worker.is_worker():
        advice = 'put the call below `if __name__ == "__main__":`'
        raise RuntimeError(f"{command}: each process of an adapter imports the module of its class; {advice}")
    limit: float | None = options.pop("timeout", None)
    spelt: list[str] = [word for keyword, value in options.items() for word in _option(keyword, value)]
    started = [*_COMMAND, command, *spelt, "--format=json", *target]
    child = subprocess.Popen(started, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = child.communicate(timeout=limit)
    except BaseException as error:
        # SIGTERM lets it end its adapters. Where it does not, its janitor does after SIGKILL.
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.communicate(timeout=_END_S)
        child.kill()
        child.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise RuntimeError(f"holdfast {command} gave no result within {limit} s; nothing was proven") from None
        raise
    said = err.decode(errors="replace").strip()
    if child.returncode not in {*Exit} - {Exit.KIT}:
        raise RuntimeError(f"holdfast {command} ended with status {child.returncode}; nothing was proven: {said}")
    status = Exit(child.returncode)
    if status is Exit.USAGE:
        raise ValueError(f"holdfast {command}: {said}")
    if not out.strip() and status is not Exit.OK:
        return status, said
    try:
        found = msgspec.json.decode(out, type=kind)
    except msgspec.MsgspecError as error:
        raise RuntimeError(f"holdfast {command} printed no result; nothing was proven: {error}; {said}") from error
    if found.exit is not status:
        raise RuntimeError(f"holdfast {command} ended with status {status.value}, and printed {found.exit.value}")
    return found
