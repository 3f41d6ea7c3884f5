"""What a response means: the handler's own answer, now or from before, or a refusal by a reason of the contract."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.servers.wires.client import Response
from holdfast.servers.wires.profile import Profile
from holdfast.servers.wires.sink import encoded

ACCEPTED, REFUSED = "accepted", "refused"
# Header names that evidence keeps.
_KEPT = ("content-type", "location", "etag", "link", "set-cookie", "retry-after", "date", "x-handler")


def outcome_of(response: Response, profile: Profile, told: Sequence[tuple[int, bytes]], *, ran: bool) -> dict[str, Any]:
    """An object {outcome, effect, reason, status, headers, body, marked}.

    `told` is what the sink told handlers of this tag to answer. `ran`: a handler was at the sink for this request.
    """
    marked = profile.marker is not None and response.header(profile.marker) is not None
    seen = {
        "status": response.status,
        "headers": [[name.lower(), value] for name, value in response.headers if name.lower() in _KEPT],
        "body": encoded(response.body[:65_536]),
        "size": len(response.body),
        "marked": marked,
        "lost": response.lost[:160],
    }
    if response.lost:
        return {"outcome": REFUSED, "reason": "HANG" if response.lost == "hang" else "NO_ANSWER", **seen}
    if profile.handler == "behind":
        own, ran = published(response, profile), ran or not told
    else:
        # A handler that was told to answer without a body is known by its status alone.
        own = any(response.status == status and (response.body == body or status == 204) for status, body in told)
    if own:
        return {"outcome": ACCEPTED, "effect": "new" if ran else "prior", **seen}
    return {"outcome": REFUSED, "reason": _reason(response.status, profile), **seen}


def published(response: Response, profile: Profile) -> bool:
    """Whether an effect is due behind this answer, where effects come behind the answers."""
    return 200 <= response.status < 300 and response.status != profile.codes.duplicate


def _reason(status: int, profile: Profile) -> str:
    codes = profile.codes
    named: Mapping[str, Sequence[int | None]] = {
        "UNAUTHENTICATED": (codes.unauthenticated, 403),
        "MALFORMED": (codes.malformed,),
        "DUPLICATE": (codes.duplicate,),
        "IN_PROGRESS": (codes.in_progress,),
        "MISMATCH": (codes.mismatch,),
        "UNAVAILABLE": (codes.unavailable,),
        "UNKNOWN": (codes.unknown,),
    }
    return next((reason for reason, known in named.items() if status in known), "OTHER")
