"""Requests of rs4a-replay as suites make them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import shift
from holdfast.conformance.suites.rs4a_replay.model_state import keys_of

# What serialisers escape, parsers cut at, or text is brought to another form for. Any target may hold it.
_AWKWARD = (
    "",
    "&<>",
    "'\"\\",
    "\u2028",
    "\u2029",
    "\u0085",
    "\ufeff",
    "\U0001f512",
    "\u00e9",
    "\u00ad",
    "{}|^`",
    "\ue000",
)
# What a store, a parser or a language may take for a number, a truth value, a date or nothing, or cut. Any name may be
# so.
_SPELLINGS = (
    "run-{}",
    "{}",
    "00{}",
    "{}e3",
    "{}.0",
    "0x{}",
    "-{}",
    "+{}",
    "1_{}",
    "null {}",
    "true{}",
    "{}-01-01",
    "'{}'",
    "{:x>510}",
)


def numbered(number: int) -> str:
    """A name that stands as it is, different for each number."""
    return _SPELLINGS[number % len(_SPELLINGS)].format(number)


def principal(session: SuiteSession) -> str:
    """Who asks: a name that must be written and compared as it stands."""
    return f'agent <{session.rand("principal")}> & "co" \\'


def request(session: SuiteSession, label: str, *, nonce: str, age_s: float = 0, **members: str) -> dict[str, Any]:
    """A submission; `label` decides target and owner, and so the logical key."""
    artifact, awkward = session.hex64("artifact"), _AWKWARD[int(label) % len(_AWKWARD)] if label.isdecimal() else ""
    body = {
        "protocol_version": "rs4a/0.2",
        "operation": "register_dot",
        "canonical_target": f"dot://acme/{label}-{session.rand('target')}{awkward}",
        "owner_or_approval_binding": f"owner-{session.rand('owner')}",
        "principal": principal(session),
        "run_id": f"run-{session.rand('run')}",
        "deployed_artifact_hash": artifact,
        "authorization_nonce": nonce,
        "attempt_id": f"try-{session.rand('attempt')}",
        "issued_at": shift(session.now, f"{-age_s:+f}s") if age_s else session.now,
        **members,
    }
    return {"request": body, "trusted_attested": {"artifact_hash": artifact}}


def tampered(session: SuiteSession, args: dict[str, Any], how: str) -> dict[str, Any]:
    """A submission, changed in the way of this name if there is one (`steps.TAMPERED`)."""
    if how == "claiming another artifact":
        args["request"]["artifact_hash"] = session.hex64("forged")
    elif how == "deploying another artifact":
        args["request"]["deployed_artifact_hash"] = session.hex64("forged")
    elif how == "without an attempt":
        del args["request"]["attempt_id"]
    elif how == "with a stranger":
        args["request"]["force"] = "true"
    return args


def issuing(session: SuiteSession, longest_s: Any, binding: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Ask for a nonce that can be used for so long from now on, bound to the principal unless the call says so."""
    window = {"not_before": session.now, "not_after": shift(session.now, f"+{longest_s}s")}
    return {"binding": binding or {"principal": principal(session)}, "window": window}


def issue(bench: Bench, session: SuiteSession, *, worker: int = 0, binding: Mapping[str, str] | None = None) -> str:
    """A fresh nonce with the longest window, bound as `issuing` has it."""
    longest_s = bench.contract.parameters["nonce_window_seconds"].value
    return str(session.accepted("issue_nonce", issuing(session, longest_s, binding), worker)["nonce"])


def registration(bench: Bench, session: SuiteSession, args: Mapping[str, Any], name: str, **more: Any) -> Any:
    """The row of a submission that was registered under this name, to put it into the store."""
    columns = bench.contract.relations["registration"].columns
    row = {name: text for name, text in args["request"].items() if name in columns}
    return {**row, **keys_of(args), "decision_id": name, "inert": True, "committed_at": session.now, **more}


# What a nonce of a history is bound to, when its window opens and closes, and when it is presented


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
