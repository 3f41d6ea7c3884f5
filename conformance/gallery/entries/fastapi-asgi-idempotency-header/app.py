import hashlib
import os

import httpx
from fastapi import FastAPI, Request, Response
from fastapi.middleware import Middleware
from idempotency_header_middleware import IdempotencyHeaderMiddleware
from idempotency_header_middleware.backends import RedisBackend
from redis.asyncio import from_url

redis = from_url(os.environ["STORE_URL"])


class Front:
    """Makes route and principal part of the key, and compares the payload."""

    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["method"] != "POST":
            return await self.app(scope, receive, send)
        request = Request(scope, receive)
        keys, body = request.headers.getlist("idempotency-key"), await request.body()

        async def again():
            return {"type": "http.request", "body": body}

        if len(keys) > 1 or keys == [""]:
            return await Response(status_code=400)(scope, receive, send)
        if keys:
            who = repr((request.url.path, request.headers.get("authorization"), keys))
            asked = hashlib.sha256(scope["query_string"] + b"\n" + body).digest()
            if await redis.set(f"asked {who}", asked, nx=True, get=True, ex=24 * 60 * 60) not in (None, asked):
                return await Response(status_code=422)(scope, receive, send)
            others = [pair for pair in scope["headers"] if pair[0] != b"idempotency-key"]
            scope = {
                **scope,
                "headers": [*others, (b"idempotency-key", hashlib.sha256(who.encode()).hexdigest().encode())],
            }
        return await self.app(scope, again, send)


front = [Middleware(Front)] if "SAFE" in os.environ else []
app = FastAPI(middleware=[*front, Middleware(IdempotencyHeaderMiddleware, backend=RedisBackend(redis=redis))])


@app.post("/orders")
@app.post("/refunds")
async def effect(request: Request):
    async with httpx.AsyncClient(timeout=300) as client:
        told = await client.post(os.environ["SINK_URL"], content=await request.body())
    if "holdfast-throw" in told.headers:
        raise RuntimeError("the handler throws")
    kept = ("Content-Type", "Location", "ETag", "Link", "Set-Cookie")
    headers = {name: told.headers[name] for name in kept if name in told.headers}
    return Response(told.content, told.status_code, headers)


app.get("/health")(lambda: "ok")
