"""What a nonce of a history is bound to, when its window opens and closes, and when it is presented."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from holdfast.conformance.cases.values import shift
from holdfast.conformance.suites.session import SuiteSession

# Members to which a nonce can be bound, those of which it may be bound to another value, and those of them that might
# be taken for each other.
_BINDING = ("operation", "canonical_target", "principal", "owner_or_approval_binding", "artifact_hash")
BOUND_ELSEWHERE = _BINDING[1:]
_CONFUSED = {"principal": "owner_or_approval_binding", "owner_or_approval_binding": "principal"}
# How long a nonce can be presented whose window is soon to close.
_BRIEF_S = 60
# When a window opens, from now on.
_OPENS = {"opening": "+1s", "early": "+1s", "awaited": "+1s", "issued later": f"-{_BRIEF_S}s"}
# The step of the clock before a nonce is presented: at the very instant at which its window opens or closes, just
# outside, or before the time at which it was issued.
MOVED = {
    "opening": "+1s",
    "awaited": "+1s",
    "early": "+0.999999s",
    "closing": f"+{_BRIEF_S}s",
    "closed": f"+{_BRIEF_S}.000001s",
    "outlived": f"+{_BRIEF_S}.000001s",
    "issued later": f"-{_BRIEF_S // 2}.5s",
}
# How old a request is in seconds that is dated to the other side of an end of the window.
DATED_S = {"awaited": 0.5, "outlived": 0.5}


def bound(session: SuiteSession, args: Mapping[str, Any], kind: str, number: int) -> dict[str, str]:
    """The binding for a submission. `number` chooses what differs, where the nonce is bound elsewhere."""
    shown = {**args["request"], **args["trusted_attested"]}
    binding = {name: shown[name] for name in (_BINDING if kind != "loose" else ("principal",))}
    if kind == "elsewhere":
        turn, place = divmod(number, len(BOUND_ELSEWHERE))
        name = BOUND_ELSEWHERE[place]
        near = session.hex64("other") if name == "artifact_hash" else f"{binding[name]}x"
        binding[name] = shown[_CONFUSED[name]] if name in _CONFUSED and turn % 2 else near
    return binding


def window_of(kind: str, now: str, longest_s: int) -> dict[str, str]:
    """The window of a nonce that is issued now."""
    opens = shift(now, _OPENS.get(kind, "+0s"))
    length = _BRIEF_S if kind in MOVED and kind != "issued later" else longest_s
    return {"not_before": opens, "not_after": shift(opens, f"+{length}s")}


def bits_of(nonces: Sequence[str]) -> float:
    """How many bits of nonces differ at most: the sum over their places of what the letters there can say."""
    return sum(math.log2(len(set(letters))) for letters in zip_longest(*nonces))
