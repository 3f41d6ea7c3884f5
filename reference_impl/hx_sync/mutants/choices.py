"""Sound variants of hx-sync: each does what a clause permits, and the reference does not do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.reference_impl.hx_sync.forgetting import Forgetting
from holdfast.reference_impl.hx_sync.header import Header
from holdfast.reference_impl.hx_sync.publishing import Publishing
from holdfast.reference_impl.hx_sync.records import Window
from holdfast.reference_impl.hx_sync.terms import Reason, RefusedError
from holdfast.reference_impl.planting import Change, part


class SenselessTimeIsNoRequest(Publishing):
    def check_batch(self, payload: bytes, header: Header) -> None:
        try:
            super().check_batch(payload, header)
        except RefusedError as error:
            raise (RefusedError(Reason.REQUEST_MALFORMED, str(error)) if "instant" in str(error) else error) from error


class SenselessWindowIsNoRequest(Forgetting):
    def window(self, args: Any) -> Window:
        try:
            return super().window(args)
        except RefusedError as error:
            raise RefusedError(Reason.REQUEST_MALFORMED, str(error)) from error


BUGS: Mapping[str, Change] = {
    "choice-senseless-time-is-no-request": part(publishing=SenselessTimeIsNoRequest),
    "choice-senseless-window-is-no-request": part(forgetting=SenselessWindowIsNoRequest),
}
