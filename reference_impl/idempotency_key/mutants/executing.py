"""Bugs of what is done around a handler."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace

from holdfast.reference_impl.idempotency_key.guard import Guard, Request
from holdfast.reference_impl.idempotency_key.records import Claim, Found
from holdfast.reference_impl.idempotency_key.terms import Answer
from holdfast.reference_impl.planting import part

_Handler = Callable[[bytes], Answer]


class OpenAtLookUp(Guard):
    def without_store(self, request: Request, handler: _Handler) -> Answer:
        return self.run(request, handler)


class OpenWhenSlow(Guard):
    def claim(self, scope: str, key: str, print_: str) -> Claim:
        began = time.monotonic()
        claim = super().claim(scope, key, print_)
        return claim if time.monotonic() - began < 0.3 else replace(claim, found=Found.MINE)


class DiesWithoutStore(Guard):
    def without_store(self, request: Request, handler: _Handler) -> Answer:
        os._exit(1)


class SaveForgotten(Guard):
    def keep(self, scope: str, key: str, token: str, answer: Answer) -> Answer:
        super().keep(scope, key, token, answer)
        return answer


BUGS = {
    "open-at-the-look-up": part(guard=OpenAtLookUp),
    "open-when-the-store-is-slow": part(guard=OpenWhenSlow),
    "dies-without-its-store": part(guard=DiesWithoutStore),
    "failed-save-is-a-success": part(guard=SaveForgotten),
}
