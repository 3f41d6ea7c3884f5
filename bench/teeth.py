"""The brake: what the kit finds and accuses now, beside what it did when that was frozen.

    python -m bench.teeth --write FILE [--contract NAME] [--part PART] [--missing] [--whole]
    python -m bench.teeth --compare FILE [--contract NAME] [--part PART] [--quarter SEED | --whole] [--gone NAME]

FILE has for each contract its clauses and cases, each planted bug and each automatic mutant with cases that kill it,
and the CPU time of `holdfast verify reference`; and the verdicts of the adapters of `tests.foreign`. `--compare` prints
a line for each kill that is lost, each sound adapter or variant that is accused, each broken adapter that is not found,
each clause, case or bug that is gone and not named with `--gone`, and each contract that takes over a tenth more CPU.

By default a bug meets the cases that are recorded for it alone, the cheapest first, until one kills it. `--quarter`
does so with a quarter of all. `--whole` does what `holdfast selfcheck --full` and `--automatic` do, in hours.

CPU time is compared as a ratio to that of a fixed work, which is done before and after it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from holdfast.conformance.run.plan import Form, plan_of
from holdfast.conformance.selfcheck.automatic import SEED, ListingError, listed, outcomes, score_of, stores_of
from holdfast.conformance.selfcheck.kills import VALUES, Extent, Planted, chosen, graver, kills_of
from holdfast.conformance.selfcheck.tasks import Attack, Beginning, Harvest, Outcome, Planting, Shown, Trial
from holdfast.conformance.selfcheck.workers import WorkerError, Workers
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Contract, SpecError, contract_names, load_contract
from holdfast.specs.automatic import Site
from holdfast.specs.mutants import Mutant, load_mutants
from tests.foreign import FOREIGN, Foreign

FORMAT = "holdfast-teeth/1"
# So much of the CPU time that was frozen may be used.
MOST_CPU = 1.1
# How often CPU time is measured before it is said to have grown: other work of the machine only adds to it.
_MEASURED = 3
# The number of cases that are kept for a planted bug, at most.
_KEPT = 2
# If fewer than this part of the frozen automatic mutants have a place in the source, they have to be frozen anew.
_PLACED = 0.5
_SOUND = ("conforms", "unsupported")
PARTS = ("planted", "automatic", "adapters", "cpu")
_VERIFY = (sys.executable, "-P", "-m", "holdfast.conformance.cli", "verify", "reference", "--jobs", "2", "--seed", SEED)
# A program that runs its arguments as a command. It prints the exit status, and the CPU seconds of the command and of
# every process that the command started. A process whose parent has ended becomes a child of this program.
_MEASURE = """
import ctypes, os, resource, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
until = time.monotonic() + 60
try:
    while True:
        if os.waitpid(-1, os.WNOHANG)[0] == 0:
            time.sleep(0.02)
        if time.monotonic() > until:
            sys.exit("a process that the command started did not end within 60 s")
except ChildProcessError:
    pass
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(status, used.ru_utime + used.ru_stime)
"""
_WORK = """
import hashlib, json, subprocess, sys
for _ in range(20):
    subprocess.run([sys.executable, "-I", "-c", "import sqlite3"], check=True)
value = {str(n): [n, n * 1.5, "x" * n] for n in range(200)}
for _ in range(6000):
    text = json.dumps(value, sort_keys=True)
    hashlib.sha256(text.encode()).digest()
    json.loads(text)
"""


class TeethError(Exception):
    """FILE cannot be used, or a run of the kit has no result."""


class Killed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The test that kills an automatic mutant. `store`: if it is not the first one; `launched` as in `Attack`."""

    by: str
    store: str = ""
    launched: bool = False


class Cpu(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """CPU seconds of `verify reference`, and of the fixed work in the same minutes."""

    seconds: float
    work: float

    def __str__(self) -> str:
        return (
            f"{self.seconds:.1f} s of CPU ({self.seconds / self.work:.2f} of the {self.work:.2f} s of the fixed work)"
        )


class Part(msgspec.Struct, forbid_unknown_fields=True):
    """What is frozen of a contract.

    `planted` maps each bug to its killers, a case and its verdict, the cheapest first; to none if no run has confirmed
    it, and then the cases of its clauses are run. `permitted` are the sound variants.
    """

    cpu: Cpu | None = None
    clauses: list[str] = []
    cases: list[str] = []
    permitted: list[str] = []
    planted: dict[str, dict[str, str]] = {}
    automatic: dict[str, Killed] = {}

    def bugs(self) -> Mapping[str, Iterable[str]]:
        """The names of the bugs of each part."""
        return {"planted": self.planted, "automatic": self.automatic}

    def lacking(self, parts: Collection[str]) -> list[str]:
        """Which of these parts are not frozen, so that nothing of them can be compared."""
        held = {"planted": self.planted, "automatic": self.automatic, "cpu": self.cpu}
        return [name for name, content in held.items() if name in parts and not content]


class Teeth(msgspec.Struct, forbid_unknown_fields=True, tag=FORMAT, tag_field="format"):
    """FILE. Of a sound adapter it has the number of cases that it conforms to, of a broken one what finds it."""

    contracts: dict[str, Part] = {}
    sound: dict[str, int] = {}
    broken: dict[str, dict[str, str]] = {}


def read(path: Path) -> Teeth:
    """The file. Raises TeethError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Teeth)
    except (OSError, msgspec.MsgspecError) as error:
        raise TeethError(f"{path} is no whole file of {FORMAT}: {error}") from error


def write(path: Path, teeth: Teeth) -> None:
    """Replace the file: a line for each bug, so that a diff shows which ones changed."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(_lines(msgspec.to_builtins(teeth), 4) + "\n", encoding="utf-8")
    new.replace(path)


def _lines(value: Any, depth: int) -> str:
    if not depth or not value or not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[\n" + ",\n".join(_lines(each, depth - 1) for each in value) + "\n]"
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {_lines(each, depth - 1)}" for name, each in value.items()) + "\n}"


@dataclass(frozen=True, slots=True)
class Run:
    """How much is run: all or the quarter of a seed, quickly or wholly. What is `gone` is gone on purpose.

    `missing`: only planted bugs without a killer in the file are written.
    """

    quarter: str = ""
    whole: bool = False
    gone: Collection[str] = ()
    jobs: int = 2
    parts: Collection[str] = PARTS
    missing: bool = False

    def of(self, names: Iterable[str]) -> list[str]:
        """Those of the names that are run."""
        return [name for name in names if not self.quarter or self._rank(name) < 64]

    def some(self, names: Sequence[str]) -> list[str]:
        """A quarter of a few names, at least one."""
        count = -(-len(names) // 4) if self.quarter else len(names)
        return sorted(names, key=self._rank)[:count]

    def _rank(self, name: str) -> int:
        return hashlib.sha256(f"{self.quarter} {name}".encode()).digest()[0]

    def lost(self, what: str, before: Iterable[str], now: Collection[str]) -> Iterator[str]:
        """A line for each name that is not there now, and ought to be."""
        yield from (f"{what} {name} is gone" for name in before if name not in now and name not in self.gone)


# Planted bugs


def killers(mutant: Mutant, shown: Sequence[Shown]) -> dict[str, str]:
    """The cases that kill the bug as it is declared, with their verdicts, the cheapest first."""
    found = {}
    for line in sorted(shown, key=lambda line: line.seconds):
        wanted = [verdict for clause, verdict in mutant.must_fail.items() if clause in line.clauses]
        wanted += [mutant.faults[line.case]] if line.case in mutant.faults else []
        if any(graver(Verdict(each), [Verdict(line.verdict)]) for each in wanted):
            found[line.case] = line.verdict
    return found


def stands(recorded: Mapping[str, str], shown: Sequence[Shown]) -> bool:
    """Whether a recorded killer has its verdict, or a graver one."""
    return any(
        line.case in recorded and graver(Verdict(recorded[line.case]), [Verdict(line.verdict)]) for line in shown
    )


def _planting(planted: Planted, mutant: Mutant, recorded: Collection[str], enough: int) -> Planting:
    """The task for the recorded cases that are there; else for all that the bug is declared to meet, suites last."""
    task, by_id = planted.task(mutant), {case.id: case for case in planted.plan}
    if known := [case for case in recorded if case in by_id]:
        faults = tuple(case for case in known if by_id[case].form is Form.FAULT)
        scripts = tuple(case for case in known if case not in faults)
        return msgspec.structs.replace(task, cases=scripts, faults=faults, enough=enough)
    cases = sorted(task.cases, key=lambda case: (by_id[case].whole, by_id[case].form is Form.SUITE))
    return msgspec.structs.replace(task, cases=tuple(cases), enough=enough if mutant.must_fail else 0)


def _is_as_frozen(mutant: Mutant, recorded: Mapping[str, str], shown: Sequence[Shown]) -> bool:
    """Whether a bug is killed, or a sound variant accused of nothing."""
    if not mutant.must_fail:
        return bool(shown) and all(line.verdict in _SOUND for line in shown)
    met = recorded.keys() & {line.case for line in shown}
    return stands(recorded, shown) if met else bool(killers(mutant, shown))


def _shown(
    planted: Planted, recorded: Mapping[str, Mapping[str, str]], run: Run, *, enough: int = 1
) -> Mapping[str, Sequence[Shown]]:
    """The results of each bug in its recorded cases; a bug ends after `enough` cases that do not conform.

    Raises TeethError, WorkerError.
    """
    if run.whole:
        return {kill.mutant.name: kill.cases for kill in kills_of(planted, run.jobs, say=print)}
    found: dict[str, Sequence[Shown]] = {}
    if not planted.chosen:
        return found
    with Workers(Beginning(planted.contract.name, VALUES), jobs=min(run.jobs, len(planted.chosen))) as workers:
        # A bug that is not killed meets all of its cases once more: a race or a busy machine may hide it.
        for most in (enough, 0):
            tasks = [
                _planting(planted, each, recorded.get(each.name, ()), most)
                for each in planted.chosen
                if not _is_as_frozen(each, recorded.get(each.name, {}), found.get(each.name, ()))
            ]
            found |= {harvest.mutant: harvest.shown for harvest in workers.results(tasks, Harvest)}
    return found


def compare_planted(contract: Contract, part: Part, run: Run) -> Iterator[str]:
    """Each planted bug that is not killed any more, and each sound variant that is accused."""
    names = [name for name in (*part.planted, *part.permitted) if name not in run.gone]
    planted = chosen(contract, run.of(names) or [""], Extent.CASES if run.whole else Extent.CLAUSES)
    yield from run.lost(f"{contract.name}: the planted bug", names, {each.name for each in planted.declared.planted})
    shown = _shown(planted, part.planted, run)
    for mutant in planted.chosen:
        lines, recorded = shown.get(mutant.name, ()), part.planted.get(mutant.name, {})
        if _is_as_frozen(mutant, recorded, lines) or (run.whole and killers(mutant, lines)):
            continue
        what = "the kill of the planted bug" if mutant.must_fail else "nothing is to accuse the sound variant"
        telling = [line for line in lines if mutant.must_fail or line.verdict not in _SOUND]
        said = ", ".join(f"{line.case} {line.verdict}" for line in telling) or "no result"
        yield f"{contract.name}: {what} {mutant.name}{' is lost' if mutant.must_fail else ''}: {said}"


def freeze_planted(contract: Contract, run: Run, names: Sequence[str]) -> dict[str, dict[str, str]]:
    """The cheapest killers of each of these bugs."""
    planted = chosen(contract, names, Extent.CASES if run.whole else Extent.CLAUSES)
    shown = _shown(planted, {}, run, enough=_KEPT)
    return {each.name: dict([*killers(each, shown[each.name]).items()][:_KEPT]) for each in planted.chosen}


# Automatic mutants


def places(sites: Sequence[Site]) -> dict[str, Site]:
    """The sites by a name that stays while lines and modules around them move: first a digest, then what it is."""
    seen: Counter[tuple[str, ...]] = Counter()
    found = {}
    for site in sites:
        what = (site.function, site.operator, site.code, site.was, site.text)
        seen[what] += 1
        digest = hashlib.sha256(repr((what, seen[what])).encode()).hexdigest()[:10]
        found[f"{digest} {site.file} {site.function or '-'} {site.operator}"] = site
    return found


def compare_automatic(contract: Contract, part: Part, run: Run) -> Iterator[str]:
    """Each automatic mutant that is not killed any more."""
    names = run.of(part.automatic)
    now = {name.split()[0]: site for name, site in places(listed(contract.name)[1]).items()} if names else {}
    placed = {name: now[name.split()[0]] for name in names if name.split()[0] in now}
    if len(placed) < len(names):
        print(f"{contract.name}: {len(names) - len(placed)} of {len(names)} automatic mutants have no place any more")
    if len(placed) < _PLACED * len(names):
        yield f"{contract.name}: most automatic mutants have no place any more; freeze the contract anew"
    named = {site.id: name for name, site in placed.items()}
    found: dict[str, Outcome] = {}
    if run.whole and placed:
        score = score_of(contract, jobs=run.jobs, say=print, only=list(named))
        found = {**score.outcomes}
    elif placed:
        known = {case.id for case in plan_of(contract)}
        met = {name: part.automatic[name] for name in placed if part.automatic[name].by in known}
        attacked = [_attack(contract, placed[name], killed) for name, killed in met.items()]
        with Workers(Beginning(contract.name, SEED), jobs=min(run.jobs, len(attacked) or 1)) as workers:
            for _ in range(2):
                left = [each for each in attacked if each.site.id not in found or not found[each.site.id].end.is_kill]
                found |= {outcome.id: outcome for outcome in outcomes(left, workers)}
    for site_id, name in named.items():
        if site_id not in found or not found[site_id].end.is_kill:
            end = found[site_id].end.value if site_id in found else "no result"
            by = part.automatic[name].by
            yield f"{contract.name}: the kill of the automatic mutant {name} by {by} is lost: {end}"


def _attack(contract: Contract, site: Site, killed: Killed) -> Attack:
    trial = Trial(killed.store or stores_of(contract.name)[0], killed.by)
    if contract.fault(killed.by) is not None:
        return Attack(site, (), killed.launched, (trial,))
    return Attack(site, (trial,), killed.launched)


def freeze_automatic(contract: Contract, run: Run) -> dict[str, Killed]:
    """The automatic mutants that are killed, with what kills them."""
    score = score_of(contract, jobs=run.jobs, say=print)
    first = stores_of(contract.name)[0]
    names = {site.id: name for name, site in places(listed(contract.name)[1]).items()}
    return {
        names[site.id]: Killed(by.case, by.store if by.store != first else "", outcome.launched)
        for site in score.drawn
        if (outcome := score.outcomes[site.id]).end.is_kill and (by := outcome.by)
    }


# CPU time


def cpu_of(*words: str) -> float:
    """The CPU seconds of a command and of all that it starts. Raises TeethError if it fails."""
    with tempfile.TemporaryDirectory(prefix="holdfast-teeth-") as folder:
        measure = (sys.executable, "-I", "-c", _MEASURE, *words)
        done = subprocess.run(measure, capture_output=True, text=True, cwd=folder, check=False)
    status, _, seconds = done.stdout.strip().partition(" ")
    if status != "0":
        raise TeethError(f"expected {' '.join(words[1:])} to end with 0, got {status or done.stderr}")
    return float(seconds)


def measured(contract: str) -> Cpu:
    """What `verify reference` takes, and the fixed work before and after it. Raises TeethError."""
    work = (sys.executable, "-I", "-c", _WORK)
    before = cpu_of(*work)
    seconds = cpu_of(*_VERIFY, "--contract", contract)
    return Cpu(round(seconds, 2), round((before + cpu_of(*work)) / 2, 3))


def grown(then: Cpu, now: Cpu) -> float:
    """How many times the CPU time that was frozen, on a machine of the same speed."""
    return (now.seconds / now.work) / (then.seconds / then.work)


def compare_cpu(contract: str, then: Cpu) -> Iterator[str]:
    """A line if more than a tenth more is used. Raises TeethError."""
    now = measured(contract)
    for _ in range(_MEASURED - 1):
        if grown(then, now) <= MOST_CPU:
            break
        now = min(now, measured(contract), key=lambda one: grown(then, one))
    said = f"{contract}: verify reference takes {now}, frozen {then}: {grown(then, now):.2f} times"
    print(said, flush=True)
    if grown(then, now) > MOST_CPU:
        yield said


# Adapters that are no reference


def _foreign(contracts: Collection[str]) -> list[Foreign]:
    return [each for each in FOREIGN if not contracts or each.contract in contracts]


def _verdicts(adapters: Sequence[Foreign], jobs: int) -> dict[str, dict[str, str]]:
    """The verdicts of each; none of one that has no result."""

    def of(each: Foreign) -> dict[str, str]:
        try:
            return each.verdicts()
        except (AssertionError, OSError, ValueError, subprocess.SubprocessError) as error:
            print(f"{each.name}: {error}", flush=True)
            return {}

    with ThreadPoolExecutor(jobs) as pool:
        return dict(zip([each.name for each in adapters], pool.map(of, adapters), strict=True))


def compare_adapters(teeth: Teeth, run: Run, contracts: Collection[str]) -> Iterator[str]:
    """Each sound adapter that is accused, and each broken one that is not found."""
    known = {each.name: each for each in FOREIGN}
    frozen = [name for name in (*teeth.sound, *teeth.broken) if name not in run.gone]
    yield from run.lost("the adapter", frozen, known)
    names = {each.name for each in _foreign(contracts)} & {*run.of(frozen)}
    found = _verdicts([known[name] for name in names], run.jobs)
    for name, verdicts in sorted(found.items()):
        accused = {case: verdict for case, verdict in verdicts.items() if verdict not in _SOUND}
        if name in teeth.broken:
            due = teeth.broken[name]
            if not any(graver(Verdict(due[case]), [Verdict(accused[case])]) for case in due.keys() & accused):
                yield f"the broken adapter {name} is not found any more: expected {due}, got {verdicts}"
        elif accused:
            yield f"the sound adapter {name} is accused: {accused}"
        elif (count := [*verdicts.values()].count("conforms")) < teeth.sound[name] - len(run.gone):
            yield f"the sound adapter {name} conforms to {count} cases, frozen {teeth.sound[name]}"


def freeze_adapters(teeth: Teeth, contracts: Collection[str], jobs: int) -> Iterator[str]:
    """Put the adapters in; a line for each that is not what it is known to be."""
    for each, verdicts in zip(adapters := _foreign(contracts), _verdicts(adapters, jobs).values(), strict=True):
        accused = {case: verdict for case, verdict in verdicts.items() if verdict not in _SOUND}
        if not verdicts or each.sound is bool(accused):
            yield f"{each.name} is {'sound' if each.sound else 'broken'}, and got {accused or verdicts}"
        elif each.sound:
            teeth.sound[each.name] = [*verdicts.values()].count("conforms")
        else:
            teeth.broken[each.name] = accused


# The command


def compare(teeth: Teeth, run: Run, contracts: Sequence[str]) -> Iterator[str]:
    """Everything that is worse than frozen, a line each. Raises TeethError, WorkerError, ListingError, SpecError."""
    names = [*(contracts or teeth.contracts)]
    for name in names:
        if name not in teeth.contracts:
            raise TeethError(f"nothing is frozen of {name}")
    installed = contract_names()
    yield from run.lost("the contract", names, installed)
    yield from (f"nothing is frozen of {name}" for name in installed if not contracts and name not in teeth.contracts)
    names = [name for name in names if name in installed]
    for name in names:
        began, part, contract = time.monotonic(), teeth.contracts[name], load_contract(name)
        yield from run.lost(f"{name}: the clause", part.clauses, contract.clauses)
        yield from run.lost(f"{name}: the case", part.cases, [case.id for case in plan_of(contract)])
        yield from compare_planted(contract, part, run) if "planted" in run.parts else ()
        yield from compare_automatic(contract, part, run) if "automatic" in run.parts else ()
        counts = [f"{len(run.of(bugs))} {what}" for what, bugs in part.bugs().items() if what in run.parts]
        said = ", ".join([*counts, f"{time.monotonic() - began:.0f} s"])
        print(f"{name}: {said}", flush=True)
    yield from compare_adapters(teeth, run, contracts) if "adapters" in run.parts else ()
    frozen = {name: cpu for name in names if "cpu" in run.parts and (cpu := teeth.contracts[name].cpu)}
    for name in run.some([*frozen]):
        yield from compare_cpu(name, frozen[name])
    lacking = [f"{what} of {name}" for name in names for what in teeth.contracts[name].lacking(run.parts)]
    if lacking:
        raise TeethError(f"not frozen, so not compared: {', '.join(lacking)}; see --write FILE --part PART")


def freeze(path: Path, run: Run, contracts: Sequence[str]) -> Iterator[str]:
    """Write the contracts into the file, one after the other. A line for each bug that nothing kills."""
    teeth = read(path) if path.exists() else Teeth()
    yield from freeze_adapters(teeth, contracts, run.jobs) if "adapters" in run.parts else ()
    write(path, teeth)
    for name in contracts or contract_names():
        contract, part = load_contract(name), teeth.contracts.setdefault(name, Part())
        part.clauses, part.cases = [*contract.clauses], [case.id for case in plan_of(contract)]
        if "planted" in run.parts:
            declared = load_mutants(name)
            kept = {bug.name: part.planted.get(bug.name, {}) for bug in declared.mutants} if run.missing else {}
            names = [bug.name for bug in declared.mutants if not kept.get(bug.name)]
            part.planted = kept | (freeze_planted(contract, run, names) if names else {})
            part.permitted = [choice.name for choice in declared.choices]
            yield from (f"{name}: no case kills the planted bug {bug}" for bug, by in part.planted.items() if not by)
        if "automatic" in run.parts:
            part.automatic = freeze_automatic(contract, run)
        if "cpu" in run.parts:
            part.cpu = measured(name)
        write(path, teeth)


def main(words: Sequence[str] | None = None) -> int:
    """Exit status 0 if nothing is worse, 1 if something is, 2 if that is not known."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--write", type=Path, metavar="FILE")
    what.add_argument("--compare", type=Path, metavar="FILE")
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument("--quarter", metavar="SEED", default="")
    extent.add_argument("--whole", action="store_true")
    parser.add_argument("--contract", action="append", default=[], metavar="NAME")
    parser.add_argument("--gone", action="append", default=[], metavar="NAME", help="a clause, case, bug or adapter")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this; repeat")
    parser.add_argument("--missing", action="store_true", help="with --write: planted bugs without a killer alone")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(words)
    if options.write and (options.quarter or options.gone):
        parser.error("--quarter and --gone belong to --compare")
    parts = options.part or PARTS
    run = Run(options.quarter, options.whole, frozenset(options.gone), options.jobs, parts, options.missing)
    began, count = time.monotonic(), 0
    try:
        lines = (
            freeze(options.write, run, options.contract)
            if options.write
            else compare(read(options.compare), run, options.contract)
        )
        for line in lines:
            print(f"WORSE {line}", flush=True)
            count += 1
    except (TeethError, WorkerError, ListingError, SpecError, OSError) as error:
        print(f"no result: {error}", flush=True)
        return 2
    except KeyboardInterrupt:
        print("no result: interrupted", flush=True)
        return 130
    print(f"{count} lines; {time.monotonic() - began:.0f} s", flush=True)
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
