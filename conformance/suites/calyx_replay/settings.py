"""What the mailboxes of histories are configured with: other values than the usual ones, and other local time.

A history is stretched with its mailbox: window, retention and interval are multiplied, and with them every span of its
steps. So each situation comes up as it does with the usual values, and a part of the mailbox that goes by the usual
ones shows (CALYX-OPS-2). A retention may also be configured that is too short (CALYX-PRN-13).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random

from msgspec import structs

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.cases.record import NonConformance
from holdfast.conformance.suites.calyx_replay.generate import Step
from holdfast.conformance.suites.calyx_replay.model import Terms
from holdfast.specs import Contract

# The steps whose seconds are a span of the session's clock.
_SPANS = frozenset({"send", "prune", "clock", "insert", "insert old"})
# What lies this near to a whole minute is about that minute: it stays as near to its multiple.
_MINUTE, _NEAR = 60.0, 2.0
_FACTORS = (2, 3, 5)
# The shortest retention that can be configured in whole hours, and a window that needs a longer one.
_SHORT_HOURS, _SHORT_FACTOR = "1", 7
# Zones with whole and half hours, behind UTC and ahead of it, some with clocks that change.
_ZONES = ("Asia/Kolkata", "America/New_York", "Australia/Lord_Howe", "Europe/Berlin", "Pacific/Apia")
# Where an hour of the local clock passes for the second time, and shortly before one is left out, far behind any
# machine's time.
_TWICE = {"America/New_York": "2101-11-06T06:20:00Z", "Europe/Berlin": "2101-10-30T01:20:00Z"}
NEVER = {"America/New_York": "2102-03-12T06:20:00Z", "Europe/Berlin": "2102-03-26T00:20:00Z"}
# Some hundred bytes more than any other letter of a history has, and some thousand.
_LONGEST = (1300, 2048, 5001)
_PLACES = {"seen_cache_path": "runtime/mailbox/Before/List.json", "envelopes_path": "runtime/before/Letters"}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a session is configured with beside the usual; `factor` says how far its history is stretched.

    `turns` are the times at which the clocks of zones change.
    """

    factor: int = 1
    config: Mapping[str, str] = field(default_factory=dict)
    turns: Mapping[str, str] = field(default_factory=lambda: _TWICE)

    def value(self, contract: Contract, name: str) -> str:
        """A parameter of the contract, as it holds in the session."""
        return str(self.config.get(name, contract.parameters[name].value))

    def terms(self, contract: Contract, *, remembers: bool) -> Terms:
        """The values that the model goes by."""

        def number(name: str) -> int:
            return int(self.value(contract, name))

        window = timedelta(seconds=number("window_seconds"))
        return Terms(
            window=window,
            retention=timedelta(hours=number("retention_hours")),
            least=max(timedelta(seconds=number("least_retention_seconds")), 2 * window),
            interval=timedelta(seconds=number("prune_interval_seconds")),
            remembers=remembers,
            most=number("max_envelope_bytes"),
        )

    def stretched(self, step: Step) -> Step:
        """A step of a history of the usual values, as it is here."""
        if step.what == "leap":
            return structs.replace(step, to=self.turns.get(self.config.get("timezone", ""), ""))
        if step.what not in _SPANS or not step.seconds or self.factor == 1:
            return step
        whole = round(step.seconds / _MINUTE) * _MINUTE
        rest = step.seconds - whole
        seconds = whole * self.factor + rest if abs(rest) <= _NEAR else step.seconds * self.factor
        return structs.replace(step, seconds=round(seconds, 6))


def drawn(
    bench: Bench, dice: Random, *, hours: int | None = None, factor: int | None = None, zone: str | None = None
) -> Settings:
    """Other settings than the usual ones; `hours` are those of the retention before it is stretched."""
    factor = factor or dice.choice(_FACTORS)
    parameters = bench.contract.parameters

    def times(name: str) -> str:
        return str(int(parameters[name].value or 0) * factor)

    config = {
        "window_seconds": times("window_seconds"),
        "prune_interval_seconds": times("prune_interval_seconds"),
        "retention_hours": times("retention_hours") if hours is None else str(hours * factor),
        "max_envelope_bytes": str(dice.choice(_LONGEST)),
        "timezone": zone or dice.choice(_ZONES),
        **_PLACES,
    }
    return Settings(factor, config)


def _opens(bench: Bench, settings: Settings) -> bool:
    """Whether a mailbox can be opened with these settings. It may say that it cannot."""
    before = len(bench.records)
    try:
        with bench.session(config=settings.config):
            return True
    except NonConformance:
        answer = bench.records[-1].answer or {}
        if len(bench.records) == before + 1 and answer.get("outcome") in ("fault", "refused"):
            return False
        raise


def sampled(bench: Bench) -> Sequence[Settings]:
    """The usual settings, others, a retention that is too short, and a zone where an hour of a day is left out."""
    dice = bench.dice("settings")
    first, second = dice.sample(tuple(_TWICE), 2)
    short = drawn(bench, dice, factor=_SHORT_FACTOR, zone=first)
    short = replace(short, config={**short.config, "retention_hours": _SHORT_HOURS})
    other = drawn(bench, dice, zone=second)
    return (
        Settings(),
        other,
        short if _opens(bench, short) else other,
        Settings(config={"timezone": first}, turns=NEVER),
    )
