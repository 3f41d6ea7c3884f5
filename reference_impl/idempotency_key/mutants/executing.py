"""Bugs of what is done around a handler."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from fastapi import Request as HttpRequest
from fastapi import Response
from starlette.requests import ClientDisconnect

from holdfast.reference_impl.idempotency_key.app import Application
from holdfast.reference_impl.idempotency_key.guard import Guard, Request
from holdfast.reference_impl.idempotency_key.records import Claim, Found
from holdfast.reference_impl.idempotency_key.terms import REPLAYED, Answer, Reason, problem
from holdfast.reference_impl.planting import part

_Handler = Callable[[bytes], Answer]
_LARGE = 100_000


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


class RecordedLater(Guard):
    def keep(self, scope: str, key: str, token: str, answer: Answer) -> Answer:
        threading.Timer(0.5, super().keep, (scope, key, token, answer)).start()
        return answer


class ThrownFrees(Guard):
    def first(self, request: Request, key: str, token: str, handler: _Handler) -> Answer:
        try:
            answer = self.storable(handler(request.body))
        except Exception:
            self.records.release(self.scope(request), key, token)
            return problem(Reason.UNKNOWN)
        return self.keep(self.scope(request), key, token, answer)


class ErrorsFree(Guard):
    def keep(self, scope: str, key: str, token: str, answer: Answer) -> Answer:
        if answer.status >= 400:
            self.records.release(scope, key, token)
            return answer
        return super().keep(scope, key, token, answer)


class LargeFrees(Guard):
    def keep(self, scope: str, key: str, token: str, answer: Answer) -> Answer:
        if len(answer.body) > _LARGE:
            self.records.release(scope, key, token)
            return answer
        return super().keep(scope, key, token, answer)


class CookieKept(Guard):
    def storable(self, answer: Answer) -> Answer:
        return answer


class BodyAsText(Guard):
    def again(self, claim: Claim, request: Request, handler: _Handler) -> Answer:
        answer = super().again(claim, request, handler)
        return replace(answer, body=answer.body.decode("utf-8", "replace").encode())


class LocationLost(Guard):
    def again(self, claim: Claim, request: Request, handler: _Handler) -> Answer:
        answer = super().again(claim, request, handler)
        return replace(answer, headers=tuple(pair for pair in answer.headers if pair[0].lower() == "content-type"))


class AnsweredUnexecuted(Guard):
    def run(self, request: Request, handler: _Handler) -> Answer:
        return Answer(202, (("Content-Type", "application/json"),), b'{"accepted":true}')


class LostRaceIs500(Guard):
    def again(self, claim: Claim, request: Request, handler: _Handler) -> Answer:
        if claim.found is Found.RUNNING:
            return problem(Reason.UNKNOWN)
        return super().again(claim, request, handler)


class MismatchFrees(Guard):
    def again(self, claim: Claim, request: Request, handler: _Handler) -> Answer:
        if claim.found is Found.OTHER:
            self.records.sweep(1 << 60)
        return super().again(claim, request, handler)


class BusyIsOpen(Guard):
    _places = threading.BoundedSemaphore(6)

    def claim(self, scope: str, key: str, print_: str) -> Claim:
        if not self._places.acquire(blocking=False):
            return Claim(Found.MINE)
        try:
            return super().claim(scope, key, print_)
        finally:
            self._places.release()


class Logged(Guard):
    def run(self, request: Request, handler: _Handler) -> Answer:
        print(request.body.decode("utf-8", "replace"), file=sys.stderr, flush=True)
        return super().run(request, handler)


class FailuresLogged(Guard):
    def run(self, request: Request, handler: _Handler) -> Answer:
        answer = super().run(request, handler)
        if answer.status == Reason.UNKNOWN.value:
            print("failed:", request.body.decode("utf-8", "replace"), file=sys.stderr, flush=True)
        return answer


class OneRoute(Guard):
    def answer(self, request: Request, handler: _Handler) -> Answer:
        return super().answer(request, handler) if request.path == "/orders" else self.run(request, handler)


class EveryoneIsA(Application):
    def principal(self, request: HttpRequest) -> str | None:
        return super().principal(request) or "a"


class TokenIsPrincipal(Application):
    def principal(self, request: HttpRequest) -> str | None:
        return super().principal(request) and request.headers["Authorization"].removeprefix("Bearer ")


class MarkedAlways(Application):
    def sent(self, answer: Answer) -> Response:
        response = super().sent(answer)
        response.headers[REPLAYED] = "true"
        return response


class ErrorsInHtml(Application):
    def sent(self, answer: Answer) -> Response:
        if answer.status in (400, 409, 422):
            return Response(f"<h1>{answer.status}</h1>", answer.status, media_type="text/html")
        return super().sent(answer)


class GuardedGet(Application):
    async def get(self, request: HttpRequest) -> Response:  # type: ignore[override]
        return await self.post(request)


class GoneFrees(Application):
    async def post(self, request: HttpRequest) -> Response:
        body = await request.body()
        answering = asyncio.ensure_future(asyncio.to_thread(self.answer, request, body))
        while not answering.done():
            if await request.is_disconnected():
                await asyncio.to_thread(self.guard.records.sweep, 1 << 60)
            await asyncio.wait([answering], timeout=0.05)
        return self.sent(answering.result())


class ClaimedFirst(Application):
    async def post(self, request: HttpRequest) -> Response:
        try:
            return await super().post(request)
        except ClientDisconnect:
            key = request.headers["Idempotency-Key"].strip('"')
            await asyncio.to_thread(self.guard.claim, f"a {request.url.path}", key, "unread")
            raise


BUGS = {
    "token-is-the-principal": part(application=TokenIsPrincipal),
    "open-at-the-look-up": part(guard=OpenAtLookUp),
    "open-when-the-store-is-slow": part(guard=OpenWhenSlow),
    "dies-without-its-store": part(guard=DiesWithoutStore),
    "failed-save-is-a-success": part(guard=SaveForgotten),
    "answered-before-recorded": part(guard=RecordedLater),
    "exception-frees-the-key": part(guard=ThrownFrees),
    "error-frees-the-key": part(guard=ErrorsFree),
    "large-answer-frees-the-key": part(guard=LargeFrees),
    "cookie-is-replayed": part(guard=CookieKept),
    "body-stored-as-text": part(guard=BodyAsText),
    "location-not-stored": part(guard=LocationLost),
    "answered-and-not-executed": part(guard=AnsweredUnexecuted),
    "lost-race-is-500": part(guard=LostRaceIs500),
    "mismatch-frees-the-key": part(guard=MismatchFrees),
    "claimed-before-it-is-read": part(application=ClaimedFirst),
    "busy-is-open": part(guard=BusyIsOpen),
    "bodies-in-the-log": part(guard=Logged),
    "failed-bodies-in-the-log": part(guard=FailuresLogged),
    "other-route-unguarded": part(guard=OneRoute),
    "stranger-is-a-principal": part(application=EveryoneIsA),
    "first-answer-marked": part(application=MarkedAlways),
    "refusals-in-html": part(application=ErrorsInHtml),
    "get-is-guarded": part(application=GuardedGet),
    "lost-client-frees-the-key": part(application=GoneFrees),
}
