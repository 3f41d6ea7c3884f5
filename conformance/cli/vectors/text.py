"""Documents, answers and reproduction commands of `holdfast vectors` as text for people."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from holdfast.vectors.taxonomy import Profile

if TYPE_CHECKING:
    from holdfast.vectors.jcs.frames import Answered
    from holdfast.vectors.jcs.spark.results import Counterexample, Result

# Longer documents are not printed; the reproduction command has its own way to them.
MAX_SHOWN = 120


def shown(data: bytes) -> str:
    """Bytes for people: as text if they are printable, else in hexadecimal; cut if they are long."""
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        text = ""
    if text and text.isprintable():
        return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(data)} bytes)"
    word = f"hex:{data[: MAX_SHOWN // 2].hex()}"
    readable = data.decode("utf-8", "backslashreplace") if len(data) <= MAX_SHOWN // 2 else ""
    if len(data) > MAX_SHOWN // 2:
        return f"{word}… ({len(data)} bytes)"
    return f"{word}  {readable!a}" if readable else word


def answer_text(answer: Answered) -> str:
    """An answer in one line."""
    if answer.status.value == "canonical":
        return shown(answer.body)
    # The text of a runner. A line of its own could be taken for a line of the report.
    words = answer.body.decode("utf-8", "replace")[:200]
    return f"{answer.status.value}: {''.join(one if one.isprintable() else ascii(one)[1:-1] for one in words)}"


def reproduction(result: Result, found: Counterexample) -> str:
    """One command that asks the SDK about the document again, and says what is expected."""
    from holdfast.vectors.jcs.opening import argument_of

    document = f"hex:{found.smallest.hex()}"
    if len(found.smallest) > MAX_SHOWN:
        document = f"{result.seed}:{found.index}" if found.name is None else argument_of(result.seed, found.name)
    words = ["holdfast", "vectors", "show", document]
    if result.profile is not Profile.CORE:
        words += ["--profile", result.profile.value]
    named = bool(result.target.language)
    words += ["--sdk", result.target.name] if named else ["--", *result.target.command.words]
    return shlex.join(words)
