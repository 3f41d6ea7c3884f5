"""The colours of verdicts."""

from __future__ import annotations

from holdfast.conformance.verdict import Verdict

_STYLE = {
    Verdict.CONFORMS: "green",
    Verdict.KIT_FAULT: "bold magenta",
    Verdict.FAIL_OPEN: "bold red",
    Verdict.STATE_LEAK: "bold red",
    Verdict.LOST_DURABILITY: "bold red",
    Verdict.WRONG_REASON: "yellow",
    Verdict.OVER_REFUSAL: "yellow",
}


def style_of(verdict: Verdict) -> str:
    """The colour of a verdict."""
    return _STYLE.get(verdict, "cyan")


def styled(verdict: Verdict | None) -> str:
    """A verdict with its colour."""
    if verdict is None:
        return "[dim]-[/dim]"
    return f"[{style_of(verdict)}]{verdict.value}[/]"
