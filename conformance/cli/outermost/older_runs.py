"""The first step of `holdfast verify`: no file of an older run can be taken for one of the new run.

The options are not parsed yet, and may be misspelt. So every argument that names a file of evidence or a JUnit file of
holdfast is taken for an output: `verify` reads neither.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from holdfast.reports.earlier import EarlierError, is_evidence, set_aside, set_results_aside

# The default place of evidence.
EVIDENCE = os.path.join("holdfast-out", "run.jsonl.zst")
# `Exit.ADAPTER`, which is not imported yet.
_NEVER_STARTED = 13


def of_vectors(name: str) -> str:
    """The folder of `vectors verify` for a runner called `name`."""
    return os.path.join("holdfast-out", "vectors", re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "sdk")


def set_aside_earlier(words: Sequence[str], *, ended: int | None = None) -> str:
    """Set aside the files that the run of this command line would replace. Returns what could not be set aside and why.

    `words` is the command line without the program. Other commands than `verify` and `vectors verify` write no
    evidence, and `--help` runs nothing. `ended` is the status of a run that is over: if it has not
    started, or left no evidence at the place of its `--evidence`, no older run is left at the default place either.
    """
    end = list(words).index("--") if "--" in words else len(words)
    own, adapter = words[:end], words[end + 1 :]
    commands = [word for word in own if not word.startswith("-")]
    if "--help" in own:
        return ""
    named = list(_named(own))
    # A value that names no file ends the run before it begins, so the file of the default is still the newest then.
    given = [word for option, word in named if option == "--evidence" and _is_file_name(word)]
    if ended is None:
        by_default = not given
    else:
        by_default = bool(given) and (ended == _NEVER_STARTED or not any(map(is_evidence, given)))
    if commands[:2] == ["vectors", "verify"]:
        default = list(_beside_mismatches(named, adapter))
    elif commands[:1] == ["verify"]:
        default = [EVIDENCE]
    else:
        return ""
    files = [*([] if ended is not None else [word for _, word in named]), *(default if by_default else [])]
    problems = []
    # A folder may hold any files, so only the folder of the Allure option is inspected.
    folders = [] if ended is not None else [word for option, word in named if option.startswith("--al")]
    for step, places in ((set_aside, files), (set_results_aside, folders)):
        for place in dict.fromkeys(places):
            try:
                step(place)
            except EarlierError as error:
                problems.append(str(error))
            except FileNotFoundError:
                # The working directory has been removed, and with it all that has a relative path.
                continue
    return "; ".join(problems)


def _named(own: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every argument that may be the value of an option, with that option."""
    for before, word in zip(("", *own), own, strict=False):
        option, found, value = word.partition("=")
        if word.startswith("-") and found:
            yield option, value
        else:
            yield before, word


def _is_file_name(word: str) -> bool:
    return bool(word) and not word.startswith("-") and not word.endswith(os.sep) and not os.path.isdir(word)


def _beside_mismatches(named: Sequence[tuple[str, str]], adapter: Sequence[str]) -> Iterator[str]:
    """The default place of the evidence of `vectors verify`."""
    folders = [word for option, word in named if option == "--out"]
    names = [word for option, word in named if option in ("--sdk", "--name")]
    folders += map(of_vectors, names or map(os.path.basename, adapter[:1]))
    for folder in folders:
        yield os.path.join(folder, "run.jsonl")
