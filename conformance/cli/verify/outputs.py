"""What `holdfast verify` writes beside the evidence, and whether it can: asked before the run, written after it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from holdfast.conformance.cli.places import unusable
from holdfast.conformance.cli.verify.options import Options
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.run.results import results_of
from holdfast.conformance.verdict import Exit
from holdfast.reports.earlier import (
    PARTIAL,
    PREVIOUS,
    EarlierError,
    is_junit,
    is_remnant,
    set_aside,
    set_results_aside,
)
from holdfast.reports.evidence import Run
from holdfast.reports.junit import junit_xml
from holdfast.specs import Contract


class ReportError(Exception):
    """A report cannot be written though the run came to its end: the text says what was expected and what came."""


def unusable_outputs(options: Options) -> str:
    """Why the outputs that are asked for cannot be written, with what to do; empty if all can.

    The file of the evidence itself is asked for by `holdfast.reports.evidence.Place`.
    """
    return next(filter(None, _problems(options)), "")


def publish(run: Run, contracts: Sequence[Contract], options: Options, *, problem: str = "") -> None:
    """Draw the reports of a run and put them in their places. `run` is what stands on the disk, complete.

    `problem` says why the adapter did not come as far as a case. Every process of the adapter is gone.
    Raises ReportError.
    """
    if options.junitxml is None and options.alluredir is None:
        return
    status = Exit.INCOMPLETE if run.footer is None else Exit(run.footer.exit)
    plan = [planned for contract in contracts for planned in plan_of(contract)]
    results = results_of(run, contracts, plan, status=status, problem=problem)
    try:
        if options.junitxml is not None:
            _put_file(junit_xml(results), options.junitxml)
        if options.alluredir is not None:
            # Its library takes a tenth of the time in which this command starts.
            from holdfast.reports.allure import write_allure

            set_results_aside(options.alluredir)
            write_allure(results, options.alluredir)
    except (OSError, EarlierError) as error:
        raise ReportError(
            f"expected to write {options.junitxml or options.alluredir} at the end of the run, got: {error}; "
            "the evidence is complete"
        ) from error


def _put_file(made: bytes, path: Path) -> None:
    """Raises OSError, EarlierError."""
    set_aside(path)
    real = Path(os.path.realpath(path))
    real.parent.mkdir(parents=True, exist_ok=True)
    partial = real.with_name(real.name + PARTIAL)
    try:
        partial.write_bytes(made)
        partial.replace(real)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise


def _problems(options: Options) -> Iterator[str]:
    """Each thing that stands in the way of an output."""
    junit, allure = options.junitxml, options.alluredir
    for option, path in (("--evidence", options.evidence), ("--junitxml", junit), ("--alluredir", allure)):
        if path is not None and str(path).startswith("-"):
            yield f"{option}: expected a path, got {str(path)!r}, which reads like an option; say ./{path} if it is one"
    if junit is not None:
        yield _no_file("--junitxml", junit)
    if allure is not None:
        yield _no_folder("--alluredir", allure)
    yield _collision(options)


def _no_file(option: str, path: Path) -> str:
    real, advice = os.path.realpath(path), "name another file"
    if real.endswith((PREVIOUS, PARTIAL)):
        return f"{option}: expected another name than {path}; {PREVIOUS} and {PARTIAL} stand for files of other runs"
    if os.path.islink(real):
        return f"{option}: expected a file, got links that lead to each other at {path}; {advice}"
    if os.path.isdir(real):
        return f"{option}: expected a file name, got the folder {path}; name a file in it"
    if os.path.lexists(real) and not os.path.isfile(real):
        return f"{option}: expected a file that keeps what is written, got a device or a pipe at {path}; {advice}"
    for name in (real, real + PARTIAL):
        if os.path.lexists(name) and not (is_remnant(name) or is_junit(name)):
            return f"{option}: {name} is there and is no JUnit file of holdfast's; it is left alone: {advice}"
    problem = unusable(Path(real).parent)
    return f"{option}: {problem}; {advice}" if problem else ""


def _no_folder(option: str, path: Path) -> str:
    real = Path(os.path.realpath(path))
    if real.is_symlink():
        return f"{option}: expected a folder, got links that lead to each other at {path}; name another folder"
    problem = unusable(real)
    return f"{option}: expected a folder for results, but {problem}; name another folder" if problem else ""


def _collision(options: Options) -> str:
    """Two outputs under one name, or one below the file of another."""
    named = {"--evidence": options.evidence, "--junitxml": options.junitxml, "--alluredir": options.alluredir}
    real = {option: os.path.realpath(path) for option, path in named.items() if path is not None}
    if options.settings.keep is not None:
        real["states of a broken disk"] = os.path.realpath(options.settings.keep)
    for option, file in real.items():
        for other, path in real.items():
            same = path == file and option < other
            below = option in ("--evidence", "--junitxml") and path.startswith(file + os.sep)
            if same or below:
                return f"expected outputs in places of their own, got {file} for {option} and {path} for {other}"
    return ""
